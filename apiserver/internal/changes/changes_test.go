package changes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"shoal.dev/shoal/apiserver/internal/changes"
	"shoal.dev/shoal/apiserver/internal/notices"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/work"
)

var errKilled = errors.New("killed")

// rig is a scraper in a group whose customer is told of changes.
type rig struct {
	*testing.T
	clock          *clock.Manual
	ids            ids.Source
	client         *clienttest.Client
	store          rowstore.Store
	group, scraper ids.ID
	most, part     int64
	broken         error    // the error of the row store
	kill           string   // the point at which a step dies
	ended          []ids.ID // items that have ended, as the table of work would know
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, clock: clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	r.ids, r.client = ids.Random{Now: r.clock.Now}, clienttest.New(t, r.clock)
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r.store = store
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r.client.Must(t, client.OpenCustomer{Customer: "alice", Entry: r.ids.New()})
	r.group, r.scraper = r.ids.New(), r.ids.New()
	r.client.Must(t, client.PutGroup{Create: true, ID: r.group, Customer: "alice", Name: "g"})
	r.client.Must(t, client.PutScraper{Create: true, ID: r.scraper, Customer: "alice",
		Group: r.group, Spec: model.Scraper{Name: "Shop", Type: model.SingleProduct}})
	r.alert(&client.Alerts{On: []string{"ADDED", "REMOVED", "CHANGED"}, Key: []string{"sku"}})
	return r
}

func (r *rig) alert(alerts *client.Alerts) {
	r.client.Must(r, client.PutGroup{ID: r.group, Customer: "alice", Name: "g", Quarantine: true,
		Alerts: alerts})
}

// delivered is an open run with rows.
func (r *rig) delivered(rows ...string) ids.ID {
	r.Helper()
	return r.launched(client.LaunchRun{}, rows...)
}

func (r *rig) launched(run client.LaunchRun, rows ...string) ids.ID {
	r.Helper()
	r.clock.Advance(time.Second)
	run.Job, run.Entry, run.List, run.Customer = r.ids.New(), r.ids.New(), r.ids.New(), "alice"
	run.Scraper, run.Links, run.Tiers = r.scraper, 1, model.TiersOf(model.Plain)
	r.client.Must(r, run)
	page := &model.Page{Job: run.Job, Fetch: r.ids.New(), Outcome: model.Delivered,
		PriceRow: "tier:plain", Quantity: 1, Last: true, URL: "https://shop.test/"}
	for _, row := range rows {
		page.Rows = append(page.Rows, []byte(row))
	}
	receipts, err := r.store.PutPages(r.Context(), []rowstore.PageWrite{{Page: page,
		Job: rowstore.Job{ID: run.Job, Customer: "alice", Group: r.group, Scraper: r.scraper,
			Started: 1}}})
	if err != nil {
		r.Fatal(err)
	}
	r.client.Dispatch(r, run.Job, 0)
	if err := r.client.Settle(r.Context(), []model.Receipt{*receipts[0]}, nil); err != nil {
		r.Fatal(err)
	}
	return run.Job
}

// rerun is a run over what others left of the list.
func (r *rig) rerun(rows ...string) {
	r.Helper()
	r.client.CloseRun(r, r.launched(client.LaunchRun{Rest: true}, rows...))
}

func (r *rig) run(rows ...string) ids.ID {
	r.Helper()
	job := r.delivered(rows...)
	r.client.CloseRun(r, job)
	return job
}

// open are the waiting items.
func (r *rig) open() []work.Item {
	var items []work.Item
	for _, w := range r.client.View().WorkOf(work.Changes, "alice") {
		if slices.Contains(r.ended, w.ID) {
			continue
		}
		items = append(items, work.Item{ID: w.ID, Kind: w.Kind, Customer: w.Customer,
			Args: w.Args})
	}
	return items
}

func (r *rig) kind() work.Kind {
	return changes.Kind(changes.Config{Client: r.client, Store: reads{r.store, r.broken},
		History: client.NewHistory(r.store), Rows: r.most, PartRows: r.part,
		Point: func(name string) {
			if name == r.kill {
				panic(errKilled)
			}
		}})
}

