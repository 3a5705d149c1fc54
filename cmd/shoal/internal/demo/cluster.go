package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/authority"
	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/testkit/synthweb"
)

// demoNodes are the demo's nodes, in the order of their start. The first founds the cluster.
func demoNodes() []demoNode {
	return []demoNode{
		{name: "cp1", role: "controlplane"}, {name: "cp2", role: "controlplane"},
		{name: "cp3", role: "controlplane"},
		{name: "fetcher1", role: "fetcher"}, {name: "fetcher2", role: "fetcher"},
		{name: "fetcher3", role: "fetcher"},
		{name: "ingest1", role: "ingest"}, {name: "ingest2", role: "ingest"},
		{name: "billing1", role: "billing"}, {name: "billing2", role: "billing"},
		{name: firstAPI, role: "apiserver"}, {name: "api2", role: "apiserver"},
	}
}

const (
	firstAPI     = "api1" // makes the key that the demo calls with
	portsPerNode = 3      // cluster, gossip, ops
	maxDemoNodes = 60     // started by one demo; bounds its ports
	demoValid    = 90 * 24 * time.Hour
	nodeStarts   = time.Minute // until a started node serves
	maxWarning   = 64 << 10    // bytes at the end of a log that are searched for a warning
)

// Cluster is 'shoal cluster demo', a whole cluster on one machine.
type Cluster struct {
	Data     string `help:"Directory for all data." default:"./cluster-demo" placeholder:"DIR"`
	Listen   string `help:"Address of the first API server; the second has the next port." default:"127.0.0.1:8080" placeholder:"IP:PORT"`
	BasePort int    `help:"First port of the nodes. Each node uses three." default:"7400"`

	service.Connections `embed:""`
	RebindServices      bool `group:"services" help:"Bind this cluster to the given Kafka and database, even if they belonged to another cluster."`
}

// Help returns the command's help text.
func (*Cluster) Help() string {
	return `It creates a certificate authority and starts three control-plane nodes, three fetchers and two nodes of each other role
on the loopback. They run as processes on the given Kafka, ClickHouse and Redis, or all in this process with nothing
installed. A run reads the demo web, and then you type commands to add, drain, stop and kill nodes.

Examples:

  shoal cluster demo
  shoal cluster demo --kafka-brokers 127.0.0.1:9092 --clickhouse-url http://127.0.0.1:8123/default --redis-addr 127.0.0.1:6379`
}

// Validate checks combinations of flags.
func (c *Cluster) Validate() error {
	switch host, _, err := net.SplitHostPort(c.Listen); {
	case err != nil || net.ParseIP(host) == nil:
		return fmt.Errorf("--listen: want IP:PORT")
	case (len(c.KafkaBrokers) == 0) != (c.ClickhouseURL == ""):
		return fmt.Errorf("--kafka-brokers, --clickhouse-url: both, or neither and everything " +
			"in this process")
	case c.RedisAddr != "" && c.ClickhouseURL == "":
		return fmt.Errorf("--redis-addr: nodes in this process share its memory; it goes with " +
			"--kafka-brokers and --clickhouse-url")
	case c.BasePort < 1024 || c.BasePort+portsPerNode*maxDemoNodes > 65_535:
		return fmt.Errorf("--base-port: 1024 to %d", 65_535-portsPerNode*maxDemoNodes)
	}
	return c.Check()
}

// Run starts the cluster, runs the demo in it, and obeys until ctx or the input ends.
func (c *Cluster) Run(ctx context.Context, t *terminal.Terminal) error {
	web, err := synthweb.Start(synthweb.Demo())
	if err != nil {
		return fmt.Errorf("demo web: %w", err)
	}
	err = c.run(ctx, t, web)
	return errors.Join(err, web.Close())
}

func (c *Cluster) run(ctx context.Context, t *terminal.Terminal, web *synthweb.Web) (err error) {
	d, err := c.prepare(t, web)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	for _, n := range demoNodes() {
		if _, err := d.add(n.name, n.role); err != nil {
			return err
		}
	}
	t.Notef("Starting %d nodes, %s.", len(d.nodes), d.launch.where())
	if err := d.start(ctx, slices.Clone(d.nodes)...); err != nil {
		return err
	}
	c.RebindServices = false // done by the first start
	if err := d.publish(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(filepath.Join(c.Data, datadir.AddressFile))) }()
	demo := Command{Data: c.Data}
	if err := demo.Show(ctx, t, web, d.node(firstAPI).server()); err != nil {
		return err
	}
	return d.obey(ctx)
}

