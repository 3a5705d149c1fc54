package rowstoretest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// old makes jobs of several ages, each with two rows, an error and a record. The last job is young
// and was stored last.
func (s *suite) old(group ids.ID, cut time.Time, ages ...time.Duration) (jobs []rowstore.Job) {
	scraper := s.ids.New()
	for i, age := range ages {
		job := s.jobOf(group, scraper)
		job.Started = cut.Add(age).UnixMicro()
		jobs = append(jobs, job)
		s.put(s.delivered(job, 0, 0, fmt.Sprintf(`{"job":%d}`, i), `{}`),
			s.errored(job, 1, 0, "timeout", 0))
	}
	return jobs
}

const week = 7 * 24 * time.Hour

// testExpire: the job's start decides. A Scope hides old rows at once. Within another week they go,
// and with them the records of condensed jobs, whose sums stay.
func testExpire(s *suite) {
	cut := time.UnixMicro(s.job().Started)
	group := s.ids.New()
	jobs := s.old(group, cut, -400*24*time.Hour, -2*week, -time.Microsecond, 0, time.Hour)
	sum := rowstore.Recount{Delivered: 1, Errored: 1, Items: 2,
		Quantity: map[string]uint64{"tier:plain": 1}}
	scope := rowstore.Scope{Group: group, Since: cut.UnixMicro()}
	young := []string{`{"job":3}`, `{}`, `{"job":4}`, `{}`}
	s.equal("rows that are not hidden", young, s.rows(scope))
	page, err := s.store.Rows(s.ctx, rowstore.RowsQuery{Scope: scope, Limit: 10})
	s.ok(err)
	s.equal("rows of a page", 4, len(page))
	for _, job := range jobs[:2] {
		s.ok(s.store.Seal(s.ctx, job.ID, nil))
	}
	expiring, err := s.store.Expiring(s.ctx, cut, 10)
	s.ok(err)
	slices.SortFunc(expiring, func(a, b rowstore.Job) int { return int(a.Started - b.Started) })
	s.equal("sealed jobs that expire", jobs[:2], expiring)
	one, err := s.store.Expiring(s.ctx, cut, 1)
	s.ok(err)
	s.equal("jobs of one look", 1, len(one))
	s.ok(s.store.Condense(s.ctx, jobs[0].ID, sum, cut))
	// A late owner may find no records any more: the first sum stands.
	s.ok(s.store.Condense(s.ctx, jobs[0].ID, rowstore.Recount{}, cut.Add(40*24*time.Hour)))
	for range 2 {
		s.ok(s.store.Expire(s.ctx, cut))
		s.equal("rows", young, s.rows(scope))
		s.equal("records of the condensed job", 0, s.records(jobs[0].ID))
	}
	for _, job := range jobs {
		counted, err := s.store.Recount(s.ctx, job.ID)
		s.ok(err)
		s.equal("recount", sum, counted)
		if job != jobs[0] {
			s.equal("records of a job that is not condensed", 2, s.records(job.ID))
		}
	}
	s.equal("rows of the condensed job", []string{}, s.rows(only(jobs[0])))
	expiring, err = s.store.Expiring(s.ctx, cut, 10)
	s.ok(err)
	s.equal("jobs that expire still", jobs[1:2], expiring)
	if r := s.put(s.delivered(jobs[0], 9, 0, `{}`))[0]; r != nil {
		s.Fatalf("a condensed job is no longer sealed: %v", r)
	}
	// An old job that still runs can go on.
	again := s.delivered(jobs[2], 2, 0, `{"late":true}`)
	s.equal("receipt", receipt(again), s.put(again)[0])
	if rows := s.rows(only(jobs[2])); !slices.Contains(rows, `{"late":true}`) {
		s.Fatalf("rows of the old job: %v", rows)
	}
	// A job whose records are deleted for another reason is no longer condensed.
	s.ok(s.store.DeleteJob(s.ctx, jobs[0].ID, true))
	counted, err := s.store.Recount(s.ctx, jobs[0].ID)
	s.ok(err)
	s.equal("recount", rowstore.Recount{Quantity: map[string]uint64{}}, counted)
}

func (s *suite) records(job ids.ID) (count int) {
	s.Helper()
	s.ok(s.store.EachRecord(s.ctx, job, func(rowstore.Record) error { count++; return nil }))
	return count
}

