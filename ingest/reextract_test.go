package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/work"
)

// crawled is a test setup with a run whose bodies were kept.
type crawled struct {
	*uploaded
	run      ids.ID
	pack     blobstore.Key
	rowBytes int64
	rates    ecb.Rates
}

// crawledPage is a page of the run, with its kept body and its outcome.
type crawledPage struct {
	unit    model.Unit
	body    string // "": none was read
	kept    bool
	outcome model.Outcome
	code    string
	more    bool          // the chain goes on
	late    time.Duration // how long after the page its record was made
}

func newCrawled(t *testing.T, start starter, pages ...crawledPage) *crawled {
	t.Helper()
	const atOnce = 500
	c := &crawled{uploaded: start(t)}
	c.client.Must(t, client.AdjustWallet{Customer: "ann", Entry: c.ids.New(), Amount: 1_000_000})
	c.scraper = c.ids.New()
	c.client.Must(t, client.PutScraper{Create: true, ID: c.scraper, Customer: "ann",
		Group: c.group, Spec: model.Scraper{Name: "shop", Type: model.SingleProduct,
			SourceConfig: model.SourceConfig{Pagination: &model.Pagination{Type: model.NextLink,
				Selector: "a"}}}})
	seqs := []uint32{}
	for _, p := range pages {
		if !slices.Contains(seqs, p.unit.Seq) {
			seqs = append(seqs, p.unit.Seq)
		}
	}
	run := client.LaunchRun{Job: c.ids.New(), Entry: c.ids.New(), Customer: "ann",
		Scraper: c.scraper, List: c.ids.New(), Links: uint32(len(seqs)),
		Tiers: model.TiersOf(model.Plain)}
	c.client.Must(t, run)
	c.run = run.Job
	codec := bodies.NewCodec()
	name := bodies.Pack{Group: c.group, Scraper: c.scraper, Job: c.run, ID: c.ids.New(), Days: 2}
	c.pack = name.Key("ann")
	var data []byte
	var writes []rowstore.PageWrite
	for _, p := range pages {
		page := &model.Page{Job: c.run, Unit: p.unit, Fetch: c.ids.New(), Outcome: p.outcome,
			Code: p.code, URL: fmt.Sprintf("https://shop.test/%d/%d", p.unit.Seq, p.unit.Page),
			Status: 200, At: c.clock.Now().Add(p.late).UnixMicro(), Last: !p.more, Millis: 7,
			Bytes: 9}
		if p.outcome == model.Delivered {
			page.Rows, page.PriceRow, page.Quantity = [][]byte{[]byte(`{"a":"old"}`)},
				"tier:plain", 1
		}
		if p.more {
			page.Next = &model.Continuation{Page: p.unit.Page + 1, URL: page.URL}
		}
		if p.body != "" {
			hash := sha256.Sum256([]byte(p.body))
			page.BodyHash = hash[:]
		}
		if p.kept {
			packed := codec.Pack("", page.URL, "text/html", []byte(p.body))
			packed.At = c.clock.Now().UnixMicro()
			entry, err := bodies.Entry{Fetch: page.Fetch, Pages: []bodies.Page{packed}}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			page.Kept = &model.KeptBody{Pack: name.ID, Offset: uint32(len(data)),
				Length: uint32(len(entry)), Days: name.Days}
			data = append(data, entry...)
		}
		writes = append(writes, rowstore.PageWrite{Page: page,
			Job: rowstore.Job{ID: c.run, Customer: "ann", Group: c.group, Scraper: c.scraper,
				Started: c.clock.Now().UnixMicro()}})
	}
	receipts, err := c.store.PutPages(t.Context(), writes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.blobs.Put(t.Context(), c.pack, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	for some := range slices.Chunk(seqs, atOnce) { // of a window
		c.client.Dispatch(t, c.run, some...)
		var done []model.Receipt
		for _, receipt := range receipts {
			if slices.Contains(some, receipt.Unit.Seq) {
				done = append(done, *receipt)
			}
		}
		if err := c.client.Settle(t.Context(), done, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.store.Seal(t.Context(), c.run, nil); err != nil {
		t.Fatal(err)
	}
	c.client.CloseRun(t, c.run)
	c.clock.Advance(time.Second)
	return c
}

var selectors = model.Recipe{Type: model.SingleProduct,
	Fields: []model.Field{{Name: "a", Selector: "b", Kind: model.Text}}}

// begin begins a run of the kept bodies.
func (c *crawled) begin(recipe model.Recipe) ids.ID {
	c.t.Helper()
	begin := client.BeginReExtract{Job: c.ids.New(), Customer: "ann", Scraper: c.scraper,
		From: c.run, Links: c.client.View().Job(c.run).Links, Recipe: recipe}
	c.client.Must(c.t, begin)
	c.clock.Advance(time.Second)
	return begin.Job
}

// step makes one step of it; died says that point panicked.
func (c *crawled) step(job ids.ID) (end work.End, died bool) {
	c.t.Helper()
	defer func() {
		if value := recover(); value != nil {
			died = true
		}
	}()
	kind := ReExtract(ReExtractConfig{records: 256, rowBytes: c.rowBytes, Client: c.client,
		Store: c.store, History: client.NewHistory(c.store), Bodies: c.blobs, IDs: c.ids,
		Clock: c.clock, Reader: reading.New("test", reading.Config{}), Readers: 3, Point: c.point,
		Rates: c.rates})
	outcome, err := kind.Step(c.t.Context(), work.Item{ID: job, Kind: work.ReExtract,
		Customer: "ann"})
	if err != nil {
		c.t.Error(err)
	}
	return outcome.End, false
}

// rowsOf returns the values of a in the rows of a run.
func (c *crawled) rowsOf(job ids.ID) (values []string) {
	c.t.Helper()
	docs, _, err := c.store.Scan(c.t.Context(), rowstore.ScanQuery{
		Scope: rowstore.Scope{Group: c.group, Jobs: []ids.ID{job}}, Upto: 1 << 62, Limit: 1000})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, doc := range docs {
		_, value, _ := strings.Cut(string(doc), `"a":"`)
		value, _, _ = strings.Cut(value, `"`)
		values = append(values, value)
	}
	slices.Sort(values)
	return values
}

// mixed is a run with all possible outcomes of a page. What brought no rows was not charged, so
// re-reading its body must not make a free row of it.
func mixed() []crawledPage {
	delivered, errored := model.Delivered, model.Errored
	return []crawledPage{
		{unit: model.Unit{Seq: 0}, body: "<b>one</b>", kept: true, outcome: delivered},
		{unit: model.Unit{Seq: 1}, body: "<b>two</b>", kept: true, outcome: errored,
			code: "no_rows"},
		{unit: model.Unit{Seq: 2}, body: "<i>none</i>", kept: true, outcome: delivered},
		{unit: model.Unit{Seq: 3}, body: "<b>lost</b>", outcome: delivered},
		{unit: model.Unit{Seq: 4}, outcome: errored, code: "timeout"},
		{unit: model.Unit{Seq: 5}, body: "<b>six</b>", kept: true, outcome: delivered, more: true},
		{unit: model.Unit{Seq: 5, Page: 1}, body: "<b>seven</b>", kept: true, outcome: delivered,
			more: true},
		{unit: model.Unit{Seq: 5, Page: 2}, body: "<i>end</i>", kept: true, outcome: model.Empty},
	}
}

// checkMixed checks the result for the run of mixed.
func (c *crawled) checkMixed(job ids.ID) {
	c.t.Helper()
	j := c.client.View().Job(job)
	if j.State != model.Completed || !j.Closed || j.Items != 3 || j.Delivered != 3 ||
		j.Pages != 7 || j.Success != 2 || j.Errors != 4 || j.Charged != 0 || !j.Shows() {
		c.t.Errorf("the run is %+v", j)
	}
	if got := c.rowsOf(job); !slices.Equal(got, []string{"one", "seven", "six"}) {
		c.t.Errorf("rows %v", got)
	}
	codes := map[uint32]string{}
	err := c.store.EachRecord(c.t.Context(), job, func(r rowstore.Record) error {
		if r.Outcome == model.Errored {
			codes[r.Unit.Seq] = r.Code
		}
		if r.Quantity != 0 || r.PriceRow != "" {
			c.t.Errorf("%+v is charged", r.Unit)
		}
		return nil
	})
	want := map[uint32]string{1: "no_rows", 2: "no_rows", 3: "body_gone", 4: "timeout"}
	if err != nil || fmt.Sprint(codes) != fmt.Sprint(want) {
		c.t.Errorf("errors %v, want %v: %v", codes, want, err)
	}
	if view := c.client.View(); view.Import(job) != nil || view.WorkItem(job) != nil ||
		view.Recipe(job, 1) != nil || len(view.HiddenIn(c.group)) != 0 {
		c.t.Error("something is left of it")
	}
}

// Kept bodies become the rows of another run, page by page; a missing body is an error. Bodies of
// that run may be read again.
func TestReExtract(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		c := newCrawled(t, start, mixed()...)
		job := c.begin(selectors)
		if got := c.client.View().HiddenIn(c.group); !slices.Equal(got, []ids.ID{job}) {
			t.Errorf("hidden are %v", got)
		}
		if end, _ := c.step(job); end != work.Ended {
			t.Fatalf("%v", end)
		}
		c.checkMixed(job)
		first := c.run
		c.run = job
		again := c.begin(selectors)
		if end, _ := c.step(again); end != work.Ended {
			t.Fatalf("%v", end)
		}
		c.checkMixed(again)
		if got := c.rowsOf(first); len(got) != 5 {
			t.Errorf("rows of the first run are %v", got)
		}
	})
}

// A page is converted with the rates of the day on which it was fetched, whenever it is re-read.
func TestReExtractTakesThePagesDay(t *testing.T) {
	c := newCrawled(t, newUploaded, crawledPage{unit: model.Unit{}, body: "<b>100</b>", kept: true,
		outcome: model.Delivered, late: 30 * time.Hour})
	fetched := c.clock.Now().UTC().AddDate(0, 0, -1) // today's rates may not be published yet
	table := ""
	for day, rate := range []string{"1.25", "1.5", "2"} {
		table += fmt.Sprintf(`<Cube time="%s"><Cube currency="USD" rate="%s"/></Cube>`,
			fetched.AddDate(0, 0, 2*day).Format(time.DateOnly), rate)
	}
	var err error
	if c.rates, err = ecb.Parse([]byte(table)); err != nil {
		t.Fatal(err)
	}
	recipe := selectors
	recipe.Rules = []model.PostProcessRule{{Kind: "CURRENCY_CONVERT", SourceField: "a",
		OutputField: "usd", Params: map[string]any{"from": "EUR", "to": "USD"}}}
	c.clock.Advance(40 * time.Hour)
	job := c.begin(recipe)
	c.step(job)
	docs, _, err := c.store.Scan(t.Context(), rowstore.ScanQuery{
		Scope: rowstore.Scope{Group: c.group, Jobs: []ids.ID{job}}, Upto: 1 << 62, Limit: 10})
	if err != nil || len(docs) != 1 || !strings.Contains(string(docs[0]), `"usd":125,`) {
		t.Errorf("%s, %v", docs, err)
	}
}

// Killed at any point, and with a late owner beside it, a run gives the same result.
func TestReExtractIsExact(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		for _, point := range []string{"before_put", "after_put", "after_seal", "after_end"} {
			c := newCrawled(t, start, mixed()...)
			job := c.begin(selectors)
			c.point = func(name string) {
				if name == "work.reextract."+point {
					panic("dies")
				}
			}
			if _, died := c.step(job); !died {
				t.Fatalf("%s: it lives", point)
			}
			late := false
			c.point = func(name string) { // another owner comes between a read and its write
				if name == "work.reextract.before_put" && !late {
					late = true
					c.step(job)
				}
			}
			for range 3 {
				c.step(job)
			}
			c.checkMixed(job)
		}
	})
}

