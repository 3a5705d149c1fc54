package rowstoretest

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

func testFirstRecordWins(s *suite) {
	job := s.job()
	first := s.delivered(job, 3, 0, `{"v":"first"}`, `{"v":"second row"}`)
	first.Page.Next = &model.Continuation{Page: 1, URL: "https://host.test/next",
		Seen: []uint64{1, 1 << 63}, KnownRows: []uint64{7}}
	s.equal("receipt", receipt(first), s.put(first)[0])
	s.equal("same page again", receipt(first), s.put(first)[0])

	second := s.delivered(job, 3, 0, `{"v":"other"}`)
	third := s.errored(job, 3, 0, "timeout", 0)
	for _, r := range s.put(second, third) {
		s.equal("a later fetch", receipt(first), r)
	}
	s.equal("rows", []string{`{"v":"first"}`, `{"v":"second row"}`}, s.rows(only(job)))

	// An error stands as well.
	failed := s.errored(job, 4, 0, "dns_failed", 0)
	s.put(failed)
	s.equal("a page after the error", receipt(failed), s.put(s.delivered(job, 4, 0, `{}`))[0])
	// The same unit of another job is another unit.
	other := s.delivered(s.job(), 3, 0, `{"v":"other job"}`)
	s.equal("other job", receipt(other), s.put(other)[0])
}

func testSameUnitInBatch(s *suite) {
	job := s.job()
	one, two := s.delivered(job, 1, 0, `{"v":1}`), s.delivered(job, 1, 0, `{"v":2}`)
	receipts := s.put(one, s.delivered(job, 2, 0, `{"v":3}`), two)
	s.equal("receipt", receipt(one), receipts[2])
	s.equal("rows", []string{`{"v":1}`, `{"v":3}`}, s.rows(only(job)))
	s.equal("no pages", 0, len(s.put()))
}

// testOwnScraper: a trial belongs to no group, and is its own scraper.
func testOwnScraper(s *suite) {
	trial, run := s.jobOf(ids.ID{}, ids.ID{}), s.job()
	trial.Scraper = trial.ID
	one, two := s.delivered(trial, 1, 0, `{"v":1}`), s.delivered(run, 1, 0, `{"v":2}`)
	s.put(one, two)
	s.equal("receipt", receipt(one), s.put(s.delivered(trial, 1, 0, `{"v":3}`))[0])
	s.equal("rows of the trial", []string{`{"v":1}`}, s.rows(only(trial)))
	s.equal("rows of the run", []string{`{"v":2}`}, s.rows(only(run)))
}

// testManyPages puts batches of several jobs that are so large that an implementation must split
// its writes.
func testManyPages(s *suite) {
	group, scraper := s.ids.New(), s.ids.New()
	jobs := []rowstore.Job{s.jobOf(group, scraper), s.jobOf(group, scraper),
		s.jobOf(group, scraper)}
	want := map[ids.ID]int64{}
	var batch []rowstore.PageWrite
	for seq := range uint32(700) {
		for i, job := range jobs {
			rows := numbered(int(seq)*100, int(seq)%(3+10*i))
			want[job.ID] += int64(len(rows))
			batch = append(batch, s.delivered(job, seq, 0, rows...))
		}
	}
	for i, r := range s.put(batch...) {
		s.equal("receipt", receipt(batch[i]), r)
	}
	for i, r := range s.put(batch...) {
		s.equal("receipt of a repeat", receipt(batch[i]), r)
	}
	for _, job := range jobs {
		count, err := s.store.Count(s.ctx, only(job), nil)
		s.ok(err)
		s.equal("rows", want[job.ID], count)
		sum, err := s.store.Recount(s.ctx, job.ID)
		s.ok(err)
		s.equal("recount", rowstore.Recount{Delivered: 700, Items: uint64(count),
			Quantity: map[string]uint64{"tier:plain": 700}}, sum)
	}
}

