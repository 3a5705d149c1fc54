package rowstoretest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// jobModel is the simplest model of a job.
type jobModel struct {
	job     rowstore.Job
	records map[model.Unit]*model.Page
	rows    []string // in the order in which they were stored
	sealed  bool
}

// put returns the receipt that a page must get.
func (m *jobModel) put(w rowstore.PageWrite) *model.Receipt {
	if m.sealed {
		return nil
	}
	if _, ok := m.records[w.Page.Unit]; !ok {
		page := *w.Page
		for unit, other := range m.records {
			if other.Last && unit.Seq == page.Unit.Seq && unit.Page < page.Unit.Page {
				return nil
			}
		}
		for _, other := range m.records {
			if page.URLHash != 0 && other.URLHash == page.URLHash &&
				other.Outcome == model.Delivered {
				page = model.Page{Job: page.Job, Unit: page.Unit, Outcome: model.Duplicate,
					Last: true}
			}
		}
		m.records[page.Unit] = &page
		for _, row := range page.Rows {
			m.rows = append(m.rows, string(row))
		}
	}
	return receipt(rowstore.PageWrite{Page: m.records[w.Page.Unit]})
}

func (m *jobModel) seal(settled func(model.Unit, bool) bool) {
	m.sealed = true
	for unit, page := range m.records {
		if settled(unit, page.Last) {
			continue
		}
		delete(m.records, unit)
		m.rows = slices.DeleteFunc(m.rows, func(row string) bool {
			return slices.ContainsFunc(page.Rows,
				func(gone []byte) bool { return string(gone) == row })
		})
	}
}

func (m *jobModel) recount() rowstore.Recount {
	sum := rowstore.Recount{Quantity: map[string]uint64{}}
	for _, page := range m.records {
		switch page.Outcome {
		case model.Delivered:
			sum.Delivered++
			sum.Items += uint64(len(page.Rows))
			sum.Quantity[page.PriceRow] += uint64(page.Quantity)
		case model.Errored:
			sum.Errored++
		}
	}
	return sum
}

// testPagesModel runs random batches, seals and removals against the model.
func testPagesModel(s *suite) {
	rapid.Check(s.T, func(t *rapid.T) {
		group := s.ids.New()
		jobs := make([]*jobModel, 3)
		for i := range jobs {
			jobs[i] = &jobModel{job: s.jobOf(group, s.ids.New()),
				records: map[model.Unit]*model.Page{}}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				var batch []rowstore.PageWrite
				var want []*model.Receipt
				for range rapid.IntRange(1, 12).Draw(t, "pages") {
					m := rapid.SampledFrom(jobs).Draw(t, "job")
					batch = append(batch, s.anyPage(t, m.job))
				}
				for _, w := range batch {
					want = append(want,
						jobs[slices.IndexFunc(jobs,
							func(m *jobModel) bool { return m.job == w.Job })].put(w))
				}
				s.equal("receipts", want, s.put(batch...))
			},
			"seal": func(t *rapid.T) {
				m := rapid.SampledFrom(jobs).Draw(t, "job")
				below := rapid.Uint32Range(0, 8).Draw(t, "below")
				settled := func(u model.Unit, last bool) bool { return u.Seq < below || last }
				m.seal(settled)
				s.ok(s.store.Seal(s.ctx, m.job.ID, settled))
			},
			"delete": func(t *rapid.T) {
				m := rapid.SampledFrom(jobs).Draw(t, "job")
				records := rapid.Bool().Draw(t, "records")
				if m.rows = nil; records {
					m.records = map[model.Unit]*model.Page{}
				}
				s.ok(s.store.DeleteJob(s.ctx, m.job.ID, records))
			},
			"check": func(t *rapid.T) { s.checkJob(rapid.SampledFrom(jobs).Draw(t, "job")) },
		})
		for _, m := range jobs {
			s.checkJob(m)
		}
	})
}

// anyPage returns a page of one of few units and addresses, with rows that no other page has.
func (s *suite) anyPage(t *rapid.T, job rowstore.Job) rowstore.PageWrite {
	w := s.delivered(job, rapid.Uint32Range(0, 7).Draw(t, "seq"),
		rapid.Uint32Range(0, 1).Draw(t, "page"))
	w.Page.URLHash = rapid.SampledFrom([]uint64{0, 1, 2, 1 << 63}).Draw(t, "hash")
	w.Page.Last = rapid.Bool().Draw(t, "last")
	if rapid.IntRange(0, 4).Draw(t, "outcome") == 0 {
		w.Page.Outcome, w.Page.Code, w.Page.PriceRow, w.Page.Quantity = model.Errored, "timeout",
			"", 0
		return w
	}
	for n := range rapid.IntRange(1, 3).Draw(t, "rows") {
		w.Page.Rows = append(w.Page.Rows, fmt.Appendf(nil, `{"fetch":%q,"n":%d}`, w.Page.Fetch, n))
	}
	return w
}

func (s *suite) checkJob(m *jobModel) {
	s.Helper()
	s.equal("rows", append([]string{}, m.rows...), s.rows(only(m.job)))
	sum, err := s.store.Recount(s.ctx, m.job.ID)
	s.ok(err)
	s.equal("recount", m.recount(), sum)
	units := slices.SortedFunc(maps.Keys(m.records), func(a, b model.Unit) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Page, b.Page))
	})
	var got []model.Unit
	s.ok(s.store.EachRecord(s.ctx, m.job.ID,
		func(r rowstore.Record) error { got = append(got, r.Unit); return nil }))
	s.equal("units", units, got)
}