// A late owner changes nothing when it reaches a run that another owner has ended.
func TestReExtractBesideAnother(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		c := newCrawled(t, start, mixed()...)
		job := c.begin(selectors)
		once := false
		c.point = func(name string) {
			if name == "work.reextract.before_put" && !once {
				once = true
				c.step(job)
			}
		}
		c.step(job)
		c.checkMixed(job)
	})
}

// Bodies expire with their days, by the clock, and with their pack.
func TestReExtractOfWhatIsGone(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		for name, gone := range map[string]func(c *crawled){
			"expired": func(c *crawled) { c.clock.Advance(48 * time.Hour) },
			"removed": func(c *crawled) {
				if err := c.blobs.Delete(t.Context(), c.pack); err != nil {
					t.Fatal(err)
				}
			},
		} {
			c := newCrawled(t, start, mixed()[:2]...)
			gone(c)
			job := c.begin(selectors)
			c.step(job)
			j := c.client.View().Job(job)
			if j.State != model.Failed || j.Errors != 2 || j.Delivered != 0 || j.Message == "" {
				t.Errorf("%s: %+v", name, j)
			}
			found, err := c.store.LinkErrors(t.Context(), job, nil, 10)
			if err != nil || len(found) != 2 || found[0].Code != "body_gone" {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
	})
}

