package controlplane

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/stream"
)

const testProbe = 200 * time.Millisecond

// reef is a cluster of nodes that find each other by gossip, in one process on the loopback.
type reef struct {
	t         *testing.T
	authority *identity.Authority
	log       stream.Log
	store     Store
	blobs     Blobs // nil: no blob store
	backups   Backups
	nodes     map[string]*running
	configs   map[string]Config
	listening map[string]string // addresses for calls, by node
	autopilot Autopilot
	journal   *journal
}

func newReef(t *testing.T) *reef {
	t.Helper()
	authority, err := identity.NewAuthority("reef", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &reef{t: t, authority: authority, log: newLog(t), store: newLists(),
		nodes:   map[string]*running{},
		configs: map[string]Config{}, listening: map[string]string{}, journal: &journal{},
		autopilot: Autopilot{Settle: 200 * time.Millisecond, NonvoterGrace: 300 * time.Millisecond,
			VoterGrace: time.Hour}}
}

// journal collects the nodes' logs.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) holds(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), text)
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), text)
}

// find returns the first line, from a number on, that contains all texts; -1 if none does.
func (j *journal) find(from int, texts ...string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, line := range strings.Split(j.text.String(), "\n") {
		missing := func(text string) bool { return !strings.Contains(line, text) }
		if i >= from && !slices.ContainsFunc(texts, missing) {
			return i
		}
	}
	return -1
}

func (r *reef) config(name string, roles []string, join ...string) Config {
	r.t.Helper()
	own, err := r.authority.Issue(name, roles, time.Now(), time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	config := testConfig(r.t, r.t.TempDir())
	config.Node, config.Roles, config.Log, config.Store = name, roles, r.log, r.store
	if !slices.Contains(roles, identity.Fetcher) {
		config.Capacity = 0
	}
	config.Blobs, config.Backups = r.blobs, r.backups
	config.Logger = slog.New(slog.NewTextHandler(r.journal, nil)).With("by", name)
	config.Cluster = &Cluster{Identity: own, Listen: "127.0.0.1:0", GossipListen: "127.0.0.1:0",
		Join: join, Probe: testProbe,
		Autopilot: r.autopilot}
	return config
}

// startNode starts a node without waiting for it.
func (r *reef) startNode(config Config) *running {
	r.t.Helper()
	config.Boot = config.IDs.New()
	node := start(r.t, config)
	r.nodes[config.Node], r.configs[config.Node] = node, config
	r.until(config.Node+" runs", func() bool {
		n, err := node.node.Enter()
		if err == nil {
			r.listening[config.Node] = n.Port.Address()
			node.node.Leave()
		}
		return err == nil
	})
	return node
}

// add starts a node that joins through any other node, and waits until it is ready.
func (r *reef) add(name string, roles ...string) *running {
	r.t.Helper()
	node := r.startNode(r.config(name, roles, r.gossip()...))
	r.ready(node)
	return node
}

// found starts the first node and waits until it is ready.
func (r *reef) found(name string) *running {
	r.t.Helper()
	config := r.config(name, identity.Roles())
	config.Cluster.Bootstrap = true
	node := r.startNode(config)
	r.ready(node)
	return node
}

func (r *reef) ready(node *running) {
	r.t.Helper()
	select {
	case <-node.Ready():
	case <-patient(r.t).Done():
		r.journal.mu.Lock()
		defer r.journal.mu.Unlock()
		r.t.Fatalf("%s does not become ready\n%s", node.config.Node, r.journal.text.String())
	}
}

// gossip returns the gossip addresses of the running nodes.
func (r *reef) gossip() []string {
	var addresses []string
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		if n, err := r.nodes[name].node.Enter(); err == nil {
			addresses = append(addresses, n.Members.Self().Gossip.String())
			r.nodes[name].node.Leave()
		}
	}
	return addresses
}

