package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Job is a run. Its sets of units are kept beside it (Run) until it is closed.
type Job struct {
	ID       ids.ID           `cbor:"1,keyasint"`
	Customer string           `cbor:"2,keyasint"`
	Group    ids.ID           `cbor:"3,keyasint"`
	Scraper  ids.ID           `cbor:"4,keyasint"`
	Revision uint32           `cbor:"5,keyasint"`
	List     ids.ID           `cbor:"6,keyasint"` // its link list in the row store
	Links    uint32           `cbor:"7,keyasint"` // length of that list
	State    model.JobState   `cbor:"8,keyasint"`
	Reason   model.StopReason `cbor:"9,keyasint,omitempty"`
	Message  string           `cbor:"10,keyasint,omitempty"`
	Queued   int64            `cbor:"11,keyasint"`
	Started  int64            `cbor:"12,keyasint"` // equal to Queued until the first dispatch
	Finished int64            `cbor:"13,keyasint,omitempty"`
	// Closed: nothing of the run is out, its ledger entry is sealed, nothing about it changes any
	// more.
	Closed  bool   `cbor:"14,keyasint,omitempty"`
	Success uint32 `cbor:"15,keyasint,omitempty"` // links whose chain was read to its end
	Errors  uint32 `cbor:"16,keyasint,omitempty"` // links that ended with an error
	Items   uint64 `cbor:"17,keyasint,omitempty"` // rows stored
	// units brought to an end: delivered or errored (decision 38)
	Pages     uint64        `cbor:"18,keyasint,omitempty"`
	Tiers     model.TierSet `cbor:"19,keyasint"`
	Prices    uint32        `cbor:"20,keyasint"` // version of the price table
	MaxCharge *int64        `cbor:"21,keyasint,omitempty"`
	Entry     ids.ID        `cbor:"22,keyasint"` // its ledger entry
	// Raft index of the last change: the event id of its stream
	Index     uint64 `cbor:"23,keyasint"`
	Delivered uint64 `cbor:"24,keyasint,omitempty"`
	Charged   int64  `cbor:"25,keyasint,omitempty"` // so far, 0 or more
	MaxPages  uint32 `cbor:"26,keyasint"`           // most pages of one chain
	// Robots off is recorded (decision 17).
	IgnoresRobots bool `cbor:"27,keyasint,omitempty"`
	// Charge is how its pages are charged.
	Charge model.Charge `cbor:"28,keyasint,omitzero"`
	// Daily are the limits that its reads count towards.
	Daily model.DailyLimits `cbor:"29,keyasint,omitzero"`
	// Source is the call that a trial was made by, "" of a run. A trial belongs to no group and, by
	// Scraper, to itself, so that nothing which is read by group or scraper has it.
	Source model.Source `cbor:"40,keyasint,omitempty"`
	// the key whose trials of the day it is one of; zero: none
	Key ids.ID `cbor:"41,keyasint,omitempty"`
	// Rest says that its list is what a rerun left of one that was given before. With File: that it
	// reads the kept bodies of another run.
	Rest bool `cbor:"42,keyasint,omitempty" since:"2"`
	// File says that its rows are those of an uploaded file, or of the kept bodies of another run.
	// It has no list, no sets of units and no ledger entry, and nobody dispatches it.
	File bool `cbor:"50,keyasint,omitempty" since:"2"`
	// Same names all that decides what comes of a trial; zero: it is nobody else's.
	Same Hash `cbor:"51,keyasint,omitzero" since:"2"`
}

// SameMillis is for how long after its end a trial that has delivered is the answer to the same
// one. Its rows stay for longer.
const SameMillis = 60 * 1000

// lends says whether the same trial may have what comes of this one, at a time in Unix
// milliseconds.
func (j *Job) lends(now int64) bool {
	return !j.Closed || j.Delivered > 0 && now < j.Finished+SameMillis
}

// Trial says whether the run is a sample or a preview: it is no part of the history or the data.
func (j *Job) Trial() bool { return j.Source != "" }

// Unlisted says whether the run stands in no history: a trial, or an upload that was stopped.
func (j *Job) Unlisted() bool { return j.Trial() || j.File && j.State == model.Stopped }

// Shows says whether the rows of the run count as the scraper's last ones (decision 45). A run that
// has not begun, or failed, hides none of those before it, and an upload is seen when it is whole.
func (j *Job) Shows() bool {
	if j.File {
		return j.State == model.Completed
	}
	return j.State != model.Pending && j.State != model.Failed
}

// Ended says that the run wants no page any more, or that nothing about it changes.
func (j *Job) Ended() bool { return j.Closed || j.State.Final() }

