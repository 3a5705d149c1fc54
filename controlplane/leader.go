package controlplane

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/leader"
	"shoal.dev/shoal/controlplane/internal/shards"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// maxReturned bounds the markers that wait to be acted on. One that is dropped is replaced by the next.
const maxReturned = 1024

// leadership is this node's time as leader: what it remembers, and the routines that work.
type leadership struct {
	s          *Server
	ctx        context.Context // ends with it
	term       uint64
	began      uint64 // index of its first command: its own for ever, while a term may have several leaderships
	steps      *leader.Leader
	dispatcher *dispatch.Dispatcher
	tracker    *shards.Tracker
	returned   chan model.Marker
	turns      turns // of heartbeats
	// admission is held while it is seen what members can apply, until what follows from it is done: a server is added, or the
	// version raised.
	admission sync.Mutex
	gone      atomic.Pointer[map[string]time.Time] // since when members have been gone, as the autopilot saw them last

	planNow     signal // a command made room, brought work or money
	planLater   signal // the leader's own steps may have made room
	publishNow  signal
	finishNow   signal
	assignNow   signal
	markNow     signal
	assigning   sync.Mutex // one plan of assignments, or one heartbeat, at a time
	marksMu     sync.Mutex
	marksWanted map[uint16]struct{} // shards newly held
}

// signal wakes a routine; several before it looks are one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (g signal) raise() {
	select {
	case g <- struct{}{}:
	default:
	}
}

// lead is one leadership, from its beginning until ctx ends. It fails only when this node cannot lead this cluster.
func (s *Server) lead(ctx context.Context) error {
	term, began, ok := s.settleIn(ctx)
	if !ok {
		return nil
	}
	s.beginTime() // what earlier leaders stamped is applied now
	cluster, err := s.createCluster(ctx)
	if err != nil || cluster == nil {
		return err
	}
	if cluster.Shards != s.config.Shards {
		return fmt.Errorf("the cluster was created with %d shards, this node is set to %d", cluster.Shards, s.config.Shards)
	}
	if !s.addPrices(ctx) {
		return nil
	}
	s.compareAlone()
	l := s.adopt(ctx, term, began)
	s.config.Logger.Info("leading", "term", term)
	s.leading.Store(l)
	s.node.LeaderChanged() // who waits for a leader to begin need wait no longer
	defer func() {
		s.leading.CompareAndSwap(l, nil)
		s.node.FSM().Observe(nil)
	}()
	l.work(ctx)
	return nil
}

// settleIn has a command of its own term applied, and thereby everything of earlier terms, and returns both. It is a
// command, not a barrier, because other nodes wait for the index of what is committed, and a barrier is never applied.
func (s *Server) settleIn(ctx context.Context) (term, index uint64, ok bool) {
	id := s.config.IDs.New()
	err := s.retry(ctx, func() (err error) {
		if term, err = s.node.Term(ctx); err != nil {
			return err
		}
		if index, err = s.append(ctx, id, command.TickPayload{}, nil); err != nil {
			return err
		}
		if now, err := s.node.Term(ctx); err != nil || now != term {
			return errors.Join(raft.ErrLeadershipLost, err)
		}
		return nil
	})
	return term, index, err == nil
}

// createCluster gives the cluster its first command unless it has it. Nil: leadership is over, and the next leader finds
// out what came of it. It fails when log or row store are another cluster's: two that work on them would take each other's
// tasks and pages.
func (s *Server) createCluster(ctx context.Context) (*state.Cluster, error) {
	view := func() *state.View { return s.node.View() }
	if cluster := view().Cluster(); cluster != nil {
		return cluster, nil
	}
	id, err := s.node.ClusterID()
	if err != nil {
		return nil, err
	}
	if claimed, err := s.claim(ctx, id); err != nil || !claimed {
		return nil, err
	}
	secret := s.config.IDs.New()
	first := command.CreateClusterPayload{ID: id, Shards: s.config.Shards, FreeGrant: s.config.FreeGrant,
		HashSecret: binary.BigEndian.Uint64(secret[4:]), Prices: s.config.Prices,
		Log: s.config.Services.Log, Rows: s.config.Services.Rows, Version: s.config.newest}
	if _, err := s.proposeHere(ctx, first); err != nil {
		return nil, nil //nolint:nilerr // leadership is over, or ends
	}
	return view().Cluster(), nil
}