func testDuplicates(s *suite) {
	job := s.job()
	const low, high = 17, 1<<64 - 2
	page := func(w rowstore.PageWrite,
		hash uint64) rowstore.PageWrite {
		w.Page.URLHash = hash
		return w
	}
	duplicateOf := func(w rowstore.PageWrite) *model.Receipt {
		return &model.Receipt{Job: job.ID, Unit: w.Page.Unit, Outcome: model.Duplicate, Last: true}
	}
	first := page(s.delivered(job, 0, 0, `{"v":1}`), high)
	s.put(first)
	again := page(s.delivered(job, 1, 1, `{"v":2}`), high)
	again.Page.Next = &model.Continuation{Page: 2, URL: "https://host.test/3"}
	s.equal("known address", duplicateOf(again), s.put(again)[0])
	s.equal("known address, again", duplicateOf(again), s.put(again)[0])
	s.equal("first, again", receipt(first), s.put(first)[0])

	// Within one batch the first page owns its address. Errors do not, and 0 means no address.
	one, two := page(s.delivered(job, 2, 0, `{"v":3}`), low),
		page(s.delivered(job, 3, 0, `{"v":4}`), low)
	failed, after := page(s.errored(job, 4, 0, "timeout", 0), 99),
		page(s.delivered(job, 5, 0, `{"v":5}`), 99)
	none, noneToo := s.delivered(job, 6, 0, `{"v":6}`), s.delivered(job, 7, 0, `{"v":7}`)
	receipts := s.put(one, two, failed, after, none, noneToo)
	want := []*model.Receipt{receipt(one), duplicateOf(two), receipt(failed), receipt(after),
		receipt(none), receipt(noneToo)}
	s.equal("batch", want, receipts)
	other := page(s.delivered(s.job(), 0, 0, `{}`), high)
	s.equal("other job", receipt(other), s.put(other)[0])
	s.equal("rows", []string{`{"v":1}`, `{"v":3}`, `{"v":5}`, `{"v":6}`, `{"v":7}`},
		s.rows(only(job)))
	sum, err := s.store.Recount(s.ctx, job.ID)
	s.ok(err)
	s.equal("recount", rowstore.Recount{Delivered: 5, Errored: 1, Items: 5,
		Quantity: map[string]uint64{"tier:plain": 5}}, sum)
}

// testBehindTheEnd: a fetcher that reads on beyond the end of its chain does not learn of that end
// if it is a duplicate. Its further pages are not stored: they would never be settled, and would
// own addresses that another chain reaches.
func testBehindTheEnd(s *suite) {
	job := s.job()
	page := func(seq, n uint32, hash uint64) rowstore.PageWrite {
		w := s.delivered(job, seq, n, fmt.Sprintf(`{"seq":%d,"n":%d}`, seq, n))
		w.Page.URLHash = hash
		return w
	}
	s.put(page(0, 0, 10), page(1, 0, 20), page(0, 1, 30))
	twice := page(1, 1, 30)
	s.equal("both chains come to one address", model.Duplicate,
		s.put(twice, page(2, 0, 50))[0].Outcome)
	var none *model.Receipt
	s.equal("behind it", none, s.put(page(1, 2, 40))[0])
	first := page(0, 2, 40)
	s.equal("the chain that goes on", receipt(first), s.put(first)[0])

	// The same within one batch.
	batch := []rowstore.PageWrite{page(2, 1, 40), page(2, 2, 60), page(0, 3, 60), page(2, 3, 70)}
	want := []*model.Receipt{{Job: job.ID, Unit: model.Unit{Seq: 2, Page: 1},
		Outcome: model.Duplicate, Last: true}, nil,
		receipt(batch[2]), nil}
	s.equal("batch", want, s.put(batch...))
	s.equal("batch, again", want, s.put(batch...))
	s.equal("rows", []string{`{"seq":0,"n":0}`, `{"seq":1,"n":0}`, `{"seq":0,"n":1}`,
		`{"seq":2,"n":0}`, `{"seq":0,"n":2}`,
		`{"seq":0,"n":3}`}, s.rows(only(job)))
}

