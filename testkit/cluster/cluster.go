//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/testkit/netns"
	"shoal.dev/shoal/testkit/process"
)

// The roles of nodes.
const (
	ControlPlane = "controlplane"
	Fetcher      = "fetcher"
	Ingest       = "ingest"
	Billing      = "billing"
	APIServer    = "apiserver"
)

// Config describes a cluster.
type Config struct {
	Network *netns.Network // its owner closes it after the cluster
	Binary  string
	// Dir is the operator's: authority, identities and data directories. It is kept after the end.
	Dir      string
	Services Services
	Prefix   string   // of topics, keys and, without dots and hyphens, the database
	Args     []string // of every node, in addition to the required ones
	Nodes    []Spec   // the first has the role controlplane and founds the cluster
}

// Spec is one node.
type Spec struct {
	Name  string
	Roles []string
	Args  []string // in addition to the cluster's
	Env   []string // KEY=VALUE
	// Binary replaces the cluster's binary for the next process.
	Binary string
	Disk   int64 // bytes of its own in-memory disk; 0: a directory of the machine's
}

// Layout lists the given number of nodes for each role, each with that role alone: cp1, cp2, …,
// fetch1, …
func Layout(controlplane, fetcher, ingest, billing, apiserver int) []Spec {
	var specs []Spec
	add := func(role, name string, n int) {
		for i := range n {
			specs = append(specs, Spec{Name: fmt.Sprintf("%s%d", name, i+1), Roles: []string{role}})
		}
	}
	add(ControlPlane, "cp", controlplane)
	add(Fetcher, "fetch", fetcher)
	add(Ingest, "ingest", ingest)
	add(Billing, "bill", billing)
	add(APIServer, "api", apiserver)
	return specs
}

// Cluster is a network of nodes. Its methods are safe for concurrent use, except Add and Close.
type Cluster struct {
	config  Config
	network *netns.Network
	nodes   []*Node
	next    atomic.Uint32 // number of the API server for the next connection
}

