package rowstoretest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// pastRuns makes runs of two customers in several generations, ordered by id as in the state.
func (s *suite) pastRuns(count int, generations ...ids.ID) []rowstore.PastRun {
	random := rand.New(rand.NewPCG(1, 2))
	groups := []ids.ID{s.ids.New(), s.ids.New()}
	scrapers := []ids.ID{s.ids.New(), s.ids.New(), s.ids.New()}
	const at = 1_700_000_000_000
	var runs []rowstore.PastRun
	for i := range count {
		queued := at + int64(random.IntN(count/2))*1000 // some at once
		runs = append(runs, rowstore.PastRun{ID: s.ids.New(),
			Generation: generations[random.IntN(len(generations))], Sealed: uint64(i + 1),
			Customer: []string{"one", "two"}[i%2], Trial: i%7 == 0,
			PastKind: rowstore.PastKind{Group: groups[random.IntN(2)],
				Scraper: scrapers[random.IntN(3)],
				State:   []string{"COMPLETED", "FAILED", "STOPPED"}[random.IntN(3)]},
			List: s.ids.New(), Queued: queued, Started: queued + int64(random.IntN(3)),
			Finished: queued + 1000 + int64(random.IntN(50)), Links: random.Uint32N(5),
			Success: random.Uint32N(5), Errors: random.Uint32N(5), Items: random.Uint64N(9),
			Pages: random.Uint64N(9), Delivered: random.Uint64N(9), Charged: random.Int64N(1 << 40),
			Body: fmt.Appendf(nil, "run %d\x00\xff", i)})
	}
	return runs
}

func whole(generations ...ids.ID) rowstore.Path {
	var path rowstore.Path
	for _, generation := range generations {
		path = append(path, rowstore.PathStep{Generation: generation, Upto: 1 << 60})
	}
	return path
}

// testPastRuns checks every query against the model, in every order. Storing twice is storing once.
func testPastRuns(s *suite) {
	first, second, other := s.ids.New(), s.ids.New(), s.ids.New()
	s.past(rowstore.PastQuery{Path: whole(first), By: rowstore.ByQueued, Limit: 10}, nil)
	all := s.pastRuns(90, first, second, other)
	for half := range slices.Chunk(all, 45) {
		s.ok(s.store.PutPast(s.ctx, half, nil))
	}
	s.ok(s.store.PutPast(s.ctx, all[10:60], nil))
	path := whole(first, second)
	path[1].Upto = 60
	for _, by := range []rowstore.PastOrder{rowstore.ByQueued, rowstore.ByStarted,
		rowstore.ByFinished, rowstore.ByState, rowstore.BySuccess, rowstore.ByErrors,
		rowstore.ByLinks, rowstore.ByItems, rowstore.ByPages, rowstore.ByDelivered,
		rowstore.ByCharged, rowstore.ByDuration, rowstore.BySealed} {
		for _, down := range []bool{false, true} {
			q := rowstore.PastQuery{Path: path, Customer: "one", By: by, Descending: down,
				Offset: 3, Limit: 9}
			s.past(q, all)
		}
	}
	some := all[20]
	kinds := []rowstore.PastKind{some.PastKind, all[21].PastKind}
	for _, q := range []rowstore.PastQuery{
		{}, {Trials: true}, {Customer: "two", Trials: true}, {Customer: "three"},
		{IDs: []ids.ID{some.ID, all[33].ID, s.ids.New()}, Trials: true}, {IDs: []ids.ID{}},
		{Lists: []ids.ID{all[5].List, all[6].List, all[7].List, all[8].List}, Trials: true},
		{Without: []ids.ID{some.ID, all[33].ID, s.ids.New()}, Trials: true},
		{Without: []ids.ID{some.ID}, IDs: []ids.ID{some.ID, all[22].ID}},
		{Without: []ids.ID{}}, {Scraper: some.Scraper}, {Kinds: kinds},
		{Group: some.Group}, {Group: some.Group, Customer: "one", Scraper: some.Scraper},
		{Kinds: []rowstore.PastKind{}},
		{Kinds: kinds, Customer: "one", Scraper: some.Scraper},
	} {
		q.Path, q.By, q.Descending, q.Limit = path, rowstore.ByQueued, true, rowstore.MaxPast
		s.past(q, all)
		q.Path = nil
		s.past(q, nil)
	}
	for _, span := range spans(some.Queued) {
		s.past(rowstore.PastQuery{Path: path, Customer: "one", By: rowstore.ByStarted,
			Queued: span, Offset: 1, Limit: 9}, all)
		s.past(rowstore.PastQuery{Path: path, Kinds: kinds, By: rowstore.ByQueued,
			Descending: true, Queued: span, Limit: rowstore.MaxPast}, all)
	}
	for _, by := range []rowstore.PastOrder{rowstore.ByQueued, rowstore.BySealed} {
		for _, down := range []bool{false, true} {
			q := rowstore.PastQuery{Path: path, By: by, Descending: down, Limit: 7}
			for page := found(all, q); len(page) > 0; page = found(all, q) {
				s.past(q, all)
				last := page[len(page)-1]
				q.Behind = &rowstore.PastPlace{Value: last.Queued, ID: last.ID}
				if by == rowstore.BySealed {
					q.Behind.Value = int64(last.Sealed)
				}
			}
		}
	}
}

