package runs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// put saves a scraper for alice.
func (r *rig) put(t *testing.T, name string, spec model.Scraper, list bool) string {
	t.Helper()
	spec.Name = name
	put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Spec: spec, ListRun: list}
	r.Client.Must(t, put)
	return put.ID.String()
}

// reasons maps each skipped scraper of an answer to its reason.
func reasons(a apitest.Answer) map[string]string {
	all := map[string]string{}
	skipped, _ := a.JSON.(map[string]any)["skipped"].([]any)
	for _, s := range skipped {
		one := s.(map[string]any)
		all[one["scraperId"].(string)] = one["reason"].(string)
	}
	return all
}

// launchedIn returns the scrapers and the jobs of an answer.
func launchedIn(a apitest.Answer) (scrapers, jobs []string) {
	all, _ := a.JSON.(map[string]any)["jobs"].([]any)
	for _, j := range all {
		one := j.(map[string]any)
		scrapers = append(scrapers, one["scraperId"].(string))
		jobs = append(jobs, one["jobId"].(string))
	}
	slices.Sort(scrapers)
	slices.Sort(jobs)
	return scrapers, jobs
}

// mixed makes a group of scrapers. Those that cannot run each have a different reason.
func (r *rig) mixed(t *testing.T) (good []string, want map[string]string) {
	t.Helper()
	good = []string{r.newScraper(t, "a", "https://shop.test/").String(),
		r.newScraper(t, "b", "https://other.test/").String()}
	slices.Sort(good)
	running := r.newScraper(t, "running", "https://shop.test/r")
	r.Call(t, apitest.Scenario{As: apitest.User,
		Do: "POST /api/scraper/" + running.String() + "/run"})
	simple := model.Scraper{Type: model.SingleProduct, ItemsConfig: fields,
		SourceConfig: model.SourceConfig{URL: "https://shop.test/"}}
	file, broken, sourceless, tiers := simple, simple, simple, simple
	file.Type = model.File
	broken.ItemsConfig = []model.Field{{Name: "x", Selector: "h1[", Kind: model.Text}}
	sourceless.SourceConfig.URL = ""
	tiers.Config = &model.ScraperConfig{Tiers: []string{"render+super"}}
	want = map[string]string{
		running.String():                                       "ALREADY_RUNNING",
		r.put(t, "file", file, false):                          "FILE",
		r.put(t, "list", simple, true):                         "NO_SOURCE",
		r.put(t, "none", sourceless, false):                    "NO_SOURCE",
		r.put(t, "broken", broken, false):                      "CONFIG_INVALID",
		r.put(t, "tiers", tiers, false):                        "TIER_UNAVAILABLE",
		r.put(t, "search", searching, false):                   "NO_SOURCE",
		r.gone(t, "gone").String():                             "START_UNREACHABLE",
		r.newScraper(t, "hidden", "http://10.0.0.1/").String(): "START_UNREACHABLE",
	}
	return good, want
}

// searching is a search; the server has no engine for it.
var searching = model.Scraper{Type: model.SearchEngineSearch,
	SourceConfig: model.SourceConfig{Queries: []string{"x"}}}

func (r *rig) gone(t *testing.T, name string) ids.ID {
	t.Helper()
	return r.newScraper(t, name, "https://shop.invalid/")
}

// hasLedgerOf reads the ledger entry by entry. The runs of one command are adjacent in it.
func (r *rig) hasLedgerOf(t *testing.T, jobs []string) {
	t.Helper()
	var entered []string
	for cursor := ""; ; {
		page := r.Call(t, apitest.Scenario{As: apitest.User,
			Do: "GET /api/wallet/transactions/all?limit=1&cursor=" + cursor})
		answer := page.JSON.(map[string]any)
		for _, entry := range answer["items"].([]any) {
			if job, is := entry.(map[string]any)["jobId"].(string); is {
				entered = append(entered, job)
			}
		}
		next, more := answer["nextCursor"].(string)
		if cursor = next; !more {
			break
		}
	}
	for _, job := range jobs {
		if n := len(slices.DeleteFunc(slices.Clone(entered), func(j string) bool {
			return j != job
		})); n != 1 {
			t.Errorf("run %s stands %d times in the ledger", job, n)
		}
	}
}

