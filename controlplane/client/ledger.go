package client

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"shoal.dev/shoal/pkg/rowstore"
)

// Entries is part of what a customer's ledger has of a span, newest first, by number, and how many
// entries that has.
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
	// Entries are archived in the order in which they were sealed, not made: what is here may be
	// older than what is there.
	first := max(offset-len(here), 0)
	past, err := h.entries(ctx, v, rowstore.PastEntriesQuery{Customers: []string{customer},
		Offset: first, Limit: offset + limit - first})
	if err != nil {
		return nil, 0, err
	}
	page := mergePage(past, here, newerEntry, first, offset)
	return page[:min(limit, len(page))], total, nil
}

// sinceThen is how many entries of a ledger were made since a time, and the oldest of them; nil:
// there is none.
type sinceThen struct {
	count  int
	oldest *Entry
}

// since finds the entries that were made at a time or later. The archive has no index by time. Its
// order is that of time all the same, so a search reads one record for each halving.
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

// EntriesWithin is EntriesBefore of what the ledger has of a span. A place is one within it.
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

// EntriesBefore is part of a customer's ledger, newest first, of the entries before a place; nil:
// from the newest. One command makes many entries of a customer where it launches many runs, so
// that an index alone is no place.
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

// PlaceOf is where a ledger goes on behind an entry.
func PlaceOf(e *Entry) *rowstore.PastPlace {
	return &rowstore.PastPlace{Value: int64(e.Created), ID: e.ID}
}

// entriesHere are the entries that the archive has not, newest first, of those before a place; nil:
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
