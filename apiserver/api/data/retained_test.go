package data_test

import (
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// retaining runs retention as the service does: each step begins at what the last one recorded in
// the state.
type retaining struct {
	*rig
	table work.Table
	item  ids.ID
}

func startRetaining(t *testing.T) *retaining {
	t.Helper()
	r := &retaining{rig: start(t)}
	r.item = r.IDs.New()
	boot := r.IDs.New()
	r.Client.Must(t, client.RegisterNode{Name: "i1", Boot: boot})
	r.Client.Must(t, client.EnqueueWork{ID: r.item, Kind: work.Retain})
	r.table = client.Work(r.Client, "i1", boot)
	return r
}

// step does one step and reports whether there are more.
func (r *retaining) step(t *testing.T) (more bool) {
	t.Helper()
	exchange := func(turn work.Turn) {
		t.Helper()
		turn.Lease = time.Minute
		if err := r.table.Exchange(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
	exchange(work.Turn{Wants: []work.Want{{Kind: work.Retain, Most: 1, PerCustomer: 1}}})
	items := r.Client.View().WorkOf(work.Retain, "")
	if len(items) != 1 {
		t.Fatalf("items %v", items)
	}
	kind := ingest.Retention(ingest.RetentionConfig{View: r.Client.View, Store: r.store,
		History: client.NewHistory(r.store)})
	outcome, err := kind.Step(t.Context(), work.Item{Progress: items[0].Progress})
	if err != nil {
		t.Fatal(err)
	}
	exchange(work.Turn{Reports: []work.Report{{ID: r.item, Epoch: items[0].Epoch,
		End: work.Rested, Advanced: true, Progress: outcome.Progress}}})
	return outcome.Rest == 0
}

func (r *retaining) rest(t *testing.T) {
	t.Helper()
	for r.step(t) {
	}
}

// Retention removes the rows of a held run, too, once newer ones replace them: a cursor ends.
func TestCursorsOfHeldRuns(t *testing.T) {
	r := startRetaining(t)
	r.quarantine(t)
	r.Client.Must(t, client.PutRetention{Customer: "alice", Scraper: r.shop, Count: 1})
	r.odd = "odd"
	r.run(t, r.shop, `{"n":9}`, `{"n":10}`)
	r.odd = ""
	r.rest(t)
	reads := map[string]string{"held run": "jobId=" + r.jobs[3].String()}
	before := r.openReads(t, reads)
	r.run(t, r.shop, `{"n":11}`)
	r.rest(t)
	r.readOn(t, "when its rows are gone", reads, before, "held run")
}

// A cursor is refused once retention removes rows of its read; it never returns fewer. A cursor of
// other rows continues.
func TestCursorsOfRetainedRuns(t *testing.T) {
	r := startRetaining(t)
	r.Client.Must(t, client.PutRetention{Customer: "alice", Scraper: r.shop, Count: 1})
	r.Client.Must(t, client.PutRetention{Customer: "alice", Scraper: r.other, Count: 2})
	r.Client.Must(t, client.PutCategory{ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Name: "all", Filters: []byte(`{"n":{"$gt":0}}`)})
	r.rest(t)
	group := "groupId=" + r.group.String()
	reads := map[string]string{"group": group, "category": group + "&categories=all",
		"latest": "isLastRun=true&" + group, "scraper": "scraperId=" + r.shop.String(),
		"sorted": "sort=n,asc&scraperId=" + r.shop.String(), "run": "jobId=" + r.jobs[2].String(),
		"other": "scraperId=" + r.other.String(), "other run": "jobId=" + r.jobs[1].String()}
	open := func() map[string]string { return r.openReads(t, reads) }
	goOn := func(when string, cursors map[string]string, ends ...string) {
		t.Helper()
		r.readOn(t, when, reads, cursors, ends...)
	}
	before := open()
	r.run(t, r.other, `{"n":9}`)
	r.rest(t)
	goOn("beside one that is kept, too", before)
	r.ended(t, r.shop, model.Failed)
	r.rest(t)
	goOn("behind a run that failed", before)

	r.run(t, r.shop, `{"n":10}`, `{"n":11}`)
	between := open()
	goOn("before retention came", before)
	ends := []string{"group", "category", "latest", "scraper", "sorted", "run"}
	if !r.step(t) { // retention is recorded, and nothing is removed yet
		t.Error("retention rests")
	}
	goOn("as rows go", before, ends...)
	r.rest(t)
	goOn("when rows are gone", before, ends...)
	goOn("of before they went", between, "group", "category", "scraper", "sorted", "run")
	r.Client.Archive(t, r.store, 0)
	goOn("when runs have left the state", before, ends...)

	delete(reads, "run") // it has no rows
	after := open()
	r.rest(t)
	goOn("of rows that stay", after)
}
