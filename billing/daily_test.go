package billing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// hasty is a clock that never waits: it moves on instead.
type hasty struct{ *clock.Manual }

func (h hasty) After(d time.Duration) <-chan time.Time {
	h.Advance(d)
	return h.Manual.After(0)
}

// records are recounts of page records, by run.
type records struct {
	of   map[ids.ID]rowstore.Recount
	read []ids.ID
	fail error
	torn ids.ID // a run whose records cannot be read
	hold func() // called within each read, unless nil
}

func (r *records) Recount(_ context.Context, job ids.ID) (rowstore.Recount, error) {
	r.hold()
	if r.fail != nil {
		return rowstore.Recount{}, r.fail
	}
	if job.IsZero() {
		return rowstore.Recount{}, nil // of an unknown run
	}
	r.read = append(r.read, job)
	if job == r.torn {
		return rowstore.Recount{}, errors.New("a record cannot be read")
	}
	return r.of[job], nil
}

// checked is a cluster of billing nodes with runs.
type checked struct {
	t       *testing.T
	clock   hasty
	ids     ids.Source
	control *clienttest.Client
	store   *records
	group   ids.ID
	runs    []ids.ID
	archive rowstoretest.Archive
	check   check // as in the work's progress
}

func newChecked(t *testing.T) *checked {
	t.Helper()
	at := hasty{clock.NewManual(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC))}
	c := &checked{t: t, clock: at, ids: ids.Random{Now: at.Now}, control: clienttest.New(t, at),
		store: &records{of: map[ids.ID]rowstore.Recount{}, hold: func() {}}}
	c.group = c.ids.New()
	c.control.Must(t, client.OpenCustomer{Customer: "alice", Entry: c.ids.New()})
	c.control.Must(t, client.AdjustWallet{Customer: "alice", Entry: c.ids.New(), Amount: 1_000_000})
	c.control.Must(t, client.PutGroup{Create: true, ID: c.group, Customer: "alice", Name: "g"})
	return c
}

// daily returns the check on a billing node, its log and its metrics.
func (c *checked) daily() (*Daily, *bytes.Buffer, func(metric string) float64) {
	c.t.Helper()
	var log bytes.Buffer
	metrics := telemetry.NewMetrics()
	d := NewDaily(DailyConfig{Control: c.control, History: client.NewHistory(&c.archive),
		Store: c.store, Clock: c.clock,
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Metrics: metrics})
	return d, &log, func(metric string) float64 {
		c.note(d)
		families, err := metrics.Gather()
		if err != nil {
			c.t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == metric {
				one := family.GetMetric()[0]
				return one.GetGauge().GetValue() + one.GetCounter().GetValue()
			}
		}
		c.t.Fatalf("no metric %s", metric)
		return 0
	}
}

// note reports the check's progress to the table of work.
func (c *checked) note(d *Daily) {
	c.t.Helper()
	boot := c.ids.New()
	c.control.Must(c.t, client.RegisterNode{Name: "b1", Boot: boot})
	table := client.Work(c.control, "b1", boot)
	kind := d.Kind()
	err := table.Recur(c.t.Context(), c.ids.New(), kind.Name, false)
	want := work.Want{Kind: kind.Name, Most: 1, PerCustomer: 1}
	if err == nil {
		err = table.Exchange(c.t.Context(), work.Turn{Lease: time.Minute,
			Wants: []work.Want{want}})
	}
	held := table.Held()
	if err != nil || len(held) != 1 {
		c.t.Fatalf("%d items are held: %v", len(held), err)
	}
	progress, err := json.Marshal(c.check)
	if err != nil || len(progress) > work.MaxProgress {
		c.t.Fatalf("%d bytes of progress: %v", len(progress), err)
	}
	report := work.Report{ID: held[0].ID, Epoch: held[0].Epoch, Advanced: true, Progress: progress}
	if err := table.Exchange(c.t.Context(), work.Turn{Lease: time.Minute,
		Reports: []work.Report{report}}); err != nil {
		c.t.Fatal(err)
	}
}

