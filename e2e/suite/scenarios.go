package suite

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// Run runs every scenario on a platform, in parallel except those that measure.
func Run(t *testing.T, on Platform) {
	for _, scenario := range scenarios() {
		t.Run(scenario.name, func(t *testing.T) {
			if !scenario.measures {
				t.Parallel()
			}
			scenario.test(t, on)
		})
	}
}

type scenario struct {
	name     string
	test     func(t *testing.T, on Platform)
	measures bool
}

func scenarios() []scenario {
	return []scenario{
		{name: "ListRunIsExact", test: testListRunIsExact},
		{name: "DuplicatesAreDropped", test: testDuplicatesAreDropped},
		{name: "Pagination", test: testPagination},
		{name: "ScraperRun", test: testScraperRun},
		{name: "Trials", test: testTrials},
		{name: "Politeness", test: testPoliteness, measures: true},
		{name: "BadListsAreRefusedWhole", test: testBadListsAreRefusedWhole},
		{name: "Stop", test: testStop},
		{name: "EmptyWallet", test: testEmptyWallet},
		{name: "MaxCharge", test: testMaxCharge},
		{name: "RestartKeepsEverything", test: testRestartKeepsEverything},
		{name: "StopUnderLoad", test: testStopUnderLoad},
		{name: "TwoCustomers", test: testTwoCustomers},
		{name: "WebsiteContacts", test: testWebsiteContacts},
		{name: "WebsiteContactsWithoutTopUp", test: testWebsiteContactsWithoutTopUp},
		{name: "CommandLine", test: testCommandLine},
		{name: "Restore", test: testRestore},
	}
}

// Rough is a web with every kind of trouble that is quick.
func Rough(hosts, pages int) synthweb.Config {
	return synthweb.Config{Seed: uint64(hosts), Hosts: hosts, PagesPerHost: pages,
		Mix:       synthweb.Rough(),
		PageBytes: []int{3000, 8000},
		Robots: []synthweb.Robots{synthweb.RobotsAbsent, synthweb.RobotsEmpty,
			synthweb.RobotsDisallow}}
}

// testListRunIsExact is the main job: every address once, every row once, every page paid once.
func testListRunIsExact(t *testing.T, on Platform) {
	web := on.Web(t, Rough(100, 20))
	s := NewService(t, on, web, Fast()...)
	s.Fill(s.Client, Plenty)
	o := ProductOrder(s.Client, slices.Collect(web.URLs(2000)))
	run := o.Launch(t)
	reported := Must(s.Report(Within(t, Patience), run))(t)
	CheckWallet(t, s.Client)
	s.CheckBooks()
	reported = s.WithRecords(reported)
	t.Log(Check(t, s.Expected(o), reported))
}

// testDuplicatesAreDropped sends addresses twice, in different spellings.
func testDuplicatesAreDropped(t *testing.T, on Platform) {
	web := on.Web(t, synthweb.Config{Hosts: 5, PagesPerHost: 10})
	s := NewService(t, on, web, Fast()...)
	s.Fill(s.Client, Plenty)
	urls := slices.Collect(web.URLs(50))
	o := ProductOrder(s.Client, urls)
	list := slices.Clone(urls)
	for _, address := range urls[:20] {
		list = append(list, address, strings.ToUpper(address[:7])+address[7:]+"#there")
	}
	query := Must(o.Query(t.Context()))(t)
	run := Must(s.RunList(t.Context(), query, strings.NewReader(strings.Join(list, "\r\n"))))(t)
	if run.LinksQueued != 50 || run.DuplicatesDropped != 40 {
		t.Errorf("%+v", run)
	}
	Check(t, s.Expected(o), Must(s.Report(Within(t, Patience), run))(t))
}

