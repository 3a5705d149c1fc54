//go:build linux

package cluster

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestHostsOfALostFetcherMove kills one of two fetchers in the middle of a run. The other soon
// requests its hosts, at the same pace, and the run is exact.
func TestHostsOfALostFetcherMove(t *testing.T) {
	on := spread{newNetwork(t)}
	web := on.Web(t, synthweb.Config{Seed: 18, Hosts: 30, PagesPerHost: 120, PageBytes: []int{3000},
		MaxLatency: 200 * time.Millisecond})
	s := suite.NewService(t, on, web, "--lease", "10s", "--fetch-timeout", "60s", "--host-rate",
		"4", "--max-host-rate", "4")
	c := s.Product.(*product).Cluster
	s.Fill(s.Client, suite.Plenty)
	o := suite.ProductOrder(s.Client, slices.Collect(web.URLs(30*120)))
	run := o.Launch(t)
	suite.Begun(t, s.Client, run, 600)

	lost := c.With(cluster.Fetcher)[0]
	lost.Kill()
	killed := time.Now()
	reported := suite.Must(s.Report(suite.Within(t, settleTime), run))(t)

	waits := movesFrom(web, lost.Addr(), killed)
	if len(waits) == 0 {
		t.Fatal("the fetcher that was killed had no host")
	}
	slices.Sort(waits)
	longest := waits[len(waits)-1]
	t.Logf("%d hosts stood still for %v to %v: %v", len(waits), waits[0].Round(time.Millisecond),
		longest.Round(time.Millisecond), waits)
	if longest > *standStill {
		t.Errorf("a host stood still for %v, at most %v", longest, *standStill)
	}
	for _, n := range suite.Must(s.Admin().Nodes(t.Context()))(t) {
		if n.Name == lost.Name && n.State != "FAILED" || n.Name != lost.Name &&
			n.State == "FAILED" {
			t.Errorf("node %s is told to be %s", n.Name, n.State)
		}
	}
	suite.CheckWallet(t, s.Client)
	s.CheckBooks()
	want := s.Expected(o)
	want.Lost, want.MaxRefetched, want.MinGap = []netip.Addr{lost.Addr()}, mostInFlight,
		time.Second/4/2
	t.Log(suite.Check(t, want, s.WithRecords(reported)))
}

// movesFrom returns how long each host of a lost client waited for another client's request.
func movesFrom(web *synthweb.Web, lost netip.Addr, at time.Time) []time.Duration {
	owner, moved := map[string]netip.Addr{}, map[string]time.Duration{}
	for r := range web.Requests() {
		switch {
		case r.Followed: // whoever followed the redirect
		case r.Start.Before(at):
			owner[r.Host] = r.From
		case owner[r.Host] == lost && r.From != lost && moved[r.Host] == 0:
			moved[r.Host] = r.Start.Sub(at)
		}
	}
	waits := make([]time.Duration, 0, len(moved))
	for _, wait := range moved {
		waits = append(waits, wait)
	}
	return waits
}
