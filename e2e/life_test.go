package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/testkit/process"
	"shoal.dev/shoal/pkg/testkit/recount"
	"shoal.dev/shoal/pkg/testkit/synthweb"
)

// begun waits until a run has brought some pages to an end.
func begun(t *testing.T, who client, run launched, pages int64) {
	t.Helper()
	last := must(who.follow(within(t, patience), run.JobID, func(p progress) bool { return p.TotalRequests >= pages }))(t)
	if last.State != "RUNNING" {
		t.Fatalf("the run is over before %d pages: %+v", pages, last)
	}
}

// partly makes the recount of a run that was ended for a reason.
func (s *service) partly(o order, run launched, reason model.StopReason) recount.Summary {
	s.t.Helper()
	reported := must(o.who.report(within(s.t, patience), run))(s.t)
	if reported.Job.StopReason != string(reason) {
		s.t.Errorf("the reason is %q, want %q", reported.Job.StopReason, reason)
	}
	checkWallet(s.t, o.who)
	s.stopCleanly()
	reported.Records = s.records(run.JobID)
	expected := s.expected(o)
	expected.Partial = true
	sum := check(s.t, expected, reported)
	s.t.Log(sum)
	return sum
}

func TestStop(t *testing.T) {
	web := newWeb(t, rough(50, 40))
	s := newService(t, web, "--host-rate", "20", "--max-host-rate", "20")
	s.fill(s.client, plenty)
	o := productOrder(s.client, slices.Collect(web.URLs(2000)))
	run := o.launch(t)
	begun(t, s.client, run, 100)
	if err := s.stop(within(t, patience), run.ScraperID); err != nil {
		t.Fatal(err)
	}
	if job := must(s.job(t.Context(), run))(t); job.State != string(model.Stopped) {
		t.Errorf("stopped, and the run is %s", job.State)
	}
	if entry := must(s.entry(t.Context(), run.JobID))(t); entry.Status != "SETTLED" {
		t.Errorf("stopped, and the entry is %s", entry.Status)
	}
	// A second stop finds nothing to do.
	if err := s.stop(within(t, patience), run.ScraperID); err != nil {
		t.Error(err)
	}
	if sum := s.partly(o, run, model.StoppedByCustomer); sum.Delivered < 90 || sum.Delivered+sum.Errored >= 2000 {
		t.Errorf("%v", sum)
	}
}

func TestEmptyWallet(t *testing.T) {
	web := newWeb(t, synthweb.Config{Hosts: 20, PagesPerHost: 30, PageBytes: []int{3000}})
	s := newService(t, web, fast...)
	s.fill(s.client, 100*plainPrice+plainPrice/2)
	o := productOrder(s.client, slices.Collect(web.URLs(600)))
	run := o.launch(t)
	must(s.report(within(t, patience), run))(t)
	wallet := must(s.wallet(t.Context()))(t)
	if wallet.BalanceMicros != plainPrice/2 || wallet.FreeRequestsRemaining != 0 {
		t.Errorf("the wallet is used to the last whole page: %+v", wallet)
	}
	_, err := s.runList(t.Context(), must(o.query(t.Context()))(t), strings.NewReader(o.urls[0]))
	if codeOf(err) != "WALLET_INSUFFICIENT_BALANCE" {
		t.Errorf("a launch with nothing left: %v", err)
	}
	if sum := s.partly(o, run, model.InsufficientBalance); sum.Delivered != 100+freeGrant {
		t.Errorf("%d pages for 100 and %d free requests", sum.Delivered, freeGrant)
	}
}

func TestMaxCharge(t *testing.T) {
	web := newWeb(t, synthweb.Config{Seed: 7, Hosts: 20, PagesPerHost: 3, ChainPages: 15, ItemsPerPage: 4,
		PageBytes: []int{3000}, Mix: synthweb.Listings()})
	s := newService(t, web, fast...)
	s.fill(s.client, plenty)
	o := listingOrder(s.client, slices.Collect(web.URLs(60)), nextLink)
	o.maxCharge = 120*plainPrice + 1
	run := o.launch(t)
	if sum := s.partly(o, run, model.MaxChargeReached); sum.Charged > o.maxCharge || sum.Delivered < 100 {
		t.Errorf("charged %d of at most %d for %d pages", sum.Charged, o.maxCharge, sum.Delivered)
	}
}