// claim marks log and row store as the cluster's, as often as it takes; not claimed: ctx ended. It fails when they are
// another cluster's.
func (s *Server) claim(ctx context.Context, cluster ids.ID) (claimed bool, err error) {
	if s.config.Services.Claim == nil {
		return true, nil
	}
	for {
		err := s.config.Services.Claim(ctx, cluster, s.config.Services.Rebind)
		if err == nil || fault.CodeOf(err) == fault.OtherServices {
			return err == nil, err
		}
		if !clock.Pause(ctx, s.config.Clock, time.Second) {
			return false, nil
		}
		s.config.Logger.Warn("log and row store are not marked as this cluster's yet", "error", err)
	}
}

// addPrices gives the price table the rows that no version of it ever had: those of endpoints that are newer than the
// cluster. A row that was taken away stays away. Not ok: leadership is over.
func (s *Server) addPrices(ctx context.Context) (ok bool) {
	view := s.node.View()
	current := view.CurrentPrices()
	known := map[string]bool{}
	for version := uint32(1); version <= current.Version; version++ {
		if table := view.Prices(version); table != nil {
			for _, row := range table.Rows {
				known[row.RowKey] = true
			}
		}
	}
	rows := slices.Clone(current.Rows)
	for _, row := range s.config.Prices {
		if !known[row.RowKey] {
			rows = append(rows, row)
		}
	}
	if len(rows) == len(current.Rows) {
		return true
	}
	_, err := s.proposeHere(ctx, command.PutPricesPayload{Rows: rows})
	return err == nil
}

// adopt makes the leadership's memory from the replicated state, between two commands: what is applied before is in the
// state, what is applied after is observed.
func (s *Server) adopt(ctx context.Context, term, began uint64) *leadership {
	l := &leadership{s: s, ctx: ctx, term: term, began: began, returned: make(chan model.Marker, maxReturned), planNow: newSignal(),
		planLater: newSignal(), publishNow: newSignal(), finishNow: newSignal(), assignNow: newSignal(),
		markNow: newSignal(), marksWanted: map[uint16]struct{}{}}
	store := s.node.Store
	view := s.node.View
	defer s.node.Between()()
	l.dispatcher = dispatch.New(dispatch.Config{Leader: began, Newest: store().LastDispatch(), Shards: int(s.config.Shards), Window: s.config.Window,
		HostOf: s.config.HostOf, ShardOf: s.config.ShardOf, DomainOf: s.config.DomainOf, Pace: s.config.pace, Now: s.config.Clock.Now, View: view})
	l.tracker = shards.New(shards.Config{Lease: s.config.Lease, EndWithin: l.endWithin, Now: s.config.Clock.Now})
	l.steps = &leader.Leader{Dispatcher: l.dispatcher, State: store, Propose: l.propose, Store: s.config.Store,
		Log: s.config.Log, IDs: s.config.IDs, NowMicros: func() int64 { return s.config.Clock.Now().UnixMicro() },
		Spare: s.spares, Point: s.config.Point, Counts: &s.metrics.steps, Tracer: s.config.Tracer}
	for _, job := range view().OpenJobs() {
		store().ReadRun(job.ID, func(run *state.Run) {
			if run != nil {
				l.dispatcher.Adopt(job, run)
			}
		})
	}
	s.node.FSM().Observe(l.observe)
	return l
}

// pace is what a run may ask of one host.
func (c *Config) pace(view *state.View, job *state.Job) float64 {
	rate := c.HostRate
	if recipe := view.Recipe(job.Scraper, job.Revision); recipe != nil && recipe.Recipe.Politeness.RequestsPerSecond > 0 {
		rate = recipe.Recipe.Politeness.RequestsPerSecond
	}
	if c.MaxHostRate > 0 && (rate == 0 || rate > c.MaxHostRate) {
		return c.MaxHostRate
	}
	return rate
}

// propose applies a step's command.
func (l *leadership) propose(ctx context.Context, payload command.Payload) (any, error) {
	if p, settles := payload.(command.SettlePayload); settles {
		return nil, l.s.settle(p.Receipts, func(payload command.Payload) (fsm.Result, error) {
			return l.s.proposeHere(ctx, payload)
		})
	}
	result, err := l.s.proposeHere(ctx, payload)
	if err != nil {
		return nil, err
	}
	if p, closes := payload.(command.CloseRunPayload); closes {
		l.s.runClosed(p.Job)
	}
	return result.Value, result.Err
}

