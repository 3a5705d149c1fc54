// Package shards owns who fetches which shard: where each shard belongs, when it may be given to another node, and what a
// heartbeat answers. It is the leader's volatile memory and pure logic: owners and epochs are replicated state, which it
// reads and proposes changes for. It sends nothing and keeps no clock of its own.
//
// The rule that everything here serves: no two fetchers work one shard at once. A fetcher's side of it:
//   - it sends one heartbeat at a time; of a call that it gave up it takes no answer, and the call does not arrive after
//     a later one;
//   - from an answer on it takes work of the shards in Hold alone, and goes on with what it has open of those in Release;
//     what is new in Hold it opens before the next heartbeat, and a shard stays in Holding while anything of it is open;
//   - it starts a request only within For of the moment at which it sent the heartbeat, by its monotonic clock; a request
//     ends within the fetch deadline.
//
// The leader's side: an owner is replaced only when its heartbeat shows that it does not hold the shard, or when
// nothing was heard of it for a lease and a fetch deadline. A new leader counts that from its own start, since its
// predecessor may have heard the owner just before. A process that registers again under its node's name has died
// before: the directory of its Raft log is locked by one process at a time. So a restarted node has its shards at once.
package shards

import (
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
	Fetch time.Duration // total deadline of one fetch
	Now   func() time.Time
}

// driftShare is the part of a wait that is added for clocks that do not run alike: 1/32 covers two clocks that are 1.5%
// off in opposite directions.
const driftShare = 32

// Tracker is what one leadership knows of the fetchers. It is safe for concurrent use.
type Tracker struct {
	cfg     Config
	started time.Time

	mu      sync.Mutex
	members map[string]*member
}

// member is what was heard of a node, and told to it, by this leader.
type member struct {
	boot    ids.ID
	heard   time.Time
	holding map[uint16]uint64 // shard → epoch, by the newest heartbeat
	told    map[uint16]bool   // Hold of the answer to that heartbeat
}

// released says that the node does not hold a shard, and was not told to since it said so.
func (m *member) released(shard uint16) bool {
	_, holds := m.holding[shard]
	return !holds && !m.told[shard]
}

// New begins a leadership's memory: nobody has been heard yet.
func New(cfg Config) *Tracker {
	return &Tracker{cfg: cfg, started: cfg.Now(), members: map[string]*member{}}
}

// wait is how long after a sign of life a fetcher may still be at work.
func (t *Tracker) wait() time.Duration {
	w := t.cfg.Lease + t.cfg.Fetch
	return w + w/driftShare
}

// Heard takes in a heartbeat of the node's registered boot, and returns the shards that it holds since the last one.
func (t *Tracker) Heard(beat client.Heartbeat) []uint16 {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.members[beat.Node]
	if m == nil || m.boot != beat.Boot {
		m = &member{boot: beat.Boot}
		t.members[beat.Node] = m
	}
	held := m.holding
	m.heard = t.cfg.Now()
	m.holding = make(map[uint16]uint64, len(beat.Holding))
	var taken []uint16
	for _, tenure := range beat.Holding {
		m.holding[tenure.Shard] = tenure.Epoch
		if epoch, known := held[tenure.Shard]; !known || epoch != tenure.Epoch {
			taken = append(taken, tenure.Shard)
		}
	}
	m.told = nil
	return taken
}

// Plan returns the changes of owners that are due.
func (t *Tracker) Plan(nodes []*state.Node, shards []*state.Shard) []command.ShardChange {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.cfg.Now()
	byName := make(map[string]*state.Node, len(nodes))
	var live []Candidate
	for _, n := range nodes {
		byName[n.Name] = n
		if m := t.members[n.Name]; m != nil && m.boot == n.Boot && !n.Draining && now.Sub(m.heard) < t.cfg.Lease {
			live = append(live, Candidate{Node: n.Name, Weight: n.Capacity})
		}
	}
	var changes []command.ShardChange
	for _, s := range shards {
		best := Best(s.Number, live)
		change := command.ShardChange{Number: s.Number, Owner: s.Owner, Epoch: s.Epoch}
		switch {
		case best == "":
			continue
		case best == s.Owner:
		case s.Owner == "" || t.gone(byName[s.Owner], s, now):
			change.Owner = best
		default:
			change.Next = best
		}
		if change.Owner != s.Owner || change.Next != s.Next {
			changes = append(changes, change)
		}
	}
	return changes
}

// gone says that a shard's owner does not work it any more and will not begin to.
func (t *Tracker) gone(owner *state.Node, s *state.Shard, now time.Time) bool {
	var m *member
	if owner != nil {
		m = t.members[owner.Name]
	}
	if m == nil || m.boot != owner.Boot { // an earlier leader may have heard this start of it
		return now.Sub(t.started) >= t.wait()
	}
	return m.released(s.Number) || now.Sub(m.heard) >= t.wait()
}

// Answer is what a heartbeat that was just heard is answered.
func (t *Tracker) Answer(node string, shards []*state.Shard) client.Leases {
	t.mu.Lock()
	defer t.mu.Unlock()
	leases := client.Leases{For: t.cfg.Lease}
	m := t.members[node]
	if m == nil {
		return leases
	}
	m.told = map[uint16]bool{}
	for _, s := range shards {
		if s.Owner != node {
			continue
		}
		tenure := client.ShardEpoch{Shard: s.Number, Epoch: s.Epoch}
		if s.Next == "" {
			leases.Hold = append(leases.Hold, tenure)
			m.told[s.Number] = true
		} else if epoch, holds := m.holding[s.Number]; holds && epoch == s.Epoch {
			leases.Release = append(leases.Release, tenure)
		}
	}
	return leases
}

// Held says whether a shard's owner reads its tasks: it said so within a lease.
func (t *Tracker) Held(s *state.Shard) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.members[s.Owner]
	if m == nil || t.cfg.Now().Sub(m.heard) >= t.cfg.Lease {
		return false
	}
	epoch, holds := m.holding[s.Number]
	return holds && epoch == s.Epoch
}
