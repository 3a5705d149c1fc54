package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// points are the named places at which the product can be killed: before and after each step that
// makes something durable or passes it on.
var points = []string{
	"leader.before_extend", "leader.after_extend", "leader.before_publish", "leader.after_publish",
	"leader.before_marker", "leader.after_marker", "leader.before_redispatch",
	"leader.after_redispatch",
	"leader.before_seal", "leader.before_close", "leader.after_close",
	"leader.before_archive", "leader.after_archive", "leader.after_drop_archived",
	"leader.before_audit", "leader.after_audit", "leader.after_drop_audit",
	"raft.before_apply", "raft.after_apply", "raft.before_snapshot", "raft.after_snapshot",
	"rowstore.before_commit", "rowstore.after_commit", "rowstore.list_before_finish",
	"rowstore.list_after_finish",
	"fetcher.after_fetch", "fetcher.before_publish", "fetcher.after_publish",
	"ingest.before_store", "ingest.after_store", "ingest.after_publish", "ingest.after_commit",
	"billing.before_settle", "billing.after_settle", "billing.after_commit",
}

// crashPoints returns the points of the tested row store.
func crashPoints() []string {
	if *onServer == "" {
		return points
	}
	var all []string
	for _, point := range points {
		all = append(all, storePoint(point))
	}
	return append(all, "rowstore.after_fence", "rowstore.between_past",
		"rowstore.switch_before_drain", "rowstore.switch_after_drain")
}

// mayMiss is how many points need not kill in a run of the suite. How often a run passes a point
// varies a little.
const mayMiss = 3

// afterDeath matches points that a process passes at once if it finds what a dead one left, and
// hardly ever in a short run otherwise.
func afterDeath(point string) bool {
	return strings.HasSuffix(point, "_redispatch") || strings.HasSuffix(point, "_marker")
}

// isLate says whether a case is killed in a second process, which begins in the middle of the run.
// What that archives is the run.
func (c *crashCase) isLate(point string) bool {
	archives := strings.Contains(point, "archive") || strings.HasSuffix(point, "_past")
	return afterDeath(point) || c.leaves && archives
}

// share returns which of a test's places a run kills at: all, or the share in CRASH_SHARE. 2/3 is
// every third from the second.
func share[P any](t *testing.T, places []P) []P {
	t.Helper()
	first, each := 1, 1
	if set := os.Getenv("CRASH_SHARE"); set != "" {
		if n, err := fmt.Sscanf(set, "%d/%d", &first, &each); n != 2 || first < 1 || each < first {
			t.Fatalf("CRASH_SHARE is a share like 2/3, not %q: %v", set, err)
		}
	}
	var due []P
	for at := first - 1; at < len(places); at += each {
		due = append(due, places[at])
	}
	return due
}

// crashHosts is small, so that most pages of a run are still pending when a kill comes.
const crashHosts = 20

// crashCase is one run with a kill.
type crashCase struct {
	*service
	random *rand.Rand
	order  suite.Order
	seed   uint64
	leaves bool     // its run leaves the state
	next   []string // environments of the next processes
}

// crashWeb is a web of about 200 pages: single ones or chains, with changing ones in both.
func crashWeb(seed uint64) (synthweb.Config, int) {
	config := synthweb.Config{Seed: seed, Hosts: crashHosts, PageBytes: []int{2500},
		MaxLatency: 40 * time.Millisecond}
	if seed%2 == 0 {
		config.PagesPerHost = 10
		config.Mix = synthweb.Mix{{Class: synthweb.Product, Weight: 70},
			{Class: synthweb.Changing, Weight: 20},
			{Class: synthweb.Redirect, Weight: 4}, {Class: synthweb.NotFound, Weight: 4},
			{Class: synthweb.Empty, Weight: 2}}
		return config, 200
	}
	config.PagesPerHost, config.ChainPages, config.ItemsPerPage = 2, 12, 3
	config.Mix = synthweb.Mix{{Class: synthweb.Listing, Weight: 50},
		{Class: synthweb.ChangingListing, Weight: 40},
		{Class: synthweb.BrokenListing, Weight: 10}}
	return config, 40
}

func newCrashCase(t *testing.T, seed uint64) *crashCase {
	t.Helper()
	config, links := crashWeb(seed)
	web := newWeb(t, config)
	keep := int(seed / 2 % 2) // both with each web
	args := slices.Concat(suite.Fast(), suite.AtOnce(keep),
		[]string{"--no-rate-limits", "--raft-snapshot-entries", "10"})
	s := &service{single: newSingle(t, args, web)}
	s.Service = &suite.Service{T: t, Product: s.single, Web: web, Args: args}
	c := &crashCase{service: s, seed: seed, random: rand.New(rand.NewPCG(seed, 1)),
		leaves: keep == 0}
	urls := slices.Collect(web.URLs(links))
	if seed%2 == 0 {
		c.order = suite.ProductOrder(suite.Client{}, urls)
	} else {
		c.order = suite.ListingOrder(suite.Client{}, urls, suite.NextLink())
	}
	return c
}

