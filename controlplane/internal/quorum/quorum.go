// Package quorum owns which nodes Raft counts: who is added, becomes a voter, is given another
// address, is taken out. It is the leader's volatile memory and pure logic, asked again and again
// for the one next change. It speaks to nobody and keeps no clock of its own.
//
// What holds whatever it is told:
//   - a change touches one server, and no change is made to the leader but of its address;
//   - a voter is taken out, or loses its vote, only when those left that answer are a majority of
//     those left;
//   - unless an operator or the node itself asked for it, never below Config.MinVoters voters;
//   - a node without a log is let in only while it has no vote: one that had a vote has forgotten
//     what it voted;
//   - a server is gone only when it neither gossips nor answers the leader, for the whole of its
//     grace.
//
// The number of voters is odd wherever the nodes allow it. An even number bears no more failures
// than the odd one below it and needs one answer more.
package quorum

import (
	"cmp"
	"slices"
	"time"

	"shoal.dev/shoal/pkg/ids"
)

// Config sets the measures. Zero values are replaced by those of defaults.
type Config struct {
	MaxVoters int // the most voters, odd
	// MinVoters is below which dead voters are kept until others have taken their place.
	MinVoters     int
	Settle        time.Duration // how long a node must have kept up before it may vote
	NonvoterGrace time.Duration // how long a non-voter may be gone before it is removed
	VoterGrace    time.Duration // how long a voter may be gone before it is
	Contact       time.Duration // a node that heard its leader longer ago has not kept up
	MaxLag        uint64        // neither has one that lacks more entries
}

// defaults bear two dead voters of five, and leave a restart of some minutes alone. A cluster that
// had MaxVoters voters keeps a majority of them, and three in any case.
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

// Member is a node that gossips, and belongs or wants to belong to this cluster.
type Member struct {
	Name         string
	Address      string // of Raft
	ControlPlane bool
	Leaving      bool // it asks to be removed
	// Empty: it has no log, and neither votes nor takes entries until it is admitted. It asks for
	// that, and for the end of the vote that a node of its name may have had.
	Empty bool
	Boot  ids.ID // this start of it
}

// Progress is what a server answered the leader.
type Progress struct {
	Contact time.Duration // since it heard its leader
	Index   uint64        // of the newest entry it has
}

// Situation is what the leader sees.
type Situation struct {
	Now     time.Time
	Leader  string
	Index   uint64 // of the leader's newest entry
	Servers []Server
	Members []Member
	// servers that answered just now; the leader need not be among them
	Progress   map[string]Progress
	Registered []string // nodes that have a record in the state
}

// Kind is a kind of change.
type Kind string

// The kinds.
const (
	Admit   Kind = "admit"   // a node without a log may take part in Raft; no server is changed
	Add     Kind = "add"     // as a non-voter, or another address of a non-voter
	Readdr  Kind = "readdr"  // another address of a voter
	Promote Kind = "promote" // a non-voter becomes a voter
	Demote  Kind = "demote"  // a voter becomes a non-voter
	Remove  Kind = "remove"  // from Raft
	Retire  Kind = "retire"  // its record from the state; Raft does not have it
)

// Change is one change. Its zero value is none.
type Change struct {
	Kind    Kind
	Name    string
	Address string
	Boot    ids.ID // Admit: of the start that is meant
	Why     string
}

// Planner remembers since when nodes have kept up or been gone. It is for one goroutine and one
// leadership.
type Planner struct {
	config Config
	nodes  map[string]*memory
}

// memory is what is remembered of a node; a zero time is "not now".
type memory struct {
	settling time.Time // has kept up since
	gone     time.Time
	admitted time.Time // when it was last told that it may take part
	leaves   bool      // for good: the last that was heard of it
}

// New begins a leadership's memory.
func New(config Config) *Planner {
	return &Planner{config: config.withDefaults(), nodes: map[string]*memory{}}
}

// Next is the next change to make, if any. After it is made, or has failed, Next is asked again.
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

// view is a situation, sorted out.
type view struct {
	*Situation
	servers    map[string]Server
	members    map[string]Member
	registered map[string]bool
	voters     []string // by name
	answering  int      // voters that answer, the leader among them
}

// look sorts a situation out and brings the memory up to it.
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

// answers says that a server hears this leader.
func (p *Planner) answers(v *view, name string) bool {
	progress, answered := v.Progress[name]
	return name == v.Leader || (answered && progress.Contact <= p.config.Contact)
}

// gone says that a node has been gone for so long.
func (p *Planner) gone(v *view, name string, grace time.Duration) bool {
	m := p.nodes[name]
	return m != nil && !m.gone.IsZero() && v.Now.Sub(m.gone) >= grace
}

// Gone is since when nodes have been gone, as of the last look.
func (p *Planner) Gone() map[string]time.Time {
	gone := map[string]time.Time{}
	for name, m := range p.nodes {
		if !m.gone.IsZero() {
			gone[name] = m.gone
		}
	}
	return gone
}

// dismissed says that a node is gone and an operator has taken its record away.
func (p *Planner) dismissed(v *view, name string) bool {
	return !v.registered[name] && p.gone(v, name, 0)
}

// outlives says that those who answer are a majority of the voters without this one.
func (p *Planner) outlives(v *view, name string) bool {
	answering := v.answering
	if p.answers(v, name) {
		answering--
	}
	return answering > (len(v.voters)-1)/2
}

// lost says that a voter has been gone for its whole grace.
func (p *Planner) lost(v *view, name string) bool {
	return p.gone(v, name, p.config.VoterGrace) || p.dismissed(v, name)
}
