// Package controlplane owns the replicated state of the cluster: it runs Raft over the state machine, is the client
// through which the other roles read and change that state, and, as leader, dispatches what runs have to fetch. What
// commands do is the state machine's (internal/fsm), what to send out next the dispatcher's (internal/dispatch), who
// fetches which shard is decided by internal/shards. DESIGN.md says what holds at every moment, and why.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
)

// Server is a control-plane node. Before Run its client answers nothing but View.
type Server struct {
	cfg     Config
	machine *machine
	forward forwarder
	// presence is what the cluster's members know of a node's life.
	presence func(node string) client.NodeState
	ready    chan struct{}
	begun    atomic.Bool

	// gate is held for reading while Raft is asked for something, and for writing when raft is set and taken away: a
	// request under way at a shutdown would wait for ever.
	gate sync.RWMutex
	raft *node
	over bool

	leading   atomic.Pointer[leadership]
	confirmer confirmer
	metrics   *metrics
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
	s := &Server{cfg: cfg, machine: &machine{fsm: fsm.New(), point: cfg.Point, metrics: m}, forward: nowhere{},
		presence: onlyThis(cfg.Node), ready: make(chan struct{}), metrics: m}
	s.measure(cfg.Metrics)
	return s, nil
}

// Client is the control plane as the other roles see it.
func (s *Server) Client() client.Client { return caller{s} }

// Ready is closed when the node is registered and knows the state: its client serves from then on.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run works until ctx ends and then stops in order: the leader's routines, calls under way, Raft with its files. A
// server runs once.
func (s *Server) Run(ctx context.Context) error {
	if s.begun.Swap(true) {
		return errors.New("controlplane: a server runs once")
	}
	raft, err := openNode(&s.cfg, s.machine)
	if err != nil {
		s.close()
		return err
	}
	raft.RegisterObserver(s.metrics.leaderChanges())
	s.gate.Lock()
	s.raft = raft
	s.gate.Unlock()

	inner, cancel := context.WithCancel(ctx)
	var routines sync.WaitGroup
	routines.Go(func() { s.register(inner) })
	err = s.follow(inner, raft.LeaderCh())
	cancel()
	routines.Wait()
	s.close()
	return errors.Join(err, raft.stop())
}

// close lets requests under way end and refuses all later ones.
func (s *Server) close() {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.over = true
}

// register makes this start of the node known.
func (s *Server) register(ctx context.Context) {
	node := command.RegisterNodePayload{Name: s.cfg.Node, Boot: s.cfg.Boot, Roles: s.cfg.Roles, Version: s.cfg.Version,
		Capacity: s.cfg.Capacity}
	for {
		_, err := s.propose(ctx, s.cfg.IDs.New(), node, nil)
		if err == nil {
			_, err = s.fresh(ctx)
		}
		if err == nil {
			close(s.ready)
			return
		}
		if !s.pause(ctx, time.Second) {
			return
		}
	}
}

// follow starts a leadership whenever Raft gives it to this node, and ends it when Raft takes it away.
func (s *Server) follow(ctx context.Context, changes <-chan bool) error {
	stop := func() {}
	defer func() { stop() }()
	failed := make(chan error, 1)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("controlplane: lead: %w", err)
		case leads := <-changes:
			// The newest change alone is told: if it was lost and won again meanwhile, this is another leadership.
			stop()
			stop = func() {}
			if leads {
				stop = s.startLeading(ctx, failed)
			}
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
