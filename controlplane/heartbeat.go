package controlplane

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// beat is a heartbeat on its way to the leader. Order counts up over the beats of one start of a node, so that one that
// was given up and arrives late is known.
type beat struct {
	Heartbeat client.Heartbeat `cbor:"1,keyasint"`
	Order     uint64           `cbor:"2,keyasint"`
}

// heartbeat has the leader answer a heartbeat. Each attempt is a beat of its own.
func (s *Server) heartbeat(ctx context.Context, heartbeat client.Heartbeat) (client.Leases, error) {
	var leases client.Leases
	err := s.retry(ctx, func() (err error) {
		next := beat{Heartbeat: heartbeat, Order: s.beats.Add(1)}
		leases, err = s.heartbeatHere(ctx, next)
		if errors.Is(err, raft.ErrNotLeader) {
			leases = client.Leases{}
			err = s.forward(ctx, methodHeartbeat, next, &leases)
		}
		return err
	})
	return leases, err
}

// heartbeatHere answers a heartbeat, which the leader alone does. It is one attempt.
func (s *Server) heartbeatHere(ctx context.Context, b beat) (client.Leases, error) {
	// After the beat arrived: a leader deposed meanwhile must not lend what it lost.
	index, err := s.confirmHere(ctx)
	if err == nil {
		err = s.node.WaitFor(ctx, index)
	}
	if err != nil {
		return client.Leases{}, err
	}
	l := s.leading.Load()
	if l == nil {
		return client.Leases{}, raft.ErrNotLeader
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	leases, err := l.answer(ctx, b)
	if l.ctx.Err() != nil {
		return client.Leases{}, raft.ErrLeadershipLost // the next leader answers
	}
	return leases, err
}

// answer answers the beats of one node one after the other, in their order.
func (l *leadership) answer(ctx context.Context, b beat) (client.Leases, error) {
	none, name := client.Leases{}, b.Heartbeat.Node
	if l.view().Node(name) == nil {
		return none, fault.New(fault.Unavailable, "node %q is not registered", name)
	}
	leave, err := l.turns.enter(ctx, name)
	if err != nil {
		return none, err
	}
	defer leave()
	if node := l.view().Node(name); node == nil || node.Boot != b.Heartbeat.Boot {
		return none, fault.New(fault.Unavailable, "this start of node %q is not registered", name)
	}
	if !l.turns.advance(name, b) {
		return none, errors.New("controlplane: a later heartbeat of this node was answered")
	}
	return l.heartbeat(b.Heartbeat)
}

// turns lets one beat of each registered node in at a time.
type turns struct {
	mu    sync.Mutex
	nodes map[string]*turn
}

type turn struct {
	free   chan struct{} // holds one while nobody is in
	boot   ids.ID
	newest uint64
}

func (t *turns) of(node string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nodes == nil {
		t.nodes = map[string]*turn{}
	}
	if t.nodes[node] == nil {
		t.nodes[node] = &turn{free: make(chan struct{}, 1)}
		t.nodes[node].free <- struct{}{}
	}
	return t.nodes[node]
}

func (t *turns) enter(ctx context.Context, node string) (leave func(), err error) {
	mine := t.of(node)
	select {
	case <-mine.free:
		return func() { mine.free <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// advance says whether a beat is newer than those before, whose turn it is.
func (t *turns) advance(node string, b beat) bool {
	mine := t.of(node)
	if mine.boot == b.Heartbeat.Boot && b.Order <= mine.newest {
		return false
	}
	mine.boot, mine.newest = b.Heartbeat.Boot, b.Order
	return true
}
