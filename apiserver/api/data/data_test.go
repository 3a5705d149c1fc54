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

// rig is an API with a group of alice that has two scrapers: one with two runs of three rows each, one with one run of two.
type rig struct {
	*apitest.Server
	store       rowstore.Store
	group       ids.ID
	shop, other ids.ID
	jobs        []ids.ID // shop's first, other's, shop's second
	places      uint32
}

func start(t *testing.T) *rig {
	t.Helper()
	r := &rig{store: apitest.NewStore(t)}
	r.Server = apitest.Start(t, apitest.WithStore(r.store))
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
	put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group, Spec: model.Scraper{Name: name, Type: model.SingleProduct}}
	r.Client.Must(t, put)
	return put.ID
}

// run is a closed run with a page for each row.
func (r *rig) run(t *testing.T, scraper ids.ID, rows ...string) {
	t.Helper()
	r.Clock.Advance(time.Second)
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice", Scraper: scraper, List: r.IDs.New(),
		Links: uint32(len(rows)), Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, run)
	r.jobs = append(r.jobs, run.Job)
	for seq, row := range rows {
		r.places++
		row = fmt.Sprintf(`%s,"_scrapedAt":"2026-01-02T03:04:%02d.000Z"}`, strings.TrimSuffix(row, "}"), r.places)
		page := &model.Page{Job: run.Job, Unit: model.Unit{Seq: uint32(seq)}, Fetch: r.IDs.New(), Outcome: model.Delivered, PriceRow: "tier:plain",
			Quantity: 1, URL: "https://shop.test/", Last: true, Rows: [][]byte{[]byte(row)}, At: int64(r.places)}
		receipts, err := r.store.PutPages(t.Context(), []rowstore.PageWrite{{Page: page,
			Job: rowstore.Job{ID: run.Job, Customer: "alice", Group: r.group, Scraper: scraper, Started: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		r.Client.Dispatch(t, run.Job, uint32(seq))
		if err := r.Client.Settle(t.Context(), []model.Receipt{*receipts[0]}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.Client.CloseRun(t, run.Job)
}

// numbers are the n of the rows in an answer, in their order.
func numbers(a apitest.Answer, member string) string {
	rows, _ := a.At(member)
	list, _ := rows.([]any)
	var text strings.Builder
	for _, row := range list {
		fmt.Fprintf(&text, "%v", row.(map[string]any)["n"])
	}
	return text.String()
}

// filters is a query parameter.
func filters(json string) string {
	return "filters=" + strings.NewReplacer(`"`, "%22", "{", "%7B", "}", "%7D", "[", "%5B", "]", "%5D", " ", "%20").Replace(json)
}
