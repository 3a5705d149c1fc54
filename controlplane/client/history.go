package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// PastRuns is what the state keeps of a scraper's archived runs.
type PastRuns = state.PastRuns

// Past is the part of the row store that a History reads.
type Past interface {
	PastRuns(ctx context.Context, q rowstore.PastQuery) ([]rowstore.PastRecord, error)
	CountPast(ctx context.Context, path rowstore.Path, customer string,
		queued rowstore.PastSpan) ([]rowstore.PastCount, error)
	PastEntries(ctx context.Context, q rowstore.PastEntriesQuery) ([]rowstore.PastEntry, error)
	Audit(ctx context.Context, q rowstore.AuditQuery) ([]rowstore.AuditRecord, error)
}

// History looks up runs and ledger entries, wherever they are. What was sealed up to the view's
// archive index comes from the archive, the rest from the view. An older view still holds a record
// that has left the state, so a read shows one moment.
type History struct{ past Past }

// NewHistory makes a History over an archive.
func NewHistory(past Past) *History { return &History{past} }

// pastAtOnce is how many archive records are held at a time while all are visited.
const pastAtOnce = 500

func (h *History) runs(ctx context.Context, v *View, q rowstore.PastQuery) ([]*Job, error) {
	if q.Path = archive.Path(v); q.Path == nil {
		return nil, nil
	}
	records, err := h.past.PastRuns(ctx, q)
	if err != nil {
		return nil, err
	}
	jobs := make([]*Job, len(records))
	for i := range records {
		if jobs[i], err = archive.DecodeRun(records[i]); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

func (h *History) entries(ctx context.Context, v *View, q rowstore.PastEntriesQuery) ([]*Entry,
	error) {
	if q.Path = archive.Path(v); q.Path == nil || q.Limit == 0 {
		return nil, nil
	}
	records, err := h.past.PastEntries(ctx, q)
	if err != nil {
		return nil, err
	}
	entries := make([]*Entry, len(records))
	for i := range records {
		if entries[i], err = archive.DecodeEntry(records[i]); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// Run returns a run or trial by id; nil if there is none.
func (h *History) Run(ctx context.Context, v *View, id ids.ID) (*Job, error) {
	if job := v.Job(id); job != nil {
		return job, nil
	}
	jobs, err := h.runs(ctx, v, rowstore.PastQuery{IDs: []ids.ID{id}, Trials: true,
		By: rowstore.BySealed, Limit: 1})
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	return jobs[0], nil
}

// RunsByID returns those of some runs of a customer that exist, by id. At most rowstore.MaxPast.
func (h *History) RunsByID(ctx context.Context, v *View, customer string,
	runs []ids.ID) (map[ids.ID]*Job, error) {
	found, elsewhere := map[ids.ID]*Job{}, []ids.ID{}
	for _, id := range runs {
		if job := v.Job(id); job != nil {
			found[id] = job
		} else {
			elsewhere = append(elsewhere, id)
		}
	}
	if len(elsewhere) == 0 {
		return found, nil
	}
	past, err := h.runs(ctx, v, rowstore.PastQuery{Customer: customer, IDs: elsewhere,
		By: rowstore.BySealed, Limit: len(elsewhere)})
	for _, job := range past {
		found[job.ID] = job
	}
	return found, err
}

// ScraperRuns visits a scraper's runs, newest first, until visit returns false.
func (h *History) ScraperRuns(ctx context.Context, v *View, scraper ids.ID,
	visit func(*Job) bool) error {
	var here []*Job
	v.ScraperJobs(scraper, func(job *Job) bool {
		if !v.Archived(job) {
			here = append(here, job)
		}
		return true
	})
	q := rowstore.PastQuery{Scraper: scraper, Trials: true, By: rowstore.ByQueued,
		Descending: true, Limit: pastAtOnce}
	return h.visit(ctx, v, q, here, visit)
}

// visit merges the runs of the view and of a query, newest first, and calls visit for each.
func (h *History) visit(ctx context.Context, v *View, q rowstore.PastQuery, here []*Job,
	visit func(*Job) bool) error {
	for {
		past, err := h.runs(ctx, v, q)
		if err != nil {
			return err
		}
		for _, job := range past {
			for len(here) > 0 && Newer(here[0], job) {
				if !visit(here[0]) {
					return nil
				}
				here = here[1:]
			}
			if !visit(job) {
				return nil
			}
		}
		if len(past) < q.Limit {
			break
		}
		last := past[len(past)-1]
		q.Behind = &rowstore.PastPlace{Value: last.Queued, ID: last.ID}
	}
	for _, job := range here {
		if !visit(job) {
			return nil
		}
	}
	return nil
}

// Newer says whether a was launched after b. It is the order of a history.
func Newer(a, b *Job) bool {
	return cmp.Or(cmp.Compare(a.Queued, b.Queued), bytes.Compare(a.ID[:], b.ID[:])) > 0
}

// Newest returns the customer's newest run or trial that has begun, or nil. It ignores trials in
// the archive.
func (h *History) Newest(ctx context.Context, v *View, customer string) (newest *Job, err error) {
	kept := false
	v.CustomerJobs(customer, func(job *Job) bool {
		if newest == nil && job.State != model.Pending {
			newest = job
		}
		kept = v.Archived(job) && !job.Unlisted()
		return !kept
	})
	if kept { // the state keeps the newest
		return newest, nil
	}
	jobs, err := h.runs(ctx, v, rowstore.PastQuery{Customer: customer, By: rowstore.ByQueued,
		Descending: true, Limit: 1})
	if err == nil && len(jobs) > 0 && (newest == nil || Newer(jobs[0], newest)) {
		newest = jobs[0]
	}
	return newest, err
}

// RunsOf selects the runs of a customer, in one group unless that is zero; without trials.
type RunsOf struct {
	Customer string
	Group    ids.ID
	Queued   rowstore.PastSpan // when they were queued
}

// RunsBefore returns runs before a place, newest first; nil: from the newest.
func (h *History) RunsBefore(ctx context.Context, v *View, of RunsOf, place *rowstore.PastPlace,
	most int) ([]*Job, error) {
	if to := of.Queued.To; to > 0 && (place == nil || place.Value >= to) {
		place = &rowstore.PastPlace{Value: to} // no id is below zero
	}
	var here, found []*Job
	v.CustomerJobs(of.Customer, func(job *Job) bool {
		if job.Queued < of.Queued.From {
			return false
		}
		behind := place == nil || Newer(&Job{Queued: place.Value, ID: place.ID}, job)
		if behind && !job.Unlisted() && !v.Archived(job) &&
			(of.Group.IsZero() || job.Group == of.Group) {
			here = append(here, job)
		}
		return len(here) < most
	})
	q := rowstore.PastQuery{Customer: of.Customer, Group: of.Group, By: rowstore.ByQueued,
		Descending: true, Queued: of.Queued, Behind: place, Limit: most}
	err := h.visit(ctx, v, q, here, func(job *Job) bool {
		found = append(found, job)
		return len(found) < most
	})
	return found, err
}

// ListsOf returns those of the link lists that belong to a customer's runs or trials. At most
// rowstore.MaxPast lists.
func (h *History) ListsOf(ctx context.Context, v *View, customer string, lists []ids.ID) ([]ids.ID,
	error) {
	var theirs []ids.ID
	for _, list := range lists {
		if job := v.JobOfList(list); job != nil && job.Customer == customer {
			theirs = append(theirs, list)
		}
	}
	past, err := h.runs(ctx, v, rowstore.PastQuery{Customer: customer, Lists: lists, Trials: true,
		By: rowstore.BySealed, Limit: rowstore.MaxPast})
	for _, job := range past {
		if v.Job(job.ID) == nil {
			theirs = append(theirs, job.List)
		}
	}
	return theirs, err
}

// Groups returns the groups that a customer's runs are, or were, in.
func (h *History) Groups(ctx context.Context, v *View, customer string) ([]ids.ID, error) {
	var groups []ids.ID
	known := map[ids.ID]bool{{}: true} // a trial has no group
	add := func(group ids.ID) {
		if !known[group] {
			known[group] = true
			groups = append(groups, group)
		}
	}
	v.CustomerJobs(customer, func(job *Job) bool { add(job.Group); return true })
	path := archive.Path(v)
	if path == nil {
		return groups, nil
	}
	counts, err := h.past.CountPast(ctx, path, customer, rowstore.PastSpan{})
	for _, count := range counts {
		add(count.Group)
	}
	return groups, err
}

// RunPage selects a page of a customer's runs, without trials, by number.
type RunPage struct {
	Customer string
	// Wanted says whether runs of a group, scraper and state are listed; nil: all.
	Wanted func(rowstore.PastKind) bool
	Narrow bool // Wanted probably selects few of them
	// Without are runs to leave out, at most rowstore.MaxPast.
	Without []ids.ID
	Queued  rowstore.PastSpan // when they were queued
	By      rowstore.PastOrder
	// Compare orders runs as By does, ascending.
	Compare       func(a, b *Job) int
	Descending    bool
	Offset, Limit int
}

// Runs returns a page, and the number of runs on all pages.
func (h *History) Runs(ctx context.Context, v *View, p RunPage) ([]*Job, int64, error) {
	order := func(a, b *Job) int {
		n := cmp.Or(p.Compare(a, b), bytes.Compare(a.ID[:], b.ID[:]))
		if p.Descending {
			return -n
		}
		return n
	}
	var here []*Job
	v.CustomerJobs(p.Customer, func(job *Job) bool {
		kind := rowstore.PastKind{Group: job.Group, Scraper: job.Scraper, State: string(job.State)}
		if p.Queued.Has(job.Queued) && !job.Unlisted() && !v.Archived(job) &&
			(p.Wanted == nil || p.Wanted(kind)) && !slices.Contains(p.Without, job.ID) {
			here = append(here, job)
		}
		return true
	})
	slices.SortFunc(here, order)
	first := max(p.Offset-len(here), 0)
	q := rowstore.PastQuery{Customer: p.Customer, Without: p.Without, Queued: p.Queued, By: p.By,
		Descending: p.Descending, Offset: first, Limit: p.Offset + p.Limit - first}
	past, total, err := h.archivedPage(ctx, v, p, q)
	if err != nil {
		return nil, 0, err
	}
	page := mergePage(past, here, order, first, p.Offset)
	return page[:min(p.Limit, len(page))], total + int64(len(here)), nil
}

// archivedPage returns the archive's part of a page, and how many runs the archive has on all
// pages. The query needs the wanted kinds, which the count finds. Mostly all kinds are wanted, so
// it reads the page in parallel without them.
func (h *History) archivedPage(ctx context.Context, v *View, p RunPage,
	q rowstore.PastQuery) (past []*Job, total int64, err error) {
	var meanwhile sync.WaitGroup
	var unread error
	if !p.Narrow {
		meanwhile.Go(func() { past, unread = h.runs(ctx, v, q) })
	}
	total, kinds, err := h.countRuns(ctx, v, p)
	meanwhile.Wait()
	if err = errors.Join(err, unread); err != nil || int64(q.Offset) >= total {
		return nil, total, err
	}
	if p.Narrow || kinds != nil {
		q.Kinds = kinds
		past, err = h.runs(ctx, v, q)
	}
	return past, total, err
}

// mergePage returns the page at offset of past and here merged in order. past begins at its record
// number first. At most len(here) records of here precede the offset, so the page begins at that
// record or later.
func mergePage[T any](past, here []T, order func(a, b T) int, first, offset int) []T {
	at := first
	if first > 0 {
		if len(past) == 0 {
			return nil // the page lies beyond the end
		}
		before, _ := slices.BinarySearchFunc(here, past[0], order)
		here, at = here[before:], at+before
	}
	merged := slices.Concat(past, here)
	slices.SortFunc(merged, order)
	return merged[min(offset-at, len(merged)):]
}

// countRuns counts the archived runs of all pages. kinds is nil if every kind is wanted.
func (h *History) countRuns(ctx context.Context, v *View, p RunPage) (total int64,
	kinds []rowstore.PastKind, err error) {
	path := archive.Path(v)
	if path == nil {
		return 0, nil, nil
	}
	counts, err := h.past.CountPast(ctx, path, p.Customer, p.Queued)
	if err != nil {
		return 0, nil, err
	}
	for _, c := range counts {
		if p.Wanted == nil || p.Wanted(c.PastKind) {
			total += c.Runs
			kinds = append(kinds, c.PastKind)
		}
	}
	if len(kinds) == len(counts) {
		kinds = nil
	}
	if len(p.Without) > 0 && total > 0 {
		left, err := h.past.PastRuns(ctx, rowstore.PastQuery{Path: path, Customer: p.Customer,
			Kinds: kinds, IDs: p.Without, Queued: p.Queued, By: rowstore.ByQueued,
			Limit: rowstore.MaxPast})
		if err != nil {
			return 0, nil, err
		}
		total -= int64(len(left))
	}
	return total, kinds, nil
}

// EntriesOf returns the ledger entries of runs by id. A trial that delivered nothing has none.
func (h *History) EntriesOf(ctx context.Context, v *View, jobs []*Job) (map[ids.ID]*Entry, error) {
	found, elsewhere := map[ids.ID]*Entry{}, []ids.ID{}
	var whose []string
	for _, job := range jobs {
		if entry := v.Entry(job.Entry); entry != nil {
			found[job.Entry] = entry
		} else {
			elsewhere = append(elsewhere, job.Entry)
			if !slices.Contains(whose, job.Customer) {
				whose = append(whose, job.Customer)
			}
		}
	}
	if len(elsewhere) == 0 {
		return found, nil
	}
	past, err := h.entries(ctx, v, rowstore.PastEntriesQuery{Customers: whose, IDs: elsewhere,
		Limit: len(elsewhere)})
	for _, entry := range past {
		found[entry.ID] = entry
	}
	return found, err
}

// ClosedAfter returns the next runs and trials that commands after an index closed, at most most,
// in order. Continue from the Index of the last one.
func (h *History) ClosedAfter(ctx context.Context, v *View, index uint64, most int) ([]*Job,
	error) {
	var jobs []*Job
	if index < v.ArchivedTo() {
		var err error
		jobs, err = h.runs(ctx, v, rowstore.PastQuery{Trials: true, By: rowstore.BySealed,
			Behind: &rowstore.PastPlace{Value: int64(index), ID: lastID}, Limit: most})
		if err != nil || len(jobs) == most {
			return jobs, err
		}
	}
	v.ClosedAfter(max(index, v.ArchivedTo()), func(job *Job) bool {
		jobs = append(jobs, job)
		return len(jobs) < most
	})
	return jobs, nil
}

// lastID sorts after every other id.
var lastID = ids.ID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