func testPagination(t *testing.T, on Platform) {
	chains := synthweb.Config{Seed: 11, Hosts: 20, PagesPerHost: 4, ChainPages: 25, ItemsPerPage: 6,
		Mix: synthweb.Mix{{Class: synthweb.Listing, Weight: 6},
			{Class: synthweb.ChangingListing, Weight: 2},
			{Class: synthweb.BrokenListing, Weight: 1}, {Class: synthweb.NotFound, Weight: 1}}}
	seven := 7
	for name, pagination := range map[string]model.Pagination{
		"URL_PAGE_PARAM":           {Type: model.URLPageParam, Param: "page"},
		"URL_PAGE_PARAM at most 7": {Type: model.URLPageParam, Param: "page", Max: &seven},
		"NEXT_LINK":                NextLink(),
	} {
		t.Run(name, func(t *testing.T) {
			web := on.Web(t, chains)
			s := NewService(t, on, web, Fast()...)
			s.Fill(s.Client, Plenty)
			o := ListingOrder(s.Client, slices.Collect(web.URLs(80)), pagination)
			run := o.Launch(t)
			reported := Must(s.Report(Within(t, Patience), run))(t)
			CheckWallet(t, s.Client)
			reported = s.WithRecords(reported)
			longest := uint32(0)
			for _, record := range reported.Records {
				longest = max(longest, record.Unit.Page)
			}
			if pagination.Max == nil && longest <= 10 {
				t.Errorf("no chain is longer than a dispatch's pages: the longest has %d",
					longest+1)
			}
			t.Log(Check(t, s.Expected(o), reported))
		})
	}
}

// testScraperRun runs a scraper with its own address, page after page.
func testScraperRun(t *testing.T, on Platform) {
	web := on.Web(t, synthweb.Config{Seed: 3, Hosts: 1, PagesPerHost: 1, ChainPages: 40,
		Mix: synthweb.Listings()})
	s := NewService(t, on, web, Fast()...)
	s.Fill(s.Client, Plenty)
	urls := slices.Collect(web.URLs(1))
	if truth := Must(web.Truth(urls[0]))(t); len(truth.Pages) <= 20 {
		t.Fatalf("the chain has only %d pages: take another seed", len(truth.Pages))
	}
	pagination := NextLink()
	group := Must(s.PutGroup(t.Context(), "one"))(t)
	id := Must(s.PutScraper(t.Context(),
		Scraper{GroupRef: group, Scraper: model.Scraper{Name: "one",
			Type: model.MultipleProducts, ItemsConfig: synthweb.ItemFields(),
			SourceConfig: model.SourceConfig{URL: urls[0], Pagination: &pagination}}}))(t)
	run := Must(s.RunScraper(t.Context(), id))(t)
	o := ListingOrder(s.Client, urls, pagination)
	t.Log(Check(t, s.Expected(o), Must(s.Report(Within(t, Patience), run))(t)))
}

// testPoliteness runs at the pace of decision 17.
func testPoliteness(t *testing.T, on Platform) {
	web := on.Web(t, synthweb.Config{Hosts: 8, PagesPerHost: 4, MinLatency: 20 * time.Millisecond,
		MaxLatency: 300 * time.Millisecond})
	s := NewService(t, on, web, "--host-rate", "1", "--host-connections", "2")
	s.Fill(s.Client, Plenty)
	o := ProductOrder(s.Client, slices.Collect(web.URLs(32)))
	reported := Must(s.Report(Within(t, Patience), o.Launch(t)))(t)
	expected := s.Expected(o)
	// A delayed request start makes the gap after it look shorter.
	expected.MinGap = 500 * time.Millisecond
	t.Log(Check(t, expected, reported))
}

