package rowstoretest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// testDocuments: a document comes back byte for byte.
func testDocuments(s *suite) {
	job := s.job()
	docs := []string{
		`{}`, ` { "a" : 1 ,"b":[ ] } `, `{"z":1,"a":2}`,
		`{"n":1.00,"m":1e5,"big":123456789012345678901234567890}`,
		`{"t":"\u00e4ä\u0000\n\"\\\/ <>&","日本":"🐟"}`,
		`{"long":"` + strings.Repeat("ä", 50_000) + `"}`,
	}
	s.put(s.delivered(job, 0, 0, docs...))
	s.equal("scanned", docs, s.rows(only(job)))
	rows, err := s.store.Rows(s.ctx, rowstore.RowsQuery{Scope: only(job), Limit: 100})
	s.ok(err)
	s.equal("read", docs, texts(rows))
}

func testScopes(s *suite) {
	group, scraper := s.ids.New(), s.ids.New()
	a, b := s.jobOf(group, scraper), s.jobOf(group, scraper)
	c, d := s.jobOf(group, s.ids.New()), s.jobOf(s.ids.New(), scraper)
	for i, job := range []rowstore.Job{a, b, c, d} {
		s.put(s.delivered(job, 0, 0, fmt.Sprintf("%q", string(rune('a'+i)))))
	}
	for _, test := range []struct {
		scope rowstore.Scope
		want  string
	}{
		{rowstore.Scope{Group: group}, `"a" "b" "c"`},
		{rowstore.Scope{Group: group, Scraper: scraper}, `"a" "b"`},
		{rowstore.Scope{Group: group, Jobs: []ids.ID{a.ID, c.ID, d.ID}}, `"a" "c"`},
		{rowstore.Scope{Group: group, Scraper: scraper, Jobs: []ids.ID{a.ID, c.ID}}, `"a"`},
		{rowstore.Scope{Group: group, Jobs: []ids.ID{}}, ``},
		{rowstore.Scope{Group: group, Without: []ids.ID{a.ID}}, `"b" "c"`},
		{rowstore.Scope{Group: group, Jobs: []ids.ID{a.ID, b.ID}, Without: []ids.ID{a.ID, d.ID}},
			`"b"`},
		{rowstore.Scope{Group: s.ids.New()}, ``},
		{rowstore.Scope{}, ``},
	} {
		s.equal(fmt.Sprint(test.scope), test.want, strings.Join(s.rows(test.scope), " "))
		rows, err := s.store.Rows(s.ctx, rowstore.RowsQuery{Scope: test.scope, Limit: 10})
		s.ok(err)
		s.equal(fmt.Sprint("rows of ", test.scope), test.want, strings.Join(texts(rows), " "))
	}
}

// testManyJobs reads with the largest possible scope.
func testManyJobs(s *suite) {
	group, scraper := s.ids.New(), s.ids.New()
	var jobs, without []ids.ID
	var batch []rowstore.PageWrite
	for i := range 10_000 {
		job := s.jobOf(group, scraper)
		jobs = append(jobs, job.ID)
		if i%2 == 0 {
			without = append(without, job.ID)
		}
		if i%20 < 2 {
			batch = append(batch, s.delivered(job, 0, 0, fmt.Sprintf(`{"n":%d}`, i)))
		}
	}
	s.put(batch...)
	want := make([]string, 500)
	for i := range want {
		want[i] = fmt.Sprintf(`{"n":%d}`, 20*i+1)
	}
	scope := rowstore.Scope{Group: group, Jobs: jobs, Without: without}
	s.equal("rows", want, s.rows(scope))
	rows, err := s.store.Rows(s.ctx,
		rowstore.RowsQuery{Scope: scope, Sort: []rowstore.Sort{{Field: "n", Descending: true}},
			Limit: 2})
	s.ok(err)
	s.equal("sorted", []string{`{"n":9981}`, `{"n":9961}`}, texts(rows))
	count, err := s.store.Count(s.ctx, scope, s.parse(`{"n":{"lt":100}}`))
	s.ok(err)
	s.equal("count", int64(5), count)
}

