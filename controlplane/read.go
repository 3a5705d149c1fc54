package controlplane

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/state"
)

// fresh is a linearizable read: a view of everything that was applied anywhere before the call.
func (s *Server) fresh(ctx context.Context) (*state.View, error) {
	var index uint64
	err := s.retry(ctx, func(n *node) (err error) {
		if n.State() != raft.Leader {
			if _, leader := n.LeaderWithID(); leader == "" {
				return raft.ErrNotLeader
			}
			index, err = s.forward.readIndex(ctx)
			return err
		}
		index, err = s.confirmer.confirm(ctx, func() (uint64, error) { return s.confirmedIndex(n) })
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.machine.waitFor(ctx, index); err != nil {
		return nil, errNoLeader
	}
	return s.machine.fsm.Store().View(), nil
}

// confirmedIndex is an index at or above that of every command applied anywhere before the call. The commit index is
// that in the term in which this node led all along, once an entry of that term is committed, which a leadership begins
// with.
func (s *Server) confirmedIndex(n *node) (uint64, error) {
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
	mu   sync.Mutex
	next *confirmation // not started yet
	turn sync.Mutex    // held while one is under way
}

type confirmation struct {
	done  chan struct{}
	index uint64
	err   error
}

func (c *confirmer) confirm(ctx context.Context, ask func() (uint64, error)) (uint64, error) {
	c.mu.Lock()
	mine, first := c.next, false
	if mine == nil {
		mine, first = &confirmation{done: make(chan struct{})}, true
		c.next = mine
	}
	c.mu.Unlock()
	if !first {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-mine.done:
			return mine.index, mine.err
		}
	}
	c.turn.Lock()
	c.mu.Lock()
	c.next = nil // it starts now
	c.mu.Unlock()
	mine.index, mine.err = ask()
	c.turn.Unlock()
	close(mine.done)
	return mine.index, mine.err
}
