package controlplane

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/state"
)

// fresh is a linearizable read: a view of everything that was applied anywhere before the call. Where there is one node for
// ever, that is what it has applied itself: it need not wait for what is committed and was told nobody.
func (s *Server) fresh(ctx context.Context) (*state.View, error) {
	var view *state.View
	err := s.retry(ctx, func() error {
		index, err := s.confirmHere(ctx)
		if errors.Is(err, raft.ErrNotLeader) {
			index, err = s.confirmThere(ctx)
		}
		if err == nil && !s.node.Single() {
			err = s.node.WaitFor(ctx, index)
		}
		if err == nil {
			view = s.node.View()
		}
		return err
	})
	return view, err
}

// confirmHere is an index that the leader, which this node must be, has confirmed since the call.
func (s *Server) confirmHere(ctx context.Context) (uint64, error) {
	if !s.node.Leads() {
		return 0, raft.ErrNotLeader
	}
	if index, ok := s.confirmedAlone(); ok {
		return index, nil
	}
	return s.here.confirm(ctx, func() (uint64, error) { return node.Ask(s.node.Life(), s.node, s.confirmedIndex) })
}

// confirmedAlone is confirmedIndex of the only voter, which is all the majority there is: while it is that and leads, nobody
// else has been elected. Raft would say the same, behind the entries that it is writing to disk. The order of the looks
// matters: whoever becomes a voter does so on the routine of Raft that would vote for it.
func (s *Server) confirmedAlone() (index uint64, ok bool) {
	n, err := s.node.Enter()
	if err != nil {
		return 0, false
	}
	defer s.node.Leave()
	l := s.leading.Load()
	index = n.CommitIndex()
	return index, l != nil && n.Alone() && n.State() == raft.Leader && n.CurrentTerm() == l.term
}

// confirmThere is an index that the leader, which is another node, has confirmed since the call.
func (s *Server) confirmThere(ctx context.Context) (uint64, error) {
	return s.there.confirm(ctx, func() (uint64, error) {
		var at position
		err := s.forward(s.node.Life(), methodConfirm, node.Nothing{}, &at)
		return at.Index, err
	})
}

// confirmedIndex is an index at or above that of every command applied anywhere before the call. The commit index is
// that in the term in which this node led all along, once an entry of that term is committed, which a leadership begins
// with.
func (s *Server) confirmedIndex(n *node.Raft) (uint64, error) {
	l := s.leading.Load()
	if l == nil || n.CurrentTerm() != l.term {
		return 0, raft.ErrNotLeader
	}
	index := n.CommitIndex()
	if err := n.VerifyLeader().Error(); err != nil {
		return 0, err
	}
	if n.CurrentTerm() != l.term {
		return 0, raft.ErrNotLeader
	}
	return index, nil
}

// confirmer lets requests share confirmations. A request joins only one that starts after the request arrived.
type confirmer struct {
	mu      sync.Mutex
	next    *confirmation // not started yet
	running bool
	closed  bool
	work    sync.WaitGroup
}

// close refuses what is asked for from now on, and waits for what is under way.
func (c *confirmer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.work.Wait()
}

type confirmation struct {
	done  chan struct{}
	ask   func() (uint64, error) // of the first request that joined; no request's end ends it
	index uint64
	err   error
}

func (c *confirmer) confirm(ctx context.Context, ask func() (uint64, error)) (uint64, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return 0, raft.ErrRaftShutdown
	}
	if c.next == nil {
		c.next = &confirmation{done: make(chan struct{}), ask: ask}
	}
	mine := c.next
	if !c.running {
		c.running = true
		c.work.Go(c.run)
	}
	c.mu.Unlock()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-mine.done:
		return mine.index, mine.err
	}
}

// run makes confirmations, one at a time, as long as some are wanted.
func (c *confirmer) run() {
	for {
		c.mu.Lock()
		now := c.next
		c.next = nil // it starts now
		c.running = now != nil
		c.mu.Unlock()
		if now == nil {
			return
		}
		now.index, now.err = now.ask()
		close(now.done)
	}
}
