package ingest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// products makes the catalogue that rows are matched with, from lines.
func (u *uploaded) products(lines ...string) ids.ID {
	u.t.Helper()
	id := u.catalogue("jsonl", strings.Join(lines, "\n"))
	point := u.point
	u.point = func(string) {}
	u.lookThrough(id)
	u.point = point
	return id
}

// beginMatch begins a match of the group with a catalogue.
func (u *uploaded) beginMatch(catalogue ids.ID) client.BegunResult {
	u.t.Helper()
	u.clock.Advance(time.Second)
	begun := u.client.Must(u.t, client.BeginResult{Job: u.ids.New(), Customer: "ann",
		Group: u.group, Made: client.Matched, Kind: work.Match, NewGroup: u.ids.New(),
		NewScraper: u.ids.New(), Args: catalogue[:]}).(client.BegunResult)
	u.clock.Advance(time.Second)
	return begun
}

// stepMatch makes one step of a match; died says that point panicked.
func (u *uploaded) stepMatch(job, catalogue ids.ID) (end work.End, died bool) {
	u.t.Helper()
	defer func() {
		if value := recover(); value != nil {
			died = true
		}
	}()
	kind := Match(ImportConfig{Client: u.client, Store: u.store, Files: u.blobs,
		History: client.NewHistory(u.store), IDs: u.ids, Clock: u.clock, Dir: u.t.TempDir(),
		Point: u.point})
	for {
		outcome, err := kind.Step(u.t.Context(), work.Item{ID: job, Kind: work.Match,
			Customer: "ann", Args: catalogue[:], Progress: u.noted[job]})
		if err != nil {
			u.t.Error(err)
		}
		if len(outcome.Progress) == 0 || len(u.noted[job]) > 0 {
			return outcome.End, false
		}
		u.noted = map[ids.ID][]byte{job: outcome.Progress}
	}
}

// matched returns the rows of the sibling, as "catalogue id, method", by the matched row's title.
func (u *uploaded) matched() map[string]string {
	u.t.Helper()
	view := u.client.View()
	titles := map[string]string{}
	u.each(client.Shown(view, u.group, ids.ID{}), func(row map[string]any) {
		titles[fmt.Sprint(row["_rowId"])] = fmt.Sprint(row["title"])
	})
	found := map[string]string{}
	u.each(client.Shown(view, view.Sibling(u.group, client.Matched).ID, ids.ID{}),
		func(row map[string]any) {
			title, known := titles[fmt.Sprint(row["rowId"])]
			score, isNumber := row["score"].(float64)
			if !known || !isNumber || score < 0.5 || score > 1 || found[title] != "" {
				u.t.Errorf("%v of %q", row, title)
			}
			found[title] = fmt.Sprint(row["catalogueId"], ", ", row["method"])
		})
	return found
}

func (u *uploaded) each(scope rowstore.Scope, visit func(row map[string]any)) {
	u.t.Helper()
	upto, err := u.store.Horizon(u.t.Context())
	if err != nil {
		u.t.Fatal(err)
	}
	for q := (rowstore.ScanQuery{Scope: scope, Upto: upto, Limit: 1_000}); q.After < upto; {
		docs, last, err := u.store.Scan(u.t.Context(), q)
		if err != nil {
			u.t.Fatal(err)
		}
		for _, doc := range docs {
			var row map[string]any
			if err := json.Unmarshal(doc, &row); err != nil {
				u.t.Fatal(err)
			}
			visit(row)
		}
		q.After = last
	}
}

