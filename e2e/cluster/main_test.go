//go:build linux

package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/netns"
	"shoal.dev/shoal/testkit/synthweb"
)

// The flags. By default the suite runs as long as a commit can wait.
var (
	faultSet = flag.String("faults", "ci", "cells of the matrix: ci, all, or a share of all: "+
		"2/8 is each eighth from the second")
	faultSeed  = flag.Uint64("fault-seed", 0, "the first seed of each cell")
	faultSeeds = flag.Uint64("fault-seeds", 1, "seeds of each cell")
	troubles   = flag.Bool("troubles", false, "make each trouble that alerts have to tell")
	rollBack   = flag.Bool("roll-back", false, "roll an upgrade back before it goes through")
	outage     = flag.Duration("outage", 30*time.Second,
		"how long the row store is down where it is down for long")
	kills = flag.Int("leader-kills", 0, "leader kills of the measurement of failover; 0: "+
		"not measured")
	failover = flag.Duration("failover-p99", 0, "fail when the p99 of failover is longer; 0: "+
		"printed only")
	standStill = flag.Duration("stand-still", 30*time.Second,
		"what hosts of a lost fetcher wait at most; 15s on a machine that is not busy")
	scale   = flag.Bool("scale", false, "measure what more fetchers bring")
	results = flag.String("scale-results", "",
		"file that the measurement of scale is written to")
	servicePID = flag.String("service-pids", "", "folder of the services' pid files; measures "+
		"what a page costs every process")
	prebuilt = flag.String("binary", "", "test this binary instead of building one")
	race     = flag.Bool("race-binary", false, "build the binary with the race detector")
	keep     = flag.String("keep", "", "directory for the nodes' data instead of one "+
		"that is removed")
)

func TestMain(m *testing.M) {
	// Two small clusters keep two cores busy. Tests that affect a service, tolerate no failed call,
	// or compare hosts with the clock are not parallel.
	os.Exit(built.Main(m, 2))
}

var built suite.Built

func binary(t *testing.T) string {
	t.Helper()
	if *prebuilt != "" {
		return *prebuilt
	}
	return built.Path(t, *race)
}

// releaseBefore is a binary of the previous release, built from the repository's history.
func releaseBefore(t *testing.T) string {
	t.Helper()
	commit, err := os.ReadFile(filepath.Join("testdata", "release-before"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The first two commands read the history and unpack it. The third builds with the modules that
	// the release names.
	archive := filepath.Join(dir, "release.tar")
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		dir  string
		args []string
	}{
		{filepath.Join("..", ".."),
			[]string{"git", "archive", "--output", archive, strings.TrimSpace(string(commit))}},
		{source, []string{"tar", "-xf", archive}},
		{source, []string{"go", "build", "-o", filepath.Join(dir, "shoal"), "./cmd/shoal"}},
	} {
		cmd := exec.CommandContext(t.Context(), step.args[0], step.args[1:]...)
		cmd.Dir = step.dir
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("the release before: %v: %v\n%s", step.args, err, said)
		}
	}
	return filepath.Join(dir, "shoal")
}

// services are the real services. Without them the test is skipped, or fails where it must run.
func services(t *testing.T) cluster.Services {
	t.Helper()
	found, err := cluster.FromEnv(os.Getenv)
	if err == nil && os.Geteuid() != 0 {
		err = fmt.Errorf("network namespaces need root")
	}
	if err != nil && os.Getenv("SHOAL_CLUSTER_SUITE") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Times of test clusters are short, so that waiting for a lease or a marker is quick. But the lease
// is longer than a busy machine takes to elect another leader. A lost fetcher's shards are
// reassigned half a second after its lease.
const (
	lease       = 6 * time.Second
	fetchTime   = 3 * time.Second
	markerEvery = 500 * time.Millisecond
	settleTime  = 2 * time.Minute
	stopLimit   = 40 * time.Second
)

// newNetwork makes the network of a test's nodes and webs.
func newNetwork(t *testing.T) *netns.Network {
	t.Helper()
	services(t) // first: it decides whether the test may run
	network, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	return network
}

// newWeb starts a web where every node reaches it.
func newWeb(t *testing.T, network *netns.Network, config synthweb.Config) *synthweb.Web {
	t.Helper()
	router := network.Router()
	listener, err := router.Listen(netip.AddrPortFrom(router.Addr(), 0))
	if err != nil {
		t.Fatal(err)
	}
	web, err := synthweb.StartOn(listener, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := web.Close(); err != nil {
			t.Error(err)
		}
	})
	return web
}

