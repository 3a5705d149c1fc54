package billing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
)

// When a check is due: once a day, at an hour UTC and up to checkSpread later, by the node's name.
const (
	checkAt     = 2 * time.Hour
	checkSpread = time.Hour
	lookEvery   = time.Minute
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
	sinceFirst   = 48 * time.Hour // before the first check that this node remembers
	batchRuns    = 256            // between two notes of how far it is
	batchJobs    = 10_000         // looked at in one view
	maxUnequal   = 1_000          // runs remembered, and named in the log
)

const dailyFile = "recount.json" // within DailyConfig.Dir

// Control is what the daily check needs of the control plane's client.
type Control interface {
	View() *client.View
	Nodes(ctx context.Context) ([]client.NodeStatus, error)
}

// DailyConfig is what a Daily works with. Logger, Clock and Metrics may be left out.
type DailyConfig struct {
	Node    string // this one's name
	Dir     string // where it remembers, over restarts, when it checked last and how far it is
	Control Control
	Store   Recounter
	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
}

// Daily is the check that the ledger is what the page records say. Of the billing nodes that live,
// the first by name makes it; the others remember their own last one, so whoever takes over begins
// with what ended since then.
type Daily struct {
	config       DailyConfig
	metrics      *dailyMetrics
	olderRecords uint64
	check        check
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

// NewDaily makes the check. It goes on where the node's last process stopped.
func NewDaily(config DailyConfig) *Daily {
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Daily{config: config, metrics: newDailyMetrics(config.Metrics),
		olderRecords: olderRecords}
}

// Run checks until ctx ends. It answers nil.
func (d *Daily) Run(ctx context.Context) error {
	d.remember()
	for clock.Pause(ctx, d.config.Clock, lookEvery) {
		if err := d.look(ctx); err != nil && ctx.Err() == nil {
			d.config.Logger.Warn("billing: the recount stops here and goes on later", "error", err)
		}
	}
	return nil
}

// look makes the check if it is this node's turn and the check is due.
func (d *Daily) look(ctx context.Context) error {
	turn, err := d.turn(ctx)
	if err != nil {
		return fmt.Errorf("billing: whose turn it is: %w", err)
	}
	d.metrics.show(&d.check, turn)
	if now := d.config.Clock.Now(); turn && !d.check.Running {
		if d.lastDue(now).UnixMilli() <= d.check.Began {
			return nil
		}
		d.check.begin(now, d.olderRecords)
	}
	for turn && d.check.Running {
		if err := d.batch(ctx); err != nil {
			return err
		}
		d.note()
		d.metrics.show(&d.check, turn)
	}
	return nil
}

// turn says whether this node is the one that checks.
func (d *Daily) turn(ctx context.Context) (bool, error) {
	nodes, err := d.config.Control.Nodes(ctx)
	for _, node := range nodes { // by name
		if node.State != client.NodeFailed && node.State != client.NodeLeft &&
			slices.Contains(node.Roles, "billing") {
			return node.Name == d.config.Node, err
		}
	}
	return false, err
}

// lastDue is when a check was due last.
func (d *Daily) lastDue(now time.Time) time.Time {
	name := fnv.New64a()
	_, _ = name.Write([]byte(d.config.Node)) // never fails
	at := checkAt + time.Duration(name.Sum64()>>1)%checkSpread
	due := now.UTC().Truncate(24 * time.Hour).Add(at)
	if due.After(now) {
		due = due.Add(-24 * time.Hour)
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
func (d *Daily) batch(ctx context.Context) error {
	c := d.check
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
	d.check = c
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
	d.metrics.runs.Inc()
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

// remember reads what the last process noted. Without it this node has never checked.
func (d *Daily) remember() {
	path := filepath.Join(d.config.Dir, dailyFile)
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &d.check)
	}
	if err != nil {
		d.check = check{}
		if !errors.Is(err, fs.ErrNotExist) {
			d.config.Logger.Warn("billing: what was noted of the recount is lost", "file", path,
				"error", err)
		}
	}
}

// note writes down how far the check is: half a file is never seen, and one that is lost costs a
// check more.
func (d *Daily) note() {
	path := filepath.Join(d.config.Dir, dailyFile)
	data, err := json.Marshal(d.check)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		d.config.Logger.Warn("billing: how far the recount is cannot be noted", "error", err)
	}
}
