//go:build linux

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// The measurement of scale. A fetcher's requests in flight are limited, so the web's latency bounds
// its pace, not what the machine has left.
const (
	scaleWorkers  = 8
	scaleLatency  = 100 * time.Millisecond
	scaleHosts    = 800  // per fetcher, so that shards have about the same weight
	scalePerNode  = 2400 // pages in a run, per fetcher
	mostEfficient = 0.95
)

// ladder is a series of runs on more and more fetchers.
type ladder struct {
	workers  int // most requests of a fetcher in flight
	fetchers []int
	pages    int // of a run, per fetcher
	what     string
}

// ladders are the measured series: one whose fetchers use almost nothing of the machine, and one
// that fills it.
func ladders() []ladder {
	return []ladder{
		{workers: scaleWorkers, fetchers: []int{1, 2, 4, 8}, pages: scalePerNode,
			what: "Bound by latency"},
		{workers: 8 * scaleWorkers, fetchers: []int{1, 2, 3, 4, 6}, pages: 7 * scalePerNode,
			what: "Until the cores are full"},
	}
}

// pace is the request rate for the hosts of a run.
type pace struct {
	hosts int
	rate  float64 // request starts per second and host
}

// unbound is a pace that is never the limit.
func unbound(fetchers int) pace { return pace{hosts: scaleHosts * fetchers, rate: 1000} }

// TestScale measures the effect of more fetchers.
func TestScale(t *testing.T) {
	if !*scale {
		t.Skip("by -scale (make cluster-scale)")
	}
	var report strings.Builder
	fmt.Fprintf(&report, "# What more fetchers bring\n\n`make cluster-scale`, %d cores for "+
		"everything: nodes, Kafka, "+
		"ClickHouse, Redis and the synthetic web, which answers after %v. Columns of cores: the "+
		"busiest fetcher, all fetchers, "+
		"the other nodes, the web, and the services with the rest of the machine.\n",
		runtime.NumCPU(), scaleLatency)
	for _, l := range ladders() {
		l.climb(t, &report)
	}
	t.Log("\n" + report.String())
	if *results == "" {
		return
	}
	if err := os.WriteFile(*results, []byte(report.String()), 0o600); err != nil {
		t.Error(err)
	}
}

// climb measures every step and reports it.
func (l ladder) climb(t *testing.T, report *strings.Builder) {
	t.Helper()
	fmt.Fprintf(report,
		"\n## %s\n\n%d requests under way per fetcher: at most %d pages/s each.\n\n", l.what,
		l.workers,
		l.workers*int(time.Second/scaleLatency))
	fmt.Fprintln(report, "| fetchers | pages/s | efficiency | fetched twice | busiest | "+
		"fetchers | nodes | web | services | busy |")
	fmt.Fprintln(report, "|---|---|---|---|---|---|---|---|---|---|")
	var one float64 // pages per second and fetcher, on the first step
	for _, n := range l.fetchers {
		t.Run(fmt.Sprintf("%d/%d", l.workers, n), func(t *testing.T) {
			m := l.measure(t, n)
			one = cmp.Or(one, m.rate/float64(n))
			efficiency := m.rate / one / float64(n)
			fmt.Fprintf(report, "| %d | %.0f | %.2f | %d | %.2f | %.2f | %.2f | %.2f | %.2f "+
				"| %.0f%% |\n", n, m.rate, efficiency,
				m.twice, m.busiest, m.fetchers, m.others, m.web, m.rest, 100*m.busy)
			if efficiency < mostEfficient {
				t.Logf("the efficiency is %.2f; below %.2f the machine has to be full", efficiency,
					mostEfficient)
			}
		})
	}
}

type measured struct {
	rate  float64 // pages per second, from the first tenth of the run to its last
	twice int     // pages fetched more than once
	// Mean number of busy cores. These are of the busiest fetcher, all fetchers, the other nodes,
	// the web (this process), and the rest of the machine.
	busiest, fetchers, others, web, rest float64
	busy                                 float64 // share of the machine's cores
}

// measure makes one run on that many fetchers.
func (l ladder) measure(t *testing.T, fetchers int) measured {
	t.Helper()
	s := newScaleRun(t, fetchers, l.workers, l.pages*fetchers, unbound(fetchers))
	here := func() time.Duration { return suite.Must(process.UsageOf(os.Getpid()))(t).CPU }
	before, web, idle := usage(t, s.c), here(), idleTime(t)
	begin := time.Now()
	s.launch()
	s.finish()
	took := time.Since(begin)
	after := usage(t, s.c)
	m := measured{web: (here() - web).Seconds() / took.Seconds(),
		busy: 1 - (idleTime(t)-idle).Seconds()/took.Seconds()/float64(runtime.NumCPU())}
	m.rate, m.twice = s.rate(), s.twice()
	for name, u := range after {
		cores := (u.CPU - before[name].CPU).Seconds() / took.Seconds()
		if strings.HasPrefix(name, "fetch") {
			m.fetchers += cores
			m.busiest = max(m.busiest, cores)
		} else {
			m.others += cores
		}
	}
	m.rest = max(m.busy*float64(runtime.NumCPU())-m.fetchers-m.others-m.web, 0)
	if m.twice > 0 {
		t.Errorf("%d pages were fetched twice", m.twice)
	}
	return m
}

func usage(t *testing.T, c *cluster.Cluster) map[string]process.Usage {
	t.Helper()
	all := map[string]process.Usage{}
	for _, n := range c.Nodes() {
		all[n.Name] = suite.Must(n.Usage())(t)
	}
	return all
}

// idleTime is how long the machine's cores have been idle, in total.
func idleTime(t *testing.T) time.Duration {
	t.Helper()
	text := string(suite.Must(os.ReadFile("/proc/uptime"))(t))
	idle := suite.Must(strconv.ParseFloat(strings.Fields(text)[1], 64))(t)
	return time.Duration(idle * float64(time.Second))
}

