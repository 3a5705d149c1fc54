package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/work"
)

// replaced is a setup whose runs replace each other, with a model of which runs keep their rows.
type replaced struct {
	t        *testing.T
	clock    *clock.Manual
	ids      ids.Sequence
	client   *clienttest.Client
	store    *sqlite.Store
	groups   []ids.ID
	scrapers []ids.ID
	open     []rowstore.Job
	items    map[ids.ID]int // that a run stored
	rows     map[ids.ID]int // that are left of a run
	stored   map[ids.ID]rowstore.Job
	order    map[ids.ID][]ids.ID // a scraper's closed runs with rows, in launch order
	rest     map[ids.ID]bool     // a run over links that another run left
	stopped  map[ids.ID]bool     // a run that did not complete
	due      map[ids.ID]bool     // a run of the scraper was closed
	progress []byte
}

func newReplaced(t *testing.T, store *sqlite.Store) *replaced {
	at := clock.NewManual(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC))
	r := &replaced{t: t, clock: at, client: clienttest.New(t, at), store: store,
		items: map[ids.ID]int{}, rows: map[ids.ID]int{}, stored: map[ids.ID]rowstore.Job{},
		order: map[ids.ID][]ids.ID{}, rest: map[ids.ID]bool{}, stopped: map[ids.ID]bool{},
		due: map[ids.ID]bool{}}
	r.client.Must(t, client.OpenCustomer{Customer: "ann", Entry: r.ids.New()})
	r.client.Must(t, client.AdjustWallet{Customer: "ann", Entry: r.ids.New(), Amount: 1e9})
	for range 2 {
		r.groups = append(r.groups, r.ids.New())
		r.group(len(r.groups)-1, 0, true)
	}
	for range 3 {
		r.scrapers = append(r.scrapers, r.ids.New())
		r.move(len(r.scrapers)-1, 0, true)
	}
	return r
}

func (r *replaced) group(n, count int, create bool) {
	r.client.Must(r.t, client.PutGroup{Create: create, ID: r.groups[n], Customer: "ann",
		Name: fmt.Sprint(n), Retention: count})
}

func (r *replaced) move(n, group int, create bool) {
	put := client.PutScraper{Create: create, ID: r.scrapers[n], Customer: "ann",
		Group: r.groups[group], Spec: model.Scraper{Name: fmt.Sprint(n), Type: model.SingleProduct}}
	if known := r.client.View().Scraper(r.scrapers[n]); known != nil {
		put.Spec.Config = known.Spec.Config
	}
	r.client.Must(r.t, put)
}

// launch begins a run whose first pages have brought items rows.
func (r *replaced) launch(scraper ids.ID, items int) { r.launchOf(scraper, items, false) }

// launchOf begins a run of all links, or of those that another run left.
func (r *replaced) launchOf(scraper ids.ID, items int, rest bool) {
	view := r.client.View()
	if len(view.OpenJobsOf(scraper)) > 0 {
		return
	}
	run := client.LaunchRun{Job: r.ids.New(), Entry: r.ids.New(), Customer: "ann",
		Scraper: scraper, List: r.ids.New(), Links: 2, Tiers: model.TiersOf(model.Plain),
		Rest: rest}
	r.client.Must(r.t, run)
	r.rest[run.Job] = rest
	job := rowstore.Job{ID: run.Job, Customer: "ann", Group: view.Scraper(scraper).Group,
		Scraper: scraper, Started: r.clock.Now().UnixMicro()}
	r.open, r.items[job.ID] = append(r.open, job), items
	r.put(job, items)
}

func (r *replaced) put(job rowstore.Job, items int) {
	page := &model.Page{Job: job.ID, Fetch: r.ids.New(), URL: "http://a.test/", Quantity: 1,
		PriceRow: "tier:plain", Outcome: model.Delivered, Last: true}
	for range items {
		page.Rows = append(page.Rows, []byte(`{"a":1}`))
	}
	if items == 0 {
		page.Outcome, page.Quantity = model.Errored, 0
	}
	if _, err := r.store.PutPages(r.t.Context(),
		[]rowstore.PageWrite{{Job: job, Page: page}}); err != nil {
		r.t.Fatal(err)
	}
	r.rows[job.ID], r.stored[job.ID] = items, job
}

// end stops an open run and closes it.
func (r *replaced) end(n int) { r.endAs(n, true) }

