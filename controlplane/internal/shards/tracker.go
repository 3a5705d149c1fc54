// Package shards owns who fetches which shard: where each shard belongs, when it may be given to
// another node, and what a heartbeat answers. It is the leader's volatile memory and pure logic:
// owners and epochs are replicated state, which it reads and proposes changes for. It sends nothing
// and keeps no clock of its own.
//
// The rule that everything here serves: no two fetchers work one shard at once. A fetcher's side of
// it:
//   - it sends one heartbeat at a time; of a call that it gave up it takes no answer, and the call
//     does not arrive after a later one;
//   - from an answer on it begins pages of the shards in Hold alone, and finishes the begun ones of
//     those in Release; what is new in Hold it opens before the next heartbeat, and a shard stays
//     in Holding while a page of it is begun and not yet in the log;
//   - it starts a request only within For of the moment at which it sent the heartbeat, by its
//     monotonic clock, and ends what is under way when that is over: within EndWithin at most, in
//     which a process that is frozen asks nothing;
//   - a process that stops says so (Leaving), and lets go of all its shards as it does of those in
//     Release.
//
// The leader's side: an owner is replaced only when its heartbeat shows that it does not hold the
// shard, which is a planned move. Or nothing was heard of it for a lease and EndWithin. A new
// leader counts that from its own start, since its predecessor may have heard the owner just
// before. One that was away itself counts from when it is back: the owners could not reach it, and
// come again. Meanwhile the others come often, so as to take over at once. A process that registers
// again under its node's name has died before. One process at a time can lock the directory of its
// Raft log. So a restarted node has its shards at once.
//
// A node that drains or stops lets go of everything at once, and of a shard that nobody can take
// nobody is the owner. When shares change otherwise (a node joins, or weighs more than before), an
// eighth of the shards is on the move at a time. So the others go on being fetched. Nodes whose
// disks are short have shards only while no other one can.
package shards