// scaleRun is one long run on a cluster.
type scaleRun struct {
	t   *testing.T
	c   *cluster.Cluster
	web *synthweb.Web
	who suite.Client
	o   suite.Order
	run suite.Launched
	ctx context.Context
}

func newScaleRun(t *testing.T, fetchers, workers, links int, p pace) *scaleRun {
	t.Helper()
	network := newNetwork(t)
	web := newWeb(t, network, synthweb.Config{Hosts: p.hosts,
		PagesPerHost: (links + p.hosts - 1) / p.hosts,
		PageBytes:    []int{3000}, MinLatency: scaleLatency, MaxLatency: scaleLatency})
	rate := fmt.Sprint(p.rate)
	c := newCluster(t, network, cluster.Layout(1, fetchers, 1, 1, 1),
		[]string{"--host-rate", rate, "--max-host-rate", rate,
			"--host-connections", "4", "--max-host-connections", "4", "--fetch-workers",
			fmt.Sprint(workers)}, web)
	start(t, c)
	s := &scaleRun{t: t, c: c, web: web, ctx: suite.Within(t, 2*aboutGoal)}
	s.who = clientOf(c, suite.Must(mint(s.ctx, c, "--customer", "scale"))(t))
	admin := clientOf(c, suite.Must(mint(s.ctx, c, "--admin"))(t))
	if err := admin.Adjust(s.ctx, suite.Must(s.who.Whoami(s.ctx))(t), suite.Plenty); err != nil {
		t.Fatal(err)
	}
	s.o = suite.ProductOrder(s.who, slices.Collect(web.URLs(links)))
	return s
}

func (s *scaleRun) launch() {
	s.t.Helper()
	s.run = s.o.Launch(s.t)
}

// begun waits until a share of the pages has ended.
func (s *scaleRun) begun(share float64) {
	s.t.Helper()
	j := &job{name: "run", who: s.who, run: s.run}
	if err := j.far(s.ctx, int64(share*float64(len(s.o.URLs)))); err != nil {
		s.t.Fatal(err)
	}
}

// finish waits for the run's end.
func (s *scaleRun) finish() {
	s.t.Helper()
	record, _, err := s.who.Finished(s.ctx, s.run)
	if err != nil || record.State != string(model.Completed) ||
		record.SuccessLinks != int64(len(s.o.URLs)) {
		s.t.Fatalf("%+v, %v", record, err)
	}
}

// twice counts pages that were requested more than once.
func (s *scaleRun) twice() (n int) {
	s.t.Helper()
	for _, asked := range suite.Must(s.web.Recount())(s.t).URLs {
		if asked.Requests > 1 {
			n++
		}
	}
	return n
}

// rate is the requests per second between the first tenth of the run and its last.
func (s *scaleRun) rate() float64 {
	s.t.Helper()
	var starts []time.Time
	for r := range s.web.Requests() {
		if !r.Robots {
			starts = append(starts, r.Start)
		}
	}
	from, to := len(starts)/10, len(starts)*9/10
	return float64(to-from) / starts[to].Sub(starts[from]).Seconds()
}

// exact makes the recount. No page may have been fetched twice, and no host requested too soon.
func (s *scaleRun) exact(gap time.Duration) {
	s.t.Helper()
	reported := suite.Must(s.who.Report(s.ctx, s.run))(s.t)
	s.t.Log(suite.Check(s.t, recount.Run{Web: s.web, URLs: s.o.URLs, Price: suite.PlainPrice,
		Free:   suite.FreeGrant,
		MinGap: gap}, reported))
}

// TestPlannedMoves lets fetchers join, drain and leave in the middle of a run. Nothing is fetched
// twice, and no host notices that its fetcher changes.
func TestPlannedMoves(t *testing.T) {
	polite := pace{hosts: 60, rate: 4}
	s := newScaleRun(t, 2, scaleWorkers, 3*scalePerNode, polite)
	s.launch()
	s.begun(0.1)
	joined := suite.Must(s.c.Add(s.ctx,
		cluster.Spec{Name: "fetch9", Roles: []string{cluster.Fetcher}}))(t)
	if err := joined.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.c.Settled(s.ctx); err != nil {
		t.Fatal(err)
	}
	first, second := s.c.With(cluster.Fetcher)[0], s.c.With(cluster.Fetcher)[1]
	if _, err := s.operator("fetcher", "drain", first.Name, "--wait"); err != nil {
		t.Fatal(err)
	}
	s.begun(0.5)
	if err := second.Stop(stopLimit); err != nil { // a clean stop also hands over
		t.Fatal(err)
	}
	s.finish()
	// a delayed request start makes the gap look shorter
	s.exact(time.Duration(float64(time.Second) / polite.rate / 2))
}

// operator runs a command as the cluster's operator.
func (s *scaleRun) operator(args ...string) (string, error) {
	return s.c.Command(s.ctx, []string{"SHOAL_SERVER=" + s.c.With(cluster.APIServer)[0].Server()},
		args...)
}

// TestStalledRowStore freezes the row store past the lease in the middle of a run.
func TestStalledRowStore(t *testing.T) {
	s := newScaleRun(t, 2, scaleWorkers, scalePerNode, unbound(2))
	s.launch()
	s.begun(0.2)
	if err := s.c.Services().Pause(s.ctx, cluster.ClickHouse); err != nil {
		t.Fatal(err)
	}
	<-time.After(pastLease)
	if err := s.c.Services().Resume(s.ctx, cluster.ClickHouse); err != nil {
		t.Fatal(err)
	}
	s.finish()
	s.exact(0)
}
