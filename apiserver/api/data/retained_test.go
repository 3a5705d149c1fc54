package data_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// retaining runs retention as the service does: each step begins at what the last one recorded in
// the state.
type retaining struct {
	*rig
	table work.Table
}

func startRetaining(t *testing.T, store rowstore.Store) *retaining {
	t.Helper()
	r := &retaining{rig: startOn(t, store)}
	boot := r.IDs.New()
	r.Client.Must(t, client.RegisterNode{Name: "i1", Boot: boot})
	r.Client.Must(t, client.EnqueueWork{ID: r.IDs.New(), Kind: work.Retain})
	r.Client.Must(t, client.EnqueueWork{ID: r.IDs.New(), Kind: work.Expire})
	r.table = client.Work(r.Client, "i1", boot)
	return r
}

// step does one step and reports whether there are more.
func (r *retaining) step(t *testing.T) (more bool) {
	t.Helper()
	kind := ingest.Retention(ingest.RetentionConfig{View: r.Client.View, Store: r.store,
		History: client.NewHistory(r.store)})
	r.work(t, work.Retain, func(progress []byte) []byte {
		outcome, err := kind.Step(t.Context(), work.Item{Progress: progress})
		if err != nil {
			t.Fatal(err)
		}
		more = outcome.Rest == 0
		return outcome.Progress
	})
	return more
}