// run makes an ended run with the given number of delivered pages, and its records.
func (c *checked) run(pages uint32) ids.ID {
	c.t.Helper()
	c.clock.Advance(time.Second) // ids sort by time
	scraper := c.ids.New()
	c.control.Must(c.t, client.PutScraper{Create: true, ID: scraper, Customer: "alice",
		Group: c.group,
		Spec:  model.Scraper{Name: scraper.String(), Type: model.SingleProduct}})
	run := client.LaunchRun{Job: c.ids.New(), Entry: c.ids.New(), Customer: "alice",
		Scraper: scraper, List: c.ids.New(),
		Links: pages, Tiers: model.TiersOf(model.Plain)}
	c.control.Must(c.t, run)
	for seq := range pages {
		c.control.Dispatch(c.t, run.Job, seq)
		receipt := model.Receipt{Job: run.Job, Unit: model.Unit{Seq: seq}, Outcome: model.Delivered,
			PriceRow: "tier:plain",
			Quantity: 1, Items: 3, Last: true}
		if err := c.control.Settle(c.t.Context(), []model.Receipt{receipt}, nil); err != nil {
			c.t.Fatal(err)
		}
	}
	c.control.CloseRun(c.t, run.Job)
	if !c.control.View().Job(run.Job).Closed {
		c.t.Fatal("the run is open")
	}
	c.store.of[run.Job] = rowstore.Recount{Delivered: uint64(pages), Items: uint64(3 * pages),
		Quantity: map[string]uint64{"tier:plain": uint64(pages)}}
	c.runs = append(c.runs, run.Job)
	return run.Job
}

// newDay moves to the next noon, so that a check is due.
func (c *checked) newDay() {
	now := c.clock.Now()
	c.clock.Advance(now.Truncate(24 * time.Hour).Add(36 * time.Hour).Sub(now))
}

// look runs a check that is due, and returns the runs that it read.
func (c *checked) look(d *Daily) []ids.ID {
	c.t.Helper()
	c.store.read = nil
	if err := c.advance(c.t.Context(), d); err != nil {
		c.t.Fatal(err)
	}
	return c.store.read
}

func (c *checked) advance(ctx context.Context, d *Daily) error {
	return advance(ctx, d, &c.check)
}

// advance takes a check from one progress to the next until it rests or fails.
func advance(ctx context.Context, d *Daily, noted *check) error {
	for {
		next := *noted
		rest, err := d.advance(ctx, &next)
		if err != nil {
			return err
		}
		if *noted = next; rest > 0 {
			return nil
		}
	}
}

func (c *checked) wantRead(got []ids.ID, runs ...int) {
	c.t.Helper()
	var want []ids.ID
	for _, run := range runs {
		want = append(want, c.runs[run])
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("read %v, want %v of %v", got, want, c.runs)
	}
}

func TestDailySeesAnInequalityAndItsEnd(t *testing.T) {
	c := newChecked(t)
	d, log, metric := c.daily()
	c.run(10)
	bad := c.run(12) // five pages of the first were free
	right := c.store.of[bad]
	c.store.of[bad] = rowstore.Recount{Delivered: 11, Items: 33,
		Quantity: map[string]uint64{"tier:plain": 11}}
	began := c.clock.Now()
	c.wantRead(c.look(d), 0, 1)
	if metric("shoal_billing_recount_unequal_runs") != 1 ||
		metric("shoal_billing_recount_runs_total") != 2 {
		t.Error("the inequality is not in the metrics")
	}
	ended := metric("shoal_billing_recount_ended_timestamp_seconds")
	if took := metric("shoal_billing_recount_last_seconds"); took <= 0 ||
		!time.UnixMilli(int64(1000*ended)).Equal(
			began.Add(time.Duration(took*float64(time.Second)))) {
		t.Errorf("it began at %v, took %v and ended at %v", began, took, ended)
	}
	named := "job=" + bad.String() + " customer=alice"
	differ := "ledgerMicros=1800 recountMicros=1650 ledgerPages=12 recountPages=11 " +
		"ledgerItems=36 recountItems=33"
	if text := log.String(); strings.Count(text, "level=ERROR") != 1 ||
		!strings.Contains(text, named) ||
		!strings.Contains(text, differ) {
		t.Errorf("the log says %s", text)
	}
	c.wantRead(c.look(d)) // once a day

	c.store.of[bad] = right
	c.newDay()
	c.wantRead(c.look(d), 1, 0)
	if metric("shoal_billing_recount_unequal_runs") != 0 {
		t.Error("the inequality is not taken back")
	}
}