// reads is a row store that may be broken.
type reads struct {
	rowstore.Reads
	broken error
}

func (s reads) Horizon(ctx context.Context) (int64, error) {
	if s.broken != nil {
		return 0, s.broken
	}
	return s.Reads.Horizon(ctx)
}

// step takes one step of an item. killed: it died at the point.
func (r *rig) step(item work.Item) (outcome work.Outcome, killed bool) {
	r.Helper()
	kind := r.kind()
	defer func() {
		if reason := recover(); reason != nil {
			killed = true
		}
	}()
	outcome, err := kind.Step(r.Context(), item)
	if err != nil {
		r.Fatal(err)
	}
	return outcome, false
}

// work takes steps of all items until they end.
func (r *rig) work() {
	r.Helper()
	for _, item := range r.open() {
		for {
			outcome, _ := r.step(item)
			if item.Progress = outcome.Progress; outcome.End == work.Ended {
				r.ended = append(r.ended, item.ID)
				break
			}
		}
	}
}

// told are the notices of changes that the customer got, newest first.
func (r *rig) told() (all []client.Notice) {
	r.client.View().Notices("alice", func(n *client.Notice) bool {
		if n.Event == model.RunChanged {
			all = append(all, *n)
		}
		return true
	})
	return all
}

const rowA, rowB, rowC = `{"sku":"a","price":"1"}`, `{"sku":"b","price":"2"}`,
	`{"sku":"c","price":"3"}`

func TestWhatChangedIsToldOnce(t *testing.T) {
	for _, point := range []string{"", "changes.after_part", "changes.before_tell",
		"changes.after_tell"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			first := r.run(rowA, rowB)
			r.work()
			if told := r.told(); len(told) > 0 {
				t.Fatalf("of the first run: %+v", told)
			}
			second := r.run(`{"sku":"a","price":"9"}`, rowC)
			items := r.open()
			if len(items) != 1 {
				t.Fatalf("%d items", len(items))
			}
			r.kill = point
			if _, killed := r.step(items[0]); killed != (point != "") {
				t.Fatalf("killed: %v", killed)
			}
			r.kill = ""
			for range 2 { // also a late step of another owner
				r.step(items[0])
			}
			told := r.told()
			if len(told) != 1 {
				t.Fatalf("told %d times", len(told))
			}
			n := told[0]
			c := n.Changes
			if n.Subject != second || n.Scraper != r.scraper || n.Name != "Shop" || c == nil ||
				c.From != first || c.Added != 1 || c.Removed != 1 || c.Changed != 1 {
				t.Errorf("told: %+v, %+v", n, c)
			}
			text := notices.Text(&n)
			for _, part := range []string{"1 row was added, 1 removed and 1 changed",
				`changed sku "a": price "1" → "9"`, `added sku "c"`, `removed sku "b"`,
				fmt.Sprintf("/api/scraper/data/diff?from=%s&to=%s&key=sku", first, second)} {
				if !strings.Contains(text, part) {
					t.Errorf("%q lacks %q", text, part)
				}
			}
		})
	}
}

func TestWhatIsNotTold(t *testing.T) {
	for name, c := range map[string]struct {
		alerts *client.Alerts
		rows   []string
	}{
		"off":             {nil, []string{rowC}},
		"the same":        {&client.Alerts{On: []string{"ADDED"}}, []string{rowB, rowA}},
		"of another kind": {&client.Alerts{On: []string{"REMOVED"}}, []string{rowA, rowB, rowC}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.run(rowA, rowB)
			r.work()
			if c.alerts != nil {
				c.alerts.Key = []string{"sku"}
			}
			r.alert(c.alerts)
			r.run(c.rows...)
			if waits := len(r.open()) == 1; waits != (c.alerts != nil) {
				t.Errorf("there is work: %v", waits)
			}
			r.work()
			if told := r.told(); len(told) > 0 {
				t.Errorf("told: %+v", told)
			}
		})
	}
	r := newRig(t)
	r.run(rowA)
	r.work()
	r.run(rowB)
	r.alert(nil)
	r.work()
	if told := r.told(); len(told) > 0 {
		t.Errorf("switched off meanwhile: %+v", told)
	}
}

