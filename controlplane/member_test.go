package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/fault"
)

const controlPlane = identity.ControlPlane

func TestNodesJoinOneByOne(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.found("a")
	r.untilServers("a*")
	r.add("b", controlPlane)
	r.untilServers("a* b") // two votes tolerate no more failures than one
	f := r.add("f", identity.Fetcher, identity.APIServer)
	r.add("c", controlPlane)
	r.untilServers("a* b* c* f")
	r.add("d", controlPlane)
	r.untilServers("a* b* c* d f")
	r.add("e", controlPlane)
	r.untilServers("a* b* c* d* e* f")
	r.add("g", controlPlane)
	openCustomer(t, f, "ann")
	r.untilServers("a* b* c* d* e* f g")
	r.until("all are registered", func() bool { return r.registered() == "a b c d e f g" })
	r.sameState()
}

// Without a majority, a node reports on its own who is there.
func TestNodesWithoutALeader(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.found("a")
	r.add("b", controlPlane)
	r.add("c", controlPlane)
	f := r.add("f", identity.Fetcher, identity.APIServer)
	r.untilServers("a* b* c* f")
	r.until("all are registered", func() bool { return r.registered() == "a b c f" })
	r.kill("b")
	r.kill("c")
	r.until("f tells what it sees", func() bool {
		nodes, err := f.Nodes(t.Context())
		var seen []string
		for _, n := range nodes {
			seen = append(seen, fmt.Sprint(n.Name, " ", n.State, " ", n.Suffrage))
		}
		return err == nil &&
			strings.Join(seen, ", ") == "a ALIVE VOTER, b FAILED VOTER, c FAILED VOTER, f "+
				"ALIVE NONVOTER"
	})
	r.until("a read that needs the leader says that there is none", func() bool {
		asking, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.Fresh(asking)
		return fault.CodeOf(err) == fault.Unavailable && strings.Contains(err.Error(), "no leader")
	})
}

func TestDeadVoterIsReplaced(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.autopilot.VoterGrace = 500 * time.Millisecond
	r.found("a")
	for _, name := range []string{"b", "c"} {
		r.add(name, identity.Roles()...)
	}
	r.untilServers("a* b* c*")
	r.kill("b")
	openCustomer(t, r.nodes["a"], "ann")
	// Nobody replaces it, so it is not removed however long it has been gone.
	r.add("f", identity.Fetcher)
	r.untilServers("a* b* c* f")
	r.add("d", controlPlane)
	r.untilServers("a* c* d* f")
	if got := r.registered(); got != "a b c d f" {
		t.Errorf("registered: %s, want who was lost among them", got)
	}
	r.until("it is said since when it is gone", func() bool {
		nodes, err := r.untilLed().Nodes(patient(t))
		at := slices.IndexFunc(nodes, func(n client.NodeStatus) bool { return n.Name == "b" })
		return err == nil && at >= 0 && nodes[at].GoneMillis != nil
	})
	// It comes back as a new node: its log is behind, and its vote is not needed.
	r.ready(r.restart("b"))
	r.untilServers("a* b c* d* f")
	r.sameState()
}

func TestDeadLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.autopilot.VoterGrace = 500 * time.Millisecond
	r.found("a")
	for _, name := range []string{"b", "c", "d"} {
		r.add(name, controlPlane)
	}
	r.untilServers("a* b* c* d")
	// A voter that does not yet know another voter refuses it its vote.
	r.until("every voter knows the voters", func() bool {
		return serversOf(r.nodes["b"]) == "a* b* c* d" && serversOf(r.nodes["c"]) == "a* b* c* d"
	})
	dead := r.untilLed().config.Node
	r.kill(dead)
	alive := slices.DeleteFunc([]string{"a*", "b*", "c*", "d*"},
		func(name string) bool { return name == dead+"*" })
	r.untilServers(strings.Join(alive, " "))
	openCustomer(t, r.untilLed(), "ann")
}

