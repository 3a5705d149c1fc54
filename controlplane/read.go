package controlplane

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/state"
)

// Fresh implements leadership.Proposer. It is a linearizable read: the view holds everything that
// was applied anywhere before the call. A node that is always alone returns what it has applied. It
// need not wait for entries that are committed and not yet acknowledged to anyone.
func (p *proposer) Fresh(ctx context.Context) (*state.View, error) {
	var view *state.View
	err := p.retry(ctx, func() error {
		index, err := p.confirmHere(ctx)
		if errors.Is(err, raft.ErrNotLeader) {
			index, err = p.confirmThere(ctx)
		}
		if err == nil && !p.node.Single() {
			err = p.node.WaitFor(ctx, index)
		}
		if err == nil {
			view = p.node.View()
		}
		return err
	})
	return view, err
}

// confirmHere returns an index that this node, as the leader, has confirmed since the call.
func (p *proposer) confirmHere(ctx context.Context) (uint64, error) {
	if !p.node.Leads() {
		return 0, raft.ErrNotLeader
	}
	if index, ok := p.confirmedAlone(); ok {
		return index, nil
	}
	return p.here.confirm(ctx,
		func() (uint64, error) { return node.Ask(p.node.Life(), p.node, p.confirmedIndex) })
}

// Confirm implements leadership.Proposer.
func (p *proposer) Confirm(ctx context.Context) error {
	_, err := p.confirmHere(ctx)
	return err
}

// confirmedAlone is confirmedIndex for the only voter. While it leads, nobody else can have been
// elected. VerifyLeader would say the same, but it queues behind entries being written to disk. The
// order of the checks matters: a new voter is added on the Raft routine that would vote for it.
func (p *proposer) confirmedAlone() (index uint64, ok bool) {
	n, err := p.node.Enter()
	if err != nil {
		return 0, false
	}
	defer p.node.Leave()
	l := p.holder.Current()
	index = n.CommitIndex()
	return index, l != nil && n.Alone() && n.State() == raft.Leader && n.CurrentTerm() == l.Term()
}

// confirmThere returns an index that the leader, another node, has confirmed since the call.
func (p *proposer) confirmThere(ctx context.Context) (uint64, error) {
	return p.there.confirm(ctx, func() (uint64, error) {
		var at position
		err := p.forward(p.node.Life(), methodConfirm, node.Nothing{}, &at)
		return at.Index, err
	})
}

// confirmedIndex returns an index at or above that of every command applied anywhere before the
// call. This node led throughout one term. The commit index is valid because a leadership begins
// only once an entry of its term is committed.
func (p *proposer) confirmedIndex(n *node.Raft) (uint64, error) {
	l := p.holder.Current()
	if l == nil || n.CurrentTerm() != l.Term() {
		return 0, raft.ErrNotLeader
	}
	index := n.CommitIndex()
	if err := n.VerifyLeader().Error(); err != nil {
		return 0, err
	}
	if n.CurrentTerm() != l.Term() {
		return 0, raft.ErrNotLeader
	}
	return index, nil
}

// confirmer lets requests share confirmations. A request joins only one that starts after the
// request arrived.
type confirmer struct {
	mu      sync.Mutex
	next    *confirmation // not started yet
	running bool
	closed  bool
	work    sync.WaitGroup
}

// close refuses new requests, and waits for those under way.
func (c *confirmer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.work.Wait()
}

type confirmation struct {
	done  chan struct{}
	ask   func() (uint64, error) // of the first request that joined; it outlives every request
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

// run makes confirmations one at a time while requests wait for one.
func (c *confirmer) run() {
	for {
		c.mu.Lock()
		now := c.next
		c.next = nil // requests from now on join the next one
		c.running = now != nil
		c.mu.Unlock()
		if now == nil {
			return
		}
		now.index, now.err = now.ask()
		close(now.done)
	}
}