// A held-back run is compared when it is released. Until then no run is compared with it.
func TestReleasedRunIsCompared(t *testing.T) {
	r := newRig(t)
	first := r.run(rowA, rowB)
	r.work()
	odd := r.delivered(rowC)
	r.client.HoldRun(t, odd, "few rows")
	if waits := r.open(); len(waits) > 0 {
		t.Fatalf("a held run is compared: %+v", waits)
	}
	r.run(rowA, rowB)
	r.work()
	if told := r.told(); len(told) > 0 {
		t.Fatalf("compared with a held run: %+v", told[0].Changes)
	}
	for range 2 {
		r.client.Must(t, client.ReleaseRun{Customer: "alice", Job: odd})
		r.work()
	}
	told := r.told()
	if len(told) != 1 || told[0].Subject != odd || told[0].Changes.From != first ||
		told[0].Changes.Added != 1 || told[0].Changes.Removed != 2 {
		t.Errorf("told: %+v", told)
	}
}

// A comparison that fails is reported once, in words. A run exactly at the bound is compared.
func TestFailedComparisonIsToldInWords(t *testing.T) {
	for name, c := range map[string]struct {
		key     string
		most    int64
		forget  bool
		message string
	}{
		"at the bound": {"sku", 2, false, ""},
		"beyond it":    {"sku", 1, false, "a run has 2 rows, and at most 1 are compared"},
		"a key that no row has": {"nope", 0, false,
			`no row of the runs has the field "nope"`},
		"gone rows": {"sku", 0, true, "the rows of the run before it are gone"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.most = c.most
			r.alert(&client.Alerts{On: []string{"ADDED"}, Key: []string{c.key}})
			first := r.run(rowA, rowB)
			r.work()
			r.run(rowA, rowC)
			if c.forget {
				if err := r.store.DeleteJob(t.Context(), first, false); err != nil {
					t.Fatal(err)
				}
			}
			items := r.open()
			for range 2 {
				r.step(items[0])
			}
			told := r.told()
			if len(told) != 1 || told[0].Message != c.message ||
				(told[0].Changes == nil) != (c.message != "") {
				t.Fatalf("told: %+v", told)
			}
			if text := notices.Text(&told[0]); !strings.Contains(text, c.message) {
				t.Errorf("%q", text)
			}
		})
	}
}