func (s *suite) parse(text string) filter.Node {
	s.Helper()
	node, err := filter.Parse([]byte(text))
	s.ok(err)
	return node
}

func testNewestFirst(s *suite) {
	group, scraper := s.ids.New(), s.ids.New()
	a, b := s.jobOf(group, scraper), s.jobOf(group, scraper)
	type row struct {
		at    int64
		place int
		doc   string
	}
	var all []row
	random := rand.New(rand.NewPCG(1, 2))
	for batch := range 12 {
		var pages []rowstore.PageWrite
		// Rows of one job lie together: place them job by job.
		for _, job := range []rowstore.Job{a, b} {
			for n := range uint32(8) {
				doc := fmt.Sprintf(`{"n":%d}`, len(all))
				w := s.delivered(job, uint32(batch), n, doc, doc)
				w.Page.At = int64(batch/3*2 + random.IntN(4)) // many at the same time
				all = append(all, row{w.Page.At, len(all), doc}, row{w.Page.At, len(all) + 1, doc})
				pages = append(pages, w)
			}
		}
		s.put(pages...)
	}
	slices.SortFunc(all, func(x,
		y row) int {
		return cmp.Or(cmp.Compare(y.at, x.at), cmp.Compare(x.place, y.place))
	})
	for _, page := range [][2]int{{0, 1}, {0, 10}, {7, 10}, {100, 1000}, {190, 100}, {192, 10},
		{500, 10}, {0, 1000}} {
		rows, err := s.store.Rows(s.ctx,
			rowstore.RowsQuery{Scope: rowstore.Scope{Group: group}, Offset: page[0],
				Limit: page[1]})
		s.ok(err)
		want := []string{}
		for _, r := range all[min(page[0], len(all)):min(page[0]+page[1], len(all))] {
			want = append(want, r.doc)
		}
		s.equal(fmt.Sprint("page ", page), want, texts(rows))
	}
	rows, err := s.store.Rows(s.ctx,
		rowstore.RowsQuery{Scope: only(a), Filter: s.parse(`{"n":{"lte":2}}`), Limit: 10})
	s.ok(err)
	var want []string
	for _, r := range all {
		if r.doc == `{"n":0}` || r.doc == `{"n":2}` {
			want = append(want, r.doc)
		}
	}
	s.equal("filtered", want, texts(rows))
}

// testSort compares with an order made here, for all pairs of values of two fields.
func testSort(s *suite) {
	job := s.job()
	classes := [][]string{ // ascending; equal values share an entry
		{`-5`}, {`0`, `"0"`, `0.0`}, {`"7.5"`}, {`12`, `"12"`}, {`1e3`}, // numbers
		{`""`}, {`"10 EUR"`}, {`"A"`}, {`"a"`}, {`"ä"`}, // text
		{`false`}, {`true`}, // booleans
		{`[1]`, `{"x":1}`, `[]`}, // others
		{`null`, ``},             // none
	}
	rank := func(class int) int { // classes keep their order in either direction
		switch {
		case class < 5:
			return 0
		case class < 10:
			return 1
		case class < 12:
			return 2
		}
		return class
	}
	compare := func(a, b int, descending bool) int {
		if order := cmp.Compare(rank(a), rank(b)); order != 0 || !descending {
			return cmp.Or(order, cmp.Compare(a, b))
		}
		return cmp.Compare(b, a)
	}
	type row struct {
		doc  string
		a, b int
	}
	var all []row
	for a, as := range classes {
		for b, bs := range classes {
			doc := fmt.Sprintf(`{"id":%d`, len(all))
			if v := as[b%len(as)]; v != "" {
				doc += `,"a":` + v
			}
			if v := bs[a%len(bs)]; v != "" {
				doc += `,"b.c":` + v
			}
			all = append(all, row{doc + "}", a, b})
		}
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(all),
		func(i, j int) { all[i], all[j] = all[j], all[i] })
	var docs []string
	for _, r := range all {
		docs = append(docs, r.doc)
	}
	s.put(s.delivered(job, 0, 0, docs...))
	for i := range 4 {
		first, second := i&1 == 1, i&2 == 2
		want := slices.Clone(all)
		slices.SortStableFunc(want,
			func(x, y row) int {
				return cmp.Or(compare(x.b, y.b, first),
					compare(x.a, y.a, second))
			})
		for _, page := range [][2]int{{0, 1000}, {10, 20}, {190, 20}, {1000, 5}} {
			rows, err := s.store.Rows(s.ctx,
				rowstore.RowsQuery{Scope: only(job), Offset: page[0], Limit: page[1],
					Sort: []rowstore.Sort{{Field: "b.c", Descending: first},
						{Field: "a", Descending: second}}})
			s.ok(err)
			docs := []string{}
			for _, r := range want[min(page[0], len(want)):min(page[0]+page[1], len(want))] {
				docs = append(docs, r.doc)
			}
			s.equal(fmt.Sprintf("order %d, page %v", i, page), docs, texts(rows))
		}
	}
}