func testCancelled(s *suite) {
	job := s.job()
	cancelled := s.delivered(job, 0, 0)
	cancelled.Page.Outcome, cancelled.Page.PriceRow, cancelled.Page.Quantity = model.Cancelled, "",
		0
	s.equal("receipt", receipt(cancelled), s.put(cancelled)[0])
	page := s.delivered(job, 0, 0, `{"v":1}`)
	s.equal("a page after it", receipt(page), s.put(page)[0])
	s.equal("receipt beside a record", receipt(cancelled), s.put(cancelled)[0])
}

// testRecord: the record of a unit is found, whole, for as long as it exists.
func testRecord(s *suite) {
	job, other := s.job(), s.job()
	w := s.delivered(job, math.MaxInt32, math.MaxUint32, `{"v":1}`, `{"v":2}`)
	p := w.Page
	p.Final, p.BodyHash = "https://host.test/final", []byte{0, 255, 7}
	p.Kept = &model.KeptBody{Pack: ids.ID{7}, Offset: 9, Length: 1 << 20, Days: 30}
	p.Sums = []byte{1, 254, 0}
	p.Tries = []model.Try{{Tier: model.Plain, Code: "blocked", Status: 403, Millis: 3},
		{Tier: model.Super, Status: 200, Millis: 9}}
	failed := s.errored(job, 0, 0, "timeout", 0)
	failed.Page.Detail, failed.Page.Last = "no answer", true
	s.put(w, failed, s.delivered(other, 0, 1, `{}`))
	record := func(p *model.Page) *rowstore.Record {
		return &rowstore.Record{Unit: p.Unit, Fetch: p.Fetch, Outcome: p.Outcome, Code: p.Code,
			Detail: p.Detail, Status: p.Status, URL: p.URL, PriceRow: p.PriceRow,
			Quantity: p.Quantity, Items: uint32(len(p.Rows)), Last: p.Last, At: p.At,
			Final: p.Final, Tries: p.Tries, Bytes: p.Bytes, Millis: p.Millis,
			BodyHash: p.BodyHash, Kept: p.Kept, Sums: p.Sums}
	}
	check := func(what string, job rowstore.Job, unit model.Unit, want *rowstore.Record) {
		s.Helper()
		got, err := s.store.Record(s.ctx, job.ID, unit)
		s.ok(err)
		s.equal(what, want, got)
	}
	check("delivered", job, p.Unit, record(p))
	check("errored", job, failed.Page.Unit, record(failed.Page))
	check("another page", job, model.Unit{Page: 1}, nil)
	check("of another run", other, failed.Page.Unit, nil)
	check("of no run", s.job(), failed.Page.Unit, nil)
	s.ok(s.store.DeleteJob(s.ctx, job.ID, false))
	check("without its rows", job, p.Unit, record(p))
	s.ok(s.store.DeleteJob(s.ctx, job.ID, true))
	check("deleted", job, p.Unit, nil)
}

