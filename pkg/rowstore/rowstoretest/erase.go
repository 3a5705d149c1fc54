package rowstoretest

import (
	"bytes"
	"slices"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// testErase: an erased job leaves only its sum, whatever it had. Other customers' jobs stay.
func testErase(s *suite) {
	var jobs []rowstore.Job
	for range 4 {
		job := s.job()
		job.Customer = "gone " + job.ID.String()[:2]
		jobs = append(jobs, job)
	}
	customer := jobs[0].Customer
	jobs[1].Customer, jobs[2].Customer, jobs[3].Customer = customer, customer, customer+"x"
	slices.SortFunc(jobs[:3], func(a, b rowstore.Job) int {
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	rows, records, kept, other := jobs[0], jobs[1], jobs[2], jobs[3]
	for _, job := range []rowstore.Job{rows, other} {
		s.put(s.delivered(job, 0, 0, `{}`, `{}`), s.errored(job, 1, 0, "timeout", 0))
	}
	for _, job := range []rowstore.Job{records, kept} {
		s.put(s.errored(job, 0, 0, "timeout", 0))
	}
	for _, job := range []rowstore.Job{kept, other} {
		s.ok(s.store.KeepCharged(s.ctx, rowstore.Kept{Scraper: job.Scraper, Job: job.ID,
			Hashes: []uint64{7}}))
	}
	for _, job := range jobs {
		s.ok(s.store.Seal(s.ctx, job.ID, nil))
	}
	of := func(customer string, after ids.ID, most int) []rowstore.Job {
		found, err := s.store.JobsOf(s.ctx, customer, after, most)
		s.ok(err)
		return found
	}
	s.equal("jobs of the customer", jobs[:3], of(customer, ids.ID{}, 10))
	s.equal("jobs of one look", jobs[:2], of(customer, ids.ID{}, 2))
	s.equal("jobs behind one", jobs[2:3], of(customer, records.ID, 2))
	s.equal("jobs of nobody", 0, len(of(customer+"y", ids.ID{}, 10)))
	for _, job := range jobs[:3] {
		sum, err := s.store.Recount(s.ctx, job.ID)
		s.ok(err)
		s.ok(s.store.Condense(s.ctx, job.ID, sum, time.UnixMicro(job.Started)))
		for range 2 {
			s.ok(s.store.EraseJob(s.ctx, job.ID))
		}
		again, err := s.store.Recount(s.ctx, job.ID)
		s.ok(err)
		s.equal("recount", sum, again)
		s.equal("records", 0, s.records(job.ID))
		s.equal("rows", []string{}, s.rows(only(job)))
		s.ok(s.store.EachCharged(s.ctx, job.Scraper, func(hashes []uint64) error {
			s.Fatalf("%v is kept of what was charged", hashes)
			return nil
		}))
		if r := s.put(s.delivered(job, 9, 0, `{}`))[0]; r != nil {
			s.Fatalf("an erased job is no longer sealed: %v", r)
		}
	}
	s.equal("jobs that are left", 0, len(of(customer, ids.ID{}, 10)))
	s.equal("jobs of another", jobs[3:], of(other.Customer, ids.ID{}, 10))
	s.equal("records of another", 2, s.records(other.ID))
	s.equal("rows of another", 2, len(s.rows(only(other))))
	s.ok(s.store.EraseJob(s.ctx, s.ids.New()))
}