// testRowsBytes: parts of a page, cut by bytes, make up the page, whatever is stored meanwhile.
func testRowsBytes(s *suite) {
	job := s.job()
	rows := numbered(0, 120)
	for i := 0; i < len(rows); i += 7 {
		rows[i] = fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("long", 5_000))
	}
	s.put(s.delivered(job, 0, 0, rows...))
	upto, err := s.store.Horizon(s.ctx)
	s.ok(err)
	late := s.delivered(job, 1, 0, `{"n":-1,"late":true}`)
	late.Page.At += 1_000_000
	s.put(late)
	for _, order := range [][]rowstore.Sort{nil, {{Field: "n"}}} {
		for _, f := range []filter.Node{nil, s.parse(`{"n":{"gte":-1}}`)} {
			for _, page := range []struct{ limit, bytes int }{{1000, 1}, {1000, 20_000},
				{1000, 50_000}, {20, 30_000}, {40, 100_000}, {1000, 1 << 30}} {
				q := rowstore.RowsQuery{Scope: only(job), Filter: f, Sort: order, Limit: page.limit,
					Bytes: page.bytes, Upto: upto}
				for left := rows; len(left) > 0; {
					docs, err := s.store.Rows(s.ctx, q)
					s.ok(err)
					size, want := 0, 0
					for ; want < len(left) && want < page.limit && size < page.bytes; want++ {
						size += len(left[want])
					}
					s.equal(fmt.Sprint("part of ", page), left[:want], texts(docs))
					left, q.Offset = left[want:], q.Offset+want
				}
			}
		}
	}
}

// scanAll reads a scope to its end, limit rows at a time.
func (s *suite) scanAll(scope rowstore.Scope, f filter.Node, upto int64, limit int) []string {
	s.Helper()
	all := []string{}
	for after := int64(0); ; {
		docs, last, err := s.store.Scan(s.ctx,
			rowstore.ScanQuery{Scope: scope, Filter: f, After: after, Upto: upto, Limit: limit})
		s.ok(err)
		all = append(all, texts(docs)...)
		if last == upto {
			return all
		}
		if len(docs) < limit || last <= after || last > upto {
			s.Fatalf("scan from %d to %d went on to %d after %d rows", after, upto, last, len(docs))
		}
		after = last
	}
}

