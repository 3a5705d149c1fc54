package leadership

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Beat is a heartbeat on its way to the leader. Order counts a start's beats up, so that an
// abandoned beat that arrives late is recognized.
type Beat struct {
	Heartbeat client.Heartbeat `cbor:"1,keyasint"`
	Order     uint64           `cbor:"2,keyasint"`
}

// Answer records a fetcher's heartbeat and answers it. The beats of one node are answered one at a
// time, in order.
func (l *Leadership) Answer(ctx context.Context, b Beat) (client.Leases, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	leases, err := l.answer(ctx, b)
	if l.ctx.Err() != nil {
		return client.Leases{}, raft.ErrLeadershipLost // the next leader answers
	}
	return leases, err
}

func (l *Leadership) answer(ctx context.Context, b Beat) (client.Leases, error) {
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

// turns admits one beat of each registered node at a time.
type turns struct {
	mu    sync.Mutex
	nodes map[string]*turn
}

type turn struct {
	free   chan struct{} // holds one token while nobody is in
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

// advance says whether a beat is newer than the node's earlier ones, and records it.
func (t *turns) advance(node string, b Beat) bool {
	mine := t.of(node)
	if mine.boot == b.Heartbeat.Boot && b.Order <= mine.newest {
		return false
	}
	mine.boot, mine.newest = b.Heartbeat.Boot, b.Order
	return true
}

// heartbeat records a fetcher's heartbeat and answers it. It first makes the changes of owners that
// are now due, so that a starting fetcher gets its shards with the first answer.
func (l *Leadership) heartbeat(beat client.Heartbeat) (client.Leases, error) {
	// No other plan may run before the answer is made: it could give away shards that this answer
	// lets the node hold.
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
		l.publishNow.Raise()
		l.markNow.Raise()
	}
	view := l.view()
	leases := l.tracker.Answer(view.Node(beat.Node), view.Shards())
	for i := range leases.Hold {
		leases.Hold[i].Newest = l.dispatcher.Newest(int(leases.Hold[i].Shard))
	}
	return leases, nil
}
