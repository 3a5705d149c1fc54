package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Job is a run. Its sets of units are kept in a Run until it is closed.
type Job struct {
	ID       ids.ID           `cbor:"1,keyasint"`
	Customer string           `cbor:"2,keyasint"`
	Group    ids.ID           `cbor:"3,keyasint"`
	Scraper  ids.ID           `cbor:"4,keyasint"`
	Revision uint32           `cbor:"5,keyasint"`
	List     ids.ID           `cbor:"6,keyasint"` // its link list in the row store
	Links    uint32           `cbor:"7,keyasint"` // it reads the first so many of that list
	State    model.JobState   `cbor:"8,keyasint"`
	Reason   model.StopReason `cbor:"9,keyasint,omitempty"`
	Message  string           `cbor:"10,keyasint,omitempty"`
	Queued   int64            `cbor:"11,keyasint"`
	Started  int64            `cbor:"12,keyasint"` // equal to Queued until the first dispatch
	Finished int64            `cbor:"13,keyasint,omitempty"`
	// Closed: nothing of the run is out, its ledger entry is sealed, and nothing about it changes.
	Closed  bool   `cbor:"14,keyasint,omitempty"`
	Success uint32 `cbor:"15,keyasint,omitempty"` // links whose chain was read to its end
	Errors  uint32 `cbor:"16,keyasint,omitempty"` // links that ended with an error
	Items   uint64 `cbor:"17,keyasint,omitempty"` // rows stored
	// units that ended: delivered or failed (decision 38)
	Pages     uint64        `cbor:"18,keyasint,omitempty"`
	Tiers     model.TierSet `cbor:"19,keyasint"`
	Prices    uint32        `cbor:"20,keyasint"` // version of the price table
	MaxCharge *int64        `cbor:"21,keyasint,omitempty"`
	Entry     ids.ID        `cbor:"22,keyasint"` // its ledger entry
	// Raft index of the last change, which is the event id in the run's stream
	Index     uint64 `cbor:"23,keyasint"`
	Delivered uint64 `cbor:"24,keyasint,omitempty"`
	Charged   int64  `cbor:"25,keyasint,omitempty"` // so far, 0 or more
	MaxPages  uint32 `cbor:"26,keyasint"`           // most pages of one chain
	// IgnoresRobots is kept as the record of the choice (decision 17).
	IgnoresRobots bool `cbor:"27,keyasint,omitempty"`
	// Charge is how its pages are charged.
	Charge model.Charge `cbor:"28,keyasint,omitzero"`
	// Daily holds the daily limits that its reads count towards.
	Daily model.DailyLimits `cbor:"29,keyasint,omitzero"`
	// Source is the kind of call that made a trial, "" for a run. A trial has no group and is its
	// own Scraper, so reads by group or scraper never see it.
	Source model.Source `cbor:"40,keyasint,omitempty"`
	// the key that the trial is counted for; zero: none
	Key ids.ID `cbor:"41,keyasint,omitempty"`
	// Rest says that a rerun cut its list down to the rest of a list given before. With File it
	// says that the run reads kept bodies of another run.
	Rest bool `cbor:"42,keyasint,omitempty" since:"2"`
	// Given is the length of the list if the run does not read all of it. A rerun of given
	// addresses keeps them all; those that it leaves out are behind its Links.
	Given uint32 `cbor:"43,keyasint,omitempty" since:"2"`
	// File says that its rows come from an uploaded file, or from kept bodies of another run. It
	// has no list, no sets of units and no ledger entry, and it is never dispatched.
	File bool `cbor:"50,keyasint,omitempty" since:"2"`
	// Same is a hash of everything that decides a trial's outcome; zero: its outcome is not shared.
	Same Hash `cbor:"51,keyasint,omitzero" since:"2"`
}

// SameMillis is how long after its end a delivered trial still answers an identical one. Its rows
// stay longer.
const SameMillis = 60 * 1000

// lends reports whether an identical trial may use this one's outcome, at a time in Unix
// milliseconds.
func (j *Job) lends(now int64) bool {
	return !j.Closed || j.Delivered > 0 && now < j.Finished+SameMillis
}

// Trial reports whether the run is a sample or a preview, and so outside history and data.
func (j *Job) Trial() bool { return j.Source != "" }