// past compares a query's result with the model's.
func (s *suite) past(q rowstore.PastQuery, all []rowstore.PastRun) {
	s.Helper()
	got, err := s.store.PastRuns(s.ctx, q)
	s.ok(err)
	s.equal(fmt.Sprintf("runs of %+v", q), asRead(found(all, q)), got)
}

// testCountPast: runs are counted by all that a filter may name, as the history lists them.
func testCountPast(s *suite) {
	first, second := s.ids.New(), s.ids.New()
	none, err := s.store.CountPast(s.ctx, whole(first), "one", rowstore.PastSpan{})
	s.ok(err)
	s.equal("count of nothing", 0, len(none))
	all := s.pastRuns(60, first, second)
	s.ok(s.store.PutPast(s.ctx, all, nil))
	s.ok(s.store.PutPast(s.ctx, all, nil))
	at := all[20].Queued
	for _, span := range spans(at) {
		want := map[rowstore.PastKind]int64{}
		for _, r := range all {
			if r.Generation == first && r.Sealed <= 50 && r.Customer == "one" && !r.Trial &&
				span.Has(r.Queued) {
				want[r.PastKind]++
			}
		}
		counts, err := s.store.CountPast(s.ctx, rowstore.Path{{Generation: first, Upto: 50}},
			"one", span)
		s.ok(err)
		got := map[rowstore.PastKind]int64{}
		for _, c := range counts {
			got[c.PastKind] += c.Runs
		}
		s.equal(fmt.Sprintf("counts of %v", span), want, got)
	}
}

// spans are some spans around the time of a run: the third contains it, the fourth does not.
func spans(at int64) []rowstore.PastSpan {
	return []rowstore.PastSpan{{}, {From: at + 1}, {From: at}, {To: at}, {To: at + 1},
		{From: at - 5_000, To: at + 5_000}, {From: at, To: at}, {From: at + 1, To: at}}
}

// testPastOfGenerations: one run may end differently in several generations.
func testPastOfGenerations(s *suite) {
	first, second := s.ids.New(), s.ids.New()
	ended := s.pastRuns(2, first)[1]
	anew := ended
	anew.Generation, anew.Sealed, anew.State = second, 9, "STOPPED"
	anew.Body = []byte("anew")
	s.ok(s.store.PutPast(s.ctx, []rowstore.PastRun{ended, anew}, nil))
	q := rowstore.PastQuery{IDs: []ids.ID{ended.ID}, Trials: true, By: rowstore.BySealed, Limit: 10}
	for _, test := range []struct {
		path rowstore.Path
		want []rowstore.PastRun
	}{
		{whole(first), []rowstore.PastRun{ended}},
		{rowstore.Path{{Generation: second, Upto: 9}, {Generation: first, Upto: ended.Sealed - 1}},
			[]rowstore.PastRun{anew}},
		{rowstore.Path{{Generation: second, Upto: 8}}, nil},
	} {
		q.Path = test.path
		got, err := s.store.PastRuns(s.ctx, q)
		s.ok(err)
		s.equal("run of the path", asRead(test.want), got)
	}
}

