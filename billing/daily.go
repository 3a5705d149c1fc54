package billing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// When a check is due: once a day, at an hour UTC and up to checkSpread later, by the cluster's id:
// several clusters may read of one row store.
const (
	checkEvery  = 24 * time.Hour
	checkAt     = 2 * time.Hour
	checkSpread = time.Hour
)

// Bounds of a check. One run is read at a time, and then nothing for as long as that took: at most
// half the time of one reader. It reads every run that ended since the check before began, the runs
// that were unequal then, and of the older ones, going round, those of olderRecords page records; a
// run counts as at least runRecords.
const (
	olderRecords = 20_000_000
	runRecords   = 2_000
	leastPause   = 10 * time.Millisecond
	sinceOverlap = time.Hour      // for clocks that differ
	sinceFirst   = 48 * time.Hour // before the first check
	batchRuns    = 256            // of one step
	batchJobs    = 10_000         // looked at in one view
	maxUnequal   = 1_000          // runs remembered, twice 27 bytes each, and named in the log
)

// Control is what the daily check needs of the control plane's client.
type Control interface {
	View() *client.View
}

// DailyConfig is what a Daily works with. Logger, Clock and Metrics may be left out.
type DailyConfig struct {
	Control Control
	Store   Recounter
	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
}

// Daily is the check that the ledger is what the page records say. It is one item of background
// work, whose progress is the check; whichever billing node holds it goes on.
type Daily struct {
	config       DailyConfig
	runs         prometheus.Counter
	olderRecords uint64
}

// check is the newest check, as it is remembered. Times are Unix milliseconds.
type check struct {
	Began   int64 // 0: never
	Running bool
	Since   int64    // runs that finished from then on are counted, whatever their age
	Next    ids.ID   // counted up to here
	From    ids.ID   // older runs are counted behind it,
	To      ids.ID   // and have been up to here,
	Left    uint64   // for so many page records more
	Found   []ids.ID // unequal, at most maxUnequal, by id
	Unequal int

	Last finished // the check before, while one is running
}

// finished is what came of a check.
type finished struct {
	Ended   int64 // 0: never
	Took    int64 // milliseconds
	Unequal int
	Found   []ids.ID
}

// NewDaily makes the check.
func NewDaily(config DailyConfig) *Daily {
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Daily{config: config, olderRecords: olderRecords,
		runs: config.Metrics.Counter("shoal_billing_recount_runs_total",
			"Runs held against their page records by the daily check.")}
	d.measure(config.Metrics)
	return d
}

// Kind is the check as background work.
func (d *Daily) Kind() work.Kind {
	return work.Kind{Name: work.Recount, Recurring: true, Step: d.step}
}

// step counts some runs, or waits until a check is due.
func (d *Daily) step(ctx context.Context, item work.Item) (work.Outcome, error) {
	c := d.read(item.Progress)
	rest, err := d.advance(ctx, &c)
	if err != nil {
		return work.Outcome{}, err
	}
	progress, err := json.Marshal(c)
	if err != nil {
		return work.Outcome{}, fmt.Errorf("billing: note how far the recount is: %w", err)
	}
	if rest > 0 {
		return work.Rest(progress, rest), nil
	}
	return work.GoOn(progress), nil
}

// read is the check that a progress tells of. Without one there never was any.
func (d *Daily) read(progress []byte) check {
	var c check
	if len(progress) == 0 {
		return c
	}
	if err := json.Unmarshal(progress, &c); err != nil {
		d.config.Logger.Warn("billing: what was noted of the recount is lost", "error", err)
		return check{}
	}
	return c
}

// advance begins a check that is due, and counts some runs of one that is under way. It says how
// long nothing is to be done then; 0: it goes on. When it fails the check stays as it was.
func (d *Daily) advance(ctx context.Context, c *check) (rest time.Duration, err error) {
	now := d.config.Clock.Now()
	due := d.lastDue(now)
	if !c.Running {
		if due.UnixMilli() <= c.Began {
			return due.Add(checkEvery).Sub(now), nil
		}
		c.begin(now, d.olderRecords)
	}
	if err := d.batch(ctx, c); err != nil {
		return 0, err
	}
	if c.Running {
		return 0, nil
	}
	now = d.config.Clock.Now()
	return d.lastDue(now).Add(checkEvery).Sub(now), nil
}