// kill ends a node as if its process had died: it hands nothing over and tells nobody.
func (r *reef) kill(name string) {
	r.t.Helper()
	node := r.nodes[name]
	n, err := node.node.Enter()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := n.Members.Close(); err != nil {
		r.t.Error(err)
	}
	if err := n.Shutdown().Error(); err != nil {
		r.t.Error(err)
	}
	node.node.Leave()
	node.stop()
	delete(r.nodes, name)
}

// stop ends a node cleanly.
func (r *reef) stop(name string) {
	r.nodes[name].stop()
	delete(r.nodes, name)
}

// restart starts a stopped or killed node at other ports than before. In the short run, for the
// race detector, it keeps its ports. raft 1.8.0 reads a server's name without the lock under which
// it replaces name and address (updateLastAppended). The race is harmless, since the name does not
// change.
func (r *reef) restart(name string) *running {
	r.t.Helper()
	config := r.configs[name]
	config.Cluster.Join = r.gossip()
	if testing.Short() {
		config.Cluster.Listen = r.listening[name]
	}
	return r.startNode(config)
}

// until waits for a condition.
func (r *reef) until(what string, ok func() bool) {
	r.t.Helper()
	for ctx := patient(r.t); !ok(); {
		select {
		case <-ctx.Done():
			r.journal.mu.Lock()
			defer r.journal.mu.Unlock()
			r.t.Fatalf("never: %s; servers: %s\n%s", what, r.servers(), r.journal.text.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *reef) leader() *running {
	for _, node := range r.nodes {
		if node.holder.Current() != nil {
			return node
		}
	}
	return nil
}

// untilLed waits for a node whose leadership has begun.
func (r *reef) untilLed() (leader *running) {
	r.t.Helper()
	r.until("somebody leads", func() bool { leader = r.leader(); return leader != nil })
	return leader
}

// nextLeader has the leader hand over, and returns the one after it.
func (r *reef) nextLeader() (leader *running) {
	r.t.Helper()
	before := r.untilLed()
	r.until("another node leads", func() bool {
		if leader = r.untilLed(); leader != before {
			return true
		}
		if n, err := before.node.Enter(); err == nil {
			n.HandOver()
			before.node.Leave()
		}
		return false
	})
	return leader
}

// servers returns Raft's servers as the leader has them: voters with a star.
func (r *reef) servers() string {
	leader := r.leader()
	if leader == nil {
		return ""
	}
	return serversOf(leader)
}

// serversOf returns Raft's servers as a node has them.
func serversOf(node *running) string {
	n, err := node.node.Enter()
	if err != nil {
		return ""
	}
	defer node.node.Leave()
	var list []string
	for _, server := range n.GetConfiguration().Configuration().Servers {
		name := string(server.ID)
		if server.Suffrage == raft.Voter {
			name += "*"
		}
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// untilServers waits until the leader and all running voters have these servers. A voter that does
// not know the third one would refuse it its vote. So two voters without their leader would stall.
func (r *reef) untilServers(want string) {
	r.t.Helper()
	r.until("servers are "+want, func() bool {
		if r.servers() != want {
			return false
		}
		for name, node := range r.nodes {
			if slices.Contains(strings.Fields(want), name+"*") && serversOf(node) != want {
				return false
			}
		}
		return true
	})
}

// registered returns the names of the nodes in the state.
func (r *reef) registered() string {
	leader := r.leader()
	if leader == nil {
		return ""
	}
	var list []string
	for _, node := range leader.View().Nodes() {
		list = append(list, node.Name)
	}
	return strings.Join(list, " ")
}

// sameState waits until all running nodes have the same state, and returns its hash.
func (r *reef) sameState() string {
	r.t.Helper()
	hash := ""
	r.until("all nodes have one state", func() bool {
		hashes := map[string]bool{}
		for _, node := range r.nodes {
			_, h, err := node.StateHash()
			if err != nil {
				r.t.Fatal(err)
			}
			hash, hashes[h] = h, true
		}
		return len(hashes) == 1
	})
	return hash
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return string(fault.CodeOf(err))
}
