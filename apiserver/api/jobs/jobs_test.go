package jobs_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// rig is an API with a row store, and one group of alice's with one scraper.
type rig struct {
	*apitest.Server
	store          rowstore.Store
	group, scraper ids.ID
}

func start(t *testing.T) *rig {
	t.Helper()
	return startOn(t, apitest.NewStore(t))
}

func startOn(t *testing.T, store rowstore.Store) *rig {
	t.Helper()
	r := &rig{store: store}
	r.Server = apitest.Start(t, apitest.WithStore(r.store))
	r.group = r.NewGroup(t, "alice", "g")
	r.scraper = r.newScraper(t, "shop", r.group)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	return r
}

func (r *rig) newScraper(t *testing.T, name string, group ids.ID) ids.ID {
	t.Helper()
	put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: group,
		Spec: model.Scraper{Name: name, Type: model.SingleProduct}}
	r.Client.Must(t, put)
	return put.ID
}

// launch launches a run of n links.
func (r *rig) launch(t *testing.T, scraper ids.ID, n uint32) ids.ID {
	t.Helper()
	most := int64(1_000)
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: scraper, List: r.IDs.New(),
		Links: n, Tiers: model.TiersOf(model.Plain), MaxCharge: &most}
	r.Client.Must(t, run)
	return run.Job
}

// settleUnit ends a link with one page, delivered with the given rows, or failed if rows is 0.
func (r *rig) settleUnit(t *testing.T, job ids.ID, seq, rows uint32) {
	t.Helper()
	r.Client.Dispatch(t, job, seq)
	receipt := model.Receipt{Job: job, Unit: model.Unit{Seq: seq}, Outcome: model.Errored,
		Last: true}
	if rows > 0 {
		receipt.Outcome, receipt.PriceRow, receipt.Quantity, receipt.Items = model.Delivered,
			"tier:plain", 1, rows
	}
	if err := r.Client.Settle(t.Context(), []model.Receipt{receipt}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestHistory(t *testing.T) {
	r := start(t)
	other := r.NewGroup(t, "alice", "h")
	second := r.newScraper(t, "second", other)
	var jobs []string
	for i, scraper := range []ids.ID{r.scraper, second, r.scraper} {
		job := r.launch(t, scraper, 2)
		r.Clock.Advance(time.Second)
		r.settleUnit(t, job, 0, uint32(5-i))
		r.Clock.Advance(1500 * time.Millisecond)
		r.settleUnit(t, job, 1, 0)
		if i < 2 {
			r.Client.CloseRun(t, job)
		}
		jobs = append(jobs, job.String())
	}
	const path = "GET /api/scraper/load-history"
	order := func(want ...int) map[string]any {
		has := map[string]any{"totalElements": len(want)}
		for i, n := range want {
			has[fmt.Sprintf("content.%d.id", i)] = jobs[n]
		}
		return has
	}
	list := func(query string, want ...int) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.Reader, Do: path + query, Status: 200,
			Has: order(want...)}
	}
	refused := func(query, code string) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.User, Do: path + query, Status: 400,
			Code: code}
	}
	r.Run(t,
		list("", 2, 1, 0), list("?sort=started,asc", 0, 1, 2),
		list("?sort=itemsQuantity:desc", 0, 1, 2), list("?sort=itemsQuantity", 2, 1, 0),
		list("?filters=%7B%22scraperId%22:%22"+r.scraper.String()+"%22%7D", 2, 0),
		list("?filters=%7B%22groupId%22:%22"+other.String()+"%22%7D&withDeleted=true", 1),
		list("?filters=%7B%22state%22:%22COMPLETED%22%7D", 1, 0),
		list("?filters=%7B%22state%22:%7B%22$in%22:%5B%22RUNNING%22,%22PENDING%22%5D%7D%7D", 2),
		list("?filters=%7B%22$nor%22:%5B%7B%22state%22:%22RUNNING%22%7D%5D%7D", 1, 0),
		apitest.Scenario{Name: "page", As: apitest.User, Do: path + "?page=1&size=2", Status: 200,
			Has: map[string]any{"totalElements": 3,
				"totalPages": 2, "size": 2, "number": 1, "content.0.id": jobs[0]},
			Lacks: []string{"content.1"}},
		apitest.Scenario{Name: "behind the end", As: apitest.User, Do: path + "?page=9&size=900",
			Status: 200, Has: map[string]any{
				"content": []any{}, "size": 200, "totalElements": 3}},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path, Status: 200,
			Has: map[string]any{"content": []any{}, "totalElements": 0}},
		apitest.Scenario{Name: "record", As: apitest.User, Do: path + "?sort=started,asc",
			Status: 200, Has: map[string]any{
				"content.0": map[string]any{"id": jobs[0], "scraperId": r.scraper,
					"groupId": r.group,
					"state":   "COMPLETED",
					"queued":  "2026-01-02T03:04:05.000Z", "started": "2026-01-02T03:04:06.000Z",
					"finished":     "2026-01-02T03:04:07.500Z",
					"successLinks": 1, "errorLinks": 1, "totalLinks": 2, "itemsQuantity": 5,
					"totalRequests": 2, "deliveredPages": 1,
					"duration": 1500, "errorMessage": nil, "stopReason": nil,
					"launchedByCustomer": true, "maxChargeMicros": 1000,
					"chargedMicros": 0, "ignoresRobots": false,
					"quarantineReason": nil},
				"content.2.finished": nil, "content.2.duration": nil,
				"content.2.state": "RUNNING"}},
		refused("?filters=%7B", "invalid_filter"),
		refused("?filters=%7B%22status%22:1%7D", "invalid_filter"),
		refused("?filters=%7B%22state%22:%22WRONG%22%7D", "invalid_filter"),
		refused("?filters=%7B%22state%22:%7B%22$nin%22:%5B%22FAILED%22,1%5D%7D%7D",
			"invalid_filter"),
		refused("?filters=%7B%22groupId%22:%22x%22%7D", "invalid_id"),
		refused("?sort=name", "invalid_sort"),
		refused("?sort=started,up", "invalid_sort"), refused("?page=-1", "invalid_page"),
		refused("?size=0", "invalid_page"),
		refused("?page=1001&size=100", "invalid_page"), refused("?groupId=x", "unknown_parameter"),
	)
}

