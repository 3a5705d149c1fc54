package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/testkit/synthweb"
)

// rough is a web with every kind of trouble that does not take long.
func rough(hosts, pages int) synthweb.Config {
	return synthweb.Config{Seed: uint64(hosts), Hosts: hosts, PagesPerHost: pages, Mix: synthweb.Rough(),
		PageBytes: []int{3000, 8000},
		Robots:    []synthweb.Robots{synthweb.RobotsAbsent, synthweb.RobotsEmpty, synthweb.RobotsDisallow}}
}

// TestListRunIsExact is the main job: every address once, every row once, every page paid once.
func TestListRunIsExact(t *testing.T) {
	web := newWeb(t, rough(100, 20))
	s := newService(t, web, fast...)
	s.fill(s.client, plenty)
	o := productOrder(s.client, slices.Collect(web.URLs(2000)))
	run := o.launch(t)
	reported := must(s.report(within(t, patience), run))(t)
	checkWallet(t, s.client)
	s.checkBooks()
	s.stopCleanly()
	reported.Records = s.records(run.JobID)
	t.Log(check(t, s.expected(o), reported))
}

// TestExactness is the figure of the specification: 100,000 addresses on 1,000 hosts.
func TestExactness(t *testing.T) {
	if !*exactness {
		t.Skip("by -exactness (make exactness)")
	}
	cfg := rough(1000, 100)
	cfg.SlowHosts, cfg.SlowLatency = 20, 300*time.Millisecond
	web := newWeb(t, cfg)
	s := newService(t, web, fast...)
	s.fill(s.client, plenty)
	o := productOrder(s.client, slices.Collect(web.URLs(100_000)))
	begin := time.Now()
	run := o.launch(t)
	reported := must(s.report(within(t, 30*time.Minute), run))(t)
	took := time.Since(begin)
	checkWallet(t, s.client)
	s.checkBooks()
	s.stopCleanly()
	reported.Records = s.records(run.JobID)
	sum := check(t, s.expected(o), reported)
	t.Logf("%v in %v (%.0f pages/s)", sum, took.Round(time.Millisecond), float64(sum.Delivered+sum.Errored)/took.Seconds())
}

// TestDuplicatesAreDropped sends addresses twice, in other spellings.
func TestDuplicatesAreDropped(t *testing.T) {
	web := newWeb(t, synthweb.Config{Hosts: 5, PagesPerHost: 10})
	s := newService(t, web, fast...)
	s.fill(s.client, plenty)
	urls := slices.Collect(web.URLs(50))
	o := productOrder(s.client, urls)
	list := slices.Clone(urls)
	for _, address := range urls[:20] {
		list = append(list, address, strings.ToUpper(address[:7])+address[7:]+"#there")
	}
	query := must(o.query(t.Context()))(t)
	run := must(s.runList(t.Context(), query, strings.NewReader(strings.Join(list, "\r\n"))))(t)
	if run.LinksQueued != 50 || run.DuplicatesDropped != 40 {
		t.Errorf("%+v", run)
	}
	check(t, s.expected(o), must(s.report(within(t, patience), run))(t))
}

func TestPagination(t *testing.T) {
	chains := synthweb.Config{Seed: 11, Hosts: 20, PagesPerHost: 4, ChainPages: 25, ItemsPerPage: 6,
		Mix: synthweb.Mix{{Class: synthweb.Listing, Weight: 6}, {Class: synthweb.ChangingListing, Weight: 2},
			{Class: synthweb.BrokenListing, Weight: 1}, {Class: synthweb.NotFound, Weight: 1}}}
	seven := 7
	for name, pagination := range map[string]model.Pagination{
		"URL_PAGE_PARAM":           {Type: model.URLPageParam, Param: "page"},
		"URL_PAGE_PARAM at most 7": {Type: model.URLPageParam, Param: "page", Max: &seven},
		"NEXT_LINK":                nextLink,
	} {
		t.Run(name, func(t *testing.T) {
			web := newWeb(t, chains)
			s := newService(t, web, fast...)
			s.fill(s.client, plenty)
			o := listingOrder(s.client, slices.Collect(web.URLs(80)), pagination)
			run := o.launch(t)
			reported := must(s.report(within(t, patience), run))(t)
			checkWallet(t, s.client)
			s.stopCleanly()
			reported.Records = s.records(run.JobID)
			longest := uint32(0)
			for _, record := range reported.Records {
				longest = max(longest, record.Unit.Page)
			}
			if pagination.Max == nil && longest <= 10 {
				t.Errorf("no chain is longer than a dispatch's pages: the longest has %d", longest+1)
			}
			t.Log(check(t, s.expected(o), reported))
		})
	}
}

