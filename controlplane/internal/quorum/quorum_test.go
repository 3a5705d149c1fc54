package quorum

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// cluster models what the planner acts on: nodes that live, die, are cut off, move, leave and come
// back, and Raft's configuration after the changes. As in Raft, a change takes effect only if a
// majority of the new voters is alive and reachable.
type cluster struct {
	t       *rapid.T
	now     time.Time
	planner *Planner
	leader  string
	nodes   map[string]*node
	servers map[string]Server
	records map[string]bool
	peak    int // the most voters so far
}

type node struct {
	Member
	alive   bool
	deaf    bool // its answers do not reach the leader
	quiet   bool // its gossip does not arrive
	lagging bool
}

func newCluster(t *rapid.T) *cluster {
	c := &cluster{t: t, now: time.Unix(1_000_000, 0), leader: "n0", nodes: map[string]*node{},
		servers: map[string]Server{},
		records: map[string]bool{"n0": true}}
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		name := fmt.Sprint("n", i)
		c.nodes[name] = &node{Member: Member{Name: name, Address: name + ":1",
			ControlPlane: i == 0 || rapid.IntRange(0, 3).Draw(t, "role") > 0, Empty: i > 0},
			alive: true}
	}
	c.servers["n0"] = Server{Name: "n0", Address: "n0:1", Voter: true}
	c.planner = New(Config{})
	return c
}

func (c *cluster) situation() Situation {
	s := Situation{Now: c.now, Leader: c.leader, Index: 10_000, Progress: map[string]Progress{},
		Servers:    slices.Collect(maps.Values(c.servers)),
		Registered: slices.Collect(maps.Keys(c.records))}
	for name, n := range c.nodes {
		if n.alive && (!n.quiet || name == c.leader) {
			s.Members = append(s.Members, n.Member)
		}
		if server, counted := c.servers[name]; counted && c.reached(name) && name != c.leader {
			progress := Progress{Index: 10_000}
			if n.lagging {
				progress.Index = 1
			}
			if server.Address == n.Address {
				s.Progress[name] = progress
			}
		}
	}
	return s
}

func (c *cluster) reached(name string) bool {
	n := c.nodes[name]
	return name == c.leader ||
		(n.alive && !n.deaf && !n.Empty && c.servers[name].Address == n.Address)
}

func (c *cluster) voters() (all, reached int) {
	for name, server := range c.servers {
		if server.Voter {
			all++
			if c.reached(name) {
				reached++
			}
		}
	}
	return all, reached
}

// step makes the planner's next change, if Raft would, and checks the invariants.
func (c *cluster) step() bool {
	s := c.situation()
	change, any := c.planner.Next(s)
	if !any {
		return false
	}
	c.checkWhy(change)
	before := maps.Clone(c.servers)
	votersBefore, reachedBefore := c.voters()
	server := c.servers[change.Name]
	switch change.Kind {
	case Add:
		c.servers[change.Name] = Server{Name: change.Name, Address: change.Address,
			Voter: server.Voter}
	case Readdr, Promote:
		c.servers[change.Name] = Server{Name: change.Name, Address: change.Address, Voter: true}
	case Demote:
		server.Voter = false
		c.servers[change.Name] = server
	case Remove:
		delete(c.servers, change.Name)
	case Admit:
		if n := c.nodes[change.Name]; server.Voter || !n.Empty {
			c.t.Fatalf("%+v: of %+v", change, server)
		} else if n.alive && !n.deaf {
			n.Empty = false
		}
		return true
	case Retire:
		if _, counted := c.servers[change.Name]; counted {
			c.t.Fatalf("a node that Raft counts is retired: %+v", change)
		}
		delete(c.records, change.Name)
		return true
	}
	c.check(change, votersBefore)
	all, reached := c.voters()
	if 2*reached <= all || 2*reachedBefore <= votersBefore {
		c.servers = before // Raft cannot commit it
		return false
	}
	if change.Kind == Add && before[change.Name].Name == "" {
		c.records[change.Name] = true // it registers
	}
	c.peak = max(c.peak, all)
	return true
}

