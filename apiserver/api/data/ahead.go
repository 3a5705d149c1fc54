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
	// aheadFor is how long an order is kept for the next page of its read.
	aheadFor = 2 * time.Minute
	// aheadBytes bounds all orders of one process.
	aheadBytes = 32 << 20
	// standingBytes is the size of a standing without its text.
	standingBytes = 48
)

// Ahead caches the order of the rows that follow in sorted reads. Neither store keeps an order, so
// each look scans all rows. A continued read therefore looks up many pages at once, and later pages
// find their order here. It only saves time: without it, a new look gives the same result. If all
// orders together are too large, the least recently used one is dropped.
type Ahead struct {
	clock clock.Clock
	most  int // limit of bytes
	mu    sync.Mutex
	all   []*ordered // the least recently used first
	bytes int
}

// ordered is the order of consecutive rows of a read.
type ordered struct {
	of    string
	rows  []rowstore.Standing // never changed
	end   bool                // the read has no rows after these
	bytes int
	since time.Time
}

// NewAhead makes an empty cache.
func NewAhead(c clock.Clock) *Ahead { return &Ahead{clock: c, most: aheadBytes} }

// nameOf is the cache key of a read, made of everything that determines its order.
func nameOf(read ...string) string { return strings.Join(read, "\x00") }

// next returns the rows that a query of a read asks for, if they are cached.
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

// look asks the store for the rows of a query. After the first page it also fetches the order of
// later pages and caches it, replacing what the cache had for the same rows.
func (a *Ahead) look(ctx context.Context, store rowstore.Reads, of string,
	q *rowstore.OrderQuery) ([]rowstore.Standing, error) {
	if q.After == nil {
		return store.Order(ctx, *q) // most reads end after one page, so nothing is cached
	}
	many := *q
	many.Limit = rowstore.MaxOrdered
	rows, err := store.Order(ctx, many)
	if err != nil {
		return nil, err
	}
	// It begins with q.After, so that this page can be found again.
	one := &ordered{of: of, rows: slices.Concat([]rowstore.Standing{*q.After}, rows),
		end: len(rows) < many.Limit}
	for i := range one.rows {
		one.bytes += standingBytes + len(one.rows[i].Text)
	}
	a.keep(one, q)
	return rows[:min(q.Limit, len(rows))], nil
}

// keep caches an order in place of older ones of the same rows.
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

// dropOld drops orders that have not been used for aheadFor.
func (a *Ahead) dropOld() {
	now := a.clock.Now()
	a.drop(func(one *ordered) bool { return now.Sub(one.since) > aheadFor })
}

// drop drops the orders that which selects, visiting the least recently used first.
func (a *Ahead) drop(which func(*ordered) bool) {
	a.all = slices.DeleteFunc(a.all, func(one *ordered) bool {
		if !which(one) {
			return false
		}
		a.bytes -= one.bytes
		return true
	})
}

// behind returns the rows after q.After, if the order belongs to the read and contains that row.
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
