// Package controlplane owns the replicated state of the cluster: it runs Raft over the state machine, is the client
// through which the other roles read and change that state, at whichever node they are, and, as leader, dispatches what
// runs have to fetch. What commands do is the state machine's (internal/fsm), what to send out next the dispatcher's
// (internal/dispatch), who fetches which shard is decided by internal/shards, how nodes speak by internal/port. DESIGN.md
// says what holds at every moment, and why.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/port"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// Server is a node: it holds a replica of the state, and with the role controlplane it votes and may lead. Before Run its
// client answers nothing but View.
type Server struct {
	cfg     Config
	machine *machine
	gate    *gate
	// presence is what the cluster's members know of a node's life.
	presence func(node string) client.NodeState
	ready    chan struct{}
	begun    atomic.Bool
	metrics  *metrics

	life  context.Context // ends when requests are answered no more
	end   context.CancelFunc
	reign atomic.Pointer[reign]

	clocks      clocks
	leading     atomic.Pointer[leadership]
	here, there confirmer     // by this node's leadership, by the leader's
	beats       atomic.Uint64 // heartbeats sent
	anew        signal        // the state was replaced: lead anew
	again       signal        // the state was replaced: register again
	interludes  chan func()   // run while no leadership's routines do
	restoring   sync.Mutex    // held while a backup is put in the state's place
	uploads     uploads
	hashing     sync.Mutex // held while the state is hashed
	diverged    atomic.Bool
}

// New makes a node that Run starts. Its error names every setting that is out of range.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Boot.IsZero() {
		cfg.Boot = cfg.IDs.New()
	}
	m := newMetrics(&cfg)
	s := &Server{cfg: cfg, clocks: clocks{began: cfg.Clock.Now()}, machine: newMachine(cfg.Point, m), gate: newGate(), presence: onlyThis(cfg.Node),
		ready: make(chan struct{}), metrics: m, anew: newSignal(), again: newSignal(), interludes: make(chan func())}
	s.life, s.end = context.WithCancel(context.Background())
	s.nextReign()
	s.measure(cfg.Metrics)
	return s, nil
}

// Client is the control plane as the other roles see it.
func (s *Server) Client() client.Client { return caller{s} }

// Ready is closed when the node is registered and knows the state: its client serves from then on.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// StateHash is a hash of this node's copy of the state and the Raft index of the newest command in it. At one index it is
// the same on every node. It costs as much as a snapshot; one is made at a time.
func (s *Server) StateHash() (index uint64, hash string, err error) {
	s.hashing.Lock()
	defer s.hashing.Unlock()
	return s.machine.hash()
}

// Refused counts the connections and the calls of other nodes that were refused.
func (s *Server) Refused() (connections, calls uint64) {
	n, err := s.gate.enter()
	if err != nil {
		return 0, 0
	}
	defer s.gate.leave()
	if n.port == nil {
		return 0, 0
	}
	return n.port.Refused()
}

// Run works until ctx ends and then stops in order: the leader's routines, calls under way, leadership, Raft with its
// files, the port. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	if s.begun.Swap(true) {
		return errors.New("controlplane: a server runs once")
	}
	defer s.end()
	raft, err := s.open()
	if err != nil {
		s.gate.close()
		return err
	}
	raft.RegisterObserver(s.metrics.leaderChanges())
	if raft.members != nil {
		s.presence = raft.presence
	}
	s.machine.whenRestored(s.stateReplaced)
	s.gate.open(raft)
	if raft.port != nil {
		raft.port.Serve(s.methods())
	}

	inner, cancel := context.WithCancel(ctx)
	var routines sync.WaitGroup
	routines.Go(func() { s.watchLeaders(inner, raft) })
	var strange, refused error
	routines.Go(func() {
		if refused = s.register(inner, raft); refused != nil {
			cancel()
		}
	})
	if raft.members != nil {
		routines.Go(func() {
			if strange = s.belong(inner, raft); strange != nil {
				cancel()
			}
		})
	}
	err = s.follow(inner, raft.LeaderCh())
	cancel()
	routines.Wait()
	if s.cfg.Cluster.gossips() && s.cfg.Cluster.LeaveOnStop && err == nil && strange == nil && refused == nil {
		s.leave(raft)
	}
	return errors.Join(err, strange, refused, s.stop(raft))
}