// testPastEntries: the ledger is read from its newest entry, by number and by place.
func testPastEntries(s *suite) {
	first, second := s.ids.New(), s.ids.New()
	var all []rowstore.PastEntry
	for i := range 50 {
		all = append(all, rowstore.PastEntry{ID: s.ids.New(), Generation: first,
			Sealed: uint64(100 + i), Customer: []string{"one", "two"}[i%2], Created: uint64(i + 1),
			Body: fmt.Appendf(nil, "entry %d", i)})
	}
	for _, i := range []int{4, 8} { // made by one command
		all[i+2].Created = all[i].Created
	}
	gone := all[7]
	gone.ID, gone.Generation = s.ids.New(), second
	s.ok(s.store.PutPast(s.ctx, nil, all))
	s.ok(s.store.PutPast(s.ctx, nil, append(all[:30:30], gone)))
	path := rowstore.Path{{Generation: first, Upto: 140}}
	read := func(q rowstore.PastEntriesQuery) []rowstore.PastEntry {
		q.Path = path
		got, err := s.store.PastEntries(s.ctx, q)
		s.ok(err)
		return got
	}
	var want []rowstore.PastEntry
	for _, e := range all[:41] {
		if e.Customer == "one" {
			want = append(want, e)
		}
	}
	slices.SortFunc(want, newerEntry)
	s.equal("ledger", want, read(rowstore.PastEntriesQuery{Customers: []string{"one"},
		Limit: 1000}))
	s.equal("page", want[5:9],
		read(rowstore.PastEntriesQuery{Customers: []string{"one"}, Offset: 5, Limit: 4}))
	for i, e := range want[:len(want)-1] { // some of them of one command
		s.equal("behind a place", want[i+1:], read(rowstore.PastEntriesQuery{
			Customers: []string{"one"}, Limit: 1000,
			Before: &rowstore.PastPlace{Value: int64(e.Created), ID: e.ID}}))
	}
	s.equal("by id, of some", []rowstore.PastEntry{all[3]},
		read(rowstore.PastEntriesQuery{Customers: []string{all[3].Customer, "three"},
			IDs: []ids.ID{all[2].ID, all[3].ID, gone.ID}, Limit: 10}))
	s.equal("by id", []rowstore.PastEntry{all[9], all[3]},
		read(rowstore.PastEntriesQuery{IDs: []ids.ID{all[3].ID, all[9].ID, gone.ID}, Limit: 10}))
	for upto, want := range map[uint64]uint64{0: 0, 99: 0, 120: 120, 1 << 40: 149} {
		head, err := s.store.PastHead(s.ctx, rowstore.Path{{Generation: first, Upto: upto}})
		s.ok(err)
		s.equal("head", want, head)
	}
	s.equal("of nobody", 0, len(read(rowstore.PastEntriesQuery{Customers: []string{"three"},
		Limit: 10})))
}

// testExpirePast: runs and sums from before a moment in the middle of a month go. Later ones stay,
// and so do all entries.
func testExpirePast(s *suite) {
	s.ok(s.store.ExpirePast(s.ctx, time.Now()))
	generation := s.ids.New()
	const day = 24 * time.Hour
	offs := []time.Duration{-400 * day, -40 * day, -5 * day, -time.Millisecond, 0, 5 * day}
	const gone = 4 // of offs
	runs := s.pastRuns(len(offs), generation)
	cut := time.Date(2024, 3, 17, 13, 5, 7, 0, time.UTC)
	sum := rowstore.Recount{Delivered: 1, Items: 2, Quantity: map[string]uint64{"tier:plain": 1}}
	for i, off := range offs {
		at := cut.Add(off)
		runs[i].Finished = at.UnixMilli()
		s.ok(s.store.Condense(s.ctx, runs[i].ID, sum, at))
	}
	entry := rowstore.PastEntry{ID: s.ids.New(), Generation: generation, Sealed: 1, Customer: "one",
		Created: 1, Body: []byte("1")}
	s.ok(s.store.PutPast(s.ctx, runs, []rowstore.PastEntry{entry}))
	for range 2 {
		s.ok(s.store.ExpirePast(s.ctx, cut))
		q := rowstore.PastQuery{Path: whole(generation), Trials: true, By: rowstore.ByFinished,
			Limit: 10}
		s.past(q, runs[gone:])
	}
	for i, run := range runs {
		left, err := s.store.Recount(s.ctx, run.ID)
		s.ok(err)
		s.equal(fmt.Sprintf("sum of run %d", i), i >= gone, left.Delivered == sum.Delivered)
	}
	entries, err := s.store.PastEntries(s.ctx,
		rowstore.PastEntriesQuery{Path: whole(generation), Customers: []string{"one"}, Limit: 10})
	s.ok(err)
	s.equal("entries", []rowstore.PastEntry{entry}, entries)
}
