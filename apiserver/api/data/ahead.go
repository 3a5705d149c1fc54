package data

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	// aheadFor is how long an order waits for whoever asks for the next page of its read.
	aheadFor = 2 * time.Minute
	// aheadBytes are what the orders of one process have together.
	aheadBytes = 32 << 20
	// standingBytes are a standing without its text.
	standingBytes = 48
)

// Ahead is the order of the rows behind pages that sorted reads have sent. Neither store keeps an
// order, so each look goes through all rows. A read that goes on looks for the order of many pages
// at once, and the next pages find it here. It is only faster by that: who finds nothing looks
// anew, and comes to the same. When all orders together are too large, the one goes that waited
// longest.
type Ahead struct {
	clock clock.Clock
	most  int // bytes of all
	mu    sync.Mutex
	all   []*ordered // the one that waited longest first
	bytes int
}

// ordered is the order of some rows of a read that follow one another.
type ordered struct {
	of    string
	rows  []rowstore.Standing // never changed
	end   bool                // none are behind them
	bytes int
	since time.Time
}

// NewAhead makes room for orders.
func NewAhead(c clock.Clock) *Ahead { return &Ahead{clock: c, most: aheadBytes} }

// nameOf is what a read is called by what it depends on.
func nameOf(read ...string) string { return strings.Join(read, "\x00") }

// next are the rows that a query of a read asks for, if they are known.
func (a *Ahead) next(of string, q *rowstore.OrderQuery) (rows []rowstore.Standing, known bool) {
	if q.After == nil {
		return nil, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropOld()
	for i, one := range a.all {
		rest, holds := one.behind(of, q)
		if !holds || len(rest) < q.Limit && !one.end {
			continue
		}
		one.since = a.clock.Now()
		a.all = append(slices.Delete(a.all, i, i+1), one)
		return rest[:min(q.Limit, len(rest))], true
	}
	return nil, false
}

// look asks a store for the rows that a query of a read asks for. Behind the first page it looks
// for those of later pages, too, and keeps them. What is known of the same rows is of before.
func (a *Ahead) look(ctx context.Context, store rowstore.Reads, of string,
	q *rowstore.OrderQuery) ([]rowstore.Standing, error) {
	if q.After == nil {
		return store.Order(ctx, *q) // who reads one page wants no other's order
	}
	many := *q
	many.Limit = rowstore.MaxOrdered
	rows, err := store.Order(ctx, many)
	if err != nil {
		return nil, err
	}
	// The row behind which they lie is the first, so that this page is found again.
	one := &ordered{of: of, rows: slices.Concat([]rowstore.Standing{*q.After}, rows),
		end: len(rows) < many.Limit}
	for i := range one.rows {
		one.bytes += standingBytes + len(one.rows[i].Text)
	}
	a.keep(one, q)
	return rows[:min(q.Limit, len(rows))], nil
}

// keep takes an order in, in place of what is known of the same rows.
func (a *Ahead) keep(one *ordered, q *rowstore.OrderQuery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropOld()
	a.drop(func(other *ordered) bool {
		_, holds := other.behind(one.of, q)
		return holds
	})
	one.since = a.clock.Now()
	a.all, a.bytes = append(a.all, one), a.bytes+one.bytes
	a.drop(func(*ordered) bool { return a.bytes > a.most })
}

// dropOld drops those that have waited too long.
func (a *Ahead) dropOld() {
	now := a.clock.Now()
	a.drop(func(one *ordered) bool { return now.Sub(one.since) > aheadFor })
}

// drop drops some, the one that waited longest first.
func (a *Ahead) drop(which func(*ordered) bool) {
	a.all = slices.DeleteFunc(a.all, func(one *ordered) bool {
		if !which(one) {
			return false
		}
		a.bytes -= one.bytes
		return true
	})
}

// behind are the rows behind that of a query, if the order is of the same read and holds that one.
func (o *ordered) behind(of string, q *rowstore.OrderQuery) (rows []rowstore.Standing,
	holds bool) {
	if o.of != of {
		return nil, false
	}
	at, holds := slices.BinarySearchFunc(o.rows, *q.After, q.Sort.Compare)
	if !holds {
		return nil, false
	}
	return o.rows[at+1:], true
}
