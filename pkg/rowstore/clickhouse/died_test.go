package clickhouse_test

import (
	"context"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// die makes a call with a store that ends when it passes a point for the n-th time, like a process
// that dies there.
func (c *cluster) die(point string, n int, call func(context.Context, *clickhouse.Store) error) {
	c.Helper()
	ctx, die := context.WithCancel(c.Context())
	defer die()
	passed := 0
	dying := c.open(func(name string) {
		if name != point {
			return
		}
		if passed++; passed == n {
			die()
		}
	})
	if err := call(ctx, dying); err == nil || passed != n {
		c.Fatalf("%s is passed %d times, and the call ends with %v", point, passed, err)
	}
}

// ok requires a call to succeed.
func (c *cluster) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// TestDiedBehindTheFence: the job is sealed, although late rows are still there. The next seal
// removes them.
func TestDiedBehindTheFence(t *testing.T) {
	c := newCluster(t)
	other := c.open(nil)
	c.put(other, c.page(0, c.ids.New(), 2), c.page(1, c.ids.New(), 3))
	first := func(unit model.Unit, _ bool) bool { return unit.Seq == 0 }
	c.die("rowstore.after_fence", 1, func(ctx context.Context, s *clickhouse.Store) error {
		return s.Seal(ctx, c.job.ID, first)
	})
	c.equal("receipts", []*model.Receipt{nil}, c.put(other, c.page(2, c.ids.New(), 1)))
	c.equal("rows of a seal that is not finished", 5, len(c.rows(other)))
	for range 2 {
		c.ok(other.Seal(t.Context(), c.job.ID, first))
		c.equal("rows", 2, len(c.rows(other)))
	}
	sum, err := other.Recount(t.Context(), c.job.ID)
	c.ok(err)
	c.equal("recount", rowstore.Recount{Delivered: 1, Items: 2,
		Quantity: map[string]uint64{"tier:plain": 1}}, sum)
}

// TestDiedBeforeABatch: nothing of the batch is stored. The next attempt stands, once.
func TestDiedBeforeABatch(t *testing.T) {
	c := newCluster(t)
	other := c.open(nil)
	batch := rowstore.Batch{Harvest: c.ids.New(), Fetch: c.ids.New(),
		Rows: [][]byte{[]byte(`{"url":"1"}`), []byte(`{"url":"2"}`)}}
	c.die("rowstore.before_batch", 1, func(ctx context.Context, s *clickhouse.Store) error {
		_, err := s.PutBatch(ctx, batch)
		return err
	})
	count, err := other.CountEntries(t.Context(), batch.Harvest, nil)
	c.ok(err)
	c.equal("entries of the one that died", int64(0), count)
	batch.Fetch = c.ids.New()
	for _, fetch := range []ids.ID{batch.Fetch, c.ids.New()} {
		again := batch
		again.Fetch = fetch
		stands, err := other.PutBatch(t.Context(), again)
		c.ok(err)
		c.equal("which try stands", batch.Fetch, stands)
	}
	count, err = other.CountEntries(t.Context(), batch.Harvest, nil)
	c.ok(err)
	c.equal("entries", int64(2), count)
}

// TestDiedBetweenParts: of three old weeks the first is gone. The next expiry drops the others, and
// the sums of the records stay.
func TestDiedBetweenParts(t *testing.T) {
	c := newCluster(t)
	other := c.open(nil)
	const week = 7 * 24 * time.Hour
	cut := time.Unix(1_700_000_000, 0)
	var jobs []ids.ID
	for age := 4; age > 0; age-- { // the newest week stays, whatever its age
		c.job.ID = c.ids.New()
		c.job.Started = cut.Add(-time.Duration(age) * 2 * week).UnixMicro()
		c.put(other, c.page(0, c.ids.New(), 2))
		jobs = append(jobs, c.job.ID)
	}
	sum := rowstore.Recount{Delivered: 1, Items: 2, Quantity: map[string]uint64{"tier:plain": 1}}
	for _, job := range jobs {
		c.ok(other.Seal(t.Context(), job, nil))
		c.ok(other.Condense(t.Context(), job, sum, cut))
	}
	c.die("rowstore.before_drop_part", 2, func(ctx context.Context, s *clickhouse.Store) error {
		return s.Expire(ctx, cut)
	})
	c.equal("rows after one week", 6, len(c.rows(other)))
	for range 2 {
		c.ok(other.Expire(t.Context(), cut))
		c.equal("rows", 2, len(c.rows(other)))
	}
	for _, job := range jobs {
		counted, err := other.Recount(t.Context(), job)
		c.ok(err)
		c.equal("recount", sum, counted)
	}
}

// TestDiedBetweenRunsAndEntries: the runs are archived, and their entries are not. The next try
// archives both, once.
func TestDiedBetweenRunsAndEntries(t *testing.T) {
	c := newCluster(t)
	other := c.open(nil)
	generation, at := c.ids.New(), time.Unix(1_700_000_000, 0).UnixMilli()
	var runs []rowstore.PastRun
	var entries []rowstore.PastEntry
	for n := range uint64(3) {
		runs = append(runs, rowstore.PastRun{ID: c.ids.New(), Generation: generation, Sealed: n + 1,
			Customer: "c", PastKind: rowstore.PastKind{State: "COMPLETED"}, Queued: at,
			Finished: at, Body: []byte("run")})
		entries = append(entries, rowstore.PastEntry{ID: c.ids.New(), Generation: generation,
			Sealed: n + 1, Customer: "c", Created: n + 1, Body: []byte("entry")})
	}
	path := rowstore.Path{{Generation: generation, Upto: 3}}
	there := func() [2]int {
		past, err := other.PastRuns(t.Context(), rowstore.PastQuery{Path: path, Customer: "c",
			By: rowstore.ByQueued, Limit: 10})
		c.ok(err)
		ledger, err := other.PastEntries(t.Context(), rowstore.PastEntriesQuery{Path: path,
			Customers: []string{"c"}, Limit: 10})
		c.ok(err)
		return [2]int{len(past), len(ledger)}
	}
	c.die("rowstore.between_past", 1, func(ctx context.Context, s *clickhouse.Store) error {
		return s.PutPast(ctx, runs, entries)
	})
	c.equal("runs and entries of the one that died", [2]int{3, 0}, there())
	for range 2 {
		c.ok(other.PutPast(t.Context(), runs, entries))
		c.equal("runs and entries", [2]int{3, 3}, there())
	}
}
