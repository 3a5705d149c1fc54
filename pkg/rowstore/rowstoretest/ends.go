package rowstoretest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

func testSeal(s *suite) {
	job, other := s.job(), s.job()
	var batch []rowstore.PageWrite
	var kept []string
	for seq := range uint32(300) {
		row := fmt.Sprintf(`{"n":%d}`, seq)
		ended := s.delivered(job, seq, 0, row, row)
		ended.Page.Last = true
		batch = append(batch, ended, s.delivered(other, seq, 0, row))
		if seq%3 == 0 {
			kept = append(kept, row, row)
		}
	}
	open := s.delivered(job, 300, 0, `{"n":300}`)
	open.Page.Next = &model.Continuation{Page: 1, URL: "https://host.test/next"}
	slices.Reverse(batch)
	slices.Reverse(kept)
	kept = append(kept, `{"n":300}`)
	s.put(append(batch, open)...)
	settled := func(u model.Unit, _ bool) bool { return u.Seq%3 == 0 }
	var asked []model.Unit
	s.ok(s.store.Seal(s.ctx, job.ID, func(u model.Unit, last bool) bool {
		if last == (u == model.Unit{Seq: 300}) {
			s.Errorf("unit %v: last %v", u, last)
		}
		asked = append(asked, u)
		return settled(u, last)
	}))
	s.equal("number of units", 301, len(asked))
	if !slices.IsSortedFunc(asked, func(a, b model.Unit) int { return cmp.Compare(a.Seq, b.Seq) }) {
		s.Fatalf("asked out of order: %v", asked)
	}
	s.equal("rows", kept, s.rows(only(job)))
	s.equal("rows of another job", 300, len(s.rows(only(other))))
	sum, err := s.store.Recount(s.ctx, job.ID)
	s.ok(err)
	s.equal("recount", rowstore.Recount{Delivered: 101, Items: 201,
		Quantity: map[string]uint64{"tier:plain": 101}}, sum)

	receipts := s.put(s.delivered(job, 1, 0, `{}`), s.delivered(other, 1000, 0, `{}`),
		s.delivered(job, 0, 0, `{}`))
	if receipts[0] != nil || receipts[1] == nil || receipts[2] != nil {
		s.Fatalf("pages of a sealed job: %v", receipts)
	}
	s.ok(s.store.Seal(s.ctx, job.ID, settled))
	s.ok(s.store.Seal(s.ctx, job.ID, nil))
	s.equal("rows", kept, s.rows(only(job)))
	for id, want := range map[ids.ID]bool{job.ID: true, other.ID: false, s.ids.New(): false} {
		sealed, err := s.store.Sealed(s.ctx, id)
		s.ok(err)
		s.equal("sealed", want, sealed)
	}
}

func testSealUnknown(s *suite) {
	job := s.job()
	s.ok(s.store.Seal(s.ctx, job.ID, func(model.Unit, bool) bool { return true }))
	if r := s.put(s.delivered(job, 0, 0, `{}`))[0]; r != nil {
		s.Fatalf("a page of a sealed job: %v", r)
	}
	s.equal("rows", []string{}, s.rows(only(job)))
}

// testSealRace seals while pages come: in any order, only settled units stay.
func testSealRace(s *suite) {
	job := s.job()
	var group sync.WaitGroup
	begun := make(chan struct{})
	group.Go(func() {
		for seq := range uint32(300) {
			if seq == 100 {
				close(begun)
			}
			_, err := s.store.PutPages(s.ctx,
				[]rowstore.PageWrite{{Job: job, Page: &model.Page{Job: job.ID,
					Unit: model.Unit{Seq: seq}, Outcome: model.Delivered,
					Rows: [][]byte{[]byte(`{}`)}}}})
			if err != nil {
				s.Error(err)
			}
		}
	})
	<-begun
	s.ok(s.store.Seal(s.ctx, job.ID, func(u model.Unit, _ bool) bool { return u.Seq < 50 }))
	group.Wait()
	s.equal("rows", 50, len(s.rows(only(job))))
}

func testDeleteJob(s *suite) {
	job, other := s.job(), s.job()
	s.put(s.delivered(job, 0, 0, numbered(0, 5000)...), s.delivered(other, 0, 0, `{"v":1}`),
		s.delivered(job, 1, 0, `{}`))
	recount := func() rowstore.Recount {
		sum, err := s.store.Recount(s.ctx, job.ID)
		s.ok(err)
		return sum
	}
	before := recount()
	s.ok(s.store.Seal(s.ctx, job.ID, nil))
	s.ok(s.store.DeleteJob(s.ctx, job.ID, false))
	s.ok(s.store.DeleteJob(s.ctx, job.ID, false))
	s.equal("rows", []string{}, s.rows(only(job)))
	s.equal("recount without rows", before, recount())
	s.ok(s.store.DeleteJob(s.ctx, job.ID, true))
	s.ok(s.store.DeleteJob(s.ctx, job.ID, true))
	s.equal("recount without records", rowstore.Recount{Quantity: map[string]uint64{}}, recount())
	s.equal("rows of another job", []string{`{"v":1}`}, s.rows(only(other)))
	if r := s.put(s.delivered(job, 9, 0, `{}`))[0]; r != nil {
		s.Fatalf("a deleted job is no longer sealed: %v", r)
	}
	s.ok(s.store.DeleteJob(s.ctx, s.ids.New(), true))
	horizon, err := s.store.Horizon(s.ctx)
	s.ok(err)
	s.put(s.delivered(other, 5, 0, `{"v":2}`))
	docs, _, err := s.store.Scan(s.ctx,
		rowstore.ScanQuery{Scope: only(other), After: horizon, Upto: 1 << 62, Limit: 10})
	s.ok(err)
	s.equal("rows after a removal", []string{`{"v":2}`}, texts(docs))
}

// testJobsSince: a job is listed from its first page on, whatever became of its rows. A job that
// was only sealed is not listed.
func testJobsSince(s *suite) {
	cut := s.job().Started
	want := map[ids.ID]rowstore.Job{}
	for i, off := range []int64{-1, 0, 1, 1_000_000} {
		job := s.job()
		job.Started = cut + off
		s.put(s.delivered(job, 0, 0, `{}`), s.errored(job, 1, 0, "timeout", 0))
		if off >= 0 {
			want[job.ID] = job
		}
		if i%2 == 0 {
			s.ok(s.store.Seal(s.ctx, job.ID, nil))
			s.ok(s.store.DeleteJob(s.ctx, job.ID, true))
		}
	}
	s.ok(s.store.Seal(s.ctx, s.ids.New(), nil))
	got := map[ids.ID]rowstore.Job{}
	s.ok(s.store.JobsSince(s.ctx, cut,
		func(job rowstore.Job) error { got[job.ID] = job; return nil }))
	s.equal("jobs since the cut", want, got)
	failed := errors.New("no more")
	if err := s.store.JobsSince(s.ctx, cut,
		func(rowstore.Job) error { return failed }); !errors.Is(err, failed) {
		s.Fatalf("a visit that fails ends with %v", err)
	}
}

// testClaim: a store without an owner belongs to whoever claims it, and keeps its name.
func testClaim(s *suite) {
	const owner = "cluster1"
	for range 2 {
		whose, err := s.store.Claim(s.ctx, owner, true)
		s.ok(err)
		s.equal("owner", owner, whose)
	}
	before, err := s.store.Identity(s.ctx)
	s.ok(err)
	after, err := s.store.Identity(s.ctx)
	s.ok(err)
	s.equal("name", before, after)
}