// observe sees every command that is applied, in order.
func (l *leadership) observe(payload command.Payload, result any) {
	l.dispatcher.Applied(payload, result)
	switch p := payload.(type) {
	case command.AssignShardsPayload:
		l.s.metrics.assigned(l.view(), p.Changes)
	case command.LaunchRunPayload:
		l.planNow.raise()
		l.finishNow.raise() // it may have failed at once
	case command.AdjustWalletPayload:
		l.planNow.raise()
	case command.SettlePayload, command.RedispatchPayload:
		l.planNow.raise()
		l.publishNow.raise()
		l.finishNow.raise()
	case command.ExtendWindowPayload:
		l.publishNow.raise()
		l.finishNow.raise() // a run that money does not reach any more has ended
	case command.StopRunPayload:
		l.finishNow.raise()
	case command.RegisterNodePayload, command.DrainNodePayload:
		l.assignNow.raise()
	}
}

// takeBack queues markers that came back.
func (l *leadership) takeBack(markers []model.Marker) {
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

// heartbeat notes a fetcher's heartbeat and answers it. Changes of owners that it makes due come first, so that a
// fetcher that starts has its shards with the first answer.
func (l *leadership) heartbeat(beat client.Heartbeat) (client.Leases, error) {
	// Nobody else may plan before the answer is made: what the node was not told to hold yet may be given away.
	l.assigning.Lock()
	defer l.assigning.Unlock()
	taken := l.tracker.Heard(beat)
	if err := l.reassign(); err != nil {
		return client.Leases{}, err
	}
	if len(taken) > 0 {
		l.marksMu.Lock()
		for _, shard := range taken {
			l.marksWanted[shard] = struct{}{}
		}
		l.marksMu.Unlock()
		l.publishNow.raise()
		l.markNow.raise()
	}
	view := l.view()
	leases := l.tracker.Answer(view.Node(beat.Node), view.Shards())
	for i := range leases.Hold {
		leases.Hold[i].Newest = l.dispatcher.Newest(int(leases.Hold[i].Shard))
	}
	return leases, nil
}

// endWithin is how long after its lease's end a fetcher may be at work. Those of cluster version 1 finish what they ask.
func (l *leadership) endWithin() time.Duration {
	if l.view().ClusterVersion() < 2 {
		return max(l.s.config.FetchDeadline, l.s.config.EndWithin)
	}
	return l.s.config.EndWithin
}

// assign proposes the changes of owners that are due.
func (l *leadership) assign() error {
	l.assigning.Lock()
	defer l.assigning.Unlock()
	return l.reassign()
}

// reassign is assign for who holds assigning. It returns only when the outcome is known or the leadership over, whatever
// becomes of the call that led to it: a change that is still on its way must not be overtaken by an answer.
func (l *leadership) reassign() error {
	view := l.view()
	changes := l.tracker.Plan(view.Nodes(), view.Shards())
	if len(changes) == 0 {
		return nil
	}
	_, err := l.propose(l.ctx, command.AssignShardsPayload{Changes: changes})
	return err
}

func (l *leadership) view() *state.View { return l.s.node.View() }

// held says whether somebody reads a shard's tasks.
func (l *leadership) held(view *state.View, shard int) bool {
	record := view.Shard(uint16(shard))
	return record != nil && l.tracker.Held(view.Node(record.Owner), record)
}

// work runs the routines until ctx ends, and waits for them.
func (l *leadership) work(ctx context.Context) {
	var routines sync.WaitGroup
	for name, routine := range map[string]func(context.Context) error{
		"plan": l.plan, "publish": l.publish, "mark": l.mark, "recover": l.recover, "finish": l.finish,
		"assign": l.assignWhenDue, "expire": l.expire, "orphans": l.dropOrphans, "rows": l.expireRows, "undone": l.dropUndone,
		"autopilot": l.autopilot, "clocks": l.compareClocks, "version": l.activateVersion, "digests": l.compareDigests,
	} {
		routines.Go(func() { l.keep(ctx, name, routine) })
	}
	routines.Wait()
}

// keep runs a routine again, after a while, whenever it fails.
func (l *leadership) keep(ctx context.Context, name string, routine func(context.Context) error) {
	for {
		err := routine(ctx)
		if ctx.Err() != nil {
			return
		}
		l.s.metrics.routines.WithLabelValues(name).Inc()
		l.s.config.Logger.Warn("a routine of the leader failed and goes on", "routine", name, "error", err)
		if !clock.Pause(ctx, l.s.config.Clock, time.Second) {
			return
		}
	}
}
