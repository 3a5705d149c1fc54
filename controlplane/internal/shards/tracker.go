// Package shards owns the assignment of shards to fetchers: where each shard belongs, when it may
// move to another node, and what a heartbeat answers. It is the leader's volatile memory and pure
// logic. Owners and epochs are replicated state, which it reads and proposes changes for. It sends
// nothing and has no clock of its own.
//
// Everything here serves one rule: no two fetchers work one shard at once. A fetcher's side of it:
//   - It sends one heartbeat at a time. It ignores the answer to a call that it gave up, and that
//     call does not arrive after a later one.
//   - After an answer it begins only pages of shards in Hold, and finishes the begun pages of
//     those in Release. It opens new shards of Hold before the next heartbeat. A shard stays in
//     Holding while a page of it is begun and not yet in the log.
//   - It starts requests only within For of sending the heartbeat, by its monotonic clock. After
//     that it ends open requests within EndWithin; a frozen process sends nothing in that time.
//   - A process that stops says so (Leaving), and releases all its shards like those in Release.
//
// The leader's side: an owner is replaced in two cases only. Its heartbeat shows that it does not
// hold the shard (a planned move), or it was silent for a lease and EndWithin. A new leader counts
// silence from its own start, because its predecessor may have heard the owner just before. A
// leader that was away counts from its return, because owners could not reach it. Meanwhile other
// nodes send heartbeats often, so as to take over at once. A process that registers under its
// node's name proves that the previous one is dead: only one can lock the Raft log's directory. So
// a restarted node has its shards at once.
//
// A node that drains or stops releases all shards at once. A shard that nobody can take then has no
// owner. When shares change otherwise (a node joins, or its weight grows), an eighth of the shards
// moves at a time, so that fetching goes on. Nodes with short disks have shards only while no other
// node can take them.
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

// Config sets the times. All must be above 0.
type Config struct {
	Lease time.Duration // how long a heartbeat lets a fetcher work
	// EndWithin returns how long a fetcher may need to end its requests after its lease has ended.
	// It may shrink over time.
	EndWithin func() time.Duration
	Now       func() time.Time
}

// driftShare adds this part of a wait to allow for clock drift. 1/32 covers two clocks that are
// 1.5% off in opposite directions.
const driftShare = 32

// movingShare is the part of the shards that may move at once from owners that could keep them.
const movingShare = 8

// Tracker holds what one leadership knows of the fetchers. It is safe for concurrent use.
type Tracker struct {
	config  Config
	started time.Time

	mu      sync.Mutex
	members map[string]*member
	planned time.Time // the last Plan
	attends time.Time // since when this leader has listened without a break
}

// member is what this leader has heard of a node and told it.
type member struct {
	boot    ids.ID
	heard   time.Time
	beat    client.Heartbeat  // the newest
	holding map[uint16]uint64 // shard → epoch, by the newest heartbeat
	told    map[uint16]bool   // Hold of the answer to that heartbeat
	rate    rate
}

// released says that the node does not hold a shard, and was not told to hold it since.
func (m *member) released(shard uint16) bool {
	_, holds := m.holding[shard]
	return !holds && !m.told[shard]
}

// New returns a tracker that has heard nobody yet.
func New(config Config) *Tracker {
	now := config.Now()
	return &Tracker{config: config, started: now, planned: now, attends: now,
		members: map[string]*member{}}
}

// wait returns how long after its last heartbeat a fetcher may still be at work.
func (t *Tracker) wait() time.Duration {
	w := t.config.Lease + t.config.EndWithin()
	return w + w/driftShare
}

// Heard records a heartbeat of the node's registered boot. It returns the shards held since the
// last one, or all that are held if the node was silent or leaving.
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

// of returns the member of the node's newest start; nil if it was not heard.
func (t *Tracker) of(node *state.Node) *member {
	if node == nil {
		return nil
	}
	if m := t.members[node.Name]; m != nil && m.boot == node.Boot {
		return m
	}
	return nil
}

// fresh says whether the node was heard within a lease.
func (t *Tracker) fresh(m *member, now time.Time) bool {
	return m != nil && now.Sub(m.heard) < t.config.Lease
}

// departs says whether a node must give up all its shards.
func departs(node *state.Node, m *member) bool {
	return node != nil && node.Draining || m != nil && m.beat.Leaving
}

// Plan returns the changes of owners that are due. Call it several times per lease.
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
		p.live = append(p.live, short...) // short nodes are better than none
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

// plan holds the facts of one planning.
type plan struct {
	t     *Tracker
	now   time.Time
	nodes map[string]*state.Node
	live  []Candidate
	stays map[string]bool // the candidates
	room  int             // how many more shards may move from owners that stay
}

// next returns the change of a shard that should belong to best.
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
	default: // wait until more is known of the owner
		change.Next = s.Next
	}
	return change
}

// letGo says whether a shard's owner has reported that it does not work on it.
func (t *Tracker) letGo(owner *state.Node, s *state.Shard) bool {
	m := t.of(owner)
	return m != nil && m.released(s.Number)
}

// silent says whether an owner was silent for so long that it cannot be at work. This holds even if
// its record was removed meanwhile.
func (t *Tracker) silent(name string, now time.Time) bool {
	return t.silence(name, now) >= t.wait()
}

// Due returns the time until a silent owner can be replaced, at most a quarter of a lease. Call
// Plan at least that often.
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

// silence returns for how long an owner has been silent although it could have been heard.
// Heartbeats of its earlier start count: a new start gets its shards with its own first heartbeat.
func (t *Tracker) silence(name string, now time.Time) time.Duration {
	since := t.attends // an earlier leader may have heard it
	if m := t.members[name]; m != nil && m.heard.After(since) {
		since = m.heard
	}
	return now.Sub(since)
}

// Answer returns the answer to a heartbeat that was just heard.
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
			// freed before the next regular heartbeat
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

// Held says whether a shard's owner takes its tasks: it reported so within a lease, and need not
// hand the shard over.
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