func testScan(s *suite) {
	group := s.ids.New()
	a, b, hidden := s.jobOf(group, s.ids.New()), s.jobOf(group, s.ids.New()),
		s.jobOf(group, s.ids.New())
	want, odd := []string{}, []string{}
	n := 0
	for seq := range uint32(40) {
		for _, job := range []rowstore.Job{a, b, hidden} {
			rows := numbered(n, int(seq)%4)
			s.put(s.delivered(job, seq, 0, rows...))
			if n += len(rows); job.ID == hidden.ID {
				continue
			}
			for _, row := range rows {
				var doc struct{ N int }
				s.ok(json.Unmarshal([]byte(row), &doc))
				if want = append(want, row); doc.N%10 == 1 {
					odd = append(odd, row)
				}
			}
		}
	}
	scope := rowstore.Scope{Group: group, Without: []ids.ID{hidden.ID}}
	horizon, err := s.store.Horizon(s.ctx)
	s.ok(err)
	s.put(s.delivered(a, 1000, 0, `{"late":true}`))
	for _, limit := range []int{1, 7, 1000} {
		s.equal("rows", want, s.scanAll(scope, nil, horizon, limit))
	}
	values := make([]string, 0, 50)
	for i := range 50 {
		values = append(values, fmt.Sprint(10*i+1))
	}
	f := s.parse(`{"n":{"in":[` + strings.Join(values, ",") + `]}}`)
	s.equal("filtered rows", odd, s.scanAll(scope, f, horizon, 3))
	docs, last, err := s.store.Scan(s.ctx,
		rowstore.ScanQuery{Scope: scope, Upto: horizon, Limit: 10})
	s.ok(err)
	s.equal("rows upto a place", texts(docs), s.scanAll(scope, nil, last, 1000))
	s.equal("nothing upto 0", []string{}, s.scanAll(scope, nil, 0, 10))
}

// testScanBytes: a page ends with the row that makes it long enough, however many rows its limit
// still allows.
func testScanBytes(s *suite) {
	job := s.job()
	var all []string
	for seq := range uint32(3) {
		rows := numbered(len(all), 70)
		for i := int(seq); i < len(rows); i += 20 {
			rows[i] = fmt.Sprintf(`{"n":%d,"text":%q}`, len(all)+i, strings.Repeat("long", 5_000))
		}
		s.put(s.delivered(job, seq, 0, rows...))
		all = append(all, rows...)
	}
	horizon, err := s.store.Horizon(s.ctx)
	s.ok(err)
	for _, page := range []struct{ limit, bytes int }{{1000, 1}, {1000, 20_000}, {1000, 50_000},
		{40, 100_000}, {1000, 1 << 30}, {210, 1 << 30}} {
		left := all
		for after := int64(0); after < horizon; {
			docs, last, err := s.store.Scan(s.ctx,
				rowstore.ScanQuery{Scope: only(job), Filter: s.parse(`{"n":{"gte":0}}`),
					After: after, Upto: horizon, Limit: page.limit, Bytes: page.bytes})
			s.ok(err)
			size, want := 0, 0
			for ; want < len(left) && want < page.limit && size < page.bytes; want++ {
				size += len(left[want])
			}
			s.equal(fmt.Sprint("page ", page), left[:want], texts(docs))
			if left = left[want:]; (last == horizon) != (len(left) == 0) {
				s.Fatalf("page %v goes on after %d, %d rows follow", page, last, len(left))
			}
			after = last
		}
	}
}

// testScanAnywhere: places come from callers, who may invent them. A scan from any place to any
// other ends, and returns only rows that lie between.
func testScanAnywhere(s *suite) {
	job := s.job()
	rows := numbered(0, 5)
	s.put(s.delivered(job, 0, 0, rows...))
	places := []int64{math.MinInt64, -1, 0, 1, 1 << 20, 1<<21 - 1, 1 << 40, math.MaxInt64 - 1<<22,
		math.MaxInt64 - 1, math.MaxInt64}
	for _, after := range places {
		for _, upto := range places {
			q := rowstore.ScanQuery{Scope: only(job), After: after, Upto: upto, Limit: 100}
			for range 2 { // from where it ended, it ends at once
				docs, last, err := s.store.Scan(s.ctx, q)
				s.ok(err)
				if all := after <= 0 && upto == math.MaxInt64 && q.After == after; all &&
					len(docs) != len(rows) || len(docs) > len(rows) {
					s.Fatalf("after %d up to %d: %d rows", q.After, upto, len(docs))
				}
				if last != upto {
					s.Fatalf("after %d up to %d it ends at %d", q.After, upto, last)
				}
				q.After = last
			}
		}
	}
}