// testBadListsAreRefusedWhole: the error names the one bad address, and nothing is left behind.
func testBadListsAreRefusedWhole(t *testing.T, on Platform) {
	web := on.Web(t, synthweb.Config{Hosts: 5, PagesPerHost: 100})
	s := NewService(t, on, web, Fast()...)
	good := slices.Collect(web.URLs(400))
	o := ProductOrder(s.Client, good)
	query := Must(o.Query(t.Context()))(t)
	before := Must(s.Wallet(t.Context()))(t)
	// The forbidden address is this machine's own, so that a failing guard would reach nothing
	// else. The guard's other addresses are tested without a real network (pkg/egress).
	for _, bad := range []string{"ftp://shop-00000.example/", "http://", "not an address",
		"http://[::1]:9/"} {
		list := slices.Insert(slices.Clone(good), 300, bad)
		_, err := s.RunList(t.Context(), query, strings.NewReader(strings.Join(list, "\n")))
		if CodeOf(err) != "INVALID_URL" || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if jobs := Must(s.Jobs(t.Context(), ""))(t); len(jobs) > 0 {
		t.Errorf("%d jobs are there", len(jobs))
	}
	var scrapers struct{ TotalElements int }
	err := s.Call(t.Context(), "GET", "/api/scraper/list", nil, nil, &scrapers)
	if err != nil || scrapers.TotalElements != 0 {
		t.Errorf("%d scrapers are there, %v", scrapers.TotalElements, err)
	}
	if after := Must(s.Wallet(t.Context()))(t); after != before {
		t.Errorf("the wallet was %+v and is %+v", before, after)
	}
	if recounted := Must(web.Recount())(t); len(recounted.Hosts) > 0 {
		t.Errorf("%d hosts were asked", len(recounted.Hosts))
	}
	s.Down(t)
	if lists := Must(s.Lists(t.Context()))(t); len(lists) > 0 {
		t.Errorf("%d link lists are left behind", len(lists))
	}
	// The same call succeeds without the bad address.
	s.Restart()
	o.Who = s.Client
	run := Must(s.RunList(t.Context(), query, strings.NewReader(strings.Join(good, "\n"))))(t)
	if job, _, err := s.Finished(Within(t, Patience), run); err != nil || job.StopReason == "" &&
		job.ErrorLinks > 0 {
		t.Errorf("%+v, %v", job, err)
	}
}

// partly makes the recount of a run that was ended for a reason.
func (s *Service) partly(o Order, run Launched, reason model.StopReason) recount.Summary {
	s.T.Helper()
	reported := Must(o.Who.Report(Within(s.T, Patience), run))(s.T)
	if reported.Job.StopReason != string(reason) {
		s.T.Errorf("the reason is %q, want %q", reported.Job.StopReason, reason)
	}
	CheckWallet(s.T, o.Who)
	reported = s.WithRecords(reported)
	expected := s.Expected(o)
	expected.Partial = true
	sum := Check(s.T, expected, reported)
	s.T.Log(sum)
	return sum
}

func testStop(t *testing.T, on Platform) {
	web := on.Web(t, Rough(50, 40))
	s := NewService(t, on, web, "--host-rate", "20", "--max-host-rate", "20")
	s.Fill(s.Client, Plenty)
	o := ProductOrder(s.Client, slices.Collect(web.URLs(2000)))
	run := o.Launch(t)
	Begun(t, s.Client, run, 100)
	if err := s.StopRun(Within(t, Patience), run.ScraperID); err != nil {
		t.Fatal(err)
	}
	if job := Must(s.Job(t.Context(), run))(t); job.State != string(model.Stopped) {
		t.Errorf("stopped, and the run is %s", job.State)
	}
	Sealed(t, s.Client, run.JobID)
	// A second stop has nothing to do.
	if err := s.StopRun(Within(t, Patience), run.ScraperID); err != nil {
		t.Error(err)
	}
	if sum := s.partly(o, run, model.StoppedByCustomer); sum.Delivered < 90 ||
		sum.Delivered+sum.Errored >= 2000 {
		t.Errorf("%v", sum)
	}
}

func testEmptyWallet(t *testing.T, on Platform) {
	web := on.Web(t, synthweb.Config{Hosts: 20, PagesPerHost: 30, PageBytes: []int{3000}})
	s := NewService(t, on, web, Fast()...)
	s.Fill(s.Client, 100*PlainPrice+PlainPrice/2)
	o := ProductOrder(s.Client, slices.Collect(web.URLs(600)))
	run := o.Launch(t)
	Must(s.Report(Within(t, Patience), run))(t)
	wallet := Must(s.Wallet(t.Context()))(t)
	if wallet.BalanceMicros != PlainPrice/2 || wallet.FreeRequestsRemaining != 0 {
		t.Errorf("the wallet is used to the last whole page: %+v", wallet)
	}
	_, err := s.RunList(t.Context(), Must(o.Query(t.Context()))(t), strings.NewReader(o.URLs[0]))
	if CodeOf(err) != "WALLET_INSUFFICIENT_BALANCE" {
		t.Errorf("a launch with nothing left: %v", err)
	}
	if sum := s.partly(o, run, model.InsufficientBalance); sum.Delivered != 100+FreeGrant {
		t.Errorf("%d pages for 100 and %d free requests", sum.Delivered, FreeGrant)
	}
}

func testMaxCharge(t *testing.T, on Platform) {
	web := on.Web(t, synthweb.Config{Seed: 7, Hosts: 20, PagesPerHost: 3, ChainPages: 15,
		ItemsPerPage: 4,
		PageBytes:    []int{3000}, Mix: synthweb.Listings()})
	s := NewService(t, on, web, Fast()...)
	s.Fill(s.Client, Plenty)
	o := ListingOrder(s.Client, slices.Collect(web.URLs(60)), NextLink())
	o.MaxCharge = 120*PlainPrice + 1
	run := o.Launch(t)
	if sum := s.partly(o, run, model.MaxChargeReached); sum.Charged > o.MaxCharge ||
		sum.Delivered < 100 {
		t.Errorf("charged %d of at most %d for %d pages", sum.Charged, o.MaxCharge, sum.Delivered)
	}
}

// testRestartKeepsEverything: after a clean stop all answers are the same.
func testRestartKeepsEverything(t *testing.T, on Platform) {
	web := on.Web(t, Rough(20, 10))
	s := NewService(t, on, web, Fast()...)
	s.Fill(s.Client, Plenty)
	o := ProductOrder(s.Client, slices.Collect(web.URLs(200)))
	run := o.Launch(t)
	before := Must(s.Report(Within(t, Patience), run))(t)
	wallet, key := Must(s.Wallet(t.Context()))(t), s.Client.Token
	s.Down(t)
	s.Restart()
	if s.Client.Token != key {
		t.Error("the key has changed")
	}
	after := Must(s.Report(Within(t, Patience), run))(t)
	Check(t, s.Expected(o), before)
	Check(t, s.Expected(o), after)
	if again := Must(s.Wallet(t.Context()))(t); again != wallet {
		t.Errorf("the wallet was %+v and is %+v", wallet, again)
	}
	o = ProductOrder(s.Client, o.URLs)
	if again := Must(s.Report(Within(t, Patience),
		o.Launch(t)))(t); len(again.Rows) < len(after.Rows)*9/10 {
		t.Errorf("the second start's run has %d rows, the first one's %d", len(again.Rows),
			len(after.Rows))
	}
}

// Patient has every kind of page that is answered within a stop, some slowly or after retries.
func Patient(hosts, pages int) synthweb.Config {
	return synthweb.Config{Seed: uint64(hosts), Hosts: hosts, PagesPerHost: pages,
		PageBytes: []int{3000, 8000},
		Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 70},
			{Class: synthweb.Changing, Weight: 10},
			{Class: synthweb.Redirect, Weight: 5}, {Class: synthweb.Flaky, Weight: 5},
			{Class: synthweb.Busy, Weight: 2},
			{Class: synthweb.Failing, Weight: 2}, {Class: synthweb.Drip, Weight: 2},
			{Class: synthweb.NotFound, Weight: 2},
			{Class: synthweb.Empty, Weight: 2}},
		MaxLatency: 200 * time.Millisecond, SlowHosts: hosts / 10, SlowLatency: time.Second}
}