// testKeepCharged: hashes are kept per scraper, by job and part, for as long as the job.
func testKeepCharged(s *suite) {
	job := s.job()
	other := s.jobOf(job.Group, job.Scraper)
	foreign := s.jobOf(job.Group, s.ids.New())
	for _, one := range []rowstore.Job{job, other, foreign} {
		s.put(s.delivered(one, 0, 0, `{}`))
	}
	many := make([]uint64, rowstore.MaxKept)
	for i := range many {
		many[i] = uint64(i) << 40
	}
	keep := func(of rowstore.Job, part uint32, hashes ...uint64) {
		s.ok(s.store.KeepCharged(s.ctx, rowstore.Kept{Scraper: of.Scraper, Job: of.ID, Part: part,
			Hashes: hashes}))
	}
	keep(job, 0, many...)
	keep(job, 0, 3) // from a late owner that has read only some of the records
	keep(job, 1, 1<<63+1)
	keep(other, 0, 5, 7)
	keep(foreign, 0, 9)
	kept := func(scraper ids.ID) (all []uint64) {
		s.ok(s.store.EachCharged(s.ctx, scraper, func(hashes []uint64) error {
			all = append(all, hashes...)
			return nil
		}))
		slices.Sort(all)
		return slices.Compact(all)
	}
	want := append(slices.Clone(many), 1<<63+1, 5, 7)
	slices.Sort(want)
	s.equal("kept", want, kept(job.Scraper))
	s.equal("kept of another scraper", []uint64{9}, kept(foreign.Scraper))
	s.equal("kept of nobody", []uint64(nil), kept(s.ids.New()))
	failed := errors.New("no more")
	if err := s.store.EachCharged(s.ctx, job.Scraper,
		func([]uint64) error { return failed }); !errors.Is(err, failed) {
		s.Fatalf("a visit that fails ends with %v", err)
	}
	s.ok(s.store.Seal(s.ctx, job.ID, nil))
	s.ok(s.store.DeleteJob(s.ctx, job.ID, true))
	s.equal("kept of what is left", []uint64{5, 7}, kept(job.Scraper))
}

// testHolding: a job holds rows from its first row until their deletion. Records do not count.
func testHolding(s *suite) {
	job := s.job()
	errored, other := s.jobOf(job.Group, job.Scraper), s.jobOf(job.Group, s.ids.New())
	moved := s.jobOf(s.ids.New(), job.Scraper)
	s.put(s.delivered(job, 0, 0, `{}`, `{}`), s.delivered(job, 1, 0, `{}`),
		s.errored(errored, 0, 0, "timeout", 0), s.delivered(other, 0, 0, `{}`),
		s.delivered(moved, 0, 0, `{}`))
	holding := func(want []ids.ID, scope rowstore.Scope) {
		s.Helper()
		jobs, err := s.store.Holding(s.ctx, scope, 10)
		s.ok(err)
		slices.SortFunc(jobs, func(a, b ids.ID) int { return bytes.Compare(a[:], b[:]) })
		s.equal("jobs with rows", want, jobs)
	}
	group := rowstore.Scope{Group: job.Group}
	scraper := rowstore.Scope{Group: job.Group, Scraper: job.Scraper}
	holding(nil, rowstore.Scope{Group: s.ids.New()})
	holding([]ids.ID{job.ID, other.ID}, group)
	holding([]ids.ID{job.ID}, scraper)
	holding([]ids.ID{moved.ID}, rowstore.Scope{Group: moved.Group, Scraper: job.Scraper})
	group.Without = []ids.ID{job.ID}
	holding([]ids.ID{other.ID}, group)
	group.Without, group.Gone = nil, []ids.ID{other.Scraper}
	holding([]ids.ID{job.ID}, group)
	s.equal("rows that are not of a scraper that is gone", 3, len(s.rows(group)))
	count, err := s.store.Count(s.ctx, group, nil)
	s.ok(err)
	s.equal("their count", int64(3), count)
	page, err := s.store.Rows(s.ctx, rowstore.RowsQuery{Scope: group, Limit: 10})
	s.ok(err)
	s.equal("a page of them", 3, len(page))
	group.Gone = nil
	one, err := s.store.Holding(s.ctx, group, 1)
	s.ok(err)
	s.equal("jobs of one look", 1, len(one))
	s.ok(s.store.Seal(s.ctx, job.ID, nil))
	s.ok(s.store.DeleteJob(s.ctx, job.ID, false))
	holding(nil, scraper)
	holding([]ids.ID{other.ID}, group)
}