func TestRunOfAGroup(t *testing.T) {
	r := start(t)
	good, want := r.mixed(t)
	path := "/api/scraper/group/" + r.group.String() + "/run"
	first := r.Call(t, apitest.Scenario{As: apitest.User, Header: key("g"),
		Do: "POST " + path + "?maxChargeMicros=1001"})
	scrapers, jobs := launchedIn(first)
	if first.Status != 200 || !slices.Equal(scrapers, good) {
		t.Fatalf("%s", first.Body)
	}
	got := reasons(first)
	for scraper, reason := range want {
		if got[scraper] != reason {
			t.Errorf("%s: %q, want %q", r.nameOf(t, scraper), got[scraper], reason)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d skipped, want %d", len(got), len(want))
	}
	for _, job := range jobs {
		id, err := ids.Parse(job)
		if err != nil {
			t.Fatal(err)
		}
		if most := r.Client.View().Job(id).MaxCharge; most == nil || *most != 500 {
			t.Errorf("a run may cost %v", most)
		}
		if urls := r.urls(t, job); len(urls) != 1 {
			t.Errorf("its list is %q", urls)
		}
	}
	r.nothingLeft(t)
	again := r.Call(t, apitest.Scenario{As: apitest.User, Header: key("g"),
		Do: "POST " + path + "?maxChargeMicros=1001"})
	if _, same := launchedIn(again); !slices.Equal(same, jobs) || string(again.Body) !=
		string(first.Body) {
		t.Errorf("the replay is %s", again.Body)
	}
	for _, c := range []apitest.Scenario{
		{Name: "foreign", As: apitest.Other, Do: "GET " + path, Status: 400, Code: "not_found"},
		{Name: "read key", As: apitest.Reader, Do: "GET " + path, Status: 403,
			Code: "scope_rejected"},
		{Name: "all run", As: apitest.User, Do: "GET " + path, Status: 200,
			Has: map[string]any{"jobs": []any{}}},
	} {
		r.Run(t, c)
	}
	r.nothingLeft(t)
	r.hasLedgerOf(t, jobs)
	stop := "/api/scraper/group/" + r.group.String() + "/stop"
	stopped := r.Call(t, apitest.Scenario{As: apitest.User, Do: "POST " + stop})
	if _, ended := launchedIn(stopped); len(ended) != 3 {
		t.Errorf("stopped: %s", stopped.Body)
	}
	for _, job := range r.Client.View().OpenJobsOfCustomer("alice") {
		if job.State != model.Stopped {
			t.Errorf("job %s is %s", job.ID, job.State)
		}
	}
	r.Run(t, apitest.Scenario{Name: "stopped again", As: apitest.User, Do: "GET " + stop,
		Status: 200, Has: map[string]any{"jobs": []any{}}},
		apitest.Scenario{Name: "stop of a foreign one", As: apitest.Other, Do: "GET " + stop,
			Status: 400, Code: "not_found"})
}

func (r *rig) nameOf(t *testing.T, scraper string) string {
	t.Helper()
	id, err := ids.Parse(scraper)
	if err != nil {
		t.Fatal(err)
	}
	return r.Client.View().Scraper(id).Spec.Name
}

// The cap of a group's run counts the prices of all domains of a site, whichever link is read
// first.
func TestRunOfAGroupOverDomains(t *testing.T) {
	r := start(t)
	r.priceDomain(t, "dear.test", 1000)
	r.site(t, "dear", "https://www.dear.test/1")
	r.site(t, "mixed", "https://other.test/1", "https://dear.test/2", "https://other.test/3",
		"https://a.dear.test/4")
	r.site(t, "other", "https://other.test/1")
	path := "POST /api/scraper/group/" + r.group.String() + "/run?maxChargeMicros="
	a := r.Call(t, apitest.Scenario{As: apitest.User, Do: path + "6900"})
	_, jobs := launchedIn(a)
	parts := map[string]int64{}
	for _, job := range jobs {
		id, err := ids.Parse(job)
		if err != nil {
			t.Fatal(err)
		}
		made := r.Client.View().Job(id)
		parts[r.nameOf(t, made.Scraper.String())] = *made.MaxCharge
	}
	if a.Status != 200 || parts["dear"] != 2000 || parts["other"] != 300 || parts["mixed"] != 4600 {
		t.Errorf("parts %v of %s", parts, a.Body)
	}
	r.nothingLeft(t)
}

// site gives a new scraper a site with some links.
func (r *rig) site(t *testing.T, name string, links ...string) {
	t.Helper()
	scraper := r.newScraper(t, name, "https://other.test/")
	list := make([]string, 0, len(links))
	for _, link := range links {
		list = append(list, fmt.Sprintf(`{"url":%q}`, link))
	}
	r.Run(t, apitest.Scenario{Name: name, As: apitest.User, Do: "PUT /api/scraper/site",
		Header: key(name), Status: 200, Body: fmt.Sprintf(
			`{"links":[%s],"name":%q,"scraperRef":%q}`, strings.Join(list, ","), name, scraper)})
}

// A customer who cannot pay for a page gets that reason for each scraper.
func TestRunOfAGroupWithoutMoney(t *testing.T) {
	r := start(t)
	one := r.newScraper(t, "a", "https://shop.test/").String()
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 300})
	for i := range clienttest.FreeGrant { // use up the free requests
		id := r.newScraper(t, fmt.Sprint("free", i), "https://shop.test/").String()
		run := r.Call(t, apitest.Scenario{As: apitest.User, Do: "GET /api/scraper/" + id + "/run"})
		r.finish(t, run.Text("jobId"), 1, 0)
		parsed, err := ids.Parse(id)
		if err != nil {
			t.Fatal(err)
		}
		deletion := client.Deletion{Customer: "alice", Operation: client.OpDeleteScraper,
			Target: parsed}
		r.Client.Must(t, client.PreviewDelete{Deletion: deletion, Token: id})
		r.Client.Must(t, client.DeleteScraper{Deletion: deletion, Token: id})
	}
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: -300})
	a := r.Call(t, apitest.Scenario{As: apitest.User,
		Do: "POST /api/scraper/group/" + r.group.String() + "/run"})
	if got := reasons(a); len(got) != 1 || got[one] != "NOT_AFFORDABLE" {
		t.Errorf("%s", a.Body)
	}
	r.nothingLeft(t)
}

