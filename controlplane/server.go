// Package controlplane owns the replicated state of the cluster. It is the client through which the
// other roles read and change that state, on any node. As leader it dispatches what runs have to
// fetch. internal/node runs Raft, internal/fsm applies commands, and internal/dispatch chooses what
// to send next. internal/shards assigns shards to fetchers, and internal/port carries calls between
// nodes. DESIGN.md states the invariants and their reasons.
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
	"shoal.dev/shoal/pkg/wake"
	"shoal.dev/shoal/pkg/work"
)

// Server is a node. It holds a replica of the state. With the role controlplane it votes and may
// lead. Before Run, its client answers only View.
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
	again wake.Signal   // signals that the state was replaced, so register again
}

// New makes a node; Run starts it. Its error names every setting that is out of range.
func New(config Config) (*Server, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Boot.IsZero() {
		config.Boot = config.IDs.New()
	}
	s := &Server{config: config, node: node.New(config.forNode()), ready: make(chan struct{}),
		again: wake.NewSignal()}
	s.proposer = &proposer{config: &s.config, node: s.node}
	s.scheduled, s.sweeper = newScheduled(s), newSweeper(s)
	s.holder = leadership.NewHolder(s.forLeadership())
	s.proposer.holder = s.holder
	s.restorer = &restorer{config: &s.config, node: s.node, holder: s.holder, proposer: s.proposer}
	return s, nil
}

// Orphans removes link lists that nothing names, as background work of the leader.
func (s *Server) Orphans() work.Kind { return s.holder.Orphans() }

// Client returns the control plane as the other roles see it.
func (s *Server) Client() client.Client { return caller{s} }

// Ready is closed when the node is registered and has the state. Its client serves from then on.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// StateHash returns a hash of this node's copy of the state, and the Raft index of its newest
// command. At one index it is the same on every node. It costs as much as a snapshot; only one runs
// at a time.
func (s *Server) StateHash() (index uint64, hash string, err error) { return s.node.Hash() }

// Diverged returns nil until somebody finds that this node's copy of the state differs. It then
// stays set until the process ends.
func (s *Server) Diverged() error { return s.node.Diverged() }

// Refused counts the refused connections and calls of other nodes.
func (s *Server) Refused() (connections, calls uint64) { return s.node.Refused() }

// Run works until ctx ends. It then stops in order: the leader's routines, calls under way,
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

// stop refuses new requests, ends those under way, hands leadership over, and closes everything.
func (s *Server) stop() error {
	err := s.node.Stop()
	s.restorer.uploads.drop()
	s.proposer.close()
	return err
}

// stateReplaced is called when a snapshot has replaced the state while the node runs.
func (s *Server) stateReplaced() {
	s.holder.Anew()
	s.again.Raise()
}

// register registers this start of the node. It registers again after a removal, or after a
// replaced state that does not know the node. It fails when the node and the cluster use different
// services, or when the services now belong to another cluster.
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
			err = result.Err // a node of the control plane has yet to rebind the cluster
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
			case <-changed: // the node was removed, for example
			case <-s.again:
			}
		}
	}
}

// claim marks log and row store as the cluster's, and retries until it succeeds. claimed is false
// when ctx ended. It fails when they are another cluster's.
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
