package state

import (
	"github.com/hashicorp/go-memdb"

	"shoal.dev/shoal/pkg/ids"
)

func jobsTable() *memdb.TableSchema {
	return table("jobs",
		index("id", true, func(j *Job) []any { return []any{j.ID} }),
		index("customer", true, func(j *Job) []any { return []any{j.Customer, j.Queued, j.ID} }),
		index("group", true, func(j *Job) []any { return []any{j.Group, j.Queued, j.ID} }),
		index("scraper", true, func(j *Job) []any { return []any{j.Scraper, j.Queued, j.ID} }),
		index("open", true, func(j *Job) []any { return []any{j.Closed, j.Queued, j.ID} }),
		index("running", true, func(j *Job) []any { return []any{j.Scraper, j.Closed, j.ID} }),
		index("busy", true, func(j *Job) []any { return []any{j.Customer, j.Closed, j.ID} }),
		index("list", true, func(j *Job) []any { return []any{j.List} }),
	)
}

// Job is nil when there is none of that id.
func (v *View) Job(id ids.ID) *Job { return first[Job](v, "jobs", "id", id) }

// WatchJob is Job with a channel that is closed at its next change.
func (v *View) WatchJob(id ids.ID) (*Job, <-chan struct{}) { return watch[Job](v, "jobs", "id", id) }

// JobOfList is the job that runs a link list, nil when none does.
func (v *View) JobOfList(list ids.ID) *Job { return first[Job](v, "jobs", "list", list) }

// JobsAfter visits all jobs behind an id, by id, until visit returns false.
func (v *View) JobsAfter(id ids.ID, visit func(*Job) bool) {
	from(v, func(job *Job) bool { return job.ID == id || visit(job) }, "jobs", "id", id)
}

// CustomerJobs visits a customer's jobs, newest first, until visit returns false.
func (v *View) CustomerJobs(customer string, visit func(*Job) bool) {
	each(v, true, visit, "jobs", "customer_prefix", customer)
}

// GroupJobs visits a group's jobs, newest first, until visit returns false.
func (v *View) GroupJobs(group ids.ID, visit func(*Job) bool) {
	each(v, true, visit, "jobs", "group_prefix", group)
}

// ScraperJobs visits a scraper's jobs, newest first, until visit returns false.
func (v *View) ScraperJobs(scraper ids.ID, visit func(*Job) bool) {
	each(v, true, visit, "jobs", "scraper_prefix", scraper)
}

// OpenJobs lists the jobs that are not closed, oldest first.
func (v *View) OpenJobs() []*Job { return all[Job](v, "jobs", "open_prefix", false) }

// OpenJobsOf lists a scraper's jobs that are not closed.
func (v *View) OpenJobsOf(scraper ids.ID) []*Job {
	return all[Job](v, "jobs", "running_prefix", scraper, false)
}

// OpenJobsOfCustomer lists a customer's jobs that are not closed.
func (v *View) OpenJobsOfCustomer(customer string) []*Job {
	return all[Job](v, "jobs", "busy_prefix", customer, false)
}

// PutJob adds or replaces.
func (t *Tx) PutJob(j *Job) { put(t, "jobs", j) }