// A node that is gone for a short time stays a server, whatever address it comes back at.
func TestRestartsChangeNothing(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.autopilot.NonvoterGrace = time.Hour
	r.found("a")
	for _, name := range []string{"b", "c"} {
		r.add(name, controlPlane)
	}
	r.add("f", identity.Fetcher, identity.APIServer)
	r.untilServers("a* b* c* f")
	for _, name := range []string{"f", "b"} {
		r.stop(name)
		r.ready(r.restart(name))
		r.untilServers("a* b* c* f")
	}
	openCustomer(t, r.nodes["f"], "ann")
	r.sameState()
}

// All voters stop and come back at other addresses. Raft's configuration has no right address left,
// and they still find each other.
func TestWholeClusterMoves(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.found("a")
	for _, name := range []string{"b", "c"} {
		r.add(name, identity.Roles()...)
	}
	r.untilServers("a* b* c*")
	openCustomer(t, r.nodes["a"], "ann")
	for _, name := range []string{"a", "b", "c"} {
		r.stop(name)
	}
	for _, name := range []string{"c", "a", "b"} {
		r.restart(name)
	}
	for _, node := range r.nodes {
		r.ready(node)
	}
	r.untilServers("a* b* c*")
	for name, node := range r.nodes {
		if fresh(t, node).Customer("ann") == nil {
			t.Errorf("%s has lost what was written", name)
		}
	}
}

// Nodes that may all found a cluster and start at once found only one.
func TestOneClusterIsFounded(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		r := newReef(t)
		addresses := []string{freeAddress(t), freeAddress(t), freeAddress(t)}
		for i, name := range []string{"a", "b", "c"} {
			config := r.config(name, identity.Roles(), addresses...)
			config.Cluster.Bootstrap, config.Cluster.GossipListen = true, addresses[i]
			r.startNode(config)
		}
		for _, node := range r.nodes {
			r.ready(node)
		}
		r.untilServers("a* b* c*")
		clusters := map[string]bool{}
		for _, node := range r.nodes {
			clusters[node.View().Cluster().ID.String()] = true
		}
		if len(clusters) != 1 {
			t.Fatalf("round %d: %d clusters were founded", round, len(clusters))
		}
		for name := range r.nodes {
			r.stop(name)
		}
	}
}

// Two clusters founded apart under one authority see each other, and never mix.
func TestTwoFoundedClustersStayApart(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	first := r.found("a")
	other := newReef(t)
	other.authority, other.journal = r.authority, r.journal
	second := other.found("b")
	// A third node connects the gossip of both. It joins the one that it hears of first, or none if
	// it hears of both.
	third := r.startNode(r.config("c", []string{controlPlane},
		append(r.gossip(), other.gossip()...)...))
	r.until("the mistake is told", func() bool {
		return r.journal.holds("ANOTHER CLUSTER OF " +
			"THE SAME NAME")
	})
	openCustomer(t, first, "ann")
	openCustomer(t, second, "bob")
	if first.View().Cluster().ID == second.View().Cluster().ID ||
		first.View().Customer("bob") != nil {
		t.Fatal("the clusters have mixed")
	}
	switch {
	case third.View().Cluster() == nil:
		if !r.journal.holds("this node joins neither") {
			break // it has decided, and waits to be added
		}
		other.stop("b") // one is given up: the node joins the other
		r.ready(third)
		r.untilServers("a* c")
	case r.servers() != "a*" && other.servers() != "b*":
		t.Fatalf("the third is in both: %q and %q", r.servers(), other.servers())
	}
}

// A founder that lost its directory joins the other nodes.
func TestFounderThatLostItsDataJoins(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.found("a")
	for _, name := range []string{"b", "c"} {
		r.add(name, controlPlane)
	}
	r.untilServers("a* b* c*")
	openCustomer(t, r.nodes["a"], "ann")
	r.stop("a")
	r.untilLed()
	config := r.configs["a"]
	config.Dir = t.TempDir()
	config.Cluster.Join = r.gossip()
	node := r.startNode(config)
	r.ready(node)
	if fresh(t, node).Customer("ann") == nil {
		t.Fatal("the founder made another cluster")
	}
	r.untilServers("a* b* c*")
}

