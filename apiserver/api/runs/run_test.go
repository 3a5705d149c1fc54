package runs_test

import (
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func TestRun(t *testing.T) {
	r := start(t)
	id := r.newScraper(t, "shop", "https://shop.test/#top").String()
	gone := r.newScraper(t, "gone", "https://shop.invalid/").String()
	hidden := r.newScraper(t, "hidden", "http://10.0.0.1/").String()
	path := "GET /api/scraper/" + id + "/run"
	run := r.Call(t, apitest.Scenario{As: apitest.User, Do: path + "?maxChargeMicros=300",
		Header: key("a")})
	if run.Status != 200 {
		t.Fatalf("run: %s", run.Body)
	}
	want := map[string]any{"jobId": run.Text("jobId"), "scraperId": id, "status": "PENDING",
		"queuedAt": "2026-01-02T03:04:05.000Z"}
	if urls := r.urls(t, run.Text("jobId")); len(urls) != 1 || urls[0] != "https://shop.test/#top" {
		t.Errorf("its list is %q", urls)
	}
	r.Run(t,
		apitest.Scenario{Name: "replay", As: apitest.User, Do: path + "?maxChargeMicros=300",
			Header: key("a"), Status: 200,
			Has:     map[string]any{"": want},
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "same key, other cap", As: apitest.User, Do: path, Header: key("a"),
			Status: 422,
			Code:   "idempotency_key_reused"},
		apitest.Scenario{Name: "already running", As: apitest.User, Do: path, Status: 400,
			Code: "scraper_already_running"},
		apitest.Scenario{Name: "already running, by key", As: apitest.User, Do: path,
			Header: key("b"), Status: 400,
			Code: "scraper_already_running"},
		apitest.Scenario{Name: "no such host", As: apitest.User,
			Do: "POST /api/scraper/" + gone + "/run", Status: 400,
			Code: "start_urls_unreachable",
			Has:  map[string]any{"errors.0.field": "sourceConfig.url"}},
		apitest.Scenario{Name: "private", As: apitest.User,
			Do: "POST /api/scraper/" + hidden + "/run", Status: 400,
			Code: "start_urls_unreachable"},
		apitest.Scenario{Name: "unknown", As: apitest.User,
			Do: "POST /api/scraper/0123456789abcdef01234567/run", Status: 404,
			Code: "scraper_not_found"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path, Status: 404,
			Code: "scraper_not_found"},
		apitest.Scenario{Name: "malformed", As: apitest.Other, Do: "POST /api/scraper/x1/run",
			Status: 400, Code: "invalid_id"},
		apitest.Scenario{Name: "negative cap", As: apitest.User, Do: path + "?maxChargeMicros=-1",
			Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "read key", As: apitest.Reader, Do: path, Status: 403,
			Code: "scope_rejected"},
	)
	if lists, err := r.store.AllLists(t.Context()); err != nil || len(lists) != 1 {
		t.Errorf("there are %d lists: %v", len(lists), err)
	}
	r.nothingLeft(t)
	r.finish(t, run.Text("jobId"), 1, 0)
	r.Run(t, apitest.Scenario{Name: "again", As: apitest.User, Do: path, Status: 200,
		Check: func(t *testing.T, a apitest.Answer) {
			if a.Text("jobId") == run.Text("jobId") {
				t.Error("the old run")
			}
		}})
}

// A call without an idempotency key leaves no claim.
func TestRunWithoutKey(t *testing.T) {
	r := start(t)
	id := r.newScraper(t, "shop", "https://shop.test/").String()
	for range 3 {
		run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST /api/scraper/" + id + "/run"})
		r.finish(t, run.Text("jobId"), 1)
	}
	r.nothingLeft(t)
	if n := r.Client.View().ClaimsOf("alice"); n > 0 {
		t.Errorf("%d records", n)
	}
}

// A list that arrives slowly keeps its claim.
func TestClaimIsRenewed(t *testing.T) {
	slow := &flaky{}
	r := &rig{store: apitest.NewStore(t)}
	slow.Store = r.store
	r.Server = apitest.Start(t, apitest.WithStore(slow))
	r.group = r.NewGroup(t, "alice", "g")
	id := r.newScraper(t, "shop", "https://shop.test/").String()
	slow.adding = func() {
		claim := r.Client.View().ClaimsUnderWay("test")[0]
		for r.Client.View().ClaimsUnderWay("test")[0].Expires == claim.Expires {
			if t.Context().Err() != nil {
				t.Error("the claim is not renewed")
				return
			}
			r.Clock.Advance(time.Second)
		}
	}
	r.Run(t, apitest.Scenario{Name: "run", As: apitest.User, Do: "POST /api/scraper/" + id + "/run",
		Header: key("k"), Status: 200})
}

// The claim of a call that ended without a result expires, although other calls of the node go on.
func TestClaimOfADeadCallExpires(t *testing.T) {
	slow := &flaky{}
	r := &rig{store: apitest.NewStore(t)}
	slow.Store = r.store
	r.Server = apitest.Start(t, apitest.WithStore(slow))
	r.group = r.NewGroup(t, "alice", "g")
	dead := apitest.Scenario{Name: "dead", As: apitest.User, Header: key("dead"), Status: 503,
		Do: "POST /api/scraper/" + r.newScraper(t, "dead", "https://shop.test/").String() + "/run"}
	living := apitest.Scenario{Name: "living", As: apitest.User, Header: key("living"), Status: 200,
		Do: "POST /api/scraper/" + r.newScraper(t, "slow", "https://shop.test/").String() + "/run"}
	r.Client.Lose(1)
	r.Run(t, dead)
	expires := func() (at int64) {
		for _, claim := range r.Client.View().ClaimsUnderWay("test") {
			at = max(at, claim.Expires)
		}
		return at
	}
	slow.adding = func() {
		for range 10 {
			before := expires()
			for expires() == before {
				if t.Context().Err() != nil {
					t.Error("the claim is not renewed")
					return
				}
				r.Clock.Advance(time.Second)
			}
		}
		r.Client.Tick(t)
	}
	r.Run(t, living)
	slow.adding = nil
	dead.Status = 200
	r.Run(t, dead)
}

// If it is unknown whether the run was created, nothing is undone, and the same key returns the
// result later.
func TestRunWithUnknownOutcome(t *testing.T) {
	broken := &flaky{}
	r := &rig{store: apitest.NewStore(t)}
	broken.Store = r.store
	r.Server = apitest.Start(t, apitest.WithStore(broken))
	r.group = r.NewGroup(t, "alice", "g")
	id := r.newScraper(t, "shop", "https://shop.test/").String()
	broken.finished = func() { r.Client.Fail(clienttest.Down()) }
	r.Run(t, apitest.Scenario{Name: "run", As: apitest.User, Do: "POST /api/scraper/" + id + "/run",
		Header: key("k"), Status: 503,
		Code: "unavailable", Headers: map[string]string{"Retry-After": "*"}})
	r.Client.Fail(nil)
	lists, err := r.store.AllLists(t.Context())
	if err != nil || len(lists) != 1 || !lists[0].Finished ||
		r.Client.View().ClaimOfList(lists[0].ID) == nil {
		t.Errorf("lists %+v, %v", lists, err)
	}
	r.Run(t, apitest.Scenario{Name: "meanwhile", As: apitest.User,
		Do: "POST /api/scraper/" + id + "/run", Header: key("k"), Status: 409,
		Code: "idempotency_in_flight"})
}

func TestRunWithoutMoney(t *testing.T) {
	r := start(t)
	id := r.newScraper(t, "shop", "https://shop.test/").String()
	for range 5 { // use up the free requests
		run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST /api/scraper/" + id + "/run"})
		r.finish(t, run.Text("jobId"), 1, 0)
	}
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 149})
	refused := apitest.Scenario{Name: "too little", As: apitest.User,
		Do: "POST /api/scraper/" + id + "/run", Header: key("k"), Status: 402,
		Code: "WALLET_INSUFFICIENT_BALANCE"}
	r.Run(t, refused)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: -149})
	r.Run(t, refused)
	r.nothingLeft(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 150})
	r.Run(t, apitest.Scenario{Name: "the key is no longer refused", As: apitest.User,
		Do: refused.Do, Header: key("k"), Status: 200,
		Headers: map[string]string{"Idempotency-Replayed": ""}})
}