// A call without an idempotency key leaves no claim.
func TestRunOfAGroupWithoutKey(t *testing.T) {
	r := start(t)
	r.newScraper(t, "a", "https://shop.test/")
	r.Run(t, apitest.Scenario{Name: "run", As: apitest.User, Status: 200,
		Do: "POST /api/scraper/group/" + r.group.String() + "/run"})
	r.nothingLeft(t)
	if n := r.Client.View().ClaimsOf("alice"); n > 0 {
		t.Errorf("%d records", n)
	}
}

// If it is unknown whether the runs were created, nothing is undone, and the same key returns the
// result later.
func TestRunOfAGroupWithUnknownOutcome(t *testing.T) {
	r := start(t)
	r.newScraper(t, "a", "https://shop.test/")
	r.newScraper(t, "b", "https://shop.test/")
	path := "POST /api/scraper/group/" + r.group.String() + "/run"
	for n, c := range map[int]string{1: "claim", 2: "runs"} {
		r.Client.Lose(n)
		r.Run(t, apitest.Scenario{Name: c, As: apitest.User, Do: path, Header: key(c),
			Status: 503})
		r.Clock.Advance(3 * time.Minute) // an unrenewed claim has expired
		r.Client.Tick(t)
		a := r.Call(t, apitest.Scenario{As: apitest.User, Do: path, Header: key(c)})
		if a.Status != 200 {
			t.Fatalf("%s: %s", c, a.Body)
		}
		if jobs := r.Client.View().OpenJobsOfCustomer("alice"); len(jobs) != 2 {
			t.Errorf("%s: %d jobs", c, len(jobs))
		}
		r.Client.Must(t, client.StopGroup{Customer: "alice", Group: r.group})
		for _, job := range r.Client.View().OpenJobsOfCustomer("alice") {
			r.Client.CloseRun(t, job.ID)
		}
	}
}