// A voter that lost its directory comes back while the cluster has no leader. It has forgotten its
// votes and its log. With its vote, a node without the newest writes could lead. So it has no vote
// until the others have removed it, and then joins like any other node.
func TestVoterThatLostItsDataDoesNotVote(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.found("a")
	for _, name := range []string{"b", "c"} {
		r.add(name, controlPlane)
	}
	r.untilServers("a* b* c*")
	r.until("b knows of all votes", func() bool { return serversOf(r.nodes["b"]) == "a* b* c*" })
	r.stop("b")
	openCustomer(t, r.nodes["a"], "kept") // by a and c
	r.kill("a")
	r.kill("c")
	r.restart("b")
	forgetful := &journal{}
	config := r.configs["c"]
	config.Dir, config.Cluster.Listen, config.Cluster.Join = t.TempDir(), r.listening["c"],
		r.gossip()
	config.Logger = slog.New(slog.NewTextHandler(forgetful,
		&slog.HandlerOptions{Level: slog.LevelDebug}))
	c := r.startNode(config)
	r.until("b has asked c for its vote",
		func() bool { return forgetful.count("a server is turned away") >= 3 })
	n, err := c.node.Enter()
	if err != nil {
		t.Fatal(err)
	}
	if r.leader() != nil || n.CurrentTerm() != 0 || n.LastIndex() != 0 {
		t.Errorf("%v leads, and c is in term %d, at index %d", r.leader(), n.CurrentTerm(),
			n.LastIndex())
	}
	c.node.Leave()
	r.restart("a")
	r.ready(c)
	r.untilServers("a* b* c*")
	if fresh(t, c).Customer("kept") == nil {
		t.Fatal("what was written is lost")
	}
	r.sameState()
	at := r.journal.find(0, "autopilot: promote", "server=c ")
	for _, step := range []string{"remove", "admit", "add", "promote"} {
		next := r.journal.find(at+1, "autopilot: "+step, "server=c ")
		if next < 0 {
			t.Fatalf("c was not made to %s after what came before:\n%s", step,
				r.journal.text.String())
		}
		at = next
	}
}

// A second node with a copy of another node's identity never joins the cluster.
func TestSecondNodeOfANameIsNotAdmitted(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.found("a")
	f := r.add("f", identity.Fetcher)
	copied := r.config("f", []string{identity.Fetcher}, r.gossip()...)
	copied.Cluster.Identity = r.configs["f"].Cluster.Identity
	copied.Boot = copied.IDs.New()
	second := start(t, copied)
	r.until("it is told", func() bool {
		return r.journal.holds("another node has the " +
			"name of this one")
	})
	openCustomer(t, r.nodes["a"], "ann")
	select {
	case <-second.Ready():
		t.Fatal("the second node of a name is ready")
	default:
	}
	if record := fresh(t, r.nodes["a"]).Node("f"); record == nil || record.Boot != f.config.Boot {
		t.Fatal("the second node has registered in the first one's place")
	}
}

// A node that does not know the cluster's version is not admitted. The leader logs that, and the
// node ends and says why. A node of the previous release cannot ask; it waits.
func TestOlderBinaryIsNotAdmitted(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	a := r.found("a")
	r.until("the version is active",
		func() bool { return fresh(t, a).ClusterVersion() == command.Newest })
	why := fmt.Sprintf("version %d of the cluster is active", command.Newest)
	for _, role := range []string{identity.Fetcher, controlPlane} {
		config := r.config("older-"+role, []string{role}, r.gossip()...)
		config.newest = command.Newest - 1
		older, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := older.Run(patient(t)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: the older binary ends with %v", role, err)
		}
	}
	r.untilServers("a*")
}

