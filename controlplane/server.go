// Package controlplane owns the replicated state of the cluster. It is the client through which the
// other roles read and change that state, at whichever node they are. As leader it dispatches what
// runs have to fetch. Raft over the state machine is a node's (internal/node). What commands do is
// the state machine's (internal/fsm), and what to send out next is the dispatcher's
// (internal/dispatch). internal/shards decides who fetches which shard, and nodes speak by
// internal/port. DESIGN.md says what holds at every moment, and why.
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
	"shoal.dev/shoal/controlplane/internal/leadership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// Server is a node: it holds a replica of the state, and with the role controlplane it votes and
// may lead. Before Run its client answers nothing but View.
type Server struct {
	config Config
	node   *node.Node
	ready  chan struct{}
	begun  atomic.Bool

	holder    *leadership.Holder
	proposer  *proposer
	restorer  *restorer
	scheduled *scheduled
	sweeper   *sweeper

	beats atomic.Uint64 // heartbeats sent
	again chan struct{} // holds one when the state was replaced: register again
}

// New makes a node that Run starts. Its error names every setting that is out of range.
func New(config Config) (*Server, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Boot.IsZero() {
		config.Boot = config.IDs.New()
	}
	s := &Server{config: config, node: node.New(config.forNode()), ready: make(chan struct{}),
		again: make(chan struct{}, 1)}
	s.proposer = &proposer{config: &s.config, node: s.node}
	s.holder = leadership.NewHolder(s.forLeadership())
	s.proposer.holder = s.holder
	s.restorer = &restorer{config: &s.config, node: s.node, holder: s.holder, proposer: s.proposer}
	s.scheduled, s.sweeper = newScheduled(s), newSweeper(s)
	return s, nil
}

// Orphans is the removal of link lists that nothing names: background work of the node that leads.
func (s *Server) Orphans() work.Kind { return s.holder.Orphans() }

// Client is the control plane as the other roles see it.
func (s *Server) Client() client.Client { return caller{s} }

// Ready is closed when the node is registered and knows the state: its client serves from then on.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// StateHash is a hash of this node's copy of the state and the Raft index of the newest command in
// it. At one index it is the same on every node. It costs as much as a snapshot; one is made at a
// time.
func (s *Server) StateHash() (index uint64, hash string, err error) { return s.node.Hash() }

// Diverged is nil while nobody has found this node's copy of the state to differ. It stays until
// the process ends.
func (s *Server) Diverged() error { return s.node.Diverged() }

// Refused counts the connections and the calls of other nodes that were refused.
func (s *Server) Refused() (connections, calls uint64) { return s.node.Refused() }

// Run works until ctx ends and then stops in order: the leader's routines, calls under way,
// leadership, Raft with its files, the port. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	if s.begun.Swap(true) {
		return errors.New("controlplane: a server runs once")
	}
	s.restorer.sweep()
	if err := s.node.Start(s.methods(), s.stateReplaced); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	var routines sync.WaitGroup
	routines.Go(func() { s.node.WatchLeaders(inner) })
	var strange, refused error
	routines.Go(func() {
		if refused = s.register(inner); refused != nil {
			cancel()
		}
	})
	routines.Go(func() {
		if strange = s.node.Belong(inner); strange != nil {
			cancel()
		}
	})
	err := s.holder.Run(inner, s.node.LeaderChanges())
	cancel()
	routines.Wait()
	if s.config.Cluster.Gossips() && s.config.Cluster.LeaveOnStop && err == nil && strange == nil &&
		refused == nil {
		s.node.LeaveCluster()
	}
	return errors.Join(err, strange, refused, s.stop())
}

// stop refuses new requests and ends those under way, hands leadership over, and then closes
// everything.
func (s *Server) stop() error {
	err := s.node.Stop()
	s.restorer.uploads.drop()
	s.proposer.close()
	return err
}

// stateReplaced is called when a snapshot has replaced the state while the node runs.
func (s *Server) stateReplaced() {
	s.holder.Anew()
	select {
	case s.again <- struct{}{}:
	default: // it is told
	}
}

// register makes this start of the node known, and again when it was removed or the state replaced
// by one that does not know it. It fails when the node works on other services than the cluster, or
// these have become another cluster's.
func (s *Server) register(ctx context.Context) error {
	rebinds := s.config.Services.Rebind &&
		(s.config.Cluster == nil || slices.Contains(s.config.Roles, identity.ControlPlane))
	self := command.RegisterNodePayload{Name: s.config.Node, Boot: s.config.Boot,
		Roles: s.config.Roles, Version: s.config.Version,
		Capacity: s.config.Capacity, Log: s.config.Services.Log, Rows: s.config.Services.Rows,
		Rebind: rebinds,
		Tiers:  s.config.Tiers, Address: s.node.Address()}
	for known := false; ; {
		if admitted, err := s.node.AwaitAdmission(ctx); err != nil || !admitted {
			return err
		}
		result, err := s.proposer.propose(ctx, s.config.IDs.New(), self, nil)
		var view *state.View
		if err == nil {
			view, err = s.proposer.Fresh(ctx)
		}
		if s.config.Services.Rebind && !rebinds && err == nil &&
			fault.CodeOf(result.Err) == fault.OtherServices {
			err = result.Err // a node of the control plane has yet to bind the cluster
		}
		switch {
		case err == nil && result.Err != nil:
			return fmt.Errorf("controlplane: %w", result.Err)
		case err != nil:
			if !clock.Pause(ctx, s.config.Clock, time.Second) {
				return nil
			}
			s.config.Logger.Warn("this node is not registered yet", "error", err)
			continue
		case !known:
			if claimed, err := s.claim(ctx, view.Cluster().ID); err != nil || !claimed {
				return err
			}
			close(s.ready)
			known = true
		}
		for {
			record, changed := s.node.View().WatchNode(s.config.Node)
			if record == nil || record.Boot != s.config.Boot {
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

// claim marks log and row store as the cluster's, as often as it takes; not claimed: ctx ended. It
// fails when they are another cluster's.
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