// testScanRace: a scan to a horizon sees every row up to it once and none after it, whatever is
// written meanwhile.
func testScanRace(s *suite) {
	job := s.job()
	var group sync.WaitGroup
	begun := make(chan struct{})
	group.Go(func() {
		for seq := range uint32(200) {
			if seq == 50 {
				close(begun)
			}
			w := s.delivered(job, seq, 0, numbered(int(seq)*5, 5)...)
			if _, err := s.store.PutPages(s.ctx, []rowstore.PageWrite{w}); err != nil {
				s.Error(err)
			}
		}
	})
	<-begun
	horizon, err := s.store.Horizon(s.ctx)
	s.ok(err)
	during := s.scanAll(only(job), nil, horizon, 9)
	group.Wait()
	s.equal("the same scan later", during, s.scanAll(only(job), nil, horizon, 1000))
	if len(during) < 250 || len(during)%5 != 0 {
		s.Fatalf("%d rows at the horizon", len(during))
	}
	s.equal("in order", numbered(0, 5), during[:5])
}

// testCountUpto counts rows up to a place, while more come and some are removed.
func testCountUpto(s *suite) {
	group, scraper := s.ids.New(), s.ids.New()
	first, second := s.jobOf(group, scraper), s.jobOf(group, scraper)
	write := func(job rowstore.Job, from, to int) {
		for n := from; n < to; n++ {
			s.put(s.delivered(job, uint32(n), 0, fmt.Sprintf(`{"n":%d}`, n)))
		}
	}
	write(first, 0, 30)
	write(second, 0, 12)
	upto, err := s.store.Horizon(s.ctx)
	s.ok(err)
	write(second, 12, 20)
	whole := []rowstore.Scope{{Group: group}}
	count := func(scopes []rowstore.Scope, upto int64) int64 {
		s.Helper()
		n, err := s.store.CountUpto(s.ctx, scopes, upto)
		s.ok(err)
		return n
	}
	s.equal("as they stood", int64(42), count(whole, upto))
	newest, err := s.store.Horizon(s.ctx)
	s.ok(err)
	s.equal("with those that came", int64(50), count(whole, newest))
	s.equal("of two scopes", int64(42), count([]rowstore.Scope{{Group: group,
		Jobs: []ids.ID{first.ID}}, {Group: group, Jobs: []ids.ID{second.ID}}}, upto))
	s.equal("of none", int64(0), count([]rowstore.Scope{{Group: group, Jobs: []ids.ID{}}}, upto))
	docs, last, err := s.store.Scan(s.ctx,
		rowstore.ScanQuery{Scope: whole[0], Upto: upto, Limit: 7})
	s.ok(err)
	s.equal("rows of a look", 7, len(docs))
	rest, err := s.store.CountUpto(s.ctx, whole, last)
	s.ok(err)
	s.equal("up to where a look ended", int64(7), rest)
	s.ok(s.store.DeleteJob(s.ctx, second.ID, false))
	s.equal("once some are removed", int64(30), count(whole, upto))
	gone := map[uint32]bool{0: true, 7: true, 8: true, 20: true, 29: true}
	s.ok(s.store.Seal(s.ctx, first.ID, func(unit model.Unit, _ bool) bool {
		return !gone[unit.Seq]
	}))
	s.equal("without what was not settled", int64(25), count(whole, upto))
	s.equal("rows that are left", 25, len(s.rows(whole[0])))
}