// open opens the port, when the node is one of several, and starts Raft.
func (s *Server) open() (*node, error) {
	s.sweep()
	cluster := s.cfg.Cluster
	if cluster == nil {
		return openNode(&s.cfg, s.machine, nil)
	}
	if err := cluster.Identity.Check(s.cfg.Clock.Now()); err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	opened, err := port.Open(port.Config{Identity: cluster.Identity, Listen: cluster.Listen, Advertise: cluster.Advertise,
		Now: s.cfg.Clock.Now, Logger: s.cfg.Logger, Dial: s.cfg.dial})
	if err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	n, err := openNode(&s.cfg, s.machine, opened)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return n, nil
}

// stop refuses new requests and ends those under way, hands leadership over, and then closes everything.
func (s *Server) stop(n *node) error {
	left := s.gate.close()
	s.end()
	n.handOver()
	select {
	case <-left:
	case <-s.cfg.Clock.After(stopPatience): // there is no majority: what was asked stays open
	}
	err := n.stop()
	s.uploads.drop()
	s.here.close()
	s.there.close()
	return err
}

// stateReplaced is called when a snapshot has replaced the state while the node runs.
func (s *Server) stateReplaced() {
	s.leading.Store(nil)
	s.anew.raise()
	s.again.raise()
}

// register makes this start of the node known, and again when it was removed or the state replaced by one that does not
// know it. It fails when the node works on other services than the cluster, or these have become another cluster's.
func (s *Server) register(ctx context.Context, n *node) error {
	rebinds := s.cfg.Services.Rebind &&
		(s.cfg.Cluster == nil || slices.Contains(s.cfg.Roles, identity.ControlPlane))
	node := command.RegisterNodePayload{Name: s.cfg.Node, Boot: s.cfg.Boot, Roles: s.cfg.Roles, Version: s.cfg.Version,
		Capacity: s.cfg.Capacity, Log: s.cfg.Services.Log, Rows: s.cfg.Services.Rows, Rebind: rebinds,
		Tiers: s.cfg.Tiers}
	if n.port != nil {
		node.Address = n.port.Address()
	}
	for known := false; ; {
		if admitted, err := s.awaitAdmission(ctx, n); err != nil || !admitted {
			return err
		}
		result, err := s.propose(ctx, s.cfg.IDs.New(), node, nil)
		var view *state.View
		if err == nil {
			view, err = s.fresh(ctx)
		}
		if s.cfg.Services.Rebind && !rebinds && err == nil && fault.CodeOf(result.Err) == fault.OtherServices {
			err = result.Err // a node of the control plane has yet to bind the cluster
		}
		switch {
		case err == nil && result.Err != nil:
			return fmt.Errorf("controlplane: %w", result.Err)
		case err != nil:
			if !s.pause(ctx, time.Second) {
				return nil
			}
			s.cfg.Logger.Warn("this node is not registered yet", "error", err)
			continue
		case !known:
			if claimed, err := s.claim(ctx, view.Cluster().ID); err != nil || !claimed {
				return err
			}
			close(s.ready)
			known = true
		}
		for {
			record, changed := s.machine.fsm.Store().View().WatchNode(s.cfg.Node)
			if record == nil || record.Boot != s.cfg.Boot {
				break
			}
			select {
			case <-ctx.Done():
				return nil
			case <-changed: // it was removed, for one
			case <-s.again:
			}
		}
	}
}

// follow starts a leadership whenever Raft gives it to this node, and ends it when Raft takes it away. When the state is
// replaced under a leadership, that ends and another begins.
func (s *Server) follow(ctx context.Context, changes <-chan bool) error {
	leads, stop := false, func() {}
	defer func() { stop() }()
	failed := make(chan error, 1)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("controlplane: lead: %w", err)
		case leads = <-changes:
			// The newest change alone is told: if it was lost and won again meanwhile, this is another leadership.
		case <-s.anew:
		case work := <-s.interludes:
			stop()
			stop = func() {}
			work()
		}
		stop()
		stop = func() {}
		if leads {
			stop = s.startLeading(ctx, failed)
		}
	}
}

// startLeading begins a leadership; what it returns ends it and waits for it.
func (s *Server) startLeading(ctx context.Context, failed chan<- error) (stop func()) {
	inner, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.lead(inner); err != nil {
			select {
			case failed <- err:
			default: // one reason is enough to stop
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// pause waits; false when ctx ended.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-s.cfg.Clock.After(d):
		return true
	}
}
