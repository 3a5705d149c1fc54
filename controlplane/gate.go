package controlplane

import (
	"context"
	"errors"
	"sync"
)

var (
	errNotStarted = errors.New("controlplane: not started yet")
	errStopping   = errors.New("controlplane: this node is stopping")
)

// gate lets requests reach Raft while it runs: a request that Raft takes while it shuts down would wait for ever.
type gate struct {
	mu     sync.Mutex
	raft   *node
	over   bool
	inside int
	empty  chan struct{} // closed when it is over and nobody is inside
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// open lets requests in.
func (g *gate) open(n *node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.raft = n
}

// close lets nobody in any more. The channel is closed when all who were inside have left.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.over = true
		if g.inside == 0 {
			close(g.empty)
		}
	}
	return g.empty
}

// enter is Raft, until leave.
func (g *gate) enter() (*node, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.over:
		return nil, errStopping
	case g.raft == nil:
		return nil, errNotStarted
	}
	g.inside++
	return g.raft, nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.over && g.inside == 0 {
		close(g.empty)
	}
}

// askRaft asks Raft something that may take long, and waits no longer than ctx: what Raft was asked it may do all the
// same.
func askRaft[T any](ctx context.Context, s *Server, ask func(*node) (T, error)) (T, error) {
	var none T
	n, err := s.gate.enter()
	if err != nil {
		return none, err
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() { // Raft answers, or the shutdown makes it
		defer s.gate.leave()
		value, err := ask(n)
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-s.life.Done():
		return none, errStopping
	}
}
