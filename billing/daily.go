package billing

import (
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
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// A check is due once a day, at checkAt UTC plus up to checkSpread. The cluster's id decides the
// spread, so that clusters that share a row store do not check at the same time.
const (
	checkEvery  = 24 * time.Hour
	checkAt     = 2 * time.Hour
	checkSpread = time.Hour
)

// Bounds of a check. It reads one run at a time and then pauses for as long as that took, so it is
// busy at most half the time. It reads the runs that were unequal at the last check, and every run
// closed since. It reads older runs in rotation, up to olderRecords page records per check. A run
// counts as at least runRecords, and as condensedRecords once only the sum of its records is left.
// So a round over 10,000,000 runs of 400 days is over before the newest of them have lost theirs.
// The first check treats all runs still in the state as new.
const (
	olderRecords     = 20_000_000
	runRecords       = 500
	condensedRecords = 50

	leastPause = 10 * time.Millisecond
	batchRuns  = 256   // per step
	maxUnequal = 1_000 // runs remembered (27 bytes each, kept twice) and named in the log
)

// Control is what the daily check needs from the control plane's client.
type Control interface {
	View() *client.View
}

// DailyConfig configures a Daily. Logger, Clock and Metrics may be left out.
type DailyConfig struct {
	Control Control
	History *client.History
	Store   Recounter
	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
}

// Daily checks that the ledger agrees with the page records, and then with itself. It is one item
// of background work, whose progress stores the check. So any billing node that holds the item can
// continue it.
type Daily struct {
	config        DailyConfig
	runs          prometheus.Counter
	olderRecords  uint64
	walkedEntries uint64
}

// check is the newest check, as stored in the item's progress. Times are Unix milliseconds. Runs
// are walked in the order in which they were closed, by the index of the closing command.
type check struct {
	Began   int64 // 0: never
	Running bool
	Again   int      // how many of the formerly unequal runs have been counted
	Since   uint64   // runs closed after this index are new
	Older   uint64   // older runs are counted up to this index
	Left    uint64   // page records of older runs still to count in this check
	Round   bool     // all older runs are counted; the next check starts over
	Newer   uint64   // new runs are counted up to this index
	Found   []ids.ID // unequal runs, at most maxUnequal
	Unequal int

	// RoundEnded is the end of the check that had last counted all older runs; 0: there was none.
	RoundEnded int64

	Counted bool // the runs are counted; the wallets are next
	Wallets walk
	Last    finished // the previous check, while one is running
}

// finished is the result of a check.
type finished struct {
	Ended   int64 // 0: never
	Took    int64 // milliseconds
	Unequal int
	Found   []ids.ID
	Books   int // differences between the ledger's accounts
}

// NewDaily makes the daily check.
func NewDaily(config DailyConfig) *Daily {
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Daily{config: config, olderRecords: olderRecords, walkedEntries: walkedEntries,
		runs: config.Metrics.Counter("shoal_billing_recount_runs_total",
			"Runs that the daily check compared with their page records.")}
	d.measure(config.Metrics)
	return d
}

// Kind returns the check as background work.
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

// read decodes the check from a progress. Without progress there has been no check yet.
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

// advance begins a check that is due, and continues one that is under way. It returns how long to
// rest; 0 means to go on. If it fails, the check stays as it was.
func (d *Daily) advance(ctx context.Context, c *check) (rest time.Duration, err error) {
	now := d.config.Clock.Now()
	due := d.lastDue(now)
	if !c.Running {
		if due.UnixMilli() <= c.Began {
			return due.Add(checkEvery).Sub(now), nil
		}
		c.startRound(now, d.olderRecords, d.config.Control.View().ArchivedTo())
		c.Wallets.Left = d.walkedEntries
	}
	next := d.batch
	if c.Counted {
		next = d.walk
	}
	if err := next(ctx, c); err != nil {
		return 0, err
	}
	if c.Running {
		return 0, nil
	}
	now = d.config.Clock.Now()
	return d.lastDue(now).Add(checkEvery).Sub(now), nil
}

// lastDue returns when a check was last due.
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

func (c *check) startRound(now time.Time, older, archived uint64) {
	since := c.Newer
	if c.Began == 0 {
		since = archived
	}
	from := c.Older
	if c.Round {
		from = 0
	}
	*c = check{Began: now.UnixMilli(), Running: true, Since: since,
		Older: from, Left: older, Newer: since, RoundEnded: c.RoundEnded, Last: c.Last,
		Wallets: c.Wallets}
}

// batch counts some more runs. If it fails, it records none of them.
func (d *Daily) batch(ctx context.Context, noted *check) error {
	c := *noted
	view := d.config.Control.View()
	runs, more, err := d.listRuns(ctx, &c, view)
	if err != nil {
		return fmt.Errorf("billing: runs to recount: %w", err)
	}
	entries, err := d.config.History.EntriesOf(ctx, view, runs)
	if err != nil {
		return fmt.Errorf("billing: entries to recount: %w", err)
	}
	for _, job := range runs {
		began := d.config.Clock.Now()
		if err := d.count(ctx, &c, job, entries[job.Entry]); err != nil {
			return err
		}
		if !clock.Pause(ctx, d.config.Clock, max(d.config.Clock.Now().Sub(began), leastPause)) {
			return ctx.Err()
		}
	}
	c.Counted = !more
	if ctx.Err() == nil {
		*noted = c
	}
	return ctx.Err()
}

// listRuns lists the next runs to count, at most batchRuns, and says whether there may be more.
func (d *Daily) listRuns(ctx context.Context, c *check, view *client.View) (runs []*client.Job,
	more bool, err error) {
	if left := c.Last.Found[min(c.Again, len(c.Last.Found)):]; len(left) > 0 {
		some := left[:min(batchRuns, len(left))]
		for _, id := range some {
			job, err := d.config.History.Run(ctx, view, id)
			if err != nil {
				return nil, false, err
			}
			if job != nil && job.Closed { // otherwise a restore has reopened it, or it has expired
				runs = append(runs, job)
			}
		}
		c.Again += len(some)
		return runs, true, nil
	}
	if c.Left > 0 && !c.Round {
		older, err := d.config.History.ClosedAfter(ctx, view, c.Older, batchRuns)
		runs = c.takeOlder(older, d.config.Clock.Now())
		if err != nil || len(runs) > 0 || c.Left > 0 && !c.Round {
			return runs, true, err
		}
	}
	runs, err = d.config.History.ClosedAfter(ctx, view, c.Newer, batchRuns)
	if len(runs) > 0 {
		c.Newer = runs[len(runs)-1].Index
	}
	return c.without(runs), len(runs) == batchRuns, err
}

// takeOlder takes the older runs among next, as long as there are records left to count.
func (c *check) takeOlder(next []*client.Job, now time.Time) []*client.Job {
	for i, job := range next {
		if job.Index > c.Since || c.Left == 0 {
			c.Round = job.Index > c.Since
			return c.without(next[:i])
		}
		c.Left -= min(c.Left, recordsOf(job, now))
		c.Older = job.Index
	}
	c.Round = len(next) < batchRuns
	return c.without(next)
}

// recordsOf returns as how many records an older run counts.
func recordsOf(job *client.Job, now time.Time) uint64 {
	if job.Started < now.Add(-rowstore.Expiry).UnixMilli() {
		return condensedRecords
	}
	return max(job.Pages, runRecords)
}

// without leaves out the runs that were unequal at the last check: they are already counted.
func (c *check) without(runs []*client.Job) []*client.Job {
	return slices.DeleteFunc(slices.Clone(runs),
		func(job *client.Job) bool { return slices.Contains(c.Last.Found, job.ID) })
}

// count compares one run's entry with its page records. A run whose records cannot be read while
// the row store answers counts as unequal, and does not hold up the others.
func (d *Daily) count(ctx context.Context, c *check, job *client.Job, entry *client.Entry) error {
	run, unread := recountJob(ctx, d.config.Control.View(), d.config.Store, job, entry)
	if unread != nil {
		if isAway(ctx, d.config.Store) {
			return unread
		}
		d.config.Logger.Error("billing: a run cannot be counted", "job", job.ID, "customer",
			job.Customer, "error", unread)
	}
	d.runs.Inc()
	if unread == nil && run.Equal() {
		return nil
	}
	now, err := d.config.History.Run(ctx, d.config.Control.View(), job.ID)
	if err != nil {
		return fmt.Errorf("billing: run %s: %w", job.ID, err)
	}
	if now == nil || now.Index != job.Index { // the state was restored in the meantime
		return nil
	}
	c.Unequal++
	if c.Unequal > maxUnequal {
		return nil
	}
	c.Found = append(c.Found, job.ID)
	if unread == nil { // otherwise it is already logged
		d.config.Logger.Error("billing: the ledger is not what the page records say",
			"job", run.Job, "customer", run.Customer, "entry", run.Entry,
			"ledgerMicros", run.LedgerMicros, "recountMicros", run.RecountMicros,
			"ledgerPages", run.LedgerPages, "recountPages", run.RecountPages,
			"ledgerItems", run.LedgerItems, "recountItems", run.RecountItems)
	}
	return nil
}
