package client

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"shoal.dev/shoal/pkg/rowstore"
)

// Entries returns a page of a customer's ledger within a time span, newest first, and the number of
// entries in the span.
func (h *History) Entries(ctx context.Context, v *View, customer string, made rowstore.PastSpan,
	offset, limit int) (entries []*Entry, total int64, err error) {
	wallet := v.Wallet(customer)
	if wallet == nil {
		return nil, 0, nil
	}
	here := h.entriesHere(v, customer, nil)
	total = int64(len(here)) + int64(wallet.Archived)
	skipped := 0
	if made.From > 0 {
		first, err := h.since(ctx, v, customer, made.From)
		if err != nil {
			return nil, 0, err
		}
		total = int64(first.count)
	}
	if made.To > 0 {
		behind, err := h.since(ctx, v, customer, made.To)
		if err != nil {
			return nil, 0, err
		}
		total, skipped = max(0, total-int64(behind.count)), behind.count
	}
	limit = min(limit, max(0, int(total)-offset))
	offset += skipped
	if limit == 0 {
		return nil, total, nil
	}
	// Entries are archived in the order of their seals, not of their creation. So an entry in the
	// state may be older than one in the archive.
	first := max(offset-len(here), 0)
	past, err := h.entries(ctx, v, rowstore.PastEntriesQuery{Customers: []string{customer},
		Offset: first, Limit: offset + limit - first})
	if err != nil {
		return nil, 0, err
	}
	page := mergePage(past, here, newerEntry, first, offset)
	return page[:min(limit, len(page))], total, nil
}

// sinceThen counts the entries of a ledger made since a time; oldest is nil if there are none.
type sinceThen struct {
	count  int
	oldest *Entry
}

// since finds the entries made at a time or later. The archive has no index by time, but its order
// follows time. So a binary search reads one record per step.
func (h *History) since(ctx context.Context, v *View, customer string, at int64) (found sinceThen,
	err error) {
	for _, e := range h.entriesHere(v, customer, nil) {
		if e.CreatedAt < at {
			break
		}
		found = sinceThen{found.count + 1, e}
	}
	low, high := 0, int(v.Wallet(customer).Archived)
	for low < high {
		middle := low + (high-low)/2
		one, err := h.entries(ctx, v, rowstore.PastEntriesQuery{Customers: []string{customer},
			Offset: middle, Limit: 1})
		if err != nil {
			return sinceThen{}, err
		}
		if len(one) == 0 || one[0].CreatedAt < at {
			high = middle
			continue
		}
		low = middle + 1
		if found.oldest == nil || newerEntry(found.oldest, one[0]) < 0 {
			found.oldest = one[0]
		}
	}
	found.count += low
	return found, nil
}

// EntriesWithin is EntriesBefore limited to a time span. A place must lie within the span.
func (h *History) EntriesWithin(ctx context.Context, v *View, customer string,
	made rowstore.PastSpan, before *rowstore.PastPlace, most int) ([]*Entry, error) {
	if before == nil && made.To > 0 && v.Wallet(customer) != nil {
		behind, err := h.since(ctx, v, customer, made.To)
		if err != nil {
			return nil, err
		}
		if behind.oldest != nil {
			before = PlaceOf(behind.oldest)
		}
	}
	entries, err := h.EntriesBefore(ctx, v, customer, before, most)
	for i, e := range entries {
		if e.CreatedAt < made.From {
			return entries[:i], err
		}
	}
	return entries, err
}

// EntriesBefore returns entries of a customer's ledger, newest first, before a place; nil: from the
// newest. A place is more than an index, because one command that launches many runs makes many
// entries.
func (h *History) EntriesBefore(ctx context.Context, v *View, customer string,
	before *rowstore.PastPlace, most int) ([]*Entry, error) {
	past, err := h.entries(ctx, v, rowstore.PastEntriesQuery{Customers: []string{customer},
		Before: before, Limit: most})
	if err != nil {
		return nil, err
	}
	merged := slices.Concat(past, h.entriesHere(v, customer, before))
	slices.SortFunc(merged, newerEntry)
	return merged[:min(most, len(merged))], nil
}

// PlaceOf returns the place at which a ledger continues after an entry.
func PlaceOf(e *Entry) *rowstore.PastPlace {
	return &rowstore.PastPlace{Value: int64(e.Created), ID: e.ID}
}

// entriesHere returns the entries before a place that the archive does not have, newest first; nil:
// all.
func (h *History) entriesHere(v *View, customer string, before *rowstore.PastPlace) []*Entry {
	var here []*Entry
	v.Entries(customer, func(e *Entry) bool {
		if !v.ArchivedEntry(e) && (before == nil ||
			newerEntry(e, &Entry{Created: uint64(before.Value), ID: before.ID}) > 0) {
			here = append(here, e)
		}
		return true
	})
	return here
}

func newerEntry(a, b *Entry) int {
	return cmp.Or(cmp.Compare(b.Created, a.Created), bytes.Compare(b.ID[:], a.ID[:]))
}
