package sqlite

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// TestPagesOfThePastFollowIndices: the default lists of history and ledger, by number and by place,
// read an index that covers them, in its order. Counts read past_counts.
func TestPagesOfThePastFollowIndices(t *testing.T) {
	store, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	generation, other := ids.ID{1}, ids.ID{2}
	path := rowstore.Path{{Generation: generation, Upto: 9}, {Generation: other, Upto: 5}}
	behind := &rowstore.PastPlace{Value: 7, ID: ids.ID{3}}
	for _, test := range []struct {
		q     rowstore.PastQuery
		index string
	}{
		{rowstore.PastQuery{Customer: "one", By: rowstore.ByStarted, Descending: true},
			"past_runs_by_start (customer=? AND trial=?)"},
		{rowstore.PastQuery{Customer: "one", By: rowstore.ByStarted, Descending: true,
			Kinds: []rowstore.PastKind{{State: "COMPLETED"}}},
			"past_runs_by_start (customer=? AND trial=?)"},
		{rowstore.PastQuery{Customer: "one", By: rowstore.ByStarted},
			"past_runs_by_start (customer=? AND trial=?)"},
		{rowstore.PastQuery{Customer: "one", By: rowstore.ByQueued, Descending: true,
			Queued: rowstore.PastSpan{From: 5, To: 7}},
			"past_runs_by_queue (customer=? AND trial=? AND queued>? AND queued<?)"},
		{rowstore.PastQuery{Customer: "one", By: rowstore.ByQueued, Descending: true,
			Behind: behind}, "past_runs_by_queue (customer=? AND trial=? AND (queued,id)<(?,?))"},
		{rowstore.PastQuery{Scraper: ids.ID{4}, Trials: true, By: rowstore.ByQueued,
			Descending: true, Behind: behind},
			"past_runs_of_scraper (scraper=? AND (queued,id)<(?,?))"},
		{rowstore.PastQuery{Trials: true, By: rowstore.BySealed, Behind: behind},
			"past_runs_sealed ((sealed,id)>(?,?))"},
	} {
		test.q.Path, test.q.Offset, test.q.Limit = path, 500, 20
		text, args, err := pastRuns(test.q)
		if err != nil {
			t.Fatal(err)
		}
		wantPlan(t, store, text, args, "SEARCH past_runs USING COVERING INDEX "+test.index)
	}
	text, args, err := pastRuns(rowstore.PastQuery{Path: path, Customer: "one",
		IDs: []ids.ID{{1}}, By: rowstore.BySealed, Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	if steps := planOf(t, store, text, args); !slices.Contains(steps,
		"SEARCH past_runs USING PRIMARY KEY (id=? AND generation=?)") ||
		slices.ContainsFunc(steps, func(step string) bool {
			return strings.Contains(step, "past_runs_by")
		}) {
		t.Errorf("runs by id are found by %q", steps)
	}
	text, args = pastEntries(rowstore.PastEntriesQuery{Path: path, Customers: []string{"one"},
		Limit: 20})
	wantPlan(t, store, text, args,
		"SEARCH past_entries USING COVERING INDEX past_entries_by_time (customer=?)")

	text, args = countWithin(path, "one", rowstore.PastSpan{From: 5, To: 7})
	want := "SEARCH past_runs USING INDEX past_runs_by_queue " +
		"(customer=? AND trial=? AND queued>? AND queued<?)"
	if steps := planOf(t, store, text, args); steps[0] != want {
		t.Errorf("the runs of a span are counted by %q, want %s", steps, want)
	}

	text, args = countPast(path, "one")
	steps := planOf(t, store, text, args)
	for _, step := range steps {
		if strings.HasPrefix(step, "SCAN past") || strings.HasPrefix(step, "SEARCH past_runs") &&
			!strings.Contains(step, "generation=? AND sealed>?") {
			t.Errorf("counting visits more than it has to: %s", step)
		}
	}
	const counted = "SEARCH past_counts USING PRIMARY KEY (customer=? AND generation=?)"
	if !slices.Contains(steps, counted) {
		t.Errorf("counting goes by %q", steps)
	}
}

// wantPlan requires a statement to find its page by one step, without sorting earlier records.
func wantPlan(t *testing.T, store *Store, text string, args []any, want string) {
	t.Helper()
	plan := planOf(t, store, text, args)
	found := slices.Index(plan, want)
	if found < 0 {
		t.Errorf("%s:\nthe plan is %s\nwant %s", text, strings.Join(plan, "\n"), want)
		return
	}
	// the page itself may be sorted, after the step that begins to read it
	reading := slices.IndexFunc(plan, func(step string) bool {
		return strings.Contains(step, "USING PRIMARY KEY (id=? AND generation=?)")
	})
	if reading < found || slices.ContainsFunc(plan[:reading],
		func(step string) bool { return strings.Contains(step, "TEMP B-TREE") }) {
		t.Errorf("%s:\nthe plan sorts: %s", text, strings.Join(plan, "\n"))
	}
}

func planOf(t *testing.T, store *Store, text string, args []any) (steps []string) {
	t.Helper()
	rows, err := store.reads.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	err = each(rows, err, func(rows *sql.Rows) error {
		var id, parent, unused int
		var step string
		err := rows.Scan(&id, &parent, &unused, &step)
		steps = append(steps, step)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// TestRunsOfBeforeAreCounted: opening a database whose archive is older than the counts counts its
// runs. What expires is no longer counted.
func TestRunsOfBeforeAreCounted(t *testing.T) {
	dir, generation := t.TempDir(), ids.ID{1}
	store, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var runs []rowstore.PastRun
	for n := range 9 {
		runs = append(runs, rowstore.PastRun{ID: ids.ID{byte(n + 1)}, Generation: generation,
			Sealed: uint64(n + 1), Customer: "one", Trial: n == 0,
			PastKind: rowstore.PastKind{State: []string{"COMPLETED", "FAILED"}[n%2]},
			Finished: int64(n), Body: []byte("body")})
	}
	if err := store.PutPast(t.Context(), runs, nil); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", writeDSN(filepath.Join(dir, "rows.db")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `DROP TABLE past_counts`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if store, err = Open(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	want := func(completed, failed int64) {
		t.Helper()
		counts, err := store.CountPast(t.Context(),
			rowstore.Path{{Generation: generation, Upto: 8}}, "one", rowstore.PastSpan{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, c := range counts {
			got[c.State] += c.Runs
		}
		if got["COMPLETED"] != completed || got["FAILED"] != failed {
			t.Errorf("counted are %v, want %d and %d", got, completed, failed)
		}
	}
	want(3, 4) // of 3, 5, 7 and 2, 4, 6, 8
	if err := store.PutPast(t.Context(), runs, nil); err != nil {
		t.Fatal(err)
	}
	want(3, 4)
	expire := func(before int64) {
		t.Helper()
		if err := store.ExpirePast(t.Context(), time.UnixMilli(before)); err != nil {
			t.Fatal(err)
		}
	}
	expire(3)
	want(2, 3)
	expire(100)
	want(0, 0)
	left := 0
	err = store.reads.QueryRowContext(t.Context(), `SELECT count(*) FROM past_counts`).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d counts of nothing stay, %v", left, err)
	}
}
