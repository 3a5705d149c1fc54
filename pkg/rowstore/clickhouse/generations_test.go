package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// before returns a database of the previous release, with a page in it.
func before(t *testing.T) Config {
	t.Helper()
	c := config(t)
	newest := migrations
	migrations = newest[:openTo]
	defer func() { migrations = newest }()
	old, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	p := &pages{Store: old, ids: ids.Random{Now: time.Now}}
	p.put(t, p.job(time.Unix(1_600_000_000, 0)), 1)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

// pages puts pages into a store.
type pages struct {
	*Store
	ids ids.Random
}

func (p *pages) job(started time.Time) rowstore.Job {
	return rowstore.Job{ID: p.ids.New(), Customer: "ann", Group: p.ids.New(), Scraper: p.ids.New(),
		Started: started.UnixMicro()}
}

func (p *pages) put(t *testing.T, job rowstore.Job, seq uint32) *model.Receipt {
	t.Helper()
	page := &model.Page{Job: job.ID, Unit: model.Unit{Seq: seq}, Fetch: p.ids.New(),
		Outcome: model.Delivered, PriceRow: "tier:plain", Quantity: 1, Last: true,
		Rows: [][]byte{fmt.Appendf(nil, `{"n":%d}`, seq)}}
	receipts, err := p.PutPages(t.Context(), []rowstore.PageWrite{{Job: job, Page: page}})
	if err != nil {
		t.Fatal(err)
	}
	return receipts[0]
}

func (p *pages) rows(t *testing.T, group ids.ID, after int64) (rows []string) {
	t.Helper()
	docs, _, err := p.Scan(t.Context(), rowstore.ScanQuery{Scope: rowstore.Scope{Group: group},
		After: after, Upto: 1 << 62, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		rows = append(rows, string(doc))
	}
	return rows
}

// TestWeeksTakeThePlaceOfMonths: a run under way continues over both tables, and places keep
// rising. The old table is left once it is empty.
func TestWeeksTakeThePlaceOfMonths(t *testing.T) {
	c := before(t)
	s := openLast(t, c)
	p := &pages{Store: s, ids: ids.Random{Now: time.Now}}
	old := p.job(time.Unix(1_500_000_000, 0))
	first := p.put(t, old, 2)
	if l, err := s.layout(t.Context()); err != nil || l.weekly {
		t.Fatalf("before the cluster's version: %+v, %v", l, err)
	}
	horizon, err := s.Horizon(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Horizon(t.Context())
	if err != nil || after < horizon {
		t.Fatalf("the horizon goes from %d to %d, %v", horizon, after, err)
	}
	if again := p.put(t, old, 2); !cmp.Equal(first, again) {
		t.Errorf("a unit of before gets %+v, not %+v", again, first)
	}
	p.put(t, old, 1)
	if diff := cmp.Diff([]string{`{"n":2}`, `{"n":1}`}, p.rows(t, old.Group, 0)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`{"n":1}`}, p.rows(t, old.Group, horizon)); diff != "" {
		t.Errorf("behind the horizon: %s", diff)
	}
	newest, err := s.Rows(t.Context(), rowstore.RowsQuery{
		Scope: rowstore.Scope{Group: old.Group}, Limit: 10})
	if err != nil || len(newest) != 2 {
		t.Errorf("%d rows of a page, %v", len(newest), err)
	}
	settled := func(u model.Unit, _ bool) bool { return u.Seq != 1 }
	if err := s.Seal(t.Context(), old.ID, settled); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`{"n":2}`}, p.rows(t, old.Group, 0)); diff != "" {
		t.Errorf("sealed: %s", diff)
	}
	sum, err := s.Recount(t.Context(), old.ID)
	if err != nil || sum.Delivered != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	p.checkLeft(t)
}

