package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
)

// API measures the latency of calls at a fixed rate.
type API struct {
	ReadRate    float64       `help:"Reads per second." default:"2000"`
	WriteRate   float64       `help:"Writes per second." default:"100"`
	Time        time.Duration `help:"Duration of each case." default:"30s"`
	Connections int           `help:"Most connections to the service, and so most calls under way." default:"64"`
	Workers     int           `help:"Most requests that the crawl has under way: enough to fill one core and no more; 0: the fetcher's default." default:"2"`
	Profile     string        `help:"Directory for a CPU profile of the service during the crawl." placeholder:"DIR" type:"path"`
}

// Help returns the help text.
func (*API) Help() string {
	return `Calls are sent to a 'shoal serve' when they are due, whether or not earlier ones have been answered (open loop). The latency
of a call counts from when it was due, not from when it was sent. So if the service stalls for a second, thousands of calls
are seen to wait, where a client that waits for answers would have sent one. "Sent late" is the part of the latency until
this client had a free connection and sent the call. The service first runs alone, then while crawling as fast as it can.

The operations take turns. Reads: identity, keys, groups, scrapers, a scraper, runs, the run under way, link errors of a run,
20 rows by cursor and 100 further on, 20 filtered rows by cursor, a group's newest 20 rows, a filtered one of its 2,000
rows, wallet, ledger, prices. Writes: replacing a group, replacing a scraper.

Service and crawl share one process, and Go has no priorities. Only the number of concurrent requests (--workers) limits the
crawl's share of the machine. The report shows how many cores each process used.

Example: shoal bench api --read-rate 500 --write-rate 20 --time 1m`
}

const (
	readLimit  = 5  // ms, p99 at 2,000 reads per second beside a crawl
	writeLimit = 15 // ms, p99
	apiRows    = 2_000
	apiRuns    = 20 // runs that the read rows come from
	apiWarmUp  = 2 * time.Second
	// crawlRate is more pages per second than a crawl reads, so that the crawl does not end too
	// soon. A crawl is one list, so the bound on lists applies.
	crawlRate = 20_000
)

