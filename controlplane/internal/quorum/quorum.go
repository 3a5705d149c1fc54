// Package quorum owns who is a server of Raft: who is added, becomes a voter, changes its address,
// is removed. It is the leader's volatile memory and pure logic, asked repeatedly for the next
// change. It makes no calls and has no clock of its own.
//
// Whatever it is told:
//   - a change touches one server; the leader itself only ever changes its address;
//   - a voter is removed, or loses its vote, only when the remaining voters that answer are a
//     majority of the remaining voters;
//   - unless an operator or the node itself asked for it, there are never fewer than
//     Config.MinVoters voters;
//   - a node without a log is admitted only while it has no vote: a former voter has forgotten
//     its votes;
//   - a server is gone only when it neither gossips nor answers for its whole grace.
//
// The number of voters is odd wherever possible. An even number tolerates no more failures than the
// odd number below it, and needs one more answer.
package quorum

import (
	"cmp"
	"slices"
	"time"

	"shoal.dev/shoal/pkg/ids"
)

// Config holds the settings. Zero values are replaced by those of defaults.
type Config struct {
	MaxVoters int // the most voters, odd
	// MinVoters: with no more voters than this, dead ones are kept until others have replaced them.
	MinVoters     int
	Settle        time.Duration // how long a node must have kept up before it becomes a voter
	NonvoterGrace time.Duration // how long a non-voter may be gone before it is removed
	VoterGrace    time.Duration // how long a voter may be gone before it is removed
	Contact       time.Duration // a node that last heard its leader longer ago has not kept up
	MaxLag        uint64        // nor has a node that lacks more entries
}

// defaults tolerates two dead voters of five, and restarts of some minutes. withDefaults raises
// MinVoters to a majority of MaxVoters.
func defaults() Config {
	return Config{MaxVoters: 5, MinVoters: 3, Settle: 5 * time.Second, NonvoterGrace: time.Minute,
		VoterGrace: 10 * time.Minute, Contact: 2 * time.Second, MaxLag: 512}
}

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	d := defaults()
	c.MaxVoters = cmp.Or(c.MaxVoters, d.MaxVoters)
	c.MinVoters = cmp.Or(c.MinVoters, max(d.MinVoters, c.MaxVoters/2+1))
	c.Settle, c.Contact = cmp.Or(c.Settle, d.Settle), cmp.Or(c.Contact, d.Contact)
	c.NonvoterGrace, c.VoterGrace = cmp.Or(c.NonvoterGrace, d.NonvoterGrace),
		cmp.Or(c.VoterGrace, d.VoterGrace)
	c.MaxLag = cmp.Or(c.MaxLag, d.MaxLag)
	return c
}

// Server is a server in Raft's configuration.
type Server struct {
	Name    string
	Address string
	Voter   bool
}

// Member is a node that gossips and belongs to this cluster or wants to.
type Member struct {
	Name         string
	Address      string // of Raft
	ControlPlane bool
	Leaving      bool // it asks to be removed
	// Empty: it has no log, and neither votes nor takes entries until it is admitted. It asks for
	// admission, and for the removal of a voter of its name.
	Empty bool
	Boot  ids.ID // this start of the node
}

// Progress is a server's answer to the leader.
type Progress struct {
	Contact time.Duration // time since it heard its leader
	Index   uint64        // of its newest entry
}

// Situation is what the leader sees.
type Situation struct {
	Now     time.Time
	Leader  string
	Index   uint64 // of the leader's newest entry
	Servers []Server
	Members []Member
	// servers that answered just now; may lack the leader
	Progress   map[string]Progress
	Registered []string // nodes that have a record in the state
}

// Kind is the kind of a change.
type Kind string

// The kinds of changes.
const (
	Admit   Kind = "admit"   // let a node without a log take part in Raft; no server is changed
	Add     Kind = "add"     // as a non-voter, or another address of a non-voter
	Readdr  Kind = "readdr"  // change a voter's address
	Promote Kind = "promote" // a non-voter becomes a voter
	Demote  Kind = "demote"  // a voter becomes a non-voter
	Remove  Kind = "remove"  // from Raft
	Retire  Kind = "retire"  // remove its record from the state; it is not a server of Raft
)

// Change is one change. The zero value means no change.
type Change struct {
	Kind    Kind
	Name    string
	Address string
	Boot    ids.ID // Admit: the start of the node that is admitted
	Why     string
}