var jobsTable = define(1, "jobs",
	index("id", true, func(j *Job) []any { return []any{j.ID} }),
	index("customer", true, func(j *Job) []any { return []any{j.Customer, j.Queued, j.ID} }),
	index("scraper", true, func(j *Job) []any { return []any{j.Scraper, j.Queued, j.ID} }),
	// of jobs that are not closed; those of files are nobody's to dispatch
	index("open", true, func(j *Job) []any {
		if j.File {
			return nil
		}
		return j.whileOpen(j.Queued, j.ID)
	}),
	index("running", true, func(j *Job) []any { return j.whileOpen(j.Scraper, j.ID) }),
	index("busy", true, func(j *Job) []any { return j.whileOpen(j.Customer, j.ID) }),
	index("list", true, func(j *Job) []any {
		if j.File {
			return nil
		}
		return []any{j.List}
	}),
	index("closed", true, func(j *Job) []any { return j.onceClosed(j.Index, j.ID) }),
	index("same", true, func(j *Job) []any {
		if j.Same.zero() {
			return nil
		}
		return []any{j.Customer, j.Same, j.Queued, j.ID}
	}),
).watchable().told((*Job).telling).followed(func(j *Job) (string, Touch) {
	return j.Customer, Touch{What: TouchedJob, ID: j.ID}
})

// onceClosed are the parts of a key that the job has from then on.
func (j *Job) onceClosed(parts ...any) []any {
	if !j.Closed {
		return nil
	}
	return parts
}

// whileOpen are the parts of a key that the job has until it is closed.
func (j *Job) whileOpen(parts ...any) []any {
	if j.Closed {
		return nil
	}
	return parts
}

// Job is nil when there is none of that id.
func (v *View) Job(id ids.ID) *Job { return jobsTable.first(v, "id", id) }

// WatchJob is Job with a channel that is closed at its next change.
func (v *View) WatchJob(id ids.ID) (*Job, <-chan struct{}) { return jobsTable.watch(v, id) }

// JobOfList is the job that runs a link list, nil when none does.
func (v *View) JobOfList(list ids.ID) *Job { return jobsTable.first(v, "list", list) }

// SameTrial is the customer's newest trial of a name that is under way or has just delivered, nil
// when there is none.
func (v *View) SameTrial(customer string, same Hash, now int64) (found *Job) {
	jobsTable.each(v, true, func(j *Job) bool {
		if j.lends(now) {
			found = j
		}
		return found == nil
	}, "same_prefix", customer, same)
	return found
}

// JobsAfter visits all jobs behind an id, by id, until visit returns false.
func (v *View) JobsAfter(id ids.ID, visit func(*Job) bool) {
	jobsTable.from(v, func(job *Job) bool { return job.ID == id || visit(job) }, "id", id)
}

// CustomerJobs visits a customer's jobs, newest first, until visit returns false.
func (v *View) CustomerJobs(customer string, visit func(*Job) bool) {
	jobsTable.each(v, true, visit, "customer_prefix", customer)
}

// ScraperJobs visits a scraper's jobs, newest first, until visit returns false.
func (v *View) ScraperJobs(scraper ids.ID, visit func(*Job) bool) {
	jobsTable.each(v, true, visit, "scraper_prefix", scraper)
}

// OpenJobs lists the jobs that are not closed, oldest first. Uploads are not among them.
func (v *View) OpenJobs() []*Job { return jobsTable.all(v, "open_prefix") }

// OpenJobsOf lists a scraper's jobs that are not closed.
func (v *View) OpenJobsOf(scraper ids.ID) []*Job {
	return jobsTable.all(v, "running_prefix", scraper)
}

// OpenJobsOfCustomer lists a customer's jobs that are not closed.
func (v *View) OpenJobsOfCustomer(customer string) []*Job {
	return jobsTable.all(v, "busy_prefix", customer)
}

// PutJob adds or replaces.
func (t *Tx) PutJob(j *Job) {
	if j.State.Final() {
		if before := t.Job(j.ID); before != nil && !before.State.Final() {
			t.ended = append(t.ended, j.ID)
		}
	}
	jobsTable.put(t, j)
}

// Ended are the runs that the command has ended so far, whatever else it is about.
func (t *Tx) Ended() []ids.ID { return t.ended }

// RemoveJob removes a run that the archive has.
func (t *Tx) RemoveJob(j *Job) { jobsTable.remove(t, j) }

// OldestJobs visits a customer's jobs, oldest first, until visit returns false.
func (v *View) OldestJobs(customer string, visit func(*Job) bool) {
	jobsTable.each(v, false, visit, "customer_prefix", customer)
}
