//go:build linux

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// cell is one fault on one target under one load: a cluster with runs in progress.
type cell struct {
	*ground
	t      *testing.T
	ctx    context.Context
	random *rand.Rand
	jobs   []*job
	admin  suite.Client

	target string        // role of a control-plane node, another role, or a service
	victim *cluster.Node // nil if the target is a service
}

// ground is where cells run: one cluster, and the loads for it, one after the other.
type ground struct {
	*cluster.Cluster
	loads [][]*job
	runs  int // runs made so far
}

// newGround starts a cluster for the loads of the seeds.
func newGround(t *testing.T, change func([]cluster.Spec), seeds ...uint64) *ground {
	t.Helper()
	network, g := newNetwork(t), &ground{}
	var webs []*synthweb.Web
	for i, seed := range seeds {
		jobs := newJobs(t, network, fmt.Sprint(i), seed)
		g.loads, webs = append(g.loads, jobs), append(webs, websOf(jobs)...)
	}
	nodes := cluster.Layout(3, 2, 2, 2, 2)
	if change != nil {
		change(nodes)
	}
	g.Cluster = newCluster(t, network, nodes, loadArgs(), webs...)
	start(t, g.Cluster)
	return g
}

// newCell starts the ground's next load, and returns once every run has begun.
func (g *ground) newCell(t *testing.T, target string, seed uint64) *cell {
	t.Helper()
	jobs := g.loads[0]
	g.loads = g.loads[1:]
	g.runs += len(jobs)
	c := &cell{ground: g, t: t, random: rand.New(rand.NewPCG(seed, 2)), jobs: jobs, target: target,
		ctx: suite.Within(t, aboutGoal+*outage)}
	c.must(c.Settled(c.ctx)) // the previous fault may just be over
	c.admin = clientOf(c.Cluster, suite.Must(mint(c.ctx, c.Cluster, "--admin"))(t))
	c.must(eachJob(jobs, func(j *job) error { return j.launch(c.ctx, c.Cluster, c.admin) }))
	// The seed decides where in the runs the fault strikes.
	pages := 8 + c.random.Int64N(30)
	c.must(eachJob(jobs, func(j *job) error { return j.far(c.ctx, pages) }))
	return c
}

func (c *cell) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// aim chooses the victim among the nodes of the target's role.
func (c *cell) aim() {
	c.t.Helper()
	switch c.target {
	case leader, follower:
		leads := suite.Must(c.Leader(c.ctx))(c.t)
		c.victim = leads
		if c.target == follower {
			others := slices.DeleteFunc(c.With(cluster.ControlPlane),
				func(n *cluster.Node) bool { return n == leads })
			c.victim = others[c.random.IntN(len(others))]
		}
	case cluster.Kafka, cluster.Redis, cluster.ClickHouse:
	default:
		nodes := c.With(c.target)
		c.victim = nodes[c.random.IntN(len(nodes))]
	}
}

// hold lets a fault last. The time is part of the fault: there is no event to wait for.
func (c *cell) hold(d time.Duration) {
	c.t.Helper()
	select {
	case <-c.ctx.Done():
		c.t.Fatal(c.ctx.Err())
	case <-time.After(d):
	}
}

// run applies the fault while the customers work, and requires everything to be exact afterwards.
func (c *cell) run(f fault) {
	c.t.Helper()
	lived := make(chan error, 1)
	go func() { lived <- eachJob(c.jobs, func(j *job) error { return j.live(c.ctx) }) }()
	c.aim()
	begin := time.Now()
	f.strike(c)
	struck := time.Since(begin)
	c.must(c.Ready(c.ctx))
	c.must(<-lived)
	ended := time.Since(begin)
	expected := recount.Run{}
	switch {
	case f.repeats == anything:
		expected.Lossy = true
	case f.repeats == ofLapse:
		for _, n := range c.With(cluster.Fetcher) {
			expected.Lost = append(expected.Lost, n.Addr())
		}
		expected.MaxRefetched = mostLapsed
	case f.repeats == ofVictim && c.victim != nil:
		expected.Lost = []netip.Addr{c.victim.Addr()}
		expected.MaxRefetched = mostInFlight
	}
	refetched := 0
	for _, j := range c.jobs {
		if j.name != "rough" && j.name != "chains" {
			expected.MinGap = minGap
		}
		sum, err := j.verify(c.ctx, c.Cluster, expected)
		if err != nil {
			c.t.Error(err)
		}
		refetched += sum.Refetched
		c.t.Logf("%-8s %v", j.name, sum)
	}
	c.must(c.books())
	c.must(c.SameState(c.ctx))
	c.t.Logf("fault of %v, runs ended after %v, %d pages fetched again",
		struck.Round(time.Millisecond),
		ended.Round(time.Millisecond), refetched)
}

// books asks the product for its own recount.
func (c *cell) books() error {
	var runs, differ int
	err := again(c.ctx, "recount of the product", func(ctx context.Context) (err error) {
		runs, differ, err = c.admin.RecountOfProduct(ctx)
		return err
	})
	if err == nil && (runs != c.runs || differ > 0) {
		err = fmt.Errorf("the product's own recount: %d of %d runs differ", differ, runs)
	}
	return err
}