// lastDue is when a check was due last.
func (d *Daily) lastDue(now time.Time) time.Time {
	cluster := d.config.Control.View().Cluster().ID
	spread := fnv.New64a()
	_, _ = spread.Write(cluster[:]) // never fails
	at := checkAt + time.Duration(spread.Sum64()>>1)%checkSpread
	due := now.UTC().Truncate(checkEvery).Add(at)
	if due.After(now) {
		due = due.Add(-checkEvery)
	}
	return due
}

func (c *check) begin(now time.Time, older uint64) {
	since := now.Add(-sinceFirst)
	if c.Began != 0 {
		since = time.UnixMilli(c.Began).Add(-sinceOverlap)
	}
	from := c.To
	if c.Left > 0 { // it has been round
		from = ids.ID{}
	}
	*c = check{Began: now.UnixMilli(), Running: true, Since: since.UnixMilli(), From: from,
		Left: older, Last: c.Last}
}

// batch counts some runs more. When it fails nothing is noted of them.
func (d *Daily) batch(ctx context.Context, noted *check) error {
	c := *noted
	runs, more := c.take(d.config.Control.View())
	for _, job := range runs {
		began := d.config.Clock.Now()
		if err := d.count(ctx, &c, job); err != nil {
			return err
		}
		if !clock.Pause(ctx, d.config.Clock, max(d.config.Clock.Now().Sub(began), leastPause)) {
			return ctx.Err()
		}
	}
	if !more {
		now := d.config.Clock.Now().UnixMilli()
		c.Running = false
		c.Last = finished{Ended: now, Took: now - c.Began, Unequal: c.Unequal, Found: c.Found}
		d.config.Logger.Info("billing: the ledger has been held against the page records",
			"unequal", c.Unequal)
	}
	if ctx.Err() == nil {
		*noted = c
	}
	return ctx.Err()
}

// take lists the next runs to count, and says whether there may be more behind them.
func (c *check) take(view *client.View) (runs []*client.Job, more bool) {
	looked := 0
	view.JobsAfter(c.Next, func(job *client.Job) bool {
		if looked == batchJobs || len(runs) == batchRuns {
			more = true
			return false
		}
		looked++
		c.Next = job.ID
		if job.Closed && c.wants(job) {
			runs = append(runs, job)
		}
		return true
	})
	return runs, more
}

// wants says whether a closed run is counted by this check.
func (c *check) wants(job *client.Job) bool {
	if _, known := slices.BinarySearchFunc(c.Last.Found, job.ID, compareIDs); known ||
		job.Finished >= c.Since {
		return true
	}
	if c.Left == 0 || compareIDs(job.ID, c.From) <= 0 {
		return false
	}
	c.Left -= min(c.Left, max(job.Pages, runRecords))
	c.To = job.ID
	return true
}

func compareIDs(a, b ids.ID) int { return bytes.Compare(a[:], b[:]) }

// count holds one run's entry against its page records.
func (d *Daily) count(ctx context.Context, c *check, job *client.Job) error {
	run, err := recountJob(ctx, d.config.Control.View(), d.config.Store, job)
	if err != nil {
		return err
	}
	d.runs.Inc()
	if run.Equal() {
		return nil
	}
	now := d.config.Control.View().Job(job.ID)
	if now == nil || now.Index != job.Index { // the state was restored meanwhile
		return nil
	}
	c.Unequal++
	if c.Unequal > maxUnequal {
		return nil
	}
	c.Found = append(c.Found, job.ID)
	d.config.Logger.Error("billing: the ledger is not what the page records say", "job", run.Job,
		"customer", run.Customer,
		"entry", run.Entry, "ledgerMicros", run.LedgerMicros, "recountMicros", run.RecountMicros,
		"ledgerPages", run.LedgerPages,
		"recountPages", run.RecountPages, "ledgerItems", run.LedgerItems, "recountItems",
		run.RecountItems)
	return nil
}