// Measure measures both cases.
func (m *API) Measure(ctx context.Context, on *Bench, report *Report) (err error) {
	if err := notNegative(map[string]float64{"read-rate": m.ReadRate,
		"write-rate": m.WriteRate}); err != nil {
		return err
	}
	if m.ReadRate+m.WriteRate == 0 {
		return fmt.Errorf("--read-rate and --write-rate: %w: one of them has to be more than 0",
			ErrFlags)
	}
	if err := notNegative(map[string]int{"workers": m.Workers}); err != nil {
		return err
	}
	if err := positive(map[string]int{"connections": m.Connections}); err != nil {
		return err
	}
	if err := positive(map[string]time.Duration{"time": m.Time}); err != nil {
		return err
	}
	pages := min(int((m.Time+2*apiWarmUp).Seconds()*crawlRate), longestList) + apiRows
	w, err := on.startWeb(ctx, page.Web(pages))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	ops, err := freePort()
	if err != nil {
		return err
	}
	s, err := on.fresh(ctx, nil, []*web{w},
		append(unbounded(4), "--fetch-workers", strconv.Itoa(m.Workers), "--ops-listen", ops,
			"--ops-profiles")...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	calls, err := m.prepare(ctx, s, w)
	if err != nil {
		return err
	}
	on.Say("api: the service alone")
	if _, err := m.load(ctx, s, calls, "The service alone", report); err != nil {
		return err
	}
	return m.beside(ctx, on, s, w, pages, ops, calls, report)
}

// beside measures while the service crawls.
func (m *API) beside(ctx context.Context, on *Bench, s *service, w *web, pages int, ops string,
	calls *calls,
	report *Report) error {
	path := filepath.Join(on.Dir, "list")
	addresses := slices.Collect(w.URLs(pages))[apiRows:]
	if _, err := writeList(path, len(addresses),
		func(i int) string { return addresses[i] }); err != nil {
		return err
	}
	_, run, err := sendList(ctx, s, path, "crawl")
	if err != nil {
		return err
	}
	on.Say("api: beside a crawl")
	if err := pause(ctx, apiWarmUp); err != nil {
		return err
	}
	before, err := s.Job(ctx, run)
	if err != nil {
		return err
	}
	if err := w.markSpan(); err != nil {
		return err
	}
	profiled := make(chan error, 1)
	go func() { profiled <- m.profile(ctx, ops) }()
	begun := time.Now()
	found, err := m.load(ctx, s, calls, "Beside a crawl", report)
	if err = errors.Join(err, <-profiled); err != nil {
		return err
	}
	took := time.Since(begun)
	after, err := s.Job(ctx, run)
	if err != nil {
		return err
	}
	share, err := w.share()
	if err != nil {
		return err
	}
	if model.JobState(after.State).Final() {
		return fmt.Errorf("--time: the crawl ended before the calls did: %s %s after %d of %d pages", after.State, after.StopReason,
			after.TotalRequests, run.LinksQueued)
	}
	report.note("meanwhile the crawl read %s pages/s; its web took %s cores",
		figure(float64(after.TotalRequests-before.TotalRequests)/took.Seconds()), figure(share))
	if m.ReadRate > 0 {
		report.atMost(fmt.Sprintf("reads, p99 at %s a second beside a crawl", figure(m.ReadRate)),
			millis(found.kinds[reads].quantile(0.99)), readLimit, "ms")
	}
	if m.WriteRate > 0 {
		report.atMost(fmt.Sprintf("writes, p99 at %s a second beside a crawl", figure(m.WriteRate)),
			millis(found.kinds[writes].quantile(0.99)), writeLimit, "ms")
	}
	return s.StopRun(ctx, run.ScraperID)
}

// profile takes a CPU profile of the service while it is measured.
func (m *API) profile(ctx context.Context, ops string) error {
	if m.Profile == "" {
		return nil
	}
	seconds := max(int(m.Time.Seconds())-1, 1)
	return saveProfile(ctx, ops, fmt.Sprintf("profile?seconds=%d", seconds),
		filepath.Join(m.Profile, "api.prof"))
}

// call is one operation that is called repeatedly.
type call struct {
	name         string
	method, path string
	body         []byte // for writes
	token        string // "": the token of all calls
}

// kind is a class of calls with its own rate.
type kind int

const (
	reads kind = iota
	writes
	kinds // number of kinds
)

func (k kind) String() string { return [kinds]string{"all reads", "all writes"}[k] }

// calls are the operations, and where to call them.
type calls struct {
	of          [kinds][]call
	host, token string
}

// prepare creates what the operations use, and returns the calls.
func (m *API) prepare(ctx context.Context, s *service, w *web) (*calls, error) {
	at, err := url.Parse(s.Client.Server)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	c := &calls{host: at.Host, token: s.Token}
	if c.of[reads], err = readCalls(ctx, s, w); err != nil {
		return nil, err
	}
	c.of[writes], err = writeCalls(ctx, s)
	return c, err
}

// readCalls makes a group with runs that have rows and charges, and returns calls that read them.
func readCalls(ctx context.Context, s *service, w *web) ([]call, error) {
	group, err := s.PutGroup(ctx, "read")
	if err != nil {
		return nil, err
	}
	var run api.Launched
	for urls := range slices.Chunk(slices.Collect(w.URLs(apiRows)), apiRows/apiRuns) {
		order := api.Order{Who: s.Client, Kind: model.SingleProduct, Fields: page.Fields(false),
			URLs: urls}
		query, err := order.ListQuery(ctx, s.Client, group, "run "+api.NewKey())
		if err != nil {
			return nil, err
		}
		if run, err = s.RunList(ctx, query, order.Body()); err != nil {
			return nil, err
		}
		if _, _, err := s.Finished(ctx, run); err != nil {
			return nil, err
		}
	}
	whole := url.Values{"groupId": {group}, "limit": {"1000"}}
	var half struct{ NextCursor string }
	if err := s.Call(ctx, fasthttp.MethodGet, "/api/scraper/data", whole, nil, &half); err != nil {
		return nil, err
	}
	return []call{
		{name: "identity", path: "/api/key/whoami"},
		{name: "keys", path: "/api/key/list"},
		{name: "groups", path: "/api/scraper/group/list"},
		{name: "scrapers of a group", path: "/api/scraper/list?groupId=" + group},
		{name: "a scraper", path: "/api/scraper/" + run.ScraperID},
		{name: "20 runs", path: "/api/scraper/load-history?size=20"},
		{name: "runs under way",
			path: "/api/scraper/load-history?" +
				url.Values{"filters": {`{"state":"RUNNING"}`}}.Encode()},
		{name: "errors of a run",
			path: "/api/scraper/load-history/group/" + group + "/job/" + run.JobID + "/errors"},
		{name: "20 rows of a run", path: "/api/scraper/data?limit=20&jobId=" + run.JobID},
		{name: "100 rows, by cursor", path: "/api/scraper/data?" +
			url.Values{"groupId": {group}, "limit": {"100"}, "cursor": {half.NextCursor}}.Encode()},
		{name: "20 rows, filtered", path: "/api/scraper/data?" +
			url.Values{"groupId": {group}, "limit": {"20"},
				"filters": {`{"price":{"gt":600}}`}}.Encode()},
		{name: "newest rows of a group", path: "/api/scraper/data/group/" + group},
		{name: "a row of a group, filtered", path: "/api/scraper/data/group/" + group + "?" +
			url.Values{"filters": {`{"sku":"SKU-00000123"}`}}.Encode()},
		{name: "wallet", path: "/api/wallet"},
		{name: "ledger", path: "/api/wallet/transactions?size=20"},
		{name: "prices", path: "/api/wallet/prices"},
	}, nil
}

// writeCalls makes a group and a scraper, and returns calls that replace them.
func writeCalls(ctx context.Context, s *service) ([]call, error) {
	group, err := s.PutGroup(ctx, "replaced")
	if err != nil {
		return nil, err
	}
	scraper := api.Scraper{GroupRef: group,
		Scraper: model.Scraper{Name: "replaced", Type: model.SingleProduct,
			ItemsConfig:  page.Fields(false),
			SourceConfig: model.SourceConfig{URL: "http://shop-00000.example/"}}}
	id, err := s.PutScraper(ctx, scraper)
	if err != nil {
		return nil, err
	}
	groupBody, err := json.Marshal(map[string]any{"id": group, "name": "replaced",
		"dataTable": "rows", "startType": "MANUAL",
		"shouldMatchProducts": false})
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	scraperBody, err := json.Marshal(struct {
		ID string `json:"id"`
		api.Scraper
	}{id, scraper})
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return []call{
		{name: "replace a group", method: fasthttp.MethodPut, path: "/api/scraper/group",
			body: groupBody},
		{name: "replace a scraper", method: fasthttp.MethodPut, path: "/api/scraper",
			body: scraperBody},
	}, nil
}