// A stopped run leaves nothing, and the run before it is the latest again.
func TestReExtractStops(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		c := newCrawled(t, start, mixed()...)
		job := c.begin(selectors)
		c.point = func(name string) {
			if name == "work.reextract.after_put" {
				c.client.Must(t, client.StopRun{Customer: "ann", Scraper: c.scraper})
			}
		}
		if end, _ := c.step(job); end != work.Ended {
			t.Errorf("%v", end)
		}
		c.remove()
		view := c.client.View()
		if j := view.Job(job); j.State != model.Stopped || !j.Unlisted() || j.Items != 0 ||
			len(c.rowsOf(job)) != 0 || view.Scraper(c.scraper).LastJob != c.run ||
			view.Recipe(job, 1) != nil {
			t.Errorf("%+v, rows %v", j, c.rowsOf(job))
		}
	})
}

// A long run of kept bodies makes room for others, and ends like an uninterrupted one.
func TestReExtractsTakeTurns(t *testing.T) {
	var pages []crawledPage
	for i := range 3*256 + 3 {
		pages = append(pages, crawledPage{unit: model.Unit{Seq: uint32(i)}, kept: true,
			body: fmt.Sprintf("<b>%d</b>", i), outcome: model.Delivered})
	}
	c := newCrawled(t, newUploaded, pages...)
	job := c.begin(selectors)
	c.point = func(name string) {
		if name == "work.reextract.after_put" {
			c.clock.Advance(turnTime)
		}
	}
	turns := 0
	for end := work.Rested; end == work.Rested && turns < 9; turns++ {
		end, _ = c.step(job)
	}
	if j := c.client.View().Job(job); turns != 3 || j.Items != uint64(len(pages)) ||
		j.Success != uint32(len(pages)) {
		t.Errorf("%d turns, %+v", turns, j)
	}
	if got := c.rowsOf(job); len(slices.Compact(got)) != len(pages) {
		t.Errorf("%d different rows", len(got))
	}
}