// Unlisted reports whether the run is in no history: a trial, or an upload that was stopped.
func (j *Job) Unlisted() bool { return j.Trial() || j.File && j.State == model.Stopped }

// Shows reports whether the run's rows count as the scraper's latest (decision 45). A pending or
// failed run does not hide earlier runs. An upload counts once it is complete.
func (j *Job) Shows() bool {
	if j.File {
		return j.State == model.Completed
	}
	return j.State != model.Pending && j.State != model.Failed
}

// Ended reports whether the run needs no more pages, or is closed.
func (j *Job) Ended() bool { return j.Closed || j.State.Final() }

var jobsTable = define(1, "jobs",
	index("id", true, func(j *Job) []any { return []any{j.ID} }),
	index("customer", true, func(j *Job) []any { return []any{j.Customer, j.Queued, j.ID} }),
	index("scraper", true, func(j *Job) []any { return []any{j.Scraper, j.Queued, j.ID} }),
	// of jobs that are not closed; those of files are never dispatched
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
	// of closed jobs in the order of the archive, with shared trials apart
	index("past", true, func(j *Job) []any {
		if !j.Same.zero() {
			return nil
		}
		return j.onceClosed(j.Customer, j.Index, j.ID)
	}),
	index("shared", true, func(j *Job) []any {
		if j.Same.zero() {
			return nil
		}
		return j.onceClosed(j.Index, j.ID)
	}),
	index("same", true, func(j *Job) []any {
		if j.Same.zero() {
			return nil
		}
		return []any{j.Customer, j.Same, j.Queued, j.ID}
	}),
).watchable().told((*Job).telling).followed(func(j *Job) (string, Touch) {
	return j.Customer, Touch{What: TouchedJob, ID: j.ID}
})

// onceClosed returns parts once the job is closed, nil before.
func (j *Job) onceClosed(parts ...any) []any {
	if !j.Closed {
		return nil
	}
	return parts
}

// whileOpen returns parts until the job is closed, then nil.
func (j *Job) whileOpen(parts ...any) []any {
	if j.Closed {
		return nil
	}
	return parts
}

// Job returns the job with an id, or nil.
func (v *View) Job(id ids.ID) *Job { return jobsTable.first(v, "id", id) }

// WatchJob returns the job and a channel that is closed at its next change.
func (v *View) WatchJob(id ids.ID) (*Job, <-chan struct{}) { return jobsTable.watch(v, id) }

// JobOfList returns the job that runs a link list, nil when none does.
func (v *View) JobOfList(list ids.ID) *Job { return jobsTable.first(v, "list", list) }

// SameTrial returns the customer's newest identical trial that is under way or has just delivered,
// nil when there is none.
func (v *View) SameTrial(customer string, same Hash, now int64) (found *Job) {
	jobsTable.each(v, true, func(j *Job) bool {
		if j.lends(now) {
			found = j
		}
		return found == nil
	}, "same_prefix", customer, same)
	return found
}

// JobsAfter visits all jobs with ids after id, by id, until visit returns false.
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

// OpenJobs lists the jobs that are not closed, oldest first. It leaves uploads out.
func (v *View) OpenJobs() []*Job { return jobsTable.all(v, "open_prefix") }

// OpenJobsOf lists a scraper's jobs that are not closed.
func (v *View) OpenJobsOf(scraper ids.ID) []*Job {
	return jobsTable.all(v, "running_prefix", scraper)
}

// OpenJobsOfCustomer lists a customer's jobs that are not closed.
func (v *View) OpenJobsOfCustomer(customer string) []*Job {
	return jobsTable.all(v, "busy_prefix", customer)
}

// PutJob adds or replaces a job.
func (t *Tx) PutJob(j *Job) {
	if j.State.Final() {
		if before := t.Job(j.ID); before != nil && !before.State.Final() {
			t.ended = append(t.ended, j.ID)
		}
	}
	jobsTable.put(t, j)
}

// Ended lists the runs that the command has ended so far, for whatever reason.
func (t *Tx) Ended() []ids.ID { return t.ended }

// RemoveJob removes a run that is in the archive. Its customer's steps still count it.
func (t *Tx) RemoveJob(j *Job) {
	if !j.Unlisted() {
		t.came(j.Customer, ran)
	}
	jobsTable.remove(t, j)
}
