package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// stoppable is a run of several batches that would replace the rows of an earlier one.
type stoppable struct {
	job   ids.ID
	group ids.ID // that shows its rows
	step  func() // until it ends or dies
}

// beginAnother makes a result of a kind, and begins another one.
func (u *uploaded) beginAnother(kind string) stoppable {
	u.t.Helper()
	const count = importedRows + 10
	line := func(n int, field string) string {
		return fmt.Sprintf(`{"title":"%06d","%s":"1"}`, 100_000+n, field)
	}
	var left, right, products []string
	for n := range count {
		left, right = append(left, line(n, "a")), append(right, line(n, "b"))
		products = append(products, fmt.Sprintf(`{"id":"p%d","title":"%06d"}`, n, 100_000+n))
	}
	one := u.run(left...)
	switch kind {
	case "merge":
		two := u.run(right...)
		first := u.begin(one, two)
		u.stepMerge(first.Job, one, two)
		begun := u.begin(one, two)
		return stoppable{begun.Job, begun.Group, func() { u.stepMerge(begun.Job, one, two) }}
	case "match":
		catalogue := u.products(products...)
		first := u.beginMatch(catalogue)
		u.stepMatch(first.Job, catalogue)
		begun := u.beginMatch(catalogue)
		return stoppable{begun.Job, begun.Group, func() { u.stepMatch(begun.Job, catalogue) }}
	}
	u.protect()
	job := u.send("title", "jsonl", strings.Join(right, "\n"))
	return stoppable{job, u.group, func() { u.steps(job) }}
}

// rowsIn returns the rows that a group shows.
func (u *uploaded) rowsIn(group ids.ID) (rows []string) {
	u.t.Helper()
	u.each(client.Shown(u.client.View(), group, ids.ID{}), func(row map[string]any) {
		rows = append(rows, fmt.Sprint(row))
	})
	return rows
}

// A merge, a match and a protected upload that are stopped in the middle leave the rows as they
// were, and none of their own. So they do if the process dies, and if another owner is late.
func TestStopsInTheMiddle(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		for _, kind := range []string{"merge", "match", "import"} {
			for _, at := range []string{"before_put", "after_put", "after_seal"} {
				for _, how := range []string{"stopped", "removed", "killed"} {
					t.Run(fmt.Sprint(kind, " ", at, " ", how), func(t *testing.T) {
						u := start(t)
						s := u.beginAnother(kind)
						before, stops := u.rowsIn(s.group), 0
						u.point = func(name string) {
							if name != "work."+kind+"."+at {
								return
							}
							u.point = func(string) {}
							u.client.Must(t, client.StopRun{Customer: "ann", Job: s.job})
							switch stops++; how {
							case "removed":
								u.remove()
							case "killed":
								panic(name)
							}
						}
						s.step()
						s.step() // late
						u.wantStopped(s, before)
						u.remove()
						u.wantStopped(s, before)
						sum, err := u.store.Recount(t.Context(), s.job)
						if err != nil || sum.Items != 0 || stops != 1 {
							t.Errorf("%d rows are left after %d stops, %v", sum.Items, stops, err)
						}
						held, err := u.store.Holding(t.Context(),
							rowstore.Scope{Group: s.group}, 10)
						if err != nil || slices.Contains(held, s.job) {
							t.Errorf("the group holds %v, %v", held, err)
						}
					})
				}
			}
		}
	})
}

// wantStopped requires that a run is stopped, and that its group shows the rows from before.
func (u *uploaded) wantStopped(s stoppable, before []string) {
	u.t.Helper()
	job := u.client.View().Job(s.job)
	if job.State != model.Stopped || !job.Unlisted() || job.Items != 0 {
		u.t.Errorf("%+v", job)
	}
	if now := u.rowsIn(s.group); len(before) == 0 || !slices.Equal(now, before) {
		u.t.Errorf("%d rows are shown, %d before", len(now), len(before))
	}
}
