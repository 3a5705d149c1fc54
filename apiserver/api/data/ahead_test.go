package data

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/rowstore"
)

// standings is a store of ordered rows that counts its calls.
type standings struct {
	rowstore.Reads
	rows  []rowstore.Standing
	asked int
}

func (s *standings) Order(_ context.Context, q rowstore.OrderQuery) ([]rowstore.Standing, error) {
	s.asked++
	from := 0
	if q.After != nil {
		at, holds := slices.BinarySearchFunc(s.rows, *q.After, q.Sort.Compare)
		if from = at; holds {
			from++
		}
	}
	return s.rows[from:min(len(s.rows), from+q.Limit)], nil
}

// walker is a sorted read, page by page.
type walker struct {
	*Ahead
	store *standings
	of    string
	q     rowstore.OrderQuery
	seen  []rowstore.Standing
}

// page reads the next page and reports whether more follow.
func (w *walker) page(t *testing.T) bool {
	t.Helper()
	rows, known := w.next(w.of, &w.q)
	if !known {
		var err error
		if rows, err = w.look(t.Context(), w.store, w.of, &w.q); err != nil {
			t.Fatal(err)
		}
	}
	page := rows[:min(w.q.Limit-1, len(rows))]
	w.seen = append(w.seen, page...)
	if len(page) < len(rows) {
		w.q.After = &page[len(page)-1]
		return true
	}
	return false
}

// TestAhead: a continued read seldom asks the store for an order, even beside other reads, and
// returns each row once. A late read asks again.
func TestAhead(t *testing.T) {
	const rows = rowstore.MaxOrdered + 5_000
	store := &standings{}
	for n := range rows {
		store.rows = append(store.rows, rowstore.Standing{Class: rowstore.Texts,
			Text: fmt.Sprintf("%06d", n/3), Place: int64(n%3 + 1)})
	}
	size := rows * (standingBytes + 6)
	for _, test := range []struct {
		name    string
		walkers int
		pause   time.Duration
		most    int
		asked   int // calls of the store; 0: one for each page
	}{
		{"alone", 1, 0, size, 3},
		{"two reads", 2, 0, 2 * size, 6},
		{"with pauses", 1, aheadFor, size, 3},
		{"late", 1, aheadFor + 1, size, 0},
		{"no room", 1, 0, 1_000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := clock.NewManual(time.Unix(1, 0))
			ahead := &Ahead{clock: now, most: test.most}
			store.asked = 0
			walkers := make([]*walker, test.walkers)
			for i := range walkers {
				walkers[i] = &walker{Ahead: ahead, store: store, of: fmt.Sprint(i),
					q: rowstore.OrderQuery{Limit: 5_001}}
			}
			pages := 0
			for more := true; more; {
				for _, w := range walkers {
					more = w.page(t)
					pages++
				}
				now.Advance(test.pause)
			}
			for i, w := range walkers {
				if !slices.Equal(w.seen, store.rows) {
					t.Errorf("read %d saw %d rows, want %d in their order", i, len(w.seen), rows)
				}
			}
			want := test.asked
			if want == 0 {
				want = pages
			}
			if store.asked != want {
				t.Errorf("the store was asked %d times, want %d", store.asked, want)
			}
			if ahead.bytes > test.most {
				t.Errorf("orders have %d bytes, at most %d", ahead.bytes, test.most)
			}
		})
	}
}

// TestAheadOfAnotherRead: reads do not share orders, and a repeated page is the same.
func TestAheadOfAnotherRead(t *testing.T) {
	store := &standings{}
	for n := range 10 {
		store.rows = append(store.rows, rowstore.Standing{Number: float64(n), Place: 1})
	}
	ahead := NewAhead(clock.NewManual(time.Unix(1, 0)))
	w := &walker{Ahead: ahead, store: store, of: nameOf("a", "b"),
		q: rowstore.OrderQuery{Limit: 3}}
	w.page(t)
	second := w.q
	w.page(t)
	if rows, known := ahead.next(nameOf("ab"), &second); known {
		t.Errorf("another read got %v", rows)
	}
	again, known := ahead.next(w.of, &second)
	if want := store.rows[2:5]; !known || !slices.Equal(again, want) {
		t.Errorf("the second page again is %v, %t, want %v", again, known, want)
	}
	second.After = &rowstore.Standing{Number: 2.5, Place: 1}
	if rows, known := ahead.next(w.of, &second); known {
		t.Errorf("behind a row that it does not hold it knows %v", rows)
	}
}