// bring starts a process, and restarts it as long as it dies during the start.
func (c *crashCase) bring(env ...string) {
	c.T.Helper()
	for tries := 0; ; tries++ {
		p := c.launch(c.T, env...)
		err := p.Ready(suite.Within(c.T, suite.ReadyWithin))
		if err == nil {
			break
		}
		if tries > 2 || !c.buried() {
			c.T.Fatal(err)
		}
		env = nil
	}
	c.Client = suite.Client{Server: c.p.Server(), Token: c.p.Key()}
	c.order.Who = c.Client
}

// buried records the death of a process that killed itself; false if it is alive, or ended in
// another way.
func (c *crashCase) buried() bool {
	c.T.Helper()
	select {
	case <-c.p.Ended():
	// a dying process closes its connections before it is seen dead
	case <-time.After(3 * time.Second):
		return false
	}
	if !c.p.Killed() {
		c.T.Fatalf("the process ended by itself:\n%s", c.p.Said())
	}
	c.Deaths = append(c.Deaths, c.p.Died())
	return true
}

// survive repeats calls until they succeed, with a new process for each that dies.
func (c *crashCase) survive(what string, calls func(ctx context.Context) error) {
	c.T.Helper()
	for {
		err := calls(suite.Within(c.T, suite.Patience))
		if err == nil {
			return
		}
		if !c.buried() {
			c.T.Fatalf("%s: %v", what, err)
		}
		var env []string
		if len(c.next) > 0 {
			env, c.next = c.next[:1], c.next[1:]
		}
		c.bring(env...)
	}
}

// work does what a user does: fill the wallet, launch, wait for the end, read everything. Each call
// has one idempotency key over all its tries.
func (c *crashCase) work(onBegun func()) recount.Reported {
	c.T.Helper()
	key, name := suite.NewKey(), "run"
	var group string
	var run suite.Launched
	c.survive("wallet", func(ctx context.Context) error {
		ref, err := c.Whoami(ctx)
		if err != nil {
			return err
		}
		token, err := c.p.Command(ctx, "token", "--admin")
		if err != nil {
			return err
		}
		return suite.Client{Server: c.Server, Token: token}.Again(key).Adjust(ctx, ref,
			suite.Plenty)
	})
	c.survive("launch", func(ctx context.Context) (err error) {
		if group, err = c.Again(key).PutGroup(ctx, name); err != nil {
			return err
		}
		query, err := c.order.ListQuery(ctx, c.Again(key), group, name)
		if err != nil {
			return err
		}
		run, err = c.Again(key).RunList(ctx, query,
			strings.NewReader(strings.Join(c.order.URLs, "\n")))
		return err
	})
	if run.LinksQueued != len(c.order.URLs) {
		c.T.Fatalf("%d addresses, and %+v", len(c.order.URLs), run)
	}
	if onBegun != nil {
		suite.Must(c.Follow(suite.Within(c.T, suite.Patience), run.JobID,
			func(p suite.Progress) bool { return p.TotalRequests >= 20 }))(c.T)
		onBegun()
	}
	var reported recount.Reported
	c.survive("run", func(ctx context.Context) (err error) {
		reported, err = c.Report(ctx, run)
		if c.leaves && err == nil {
			if err = c.Archived(ctx); err == nil { // then read all of it from the archive
				reported, err = c.Report(ctx, run)
			}
		}
		return err
	})
	return reported
}

// verify checks the books, stops the process and makes the recount. The process may still reach its
// point.
func (c *crashCase) verify(reported recount.Reported) recount.Summary {
	c.T.Helper()
	c.survive("books", func(ctx context.Context) error {
		wallet, err := c.Wallet(ctx)
		if err != nil {
			return err
		}
		ledger, err := c.Ledger(ctx)
		if err != nil {
			return err
		}
		if err := recount.CheckWallet(wallet, ledger); err != nil {
			c.T.Error(err)
		}
		runs, differ, err := c.Admin().RecountOfProduct(ctx)
		if err == nil && (runs != 1 || differ > 0) {
			c.T.Errorf("the product's own recount: %d of %d runs differ", differ, runs)
		}
		return err
	})
	_, err := c.p.Stop(suite.StopLimit)
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && c.p.Killed() {
		c.Deaths = append(c.Deaths, c.p.Died())
	} else if err != nil {
		c.T.Fatal(err)
	}
	reported.Records = suite.Must(c.Records(c.T.Context(), reported.Job.ID))(c.T)
	return suite.Check(c.T, c.Expected(c.order), reported)
}