// publish leaves the first API server's address and key where the other commands expect them.
func (d *demoCluster) publish() error {
	key, err := os.ReadFile(filepath.Join(d.dir(firstAPI), datadir.KeyFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(d.command.Data, datadir.KeyFile), key, 0o600)
	}
	if err != nil {
		return fmt.Errorf("api key: %w", err)
	}
	_, err = datadir.Publish(d.command.Data,
		"http://"+datadir.Reachable(d.node(firstAPI).config.Listen))
	return err
}

// demoCluster is the nodes of a demo.
type demoCluster struct {
	command   *Cluster
	t         *terminal.Terminal
	web       *synthweb.Web
	authority *identity.Authority
	launch    launcher
	nodes     []*demoNode
	starting  sync.WaitGroup // waits for nodes to serve
	orders    []order        // orders running in the background
}

// demoNode is one of them. Its index decides its ports, so they survive a restart.
type demoNode struct {
	name, role string
	config     service.Config
	unused     bool    // it was just made, and never started
	running    running // nil: it is stopped
	logged     int64   // bytes of its log before the last start
}

func (n *demoNode) server() string { return "http://" + n.config.Listen }

func (n *demoNode) log() string { return filepath.Join(n.config.Data, "shoal.log") }

// launcher starts nodes: as processes, or in this one (launch.go).
type launcher interface {
	// launch starts a node.
	launch(ctx context.Context, config service.Config) (running, error)
	// close releases what the nodes shared, once they have stopped.
	close() error
	// where describes where the nodes are.
	where() string
}

// running is a node that was started.
type running interface {
	// await returns when the node serves, or with an error when it or ctx has ended.
	await(ctx context.Context) error
	// stop ends it gracefully.
	stop() error
	// kill ends it like a crash, where possible.
	kill() error
	// ended is closed when the node has ended in any way.
	ended() <-chan struct{}
}

// prepare makes or finds the cluster's authority, and chooses where its nodes run.
func (c *Cluster) prepare(t *terminal.Terminal, web *synthweb.Web) (*demoCluster, error) {
	d := &demoCluster{command: c, t: t, web: web}
	of := authority.Flags{Data: c.Data}
	if _, err := os.Stat(of.Path()); errors.Is(err, fs.ErrNotExist) {
		if err := (&authority.Init{Flags: of, Name: "demo"}).Run(t); err != nil {
			return nil, err
		}
	}
	var err error
	if d.authority, err = identity.ReadAuthority(of.Path()); err != nil {
		return nil, err
	}
	if c.ClickhouseURL != "" {
		d.launch, err = newProcesses()
		return d, err
	}
	d.launch, err = startTogether(c.Data)
	return d, err
}

func (d *demoCluster) dir(name string) string { return filepath.Join(d.command.Data, name) }

