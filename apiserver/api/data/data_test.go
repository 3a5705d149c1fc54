package data_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

const unknown = "0123456789abcdef01234567"

// rig is an API with one group of alice's and two scrapers in it. shop has two runs of three rows
// each, other has one run of two rows.
type rig struct {
	*apitest.Server
	store       rowstore.Store
	group       ids.ID
	shop, other ids.ID
	jobs        []ids.ID // shop's first, other's, shop's second
	places      uint32
	odd         string // why the next runs are held back; "": they are not
}

func start(t *testing.T) *rig {
	t.Helper()
	return startOn(t, apitest.NewStore(t))
}

func startOn(t *testing.T, store rowstore.Store, options ...apitest.Option) *rig {
	t.Helper()
	r := &rig{store: store}
	r.Server = apitest.Start(t, append(options, apitest.WithStore(r.store))...)
	r.group = r.NewGroup(t, "alice", "g")
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	r.shop, r.other = r.scraper(t, "shop"), r.scraper(t, "other")
	r.run(t, r.shop, `{"n":1,"name":"a"}`, `{"n":2,"name":"b"}`, `{"n":3}`)
	r.run(t, r.other, `{"n":4,"name":"d"}`, `{"n":5,"name":"e"}`)
	r.run(t, r.shop, `{"n":6,"name":"f"}`, `{"n":7,"name":null}`, `{"n":8,"name":"h"}`)
	return r
}

func (r *rig) scraper(t *testing.T, name string) ids.ID {
	t.Helper()
	put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: name, Type: model.SingleProduct}}
	r.Client.Must(t, put)
	return put.ID
}

// run makes a closed run with one page for each row.
func (r *rig) run(t *testing.T, scraper ids.ID, rows ...string) {
	t.Helper()
	r.Clock.Advance(time.Second)
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: scraper, List: r.IDs.New(),
		Links: uint32(len(rows)), Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, run)
	r.jobs = append(r.jobs, run.Job)
	for seq, row := range rows {
		r.places++
		row = fmt.Sprintf(`%s,"_scrapedAt":"2026-01-02T03:04:%02d.000Z"}`,
			strings.TrimSuffix(row, "}"), r.places)
		page := &model.Page{Job: run.Job, Unit: model.Unit{Seq: uint32(seq)}, Fetch: r.IDs.New(),
			Outcome: model.Delivered, PriceRow: "tier:plain",
			Quantity: 1, URL: "https://shop.test/", Last: true, Rows: [][]byte{[]byte(row)},
			At: int64(r.places)}
		receipts, err := r.store.PutPages(t.Context(), []rowstore.PageWrite{{Page: page,
			Job: rowstore.Job{ID: run.Job, Customer: "alice", Group: r.group, Scraper: scraper,
				Started: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		r.Client.Dispatch(t, run.Job, uint32(seq))
		if err := r.Client.Settle(t.Context(), []model.Receipt{*receipts[0]}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.Client.HoldRun(t, run.Job, r.odd)
}

// pending launches a run of one link that does not begin.
func (r *rig) pending(t *testing.T, scraper ids.ID) ids.ID {
	t.Helper()
	r.Clock.Advance(time.Second)
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: scraper, List: r.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, run)
	return run.Job
}

// fail makes the only link of a run fail, which is in the out set.
func (r *rig) fail(t *testing.T, run ids.ID) {
	t.Helper()
	receipt := model.Receipt{Job: run, Outcome: model.Errored, Last: true}
	if err := r.Client.Settle(t.Context(), []model.Receipt{receipt}, nil); err != nil {
		t.Fatal(err)
	}
	r.Client.CloseRun(t, run)
}

// ended makes a run without rows in a state, final or not.
func (r *rig) ended(t *testing.T, scraper ids.ID, state model.JobState) {
	t.Helper()
	run := r.pending(t, scraper)
	switch state {
	case model.Stopped:
		r.Client.Must(t, client.StopRun{Customer: "alice", Job: run})
		r.Client.CloseRun(t, run)
	case model.Failed:
		r.Client.Dispatch(t, run, 0)
		r.fail(t, run)
	}
	if got := r.Client.View().Job(run).State; got != state {
		t.Fatalf("the run is %s, want %s", got, state)
	}
}

// TestLastRun: on both routes, runs that have not begun or have failed do not hide earlier rows
// (decision 45).
func TestLastRun(t *testing.T) {
	r := start(t)
	paths := map[string]string{"/api/scraper/data/group/" + r.group.String() +
		"?isLastRun=true&scraperId=": "content",
		"/api/scraper/data?isLastRun=true&scraperId=": "items"}
	want := func(scraper ids.ID, rows int) {
		t.Helper()
		for path, member := range paths {
			a := r.Call(t, apitest.Scenario{As: apitest.User, Do: "GET " + path + scraper.String(),
				Status: 200})
			if got := len(numbers(a, member)); got != rows {
				t.Errorf("%s: %d rows, want %d", path, got, rows)
			}
		}
	}
	r.ended(t, r.shop, model.Failed)
	want(r.shop, 3)
	r.ended(t, r.shop, model.Pending)
	want(r.shop, 3)
	r.ended(t, r.other, model.Stopped)
	want(r.other, 0)
}

// numbers joins the field n of the rows in an answer.
func numbers(a apitest.Answer, member string) string {
	rows, _ := a.At(member)
	list, _ := rows.([]any)
	var text strings.Builder
	for _, row := range list {
		fmt.Fprintf(&text, "%v", row.(map[string]any)["n"])
	}
	return text.String()
}

// filters makes a query parameter.
func filters(json string) string {
	return "filters=" + strings.NewReplacer(`"`, "%22", "{", "%7B", "}", "%7D", "[", "%5B", "]",
		"%5D", " ", "%20").Replace(json)
}
