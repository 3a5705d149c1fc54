package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/process"
)

// clusterNode is a node in its own process.
type clusterNode struct {
	*process.Process
	name, ops, server string
}

// localCluster is a set of nodes on the loopback.
type localCluster struct {
	m        *Cluster
	on       *Bench
	dir      string // the operator's: authority, identities and data directories
	prefix   string // of topics and keys
	services cluster.Services
	args     []string // of every node
	env      []string // likewise; may hold passwords
	nodes    []*clusterNode
}

// Measure measures one run.
func (m *Cluster) Measure(ctx context.Context, on *Bench, report *Report) (err error) {
	if err := m.check(); err != nil {
		return err
	}
	w, err := on.startWeb(ctx, page.Web(m.Pages+loopWarmUp))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	c, err := m.prepare(on, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	on.Say("cluster: %d nodes start", 4+m.Fetchers)
	if err := c.start(ctx); err != nil {
		return err
	}
	return c.measure(ctx, w, report)
}

func (m *Cluster) prepare(on *Bench, w *web) (*localCluster, error) {
	dir, err := on.directory("cluster")
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(m.ClickhouseURL)
	if err != nil {
		return nil, fmt.Errorf("--clickhouse-url: %w", err)
	}
	c := &localCluster{m: m, on: on, dir: dir,
		prefix:   "shoal-bench-" + ids.Random{Now: time.Now}.New().String() + ".",
		services: cluster.Services{Brokers: m.KafkaBrokers, Redis: m.RedisAddr, ClickHouse: server}}
	own := *server
	own.Path = "/" + c.database()
	c.args = append(unbounded(4), "--no-rate-limits", "--egress-allow", "127.0.0.0/8",
		"--egress-origin", w.origin(),
		"--advertise", "127.0.0.1", "--kafka-brokers", strings.Join(m.KafkaBrokers, ","),
		"--kafka-prefix", c.prefix,
		"--redis-prefix", c.prefix)
	c.env = []string{"SHOAL_CLICKHOUSE_URL=" + own.String(), "SHOAL_REDIS_ADDR=" + m.RedisAddr}
	return c, nil
}

func (c *localCluster) database() string {
	return strings.NewReplacer(".", "_", "-", "_").Replace(c.prefix)
}

// start makes the authority, and then the nodes. The first node founds the cluster.
func (c *localCluster) start(ctx context.Context) error {
	if _, err := c.command(ctx, "cluster", "init", "--name", "bench"); err != nil {
		return err
	}
	gossip := ""
	for _, spec := range cluster.Layout(1, c.m.Fetchers, 1, 1, 1) {
		at, err := freePort()
		if err != nil {
			return err
		}
		join := []string{"--gossip-listen", at, "--bootstrap"}
		if gossip != "" {
			join = []string{"--gossip-listen", at, "--join", gossip}
		} else {
			gossip = at
		}
		if err := c.add(ctx, spec, join); err != nil {
			return fmt.Errorf("node %s: %w", spec.Name, err)
		}
	}
	return nil
}

// command runs a command of the binary as the cluster's operator.
func (c *localCluster) command(ctx context.Context, args ...string) (string, error) {
	return process.Run(ctx, process.Config{Binary: c.on.Program, Data: c.dir}, args...)
}

// add starts a node and waits until it serves.
func (c *localCluster) add(ctx context.Context, spec cluster.Spec, args []string) error {
	if _, err := c.command(ctx, "cluster", "cert", spec.Name, "--roles",
		strings.Join(spec.Roles, ",")); err != nil {
		return err
	}
	data := filepath.Join(c.dir, spec.Name)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	var places []string
	for range 3 {
		at, err := freePort()
		if err != nil {
			return err
		}
		places = append(places, at)
	}
	args = append(slices.Concat(c.args, args), "--identity", data+".pem", "--cluster-listen",
		places[0], "--ops-listen", places[1])
	p, err := process.Start(process.Config{Binary: c.on.Program, Data: data, Listen: places[2],
		Args: args,
		Env:  c.env})
	if err != nil {
		return err
	}
	n := &clusterNode{Process: p, name: spec.Name, ops: places[1], server: "http://" + places[2]}
	c.nodes = append(c.nodes, n)
	return n.await(ctx)
}

// await waits until the node serves its roles.
func (n *clusterNode) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		_, err := fetch(ctx, "http://"+n.ops+"/api/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-n.Ended():
			return fmt.Errorf("it has ended:\n%s", n.Said())
		default:
		}
		if stopped := pause(ctx, 50*time.Millisecond); stopped != nil {
			return errors.Join(stopped, err, errors.New(n.Said()))
		}
	}
}