// Records that do not fit into one batch are read in further ones.
func TestReExtractInBatches(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		var pages []crawledPage
		for i := range 2*256 + 3 {
			pages = append(pages, crawledPage{unit: model.Unit{Seq: uint32(i)}, kept: true,
				body: fmt.Sprintf("<b>%d</b>", i), outcome: model.Delivered})
		}
		c := newCrawled(t, start, pages...)
		job := c.begin(selectors)
		puts := 0
		c.point = func(name string) {
			if name == "work.reextract.after_put" {
				puts++
				c.clock.Advance(advanceEvery) // so that each batch is reported
			}
		}
		c.step(job)
		if j := c.client.View().Job(job); puts != 3 || j.Items != uint64(len(pages)) ||
			j.Success != uint32(len(pages)) {
			t.Errorf("%d batches, %+v", puts, j)
		}
		if got := c.rowsOf(job); len(slices.Compact(got)) != len(pages) {
			t.Errorf("%d different rows", len(got))
		}
	})
}

// Rows with many bytes are stored in parts, and a run that dies between two parts continues.
func TestReExtractInParts(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		c := newCrawled(t, start, mixed()...)
		c.rowBytes = 1
		job := c.begin(selectors)
		puts := 0
		c.point = func(name string) {
			if name == "work.reextract.after_put" {
				if puts++; puts == 2 {
					panic("dies")
				}
			}
		}
		if _, died := c.step(job); !died {
			t.Fatal("it lives")
		}
		for range 3 {
			c.step(job)
		}
		c.checkMixed(job)
		if puts < 3 {
			t.Errorf("%d parts", puts)
		}
	})
}

// An unreachable blob store fails the step, and the next step continues.
func TestReExtractWithoutBodiesAtHand(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		c := newCrawled(t, start, mixed()...)
		job := c.begin(selectors)
		kind := ReExtract(ReExtractConfig{Client: c.client, Store: c.store,
			History: client.NewHistory(c.store), Bodies: away{}, IDs: c.ids, Clock: c.clock,
			Reader: reading.New("test", reading.Config{})})
		item := work.Item{ID: job, Kind: work.ReExtract, Customer: "ann"}
		if _, err := kind.Step(t.Context(), item); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("%v", err)
		}
		c.step(job)
		c.checkMixed(job)
	})
}

// away is a blob store that does not answer.
type away struct{}

func (away) Open(context.Context, blobstore.Key, int64, int64) (io.ReadCloser, error) {
	return nil, io.ErrClosedPipe
}