// If the store fails, nothing is launched, and nothing is left behind.
func TestRunOfAGroupWithoutARowStore(t *testing.T) {
	for _, step := range []string{"create", "add", "finish"} {
		broken := &flaky{step: step}
		r := &rig{store: apitest.NewStore(t)}
		broken.Store = r.store
		r.Server = apitest.Start(t, apitest.WithStore(broken))
		r.group = r.NewGroup(t, "alice", "g")
		r.newScraper(t, "a", "https://shop.test/")
		r.Run(t, apitest.Scenario{Name: step, As: apitest.User, Status: 500,
			Do: "POST /api/scraper/group/" + r.group.String() + "/run", Header: key("k")})
		r.nothingLeft(t)
		if jobs := r.Client.View().OpenJobsOfCustomer("alice"); len(jobs) != 0 {
			t.Errorf("%s: %d jobs", step, len(jobs))
		}
	}
}

// In a group with more scrapers than an answer can list, as many run as are allowed.
func TestRunOfAHugeGroup(t *testing.T) {
	const scrapers = client.MaxSkips + client.MaxRunsAtOnce + 100
	r := start(t)
	for i := range scrapers {
		r.newScraper(t, fmt.Sprint("s", i), "https://shop.test/")
	}
	a := r.Call(t, apitest.Scenario{As: apitest.User, Header: key("k"),
		Do: "POST /api/scraper/group/" + r.group.String() + "/run"})
	_, jobs := launchedIn(a)
	got := reasons(a)
	if a.Status != 200 || len(jobs) != client.MaxRunsAtOnce || len(got) != client.MaxSkips ||
		a.JSON.(map[string]any)["skippedTotal"] != float64(scrapers-client.MaxRunsAtOnce) {
		t.Errorf("status %d, %d jobs, %d skipped of %v", a.Status, len(jobs), len(got),
			a.JSON.(map[string]any)["skippedTotal"])
	}
	for scraper, reason := range got {
		if reason != "LIMIT_REACHED" {
			t.Fatalf("%s: %s", scraper, reason)
		}
	}
	e := r.Call(t, apitest.Scenario{As: apitest.User,
		Do: "POST /api/scraper/group/" + r.group.String() + "/estimate"})
	if e.Status != 200 || e.JSON.(map[string]any)["scrapers"] != float64(0) {
		t.Errorf("%s", e.Body) // no more runs are allowed
	}
}

func TestEstimateOfAGroup(t *testing.T) {
	r := start(t)
	for i := range 150 {
		r.newScraper(t, fmt.Sprint("s", i), "https://shop.test/")
	}
	path := "POST /api/scraper/group/" + r.group.String() + "/estimate"
	// 150 pages at 150, less 5 that free requests pay
	r.Run(t, apitest.Scenario{Name: "all", As: apitest.Reader, Do: path, Status: 200,
		Has: map[string]any{"scrapers": 150, "scrapersConsidered": 100, "links": 150, "pages": 150,
			"minMicros": 150*150 - 5*150, "maxMicros": 150*150 - 5*150, "affordable": false}},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path, Status: 400,
			Code: "not_found"})
}
