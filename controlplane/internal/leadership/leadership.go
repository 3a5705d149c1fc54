package leadership

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/shards"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/controlplane/internal/steps"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/wake"
)

// maxReturned bounds the markers that wait. A dropped marker is replaced by the next one.
const maxReturned = 1024

// failedPause is the pause before a failed routine runs again.
const failedPause = time.Second

// Leadership is this node's time as leader: what it remembers, and its routines.
type Leadership struct {
	config  *Config
	node    *node.Node
	clocks  *Clocks
	metrics *metrics
	ctx     context.Context // ends with the leadership
	term    uint64
	// index of its first command, which is unique; a term may have several leaderships
	began      uint64
	steps      *steps.Steps
	dispatcher *dispatch.Dispatcher
	tracker    *shards.Tracker
	returned   chan model.Marker
	turns      turns // of heartbeats
	// admission is held from the check of what members can apply until the change that depends on
	// it is made. That change adds a server or raises the version.
	admission sync.Mutex
	// when all lists were last checked for orphans, however old, Unix ms; atomic because two owners
	// of the work may overlap
	oldLists atomic.Int64
	// when old runs were last removed from the history; used by the archive routine only
	historyExpired time.Time
	// since when members have been gone, as the autopilot last saw them
	gone atomic.Pointer[map[string]time.Time]
	// free space on the row store's disk, as last reported
	rows atomic.Pointer[room]

	planNow     wake.Signal // a command made room, or brought work or money
	planLater   wake.Signal // the leader's own steps may have made room
	unread      wake.Signal // a list could not be read
	publishNow  wake.Signal
	giveBackNow wake.Signal
	closeNow    wake.Signal
	assignNow   wake.Signal
	markNow     wake.Signal
	startNow    wake.Signal // a schedule may be due, or was changed
	assigning   sync.Mutex  // one plan of assignments or one heartbeat at a time
	marksMu     sync.Mutex
	marksWanted map[uint16]struct{} // shards newly held
	toldMu      sync.Mutex
	told        map[string]time.Time // when a routine's failure was last logged
}

// propose applies a command of a step.
func (l *Leadership) propose(ctx context.Context, payload command.Payload) (any, error) {
	if p, settles := payload.(command.SettlePayload); settles {
		return nil, l.config.Proposer.Settle(ctx, p.Receipts)
	}
	result, err := l.config.Proposer.Propose(ctx, payload)
	if err != nil {
		return nil, err
	}
	return result.Value, result.Err
}

// observe sees every applied command in order, and the runs that it ended.
func (l *Leadership) observe(payload command.Payload, result any, ended []ids.ID) {
	l.dispatcher.Applied(payload, result, ended)
	if len(ended) > 0 {
		l.wakeFinish()
	}
	switch p := payload.(type) {
	case command.AssignShardsPayload:
		l.metrics.assigned(l.view(), p.Changes)
		l.publishNow.Raise() // a planned hand-over may be cancelled
	case command.LaunchRunPayload, command.LaunchRunsPayload:
		l.planNow.Raise()
		l.wakeFinish() // it may have failed at once
	case command.AdjustWalletPayload, command.PayTopUpPayload, command.ReverseTopUpPayload,
		command.PutSettingsPayload: // links refused for lack of money may go out
		l.planNow.Raise()
	case command.SettlePayload, command.RedispatchPayload:
		l.planNow.Raise()
		l.publishNow.Raise()
		l.wakeFinish()
	case command.ExtendWindowPayload:
		l.publishNow.Raise()
		l.wakeFinish() // an ended run waits for its picked links
	case command.CloseRunPayload:
		l.runClosed(p.Job) // while the state still has it
	case command.PutScraperPayload, command.PutGroupPayload, command.PutStartTypePayload:
		l.startNow.Raise()
	case command.NoteSpacePayload:
		l.planNow.Raise()
		l.publishNow.Raise()
	case command.RegisterNodePayload, command.DrainNodePayload:
		l.assignNow.Raise()
		l.publishNow.Raise() // a node may take tasks of its shards again
	}
}

// wakeFinish wakes the routines that finish runs.
func (l *Leadership) wakeFinish() {
	l.giveBackNow.Raise()
	l.closeNow.Raise()
}

// TakeBack queues markers of this leadership that came back.
func (l *Leadership) TakeBack(markers []model.Marker) {
	for _, m := range markers {
		if m.Leader != l.began {
			continue
		}
		select {
		case l.returned <- m:
		default:
			return
		}
	}
}

// Term returns the Raft term of this leadership.
func (l *Leadership) Term() uint64 { return l.term }

// Done returns a channel that is closed when the leadership is over.
func (l *Leadership) Done() <-chan struct{} { return l.ctx.Done() }

// Began returns the index of its first command. It is unique, while a term may have several
// leaderships.
func (l *Leadership) Began() uint64 { return l.began }

func (l *Leadership) view() *state.View { return l.node.View() }

// work runs the routines until ctx ends, and waits for them.
func (l *Leadership) work(ctx context.Context) {
	var routines sync.WaitGroup
	for name, routine := range map[string]func(context.Context) error{
		"plan": l.plan, "publish": l.publish, "mark": l.mark, "recover": l.recover,
		"giveback": l.giveBack, "close": l.closeRuns,
		"assign": l.assignWhenDue, "expire": l.expire, "undone": l.dropUndone,
		"autopilot": l.autopilot, "clocks": l.compareClocks, "version": l.activateVersion,
		"digests": l.compareDigests, "archive": l.archivePast,
		"schedules": l.startDue, "space": l.watchSpace,
	} {
		routines.Go(func() { l.keep(ctx, name, routine) })
	}
	routines.Wait()
}

// keep runs a routine, and after a pause runs it again whenever it fails.
func (l *Leadership) keep(ctx context.Context, name string, routine func(context.Context) error) {
	for {
		err := routine(ctx)
		if ctx.Err() != nil {
			return
		}
		l.tellFailed(name, err)
		if !clock.Pause(ctx, l.config.Clock, failedPause) {
			return
		}
	}
}

// tellUnread logs a list that cannot be read, and has plan read it again later.
func (l *Leadership) tellUnread(err error) {
	l.tellFailed("plan", err)
	l.unread.Raise()
}

// tellFailed counts and logs a routine's failure, at most once per failedPause. Without the row
// store all lists and runs fail at once.
func (l *Leadership) tellFailed(routine string, err error) {
	now := l.config.Clock.Now()
	l.toldMu.Lock()
	told := now.Sub(l.told[routine]) < failedPause
	if !told {
		l.told[routine] = now
	}
	l.toldMu.Unlock()
	if told {
		return
	}
	l.metrics.routines.WithLabelValues(routine).Inc()
	l.config.Logger.Warn("a routine of the leader failed and goes on", "routine", routine, "error",
		err)
}