func (c *cluster) check(change Change, votersBefore int) {
	all, reached := c.voters()
	switch {
	case change.Name == c.leader && change.Kind != Readdr:
		c.t.Fatalf("the leader is changed: %+v", change)
	case all < votersBefore-1 || all > votersBefore+1:
		c.t.Fatalf("%+v: from %d voters to %d", change, votersBefore, all)
	case all > 5 && all > votersBefore && c.lost() == 0:
		c.t.Fatalf("%+v: %d voters", change, all)
	case all > votersBefore && c.nodes[change.Name].Empty:
		c.t.Fatalf("%+v: it has no log", change)
	case all > votersBefore && !c.nodes[change.Name].ControlPlane:
		c.t.Fatalf("%+v: it is not of the control plane", change)
	}
	if all >= votersBefore {
		return
	}
	if 2*reached <= all {
		c.t.Fatalf("%+v: %d of %d voters are left reached", change, reached, all)
	}
	n := c.nodes[change.Name]
	asked := n.Leaving || (n.Empty && change.Kind == Remove) || !c.records[change.Name]
	if !asked && (all < 3 || all < c.peak/2+1) {
		c.t.Fatalf("%+v: %d voters are left, there were %d", change, all, c.peak)
	}
	if !asked && change.Kind == Remove && n.alive && !n.quiet {
		c.t.Fatalf("%+v: it gossips", change)
	}
}

// checkWhy checks that the reason for a change, which operators read in the log, is true.
func (c *cluster) checkWhy(change Change) {
	n, server := c.nodes[change.Name], c.servers[change.Name]
	seen := n.alive && (!n.quiet || change.Name == c.leader)
	is, known := map[string]bool{
		"it has lost its log":               seen && n.Empty && server.Name != "",
		"it has no log":                     seen && n.Empty && !server.Voter,
		"it leaves":                         seen && n.Leaving,
		"it has left the cluster":           server.Name == "",
		"it is gone and not registered":     !seen && !c.records[change.Name],
		"it has been gone for long":         !seen,
		"it joins":                          seen && server.Name == "",
		"it is not of the control plane":    seen && !n.ControlPlane && server.Voter,
		"an odd number of voters is better": server.Voter,
		"it has kept up":                    seen && !n.lagging && !server.Voter,
		"it came back with another address": seen && n.Address != server.Address,
		"another node has its address now": slices.ContainsFunc(slices.Collect(maps.Values(c.nodes)),
			func(other *node) bool { return other != n && other.Address == server.Address }),
	}[change.Why]
	if !known || !is {
		c.t.Fatalf("%+v: of %+v, counted as %+v", change, *n, server)
	}
}

// lost counts the voters gone beyond their grace: others may replace them.
func (c *cluster) lost() int {
	lost := 0
	for name, server := range c.servers {
		if m := c.planner.nodes[name]; server.Voter && m != nil && !m.gone.IsZero() &&
			c.now.Sub(m.gone) >= c.planner.config.VoterGrace {
			lost++
		}
	}
	return lost
}

// pass lets time pass, asking the planner every second as the leader does.
func (c *cluster) pass(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); c.now = c.now.Add(time.Second) {
		for range 20 {
			if !c.step() {
				break
			}
		}
	}
}

// misfortune makes one random event happen.
func (c *cluster) misfortune() {
	names := slices.Sorted(maps.Keys(c.nodes))
	name := rapid.SampledFrom(names).Draw(c.t, "node")
	n := c.nodes[name]
	switch rapid.SampledFrom([]string{"die", "die", "live", "deaf", "quiet", "lag", "move", "swap",
		"leave", "dismiss",
		"role", "lead", "forget", "time", "time", "time"}).Draw(c.t, "event") {
	case "die":
		n.alive = name == c.leader
	case "live":
		n.alive, n.Leaving = true, false
	case "deaf":
		n.deaf = !n.deaf
	case "quiet":
		n.quiet = !n.quiet
	case "lag":
		n.lagging = !n.lagging
	case "move":
		n.Address = fmt.Sprintf("%s:%d", name, rapid.IntRange(1, 3).Draw(c.t, "port"))
	case "swap":
		other := c.nodes[rapid.SampledFrom(names).Draw(c.t, "other")]
		n.Address, other.Address = other.Address, n.Address
	case "leave":
		n.Leaving = name != c.leader && n.alive
	case "dismiss":
		if !n.alive && 2*c.reachedWithout(name) > c.votersWithout(name) {
			delete(c.records, name)
		}
	case "forget": // it loses its disk
		n.Empty = n.Empty || name != c.leader
	case "role":
		n.ControlPlane = name == "n0" || !n.ControlPlane
	case "lead": // a new leader remembers nothing
		if c.servers[name].Voter && c.reached(name) && n.alive && !n.Leaving {
			c.leader, c.planner = name, New(Config{})
		}
	case "time":
		c.pass(time.Duration(rapid.IntRange(1, 900).Draw(c.t, "seconds")) * time.Second)
	}
}