// Patterns in a filter on runs are paid for each run.
func TestPatternsOnRunsArePaid(t *testing.T) {
	r := start(t)
	for i := range 100 {
		r.launch(t, r.newScraper(t, fmt.Sprint("many", i), r.group), 1)
	}
	compare := `{"scraperId":{"regex":"` + strings.Repeat("a{0,999}", 3) + `z"}}`
	filters := `{"$or":[` + strings.Repeat(compare+",", 7) + compare + `]}`
	r.Run(t, apitest.Scenario{As: apitest.Reader,
		Do:     "GET /api/scraper/load-history?filters=" + url.QueryEscape(filters),
		Status: 400, Code: "invalid_filter"})
}

func TestErrors(t *testing.T) {
	r := start(t)
	job := r.launch(t, r.scraper, 7_000)
	var writes []rowstore.PageWrite
	for seq := range uint32(7_000) {
		page := &model.Page{Job: job, Unit: model.Unit{Seq: seq}, Fetch: r.IDs.New(),
			Outcome: model.Errored, Code: "http_status", Status: 404,
			URL: fmt.Sprintf("https://shop.test/%d", seq), Last: true, At: 1}
		if seq == 0 {
			page.Outcome, page.Code, page.Rows = model.Delivered, "", [][]byte{[]byte(`{}`)}
		}
		if seq == 2 {
			page.Code, page.Status = "dns_failed", 0
		}
		writes = append(writes,
			rowstore.PageWrite{Page: page,
				Job: rowstore.Job{ID: job, Customer: "alice", Group: r.group, Scraper: r.scraper,
					Started: 1}})
	}
	if _, err := r.store.PutPages(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
	base := "GET /api/scraper/load-history/group/" + r.group.String() + "/job/"
	path := base + job.String() + "/errors"
	empty := r.launch(t, r.newScraper(t, "empty", r.group), 1)
	other := r.NewGroup(t, "alice", "h")
	count := func(n int) func(*testing.T, apitest.Answer) {
		return func(t *testing.T, a apitest.Answer) {
			if list, ok := a.JSON.([]any); !ok || len(list) != n {
				t.Errorf("%d errors, want %d", len(list), n)
			}
		}
	}
	first := map[string]any{"url": "https://shop.test/1", "status": 404,
		"error": "The site answered with an error status",
		"code":  "http_status", "place": "1.0"}
	r.Run(t,
		apitest.Scenario{Name: "all", As: apitest.Reader, Do: path, Status: 200,
			Check: count(6_999),
			Has: map[string]any{"0": first, "1.status": nil, "1.code": "dns_failed",
				"6998.url": "https://shop.test/6999"}},
		apitest.Scenario{Name: "first", As: apitest.User, Do: path + "?limit=2", Status: 200,
			Check: count(2), Has: map[string]any{"1.place": "2.0"}},
		apitest.Scenario{Name: "next", As: apitest.User, Do: path + "?limit=2&after=2.0",
			Status: 200, Check: count(2), Has: map[string]any{"0.place": "3.0"}},
		apitest.Scenario{Name: "behind all", As: apitest.User,
			Do: path + "?after=2147483647.4294967295", Status: 200, Check: count(0)},
		apitest.Scenario{Name: "too far", As: apitest.User, Do: path + "?after=2147483648.0",
			Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "not a place", As: apitest.User, Do: path + "?after=9999999999.0",
			Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "none", As: apitest.User, Do: base + empty.String() + "/errors",
			Status: 200, Has: map[string]any{"": []any{}}},
		apitest.Scenario{Name: "another group", As: apitest.User,
			Do: "GET /api/scraper/load-history/group/" + other.String() + "/job/" +
				job.String() + "/errors",
			Status: 400, Code: "job_not_found"},
		apitest.Scenario{Name: "unknown", As: apitest.User,
			Do: base + "0123456789abcdef01234567/errors", Status: 400, Code: "job_not_found"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path, Status: 400,
			Code: "job_not_found"},
		apitest.Scenario{Name: "malformed", As: apitest.User, Do: base + "x/errors", Status: 400,
			Code: "invalid_id"},
	)
}