// endAs settles the first link of an open run and stops it, or settles both. Then it closes it.
func (r *replaced) endAs(n int, stop bool) {
	job := r.open[n]
	r.open = slices.Delete(r.open, n, n+1)
	items := r.items[job.ID]
	first := model.Receipt{Job: job.ID, Outcome: model.Errored, Last: true}
	if items > 0 {
		first.Outcome, first.PriceRow = model.Delivered, "tier:plain"
		first.Quantity, first.Items = 1, uint32(items)
	}
	receipts, links := []model.Receipt{first}, []uint32{0}
	if !stop {
		receipts = append(receipts, model.Receipt{Job: job.ID, Unit: model.Unit{Seq: 1},
			Outcome: model.Errored, Last: true})
		links = append(links, 1)
	}
	r.client.Dispatch(r.t, job.ID, links...)
	if err := r.client.Settle(r.t.Context(), receipts, nil); err != nil {
		r.t.Fatal(err)
	}
	if stop {
		r.client.Must(r.t, client.StopRun{Customer: "ann", Job: job.ID})
	}
	if err := r.store.Seal(r.t.Context(), job.ID, nil); err != nil {
		r.t.Fatal(err)
	}
	r.client.CloseRun(r.t, job.ID)
	r.due[job.Scraper], r.stopped[job.ID] = true, stop
	if items > 0 {
		r.order[job.Scraper] = append(r.order[job.Scraper], job.ID)
	}
}

// retain steps retention until it rests. It dies at the point numbered dies; 0: at none.
func (r *replaced) retain(dies int) {
	view, lasts := r.client.View(), map[ids.ID]int{} // the rows of last runs
	for _, scraper := range r.scrapers {
		if last := r.lastRun(view, scraper); last != nil {
			lasts[last.ID] = r.rows[last.ID]
		}
	}
	died := false
	step := func(item work.Item) (outcome work.Outcome) {
		defer func() { died = recover() != nil }()
		kind := Retention(RetentionConfig{View: r.client.View, Store: r.store,
			History: client.NewHistory(r.store), Point: func(string) {
				if dies--; dies == 0 {
					panic("dies")
				}
			}})
		outcome, err := kind.Step(r.t.Context(), item)
		if err != nil {
			r.t.Fatal(err)
		}
		return outcome
	}
	for {
		outcome := step(work.Item{Progress: r.progress})
		if died {
			continue // another node continues from the same progress
		}
		if r.progress = outcome.Progress; outcome.Rest > 0 {
			break
		}
	}
	for scraper := range r.due {
		count := client.Retained(view, view.Scraper(scraper))
		if count == 0 {
			continue
		}
		for _, job := range slices.Backward(r.order[scraper]) {
			if count <= 0 {
				r.rows[job] = 0
			} else if group := view.Group(r.stored[job].Group); !r.rest[job] &&
				!(r.stopped[job] && group.Quarantine) {
				count--
			}
		}
	}
	clear(r.due)
	for last, rows := range lasts {
		if r.rows[last] != rows {
			r.t.Fatalf("the last run %s has lost its rows", last)
		}
	}
}

// lastRun returns the scraper's last run (decision 45).
func (r *replaced) lastRun(view *client.View, scraper ids.ID) (last *client.Job) {
	err := client.NewHistory(r.store).ScraperRuns(r.t.Context(), view, scraper,
		func(job *client.Job) bool {
			if client.Counts(view, job) {
				last = job
			}
			return last == nil
		})
	if err != nil {
		r.t.Fatal(err)
	}
	return last
}

func (r *replaced) check() {
	for id, job := range r.stored {
		r.count(id, job)
		sum, err := r.store.Recount(r.t.Context(), id)
		if err != nil || int(sum.Items) != r.items[id] {
			r.t.Fatalf("run %s is recounted to %+v: %v", id, sum, err)
		}
	}
}

// TestRetentionKeepsTheNewest: the rows of each scraper's newest runs stay, as many as configured.
// So do those of open and unknown runs, and those of the last run, whatever its group's quarantine.
// It does not matter what was moved or has left the state.
func TestRetentionKeepsTheNewest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }() // of a round that is over
		r := newReplaced(t, store)
		stranger := rowstore.Job{ID: r.ids.New(), Customer: "ann", Group: r.groups[0],
			Scraper: r.scrapers[0], Started: 1}
		r.items[stranger.ID] = 3
		r.put(stranger, 3)
		count := rapid.SampledFrom([]int{0, 1, 1, 2, 3})
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			r.clock.Advance(time.Duration(rapid.IntRange(0, 1).Draw(rt, "ms")) * time.Millisecond)
			n := rapid.IntRange(0, len(r.scrapers)-1).Draw(rt, "scraper")
			switch rapid.IntRange(0, 8).Draw(rt, "step") {
			case 0, 1, 2:
				r.launchOf(r.scrapers[n], rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "rows"),
					rapid.Bool().Draw(rt, "rest"))
			case 3, 4:
				if len(r.open) > 0 {
					r.endAs(rapid.IntRange(0, len(r.open)-1).Draw(rt, "run"),
						rapid.Bool().Draw(rt, "stop"))
				}
			case 5:
				r.client.Must(t, client.PutRetention{Customer: "ann", Scraper: r.scrapers[n],
					Count: count.Draw(rt, "count")})
			case 6:
				r.client.Must(t, client.PutGroup{ID: r.groups[n%2], Customer: "ann",
					Name: fmt.Sprint(n), Retention: count.Draw(rt, "count"),
					Quarantine: rapid.Bool().Draw(rt, "quarantine")})
			case 7:
				r.move(n, rapid.IntRange(0, 1).Draw(rt, "group"), false)
			case 8:
				r.client.Archive(t, store, rapid.IntRange(0, 3).Draw(rt, "keep"))
			}
			if rapid.Bool().Draw(rt, "retain") {
				r.retain(rapid.IntRange(0, 3).Draw(rt, "dies"))
				r.check()
			}
		}
	})
}

