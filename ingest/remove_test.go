package ingest

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// removing makes a setup in which a scraper with rows in two groups is deleted together with them.
// Its newest run is not closed.
func removing(t *testing.T) *replaced {
	r := newReplaced(t, openStore(t))
	for n := range 3 {
		r.launch(r.scrapers[n], 3)
		r.end(0)
	}
	r.move(0, 1, false)
	for range holdingAtOnce + 1 {
		r.launch(r.scrapers[0], 1)
		r.end(0)
	}
	r.client.Archive(t, r.store, 1)
	r.launch(r.scrapers[0], 2)
	deletion := client.Deletion{Customer: "ann", Operation: client.OpDeleteScraper,
		Target: r.scrapers[0], Query: client.WithData, Rows: 7}
	r.client.Must(t, client.PreviewDelete{Deletion: deletion, Token: "t"})
	r.client.Must(t, client.DeleteScraper{Deletion: deletion, Token: "t"})
	return r
}

// removeStep makes one removal step, and says whether it died at the point numbered dies.
func (r *replaced) removeStep(dies int) (outcome work.Outcome, died bool) {
	defer func() { died = recover() != nil }()
	kind := Removal(RemovalConfig{Client: r.client, Store: r.store,
		History: client.NewHistory(r.store), Clock: r.clock, Point: func(string) {
			if dies--; dies == 0 {
				panic("dies")
			}
		}})
	outcome, err := kind.Step(r.t.Context(), work.Item{})
	if err != nil {
		r.t.Fatal(err)
	}
	return outcome, false
}

// TestRemovalTakesAllAndNothingElse kills the removal at each of its points in turn.
func TestRemovalTakesAllAndNothingElse(t *testing.T) {
	for _, dies := range []int{0, 1, 2, 3, 4, 2*holdingAtOnce + 4, 2*holdingAtOnce + 7} {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			r := removing(t)
			r.removeStep(0)
			r.check() // while one of its runs is not closed, nothing is removed
			if removals := r.client.View().RemovalsOf("ann"); len(removals) != 2 {
				t.Fatalf("%d removals, want one of each group", len(removals))
			}
			job := r.open[0]
			if err := r.store.Seal(t.Context(), job.ID, nil); err != nil {
				t.Fatal(err)
			}
			r.client.CloseRun(t, job.ID)
			if _, died := r.removeStep(dies); died != (dies > 0) {
				t.Fatalf("it died: %v", died)
			}
			outcome, _ := r.removeStep(0)
			if outcome.End != work.Rested {
				t.Errorf("%+v", outcome)
			}
			for id, of := range r.stored {
				if of.Scraper == r.scrapers[0] {
					r.rows[id] = 0
				}
			}
			r.check()
			if removals := r.client.View().RemovalsOf("ann"); len(removals) != 0 {
				t.Errorf("%d removals are left", len(removals))
			}
		})
	}
}

// TestRemovalTakesDeletedRuns kills a removal at each point. One of two runs is not closed.
func TestRemovalTakesDeletedRuns(t *testing.T) {
	for dies := range 7 {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			r := newReplaced(t, openStore(t))
			for range 3 {
				r.launch(r.scrapers[0], 3)
				r.end(0)
			}
			r.client.Archive(t, r.store, 1)
			r.launch(r.scrapers[0], 2)
			under := r.open[0].ID
			gone := []ids.ID{r.order[r.scrapers[0]][0], r.order[r.scrapers[0]][2], under}
			for _, job := range gone {
				deletion := client.Deletion{Customer: "ann", Operation: client.OpDeleteRun,
					Target: job, Run: &client.TargetRun{Group: r.groups[0],
						Scraper: r.scrapers[0]}}
				r.client.Must(t, client.PreviewDelete{Deletion: deletion, Token: "t"})
				r.client.Must(t, client.DeleteRun{Deletion: deletion, Token: "t"})
			}
			if _, died := r.removeStep(dies); died != (dies > 0 && dies <= 5) {
				t.Fatalf("it died: %v", died)
			}
			r.removeStep(0)
			r.rows[gone[0]], r.rows[gone[1]] = 0, 0
			r.check() // the rows of the open run stay
			if err := r.store.Seal(t.Context(), under, nil); err != nil {
				t.Fatal(err)
			}
			r.client.CloseRun(t, under)
			r.removeStep(0)
			r.rows[under] = 0
			r.check()
			r.client.View().DeletedHeld(func(d *client.DeletedRun) bool {
				t.Errorf("%+v is left", d)
				return true
			})
		})
	}
}

