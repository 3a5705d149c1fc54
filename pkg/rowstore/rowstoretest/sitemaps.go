package rowstoretest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// batch stores a batch, and reports whether it stands.
func (s *suite) batch(harvest ids.ID, number uint32, rows ...string) bool {
	s.Helper()
	b := rowstore.Batch{Harvest: harvest, Number: number, Fetch: s.ids.New()}
	for _, row := range rows {
		b.Rows = append(b.Rows, []byte(row))
	}
	stands, err := s.store.PutBatch(s.ctx, b)
	s.ok(err)
	return stands == b.Fetch
}

// harvested lists all rows of a harvest in the order of their batches, most at a time.
func (s *suite) harvested(harvest ids.ID, most int) (rows []string, newest uint32) {
	s.Helper()
	for after := int64(0); ; {
		docs, last, err := s.store.Batches(s.ctx, harvest, after, most)
		s.ok(err)
		if len(docs) > most || len(docs) == 0 && last != after {
			s.Fatalf("%d rows up to %d of at most %d behind %d", len(docs), last, most, after)
		}
		if len(docs) == 0 {
			return rows, newest
		}
		rows, after, newest = append(rows, texts(docs)...), last, rowstore.BatchAt(last)
	}
}

// testBatches: the first batch of a number stands, and rows are read in the order of their batches.
func testBatches(s *suite) {
	first, second := s.ids.New(), s.ids.New()
	rows, _ := s.harvested(first, 10)
	s.equal("rows before", []string(nil), rows)
	all := numbered(0, 2_500)
	for n, part := range [][]string{all[:1_000], all[1_000:1_001], all[1_001:]} {
		if !s.batch(first, uint32(n), part...) {
			s.Fatalf("batch %d does not stand", n)
		}
		if s.batch(first, uint32(n), `{"late":true}`) {
			s.Fatalf("batch %d is written over", n)
		}
	}
	if !s.batch(second, 0, `{"url":"2"}`) {
		s.Fatal("batches of two harvests get in each other's way")
	}
	for _, most := range []int{999, 1_000, 5_000} {
		rows, newest := s.harvested(first, most)
		s.equal("rows", all, rows)
		s.equal("number of the newest batch", uint32(2), newest)
	}
	rows, newest := s.harvested(second, 1)
	s.equal("rows of the other", []string{`{"url":"2"}`}, rows)
	s.equal("its newest batch", uint32(0), newest)
	s.holdHarvests(first, second)
	for range 2 {
		s.ok(s.store.DropHarvest(s.ctx, first))
		s.holdHarvests(second)
	}
	s.ok(s.store.DropHarvest(s.ctx, s.ids.New()))
	rows, _ = s.harvested(first, 10)
	s.equal("rows of what was dropped", []string(nil), rows)
	count, err := s.store.CountEntries(s.ctx, first, nil)
	s.ok(err)
	s.equal("their count", int64(0), count)
}

func (s *suite) holdHarvests(want ...ids.ID) {
	s.Helper()
	all, err := s.store.AllHarvests(s.ctx)
	s.ok(err)
	by := func(a, b ids.ID) int { return strings.Compare(a.String(), b.String()) }
	slices.SortFunc(all, by)
	slices.SortFunc(want, by)
	s.equal("harvests", want, all)
}

// testBatchesAtOnce: of many writers of one batch, exactly one stands, with all of it.
func testBatchesAtOnce(s *suite) {
	harvest := s.ids.New()
	const writers, batches = 8, 10
	var wrote [writers][batches]bool
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for n := range uint32(batches) {
				fetch := ids.ID{byte(w + 1), byte(n)}
				row := fmt.Appendf(nil, `{"by":%d,"batch":%d}`, w, n)
				stands, err := s.store.PutBatch(s.ctx, rowstore.Batch{Harvest: harvest, Number: n,
					Fetch: fetch, Rows: [][]byte{row, row, row}})
				if err != nil {
					s.Error(err)
				}
				wrote[w][n] = stands == fetch
			}
		})
	}
	running.Wait()
	rows, _ := s.harvested(harvest, 1_000)
	var want []string
	for n := range batches {
		winner := -1
		for w := range writers {
			if wrote[w][n] && winner >= 0 {
				s.Fatalf("batch %d was written by %d and %d", n, winner, w)
			}
			if wrote[w][n] {
				winner = w
			}
		}
		row := fmt.Sprintf(`{"by":%d,"batch":%d}`, winner, n)
		want = append(want, row, row, row)
	}
	s.equal("rows", want, rows)
}

// testEntries: entries are filtered, sorted and cut like rows.
func testEntries(s *suite) {
	harvest := s.ids.New()
	docs := []string{`{"url":"b","_n":4}`, `{"_file":{"url":"x"}}`, `{"url":"a'","_n":10}`,
		`{"url":"B","image":"é","_n":4}`, `{"_read":"x"}`, `{"url":"c"}`}
	s.batch(harvest, 0, docs[:2]...)
	s.batch(harvest, 1, docs[2:]...)
	s.batch(s.ids.New(), 0, `{"url":"other"}`)
	is := func(field string, op filter.Op, value filter.Value) filter.Node {
		return filter.Compare{Field: field, Op: op, Values: []filter.Value{value}}
	}
	urls := is("url", filter.Exists, filter.Value{Kind: filter.Bool, Bool: true})
	text := func(t string) filter.Value { return filter.Value{Kind: filter.Text, Text: t} }
	for _, c := range []struct {
		filter        filter.Node
		sort          []rowstore.Sort
		offset, limit int
		want          []int
	}{
		{nil, nil, 0, 10, []int{0, 1, 2, 3, 4, 5}},
		{urls, nil, 0, 10, []int{0, 2, 3, 5}},
		{urls, nil, 1, 2, []int{2, 3}},
		{urls, nil, 4, 2, nil},
		{urls, []rowstore.Sort{{Field: "url"}}, 0, 10, []int{3, 2, 0, 5}},
		{urls, []rowstore.Sort{{Field: "url", Descending: true}}, 0, 2, []int{5, 0}},
		{urls, []rowstore.Sort{{Field: "_n"}, {Field: "url"}}, 0, 10, []int{3, 0, 2, 5}},
		{filter.And{urls, is("url", filter.Contains, text("b"))}, nil, 0, 10, []int{0, 3}},
		{is("image", filter.Eq, text("é")), nil, 0, 10, []int{3}},
		{is("_n", filter.Eq, filter.Value{Kind: filter.Number, Number: 4}), nil, 0, 10,
			[]int{0, 3}},
		{filter.And{is("url", filter.Gte, text("a")), is("url", filter.Lt, text("b"))}, nil, 0, 10,
			[]int{2}},
	} {
		got, err := s.store.Entries(s.ctx, rowstore.EntriesQuery{Harvest: harvest,
			Filter: c.filter, Sort: c.sort, Offset: c.offset, Limit: c.limit})
		s.ok(err)
		want := []string{}
		for _, n := range c.want {
			want = append(want, docs[n])
		}
		s.equal(fmt.Sprintf("entries of %+v", c), want, texts(got))
		if c.offset > 0 || len(got) == c.limit {
			continue
		}
		count, err := s.store.CountEntries(s.ctx, harvest, c.filter)
		s.ok(err)
		s.equal(fmt.Sprintf("count of %+v", c), int64(len(want)), count)
	}
}