// A run of kept bodies replaces no crawl, nor does a run over the links that a crawl left. A list's
// runs of version 1 replace nothing, since they do not say whether they are such a one.
func TestRunsThatReplaceNothing(t *testing.T) {
	crawl := &client.Job{Closed: true, State: model.Completed, Items: 1}
	read := &client.Job{Closed: true, State: model.Completed, Items: 1, File: true}
	rest := &client.Job{Closed: true, State: model.Completed, Items: 1, Rest: true}
	shop, file, list := &client.Scraper{}, &client.Scraper{}, &client.Scraper{ListRun: true}
	file.Spec.Type = model.File
	c := clienttest.New(t, clock.NewManual(time.Unix(1_700_000_000, 0)))
	v := c.View()
	if !client.Replaces(v, crawl, shop) || client.Replaces(v, read, shop) ||
		client.Replaces(v, rest, shop) || !client.Replaces(v, read, file) ||
		!client.Replaces(v, crawl, list) {
		t.Error("a run counts as one of the newest that is none, or does not")
	}
	c.Spoil(t, func(tx *clienttest.Tx) {
		upgraded := *tx.Cluster()
		upgraded.RestsFrom = 7
		tx.PutCluster(&upgraded)
	})
	v = c.View()
	later := *crawl
	later.Queued = 7
	if client.Replaces(v, crawl, list) || !client.Replaces(v, &later, list) ||
		!client.Replaces(v, crawl, shop) {
		t.Error("a list's run of version 1 replaces others, or any other run does not")
	}
}

// unwilling fails to name the runs of some scrapers.
type unwilling struct {
	*sqlite.Store
	of     []ids.ID
	failed bool
}

func (u *unwilling) Holding(ctx context.Context, scope rowstore.Scope, most int) ([]ids.ID, error) {
	if slices.Contains(u.of, scope.Scraper) {
		u.failed = true
		return nil, errors.New("no such part")
	}
	return u.Store.Holding(ctx, scope, most)
}

// TestRetentionTellsWhatItPassedOver: scrapers on which the row store fails do not count as done
// while others go on. So reads that begin in between learn that rows may go. Another process, which
// knows only the progress, removes them once the store works.
func TestRetentionTellsWhatItPassedOver(t *testing.T) {
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := newReplaced(t, store)
	r.group(0, 1, false)
	for _, next := range []struct{ scraper, runs int }{{0, 2}, {1, retainedRuns}, {2, 2},
		{1, retainedRuns}} {
		for range next.runs {
			r.clock.Advance(time.Second)
			r.launch(r.scrapers[next.scraper], 1)
			r.end(0)
		}
	}
	first := r.client.View().Job(r.order[r.scrapers[0]][0])
	broken := &unwilling{Store: store, of: []ids.ID{r.scrapers[0], r.scrapers[2]}}
	process := func(steps int) (end work.Outcome) {
		kind := Retention(RetentionConfig{View: r.client.View, Store: broken,
			History: client.NewHistory(store)})
		for n := 0; n < steps && end.Rest == 0; n++ {
			if n == steps/2 && end.Progress == nil {
				broken.of = nil
			}
			outcome, err := kind.Step(t.Context(), work.Item{Progress: r.progress})
			if err == nil {
				r.progress, end = outcome.Progress, outcome
			}
		}
		return end
	}
	process(9)
	var at client.Retaining
	if err := json.Unmarshal(r.progress, &at); err != nil || !broken.failed ||
		at.Upto <= first.Index || at.Behind == 0 || at.Behind > first.Index {
		t.Fatalf("%+v, with the first run at %d: %v", at, first.Index, err)
	}
	if process(20); len(broken.of) > 0 {
		t.Fatal("the second process did not fail")
	}
	r.retain(0)
	r.check()
}

