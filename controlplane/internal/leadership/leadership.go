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
)

// maxReturned bounds the markers that wait to be acted on. One that is dropped is replaced by the
// next.
const maxReturned = 1024

// failedPause is after how long what has failed is tried again.
const failedPause = time.Second

// Leadership is this node's time as leader: what it remembers, and the routines that work.
type Leadership struct {
	config  *Config
	node    *node.Node
	clocks  *Clocks
	metrics *metrics
	ctx     context.Context // ends with it
	term    uint64
	// index of its first command: its own for ever, while a term may have several leaderships
	began      uint64
	steps      *steps.Steps
	dispatcher *dispatch.Dispatcher
	tracker    *shards.Tracker
	returned   chan model.Marker
	turns      turns // of heartbeats
	// admission is held from the look at what members can apply until what follows from it is done.
	// What follows is that a server is added, or the version raised.
	admission sync.Mutex
	// when all lists were last looked at for orphans, however old, Unix ms: two owners of the
	// removal may work at once
	oldLists atomic.Int64
	// when the history was last looked at for runs that are too old; the archive routine's own
	historyExpired time.Time
	// since when members have been gone, as the autopilot saw them last
	gone atomic.Pointer[map[string]time.Time]
	// what the row store's disk has left, as it said last
	rows atomic.Pointer[room]

	planNow     signal // a command made room, brought work or money
	planLater   signal // the leader's own steps may have made room
	unread      signal // a list could not be read
	publishNow  signal
	giveBackNow signal
	closeNow    signal
	assignNow   signal
	markNow     signal
	startNow    signal     // something is to start by itself, or at another time
	assigning   sync.Mutex // one plan of assignments, or one heartbeat, at a time
	marksMu     sync.Mutex
	marksWanted map[uint16]struct{} // shards newly held
	toldMu      sync.Mutex
	told        map[string]time.Time // when a routine's failure was told last
}

// propose applies a step's command.
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

// observe sees every command that is applied, in order, and the runs that it ended.
func (l *Leadership) observe(payload command.Payload, result any, ended []ids.ID) {
	l.dispatcher.Applied(payload, result, ended)
	if len(ended) > 0 {
		l.wakeFinish()
	}
	switch p := payload.(type) {
	case command.AssignShardsPayload:
		l.metrics.assigned(l.view(), p.Changes)
		l.publishNow.raise() // a shard may not be handed over after all
	case command.LaunchRunPayload, command.LaunchRunsPayload:
		l.planNow.raise()
		l.wakeFinish() // it may have failed at once
	case command.AdjustWalletPayload, command.PayTopUpPayload, command.ReverseTopUpPayload,
		command.PutSettingsPayload: // what was refused for want of money may go out
		l.planNow.raise()
	case command.SettlePayload, command.RedispatchPayload:
		l.planNow.raise()
		l.publishNow.raise()
		l.wakeFinish()
	case command.ExtendWindowPayload:
		l.publishNow.raise()
		l.wakeFinish() // an ended run waits for what was picked of it
	case command.CloseRunPayload:
		l.runClosed(p.Job) // as long as the state is sure to have it
	case command.PutScraperPayload, command.PutGroupPayload, command.PutStartTypePayload:
		l.startNow.raise()
	case command.NoteSpacePayload:
		l.planNow.raise()
		l.publishNow.raise()
	case command.RegisterNodePayload, command.DrainNodePayload:
		l.assignNow.raise()
		l.publishNow.raise() // a node may take tasks again of the shards that it has
	}
}

// wakeFinish wakes the routines that take runs to their end.
func (l *Leadership) wakeFinish() {
	l.giveBackNow.raise()
	l.closeNow.raise()
}

// TakeBack queues markers that came back.
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

// Term is Raft's, in which this leadership is.
func (l *Leadership) Term() uint64 { return l.term }

// Done is closed when the leadership is over.
func (l *Leadership) Done() <-chan struct{} { return l.ctx.Done() }

// Began is the index of its first command: its own for ever, while a term may have several
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

// keep runs a routine again, after a while, whenever it fails.
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

// tellUnread tells of a list that cannot be read, and has plan read it again after a while.
func (l *Leadership) tellUnread(err error) {
	l.tellFailed("plan", err)
	l.unread.raise()
}

// tellFailed counts and tells a failure of a routine. Where the row store is away all lists and
// runs fail at once: one of them a second says enough.
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
