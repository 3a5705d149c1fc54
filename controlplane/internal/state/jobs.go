package state

import "shoal.dev/shoal/pkg/ids"

var jobsTable = define(1, "jobs",
	index("id", true, func(j *Job) []any { return []any{j.ID} }),
	index("customer", true, func(j *Job) []any { return []any{j.Customer, j.Queued, j.ID} }),
	index("group", true, func(j *Job) []any { return []any{j.Group, j.Queued, j.ID} }),
	index("scraper", true, func(j *Job) []any { return []any{j.Scraper, j.Queued, j.ID} }),
	index("open", true, func(j *Job) []any { return []any{j.Closed, j.Queued, j.ID} }),
	index("running", true, func(j *Job) []any { return []any{j.Scraper, j.Closed, j.ID} }),
	index("busy", true, func(j *Job) []any { return []any{j.Customer, j.Closed, j.ID} }),
	index("list", true, func(j *Job) []any { return []any{j.List} }),
)

// Job is nil when there is none of that id.
func (v *View) Job(id ids.ID) *Job { return jobsTable.first(v, "id", id) }

// WatchJob is Job with a channel that is closed at its next change.
func (v *View) WatchJob(id ids.ID) (*Job, <-chan struct{}) { return jobsTable.watch(v, "id", id) }

// JobOfList is the job that runs a link list, nil when none does.
func (v *View) JobOfList(list ids.ID) *Job { return jobsTable.first(v, "list", list) }

// JobsAfter visits all jobs behind an id, by id, until visit returns false.
func (v *View) JobsAfter(id ids.ID, visit func(*Job) bool) {
	jobsTable.from(v, func(job *Job) bool { return job.ID == id || visit(job) }, "id", id)
}

// CustomerJobs visits a customer's jobs, newest first, until visit returns false.
func (v *View) CustomerJobs(customer string, visit func(*Job) bool) {
	jobsTable.each(v, true, visit, "customer_prefix", customer)
}

// GroupJobs visits a group's jobs, newest first, until visit returns false.
func (v *View) GroupJobs(group ids.ID, visit func(*Job) bool) {
	jobsTable.each(v, true, visit, "group_prefix", group)
}

// ScraperJobs visits a scraper's jobs, newest first, until visit returns false.
func (v *View) ScraperJobs(scraper ids.ID, visit func(*Job) bool) {
	jobsTable.each(v, true, visit, "scraper_prefix", scraper)
}

// OpenJobs lists the jobs that are not closed, oldest first.
func (v *View) OpenJobs() []*Job { return jobsTable.all(v, "open_prefix", false) }

// OpenJobsOf lists a scraper's jobs that are not closed.
func (v *View) OpenJobsOf(scraper ids.ID) []*Job {
	return jobsTable.all(v, "running_prefix", scraper, false)
}

// OpenJobsOfCustomer lists a customer's jobs that are not closed.
func (v *View) OpenJobsOfCustomer(customer string) []*Job {
	return jobsTable.all(v, "busy_prefix", customer, false)
}

// PutJob adds or replaces.
func (t *Tx) PutJob(j *Job) { jobsTable.put(t, j) }
