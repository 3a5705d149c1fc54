// Package data owns the reads of scraped rows (specification 4.4): which runs' rows a caller may
// see, in which order and form. What a filter means is package filter's; the rows are the row
// store's.
package data

import (
	"strings"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

const group = "Data"

// Resource is the operations on scraped rows, and what they use.
type Resource struct {
	Store rowstore.Reads
}

// Operations are all of the resource, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.group(),
		r.read(),
	}
}

// newest is the customer's newest run: a read of latest runs that goes on later does not see
// younger ones.
type newest struct {
	Queued int64  `json:"q"`
	ID     ids.ID `json:"i"`
}

func newestRun(v *client.View, customer string) newest {
	var n newest
	v.CustomerJobs(customer, func(j *client.Job) bool {
		n = newest{j.Queued, j.ID}
		return false
	})
	return n
}

// has says whether a run was there when n was the newest.
func (n newest) has(j *client.Job) bool {
	if j.Queued != n.Queued {
		return j.Queued < n.Queued
	}
	return string(j.ID[:]) <= string(n.ID[:])
}

// latestRuns are the newest runs of the group's scrapers, or of one of them, as of a moment. Not
// nil.
func latestRuns(v *client.View, group, scraper ids.ID, asOf newest) []ids.ID {
	jobs := []ids.ID{}
	add := func(s *client.Scraper) bool {
		if j := latestRun(v, s, asOf); j != nil && j.Group == group {
			jobs = append(jobs, j.ID)
		}
		return true
	}
	if scraper.IsZero() {
		v.GroupScrapers(group, add)
	} else if s := v.Scraper(scraper); s != nil {
		add(s)
	}
	return jobs
}

// latestRun is the scraper's newest run that has rows to show (decision 45): one that has not
// begun, or failed, hides none of those before it. nil without one.
func latestRun(v *client.View, s *client.Scraper, asOf newest) (latest *client.Job) {
	v.ScraperJobs(s.ID, func(j *client.Job) bool {
		if asOf.has(j) && j.State != model.Pending && j.State != model.Failed {
			latest = j
		}
		return latest == nil
	})
	return latest
}

// parseFilter reads a filter; "" is none.
func parseFilter(text string) (filter.Node, error) {
	if text == "" {
		return nil, nil
	}
	return filter.Parse([]byte(text))
}

// parseSort reads "field,desc" or "field:desc"; ascending unless told. A field's name may hold both
// signs.
func parseSort(texts []string) ([]rowstore.Sort, error) {
	var sorts []rowstore.Sort
	for _, text := range texts {
		sort := rowstore.Sort{Field: text}
		if cut := strings.LastIndexAny(text, ",:"); cut >= 0 {
			switch strings.ToLower(text[cut+1:]) {
			case "asc":
				sort.Field = text[:cut]
			case "desc":
				sort.Field, sort.Descending = text[:cut], true
			default:
				return nil, fault.Invalid(fault.InvalidSort, "sort",
					"must be a field, then asc or desc: price,desc")
			}
		}
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
