package sitemaps_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/harvest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// hasty is a clock that jumps ahead whenever somebody waits.
type hasty struct{ *clock.Manual }

// After implements clock.Clock.
func (h hasty) After(d time.Duration) <-chan time.Time {
	h.Advance(d)
	there := make(chan time.Time, 1)
	there <- h.Now()
	return there
}

// rig is a server with a scraper of alice's whose site is on the loopback.
type rig struct {
	*apitest.Server
	store   rowstore.Store
	kind    work.Kind
	scraper ids.ID
	path    string

	mu   sync.Mutex
	dead bool
}

func start(t *testing.T, files map[string]string, options ...apitest.Option) *rig {
	t.Helper()
	r := &rig{store: apitest.NewStore(t)}
	r.Server = apitest.Start(t, append(options, apitest.WithStore(r.store))...)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		dead := r.dead
		r.mu.Unlock()
		body, there := files[q.URL.Path]
		switch {
		case dead:
			w.WriteHeader(http.StatusServiceUnavailable)
		case !there:
			http.NotFound(w, q)
		default:
			_, _ = io.WriteString(w, body) // the client may have left
		}
	}))
	out, err := egress.New(egress.Config{Allow: []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8")},
		Origins: map[string]string{"*.test": site.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close(); site.Close() })
	r.kind = harvest.Kind(harvest.Config{Client: r.Client, Store: r.store, Sender: out,
		HostRate: 1, IDs: r.IDs,
		Clock: hasty{clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}})
	group := r.NewGroup(t, "alice", "g")
	r.scraper = r.IDs.New()
	r.Client.Must(t, client.PutScraper{Create: true, ID: r.scraper, Customer: "alice",
		Group: group, Spec: model.Scraper{Name: "s", Type: model.SingleProduct,
			SourceConfig: model.SourceConfig{URL: "http://a.test/shop/list.html?x=1"}}})
	r.path = "/api/scraper/" + r.scraper.String() + "/sitemaps"
	return r
}