// work does a step of the only item of a kind, and records its progress.
func (r *retaining) work(t *testing.T, kind string, step func(progress []byte) []byte) {
	t.Helper()
	exchange := func(turn work.Turn) {
		t.Helper()
		turn.Lease = time.Minute
		if err := r.table.Exchange(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
	exchange(work.Turn{Wants: []work.Want{{Kind: kind, Most: 1, PerCustomer: 1}}})
	items := r.Client.View().WorkOf(kind, "")
	if len(items) != 1 {
		t.Fatalf("items %v", items)
	}
	exchange(work.Turn{Reports: []work.Report{{ID: items[0].ID, Epoch: items[0].Epoch,
		End: work.Rested, Advanced: true, Progress: step(items[0].Progress)}}})
}

func (r *retaining) rest(t *testing.T) {
	t.Helper()
	for r.step(t) {
	}
}

// Retention removes the rows of a held run, too, once newer ones replace them: a cursor ends.
func TestCursorsOfHeldRuns(t *testing.T) { onStores(t, readHeldRuns) }

func readHeldRuns(t *testing.T, store rowstore.Store) {
	r := startRetaining(t, store)
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

// What a newer run replaces may change while a read lasts: runs count that did not, or fewer runs
// are kept. The read never loses rows by that. A read of other rows continues.
func TestCursorsOfChangedRetention(t *testing.T) { onStores(t, changeRetention) }

func changeRetention(t *testing.T, store rowstore.Store) {
	keep := func(count int) func(*testing.T, *retaining) {
		return func(t *testing.T, r *retaining) {
			r.Client.Must(t, client.PutRetention{Customer: "alice", Scraper: r.shop, Count: count})
		}
	}
	stop := func(t *testing.T, r *retaining) {
		run := r.delivered(t, r.shop, `{"n":9}`)
		r.Client.Must(t, client.StopRun{Customer: "alice", Job: run})
		r.Client.CloseRun(t, run)
	}
	hold := func(t *testing.T, r *retaining) {
		r.odd = "odd"
		r.run(t, r.shop, `{"n":9}`)
		r.odd = ""
	}
	type step = func(*testing.T, *retaining)
	none := func(*testing.T, *retaining) {}
	for name, c := range map[string]struct {
		count               int
		run, change, behind step
	}{
		"no quarantine": {1, stop, func(t *testing.T, r *retaining) {
			r.Client.Must(t, client.PutGroup{ID: r.group, Customer: "alice", Name: "g"})
		}, none},
		"release": {1, hold, func(t *testing.T, r *retaining) {
			r.Client.Must(t, client.ReleaseRun{Customer: "alice", Job: r.jobs[3]})
		}, none},
		"fewer": {2, func(t *testing.T, r *retaining) {
			r.run(t, r.shop, `{"n":9}`)
		}, keep(1), none},
		"fewer just then": {2, none, keep(1), keep(9)},
		"all again":       {1, none, none, keep(0)},
	} {
		t.Run(name, func(t *testing.T) {
			r := startRetaining(t, store)
			r.quarantine(t)
			keep(c.count)(t, r)
			c.run(t, r)
			r.rest(t)
			reads := map[string]string{"run": "jobId=" + r.jobs[2].String(),
				"group":   "groupId=" + r.group.String(),
				"scraper": "scraperId=" + r.shop.String(), "other": "scraperId=" + r.other.String()}
			before := r.openReads(t, reads)
			c.change(t, r)
			r.readOn(t, "before a run", reads, before)
			r.run(t, r.shop, `{"n":10}`)
			r.rest(t)
			c.behind(t, r)
			r.readOn(t, "when rows are gone", reads, before, "run", "group", "scraper")
		})
	}
}

// Rows that expire leave a read, and end it only if they were not about to.
func TestCursorsOfExpiringRuns(t *testing.T) { onStores(t, expireRuns) }

func expireRuns(t *testing.T, store rowstore.Store) {
	for soon, ends := range map[bool][]string{true: nil, false: {"other"}} {
		r := startRetaining(t, store)
		expire := func(before int64) {
			r.work(t, work.Expire, func([]byte) []byte {
				return rowstore.NoteExpiry(time.UnixMicro(before))
			})
		}
		if soon {
			expire(1) // all rows are of that time
		}
		reads := map[string]string{"other": "scraperId=" + r.other.String()}
		before := r.openReads(t, reads)
		expire(2)
		r.run(t, r.other, `{"n":9}`)
		r.rest(t)
		r.readOn(t, fmt.Sprint("rows that expire, known before: ", soon), reads, before, ends...)
	}
}

// A read may begin after retention went on without a scraper on which the row store failed. Its
// cursor is refused once those rows go, too.
func TestCursorsOfPassedOverRuns(t *testing.T) { onStores(t, passOverRuns) }

func passOverRuns(t *testing.T, store rowstore.Store) {
	r := startRetaining(t, store)
	r.Client.Must(t, client.PutRetention{Customer: "alice", Scraper: r.shop, Count: 1})
	r.run(t, r.shop, `{"n":9}`)
	r.work(t, work.Retain, func([]byte) []byte {
		progress, err := json.Marshal(client.Retaining{Upto: math.MaxInt64, Behind: 1,
			Passed: []ids.ID{r.shop}})
		if err != nil {
			t.Fatal(err)
		}
		return progress
	})
	reads := map[string]string{"scraper": "scraperId=" + r.shop.String(),
		"other": "scraperId=" + r.other.String()}
	before := r.openReads(t, reads)
	r.rest(t)
	r.readOn(t, "when they are gone, too", reads, before, "scraper")
}

// counting is a store that calls a function once before it counts rows.
type counting struct {
	rowstore.Store
	before func()
}

func (s *counting) CountUpto(ctx context.Context, scopes []rowstore.Scope, upto int64) (int64,
	error) {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Store.CountUpto(ctx, scopes, upto)
}

// Rows are counted only for a cursor. If some go between the first page and the count, the page is
// read again, so that it has none of them.
func TestRowsThatGoBeforeTheyAreCounted(t *testing.T) {
	store := &counting{Store: apitest.NewStore(t)}
	r := startRetaining(t, store)
	r.Client.Must(t, client.PutRetention{Customer: "alice", Scraper: r.shop, Count: 1})
	r.rest(t)
	for _, sort := range []string{"", "&sort=n,asc"} {
		first := apitest.Scenario{As: apitest.User, Status: 200,
			Has: map[string]any{"hasMore": false},
			Do:  readPath + "?scraperId=" + r.shop.String() + sort}
		store.before = func() { t.Error("rows are counted that are all on the first page") }
		r.Run(t, first)
		gone := false
		store.before = func() {
			gone = true
			before := r.Client.View()
			r.run(t, r.shop, `{"n":10}`, `{"n":11}`)
			r.rest(t)
			r.Client.Freeze(before) // the node that answers does not know yet
		}
		first.Do += "&limit=1"
		if got := r.Call(t, first); !gone || strings.Contains(string(got.Body), `"n":`) {
			t.Errorf("sorted %q, counted %t: %s", sort, gone, got.Body)
		}
		r.Client.Freeze(nil)
	}
}

// A cursor of an earlier version does not tell how many rows its read had. It continues until runs
// end that may replace others.
func TestCursorsOfEarlierVersions(t *testing.T) {
	r := startRetaining(t, apitest.NewStore(t))
	r.Client.Must(t, client.PutRetention{Customer: "alice", Scraper: r.shop, Count: 1})
	r.rest(t)
	reads := map[string]string{"scraper": "scraperId=" + r.shop.String()}
	data, err := base64.RawURLEncoding.DecodeString(r.openReads(t, reads)["scraper"])
	if err != nil {
		t.Fatal(err)
	}
	place, _, has := strings.Cut(string(data[9:]), `,"c":`)
	if !has {
		t.Fatalf("%s has no count", data[9:])
	}
	earlier := map[string]string{"scraper": api.NewCursor(json.RawMessage(place+"}"), "data",
		"alice", r.shop.String(), ids.ID{}.String(), ids.ID{}.String(), "false", "")}
	r.run(t, r.other, `{"n":9}`)
	r.rest(t)
	r.readOn(t, "beside a run", reads, earlier)
	r.run(t, r.shop, `{"n":10}`)
	r.rest(t)
	r.readOn(t, "behind a run", reads, earlier, "scraper")
}

// A cursor is refused once retention removes rows of its read; it never returns fewer. A cursor of
// other rows continues.
func TestCursorsOfRetainedRuns(t *testing.T) { onStores(t, retainRuns) }

func retainRuns(t *testing.T, store rowstore.Store) {
	r := startRetaining(t, store)
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
	goOn("before rows go", before)
	going := map[string]string{"run": r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: readPath + "?limit=1&" + reads["run"] + "&cursor=" + before["run"]}).Text("nextCursor")}
	r.rest(t)
	goOn("when rows are gone", before, ends...)
	r.readOn(t, "when they went between pages", map[string]string{"run": reads["run"]}, going,
		"run")
	goOn("of before they went", between, "group", "category", "scraper", "sorted", "run")
	r.Client.Archive(t, r.store, 0)
	goOn("when runs have left the state", before, ends...)

	delete(reads, "run") // it has no rows
	after := open()
	r.rest(t)
	goOn("of rows that stay", after)
}