// newCluster makes a cluster without starting it. The webs are the only places that it reaches.
func newCluster(t *testing.T, network *netns.Network, nodes []cluster.Spec, args []string,
	webs ...*synthweb.Web) *cluster.Cluster {
	t.Helper()
	return newClusterOn(t, network, binary(t), newPrefix(), nodes, args, webs...)
}

// newPrefix returns a prefix that no other cluster has on the services.
func newPrefix() string { return "e2e-" + suite.NewKey()[12:] + "-" }

// newClusterOn makes a cluster of a binary, under a prefix.
func newClusterOn(t *testing.T, network *netns.Network, binary, prefix string, nodes []cluster.Spec,
	args []string,
	webs ...*synthweb.Web) *cluster.Cluster {
	t.Helper()
	args = append([]string{"--no-rate-limits", "--lease", lease.String(), "--fetch-timeout",
		fetchTime.String(),
		"--marker-every", markerEvery.String(), "--egress-allow", netns.Prefix().String()}, args...)
	for _, web := range webs {
		args = append(args, "--egress-origin", web.Pattern()+"="+web.Addr())
	}
	c, err := cluster.New(suite.Within(t, settleTime),
		cluster.Config{Network: network, Binary: binary, Dir: directory(t),
			Services: services(t), Prefix: prefix, Args: args, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			tell(t, c)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// tell prints the nodes' output.
func tell(t *testing.T, c *cluster.Cluster) {
	for _, n := range c.Nodes() {
		t.Logf("== node %s (%v, %v, running: %v) said:\n%s", n.Name, n.Roles, n.Addr(), n.Running(),
			n.Said())
	}
}

// start starts all nodes and waits until the cluster has settled.
func start(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ctx := suite.Within(t, settleTime)
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Settled(ctx); err != nil {
		t.Fatal(err)
	}
}

// directory makes a new directory for a cluster.
func directory(t *testing.T) string {
	t.Helper()
	if *keep == "" {
		return t.TempDir()
	}
	dir := filepath.Join(*keep, strings.NewReplacer("/", "_", " ", "_").Replace(t.Name()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// clientOf makes a client that calls a cluster through a balancer.
func clientOf(c *cluster.Cluster, token string) suite.Client {
	return suite.Client{Server: cluster.Balanced, HTTP: c.HTTP(), Token: token}
}

// mint makes a sign-in token; args are the arguments of 'shoal token'.
func mint(ctx context.Context, c *cluster.Cluster, args ...string) (string, error) {
	return c.Command(ctx, nil, append([]string{"token"}, args...)...)
}

// withRows opens the cluster's row store.
func withRows(ctx context.Context, c *cluster.Cluster, use func(rowstore.Store) error) error {
	store, err := clickhouse.Open(ctx, clickhouse.Config{URL: c.ClickHouse()})
	if err != nil {
		return err
	}
	return errors.Join(use(store), store.Close())
}

func readRecords(ctx context.Context, c *cluster.Cluster, job string) ([]rowstore.Record, error) {
	id, err := ids.Parse(job)
	if err != nil {
		return nil, err
	}
	records := []rowstore.Record{}
	err = withRows(ctx, c, func(store rowstore.Store) error {
		return store.EachRecord(ctx, id, func(r rowstore.Record) error {
			records = append(records, r)
			return nil
		})
	})
	return records, err
}