import (
	"slices"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Config sets the times. All are above 0.
type Config struct {
	Lease time.Duration // for how long a heartbeat lets a fetcher work
	// EndWithin is how long after a lease's end a fetcher may need until it has ended its requests.
	// It may shrink in time.
	EndWithin func() time.Duration
	Now       func() time.Time
}

// driftShare is the part of a wait that is added for clocks that do not run alike. 1/32 covers two
// clocks that are 1.5% off in opposite directions.
const driftShare = 32

// movingShare is the part of the shards that may be on the move from owners that could keep them.
const movingShare = 8

// Tracker is what one leadership knows of the fetchers. It is safe for concurrent use.
type Tracker struct {
	config  Config
	started time.Time

	mu      sync.Mutex
	members map[string]*member
	planned time.Time // the last Plan
	attends time.Time // since then this leader listens without a break
}

// member is what was heard of a node, and told to it, by this leader.
type member struct {
	boot    ids.ID
	heard   time.Time
	beat    client.Heartbeat  // the newest
	holding map[uint16]uint64 // shard → epoch, by the newest heartbeat
	told    map[uint16]bool   // Hold of the answer to that heartbeat
	rate    rate
}

// released says that the node does not hold a shard, and was not told to since it said so.
func (m *member) released(shard uint16) bool {
	_, holds := m.holding[shard]
	return !holds && !m.told[shard]
}

// New begins a leadership's memory: nobody has been heard yet.
func New(config Config) *Tracker {
	now := config.Now()
	return &Tracker{config: config, started: now, planned: now, attends: now,
		members: map[string]*member{}}
}

// wait is how long after a sign of life a fetcher may still be at work.
func (t *Tracker) wait() time.Duration {
	w := t.config.Lease + t.config.EndWithin()
	return w + w/driftShare
}

// Heard takes in a heartbeat of the node's registered boot. It returns the shards that the node
// holds since the last one, and all that it holds when it was silent or about to leave.
func (t *Tracker) Heard(beat client.Heartbeat) []uint16 {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.config.Now()
	m := t.members[beat.Node]
	if m == nil || m.boot != beat.Boot {
		m = &member{boot: beat.Boot, rate: rate{at: now, pages: beat.Pages}}
		t.members[beat.Node] = m
	}
	held := m.holding
	if !t.fresh(m, now) || m.beat.Leaving { // Held was false
		held = nil
	}
	m.heard, m.beat = now, beat
	m.rate.note(now, beat.Pages)
	m.holding = make(map[uint16]uint64, len(beat.Holding))
	var taken []uint16
	for _, holding := range beat.Holding {
		m.holding[holding.Shard] = holding.Epoch
		if epoch, known := held[holding.Shard]; !known || epoch != holding.Epoch {
			taken = append(taken, holding.Shard)
		}
	}
	m.told = nil
	return taken
}

// of is what was heard of the node's newest start; nil when nothing was.
func (t *Tracker) of(node *state.Node) *member {
	if node == nil {
		return nil
	}
	if m := t.members[node.Name]; m != nil && m.boot == node.Boot {
		return m
	}
	return nil
}

// fresh says that the node was heard within a lease.
func (t *Tracker) fresh(m *member, now time.Time) bool {
	return m != nil && now.Sub(m.heard) < t.config.Lease
}

// departs says that a node is to have no shard.
func departs(node *state.Node, m *member) bool {
	return node != nil && node.Draining || m != nil && m.beat.Leaving
}

// Plan returns the changes of owners that are due. It is called several times a lease.
func (t *Tracker) Plan(nodes []*state.Node, shards []*state.Shard) []command.ShardChange {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.config.Now()
	if now.Sub(t.planned) >= t.config.Lease {
		t.attends = now
	}
	t.planned = now
	p := plan{t: t, now: now, nodes: make(map[string]*state.Node, len(nodes)),
		stays: map[string]bool{}}
	var short []Candidate
	for _, n := range nodes {
		p.nodes[n.Name] = n
		m := t.of(n)
		if !t.fresh(m, p.now) || departs(n, m) {
			continue
		}
		p.stays[n.Name] = true
		if candidate := (Candidate{Node: n.Name, Weight: n.Capacity}); m.beat.Short {
			short = append(short, candidate)
		} else {
			p.live = append(p.live, candidate)
		}
	}
	if !slices.ContainsFunc(p.live, func(c Candidate) bool { return c.Weight > 0 }) {
		p.live = append(p.live, short...) // better one without room than none
	}
	p.room = max(1, len(shards)/movingShare)
	for _, s := range shards {
		if s.Next != "" && p.stays[s.Owner] {
			p.room--
		}
	}
	var changes []command.ShardChange
	to := shareOut(shards, bounded(p.live))
	for i, s := range shards {
		change := p.next(s, to[i])
		if change.Owner != s.Owner || change.Next != s.Next {
			changes = append(changes, change)
		}
	}
	return changes
}

// plan is what a planning goes by.
type plan struct {
	t     *Tracker
	now   time.Time
	nodes map[string]*state.Node
	live  []Candidate
	stays map[string]bool // the candidates
	room  int             // for moves from owners that stay
}

// next is what becomes of a shard that is to belong to best.
func (p *plan) next(s *state.Shard, best string) command.ShardChange {
	change := command.ShardChange{Number: s.Number, Owner: s.Owner, Epoch: s.Epoch}
	owner := p.nodes[s.Owner]
	departing := departs(owner, p.t.of(owner))
	switch {
	case best == s.Owner:
	case s.Owner == "":
		change.Owner = best
	case p.t.letGo(owner, s) && (best != "" || departing):
		change.Owner, change.Planned = best, true
	case p.t.silent(s.Owner, p.now) && best != "":
		change.Owner = best
	case departing || p.stays[s.Owner] && s.Next != "":
		change.Next = best
	case p.stays[s.Owner] && p.room > 0:
		p.room--
		change.Next = best
	default: // as soon as more is known of the owner
		change.Next = s.Next
	}
	return change
}

// letGo says that a shard's owner has said that it does not work it.
func (t *Tracker) letGo(owner *state.Node, s *state.Shard) bool {
	m := t.of(owner)
	return m != nil && m.released(s.Number)
}

// silent says that nothing was heard of an owner for so long that it cannot be at work. Its record
// may have been removed while it was.
func (t *Tracker) silent(name string, now time.Time) bool {
	return t.silence(name, now) >= t.wait()
}

// Due returns after how long an owner that is not heard can be replaced, at most a quarter of a
// lease. Plan is called at least so often.
func (t *Tracker) Due(nodes []*state.Node, shards []*state.Shard) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, due := t.config.Now(), t.config.Lease/4
	owners := make(map[string]*state.Node, len(nodes))
	for _, n := range nodes {
		owners[n.Name] = n
	}
	for _, s := range shards {
		if left := t.wait() - t.silence(s.Owner, now); s.Owner != "" && left > 0 {
			due = min(due, left)
		}
	}
	return due
}

// silence is for how long an owner has not been heard, although it could have been. A start of it
// before counts: who starts anew is to have its shards with its first heartbeat.
func (t *Tracker) silence(name string, now time.Time) time.Duration {
	since := t.attends // an earlier leader may have heard it
	if m := t.members[name]; m != nil && m.heard.After(since) {
		since = m.heard
	}
	return now.Sub(since)
}

// Answer is what a heartbeat that was just heard is answered.
func (t *Tracker) Answer(node *state.Node, shards []*state.Shard) client.Leases {
	t.mu.Lock()
	defer t.mu.Unlock()
	leases := client.Leases{For: t.config.Lease}
	m := t.of(node)
	if m == nil {
		return leases
	}
	m.told = map[uint16]bool{}
	now := t.config.Now()
	for _, s := range shards {
		if s.Owner != node.Name {
			// before the next regular heartbeat
			freed := s.Owner != "" && t.wait()-t.silence(s.Owner, now) <= t.config.Lease/2
			leases.Soon = leases.Soon || s.Next == node.Name || freed
			continue
		}
		holding := client.ShardEpoch{Shard: s.Number, Epoch: s.Epoch}
		if s.Next == "" && !departs(node, m) {
			leases.Hold = append(leases.Hold, holding)
			m.told[s.Number] = true
		} else if epoch, holds := m.holding[s.Number]; holds && epoch == s.Epoch {
			leases.Release = append(leases.Release, holding)
		}
	}
	return leases
}

// Held says whether a shard's owner takes its tasks: it said so within a lease, and is not to hand
// it over.
func (t *Tracker) Held(owner *state.Node, s *state.Shard) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of(owner)
	if !t.fresh(m, t.config.Now()) || s.Next != "" || departs(owner, m) {
		return false
	}
	epoch, holds := m.holding[s.Number]
	return holds && epoch == s.Epoch
}
