package rowstoretest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// inOrder reads scopes to their end in the order of a field, q.Limit rows at a time.
func (s *suite) inOrder(q rowstore.OrderQuery) (docs []string) {
	s.Helper()
	docs = []string{}
	for {
		rows, err := s.store.Order(s.ctx, q)
		s.ok(err)
		for i := range rows {
			before := q.After
			if i > 0 {
				before = &rows[i-1]
			}
			if !rows[i].Valid() || before != nil && q.Sort.Compare(*before, rows[i]) >= 0 {
				s.Fatalf("%+v follows %+v", rows[i], before)
			}
		}
		for part := range slices.Chunk(rows, rowstore.MaxAt) {
			docs = append(docs, s.at(q.Scopes, part)...)
		}
		if len(rows) < q.Limit {
			return docs
		}
		q.After = &rows[len(rows)-1]
	}
}

// at returns the documents of rows, in their order.
func (s *suite) at(scopes []rowstore.Scope, rows []rowstore.Standing) []string {
	s.Helper()
	places := make([]int64, len(rows))
	for i, row := range rows {
		places[i] = row.Place
	}
	docs, used, err := s.store.At(s.ctx, scopes, places, 0)
	s.ok(err)
	s.equal("places read", len(places), used)
	return texts(docs)
}

// orderClasses returns values in ascending order; equal values share an entry. An empty value is a
// missing field.
func orderClasses() [][]string {
	long := strings.Repeat("ä", rowstore.KeyBytes/2)
	return [][]string{
		{`-5`}, {`0`, `"0"`, `-0.0`}, {`0.1`}, {`"7.5"`}, {`12`, `"12"`}, {`1e3`},
		{`9007199254740993`, `9007199254740992`}, {`1.5e300`}, // numbers: 8
		{`""`}, {`"10 EUR"`}, {`"A"`}, {`"a"`}, {`"a\u0000"`}, {`"a'\\\""`}, {`"z"`}, {`"ä"`},
		{`"` + long + `"`, `"` + long + `b"`, `"` + long + `a"`}, {`"日本"`}, {`"🐟"`}, // texts: 11
		{`false`}, {`true`}, // booleans
		{`[1]`, `{"x":1}`, `1e400`}, {`null`, ``}, // others and none
	}
}

// orderOf ranks an entry of orderClasses: classes keep their order in either direction.
func orderOf(entry int, descending bool) int {
	starts := []int{0, 8, 19, 21, 22, 23}
	for i, end := range starts[1:] {
		if entry < end && descending {
			return starts[i] + end - 1 - entry
		} else if entry < end {
			return entry
		}
	}
	panic("no such class")
}

// testOrder compares with an order made here, for pages of all sizes of two scopes, to a horizon.
func testOrder(s *suite) {
	scraper := s.ids.New()
	a, b, hidden := s.jobOf(s.ids.New(), scraper), s.jobOf(s.ids.New(), scraper), s.job()
	hidden.Group = a.Group
	classes := orderClasses()
	type row struct {
		doc   string
		entry int
		job   int
	}
	var all []row
	random := rand.New(rand.NewPCG(5, 6))
	for seq := range uint32(8) {
		var batch []rowstore.PageWrite // its rows lie job by job
		for i, job := range []rowstore.Job{a, b, hidden} {
			var docs []string
			for range random.IntN(24) {
				entry := random.IntN(len(classes))
				doc := fmt.Sprintf(`{"id":%d`, len(all))
				if value := classes[entry][random.IntN(len(classes[entry]))]; value != "" {
					doc += `,"va'l.ue":` + value
				}
				all = append(all, row{doc + "}", entry, i})
				docs = append(docs, doc+"}")
			}
			batch = append(batch, s.delivered(job, seq, 0, docs...))
		}
		s.put(batch...)
	}
	horizon, err := s.store.Horizon(s.ctx)
	s.ok(err)
	s.put(s.delivered(a, 1000, 0, `{"id":-1,"va'l.ue":3}`)) // too late
	both := []rowstore.Scope{{Group: a.Group, Without: []ids.ID{hidden.ID}}, {Group: b.Group}}
	for name, test := range map[string]struct {
		scopes []rowstore.Scope
		filter filter.Node
		has    func(n int, r row) bool
	}{
		"two groups": {both, nil, func(_ int, r row) bool { return r.job < 2 }},
		"one group":  {both[1:], nil, func(_ int, r row) bool { return r.job == 1 }},
		"filtered": {both, s.parse(`{"id":{"gte":50}}`),
			func(n int, r row) bool { return r.job < 2 && n >= 50 }},
		"no job": {[]rowstore.Scope{{Group: a.Group, Jobs: []ids.ID{}}}, nil,
			func(int, row) bool { return false }},
		"no scope": {nil, nil, func(int, row) bool { return false }},
	} {
		for _, descending := range []bool{false, true} {
			var rows []row
			for n, r := range all {
				if test.has(n, r) {
					rows = append(rows, r)
				}
			}
			slices.SortStableFunc(rows, func(x, y row) int {
				return orderOf(x.entry, descending) - orderOf(y.entry, descending)
			})
			want := []string{}
			for _, r := range rows {
				want = append(want, r.doc)
			}
			for _, limit := range []int{37, rowstore.MaxOrdered} {
				s.equal(fmt.Sprintf("%s, descending %v, by %d", name, descending, limit), want,
					s.inOrder(rowstore.OrderQuery{Scopes: test.scopes, Filter: test.filter,
						Sort:  rowstore.Sort{Field: "va'l.ue", Descending: descending},
						Upto:  horizon,
						Limit: limit}))
			}
		}
	}
}

