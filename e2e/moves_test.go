package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane"
	controlclient "shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// moveKind is a web and a run on it.
type moveKind struct {
	web   synthweb.Config
	order func(who suite.Client, web *synthweb.Web) suite.Order
}

// moveKinds are single pages and chains, with a tenth of the hosts slow.
func moveKinds() map[string]moveKind {
	chains := synthweb.Config{Seed: 11, Hosts: 60, PagesPerHost: 6, ChainPages: 12, ItemsPerPage: 3,
		PageBytes: []int{2500},
		Mix: synthweb.Mix{{Class: synthweb.Listing, Weight: 50},
			{Class: synthweb.ChangingListing, Weight: 50}},
		MaxLatency: 200 * time.Millisecond, SlowHosts: 6, SlowLatency: time.Second}
	return map[string]moveKind{
		"pages": {web: suite.Patient(60, 30),
			order: func(who suite.Client, web *synthweb.Web) suite.Order {
				return suite.ProductOrder(who, slices.Collect(web.URLs(60*30)))
			}},
		"chains": {web: chains, order: func(who suite.Client, web *synthweb.Web) suite.Order {
			return suite.ListingOrder(who, slices.Collect(web.URLs(60*6)), suite.NextLink())
		}},
	}
}

// fleet is a cluster in which fetchers come and go.
type fleet struct {
	*cluster
	t        *testing.T
	operator suite.Client
}

// movePace makes a run long enough for everything that happens in it.
var movePace = fetcher.Pace{Rate: 1, Connections: 2}

func newFleet(t *testing.T, web *synthweb.Web) *fleet {
	t.Helper()
	c := newCluster(t, web, 1, func(settings *controlplane.Config, config *fetcher.Config) {
		settings.HostRate, settings.MaxHostRate = movePace.Rate, movePace.Rate
		config.Pace, config.MaxPace = movePace, movePace
	})
	c.fill(t, suite.Plenty)
	return &fleet{cluster: c, t: t, operator: c.admin(t)}
}

// join starts a fetcher; stop stops it cleanly.
func (f *fleet) join(name string, capacity uint32) (stop func()) {
	f.t.Helper()
	config := f.fetcher
	config.Node, config.Boot = name, config.IDs.New()
	_, err := controlclient.Do(f.t.Context(), f.control,
		controlclient.RegisterNode{Name: name, Boot: config.Boot, Capacity: capacity,
			Roles: []string{"fetcher"}}, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- fetcher.New(config).Run(ctx) }()
	ran := false
	stop = func() {
		if ran {
			return
		}
		ran = true
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	}
	f.t.Cleanup(stop)
	return stop
}

// await waits until ok accepts the nodes.
func (f *fleet) await(what string, ok func(nodes map[string]suite.Node) bool) {
	f.t.Helper()
	began, ctx := time.Now(), suite.Within(f.t, suite.Patience)
	for {
		byName := map[string]suite.Node{}
		for _, n := range suite.Must(f.operator.Nodes(ctx))(f.t) {
			byName[n.Name] = n
		}
		if ok(byName) {
			f.t.Logf("%s after %v", what, time.Since(began).Round(time.Millisecond))
			return
		}
		select {
		case <-ctx.Done():
			f.t.Fatalf("never %s: %+v", what, byName)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// settled says that all shards have owners and none is moving.
func settled(nodes map[string]suite.Node) bool {
	shards, moving := 0, 0
	for _, n := range nodes {
		shards += n.Shards
		moving += n.Moving
	}
	return shards == 64 && moving == 0
}

// TestPlannedMovesFetchNothingTwice lets fetchers join, gain weight, drain, return and stop in the
// middle of a run. Every page must be requested once.
func TestPlannedMovesFetchNothingTwice(t *testing.T) {
	t.Parallel()
	for name, kind := range moveKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := newWeb(t, kind.web)
			f := newFleet(t, web)
			o := kind.order(f.Client, web)
			run := o.Launch(t)
			suite.Begun(t, f.Client, run, 50)

			stopF1 := f.join("f1", 2)
			f.await("f1 has its share",
				func(n map[string]suite.Node) bool { return settled(n) && n["f1"].Shards > 32 })
			stopF2 := f.join("f2", 1)
			f.await("f2 has some", func(n map[string]suite.Node) bool { return n["f2"].Shards > 0 })
			f.drain(clusterNode, true)
			f.await("the first has drained",
				func(n map[string]suite.Node) bool { return n[clusterNode].State == "DRAINED" })
			f.await("settled", settled)
			f.drain(clusterNode, false)
			f.await("the first is back",
				func(n map[string]suite.Node) bool { return n[clusterNode].Shards > 0 })

			stopF1() // with a new weight
			stopF1 = f.join("f1", 5)
			f.await("f1 has more",
				func(n map[string]suite.Node) bool { return settled(n) && n["f1"].Shards > 36 })
			stopF2()
			f.await("f2 has left",
				func(n map[string]suite.Node) bool { return settled(n) && n["f2"].State == "LEFT" })
			f.drain(clusterNode, true)
			stopF1()
			f.await("nobody fetches",
				func(n map[string]suite.Node) bool {
					return n["f1"].Shards+
						n[clusterNode].Shards == 0
				})
			if job := suite.Must(f.Job(t.Context(), run))(t); job.State != "RUNNING" {
				t.Fatalf("the run is %s before everything has happened", job.State)
			}
			f.drain(clusterNode, false)
			f.finish(o, run, web)
		})
	}
}

func (f *fleet) drain(name string, drain bool) {
	f.t.Helper()
	if err := f.operator.Drain(f.t.Context(), name, drain); err != nil {
		f.t.Fatal(err)
	}
}

// finish waits for the run's end and makes the recount.
func (f *fleet) finish(o suite.Order, run suite.Launched, web *synthweb.Web) {
	t := f.t
	t.Helper()
	reported := suite.Must(f.Report(suite.Within(t, suite.Patience), run))(t)
	for _, failed := range reported.Errors {
		if strings.Contains(failed.Error, "attempts") {
			t.Errorf("given up: %+v", failed)
		}
	}
	suite.CheckWallet(t, f.Client)
	if err := f.cluster.stop(); err != nil {
		t.Fatal(err)
	}
	reported.Records = suite.Must(readRecords(t.Context(), f.data, run.JobID))(t)
	// Redirects may lead the two other fetchers to a host that is not theirs.
	t.Log(suite.Check(t, recount.Run{Web: web, URLs: o.URLs, Pagination: o.Pagination,
		Price: suite.PlainPrice, Free: suite.FreeGrant,
		MaxConnections: movePace.Connections + 2}, reported))
}
