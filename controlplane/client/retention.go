package client

import (
	"encoding/json"
	"math"
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// RowsSince is from which start on runs show what is stored of them, in Unix microseconds. What is
// older expired, and goes when the row store removes it. 0: nothing did yet.
func RowsSince(v *View) (since int64) {
	for _, item := range v.WorkOf(work.Expire, "") {
		since = max(since, rowstore.ReadExpiry(item.Progress))
	}
	return since
}

// Retained is how many of a scraper's newest runs keep their rows, 0: all. The group's count wins
// over the scraper's. FILE scrapers keep one unless told (decision 22).
// Of a protected scraper no file removes rows.
func Retained(v *View, s *Scraper) int {
	if v.Protects(s) && !v.Internal(s) {
		return 0
	}
	if group := v.Group(s.Group); group != nil && group.Retention > 0 {
		return group.Retention
	}
	switch config := s.Spec.Config; {
	case config != nil && config.RetentionCount != nil:
		return *config.RetentionCount
	case s.Spec.Type == model.File:
		return 1
	}
	return 0
}

// Replaces says whether a run counts as one of the newest: it is closed, and has rows, unless they
// were deleted. One that brought none takes the place of none. Nor does one that is held
// back, or one of kept bodies: its pages are those of a run that was paid for. A run of the links
// that another one has left adds to the rows of that one.
func Replaces(job *Job, scraper *Scraper) bool {
	return job.Closed && job.State != model.Failed && job.Items > 0 && !job.Rest &&
		(!job.File || scraper.Spec.Type == model.File)
}

// Retaining is how far retention is, by the commands that closed runs. Up to Upto it has looked
// at them, and the rows of those that they replace are gone. Up to Next it may be removing them.
type Retaining struct {
	Upto uint64
	Next uint64 `json:",omitempty"`
}

// RetainingNow is how far retention is as far as a view knows.
func RetainingNow(v *View) (now Retaining) {
	for _, item := range v.WorkOf(work.Retain, "") {
		at := Retaining{}
		if json.Unmarshal(item.Progress, &at) == nil { // none before its first step
			now.Upto = max(now.Upto, at.Upto)
			now.Next = max(now.Next, at.Upto, at.Next)
		}
	}
	return now
}

// Shown is the scope of what may be seen of a group, or of one scraper in it if that is not zero.
// Left out is what expired, what a restore undid, what is being removed, and uploads that are not
// whole. Left out of a group with quarantine are its runs that are not closed, too (decision 45).
func Shown(v *View, group, scraper ids.ID) rowstore.Scope {
	if deleted := v.DeletedGroup(group); deleted != nil && deleted.Rows {
		return rowstore.Scope{Group: group, Scraper: scraper, Since: math.MaxInt64} // no run's
	}
	return rowstore.Scope{Group: group, Scraper: scraper,
		Without: slices.Concat(v.UndoneIn(group), v.DeletedIn(group), Hidden(v, group)),
		Gone:    v.RemovedIn(group), Since: RowsSince(v)}
}

// Hidden are the runs of a group that no read shows yet, or any more, although nobody deleted them.
func Hidden(v *View, group ids.ID) []ids.ID {
	return slices.Concat(v.HiddenIn(group), unjudgedIn(v, group))
}

// ShownOf is the scope of what may be seen of a run.
func ShownOf(v *View, job *Job) rowstore.Scope {
	scope := Shown(v, job.Group, ids.ID{})
	scope.Jobs = []ids.ID{job.ID}
	return scope
}

// unjudgedIn are the runs in a group with quarantine that are not closed.
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

// Counts says whether a run counts as its scraper's last one, if no newer one does (decision 45).
func Counts(v *View, job *Job) bool {
	if group := v.Group(job.Group); group != nil && group.Quarantine &&
		(!job.Closed || job.State != model.Completed) {
		return false
	}
	return job.Shows() && v.DeletedRun(job.ID) == nil && v.HeldRun(job.ID) == nil
}