// testOrderRace: rows that come during the reads are not seen. No row is seen twice or missed, and
// rows that go are left out.
func testOrderRace(s *suite) {
	group, scraper := s.ids.New(), s.ids.New()
	kept, gone := s.jobOf(group, scraper), s.jobOf(group, scraper)
	var want []string
	var batch []rowstore.PageWrite
	for seq := range uint32(40) {
		row := fmt.Sprintf(`{"n":%d,"id":%d}`, seq%7, seq)
		batch = append(batch, s.delivered(kept, seq, 0, row), s.delivered(gone, seq, 0, row))
	}
	s.put(batch...)
	for n := range 7 {
		for seq := n; seq < 40; seq += 7 {
			want = append(want, fmt.Sprintf(`{"n":%d,"id":%d}`, n, seq))
		}
	}
	horizon, err := s.store.Horizon(s.ctx)
	s.ok(err)
	q := rowstore.OrderQuery{Scopes: []rowstore.Scope{{Group: group}},
		Sort: rowstore.Sort{Field: "n"}, Upto: horizon, Limit: 5}
	first, err := s.store.Order(s.ctx, q)
	s.ok(err)
	s.ok(s.store.DeleteJob(s.ctx, gone.ID, false))
	var writing sync.WaitGroup
	writing.Go(func() {
		for seq := range uint32(10) {
			w := s.delivered(kept, 100+seq, 0, fmt.Sprintf(`{"n":%d,"late":true}`, seq%7))
			if _, err := s.store.PutPages(s.ctx, []rowstore.PageWrite{w}); err != nil {
				s.Error(err)
			}
		}
	})
	left := s.at(q.Scopes, first)
	q.After = &first[len(first)-1]
	s.equal("rows", want, append(left, s.inOrder(q)...))
	writing.Wait()
}

// testAt: documents come in the order of the places, and end with the one that reaches bytes.
func testAt(s *suite) {
	job := s.job()
	rows := numbered(0, 100)
	for i := 0; i < len(rows); i += 7 {
		rows[i] = fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("long", 5_000))
	}
	s.put(s.delivered(job, 0, 0, rows...), s.delivered(job, 1, 0, rows...))
	horizon, err := s.store.Horizon(s.ctx)
	s.ok(err)
	scopes := []rowstore.Scope{only(job)}
	order, err := s.store.Order(s.ctx, rowstore.OrderQuery{Scopes: scopes,
		Sort: rowstore.Sort{Field: "n", Descending: true}, Upto: horizon, Limit: 1000})
	s.ok(err)
	places := []int64{math.MaxInt64 >> 1} // nothing is there
	want := []string{""}
	for i, row := range order {
		places, want = append(places, row.Place), append(want, rows[99-i/2])
	}
	for _, bytes := range []int{0, 1, 20_000, 50_000, 1 << 30} {
		for from := 0; from < len(places); {
			docs, used, err := s.store.At(s.ctx, scopes, places[from:], bytes)
			s.ok(err)
			var part []string
			size, end := 0, from
			for ; end < len(places) && (bytes == 0 || size < bytes); end++ {
				if want[end] != "" {
					part, size = append(part, want[end]), size+len(want[end])
				}
			}
			s.equal(fmt.Sprint("documents of bytes ", bytes), part, texts(docs))
			s.equal("places read", end-from, used)
			from += used
		}
	}
	docs, used, err := s.store.At(s.ctx, scopes, nil, 10)
	s.ok(err)
	s.equal("of no places", 0, len(docs)+used)
}

// testOrderAnywhere: standings come from callers, who may invent them.
func testOrderAnywhere(s *suite) {
	job := s.job()
	rows := []string{`{"v":-1e300}`, `{"v":7}`, `{"v":"m"}`, `{"v":true}`, `{"v":{}}`, `{}`}
	s.put(s.delivered(job, 0, 0, rows...))
	for _, descending := range []bool{false, true} {
		q := rowstore.OrderQuery{Scopes: []rowstore.Scope{only(job)}, Limit: 100,
			Sort: rowstore.Sort{Field: "v", Descending: descending}}
		for _, q.Upto = range []int64{0, math.MaxInt64} {
			all, err := s.store.Order(s.ctx, q)
			s.ok(err)
			for _, at := range []rowstore.Standing{
				{Class: rowstore.Numbers, Number: -math.MaxFloat64},
				{Class: rowstore.Numbers, Number: math.SmallestNonzeroFloat64},
				{Class: rowstore.Texts, Text: "\x00\xff'\\"}, {Class: rowstore.Texts},
				{Class: rowstore.Booleans, Number: 1}, {Class: rowstore.Others},
				{Class: rowstore.Nones}} {
				for _, at.Place = range []int64{1, math.MaxInt64} {
					from := q
					from.After = &at
					found, err := s.store.Order(s.ctx, from)
					s.ok(err)
					var want []rowstore.Standing
					for _, row := range all {
						if q.Sort.Compare(row, at) > 0 {
							want = append(want, row)
						}
					}
					s.equal(fmt.Sprintf("rows behind %+v up to %d", at, q.Upto),
						append([]rowstore.Standing{}, want...),
						append([]rowstore.Standing{}, found...))
				}
			}
		}
	}
	found, err := s.store.Order(s.ctx, rowstore.OrderQuery{Scopes: []rowstore.Scope{only(job)},
		Sort: rowstore.Sort{Field: "v"}, Upto: math.MaxInt64, Limit: 100})
	s.ok(err)
	s.equal("all", rows, s.at([]rowstore.Scope{only(job)}, found))
}