// TestDailyIsBounded: new runs and unequal ones are read every day, older ones in turns.
func TestDailyIsBounded(t *testing.T) {
	c := newChecked(t)
	d, _, _ := c.daily()
	for range 6 {
		c.run(1)
	}
	c.store.of[c.runs[1]] = rowstore.Recount{}
	d.olderRecords = 2 * runRecords
	c.wantRead(c.look(d), 0, 1, 2, 3, 4, 5)
	c.newDay()
	c.wantRead(c.look(d), 1, 0)
	c.newDay()
	c.wantRead(c.look(d), 1, 2, 3)
	c.run(1)
	c.newDay()
	c.wantRead(c.look(d), 1, 4, 5, 6)
	c.newDay()
	c.wantRead(c.look(d), 1, 0) // it starts over
	c.newDay()
	c.wantRead(c.look(d), 1, 2, 3)
}

// TestDailyRounds: a metric says when all older runs were last read, however many days that takes.
// Of a run whose records have gone only their sum is read, so it takes less of a day.
func TestDailyRounds(t *testing.T) {
	c := newChecked(t)
	d, _, metric := c.daily()
	for range 4 {
		c.run(1)
	}
	d.olderRecords = 2 * runRecords
	ended := func() float64 { return metric("shoal_billing_recount_round_ended_timestamp_seconds") }
	c.look(d) // all are new
	first := ended()
	c.newDay()
	c.wantRead(c.look(d), 0, 1)
	if at := ended(); first == 0 || at != first {
		t.Errorf("half of a round is said to end at %v, the one before ended at %v", at, first)
	}
	c.newDay()
	c.wantRead(c.look(d), 2, 3)
	if at := ended(); at != metric("shoal_billing_recount_ended_timestamp_seconds") {
		t.Errorf("a round is said to end at %v", at)
	}
	c.clock.Advance(rowstore.Expiry)
	c.wantRead(c.look(d), 0, 1, 2, 3)
}

// TestRoundsEndInTime: years of use are read through before the newest runs have lost their
// records.
func TestRoundsEndInTime(t *testing.T) {
	const runs, kept, expiry = 10_000_000, 400, uint64(rowstore.Expiry / checkEvery)
	now := time.Now()
	recent := recordsOf(&client.Job{Started: now.UnixMilli(), Pages: 20}, now)
	old := recordsOf(&client.Job{Started: now.Add(-2 * rowstore.Expiry).UnixMilli(), Pages: 20},
		now)
	days := runs / kept * (expiry*recent + (kept-expiry)*old) / olderRecords
	if days >= expiry {
		t.Errorf("a round takes %d days, and records stay for %d", days, expiry)
	}
}

// TestDailyGoesOnAfterRestarts: a check ends even if no owner lives for all of it.
func TestDailyGoesOnAfterRestarts(t *testing.T) {
	c := newChecked(t)
	for range 2*batchRuns + 9 {
		c.run(1)
	}
	c.store.of[c.runs[3]] = rowstore.Recount{}
	var read []ids.ID
	for range 2 {
		d, _, metric := c.daily()
		if metric("shoal_billing_recount_ended_timestamp_seconds") != 0 {
			t.Fatal("a check that was stopped has ended")
		}
		ctx, stop := context.WithCancel(t.Context())
		c.store.read = nil
		c.store.hold = func() {
			if len(c.store.read) == batchRuns+5 {
				stop()
			}
		}
		if err := c.advance(ctx, d); !errors.Is(err, context.Canceled) {
			t.Fatalf("a check that is stopped answers %v", err)
		}
		read = append(read, c.store.read[:batchRuns]...) // only what was recorded
	}
	c.store.hold = func() {}
	d, _, metric := c.daily()
	if metric("shoal_billing_recount_unequal_runs") != 1 {
		t.Error("what a check has found is kept back until its end")
	}
	read = append(read, c.look(d)...)
	if !slices.Equal(read, c.runs) {
		t.Errorf("read %d runs of %d", len(read), len(c.runs))
	}
	c.clock.Advance(time.Hour)
	d, _, metric = c.daily()
	c.wantRead(c.look(d))
	if metric("shoal_billing_recount_unequal_runs") != 1 ||
		metric("shoal_billing_recount_ended_timestamp_seconds") == 0 {
		t.Error("what the last check found is lost")
	}
}

// TestDailyWaitsForTheRowStore: a check in which a read fails does not end, and names no run.
func TestDailyWaitsForTheRowStore(t *testing.T) {
	c := newChecked(t)
	c.run(1)
	d, log, metric := c.daily()
	c.store.fail = errors.New("down")
	if err := c.advance(t.Context(), d); !errors.Is(err, c.store.fail) {
		t.Fatalf("answers %v", err)
	}
	if metric("shoal_billing_recount_ended_timestamp_seconds") != 0 ||
		strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("a check that failed counts: %s", log)
	}
	c.store.fail = nil
	c.wantRead(c.look(d), 0)
}

