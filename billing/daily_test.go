package billing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/telemetry"
)

// hasty is a clock that does not make anybody wait: it moves on instead.
type hasty struct{ *clock.Manual }

func (h hasty) After(d time.Duration) <-chan time.Time {
	h.Advance(d)
	return h.Manual.After(0)
}

// records are page records, summed up.
type records struct {
	of   map[ids.ID]rowstore.Recount
	read []ids.ID
	fail error
	hold func() // called within each read
}

func (r *records) Recount(_ context.Context, job ids.ID) (rowstore.Recount, error) {
	r.hold()
	if r.fail != nil {
		return rowstore.Recount{}, r.fail
	}
	r.read = append(r.read, job)
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

// node is a billing node's daily check after a start of its process, and its log.
func (c *checked) node(name, dir string) (*Daily, *bytes.Buffer, func(metric string) float64) {
	c.t.Helper()
	c.control.Must(c.t, client.RegisterNode{Name: name, Boot: c.ids.New(),
		Roles: []string{"ingest", "billing"}})
	var log bytes.Buffer
	metrics := telemetry.NewMetrics()
	d := NewDaily(DailyConfig{Node: name, Dir: dir, Control: c.control, Store: c.store,
		Clock:  c.clock,
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Metrics: metrics})
	d.remember()
	return d, &log, func(metric string) float64 {
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

// run makes a run of so many delivered pages that has ended, and its records.
func (c *checked) run(pages uint32) ids.ID {
	c.t.Helper()
	c.clock.Advance(time.Second) // ids sort by it
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

// newDay moves to the next noon: a check has come due.
func (c *checked) newDay() {
	now := c.clock.Now()
	c.clock.Advance(now.Truncate(24 * time.Hour).Add(36 * time.Hour).Sub(now))
}

// look has a node do what is due, and says which runs it has read.
func (c *checked) look(d *Daily) []ids.ID {
	c.t.Helper()
	c.store.read = nil
	if err := d.look(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return c.store.read
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
	d, log, metric := c.node("b1", t.TempDir())
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
	c.wantRead(c.look(d), 0, 1)
	if metric("shoal_billing_recount_unequal_runs") != 0 {
		t.Error("the inequality is not taken back")
	}
}

// TestDailyIsBounded: new runs and unequal ones are read every day, older ones in turns.
func TestDailyIsBounded(t *testing.T) {
	c := newChecked(t)
	d, _, _ := c.node("b1", t.TempDir())
	for range 6 {
		c.run(1)
	}
	c.store.of[c.runs[1]] = rowstore.Recount{}
	d.olderRecords = 2 * runRecords
	c.wantRead(c.look(d), 0, 1, 2, 3, 4, 5)
	c.newDay()
	c.newDay() // what ended within an hour before a check began is read by the next one, too
	c.wantRead(c.look(d), 0, 1, 2, 3, 4, 5)
	c.newDay()
	c.wantRead(c.look(d), 0, 1, 2)
	c.run(1)
	c.newDay()
	c.wantRead(c.look(d), 1, 3, 4, 6)
	c.newDay()
	c.wantRead(c.look(d), 1, 5, 6)
	c.newDay()
	c.wantRead(c.look(d), 1) // it has been round
	c.newDay()
	c.wantRead(c.look(d), 0, 1, 2)
}

// TestDailyGoesOnAfterRestarts: a process that never lives for a whole check ends it all the same.
func TestDailyGoesOnAfterRestarts(t *testing.T) {
	c, dir := newChecked(t), t.TempDir()
	for range 2*batchRuns + 9 {
		c.run(1)
	}
	c.store.of[c.runs[3]] = rowstore.Recount{}
	var read []ids.ID
	for start := range 2 {
		d, _, metric := c.node("b1", dir)
		if start > 0 && metric("shoal_billing_recount_ended_timestamp_seconds") != 0 {
			t.Fatal("a check that was stopped has ended")
		}
		ctx, stop := context.WithCancel(t.Context())
		c.store.read = nil
		c.store.hold = func() {
			if len(c.store.read) == batchRuns+5 {
				stop()
			}
		}
		if err := d.look(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("a check that is stopped answers %v", err)
		}
		read = append(read, c.store.read[:batchRuns]...) // what was noted
	}
	c.store.hold = func() {}
	d, _, metric := c.node("b1", dir)
	read = append(read, c.look(d)...)
	if !slices.Equal(read, c.runs) {
		t.Errorf("read %d runs of %d", len(read), len(c.runs))
	}
	if metric("shoal_billing_recount_unequal_runs") != 1 {
		t.Error("what was found before the restarts is lost")
	}
	c.clock.Advance(time.Hour)
	d, _, metric = c.node("b1", dir)
	c.wantRead(c.look(d))
	if metric("shoal_billing_recount_unequal_runs") != 1 ||
		metric("shoal_billing_recount_ended_timestamp_seconds") == 0 {
		t.Error("what the last check found is lost")
	}
}

// TestDailyIsMadeByOneNode: another one takes over when the first is gone, and begins at its own
// last check.
func TestDailyIsMadeByOneNode(t *testing.T) {
	c := newChecked(t)
	c.run(1)
	c.store.of[c.runs[0]] = rowstore.Recount{}
	second, _, metric := c.node("b2", t.TempDir())
	c.control.Must(t, client.RegisterNode{Name: "a1", Boot: c.ids.New(),
		Roles: []string{"fetcher"}})
	c.wantRead(c.look(second), 0)
	first, _, _ := c.node("b1", t.TempDir())
	c.newDay()
	c.wantRead(c.look(second))
	c.wantRead(c.look(first), 0)
	if metric("shoal_billing_recount_unequal_runs") != 0 {
		t.Error("a node whose turn it is not tells of an old check")
	}
	c.control.Fail(clienttest.Down())
	if err := first.look(t.Context()); err == nil {
		t.Error("whose turn it is comes from nowhere")
	}
}

// TestDailyWaitsForTheRowStore: a check in which a read fails has not ended, and names nobody.
func TestDailyWaitsForTheRowStore(t *testing.T) {
	c := newChecked(t)
	c.run(1)
	d, log, metric := c.node("b1", t.TempDir())
	c.store.fail = errors.New("down")
	if err := d.look(t.Context()); !errors.Is(err, c.store.fail) {
		t.Fatalf("answers %v", err)
	}
	if metric("shoal_billing_recount_ended_timestamp_seconds") != 0 ||
		strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("a check that failed counts: %s", log)
	}
	c.store.fail = nil
	c.wantRead(c.look(d), 0)
}

// TestDailyComesDueByNameAndDay: restarts, and a note that is lost or damaged, move nothing but the
// first check.
func TestDailyComesDueByNameAndDay(t *testing.T) {
	due := map[time.Duration]bool{}
	for _, name := range []string{"b1", "b2", "local"} {
		d := NewDaily(DailyConfig{Node: name})
		for _, hour := range []int{0, 4, 23} {
			now := time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC)
			at := d.lastDue(now)
			if at.After(now) || now.Sub(at) > 24*time.Hour || at.Hour() != 2 {
				t.Errorf("%s: at %v it was due at %v", name, now, at)
			}
			due[at.Sub(at.Truncate(24*time.Hour))] = true
		}
	}
	if len(due) != 3 {
		t.Errorf("three nodes are due at %v", due)
	}
	c, dir := newChecked(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, dailyFile), []byte(`{"Began":`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.run(1)
	d, log, _ := c.node("b1", dir)
	c.wantRead(c.look(d), 0)
	if !strings.Contains(log.String(), "lost") {
		t.Errorf("nobody is told of a damaged file: %s", log)
	}
}

// TestDailyStopsWithItsContext, in the middle of a check.
func TestDailyStopsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := newChecked(t)
	c.run(1)
	c.run(1)
	d, _, metric := c.node("b1", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	c.store.hold = stop
	if err := d.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if metric("shoal_billing_recount_ended_timestamp_seconds") != 0 {
		t.Error("a check that was stopped has ended")
	}
}