func (d *demoCluster) node(name string) *demoNode {
	for _, n := range d.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// add makes a node's directory and identity; it does not start it.
func (d *demoCluster) add(name, role string) (*demoNode, error) {
	at := len(d.nodes)
	if at >= maxDemoNodes {
		return nil, fmt.Errorf("a demo has at most %d nodes", maxDemoNodes)
	}
	dir := d.dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	file := filepath.Join(dir, "identity.pem")
	_, err := os.Stat(file)
	unused := errors.Is(err, fs.ErrNotExist)
	if unused {
		issued, err := d.authority.Issue(name, []string{role}, d.t.Clock.Now(), demoValid)
		if err != nil {
			return nil, err
		}
		if err := issued.Write(file); err != nil {
			return nil, err
		}
	}
	port := func(node, which int) string {
		return net.JoinHostPort("127.0.0.1",
			strconv.Itoa(d.command.BasePort+portsPerNode*node+which))
	}
	c := d.command
	config := service.Config{Data: dir, Listen: d.apiAddress(role), Roles: []string{role},
		Chromium:  service.NoChromium,
		OpsListen: port(at, 2), SelfKey: name == firstAPI,
		Cluster: service.ClusterConfig{Identity: file, Listen: port(at, 0),
			GossipListen: port(at, 1), Advertise: "127.0.0.1",
			Capacity: 1,
			Join:     []string{port(0, 1), port(1, 1)}, Bootstrap: at == 0},
		Services: service.ServicesConfig{Connections: c.Connections, KafkaPrefix: "shoal-demo.",
			RedisPrefix: "shoal-demo:"},
		EgressAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Origins:     map[string]string{d.web.Pattern(): d.web.Addr()},
		HostRate:    1, HostConnections: 2, MaxHostRate: DemoRate,
		MaxHostConnections: demoConnections,
	}
	n := &demoNode{name: name, role: role, config: config, unused: unused}
	d.nodes = append(d.nodes, n)
	return n, nil
}

// apiAddress numbers the API servers' ports up from --listen.
func (d *demoCluster) apiAddress(role string) string {
	host, text, _ := net.SplitHostPort(d.command.Listen) // checked by Validate
	port, _ := strconv.Atoi(text)
	for _, n := range d.nodes {
		if n.role == "apiserver" {
			port++
		}
	}
	if role != "apiserver" {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// start starts nodes: the founder first, otherwise all together. A majority of the control plane
// must run before any node of it serves.
func (d *demoCluster) start(ctx context.Context, nodes ...*demoNode) error {
	ctx, cancel := context.WithTimeout(ctx, nodeStarts)
	defer cancel()
	failed := make(chan error, len(nodes))
	begin := func(n *demoNode) { failed <- d.bringUp(ctx, n) }
	alone := 0
	if nodes[0].unused {
		alone = 1
		if err := d.bringUp(ctx, nodes[0]); err != nil {
			return err
		}
	}
	for _, n := range nodes[alone:] {
		go begin(n)
	}
	var first error
	for range nodes[alone:] {
		if err := <-failed; err != nil && first == nil {
			first = err
			cancel() // the others may wait for that one, and would report the same
		}
	}
	return first
}

// bringUp starts a node and waits until it serves.
func (d *demoCluster) bringUp(ctx context.Context, n *demoNode) error {
	if err := d.launchNode(ctx, n); err != nil {
		return err
	}
	return n.await(ctx)
}

func (d *demoCluster) launchNode(ctx context.Context, n *demoNode) error {
	if info, err := os.Stat(n.log()); err == nil {
		n.logged = info.Size()
	}
	config := n.config
	config.RebindServices = d.command.RebindServices
	r, err := d.launch.launch(ctx, config)
	if err != nil {
		return fmt.Errorf("%s: %w", n.name, err)
	}
	n.running, n.unused = r, false
	return nil
}

// await waits until a launched node serves.
func (n *demoNode) await(ctx context.Context) error {
	err := n.running.await(ctx)
	if errors.Is(err, errNotReady) {
		if warning := lastWarning(n.log(), n.logged); warning != "" {
			err = fmt.Errorf("%w, and warns: %s", err, warning)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w (its log is in %s)", n.name, err, n.config.Data)
	}
	return nil
}

// lastWarning is the last line of a log after an offset with level WARN or higher. It is "" if
// there is none or the log cannot be read.
func lastWarning(log string, from int64) string {
	file, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // read-only
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	if info.Size() < from { // the log was rotated
		from = 0
	}
	lines, err := io.ReadAll(io.NewSectionReader(file, max(from, info.Size()-maxWarning),
		maxWarning))
	if err != nil {
		return ""
	}
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(string(lines)), "\n")) {
		for _, level := range []slog.Level{slog.LevelWarn, slog.LevelError} {
			if _, said, found := strings.Cut(line, " level="+level.String()+" "); found {
				return terminal.Printable(said)
			}
		}
	}
	return ""
}

// startLater starts a node and reports when it serves. That may need other nodes, which can be
// started in the meantime.
func (d *demoCluster) startLater(ctx context.Context, n *demoNode, done string) error {
	if err := d.launchNode(ctx, n); err != nil {
		return err
	}
	d.t.Notef("%s is starting. It serves once a majority of the control plane runs.", n.name)
	waiting := *n // of this start, even if the node is restarted
	d.starting.Go(func() {
		err := waiting.await(ctx)
		switch {
		case err == nil:
			d.t.Notef("%s %s.", n.name, done)
		case ctx.Err() == nil:
			d.t.Notef("%v", err)
		}
	})
	return nil
}

// close stops all nodes, in reverse order of their start.
func (d *demoCluster) close() error {
	var err error
	for _, n := range slices.Backward(d.nodes) {
		if n.runs() {
			err = errors.Join(err, n.running.stop())
		}
	}
	d.starting.Wait() // every node has ended
	return errors.Join(err, d.launch.close())
}

func (n *demoNode) runs() bool {
	if n.running == nil {
		return false
	}
	select {
	case <-n.running.ended():
		return false
	default:
		return true
	}
}