func TestRunFailsHalfWay(t *testing.T) {
	broken := &flaky{}
	r := &rig{store: apitest.NewStore(t)}
	broken.Store = r.store
	r.Server = apitest.Start(t, apitest.WithStore(broken))
	r.group = r.NewGroup(t, "alice", "g")
	id := r.newScraper(t, "shop", "https://shop.test/").String()
	for _, broken.step = range []string{"create", "add", "finish"} {
		r.Run(t, apitest.Scenario{Name: broken.step, As: apitest.User,
			Do: "POST /api/scraper/" + id + "/run", Header: key("k"),
			Status: 500, Code: "internal_error"})
		r.nothingLeft(t)
	}
	broken.step = ""
	r.Run(t, apitest.Scenario{Name: "then it works", As: apitest.User,
		Do: "POST /api/scraper/" + id + "/run", Header: key("k"),
		Status: 200, Headers: map[string]string{"Idempotency-Replayed": ""}})
}

// A run may use the tiers that both its scraper and the server have. If there is none, it is
// refused before its list is stored.
func TestTiersOfRuns(t *testing.T) {
	r := start(t)
	save := func(name string, tiers []string, pagination *model.Pagination) string {
		t.Helper()
		put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
			Spec: model.Scraper{Name: name,
				Type:         model.SingleProduct,
				SourceConfig: model.SourceConfig{URL: "https://shop.test/", Pagination: pagination},
				ItemsConfig:  fields, Config: &model.ScraperConfig{Tiers: tiers}}}
		r.Client.Must(t, put)
		return put.ID.String()
	}
	every, plain := save("any", nil, nil), save("plain", []string{"plain"}, nil)
	rendered, scrolled := save("rendered", []string{"render", "render+super"}, nil),
		save("scrolled", nil, &model.Pagination{Type: model.InfiniteScroll})
	refused := func(id, field string) {
		t.Helper()
		r.Run(t, apitest.Scenario{Name: "refused for " + field, As: apitest.User,
			Do: "POST /api/scraper/" + id + "/run", Status: 400,
			Code: "tier_unavailable", Has: map[string]any{"errors.0.field": field}})
	}
	launched := func(id string, want model.TierSet) {
		t.Helper()
		run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST /api/scraper/" + id + "/run"})
		job, err := ids.Parse(run.Text("jobId"))
		if err != nil {
			t.Fatalf("%s", run.Body)
		}
		if got := r.Client.View().Job(job).Tiers; got != want {
			t.Errorf("the run has %s, want %s", got, want)
		}
		r.finish(t, run.Text("jobId"), 1)
	}
	launched(every, model.TiersOf(model.Plain))
	refused(rendered, "config.tiers")
	refused(scrolled, "sourceConfig.pagination.type")
	r.Run(t, apitest.Scenario{Name: "a list with the recipe", As: apitest.User, Do: listPath,
		Status: 400, Code: "tier_unavailable",
		Body: r.body("itemsConfig", nil, "templateScraperId", rendered)})
	r.nothingLeft(t)

	r.Client.Must(t, client.RegisterNode{Name: "f", Boot: r.IDs.New(), Capacity: 1,
		Tiers: model.TiersOf(model.Plain, model.Render)})
	r.Client.Must(t, client.RegisterNode{Name: "g", Boot: r.IDs.New(), Capacity: 1,
		Tiers: model.AllTiers})
	r.Client.Must(t, client.RegisterNode{Name: "api", Boot: r.IDs.New()})
	launched(every, model.TiersOf(model.Plain, model.Render))
	launched(plain, model.TiersOf(model.Plain))
	launched(rendered, model.TiersOf(model.Render))
	launched(scrolled, model.TiersOf(model.Render))
	r.nothingLeft(t)
}