// measure makes a run and reports what each process used for it.
func (c *localCluster) measure(ctx context.Context, w *web, report *Report) error {
	who, err := c.customer(ctx)
	if err != nil {
		return err
	}
	addresses := slices.Collect(w.URLs(c.m.Pages + loopWarmUp))
	order := api.Order{Who: who, Kind: model.SingleProduct, Fields: page.Fields(false),
		URLs: addresses[:loopWarmUp]}
	s := &service{Client: who}
	if err := s.crawl(ctx, order); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	before, err := c.usage()
	if err != nil {
		return err
	}
	if err := w.markSpan(); err != nil {
		return err
	}
	c.on.Say("cluster: %d pages", c.m.Pages)
	begun := time.Now()
	order.URLs = addresses[loopWarmUp:]
	if err := s.crawl(ctx, order); err != nil {
		return err
	}
	took := time.Since(begun)
	after, err := c.usage()
	if err != nil {
		return err
	}
	share, err := w.share()
	if err != nil {
		return err
	}
	report.table("From launch to settled:", "case", "pages/s", "web, cores").add(
		fmt.Sprintf("%s pages, %d fetchers", thousands(strconv.Itoa(c.m.Pages)), c.m.Fetchers),
		float64(c.m.Pages)/took.Seconds(), share)
	table := report.table("What a page costs each process:", "process", "CPU a page, µs",
		"peak memory, MB")
	var all time.Duration
	for _, name := range slices.Sorted(maps.Keys(after)) {
		spent := after[name].CPU - before[name].CPU
		all += spent
		table.add(name, micros(spent)/float64(c.m.Pages), float64(after[name].PeakBytes)/1e6)
	}
	table.add("all", micros(all)/float64(c.m.Pages), math.NaN())
	if c.m.ServicePIDs == "" {
		report.note("what Kafka, ClickHouse and Redis took is not in it: --service-pids names " +
			"their processes")
	}
	return nil
}

// customer makes a customer with money.
func (c *localCluster) customer(ctx context.Context) (api.Client, error) {
	at := c.nodes[len(c.nodes)-1].server // the API server comes last
	token, err := c.command(ctx, "token", "--customer", "bench")
	if err != nil {
		return api.Client{}, err
	}
	owner, err := c.command(ctx, "token", "--admin")
	if err != nil {
		return api.Client{}, err
	}
	who := api.Client{Server: at, Token: token}
	ref, err := who.Whoami(ctx)
	if err != nil {
		return who, err
	}
	return who, api.Client{Server: at, Token: owner}.Adjust(ctx, ref, plenty)
}

// usage returns the resource use of the nodes, and of the services if their processes are named.
func (c *localCluster) usage() (map[string]process.Usage, error) {
	all := map[string]process.Usage{}
	for _, n := range c.nodes {
		used, err := n.Usage()
		if err != nil {
			return nil, err
		}
		all[n.name] = used
	}
	if c.m.ServicePIDs == "" {
		return all, nil
	}
	files, err := os.ReadDir(c.m.ServicePIDs)
	if err != nil {
		return nil, fmt.Errorf("--service-pids: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(c.m.ServicePIDs, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("--service-pids: %w", err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return nil, fmt.Errorf("--service-pids: %s: %w", file.Name(), err)
		}
		if all[file.Name()], err = process.UsageOf(pid); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// close stops the nodes, those that accept work first, and removes their data from the services.
func (c *localCluster) close() error {
	var errs []error
	for _, n := range slices.Backward(c.nodes) {
		if _, err := n.Stop(stopWithin); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", n.name, err))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(append(errs, c.services.Remove(ctx, c.prefix, c.database()))...)
}