func TestNodeLeavesWhenItStops(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.autopilot.NonvoterGrace = time.Hour
	r.found("a")
	for _, name := range []string{"b", "c"} {
		config := r.config(name, []string{controlPlane}, r.gossip()...)
		config.Cluster.LeaveOnStop = true
		r.ready(r.startNode(config))
	}
	config := r.config("f", []string{identity.Fetcher}, r.gossip()...)
	config.Cluster.LeaveOnStop = true
	r.ready(r.startNode(config))
	r.untilServers("a* b* c* f")
	r.stop("f")
	r.untilServers("a* b* c*")
	r.until("its record is gone", func() bool { return r.registered() == "a b c" })
	r.stop("b")
	r.untilServers("a* c*")
	r.stop("c") // with two votes left, removing one needs both
	r.untilServers("a*")
	r.until("only the last is left", func() bool { return r.registered() == "a" })
	openCustomer(t, r.nodes["a"], "ann")
}

// A node that its removal does not reach learns of it anyway, and need not wait.
func TestNodeLeavesUnheard(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.autopilot.NonvoterGrace = time.Hour
	raft := &network{names: map[string]string{}} // used by the leader only
	founder := r.config("a", identity.Roles())
	founder.Cluster.Bootstrap, founder.dial = true, raft.dialer("a")
	r.ready(r.startNode(founder))
	config := r.config("f", []string{identity.Fetcher}, r.gossip()...)
	config.Cluster.LeaveOnStop = true
	r.ready(r.startNode(config))
	raft.name(r.listening["f"], "f")
	r.untilServers("a* f")
	raft.cut("") // connections dialled before it had a name
	raft.cut("f")
	r.stop("f")
	r.untilServers("a*")
	if !r.journal.holds("this node has left the cluster") ||
		r.journal.holds("was not removed in time") {
		t.Error("it waited in vain")
	}
}

func TestOperatorRemovesNodes(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.autopilot.NonvoterGrace = time.Hour
	a := r.found("a")
	r.add("b", controlPlane)
	r.add("c", controlPlane)
	r.add("f", identity.Fetcher)
	r.untilServers("a* b* c* f")
	remove := func(name string) string { return codeOf(a.Operator().RemoveNode(patient(t), name)) }
	for name, want := range map[string]string{"x": "not_found", "f": "node_alive",
		"a": "node_alive", "b": "node_alive"} {
		if got := remove(name); got != want {
			t.Errorf("remove %s: %s, want %s", name, got, want)
		}
	}
	r.kill("f")
	r.until("f can be removed", func() bool { return remove("f") == "" })
	r.untilServers("a* b* c*")
	r.stop("c")
	r.until("c can be removed", func() bool { return remove("c") == "" })
	r.untilServers("a* b*")
	if got := r.registered(); got != "a b" {
		t.Fatalf("registered: %s", got)
	}
}

// A client writes all the time while every voter is restarted. None of its calls fails.
func TestRollingRestartFailsNoCall(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.autopilot.NonvoterGrace = time.Hour
	r.found("a")
	r.add("b", identity.Roles()...)
	r.add("c", identity.Roles()...)
	api := r.add("api", identity.APIServer)
	r.untilServers("a* api b* c*")
	ctx, end := context.WithCancel(t.Context())
	var written atomic.Int64
	var work sync.WaitGroup
	work.Go(func() {
		for ; ctx.Err() == nil; written.Add(1) {
			ref := fmt.Sprint("customer-", written.Load())
			within, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			_, err := client.Do(within, api, named(ref), nil)
			if err == nil {
				var view *client.View
				if view, err = api.Fresh(within); err == nil && view.Customer(ref) == nil {
					t.Errorf("%s is not there after it was written", ref)
				}
			}
			cancel()
			if err != nil {
				t.Errorf("%s: %v", ref, err)
				return
			}
		}
	})
	for range 2 {
		for _, name := range []string{"a", "b", "c"} {
			r.stop(name)
			r.ready(r.restart(name))
			r.untilServers("a* api b* c*")
			more := written.Load() + 20
			r.until("writes go on", func() bool { return written.Load() >= more || t.Failed() })
		}
	}
	end()
	work.Wait()
	r.sameState()
	if got := len(fresh(t, api).Customers()); got != int(written.Load()) {
		t.Fatalf("%d customers, %d were written", got, written.Load())
	}
}