// works does the background work of harvests until end is called.
func (r *rig) works(t *testing.T) (end func()) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			r.Client.View().EachHarvest(func(h *client.Harvest) bool {
				if h.State == client.HarvestRunning {
					if _, err := r.kind.Step(t.Context(), work.Item{ID: h.ID}); err != nil {
						t.Error(err)
					}
				}
				return true
			})
			select {
			case <-stop:
				return
			default:
				runtime.Gosched()
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

func (r *rig) ask(as, key string, status int, query string) apitest.Scenario {
	return apitest.Scenario{Name: "harvest " + query, As: as,
		Do: "POST " + r.path + "/harvest?" + query, Status: status,
		Header: map[string]string{"Idempotency-Key": key}}
}

func site() map[string]string {
	return map[string]string{"/sitemap.xml": `<urlset xmlns:i="i"><url><loc>/shop/b</loc>` +
		`<i:image><i:loc>/Red.png</i:loc><i:title>A red ball</i:title></i:image></url>` +
		`<url><loc>/shop/a/deep</loc></url><url><loc>https://www.a.test/shop/c?y=/</loc></url>` +
		`<url><loc>/Shop/d</loc></url><url><loc>/shopping</loc></url></urlset>`}
}

// A harvest counts what it finds, for permitted callers. Its call may be repeated.
func TestHarvest(t *testing.T) {
	r := start(t, site())
	defer r.works(t)()
	no := r.ask(apitest.User, "", 400, "")
	no.Code = "idempotency_key_required"
	foreign := r.ask(apitest.Other, "k", 404, "")
	foreign.Code = "scraper_not_found"
	reader := r.ask(apitest.Reader, "k", 403, "")
	none := r.ask(apitest.User, "k", 400, "cap=0")
	many := r.ask(apitest.User, "k", 400, "cap=500001")
	first, other := r.ask(apitest.User, "k", 200, ""), r.ask(apitest.User, "k", 422, "cap=3")
	first.Has, other.Code = map[string]any{"": 5}, "idempotency_key_reused"
	again := first
	again.Headers = map[string]string{"Idempotency-Replayed": "true"}
	capped := r.ask(apitest.LLM, "l", 200, "cap=3")
	capped.Has = map[string]any{"": 3}
	r.Run(t, no, foreign, reader, none, many, first, again, other, capped)
	scraper := r.Client.View().Scraper(r.scraper)
	r.Client.Must(t, client.PutScraper{ID: r.scraper, Customer: "alice", Group: scraper.Group,
		Spec: model.Scraper{Name: "s", Type: model.SingleProduct}})
	late := r.ask(apitest.User, "m", 400, "")
	late.Code = "type_not_runnable" // it has no address any more
	r.Run(t, late, again)
}

// A repeated call that waits does not count against the rate limit of harvests.
func TestWaitingAgainIsNotLimited(t *testing.T) {
	r := start(t, site(), apitest.WithRateLimits)
	defer r.works(t)()
	for range 12 {
		r.Run(t, r.ask(apitest.User, "k", 200, ""))
	}
	for n := range 5 {
		r.Run(t, r.ask(apitest.User, fmt.Sprint(n), 200, ""))
	}
	limited := r.ask(apitest.User, "7", 429, "")
	limited.Code = "rate_limited"
	r.Run(t, limited, r.ask(apitest.User, "k", 200, ""))
}

// An unreachable site is reported, and the same call may try again.
func TestHarvestOfADeadSite(t *testing.T) {
	r := start(t, site())
	defer r.works(t)()
	r.dead = true
	dead := r.ask(apitest.User, "k", 502, "")
	dead.Code = "source_unreachable"
	r.Run(t, dead, dead)
	r.mu.Lock()
	r.dead = false
	r.mu.Unlock()
	alive := r.ask(apitest.User, "k", 200, "")
	alive.Has = map[string]any{"": 5}
	r.Run(t, alive)
}

// A call that has waited long enough answers with the count so far, and can be repeated.
func TestHarvestThatLasts(t *testing.T) {
	r := start(t, site())
	answered := make(chan apitest.Answer)
	go func() { answered <- r.Call(t, r.ask(apitest.User, "k", 202, "")) }()
	for waits := true; waits; {
		select {
		case a := <-answered:
			waits = false
			if a.Status != 202 || string(a.Body) != "0" {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		case <-time.After(time.Millisecond):
			r.Clock.Advance(time.Second)
		}
	}
	busy := r.ask(apitest.User, "l", 409, "")
	busy.Code = "harvest_running"
	r.Run(t, busy)
	defer r.works(t)()
	after := r.ask(apitest.User, "k", 200, "")
	after.Has = map[string]any{"": 5}
	after.Headers = map[string]string{"Idempotency-Replayed": "true"}
	r.Run(t, after)
}

// Entries are listed in any order and with any filter, until they are removed at night.
func TestList(t *testing.T) {
	r := start(t, site())
	stop := r.works(t)
	empty := apitest.Scenario{Name: "before", As: apitest.Reader, Do: "GET " + r.path, Status: 200,
		Has: map[string]any{"totalElements": 0, "content": []any{}}}
	r.Run(t, empty, r.ask(apitest.User, "k", 200, ""))
	stop()
	const a, b, c, d, e = "http://a.test/shop/a/deep", "http://a.test/shop/b",
		"https://www.a.test/shop/c?y=/", "http://a.test/Shop/d", "http://a.test/shopping"
	for query, want := range map[string][]string{
		"": {b, a, c, d, e}, "size=2&page=1": {c, d}, "size=2&page=9": {},
		"sort=url": {d, a, b, e, c}, "sort=url,desc&size=1": {c},
		"sort=lastSeen,desc&sort=url,asc&size=1": {d}, "sort=image&size=1": {b},
		"search=RED": {b}, "search=ball&q=shop": {b}, "search=ball&q=c": {},
		"filters=" + url.QueryEscape(`{"url":{"$contains":"/shop/"},"image":{"$exists":false}}`): {a, c, d},
		"filters=" + url.QueryEscape(`{"imageTitle":"A red ball"}`):                              {b},
		"restriction=NONE&size=1":                                  {b},
		"restriction=BASE_PATH":                                    {b, a, c},
		"restriction=SLASH_COUNT":                                  {b, d},
		"restriction=SLASH_COUNT&search=Shop/d":                    {d},
		"from=2026-01-02T03:04:00Z&size=1":                         {b},
		"from=2027-01-02T03:04:00Z":                                {},
		"to=2026-01-02T03:04:00Z":                                  {},
		"from=2026-01-01T00:00:00Z&to=2027-01-01T00:00:00Z&size=1": {b},
	} {
		t.Run(query, func(t *testing.T) {
			answer := r.Call(t, apitest.Scenario{As: apitest.Reader,
				Do: "GET " + r.path + "?" + query})
			var got []string
			for n := 0; ; n++ {
				at := answer.Text(fmt.Sprintf("content.%d.url", n))
				if at == "" {
					break
				}
				got = append(got, at)
			}
			if answer.Status != 200 || strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%d: %q, want %q", answer.Status, got, want)
			}
			total := answer.Text("totalElements")
			if !strings.Contains(query, "size=") && total != fmt.Sprint(len(want)) {
				t.Errorf("%s in all", total)
			}
		})
	}
	refused := func(as, query string, status int, code fault.Code) apitest.Scenario {
		return apitest.Scenario{Name: query, As: as, Do: "GET " + r.path + "?" + query,
			Status: status, Code: string(code)}
	}
	r.Run(t, refused(apitest.Other, "", 404, fault.ScraperNotFound),
		refused(apitest.User, "sort=_place", 400, fault.InvalidSort),
		refused(apitest.User, "sort=url,up", 400, fault.InvalidSort),
		refused(apitest.User, "filters={", 400, fault.InvalidFilter),
		refused(apitest.User, "filters="+url.QueryEscape(`{"$or":[{"url":"a"},{"_as":1}]}`), 400,
			fault.InvalidFilter),
		refused(apitest.User, "restriction=ALL", 400, fault.InvalidRequest),
		refused(apitest.User, "page=100000&size=200", 400, fault.InvalidPage),
		apitest.Scenario{Name: "an entry", As: apitest.User, Do: "GET " + r.path + "?search=red",
			Status: 200, Has: map[string]any{"content.0": map[string]any{"url": b,
				"image": "http://a.test/Red.png", "imageTitle": "A red ball",
				"lastSeen": "2026-01-02T03:04:06.000Z"}, "size": 20, "number": 0,
				"totalPages": 1}})
	r.Clock.Advance(24 * time.Hour)
	empty.As = apitest.User
	r.Run(t, empty)
}