// testStopUnderLoad stops the product in the middle of a run, which continues seamlessly at the
// next start. No request is repeated.
func testStopUnderLoad(t *testing.T, on Platform) {
	web := on.Web(t, Patient(40, 25))
	s := NewService(t, on, web, "--host-rate", "30", "--max-host-rate", "30")
	s.Fill(s.Client, Plenty)
	o := ProductOrder(s.Client, slices.Collect(web.URLs(1000)))
	run := o.Launch(t)
	for _, pages := range []int64{100, 400} {
		Begun(t, s.Client, run, pages)
		s.Down(t)
		s.Restart()
	}
	reported := Must(s.Report(Within(t, Patience), run))(t)
	CheckWallet(t, s.Client)
	reported = s.WithRecords(reported)
	t.Log(Check(t, s.Expected(o), reported))
}

// testTwoCustomers runs two at once: they see nothing of each other, and each pays its own.
func testTwoCustomers(t *testing.T, on Platform) {
	web := on.Web(t, Rough(60, 30))
	s := NewService(t, on, web, Fast()...)
	urls := slices.Collect(web.URLs(1800))
	acme, bolt := s.Customer("acme"), s.Customer("bolt")
	var orders []Order
	var runs []Launched
	for i, who := range []Client{acme, bolt} {
		s.Fill(who, Plenty)
		o := ProductOrder(who, urls[i*900:(i+1)*900])
		orders, runs = append(orders, o), append(runs, o.Launch(t))
	}
	for i, who := range []Client{acme, bolt} {
		expected := s.Expected(orders[i])
		expected.Shared = true // the web's log does not say who sent a request
		t.Log(Check(t, expected, Must(who.Report(Within(t, Patience), runs[i]))(t)))
		CheckWallet(t, who)
	}
	if rows := Must(bolt.Jobs(t.Context(), runs[0].ScraperID))(t); len(rows) > 0 {
		t.Errorf("a customer sees %d jobs of another", len(rows))
	}
	_, err := bolt.Rows(t.Context(), runs[0].JobID)
	foreign := CodeOf(err)
	_, err = bolt.Rows(t.Context(), NewKey())
	if missing := CodeOf(err); foreign != missing {
		t.Errorf("rows of another customer's job: %q, of no job: %q", foreign, missing)
	}
}