func testRecords(s *suite) {
	job := s.job()
	var chain []rowstore.PageWrite
	var want []model.Receipt
	for n := range uint32(5) {
		w := s.delivered(job, 7, n, `{}`)
		if w.Page.Last = n == 4; n < 4 {
			w.Page.Next = &model.Continuation{Page: n + 1, URL: "https://host.test/n",
				Seen: []uint64{uint64(n)}}
		}
		chain = append(chain, w)
		want = append(want, *receipt(w))
	}
	other6, other8 := s.delivered(job, 6, 9, `{}`), s.delivered(job, 8, 0, `{}`)
	s.put(chain[3], other6, chain[0], chain[4], other8, chain[1], chain[2])
	unit := func(seq, page uint32) model.Unit { return model.Unit{Seq: seq, Page: page} }
	for _, test := range []struct {
		units []model.Unit
		want  []model.Receipt
	}{
		{nil, nil},
		{[]model.Unit{unit(7, 0), unit(7, 1), unit(7, 2), unit(7, 3), unit(7, 4), unit(7, 5)},
			want},
		{[]model.Unit{unit(6, 0), unit(7, 1), unit(7, 4), unit(9, 9)},
			[]model.Receipt{want[1], want[4]}},
		{[]model.Unit{unit(6, 9), unit(7, 3), unit(8, 0)},
			[]model.Receipt{*receipt(other6), want[3], *receipt(other8)}},
		{[]model.Unit{unit(6, 4), unit(7, 9), unit(9, 0)}, nil},
	} {
		got, err := s.store.Records(s.ctx, job.ID, test.units)
		s.ok(err)
		s.equal(fmt.Sprintf("records of %v", test.units), test.want, got)
	}
	var many []model.Unit
	for n := range uint32(4096) {
		many = append(many, unit(7, n))
	}
	got, err := s.store.Records(s.ctx, job.ID, many)
	s.ok(err)
	s.equal("records of as many units as one may ask for", want, got)

	var units []model.Unit
	s.ok(s.store.EachRecord(s.ctx, job.ID, func(r rowstore.Record) error {
		units = append(units, r.Unit)
		if r.Unit == (model.Unit{Seq: 7}) {
			p := chain[0].Page
			s.equal("record", rowstore.Record{Unit: p.Unit, Fetch: p.Fetch, Outcome: p.Outcome,
				Status: 200, URL: p.URL,
				PriceRow: "tier:plain", Quantity: 1, Items: 1, At: p.At, Tries: p.Tries,
				Bytes: p.Bytes, Millis: p.Millis}, r)
		}
		return nil
	}))
	s.equal("units", []model.Unit{{Seq: 6, Page: 9}, {Seq: 7}, {Seq: 7, Page: 1}, {Seq: 7, Page: 2},
		{Seq: 7, Page: 3},
		{Seq: 7, Page: 4}, {Seq: 8}}, units)
	stop := errors.New("stop")
	if err := s.store.EachRecord(s.ctx, job.ID,
		func(rowstore.Record) error { return stop }); !errors.Is(err, stop) {
		s.Fatalf("visit's error: %v", err)
	}
}

func testRecount(s *suite) {
	job := s.job()
	two := s.delivered(job, 1, 0, `{}`, `{}`, `{}`)
	two.Page.PriceRow, two.Page.Quantity = "tier:super", 2
	empty := s.delivered(job, 4, 0)
	empty.Page.Outcome, empty.Page.PriceRow, empty.Page.Quantity = model.Empty, "", 0
	s.put(s.delivered(job, 0, 0, `{}`), two, s.errored(job, 2, 0, "timeout", 0),
		s.errored(job, 3, 0, "http_status", 404), empty,
		s.delivered(job, 4_000, 3, `{}`), s.delivered(s.job(), 0, 0, `{}`))
	sum, err := s.store.Recount(s.ctx, job.ID)
	s.ok(err)
	s.equal("recount", rowstore.Recount{Delivered: 3, Errored: 2, Items: 5,
		Quantity: map[string]uint64{"tier:plain": 2, "tier:super": 2}}, sum)
}

func testLinkErrors(s *suite) {
	job := s.job()
	var want []rowstore.LinkError
	var batch []rowstore.PageWrite
	for seq := range uint32(20) {
		batch = append(batch, s.delivered(job, seq, 0, `{}`),
			s.errored(job, seq, 1, "http_status", 404))
		p := batch[len(batch)-1].Page
		p.Detail = fmt.Sprintf("why %d", seq)
		want = append(want, rowstore.LinkError{Unit: p.Unit, URL: p.URL, Status: 404,
			Code: "http_status", Detail: p.Detail})
	}
	s.put(batch...)
	s.put(s.errored(s.job(), 0, 0, "timeout", 0))
	for _, test := range []struct {
		after *model.Unit
		most  int
		want  []rowstore.LinkError
	}{
		{nil, 100, want}, {nil, 3, want[:3]}, {&want[2].Unit, 3, want[3:6]},
		{&model.Unit{Seq: 5}, 1, want[5:6]},
		{&want[19].Unit, 10, []rowstore.LinkError{}},
	} {
		got, err := s.store.LinkErrors(s.ctx, job.ID, test.after, test.most)
		s.ok(err)
		s.equal("errors", test.want, append([]rowstore.LinkError{}, got...))
	}
}