// Rows of a group's latest runs find their products, and a new match replaces the last.
func TestMatch(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		u := start(t)
		catalogue := u.products(`{"id":"pen","ean":"4006381333931","title":"Stabilo point 88"}`,
			`{"id":"cam","brand":"Optik","model":"DSC-W120P","title":"Optik camera"}`,
			`{"id":"flour","title":"Mill & Co Wheat Flour 500 g"}`)
		u.run(`{"title":"a pen","EAN":"4006381333931"}`, `{"title":"nothing like it"}`,
			`{"EAN":4006381333931,"title":"12"}`)
		scraper := u.scraper
		u.run(`{"title":"OPTIK DSCW120P"}`, `{"title":"Mill & Co wheat flour 0.5kg"}`)
		u.run(`{"price":"1"}`)
		begun := u.beginMatch(catalogue)
		if end, _ := u.stepMatch(begun.Job, catalogue); end != work.Ended {
			t.Fatalf("%v", end)
		}
		want := map[string]string{"a pen": "pen, gtin", "12": "pen, gtin",
			"OPTIK DSCW120P":              "cam, brand_model",
			"Mill & Co wheat flour 0.5kg": "flour, title"}
		if got := u.matched(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v", got)
		}
		job := u.client.View().Job(begun.Job)
		if job.State != model.Completed || job.Items != 4 {
			t.Errorf("%+v", job)
		}
		if p := u.client.View().Scraper(scraper).Protection; p == nil || p.Matched != "EAN" {
			t.Errorf("%+v", p)
		}
		second := u.products(`{"id":"camera","title":"Optik camera","mpn":"DSC-W120P"}`)
		again := u.beginMatch(second)
		u.stepMatch(again.Job, second)
		if got := u.matched(); got["OPTIK DSCW120P"] == "" || len(got) != 1 {
			t.Errorf("then %v", got)
		}
		// A match without any row completes, too; one whose catalogue is gone fails.
		third := u.products(`{"id":"x","title":"quite another thing"}`)
		none := u.beginMatch(third)
		u.stepMatch(none.Job, third)
		if job := u.client.View().Job(none.Job); job.State != model.Completed || job.Items != 0 ||
			len(u.matched()) != 0 {
			t.Errorf("%+v", job)
		}
		late := u.beginMatch(second)
		u.stepMatch(late.Job, second)
		if job := u.client.View().Job(late.Job); job.State != model.Failed ||
			job.Message != noCatalogue {
			t.Errorf("%+v", job)
		}
	})
}

// A run that is replaced or removed after the match began ends the match. Its rows are no longer
// read, though some of their batches may be stored.
func TestMatchOfReplacedRows(t *testing.T) {
	for name, goes := range map[string]func(u *uploaded, run ids.ID){
		"replaced": func(u *uploaded, _ ids.ID) {
			u.steps(u.send("title", "jsonl", `{"title":"another"}`))
		},
		"removed": func(u *uploaded, run ids.ID) {
			if err := u.store.DeleteJob(u.t.Context(), run, false); err != nil {
				u.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(t *testing.T, start starter) {
				u := start(t)
				catalogue := u.products(`{"id":"pen","title":"Stabilo point 88"}`)
				run := u.run(`{"title":"stabilo point 88"}`)
				begun := u.beginMatch(catalogue)
				u.point = func(name string) {
					if name == "work.match.after_put" {
						panic(name)
					}
				}
				if _, died := u.stepMatch(begun.Job, catalogue); !died {
					t.Error("it survives its end")
				}
				u.point = func(string) {}
				goes(u, run)
				u.stepMatch(begun.Job, catalogue)
				if job := u.client.View().Job(begun.Job); job.State != model.Failed ||
					job.Message != notSame {
					t.Errorf("%+v", job)
				}
			})
		})
	}
}

// A match has each row once, even if it is killed at any point, and stepped again after its end.
func TestMatchIsKilled(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		for _, at := range []string{"work.match.before_put", "work.match.after_put",
			"work.match.after_seal", "work.match.after_end"} {
			for nth := range 2 {
				t.Run(fmt.Sprint(at, nth), func(t *testing.T) {
					u := start(t)
					var products, rows []string
					for n := range importedRows + 10 {
						products = append(products, fmt.Sprintf(`{"id":"p%d","title":"thing %d"}`,
							n, 10_000+n))
						rows = append(rows, fmt.Sprintf(`{"title":"THING %d"}`, 10_000+n))
					}
					catalogue := u.products(products...)
					slices.Reverse(rows)
					u.run(rows...)
					begun := u.beginMatch(catalogue)
					seen := 0
					u.point = func(name string) {
						if name == at {
							if seen++; seen > nth {
								panic(name)
							}
						}
					}
					_, died := u.stepMatch(begun.Job, catalogue)
					if u.point = func(string) {}; died {
						u.stepMatch(begun.Job, catalogue)
					}
					u.stepMatch(begun.Job, catalogue) // late
					job := u.client.View().Job(begun.Job)
					if job.State != model.Completed || job.Items != importedRows+10 {
						t.Fatalf("%+v", job)
					}
					found := u.matched()
					for n := range importedRows + 10 {
						want := fmt.Sprintf("p%d, brand_model", n)
						if got := found[fmt.Sprintf("THING %d", 10_000+n)]; got != want {
							t.Fatalf("%d: %q, want %q", n, got, want)
						}
					}
				})
			}
		}
	})
}