// A notice has a bounded number of examples of bounded length, without deceptive characters.
func TestExamplesAreBounded(t *testing.T) {
	r := newRig(t)
	r.alert(&client.Alerts{On: []string{"ADDED"}})
	r.run(rowA)
	r.work()
	var rows []string
	for n := range 12 {
		rows = append(rows, fmt.Sprintf(`{"%s":"\u202eevil\n%d %s","t":"%[3]s","u":"%[3]s"}`,
			strings.Repeat("n", 60), n, strings.Repeat("ö", 200)))
	}
	r.run(rows...)
	r.work()
	told := r.told()
	if len(told) != 1 || len(told[0].Changes.Examples) != 10 || told[0].Changes.Added == 0 {
		t.Fatalf("told: %+v", told)
	}
	for _, text := range told[0].Changes.Examples {
		if len(text) > 200 || !utf8.ValidString(text) || strings.ContainsAny(text, "\u202e\n") ||
			!strings.HasSuffix(text, "…") {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}

// A rerun reads what others left of the list. So it is not compared, and no other run is compared
// with it.
func TestRerunsAreNotCompared(t *testing.T) {
	r := newRig(t)
	first := r.run(rowA, rowB)
	r.rerun(rowC)
	r.run(rowA, rowB)
	r.work()
	if told := r.told(); len(told) > 0 {
		t.Fatalf("told: %+v", told[0].Changes)
	}
	r.rerun(rowC)
	last := r.run(rowA)
	r.work()
	told := r.told()
	if len(told) != 1 || told[0].Subject != last || told[0].Changes.Removed != 1 ||
		told[0].Changes.From == first {
		t.Errorf("told: %+v", told)
	}
}

// extract is a run of the pages that another run has kept.
func (r *rig) extract(from ids.ID, rows ...string) ids.ID {
	r.Helper()
	r.clock.Advance(time.Second)
	begin := client.BeginReExtract{Job: r.ids.New(), Customer: "alice", Scraper: r.scraper,
		From: from, Links: 1}
	r.client.Must(r, begin)
	page := &model.Page{Job: begin.Job, Fetch: r.ids.New(), Outcome: model.Delivered, Last: true,
		Kept: &model.KeptBody{Pack: r.ids.New(), Length: 1, Days: 1,
			From: &model.KeptFrom{Job: from, Group: r.group, Fetch: r.ids.New()}}}
	for n, row := range rows {
		id := model.RowID{Job: begin.Job, Place: uint32(n)}
		page.Rows = append(page.Rows, fmt.Appendf(nil, `%s,"_rowId":"%s"}`,
			strings.TrimSuffix(row, "}"), id))
	}
	if _, err := r.store.PutPages(r.Context(), []rowstore.PageWrite{{Page: page,
		Job: rowstore.Job{ID: begin.Job, Customer: "alice", Group: r.group, Scraper: r.scraper,
			Started: 1}}}); err != nil {
		r.Fatal(err)
	}
	r.client.Must(r, client.EndReExtract{Job: begin.Job, Done: client.ReExtracted{Success: 1,
		Pages: 1, Delivered: 1, Items: uint64(len(rows))}})
	return begin.Job
}

// An extract is compared, and compared with, if its pages are those of the newest run. Pages of a
// rerun or an older run show no change.
func TestExtractsOfTheNewestRunAreCompared(t *testing.T) {
	r := newRig(t)
	first := r.run(rowA)
	rest := r.launched(client.LaunchRun{Rest: true}, rowC)
	r.client.CloseRun(t, rest)
	r.extract(rest, rowC)
	second := r.run(rowA, rowB)
	r.extract(first, rowA)
	r.work()
	if told := r.told(); len(told) != 1 || told[0].Subject != second ||
		told[0].Changes.From != first || told[0].Changes.Added != 1 {
		t.Fatalf("told: %+v", told)
	}
	const newA = `{"sku":"a","price":"1","size":"L"}`
	again := r.extract(second, newA, rowB)
	r.work()
	if told := r.told(); len(told) != 2 || told[0].Subject != again ||
		told[0].Changes.From != second || told[0].Changes.Changed != 1 {
		t.Fatalf("told: %+v", told)
	}
	r.extract(first, rowA)
	third := r.run(newA)
	r.work()
	if told := r.told(); len(told) != 3 || told[0].Subject != third ||
		told[0].Changes.From != again || told[0].Changes.Removed != 1 ||
		told[0].Changes.Changed != 0 {
		t.Errorf("told: %+v", told)
	}
}

// If a scraper keeps one run's rows, its customer is not told at each run that rows are gone.
func TestWhoKeepsOneRunIsToldNothing(t *testing.T) {
	for keeps, wanted := range map[int]int{1: 0, 2: 1} {
		r := newRig(t)
		r.client.Must(t, client.PutScraper{ID: r.scraper, Customer: "alice", Group: r.group,
			Spec: model.Scraper{Name: "Shop", Type: model.SingleProduct,
				Config: &model.ScraperConfig{RetentionCount: &keeps}}})
		first := r.run(rowA)
		r.work()
		r.run(rowB)
		if keeps == 1 {
			if err := r.store.DeleteJob(t.Context(), first, false); err != nil {
				t.Fatal(err)
			}
		}
		r.work()
		if told := r.told(); len(told) != wanted {
			t.Errorf("keeps %d: told %+v", keeps, told)
		}
	}
}

// A row without the key is described by its first members.
func TestExampleWithoutTheKey(t *testing.T) {
	r := newRig(t)
	r.run(rowA)
	r.work()
	r.run(rowA, `{"title":"Lamp","price":"3"}`)
	r.work()
	told := r.told()
	if len(told) != 1 || !slices.Equal(told[0].Changes.Examples,
		[]string{`added title "Lamp" price "3"`}) {
		t.Errorf("told: %+v", told)
	}
}