// TestRemovalTakesDeletedGroups dies at each of its points in turn. One of the group's runs is not
// closed, and one belongs to a scraper that was moved away.
func TestRemovalTakesDeletedGroups(t *testing.T) {
	for _, dies := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9} {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			r := newReplaced(t, openStore(t))
			for n := range 3 {
				r.launch(r.scrapers[n], 3)
				r.end(0)
			}
			r.move(1, 1, false)
			r.launch(r.scrapers[1], 2) // in the other group
			r.end(0)
			r.client.Archive(t, r.store, 1)
			for range 250 { // more than one command removes at once
				r.scrapers = append(r.scrapers, r.ids.New())
				r.move(len(r.scrapers)-1, 0, true)
			}
			r.launch(r.scrapers[0], 2)
			under := r.open[0]
			deletion := client.Deletion{Customer: "ann", Operation: client.OpDeleteGroup,
				Target: r.groups[0], Query: client.WithData, Rows: 9}
			r.client.Must(t, client.PreviewDelete{Deletion: deletion, Token: "t"})
			r.client.Must(t, client.DeleteGroup{Deletion: deletion, Token: "t"})
			if _, died := r.removeStep(dies); died != (dies == 1) {
				t.Fatalf("it died: %v", died) // before a command that removes scrapers
			}
			r.removeStep(0)
			r.check() // while a run in it is not closed, no row is removed
			if hasMembers(r.client.View(), r.groups[0]) {
				t.Error("scrapers are left")
			}
			if err := r.store.Seal(t.Context(), under.ID, nil); err != nil {
				t.Fatal(err)
			}
			r.client.CloseRun(t, under.ID)
			if _, died := r.removeStep(dies); died != (dies > 0) {
				t.Fatalf("it died: %v", died)
			}
			r.removeStep(0)
			for id, of := range r.stored {
				if of.Group == r.groups[0] {
					r.rows[id] = 0
				}
			}
			r.check()
			if deleted := r.client.View().DeletedGroup(r.groups[0]); deleted != nil {
				t.Errorf("%+v is left", deleted)
			}
		})
	}
}

// TestRemovalHeedsARestore: a scraper, group or run that is no longer deleted is not removed.
func TestRemovalHeedsARestore(t *testing.T) {
	r := removing(t)
	config := RemovalConfig{Client: r.client, Store: r.store}
	none := &client.Removal{Group: r.groups[0], Scraper: r.scrapers[1]}
	if err := config.remove(t.Context(), none); err != nil {
		t.Fatal(err)
	}
	if err := config.removeRows(t.Context(), r.groups[0]); err != nil {
		t.Fatal(err)
	}
	if err := config.removeRun(t.Context(), r.order[r.scrapers[1]][0]); err != nil {
		t.Fatal(err)
	}
	r.check()
}

// count compares the rows of a run with the model.
func (r *replaced) count(id ids.ID, job rowstore.Job) {
	r.t.Helper()
	n, err := r.store.Count(r.t.Context(), rowstore.Scope{Group: job.Group,
		Jobs: []ids.ID{id}}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if int(n) != r.rows[id] {
		r.t.Fatalf("run %s of scraper %s has %d rows, want %d", id, job.Scraper, n, r.rows[id])
	}
}