// TestRetentionPassesOverFew: when it fails on too many scrapers, retention waits. It would forget
// some of them.
func TestRetentionPassesOverFew(t *testing.T) {
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := newReplaced(t, store)
	r.group(0, 1, false)
	for range 2 {
		r.launch(r.scrapers[0], 1)
		r.end(0)
	}
	at := client.Retaining{Upto: r.client.View().Job(r.order[r.scrapers[0]][1]).Index, Behind: 1,
		Passed: []ids.ID{r.scrapers[0]}}
	for len(at.Passed) <= maxPassed-retainedRuns {
		at.Passed = append(at.Passed, r.ids.New())
	}
	progress, err := json.Marshal(at)
	if err != nil || len(progress) > work.MaxProgress/2 {
		t.Fatalf("%d bytes: %v", len(progress), err)
	}
	kind := Retention(RetentionConfig{View: r.client.View, History: client.NewHistory(store),
		Store: &unwilling{Store: store, of: r.scrapers}})
	for range retainedRuns {
		r.launch(r.scrapers[1], 1)
		r.end(0)
	}
	for range 4 {
		outcome, err := kind.Step(t.Context(), work.Item{Progress: progress})
		if err == nil {
			progress = outcome.Progress
		}
	}
	var now client.Retaining
	if err := json.Unmarshal(progress, &now); err != nil || now.Upto != at.Upto {
		t.Errorf("it went on to %d from %d: %v", now.Upto, at.Upto, err)
	}
}

// With retentionCount 1, a re-extract stands beside its crawl, whose rows stay. A later crawl of
// one page with rows replaces both, and nothing else. The new crawl's rows and records are there.
// The first crawl's rows can be extracted again from its kept bodies.
func TestRetentionOfOneRun(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		c := newCrawled(t, start, mixed()...)
		c.client.Must(t, client.PutRetention{Customer: "ann", Scraper: c.scraper, Count: 1})
		retain := func() {
			t.Helper()
			kind := Retention(RetentionConfig{View: c.client.View, Store: c.store,
				History: client.NewHistory(c.store)})
			for outcome := (work.Outcome{}); outcome.Rest == 0; {
				var err error
				outcome, err = kind.Step(t.Context(), work.Item{Progress: outcome.Progress})
				if err != nil || outcome.End != work.Rested {
					t.Fatalf("%+v, %v", outcome, err)
				}
			}
		}
		reread := func() ids.ID {
			t.Helper()
			job := c.begin(selectors)
			if end, _ := c.step(job); end != work.Ended {
				t.Fatalf("%v", end)
			}
			return job
		}
		wants := func(when string, rows map[ids.ID]int) {
			t.Helper()
			for job, want := range rows {
				if got := c.rowsOf(job); len(got) != want {
					t.Errorf("%s: run %s has rows %v, want %d", when, job, got, want)
				}
			}
		}
		crawled := len(c.rowsOf(c.run))
		first := reread()
		retain()
		wants("after a re-extract", map[ids.ID]int{c.run: crawled, first: 3})
		next := c.crawlOnce(`{"a":"new"}`)
		retain()
		wants("after a crawl", map[ids.ID]int{c.run: 0, first: 0, next: 1})
		second := reread()
		retain()
		wants("after another re-extract", map[ids.ID]int{c.run: 0, next: 1, second: 3})
		sum, err := c.store.Recount(t.Context(), c.run)
		if err != nil || int(sum.Items) != crawled {
			t.Errorf("the first crawl is recounted to %+v: %v", sum, err)
		}
	})
}

// crawlOnce is a complete run of one page with these rows, without kept bodies.
func (c *crawled) crawlOnce(rows ...string) ids.ID {
	c.t.Helper()
	run := client.LaunchRun{Job: c.ids.New(), Entry: c.ids.New(), Customer: "ann",
		Scraper: c.scraper, List: c.ids.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	c.client.Must(c.t, run)
	var documents [][]byte
	for _, row := range rows {
		documents = append(documents, []byte(row))
	}
	receipts, err := c.store.PutPages(c.t.Context(), []rowstore.PageWrite{{
		Job: rowstore.Job{ID: run.Job, Customer: "ann", Group: c.group, Scraper: c.scraper,
			Started: c.clock.Now().UnixMicro()},
		Page: &model.Page{Job: run.Job, Fetch: c.ids.New(), URL: "https://shop.test/",
			Outcome: model.Delivered, PriceRow: "tier:plain", Quantity: 1, Last: true,
			At: c.clock.Now().UnixMicro(), Rows: documents}}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.client.Dispatch(c.t, run.Job, 0)
	if err := c.client.Settle(c.t.Context(), []model.Receipt{*receipts[0]}, nil); err != nil {
		c.t.Fatal(err)
	}
	if err := c.store.Seal(c.t.Context(), run.Job, nil); err != nil {
		c.t.Fatal(err)
	}
	c.client.CloseRun(c.t, run.Job)
	c.clock.Advance(time.Second)
	return run.Job
}