// checkLeft expires everything in the old table.
func (p *pages) checkLeft(t *testing.T) {
	t.Helper()
	long := time.Unix(1_650_000_000, 0)
	young := p.job(time.Now())
	p.put(t, young, 7)
	jobs, err := p.Expiring(t.Context(), long, 10)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs expire, %v", len(jobs), err)
	}
	for i, want := range []bool{true, false} { // the older page's run is not sealed
		if i == 1 {
			var all []ids.ID
			_ = p.JobsSince(t.Context(), 0, func(job rowstore.Job) error {
				if job.Started < long.UnixMicro() {
					all = append(all, job.ID)
				}
				return nil
			})
			for _, job := range all {
				sum := rowstore.Recount{Delivered: 1}
				if err := errors.Join(p.Seal(t.Context(), job, nil),
					p.Condense(t.Context(), job, sum, long)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := p.Expire(t.Context(), long); err != nil {
			t.Fatal(err)
		}
		if l, err := p.layout(t.Context()); err != nil || !l.weekly || l.old != want {
			t.Fatalf("%+v, %v", l, err)
		}
	}
	if diff := cmp.Diff([]string{`{"n":7}`}, p.rows(t, young.Group, 0)); diff != "" {
		t.Errorf("of the young run: %s", diff)
	}
	p.put(t, young, 8)
	if diff := cmp.Diff([]string{`{"n":7}`, `{"n":8}`}, p.rows(t, young.Group, 0)); diff != "" {
		t.Errorf("of the young run: %s", diff)
	}
}

// TestPagesComeWhileWeeksTakeOver: two processes store the same units during the switch. Each unit
// has one record, and every receipt is that record's.
func TestPagesComeWhileWeeksTakeOver(t *testing.T) {
	c := before(t)
	s := openLast(t, c)
	other, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	source := ids.Random{Now: time.Now}
	job := rowstore.Job{ID: source.New(), Customer: "ann", Group: source.New(),
		Scraper: source.New(), Started: time.Now().UnixMicro()}
	const units, after = 24, 4
	var mu sync.Mutex
	receipts := map[model.Unit][]*model.Receipt{}
	begun := make(chan struct{})
	var all sync.WaitGroup
	for n, store := range []*Store{s, other} {
		all.Go(func() {
			for seq := range uint32(units) {
				page := &model.Page{Job: job.ID, Unit: model.Unit{Seq: seq}, Fetch: source.New(),
					Outcome: model.Delivered, Quantity: uint32(n + 1), PriceRow: "tier:plain",
					Rows: [][]byte{[]byte(`{}`)}}
				got, err := store.PutPages(t.Context(),
					[]rowstore.PageWrite{{Job: job, Page: page}})
				for errors.Is(err, errUnsettled) { // ingest repeats, too
					got, err = store.PutPages(t.Context(),
						[]rowstore.PageWrite{{Job: job, Page: page}})
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				receipts[page.Unit] = append(receipts[page.Unit], got[0])
				mu.Unlock()
				if n == 0 && seq == after {
					close(begun)
				}
			}
		})
	}
	<-begun
	if err := s.Advance(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	sum, err := s.Recount(t.Context(), job.ID)
	if err != nil || sum.Delivered != units {
		t.Errorf("%+v, %v", sum, err)
	}
	quantity := uint64(0)
	for unit, both := range receipts {
		if len(both) != 2 || !cmp.Equal(both[0], both[1]) {
			t.Errorf("unit %v has the receipts %v", unit, both)
		}
		quantity += uint64(both[0].Quantity)
	}
	if quantity != sum.Quantity["tier:plain"] {
		t.Errorf("the receipts come to %d, the records to %v", quantity, sum.Quantity)
	}
	if rows, err := s.Count(t.Context(), rowstore.Scope{Group: job.Group}, nil); err != nil ||
		rows != units {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// TestTakingOverIsResumed: if a process dies during the switch, the next one completes it.
func TestTakingOverIsResumed(t *testing.T) {
	for _, point := range []string{"rowstore.switch_before_drain", "rowstore.switch_after_drain"} {
		c := before(t)
		ctx, die := context.WithCancel(t.Context())
		c.Point = func(name string) {
			if name == point {
				die()
			}
		}
		dying, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := dying.Advance(ctx); err == nil {
			t.Errorf("%s: it did not die", point)
		}
		_ = dying.Close()
		c.Point = nil
		s := openLast(t, c)
		if err := s.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := &pages{Store: s, ids: ids.Random{Now: time.Now}}
		job := p.job(time.Now())
		if receipt := p.put(t, job, 3); receipt == nil {
			t.Errorf("%s: nothing is stored afterwards", point)
		}
		if diff := cmp.Diff([]string{`{"n":3}`}, p.rows(t, job.Group, 0)); diff != "" {
			t.Errorf("%s: %s", point, diff)
		}
	}
}

// TestConformanceOverBoth: a database with both tables behaves like a new one.
func TestConformanceOverBoth(t *testing.T) {
	rowstoretest.RunCore(t, func(t *testing.T) rowstore.Store {
		c := before(t)
		openLast(t, c)
		s, err := Open(t.Context(), c)
		if err == nil {
			err = s.Advance(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if l, err := s.layout(t.Context()); err != nil || !l.old {
			t.Fatalf("%+v, %v", l, err)
		}
		return s
	})
}

// TestWeeksAreFound: a filter on a run's start leaves older weeks unread.
func TestWeeksAreFound(t *testing.T) {
	s := openLast(t, config(t))
	p := &pages{Store: s, ids: ids.Random{Now: time.Now}}
	job := p.job(time.Unix(1_500_000_000, 0))
	p.put(t, job, 1)
	job.ID, job.Started = p.ids.New(), time.Now().UnixMicro()
	p.put(t, job, 2)
	plan, err := read(t.Context(), s, `EXPLAIN indexes = 1 SELECT count() FROM `+s.table("weeks")+
		` WHERE `+printScope(rowstore.Scope{Group: job.Group, Since: job.Started}),
		func(rows driver.Rows) (line string, err error) { return line, rows.Scan(&line) })
	if err != nil || !strings.Contains(strings.Join(plan, "\n"), "Parts: 1/2") {
		t.Errorf("%v\n%s", err, strings.Join(plan, "\n"))
	}
}