func testUnknown(s *suite) {
	job := s.job()
	s.equal("rows", []string{}, s.rows(only(job)))
	records, err := s.store.Records(s.ctx, job.ID, []model.Unit{{}})
	s.ok(err)
	s.equal("records", 0, len(records))
	failed, err := s.store.LinkErrors(s.ctx, job.ID, nil, 10)
	s.ok(err)
	s.equal("errors", 0, len(failed))
	sum, err := s.store.Recount(s.ctx, job.ID)
	s.ok(err)
	s.equal("recount", rowstore.Recount{Quantity: map[string]uint64{}}, sum)
	s.ok(s.store.EachRecord(s.ctx, job.ID,
		func(rowstore.Record) error { return errors.New("a record") }))
}

// testRefused: a page that every store refuses is told apart from a store that fails. Nothing of
// its call is stored.
func testRefused(s *suite) {
	job := s.job()
	good, beyond, many := s.delivered(job, 1, 0, `{"v":1}`), s.delivered(job, rowstore.MaxSeq+1, 0),
		s.delivered(job, 2, 0)
	many.Page.Rows = make([][]byte, rowstore.MaxPageRows+1)
	for _, refused := range []rowstore.PageWrite{beyond, many} {
		if _, err := s.store.PutPages(s.ctx, []rowstore.PageWrite{good, refused}); !errors.Is(err,
			rowstore.ErrRefused) {
			s.Fatalf("unit %v: %v", refused.Page.Unit, err)
		}
		s.equal("rows", []string{}, s.rows(only(job)))
	}
	s.equal("without them", receipt(good), s.put(good)[0])
	last := s.delivered(job, rowstore.MaxSeq, math.MaxUint32, `{"v":2}`)
	s.equal("at the bound", receipt(last), s.put(last)[0])
}

// testWhateverAPageHolds: a page that passes Check is stored together with others, and the reads of
// its run still work.
func testWhateverAPageHolds(s *suite) {
	job := s.job()
	texts := s.errored(job, 0, 0, "a\x00\xff", math.MaxUint16)
	texts.Page.URL, texts.Page.Final = "https://host.test/\xff\x00", "\xfe'\\"
	texts.Page.Next = &model.Continuation{Page: 1, URL: "\xff"}
	price := s.delivered(job, 1, 0, `{"v":1}`)
	price.Page.PriceRow, price.Page.URLHash, price.Page.Quantity = "tier:\x00'", math.MaxUint64,
		math.MaxUint32
	price.Page.At = math.MaxInt64
	rows := s.delivered(job, 2, 0, "{\"a\":\"\xff\"}", "{\x00}", `{"a"}`, `{]}`,
		`{"v":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`,
		`{"v":"`+strings.Repeat("x", 6<<20)+`"}`)
	good := s.delivered(job, 3, 0, `{"v":"good"}`)
	batch := []rowstore.PageWrite{texts, price, rows, good}
	for i, got := range s.put(batch...) {
		if got == nil || got.Unit != batch[i].Page.Unit ||
			int(got.Items) != len(batch[i].Page.Rows) {
			s.Fatalf("receipt %+v of %v", got, batch[i].Page.Unit)
		}
	}
	s.equal("a page among them", receipt(good), s.put(good)[0])
	count, err := s.store.Count(s.ctx, only(job), nil)
	s.ok(err)
	s.equal("rows", int64(8), count)
	told, err := s.store.LinkErrors(s.ctx, job.ID, nil, 10)
	s.ok(err)
	s.equal("links", []rowstore.LinkError{{URL: "https://host.test/\ufffd\x00",
		Status: math.MaxUint16, Code: "a\x00\ufffd"}}, told)
}