func (c *cluster) votersWithout(name string) int {
	all, _ := c.voters()
	if c.servers[name].Voter {
		all--
	}
	return all
}

func (c *cluster) reachedWithout(name string) int {
	_, reached := c.voters()
	if c.servers[name].Voter && c.reached(name) {
		reached--
	}
	return reached
}

func TestQuorumIsKeptWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		c.pass(time.Minute)
		for range rapid.IntRange(1, 30).Draw(rt, "events") {
			c.misfortune()
		}
	})
}

// When all faults are over, every node is a server at its right address, and the voters are the odd
// number that the nodes allow.
func TestClusterSettlesWhenAllIsWell(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		c.pass(time.Minute)
		for range rapid.IntRange(0, 30).Draw(rt, "events") {
			c.misfortune()
		}
		able := 0
		for name, n := range c.nodes {
			*n = node{Member: Member{Name: name, Address: name + ":1",
				ControlPlane: n.ControlPlane || name == c.leader,
				Empty:        n.Empty}, alive: true}
			c.records[name] = true
			if n.ControlPlane {
				able++
			}
		}
		if all, reached := c.voters(); 2*reached <= all {
			return // people gave a majority wrong addresses: no leader could lead
		}
		c.pass(30 * time.Minute)
		for name, n := range c.nodes {
			if server, counted := c.servers[name]; !counted || server.Address != n.Address {
				rt.Fatalf("%s is %+v", name, server)
			}
		}
		all, _ := c.voters()
		if want := min(able-(able+1)%2, 5); all != want && all != want+1 && all > 3 ||
			all < min(want, 3) {
			rt.Fatalf("%d voters of %d nodes of the control plane", all, able)
		}
		if all > 3 && all%2 == 0 {
			rt.Fatalf("%d voters of %d nodes of the control plane", all, able)
		}
	})
}

// story is a cluster of nodes of the control plane, followed change by change.
type story struct {
	t *testing.T
	s Situation
	p *Planner
}

func newStory(t *testing.T, names ...string) *story {
	st := &story{t: t, p: New(Config{}),
		s: Situation{Now: time.Unix(1_000_000, 0), Leader: names[0],
			Progress: map[string]Progress{},
			Servers:  []Server{{Name: names[0], Address: names[0] + ":1", Voter: true}}}}
	for _, name := range names {
		st.join(name)
	}
	return st
}

func (st *story) join(name string) {
	st.s.Members = append(st.s.Members,
		Member{Name: name, Address: name + ":1", ControlPlane: true})
	st.s.Registered = append(st.s.Registered, name)
	st.s.Progress[name] = Progress{}
}

func (st *story) die(name string) {
	st.s.Members = slices.DeleteFunc(st.s.Members, func(m Member) bool { return m.Name == name })
	delete(st.s.Progress, name)
}