// Planner remembers since when nodes have kept up or been gone. It serves one goroutine and one
// leadership.
type Planner struct {
	config Config
	nodes  map[string]*memory
}

// memory is what is remembered of a node; a zero time means "not now".
type memory struct {
	settling time.Time // since when it has kept up
	gone     time.Time
	admitted time.Time // when it was last told of its admission
	leaves   bool      // whether it was leaving when last heard
}

// New makes the planner of a leadership.
func New(config Config) *Planner {
	return &Planner{config: config.withDefaults(), nodes: map[string]*memory{}}
}

// Next returns the next change to make, if any. Call it again once that is made or has failed.
func (p *Planner) Next(s Situation) (Change, bool) {
	v := p.look(&s)
	for _, rule := range []func(*view) Change{
		p.forget, p.address, p.leave, p.removeVoter, p.removeNonvoter, p.retire, p.add, p.demote,
		p.promote, p.admit,
	} {
		if change := rule(v); change.Kind != "" {
			return change, true
		}
	}
	return Change{}, false
}

// view is an indexed situation.
type view struct {
	*Situation
	servers    map[string]Server
	members    map[string]Member
	registered map[string]bool
	voters     []string // sorted by name
	answering  int      // voters that answer, including the leader
}

// look indexes a situation and updates the memory.
func (p *Planner) look(s *Situation) *view {
	v := &view{Situation: s, servers: map[string]Server{}, members: map[string]Member{},
		registered: map[string]bool{}}
	slices.SortFunc(s.Servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(s.Registered)
	seen := map[string]bool{}
	for _, m := range s.Members {
		v.members[m.Name], seen[m.Name] = m, true
	}
	for _, name := range s.Registered {
		v.registered[name], seen[name] = true, true
	}
	for _, server := range s.Servers {
		v.servers[server.Name], seen[server.Name] = server, true
		if server.Voter {
			v.voters = append(v.voters, server.Name)
			if p.answers(v, server.Name) {
				v.answering++
			}
		}
	}
	for name := range seen {
		p.remember(v, name)
	}
	for name := range p.nodes {
		if !seen[name] {
			delete(p.nodes, name)
		}
	}
	return v
}

func (p *Planner) remember(v *view, name string) {
	m := p.nodes[name]
	if m == nil {
		m = &memory{}
		p.nodes[name] = m
	}
	since := func(at *time.Time, now bool) {
		switch {
		case !now:
			*at = time.Time{}
		case at.IsZero():
			*at = v.Now
		}
	}
	member, gossips := v.members[name]
	if gossips {
		m.leaves = member.Leaving
	}
	progress, answered := v.Progress[name]
	isLeader := name == v.Leader
	since(&m.gone, !gossips && !answered && !isLeader)
	since(&m.settling, isLeader ||
		(gossips && p.answers(v, name) && progress.Index+p.config.MaxLag >= v.Index))
}

// answers says whether a server hears this leader.
func (p *Planner) answers(v *view, name string) bool {
	progress, answered := v.Progress[name]
	return name == v.Leader || (answered && progress.Contact <= p.config.Contact)
}

// gone says whether a node has been gone for at least grace.
func (p *Planner) gone(v *view, name string, grace time.Duration) bool {
	m := p.nodes[name]
	return m != nil && !m.gone.IsZero() && v.Now.Sub(m.gone) >= grace
}

// Gone returns since when nodes have been gone, as of the last look.
func (p *Planner) Gone() map[string]time.Time {
	gone := map[string]time.Time{}
	for name, m := range p.nodes {
		if !m.gone.IsZero() {
			gone[name] = m.gone
		}
	}
	return gone
}

// dismissed says whether a node is gone and an operator has removed its record.
func (p *Planner) dismissed(v *view, name string) bool {
	return !v.registered[name] && p.gone(v, name, 0)
}

// outlives says whether the answering voters without this one are a majority of the rest.
func (p *Planner) outlives(v *view, name string) bool {
	answering := v.answering
	if p.answers(v, name) {
		answering--
	}
	return answering > (len(v.voters)-1)/2
}

// lost says whether a voter has been gone for its whole grace, or is dismissed.
func (p *Planner) lost(v *view, name string) bool {
	return p.gone(v, name, p.config.VoterGrace) || p.dismissed(v, name)
}