// testCommandLine does the main job like a user at a terminal.
func testCommandLine(t *testing.T, on Platform) {
	web := on.Web(t, Rough(20, 5))
	s := NewService(t, on, web, Fast()...)
	run := func(args ...string) string {
		t.Helper()
		return Must(s.Command(Within(t, Patience), args...))(t)
	}
	run("wallet", "adjust", "--micros", "1000000", "--note", "for a test")
	urls := slices.Collect(web.URLs(100))
	list := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(list, []byte(strings.Join(urls, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--url-file", list, "--follow"}
	for _, field := range synthweb.ProductFields() {
		text := field.Name + "=" + field.Selector
		switch {
		case field.Attr != "":
			text += "@" + field.Attr
		case field.Kind == "EXISTS":
			text += "?"
		}
		args = append(args, "--field", text)
	}
	job, _, _ := strings.Cut(run(args...), "\n")
	var rows []map[string]any
	for line := range strings.Lines(run("rows", "--job", job, "--format", "jsonl")) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	reported := Must(s.Report(Within(t, Patience), Launched{JobID: job}))(t)
	reported.Rows = rows
	t.Log(Check(t, s.Expected(ProductOrder(s.Client, urls)), reported))
	for _, args := range [][]string{{"jobs"}, {"job", job}, {"job", job, "--errors"}, {"wallet"},
		{"status"},
		{"billing", "recount"}, {"rows", "--job", job, "--format", "csv"}} {
		if run(args...) == "" {
			t.Errorf("shoal %s says nothing", strings.Join(args, " "))
		}
	}
}
