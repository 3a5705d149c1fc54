package shards

import (
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/state"
)

// rate measures pages a second over about the last heartbeats.
type rate struct {
	at        time.Time
	pages     uint64
	perSecond float64
}

// minRateSpan is the shortest span of a rate: heartbeats in quick succession make no new one.
const minRateSpan = time.Second

func (r *rate) note(now time.Time, pages uint64) {
	span := now.Sub(r.at)
	if span < minRateSpan {
		return
	}
	r.perSecond = float64(pages-min(pages, r.pages)) / span.Seconds()
	r.at, r.pages = now, pages
}

// Describe adds what heartbeats and the assignment say of a node. It leaves State empty if they do
// not tell whether the node lives.
func (t *Tracker) Describe(node *state.Node, shards []*state.Shard, into *client.NodeStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, now := t.of(node), t.config.Now()
	departing := departs(node, m)
	for _, s := range shards {
		if s.Owner != node.Name {
			continue
		}
		into.Shards++
		if s.Next != "" || departing {
			into.Moving++
		}
	}
	into.HeardMillis = -1
	if m != nil {
		into.HeardMillis = now.Sub(m.heard).Milliseconds()
		into.Open, into.Unread = m.beat.Open, m.beat.Unread
		into.PagesPerSecond = m.rate.perSecond
	}
	into.State = t.stateOf(node, m, into.Shards > 0 || into.Open > 0, now)
}

// stateOf returns a node's state. busy says that the node owns a shard or has tasks open.
func (t *Tracker) stateOf(node *state.Node, m *member, busy bool, now time.Time) client.NodeState {
	heard := t.fresh(m, now)
	switch {
	case m != nil && m.beat.Leaving && !busy:
		return client.NodeLeft
	case heard && busy && departs(node, m):
		return client.NodeDraining
	case node.Draining && !busy && (heard || node.Capacity == 0):
		return client.NodeDrained
	case heard:
		return client.NodeAlive
	case m != nil, node.Capacity > 0 && now.Sub(t.started) >= t.config.Lease:
		return client.NodeFailed
	}
	return ""
}