// TestDailyCountsBesideATornRun: a run whose records cannot be read is reported like an unequal
// one, and does not hold up the others.
func TestDailyCountsBesideATornRun(t *testing.T) {
	c := newChecked(t)
	c.run(1)
	c.store.torn = c.run(1)
	c.run(1)
	d, log, metric := c.daily()
	c.wantRead(c.look(d), 0, 1, 2)
	if metric("shoal_billing_recount_unequal_runs") != 1 ||
		metric("shoal_billing_recount_ended_timestamp_seconds") == 0 ||
		!strings.Contains(log.String(), c.store.torn.String()) {
		t.Errorf("it is not told: %s", log)
	}
	c.store.torn = ids.ID{}
	c.newDay()
	c.look(d)
	if unequal := metric("shoal_billing_recount_unequal_runs"); unequal != 0 {
		t.Errorf("%v runs are unequal once all can be read", unequal)
	}
}

// TestDailyComesDueEachDay: the check runs at its own hour, and rests until then.
func TestDailyComesDueEachDay(t *testing.T) {
	c := newChecked(t)
	d, _, _ := c.daily()
	for _, hour := range []int{0, 4, 23} {
		now := time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC)
		at := d.lastDue(now)
		if at.After(now) || now.Sub(at) > 24*time.Hour || at.Hour() != 2 {
			t.Errorf("at %v it was due at %v", now, at)
		}
	}
	c.run(1)
	c.wantRead(c.look(d), 0)
	rest, err := d.advance(t.Context(), &c.check)
	if at := c.clock.Now().Add(rest); err != nil || at.Hour() != 2 || rest > 24*time.Hour {
		t.Errorf("it rests until %v: %v", at, err)
	}
}

// TestDamagedProgressIsACheckMore: unreadable progress is logged, and the check starts again.
func TestDamagedProgressIsACheckMore(t *testing.T) {
	c := newChecked(t)
	c.run(1)
	d, log, _ := c.daily()
	if _, err := d.step(t.Context(), work.Item{Progress: []byte(`{"Began":`)}); err != nil {
		t.Fatal(err)
	}
	c.wantRead(c.store.read, 0)
	if !strings.Contains(log.String(), "lost") {
		t.Errorf("nobody is told of damaged progress: %s", log)
	}
}

// TestTheLargestCheckFits: the largest check fits in an item's progress.
func TestTheLargestCheckFits(t *testing.T) {
	many := make([]ids.ID, maxUnequal)
	for i := range many {
		many[i] = ids.Random{Now: time.Now}.New()
	}
	at := time.Now().UnixMilli()
	all := check{Began: at, Running: true, Again: maxUnequal, Since: 1 << 62, Older: 1 << 62,
		Left: 1 << 62, Newer: 1 << 62, Found: many, Unequal: 1 << 30, RoundEnded: at,
		Wallets: walk{Behind: strings.Repeat("<", 128), Left: 1 << 62, Unequal: 1 << 30,
			Before: 1 << 30},
		Last: finished{Ended: at, Took: at, Unequal: 1 << 30, Found: many, Books: 4}}
	progress, err := json.Marshal(all)
	if err != nil || len(progress) > work.MaxProgress {
		t.Errorf("%d bytes: %v", len(progress), err)
	}
}

// TestTwoOwnersRecountAtOnce: both owners reach the same check, and find each run once.
func TestTwoOwnersRecountAtOnce(t *testing.T) {
	c := newChecked(t)
	for range 5 {
		c.run(1)
	}
	c.store.of[c.runs[3]] = rowstore.Recount{}
	first, _, _ := c.daily()
	second, _, _ := c.daily()
	var checks [2]check
	c.store.hold = func() { // the other owner counts everything while the first is within a run
		c.store.hold = func() {}
		if err := advance(t.Context(), second, &checks[1]); err != nil {
			t.Error(err)
		}
	}
	if err := advance(t.Context(), first, &checks[0]); err != nil {
		t.Fatal(err)
	}
	for i, check := range checks {
		if check.Running || check.Unequal != 1 || !slices.Equal(check.Found, c.runs[3:4]) {
			t.Errorf("owner %d: %+v", i, check)
		}
	}
}