// TestRestartKeepsEverything finds the same answers after a clean stop.
func TestRestartKeepsEverything(t *testing.T) {
	web := newWeb(t, rough(20, 10))
	s := newService(t, web, fast...)
	s.fill(s.client, plenty)
	o := productOrder(s.client, slices.Collect(web.URLs(200)))
	run := o.launch(t)
	before := must(s.report(within(t, patience), run))(t)
	wallet, key := must(s.wallet(t.Context()))(t), s.p.Key()
	s.stopCleanly()
	s.start()
	if s.p.Key() != key {
		t.Error("the key has changed")
	}
	after := must(s.report(within(t, patience), run))(t)
	check(t, s.expected(o), before)
	check(t, s.expected(o), after)
	if again := must(s.wallet(t.Context()))(t); again != wallet {
		t.Errorf("the wallet was %+v and is %+v", wallet, again)
	}
	o = productOrder(s.client, o.urls)
	if again := must(s.report(within(t, patience), o.launch(t)))(t); len(again.Rows) < len(after.Rows)*9/10 {
		t.Errorf("the second start's run has %d rows, the first one's %d", len(again.Rows), len(after.Rows))
	}
}

// patientWeb has every kind of page that is answered within a stop, some of them slowly or not at once.
func patientWeb(hosts, pages int) synthweb.Config {
	return synthweb.Config{Seed: uint64(hosts), Hosts: hosts, PagesPerHost: pages, PageBytes: []int{3000, 8000},
		Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 70}, {Class: synthweb.Changing, Weight: 10},
			{Class: synthweb.Redirect, Weight: 5}, {Class: synthweb.Flaky, Weight: 5}, {Class: synthweb.Busy, Weight: 2},
			{Class: synthweb.Failing, Weight: 2}, {Class: synthweb.Drip, Weight: 2}, {Class: synthweb.NotFound, Weight: 2},
			{Class: synthweb.Empty, Weight: 2}},
		MaxLatency: 200 * time.Millisecond, SlowHosts: hosts / 10, SlowLatency: time.Second}
}

// TestStopUnderLoad stops the process in the middle of a run, which goes on at the next start as if nothing had been:
// nothing that was asked for is asked for again.
func TestStopUnderLoad(t *testing.T) {
	for name, kind := range moveKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := newWeb(t, kind.web)
			s := newService(t, web, "--host-rate", "30", "--max-host-rate", "30", "--host-connections", "4",
				"--max-host-connections", "4")
			s.fill(s.client, plenty)
			o := kind.order(s.client, web)
			run := o.launch(t)
			for _, pages := range []int64{100, 300, 500, 700, 900, 1000} { // more often than a page may be lost
				begun(t, s.client, run, pages)
				t.Logf("stopped in %v", must(s.p.Stop(stopLimit))(t))
				s.start()
			}
			reported := must(s.report(within(t, patience), run))(t)
			checkWallet(t, s.client)
			s.stopCleanly()
			reported.Records = s.records(run.JobID)
			t.Log(check(t, s.expected(o), reported))
		})
	}
}

// TestTwoCustomers run at the same time, see nothing of each other, and each pays for its own.
func TestTwoCustomers(t *testing.T) {
	web := newWeb(t, rough(60, 30))
	s := newService(t, web, fast...)
	urls := slices.Collect(web.URLs(1800))
	acme, bolt := s.customer("acme"), s.customer("bolt")
	var orders []order
	var runs []launched
	for i, who := range []client{acme, bolt} {
		s.fill(who, plenty)
		o := productOrder(who, urls[i*900:(i+1)*900])
		orders, runs = append(orders, o), append(runs, o.launch(t))
	}
	for i, who := range []client{acme, bolt} {
		expected := s.expected(orders[i])
		expected.Shared = true // the web's log does not tell who asked
		t.Log(check(t, expected, must(who.report(within(t, patience), runs[i]))(t)))
		checkWallet(t, who)
	}
	if rows := must(bolt.jobs(t.Context(), runs[0].ScraperID))(t); len(rows) > 0 {
		t.Errorf("a customer sees %d jobs of another", len(rows))
	}
	_, err := bolt.rows(t.Context(), runs[0].JobID)
	foreign := codeOf(err)
	_, err = bolt.rows(t.Context(), newKey())
	if missing := codeOf(err); foreign != missing {
		t.Errorf("rows of another customer's job: %q, of no job: %q", foreign, missing)
	}
}

// TestOneProcessPerDirectory refuses a second process, which must not disturb the first.
func TestOneProcessPerDirectory(t *testing.T) {
	s := newService(t, newWeb(t, synthweb.Config{}), fast...)
	first := s.p
	second, err := process.Start(process.Config{Binary: binary(t), Data: s.data, Args: s.args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Kill)
	if err := second.Ready(within(t, readyWithin)); !errors.Is(err, process.ErrEnded) {
		t.Errorf("a second process on the same data: %v", err)
	}
	if _, err := s.wallet(t.Context()); err != nil {
		t.Errorf("the first is disturbed: %v", err)
	}
	if _, err := first.Stop(stopLimit); err != nil {
		t.Error(err)
	}
}