// New makes the database, the nodes and their identities. No process runs yet.
func New(ctx context.Context, config Config) (_ *Cluster, err error) {
	c := &Cluster{config: config, network: config.Network}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := config.Services.query(ctx,
		"CREATE DATABASE IF NOT EXISTS "+c.database()); err != nil {
		return nil, err
	}
	if _, err := c.shoal(ctx, "cluster", "init", "--name", "test"); err != nil {
		return nil, err
	}
	for _, spec := range config.Nodes {
		if _, err := c.Add(ctx, spec); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Cluster) file(name string) string { return filepath.Join(c.config.Dir, name) }

// database returns the cluster's own ClickHouse database.
func (c *Cluster) database() string {
	return strings.NewReplacer(".", "_", "-", "_").Replace(c.config.Prefix)
}

// ClickHouse returns the address of the cluster's rows.
func (c *Cluster) ClickHouse() string {
	server := *c.config.Services.ClickHouse
	server.Path = "/" + c.database()
	return server.String()
}

// Services returns the services that the cluster runs on.
func (c *Cluster) Services() *Services { return &c.config.Services }

// Add makes a node without starting it.
func (c *Cluster) Add(ctx context.Context, spec Spec) (*Node, error) {
	namespace, err := c.network.Join()
	if err != nil {
		return nil, err
	}
	n := &Node{Spec: spec, cluster: c, namespace: namespace, data: c.file(spec.Name),
		services: map[string][]*netns.Forward{}}
	if err := os.Mkdir(n.data, 0o700); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if spec.Disk > 0 {
		if err := namespace.MountTmpfs(n.data, spec.Disk); err != nil {
			return nil, err
		}
	}
	for _, service := range []string{Kafka, Redis, ClickHouse} {
		places, err := c.config.Services.addresses(service)
		if err != nil {
			return nil, err
		}
		for _, at := range places {
			forward, err := namespace.Forward(at)
			if err != nil {
				return nil, err
			}
			n.services[service] = append(n.services[service], forward)
		}
	}
	if _, err := c.shoal(ctx, "cluster", "cert", spec.Name, "--roles",
		strings.Join(spec.Roles, ",")); err != nil {
		return nil, err
	}
	c.nodes = append(c.nodes, n)
	return n, nil
}

// shoal runs a command of the binary in the directory of the cluster's operator.
func (c *Cluster) shoal(ctx context.Context, args ...string) (string, error) {
	return c.Command(ctx, nil, args...)
}

// Command runs a command of the binary as the cluster's operator, at a place that reaches the
// nodes. env is additional environment (KEY=VALUE).
func (c *Cluster) Command(ctx context.Context, env []string, args ...string) (string, error) {
	return process.Run(ctx, process.Config{Binary: c.config.Binary, Data: c.config.Dir, Env: env,
		Launch: c.network.Router().Start}, args...)
}

// Start starts all nodes and waits until they serve.
func (c *Cluster) Start(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return c.Ready(ctx)
}

// Ready waits until every running node serves.
func (c *Cluster) Ready(ctx context.Context) error {
	for _, n := range c.nodes {
		if n.Running() {
			if err := n.Ready(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stop stops all running nodes in the order of a page's way: fetchers first, state last.
func (c *Cluster) Stop(limit time.Duration) error {
	var errs []error
	for _, role := range []string{APIServer, Fetcher, Ingest, Billing, ControlPlane} {
		for _, n := range c.With(role) {
			if n.Running() {
				errs = append(errs, n.Stop(limit))
			}
		}
	}
	return errors.Join(errs...)
}

// Nodes returns all nodes, in the order in which they were made.
func (c *Cluster) Nodes() []*Node { return slices.Clone(c.nodes) }

// With returns the nodes that have a role.
func (c *Cluster) With(role string) []*Node {
	return slices.DeleteFunc(c.Nodes(),
		func(n *Node) bool { return !slices.Contains(n.Roles, role) })
}

// Balanced is the address of a load balancer in front of the API servers, for HTTP clients.
const Balanced = "http://api.test"

// HTTP makes a client that reaches the nodes. Each call has its own connection. Connections to
// Balanced go to the API servers in turn, and skip those that do not accept.
func (c *Cluster) HTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: c.dial, DisableKeepAlives: true,
		ResponseHeaderTimeout: 30 * time.Second}}
}

func (c *Cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	router := c.network.Router()
	if host, _, err := net.SplitHostPort(address); err != nil || "http://"+host != Balanced {
		return router.DialContext(ctx, network, address)
	}
	servers := c.With(APIServer)
	failed := errors.New("cluster: there is no API server")
	for range servers {
		n := servers[int(c.next.Add(1))%len(servers)]
		if n.frozen() {
			continue // like a balancer with health checks
		}
		conn, err := router.DialContext(ctx, network, n.at(apiPort).String())
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	return nil, failed
}

// Cut drops what each node in from sends to each node in to.
func (c *Cluster) Cut(from, to []*Node) error { return c.links(from, to, c.network.Cut) }

// Heal undoes a Cut.
func (c *Cluster) Heal(from, to []*Node) error { return c.links(from, to, c.network.Heal) }

func (c *Cluster) links(from, to []*Node, change func(from, to *netns.Namespace) error) error {
	var errs []error
	for _, a := range from {
		for _, b := range to {
			if a != b {
				errs = append(errs, change(a.namespace, b.namespace))
			}
		}
	}
	return errors.Join(errs...)
}

// Others returns all nodes but one.
func (c *Cluster) Others(n *Node) []*Node {
	return slices.DeleteFunc(c.Nodes(), func(other *Node) bool { return other == n })
}

// LoseLog deletes the cluster's topics and recreates them empty.
func (c *Cluster) LoseLog(ctx context.Context) error {
	topics, err := c.config.Services.topics(ctx, c.config.Prefix)
	if err != nil {
		return err
	}
	if len(topics) == 0 {
		return fmt.Errorf("cluster: there is no topic that begins with %q", c.config.Prefix)
	}
	if err := c.config.Services.deleteTopics(ctx, topics); err != nil {
		return err
	}
	return c.config.Services.recreateTopics(ctx, topics)
}

// Poison writes an undecodable record into every partition of every topic.
func (c *Cluster) Poison(ctx context.Context, record []byte) error {
	topics, err := c.config.Services.topics(ctx, c.config.Prefix)
	if err != nil {
		return err
	}
	return c.config.Services.poison(ctx, topics, record)
}

// RepeatLog rewrites the last records of every partition of every topic, at most most per
// partition, in order.
func (c *Cluster) RepeatLog(ctx context.Context, most int64) error {
	topics, err := c.config.Services.topics(ctx, c.config.Prefix)
	if err != nil {
		return err
	}
	return c.config.Services.repeat(ctx, topics, most)
}

// Close kills the nodes and removes the cluster's data from the services.
func (c *Cluster) Close() error {
	var errs []error
	for _, n := range c.nodes {
		n.Kill()
		errs = append(errs, n.free())
		for _, forwards := range n.services {
			for _, forward := range forwards {
				errs = append(errs, forward.Close())
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(append(errs,
		c.config.Services.Remove(ctx, c.config.Prefix, c.database()))...)
}
