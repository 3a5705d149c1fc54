package client

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// RowsSince returns the earliest start of runs whose rows are shown, in Unix microseconds. Older
// rows have expired, and the row store will remove them. 0: none has expired.
func RowsSince(v *View) (since int64) {
	for _, item := range v.WorkOf(work.Expire, "") {
		since = max(since, rowstore.ReadExpiry(item.Progress))
	}
	return since
}

// Retained returns how many of a scraper's newest runs keep their rows; 0: all. The group's count
// wins over the scraper's. FILE scrapers keep one unless told otherwise (decision 22). Files never
// remove rows of a protected scraper.
func Retained(v *View, s *Scraper) int {
	count := 0
	if group := v.Group(s.Group); group != nil {
		count = group.Retention
	}
	return RetainedWith(v, s, count)
}

// RetainedWith is Retained if the count of the scraper's group were this one; 0: it has none.
func RetainedWith(v *View, s *Scraper, count int) int {
	if v.Protects(s) && !v.Internal(s) {
		return 0
	}
	if count > 0 {
		return count
	}
	switch config := s.Spec.Config; {
	case config != nil && config.RetentionCount != nil:
		return *config.RetentionCount
	case s.Spec.Type == model.File:
		return 1
	}
	return 0
}

// Replaces says whether a run with rows counts as one of the newest. Only a run that can be the
// last one does (decision 45). Otherwise the last run's rows would go.
func Replaces(v *View, job *Job, scraper *Scraper) bool {
	return bringsRows(v, job, scraper) && Counts(v, job)
}

// bringsRows says whether a closed run has brought rows of its own. Runs of kept bodies have not:
// another run paid for their pages. A run of links left over by another run adds to that run's
// rows. Runs of a list may be such a one.
func bringsRows(v *View, job *Job, scraper *Scraper) bool {
	return job.Closed && job.State != model.Failed && job.Items > 0 && !job.Rest &&
		!(scraper.ListRun && v.MayBeRest(job)) &&
		(!job.File || scraper.Spec.Type == model.File)
}

// NewestWithRows returns the newest run whose rows a scraper must have; nil: none. After a restore
// they may be gone all the same: a newer run, which is undone, had replaced them.
func (h *History) NewestWithRows(ctx context.Context, v *View, scraper *Scraper) (*Job, error) {
	var newest *Job
	err := h.ScraperRuns(ctx, v, scraper.ID, func(job *Job) bool {
		if bringsRows(v, job, scraper) {
			newest = job
		}
		return newest == nil
	})
	if err != nil || newest == nil || v.Group(newest.Group) == nil ||
		v.DeletedRun(newest.ID) != nil || newest.Started*1000 < RowsSince(v) {
		return nil, err
	}
	return newest, nil
}

// Retaining is the progress of retention, by the commands that closed runs. Up to Upto the rows of
// replaced runs are gone. Up to Next it may be removing them. From Behind on, it passed over some
// scrapers, on which the row store failed. They are tried again; 0: there are none.
type Retaining struct {
	Upto   uint64
	Next   uint64   `json:",omitempty"`
	Behind uint64   `json:",omitempty"`
	Passed []ids.ID `json:",omitempty"` // at most 1,000
}

// RetainingNow returns the progress of retention in a view, by Upto and Next.
func RetainingNow(v *View) (now Retaining) {
	for _, item := range v.WorkOf(work.Retain, "") {
		at := Retaining{}
		if json.Unmarshal(item.Progress, &at) == nil { // empty before its first step
			done := at.Upto
			if at.Behind > 0 {
				done = min(done, at.Behind-1)
			}
			now.Upto = max(now.Upto, done)
			now.Next = max(now.Next, at.Upto, at.Next)
		}
	}
	return now
}

// Shown returns the scope of visible rows of a group, or of one scraper in it unless that is zero.
// It leaves out what expired, what a restore undid, what is being removed, and unfinished uploads.
// In a group with quarantine it also leaves out runs that are not closed (decision 45).
func Shown(v *View, group, scraper ids.ID) rowstore.Scope {
	if deleted := v.DeletedGroup(group); deleted != nil && deleted.Rows {
		return rowstore.Scope{Group: group, Scraper: scraper, Since: math.MaxInt64} // of no run
	}
	return rowstore.Scope{Group: group, Scraper: scraper,
		Without: slices.Concat(v.UndoneIn(group), v.DeletedIn(group), Hidden(v, group)),
		Gone:    v.RemovedIn(group), Since: RowsSince(v)}
}

// Hidden returns the runs of a group that reads do not show although nobody deleted them.
func Hidden(v *View, group ids.ID) []ids.ID {
	return slices.Concat(v.HiddenIn(group), unjudgedIn(v, group))
}

// ShownOf returns the scope of visible rows of a run.
func ShownOf(v *View, job *Job) rowstore.Scope {
	scope := Shown(v, job.Group, ids.ID{})
	scope.Jobs = []ids.ID{job.ID}
	return scope
}

// unjudgedIn returns the open runs of a group with quarantine.
func unjudgedIn(v *View, group ids.ID) (jobs []ids.ID) {
	g := v.Group(group)
	if g == nil || !g.Quarantine {
		return nil
	}
	for _, job := range v.OpenJobsOfCustomer(g.Customer) {
		if job.Group == group {
			jobs = append(jobs, job.ID)
		}
	}
	return jobs
}

// Counts says whether a run can be its scraper's last one, if no newer run is (decision 45).
func Counts(v *View, job *Job) bool {
	if group := v.Group(job.Group); group != nil && group.Quarantine &&
		(!job.Closed || job.State != model.Completed) {
		return false
	}
	return job.Shows() && v.DeletedRun(job.ID) == nil && v.HeldRun(job.ID) == nil
}
