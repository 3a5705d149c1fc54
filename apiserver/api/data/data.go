// Package data owns the reads of scraped rows and their categories (specification 4.4), and the
// deletion of a run's rows (4.3). It decides which rows a caller may see, in which order and form.
// Package filter defines filters; the row store has the rows.
package data

import (
	"context"
	"slices"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/diff"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/telemetry"
)

const group = "Data"

// Resource has the operations on scraped rows and their dependencies.
type Resource struct {
	Client  client.Client
	Store   rowstore.Reads
	Records Records
	IDs     ids.Source
	History *client.History
	Plans   *plans.Source
	Blobs   Blobs // nil: neither exports nor bodies are kept
	Bodies  bodies.Codec
	Clock   clock.Clock
	Diffs   *diff.Kept // comparisons that may continue with their next page
	Ahead   *Ahead     // orders of sorted reads that may continue with their next page
	// Dir is where files are assembled before they are kept; "": the system's temporary directory.
	// Disk is the disk of Dir, whose floor stays free; nil: unchecked.
	Dir  string
	Disk *telemetry.Disk
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.group(),
		r.client(),
		r.download(),
		r.read(),
		r.export(),
		r.keep(),
		r.keptList(),
		r.kept(),
		r.keptFile(),
		r.dropKept(),
		r.diff(),
		r.profile(),
		r.oddities(),
		r.receipt(),
		r.body(),
		r.merge(),
		r.previewDelete(),
		r.delete(),
		r.categories(),
		r.putCategory(),
		r.previewDeleteCategory(),
		r.deleteCategory(),
	}
}

// newest is an owner's newest run when a read began. A read of latest runs ignores younger runs on
// later pages.
type newest struct {
	Queued int64    `json:"q"`
	ID     ids.ID   `json:"i"`
	hidden []ids.ID // runs that existed then but were hidden from reads
	latest []ids.ID // the latest runs, if they were recorded; nil: unknown
}

func newestRun(ctx context.Context, h *client.History, v *client.View, owner string) (newest,
	error) {
	j, err := h.Newest(ctx, v, owner)
	if err != nil || j == nil {
		return newest{}, err
	}
	return newest{Queued: j.Queued, ID: j.ID}, nil
}

// has reports whether a run existed and was visible when n was the newest.
func (n newest) has(queued int64, id ids.ID) bool {
	if slices.Contains(n.hidden, id) {
		return false
	}
	if queued != n.Queued {
		return queued < n.Queued
	}
	return string(id[:]) <= string(n.ID[:])
}

// latestRuns returns the newest runs of the group's scrapers, or of one of them, as of a moment. It
// is never nil.
func latestRuns(ctx context.Context, h *client.History, v *client.View, group, scraper ids.ID,
	asOf newest) ([]ids.ID, error) {
	jobs := []ids.ID{}
	var err error
	add := func(s *client.Scraper) bool {
		var latest *client.Job
		if latest, err = latestRun(ctx, h, v, s, asOf); latest != nil && latest.Group == group {
			jobs = append(jobs, latest.ID)
		}
		return err == nil
	}
	if scraper.IsZero() {
		v.GroupScrapers(group, add)
	} else if s := v.Scraper(scraper); s != nil {
		add(s)
	}
	return jobs, err
}

// latestRun returns the scraper's newest run that has rows to show (decision 45), or nil. Runs that
// have not begun or that failed do not hide earlier ones. A run that has left the state has only
// its id, group and time.
func latestRun(ctx context.Context, h *client.History, v *client.View, s *client.Scraper,
	asOf newest) (latest *client.Job, err error) {
	find := func(j *client.Job) bool {
		if asOf.has(j.Queued, j.ID) && client.Counts(v, j) {
			latest = j
		}
		return latest == nil
	}
	v.ScraperJobs(s.ID, find)
	past := s.Past.ShownRun(s.Group)
	if past == nil || latest != nil && latest.Queued > past.Queued {
		return latest, nil
	}
	group := v.Group(past.Group)
	strict := group != nil && group.Quarantine || v.HeldRun(past.ID) != nil
	if asOf.has(past.Queued, past.ID) && !strict {
		return past, nil
	}
	latest = nil
	err = h.ScraperRuns(ctx, v, s.ID, find)
	return latest, err
}

// parseFilter parses a filter; "" is nil.
func parseFilter(text string) (filter.Node, error) {
	if text == "" {
		return nil, nil
	}
	return filter.Parse([]byte(text))
}

// parseSort parses the sort of a read.
func parseSort(texts []string) ([]rowstore.Sort, error) {
	var sorts []rowstore.Sort
	for _, text := range texts {
		field, descending, known := api.ReadSort(text)
		if !known {
			return nil, fault.Invalid(fault.InvalidSort, "sort",
				"must be a field, then asc or desc: price,desc")
		}
		sort := rowstore.Sort{Field: field, Descending: descending}
		if !filter.IsField(sort.Field) {
			return nil, fault.Invalid(fault.InvalidSort, "sort",
				`needs a field's name of 1 to %d bytes, without control characters, " or \`,
				filter.MaxFieldBytes)
		}
		if sort.Field == "scrapedAt" {
			sort.Field = "_scrapedAt"
		}
		sorts = append(sorts, sort)
	}
	return sorts, nil
}
