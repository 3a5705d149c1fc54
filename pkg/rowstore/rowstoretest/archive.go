package rowstoretest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// Archive is a rowstore.Archive in memory, for tests of its users, and the model for the suite. Its
// zero value is empty.
type Archive struct {
	mu      sync.Mutex
	runs    []rowstore.PastRun
	entries []rowstore.PastEntry
	audit   []rowstore.AuditRecord
}

var _ rowstore.Archive = (*Archive)(nil)

// PutPast implements rowstore.Archive.
func (a *Archive) PutPast(_ context.Context, runs []rowstore.PastRun,
	entries []rowstore.PastEntry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range runs {
		if !slices.ContainsFunc(a.runs, func(known rowstore.PastRun) bool {
			return known.ID == r.ID && known.Generation == r.Generation
		}) {
			a.runs = append(a.runs, r)
		}
	}
	for _, e := range entries {
		if !slices.ContainsFunc(a.entries, func(known rowstore.PastEntry) bool {
			return known.ID == e.ID && known.Generation == e.Generation
		}) {
			a.entries = append(a.entries, e)
		}
	}
	return nil
}

// PastRuns implements rowstore.Archive.
func (a *Archive) PastRuns(_ context.Context, q rowstore.PastQuery) ([]rowstore.PastRecord,
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return asRead(found(a.runs, q)), nil
}

// CountPast implements rowstore.Archive.
func (a *Archive) CountPast(_ context.Context, path rowstore.Path, customer string,
	queued rowstore.PastSpan) ([]rowstore.PastCount, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	counted := map[rowstore.PastKind]int64{}
	for _, r := range a.runs {
		if on(path, r.Generation, r.Sealed) && r.Customer == customer && !r.Trial &&
			queued.Has(r.Queued) {
			counted[r.PastKind]++
		}
	}
	var counts []rowstore.PastCount
	for kind, runs := range counted {
		counts = append(counts, rowstore.PastCount{PastKind: kind, Runs: runs})
	}
	return counts, nil
}

// PastEntries implements rowstore.Archive.
func (a *Archive) PastEntries(_ context.Context, q rowstore.PastEntriesQuery) ([]rowstore.PastEntry,
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var entries []rowstore.PastEntry
	for _, e := range a.entries {
		if on(q.Path, e.Generation, e.Sealed) &&
			(q.Customers == nil || slices.Contains(q.Customers, e.Customer)) &&
			(q.IDs == nil || slices.Contains(q.IDs, e.ID)) &&
			(q.Before == nil || isBefore(e, q.Before)) {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, newerEntry)
	entries = entries[min(q.Offset, len(entries)):]
	return entries[:min(q.Limit, len(entries))], nil
}

func isBefore(e rowstore.PastEntry, place *rowstore.PastPlace) bool {
	return newerEntry(e, rowstore.PastEntry{Created: uint64(place.Value), ID: place.ID}) > 0
}

func newerEntry(a, b rowstore.PastEntry) int {
	return cmp.Or(cmp.Compare(b.Created, a.Created),
		strings.Compare(string(b.ID[:]), string(a.ID[:])))
}

// PastHead implements rowstore.Archive.
func (a *Archive) PastHead(_ context.Context, path rowstore.Path) (head uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.runs {
		if on(path, r.Generation, r.Sealed) {
			head = max(head, r.Sealed)
		}
	}
	for _, e := range a.entries {
		if on(path, e.Generation, e.Sealed) {
			head = max(head, e.Sealed)
		}
	}
	return head, nil
}

// ExpirePast implements rowstore.Archive.
func (a *Archive) ExpirePast(_ context.Context, before time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs = slices.DeleteFunc(a.runs, func(r rowstore.PastRun) bool {
		return r.Finished < before.UnixMilli()
	})
	return nil
}

// on reports whether a path includes what a generation sealed at an index.
func on(path rowstore.Path, generation ids.ID, sealed uint64) bool {
	return slices.ContainsFunc(path, func(step rowstore.PathStep) bool {
		return step.Generation == generation && sealed <= step.Upto
	})
}

// behind reports whether a run follows a query's place.
func behind(q rowstore.PastQuery, r rowstore.PastRun) bool {
	value := r.Queued
	if q.By == rowstore.BySealed {
		value = int64(r.Sealed)
	}
	n := cmp.Or(cmp.Compare(value, q.Behind.Value),
		strings.Compare(string(r.ID[:]), string(q.Behind.ID[:])))
	return q.Descending && n < 0 || !q.Descending && n > 0
}

// found returns the runs that a query means.
func found(all []rowstore.PastRun, q rowstore.PastQuery) []rowstore.PastRun {
	order := func(a, b rowstore.PastRun) int {
		n := cmp.Or(compareIn(q.By, a, b), strings.Compare(string(a.ID[:]), string(b.ID[:])))
		if q.Descending {
			return -n
		}
		return n
	}
	var runs []rowstore.PastRun
	for _, r := range all {
		if on(q.Path, r.Generation, r.Sealed) && (q.Trials || !r.Trial) &&
			(q.Customer == "" || r.Customer == q.Customer) &&
			(q.IDs == nil || slices.Contains(q.IDs, r.ID)) &&
			!slices.Contains(q.Without, r.ID) &&
			(q.Lists == nil || slices.Contains(q.Lists, r.List)) &&
			(q.Scraper.IsZero() || q.Scraper == r.Scraper) &&
			(q.Group.IsZero() || q.Group == r.Group) &&
			q.Queued.Has(r.Queued) && (q.Kinds == nil || slices.Contains(q.Kinds, r.PastKind)) {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, order)
	if q.Behind != nil {
		at := slices.IndexFunc(runs, func(r rowstore.PastRun) bool { return behind(q, r) })
		if at < 0 {
			return nil
		}
		runs = runs[at:]
	}
	runs = runs[min(q.Offset, len(runs)):]
	return runs[:min(q.Limit, len(runs))]
}

// asRead returns runs in the form in which an archive reads them.
func asRead(runs []rowstore.PastRun) []rowstore.PastRecord {
	var read []rowstore.PastRecord
	for _, r := range runs {
		read = append(read, rowstore.PastRecord{ID: r.ID, Body: r.Body})
	}
	return read
}

func compareIn(by rowstore.PastOrder, a, b rowstore.PastRun) int {
	switch by {
	case rowstore.ByQueued:
		return cmp.Compare(a.Queued, b.Queued)
	case rowstore.ByStarted:
		return cmp.Compare(a.Started, b.Started)
	case rowstore.ByFinished:
		return cmp.Compare(a.Finished, b.Finished)
	case rowstore.ByState:
		return cmp.Compare(a.State, b.State)
	case rowstore.BySuccess:
		return cmp.Compare(a.Success, b.Success)
	case rowstore.ByErrors:
		return cmp.Compare(a.Errors, b.Errors)
	case rowstore.ByLinks:
		return cmp.Compare(a.Links, b.Links)
	case rowstore.ByItems:
		return cmp.Compare(a.Items, b.Items)
	case rowstore.ByPages:
		return cmp.Compare(a.Pages, b.Pages)
	case rowstore.ByDelivered:
		return cmp.Compare(a.Delivered, b.Delivered)
	case rowstore.ByCharged:
		return cmp.Compare(a.Charged, b.Charged)
	case rowstore.ByDuration:
		return cmp.Compare(a.Finished-a.Started, b.Finished-b.Started)
	default:
		return cmp.Compare(a.Sealed, b.Sealed)
	}
}
