package runs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// rig is an API with a row store and one group of alice's.
type rig struct {
	*apitest.Server
	store rowstore.Store
	group ids.ID
}

func start(t *testing.T) *rig {
	t.Helper()
	r := &rig{store: apitest.NewStore(t)}
	r.Server = apitest.Start(t, apitest.WithStore(r.store))
	r.group = r.NewGroup(t, "alice", "g")
	return r
}

var fields = []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}

// newScraper saves a scraper with one start address for alice.
func (r *rig) newScraper(t *testing.T, name, url string) ids.ID {
	t.Helper()
	put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: name, Type: model.SingleProduct,
			SourceConfig: model.SourceConfig{URL: url}, ItemsConfig: fields}}
	r.Client.Must(t, put)
	return put.ID
}

// urls returns the addresses of a job's list.
func (r *rig) urls(t *testing.T, job string) []string {
	t.Helper()
	id, err := ids.Parse(job)
	if err != nil {
		t.Fatalf("job %q: %v", job, err)
	}
	run := r.Client.View().Job(id)
	links, err := r.store.Links(t.Context(), run.List, 0, int(run.Links))
	if err != nil {
		t.Fatal(err)
	}
	urls := make([]string, len(links))
	for i, l := range links {
		urls[i] = l.URL
	}
	return urls
}

// nothingLeft fails if there is a list without a job, or a claim without a call.
func (r *rig) nothingLeft(t *testing.T) {
	t.Helper()
	lists, err := r.store.AllLists(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lists {
		if r.Client.View().JobOfList(l.ID) == nil {
			t.Errorf("list %s of %d links is left", l.ID, l.Count)
		}
	}
	if claims := r.Client.View().ClaimsUnderWay("test"); len(claims) > 0 {
		t.Errorf("%d claims are left", len(claims))
	}
}

// finish ends a job of n links. Those in good are delivered; the others fail, or are websites
// without a charge.
func (r *rig) finish(t *testing.T, job string, n int, good ...uint32) {
	t.Helper()
	id, err := ids.Parse(job)
	if err != nil {
		t.Fatalf("job %q: %v", job, err)
	}
	delivered := map[uint32]bool{}
	for _, seq := range good {
		delivered[seq] = true
	}
	j := r.Client.View().Job(id)
	for seq := range uint32(n) {
		links, err := r.store.LinksAt(t.Context(), j.List, []uint32{seq})
		if err != nil {
			t.Fatal(err)
		}
		page := &model.Page{Job: id, Unit: model.Unit{Seq: seq}, Fetch: r.IDs.New(),
			Outcome: model.Errored, Code: "http_status",
			Status: 404, URL: links[0].URL, Last: true}
		if delivered[seq] {
			page.Outcome, page.Code, page.Status = model.Delivered, "", 200
			prices := r.Client.View().Prices(j.Prices).Rows
			page.PriceRow, page.Quantity = prices.At(j.Charge,
				address.AuthorityOf(links[0].URL)).Of(model.Plain)
			page.Rows = [][]byte{[]byte(fmt.Sprintf(`{"n":%d}`, seq))}
		} else if j.Charge.PaidOnly { // a website without a charge has a row, too
			page.Outcome, page.Code, page.Status, page.Rows = model.Delivered, "", 200,
				[][]byte{[]byte(`{"n":null}`)}
		}
		r.Client.Dispatch(t, id, seq)
		receipts, err := r.store.PutPages(t.Context(), []rowstore.PageWrite{{Page: page,
			Job: rowstore.Job{ID: id, Customer: "alice", Group: j.Group, Scraper: j.Scraper,
				Started: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Client.Settle(t.Context(), []model.Receipt{*receipts[0]}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.Client.CloseRun(t, id)
	if j := r.Client.View().Job(id); !j.Closed {
		t.Fatalf("the run does not close: %+v", j)
	}
}

func key(text string) map[string]string { return map[string]string{"Idempotency-Key": text} }

// flaky is a store whose list operations fail at a step, or wait.
type flaky struct {
	rowstore.Store
	step             string
	adding, finished func()
}

var errDisk = errors.New("the disk is full")

func (f *flaky) CreateList(ctx context.Context, list ids.ID) (rowstore.ListWriter, error) {
	if f.step == "create" {
		return nil, errDisk
	}
	w, err := f.Store.CreateList(ctx, list)
	if err != nil {
		return nil, err
	}
	return &flakyWriter{w, f}, nil
}

type flakyWriter struct {
	rowstore.ListWriter
	f *flaky
}

func (w *flakyWriter) Add(ctx context.Context, url, canonical string) (bool, error) {
	if w.f.step == "add" {
		return false, errDisk
	}
	if w.f.adding != nil {
		w.f.adding()
	}
	return w.ListWriter.Add(ctx, url, canonical)
}

func (w *flakyWriter) Finish(ctx context.Context) (uint32, error) {
	if w.f.step == "finish" {
		return 0, errDisk
	}
	n, err := w.ListWriter.Finish(ctx)
	if w.f.finished != nil {
		w.f.finished()
	}
	return n, err
}