// TestScraperRun runs a scraper of its own address, page after page.
func TestScraperRun(t *testing.T) {
	web := newWeb(t, synthweb.Config{Seed: 3, Hosts: 1, PagesPerHost: 1, ChainPages: 40, Mix: synthweb.Listings()})
	s := newService(t, web, fast...)
	s.fill(s.client, plenty)
	urls := slices.Collect(web.URLs(1))
	if truth := must(web.Truth(urls[0]))(t); len(truth.Pages) <= 20 {
		t.Fatalf("the chain has only %d pages: take another seed", len(truth.Pages))
	}
	pagination := nextLink
	group := must(s.putGroup(t.Context(), "one"))(t)
	id := must(s.putScraper(t.Context(), scraper{GroupRef: group, Scraper: model.Scraper{Name: "one",
		Type: model.MultipleProducts, ItemsConfig: synthweb.ItemFields(),
		SourceConfig: model.SourceConfig{URL: urls[0], Pagination: &pagination}}}))(t)
	run := must(s.runScraper(t.Context(), id))(t)
	o := listingOrder(s.client, urls, pagination)
	t.Log(check(t, s.expected(o), must(s.report(within(t, patience), run))(t)))
}

// TestPoliteness runs at the pace of decision 17.
func TestPoliteness(t *testing.T) {
	web := newWeb(t, synthweb.Config{Hosts: 8, PagesPerHost: 4, MinLatency: 20 * time.Millisecond,
		MaxLatency: 300 * time.Millisecond})
	s := newService(t, web, "--host-rate", "4", "--host-connections", "2")
	s.fill(s.client, plenty)
	o := productOrder(s.client, slices.Collect(web.URLs(32)))
	reported := must(s.report(within(t, patience), o.launch(t)))(t)
	expected := s.expected(o)
	// A start that was delayed on its way makes the gap behind it look shorter.
	expected.MinGap = 125 * time.Millisecond
	t.Log(check(t, expected, reported))
}

// TestBadListsAreRefusedWhole names the one bad address, and nothing is left behind.
func TestBadListsAreRefusedWhole(t *testing.T) {
	web := newWeb(t, synthweb.Config{Hosts: 5, PagesPerHost: 100})
	s := newService(t, web, fast...)
	good := slices.Collect(web.URLs(400))
	o := productOrder(s.client, good)
	query := must(o.query(t.Context()))(t)
	before := must(s.wallet(t.Context()))(t)
	// The forbidden address is this machine's own: a guard that failed would reach nothing else. The guard's other
	// addresses are tested where the network is a record (pkg/egress).
	for _, bad := range []string{"ftp://shop-00000.example/", "http://", "not an address", "http://[::1]:9/"} {
		list := slices.Insert(slices.Clone(good), 300, bad)
		_, err := s.runList(t.Context(), query, strings.NewReader(strings.Join(list, "\n")))
		if codeOf(err) != "INVALID_URL" || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if jobs := must(s.jobs(t.Context(), ""))(t); len(jobs) > 0 {
		t.Errorf("%d jobs are there", len(jobs))
	}
	var scrapers struct{ TotalElements int }
	err := s.call(t.Context(), "GET", "/api/scraper/list", nil, nil, &scrapers)
	if err != nil || scrapers.TotalElements != 0 {
		t.Errorf("%d scrapers are there, %v", scrapers.TotalElements, err)
	}
	if after := must(s.wallet(t.Context()))(t); after != before {
		t.Errorf("the wallet was %+v and is %+v", before, after)
	}
	if recounted := must(web.Recount())(t); len(recounted.Hosts) > 0 {
		t.Errorf("%d hosts were asked", len(recounted.Hosts))
	}
	s.stopCleanly()
	if lists := must(storedLists(t.Context(), s.data))(t); len(lists) > 0 {
		t.Errorf("%d link lists are left behind", len(lists))
	}
	// The same call goes through without the bad address.
	s.start()
	o.who = s.client
	run := must(s.runList(t.Context(), query, strings.NewReader(strings.Join(good, "\n"))))(t)
	if job, _, err := s.finished(within(t, patience), run); err != nil || job.StopReason == "" && job.ErrorLinks > 0 {
		t.Errorf("%+v, %v", job, err)
	}
}
