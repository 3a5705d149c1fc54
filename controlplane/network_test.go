package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/telemetry"
)

// nodes is a cluster under test: nodes of one authority with TLS over loopback.
type nodes struct {
	t         testing.TB
	authority *identity.Authority
	net       *network
	configs   []Config
	store     *lists
	writes    atomic.Int64 // nanoseconds added to every disk write

	mu      sync.Mutex
	running []*running // nil: stopped
}

// newNodes runs a cluster of voters, followed by non-voters. Node 0 creates it.
func newNodes(t testing.TB, voters, others int) *nodes {
	t.Helper()
	authority, err := identity.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := &nodes{t: t, authority: authority, net: &network{names: map[string]string{}},
		store: newLists()}
	log := newLog(t)
	for n := range voters + others {
		name, roles := fmt.Sprint("node-", n),
			[]string{identity.Fetcher, identity.Billing, identity.APIServer}
		if n < voters {
			name, roles = fmt.Sprint("voter-", n), append(roles, identity.ControlPlane)
		}
		config := c.config(name, roles...)
		config.Log, config.Store, config.Cluster.Bootstrap = log, c.store, n == 0
		c.configs = append(c.configs, config)
		c.running = append(c.running, nil)
		c.start(n)
	}
	for n := range c.configs {
		if n > 0 {
			c.add(n, n < voters)
		}
	}
	for n := range c.configs {
		c.ready(n)
	}
	return c
}

// config returns the configuration of a node of the cluster.
func (c *nodes) config(name string, roles ...string) Config {
	c.t.Helper()
	i, err := c.authority.Issue(name, roles, time.Now(), time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	address := freeAddress(c.t)
	c.net.name(address, name)
	config := testConfig(c.t, c.t.TempDir())
	config.Node, config.Roles = name, roles
	if !slices.Contains(roles, identity.Fetcher) {
		config.Capacity = 0
	}
	config.Cluster = &Cluster{Identity: i, Listen: address}
	config.Lease, config.EndWithin = time.Second, time.Second
	config.dial, config.digestsEvery = c.net.dialer(name), 100*time.Millisecond
	config.BeforeWrite = func() { <-time.After(time.Duration(c.writes.Load())) }
	return config
}

// handedOut counts the ports given to tests of this process.
var handedOut atomic.Uint32

// freeAddress returns an address that nobody listens on and no other test gets. Tests run in
// parallel and restart nodes at their old address. Its port is below the ports that systems give to
// connections.
func freeAddress(t testing.TB) string {
	t.Helper()
	const first, count = 10_000, 11_000
	for range count {
		port := first + (uint32(os.Getpid())*97+handedOut.Add(1))%count
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return address
		}
	}
	t.Fatal("no free ports")
	return ""
}

func (c *nodes) start(n int) {
	config := c.configs[n]
	config.Boot, config.Metrics = config.IDs.New(), telemetry.NewMetrics()
	r := start(c.t, config)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[n] = r
}

// kill stops a node without a good-bye, and leaves its directory.
func (c *nodes) kill(n int) {
	c.mu.Lock()
	r := c.running[n]
	c.running[n] = nil
	c.mu.Unlock()
	c.net.cut(c.configs[n].Node)
	r.stop()
	c.net.mend(c.configs[n].Node)
}

// at returns a node, nil while it is stopped.
func (c *nodes) at(n int) *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[n]
}

func (c *nodes) ready(n int) {
	c.t.Helper()
	select {
	case <-c.at(n).Ready():
	case <-patient(c.t).Done():
		c.t.Fatalf("node %d does not become ready", n)
	}
}

// add has the leader add a node to Raft's configuration.
func (c *nodes) add(n int, votes bool) {
	c.t.Helper()
	id, address := raft.ServerID(c.configs[n].Node), raft.ServerAddress(c.configs[n].Cluster.Listen)
	c.lead(func(leader *node.Raft) error {
		if votes {
			return leader.AddVoter(id, address, 0, 0).Error()
		}
		return leader.AddNonvoter(id, address, 0, 0).Error()
	})
}

// lead calls ask on the leader until it succeeds.
func (c *nodes) lead(ask func(*node.Raft) error) {
	c.t.Helper()
	ctx := patient(c.t)
	for {
		for n := range c.configs {
			r := c.at(n)
			if r == nil || !r.node.Leads() {
				continue
			}
			_, err := node.Ask(ctx, r.node,
				func(n *node.Raft) (struct{}, error) { return struct{}{}, ask(n) })
			if err == nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			c.t.Fatal("no leader does what it is asked")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// leader returns the node whose leadership has begun, -1 if there is none.
func (c *nodes) leader() int {
	for n := range c.configs {
		if r := c.at(n); r != nil && r.holder.Current() != nil {
			return n
		}
	}
	return -1
}

// untilLed waits for a node whose leadership has begun.
func (c *nodes) untilLed() int {
	c.t.Helper()
	ctx := patient(c.t)
	for {
		if n := c.leader(); n >= 0 {
			return n
		}
		select {
		case <-ctx.Done():
			c.t.Fatal("nobody leads")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// handOver has the leader hand over to another voter, unless that one leads.
func (c *nodes) handOver(to int) {
	c.t.Helper()
	c.lead(func(n *node.Raft) error {
		if n.State() == raft.Leader && c.leader() == to {
			return nil
		}
		return n.LeadershipTransferToServer(raft.ServerID(c.configs[to].Node),
			raft.ServerAddress(c.configs[to].Cluster.Listen)).Error()
	})
}

// network is how the nodes of a test dial: it can cut a node off.
type network struct {
	mu    sync.Mutex
	names map[string]string // by address
	off   []string
	conns []*wire
}

// wire is a connection between two nodes.
type wire struct {
	net.Conn
	from, to string
}

var errCut = errors.New("the network is cut")

func (n *network) name(address, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[address] = node
}

func (n *network) reaches(from, to string) bool {
	for _, off := range n.off {
		if off == from || off == to {
			return false
		}
	}
	return true
}

func (n *network) dialer(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		n.mu.Lock()
		to := n.names[address]
		up := n.reaches(from, to)
		n.mu.Unlock()
		if !up {
			return nil, errCut
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.reaches(from, to) {
			_ = conn.Close()
			return nil, errCut
		}
		w := &wire{conn, from, to}
		n.conns = append(n.conns, w)
		return w, nil
	}
}

// cut cuts a node off the network: its connections break, and new ones fail.
func (n *network) cut(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.off = append(n.off, node)
	var left []*wire
	for _, w := range n.conns {
		if w.from == node || w.to == node {
			_ = w.Close()
		} else {
			left = append(left, w)
		}
	}
	n.conns = left
}

// mend reconnects a node.
func (n *network) mend(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for at, off := range n.off {
		if off == node {
			n.off = append(n.off[:at:at], n.off[at+1:]...)
			return
		}
	}
}