// after lets time pass and makes the changes, which must be exactly want.
func (st *story) after(d time.Duration, want ...string) {
	st.t.Helper()
	st.p.Next(st.s)
	st.s.Now = st.s.Now.Add(d)
	var got []string
	for {
		change, due := st.p.Next(st.s)
		if !due {
			break
		}
		got = append(got, string(change.Kind)+" "+change.Name)
		at := slices.IndexFunc(st.s.Servers, func(s Server) bool { return s.Name == change.Name })
		switch change.Kind {
		case Add, Readdr, Promote:
			server := Server{Name: change.Name, Address: change.Address}
			if at >= 0 {
				server.Voter = st.s.Servers[at].Voter
				st.s.Servers = slices.Delete(st.s.Servers, at, at+1)
			}
			server.Voter = server.Voter || change.Kind == Promote
			st.s.Servers = append(st.s.Servers, server)
		case Demote:
			st.s.Servers[at].Voter = false
		case Remove:
			st.s.Servers = slices.Delete(st.s.Servers, at, at+1)
		case Retire:
			st.s.Registered = slices.DeleteFunc(st.s.Registered,
				func(name string) bool { return name == change.Name })
		}
		if len(got) > 50 {
			st.t.Fatalf("no end: %v", got)
		}
	}
	if !slices.Equal(got, want) {
		st.t.Fatalf("changes: %v, want %v", got, want)
	}
}

func TestVotersAreAnOddNumber(t *testing.T) {
	st := newStory(t, "a", "b")
	st.after(0, "add b")
	st.after(time.Hour)
	st.join("c")
	st.after(0, "add c")
	st.after(4 * time.Second)
	st.after(5*time.Second, "promote b", "promote c")
	st.join("d")
	st.after(0, "add d")
	st.after(time.Hour)
	st.join("e")
	st.after(0, "add e")
	st.after(time.Hour, "promote d", "promote e")
	st.join("f")
	st.join("g")
	st.after(0, "add f", "add g")
	st.after(time.Hour)
}

func TestDeadVotersAreReplaced(t *testing.T) {
	st := newStory(t, "a", "b", "c")
	st.after(0, "add b", "add c")
	st.after(10*time.Second, "promote b", "promote c")
	st.die("c")
	st.after(9 * time.Minute)
	st.after(24 * time.Hour) // nobody is there to replace it
	st.join("d")
	st.after(0, "add d")
	st.after(10*time.Second, "promote d", "remove c")
	st.die("a") // its death is for the next leader to handle
	st.after(time.Hour)
}

func TestShortAbsencesChangeNothing(t *testing.T) {
	st := newStory(t, "a", "b", "c", "d")
	st.after(0, "add b", "add c", "add d")
	st.after(10*time.Second, "promote b", "promote c")
	for range 3 {
		st.die("c")
		st.die("d")
		st.after(50 * time.Second)
		st.s.Registered = slices.DeleteFunc(st.s.Registered,
			func(name string) bool { return name == "c" || name == "d" })
		st.join("c")
		st.join("d")
		st.after(time.Hour)
	}
	st.die("d")
	st.after(time.Minute, "remove d")
}

// Unreachable nodes that cannot be admitted do not hold up other nodes or each other.
func TestAdmissionsThatFail(t *testing.T) {
	st := newStory(t, "a", "b", "c")
	st.after(0, "add b", "add c")
	st.after(10*time.Second, "promote b", "promote c")
	for _, name := range []string{"x", "y"} {
		st.s.Members = append(st.s.Members,
			Member{Name: name, Address: name + ":1", ControlPlane: true, Empty: true})
	}
	look := func(want string) { // a failed change ends a look
		t.Helper()
		st.s.Now = st.s.Now.Add(2 * time.Second)
		change, _ := st.p.Next(st.s)
		if got := string(change.Kind) + " " + change.Name; got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	look("admit x")
	look("admit y")
	look("admit x")
	st.join("d")
	look("add d")
	look("add d")
}

func TestAddressesAreFollowed(t *testing.T) {
	st := newStory(t, "a", "b", "c")
	st.after(0, "add b", "add c")
	st.after(10*time.Second, "promote b", "promote c")
	b, c := &st.s.Members[1], &st.s.Members[2]
	b.Address, c.Address = c.Address, b.Address // as two restarted machines may swap
	st.after(0, "readdr c", "readdr b", "readdr c")
	for _, server := range st.s.Servers[1:] {
		if !server.Voter || server.Address == server.Name+":1" {
			t.Errorf("%+v", server)
		}
	}
}