// TestCrashes kills the process at each point, several times by seed. Every run must still be
// exact.
func TestCrashes(t *testing.T) {
	t.Parallel()
	points := crashPoints()
	passes := [2]map[string][]int{calibrate(t, 0), calibrate(t, 1)}
	for _, point := range points {
		if passes[0][point] == nil && passes[1][point] == nil && !afterDeath(point) {
			t.Errorf("%s is killed at and never passed", point)
		}
	}
	var mu sync.Mutex
	fired := map[string]int{}
	t.Run("at", func(t *testing.T) {
		for i, point := range points {
			// Neighbours are killed in different webs, and every third is killed twice.
			first := uint64(i)
			if passes[first%2][point] == nil {
				first++ // only the other web passes it
			}
			for n := range uint64(*seeds) {
				seed := first + n
				t.Run(fmt.Sprintf("%s/%d", point, seed), func(t *testing.T) {
					t.Parallel()
					if crashAt(t, point, seed, passes[seed%2][point]) {
						mu.Lock()
						fired[point]++
						mu.Unlock()
					}
				})
			}
		}
	})
	for _, point := range points {
		t.Logf("%-28s fired %d of %d times", point, fired[point], *seeds)
	}
	if want := len(points) - mayMiss; len(fired) < want {
		t.Errorf("only %d points fired, want %d", len(fired), want)
	}
}

// crashAt runs one case and says whether the point killed. passes are how often a complete run
// passes it: until it serves, and in total.
func crashAt(t *testing.T, point string, seed uint64, passes []int) bool {
	c := newCrashCase(t, seed)
	n := 1
	if len(passes) == 2 {
		before, during := passes[0], passes[1]-passes[0]
		if during > 0 {
			// Avoid the last passes: their number varies a little from run to run.
			n = before + 1 + c.random.IntN(max(1, during*4/5))
		} else {
			n = 1 + c.random.IntN(passes[1])
		}
	}
	at := fmt.Sprintf("%s=%s:%d", crash.At, point, n)
	if points := crashPoints(); seed%3 == 2 { // kill the next process, too, anywhere
		c.next = []string{fmt.Sprintf("%s=%s:%d", crash.At, points[c.random.IntN(len(points))],
			1+c.random.IntN(5))}
	}
	var reported recount.Reported
	if c.isLate(point) {
		c.bring()
		reported = c.work(func() {
			c.kill()
			c.bring(fmt.Sprintf("%s=%s", crash.At, point))
		})
	} else {
		c.bring(at)
		reported = c.work(nil)
	}
	sum := c.verify(reported)
	killed := len(c.Deaths) > 0
	if c.isLate(point) {
		killed = len(c.Deaths) > 1
	}
	t.Logf("%s killed: %v, %d deaths; %v", at, killed, len(c.Deaths), sum)
	return killed
}

// calibrate counts how often a run without a kill passes each point, until it serves and in total.
func calibrate(t *testing.T, seed uint64) map[string][]int {
	c := newCrashCase(t, seed)
	trace := filepath.Join(t.TempDir(), "points")
	c.bring(crash.Trace + "=" + trace)
	ready := countLines(t, trace)
	reported := c.work(nil)
	all := countLines(t, trace)
	c.verify(reported)
	passes := map[string][]int{}
	for point, n := range all {
		passes[point] = []int{ready[point], n}
	}
	for _, point := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(crashPoints(), point) && !strings.HasPrefix(point, "work.") {
			t.Errorf("%s is passed and never killed at", point)
		}
	}
	return passes
}

func countLines(t *testing.T, path string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for line := range strings.Lines(string(suite.Must(os.ReadFile(path))(t))) {
		counts[strings.TrimSpace(line)]++
	}
	return counts
}

// TestRefetchesAreBounded kills twice in a run whose hosts have a slow pace. No more pages can be
// fetched again than were out.
func TestRefetchesAreBounded(t *testing.T) {
	t.Parallel()
	const hosts, rate, out = 4, 4, 2 * 4 // links of a host that are out: two seconds of its pace
	web := newWeb(t, synthweb.Config{Hosts: hosts, PagesPerHost: 50, PageBytes: []int{2500},
		MinLatency: 300 * time.Millisecond, MaxLatency: 500 * time.Millisecond})
	s := newService(t, web, "--host-rate", fmt.Sprint(rate), "--no-rate-limits")
	s.Fill(s.Client, suite.Plenty)
	o := suite.ProductOrder(s.Client, slices.Collect(web.URLs(200)))
	run := o.Launch(t)
	for _, pages := range []int64{30, 60} {
		suite.Begun(t, s.Client, run, pages)
		s.kill()
		s.start()
	}
	reported := suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
	reported = s.WithRecords(reported)
	expected := s.Expected(o)
	expected.MaxRefetched = hosts * out
	t.Log(suite.Check(t, expected, reported))
}
