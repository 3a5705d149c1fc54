package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/controlplane"
	"shoal.dev/shoal/controlplane/client/historytest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// History measures the cost of years of use: the state and the archive of many ended runs.
type History struct {
	Runs      []int         `help:"Numbers of ended runs with their ledger entries, one case each." default:"0,100000,1000000,10000000"`
	Live      int           `help:"How many of the last case's runs go through the API; the others are written by the archive's own writer." default:"100000"`
	Customers int           `help:"Number of customers." default:"100000"`
	Active    int           `help:"Number of customers with runs." default:"10000"`
	Scrapers  int           `help:"Number of scrapers, spread evenly over all customers." default:"1000000"`
	Recipes   int           `help:"Number of different recipes of the scrapers." default:"1000"`
	Reads     int           `help:"Pages to read of each kind." default:"2000"`
	Rest      time.Duration `help:"Pause between writing and reading pages. ClickHouse merges what is ten minutes old." default:"0s"`
	WriteRate float64       `help:"Commands per second, alternating between times with and without a snapshot." default:"50"`
	Time      time.Duration `help:"Total duration of commands in each of these two cases." default:"60s"`
	Stores    []string      `help:"Row stores: sqlite, clickhouse." default:"sqlite"`
	Profile   string        `help:"Directory for profiles of the service: its heap in each case, its CPU in each restart." placeholder:"DIR" type:"path"`

	ClickhouseURL string `help:"ClickHouse: http://HOST:PORT/. The benchmark creates its own database there and removes it." env:"CLICKHOUSE_URL" placeholder:"URL" secret:"url"`
}

// Help returns the help text.
func (*History) Help() string {
	return `A state with all customers and scrapers is restored into a fresh 'shoal serve' whose row store has the ended runs (--runs).
The state keeps the newest ten runs and entries of each customer, as if the runs had left it one by one, and an unread
notice of each run of the last 90 days. One customer has a hundredth of all runs. Then the process is killed and restarted,
and the time until it is ready is measured. The live heap is read after a collection, once background work is done with the
runs. One reader reads pages of random customers one at a time: the newest page by number, any other page by number, and all
pages of a customer by cursor. Commands that replace a group, of several customers in turn, are sent when they are due, as
in 'shoal bench api'. About every 20 seconds a snapshot is written. Seconds with and without a snapshot are reported
separately. Both come from one process in alternation, so that other load on the machine affects both alike.

Example: shoal bench history --runs 0,10000 --live 1000 --customers 1000 --active 100 --scrapers 10000`
}

// Aims of the measure.
const (
	historyHeap    = 3_000       // MB of live heap
	historyPart    = 200         // MB of it due to the runs, besides their notices
	snapshotDelay  = 20          // ms by which snapshots delay a command at p99.9
	historyRestart = 15          // s to ready
	newestPage     = 20          // ms, p99
	laterPage      = 50          // ms, p99
	snapshotNever  = 100_000_000 // entries
	snapshotUsual  = 0           // the service's own default
	commandTurn    = time.Second // at most, or a quarter of --time
	snapshotTurn   = 20          // of these, between the starts of two snapshots
	turnsWithin    = 20 * time.Minute
	historyKeep    = 10
	liveAtOnce     = 64
	liveWithin     = 2 * time.Hour
)

func (m *History) check() error {
	if err := positive(map[string]int{"customers": m.Customers, "scrapers": m.Scrapers,
		"recipes": m.Recipes, "reads": m.Reads}); err != nil {
		return err
	}
	if err := positive(map[string]time.Duration{"time": m.Time}); err != nil {
		return err
	}
	if !(m.WriteRate > 0) {
		return fmt.Errorf("--write-rate: %w: want more than 0", ErrFlags)
	}
	if m.Active < 2 || m.Active > m.Customers || m.Scrapers < m.Customers {
		return fmt.Errorf("--active: %w: want 2 to --customers, of which each has a scraper",
			ErrFlags)
	}
	for _, runs := range m.Runs {
		if err := notNegative(map[string]int{"runs": runs}); err != nil {
			return err
		}
	}
	last := len(m.Runs) - 1
	if last < 0 || m.Live < 0 || m.Live > m.Runs[last] ||
		m.Live > m.Active*(m.Scrapers/m.Customers) {
		return fmt.Errorf("--live: %w: want 0 to the last of --runs, and at most one of each "+
			"scraper of --active", ErrFlags)
	}
	for _, store := range m.Stores {
		if store != "sqlite" && store != "clickhouse" {
			return fmt.Errorf("--stores: %w: want sqlite or clickhouse", ErrFlags)
		}
		if store == "clickhouse" && m.ClickhouseURL == "" {
			return fmt.Errorf("--clickhouse-url: %w: want the server that is meant", ErrFlags)
		}
	}
	return nil
}

// Measure measures all cases on all stores.
func (m *History) Measure(ctx context.Context, on *Bench, report *Report) (err error) {
	if err := m.check(); err != nil {
		return err
	}
	web, err := on.startWeb(ctx, page.Web(m.Scrapers))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, web.stop()) }()
	for _, store := range m.Stores {
		c := &historyCase{History: m, on: on, report: report, web: web, storeName: store}
		c.states = report.table(fmt.Sprintf("%s scrapers of %s customers, runs of %s customers, "+
			"on %s:", thousands(strconv.Itoa(m.Scrapers)), thousands(strconv.Itoa(m.Customers)),
			thousands(strconv.Itoa(m.Active)), store), "ended runs", "live heap, MB",
			"resident, MB", "snapshot, MB", "snapshot written in, s", "restart to ready, s",
			"CPU of it, s", "archive, MB")
		c.pages = report.table("Pages of 20, and of 100 by cursor, one at a time, on "+store+":",
			"ended runs, page", "pages", "p50, ms", "p99, ms", "longest, ms")
		c.commands = report.table("Commands at "+figure(m.WriteRate)+" a second, on "+store+":",
			"ended runs", "commands", "p50, ms", "p99, ms", "p99.9, ms", "longest, ms")
		for i, runs := range m.Runs {
			c.runs, c.live = runs, 0
			if i == len(m.Runs)-1 {
				c.live = m.Live
			}
			if err := c.measure(ctx); err != nil {
				return fmt.Errorf("%d runs on %s: %w", runs, store, err)
			}
		}
		c.judge()
	}
	return nil
}

// historyCase is one number of runs on one store.
type historyCase struct {
	*History
	on        *Bench
	report    *Report
	web       *web
	storeName string
	runs      int // all
	live      int // of them, launched through the API

	states, pages, commands *Table
	points                  []historyPoint

	data     string
	database string // on ClickHouse, "": SQLite
	ops      string // HOST:PORT
	scrapers func(customer, scraper int) ids.ID
	notices  float64 // MB of the state, packed
}

// historyPoint is the result of one case.
type historyPoint struct {
	runs                         int
	heap, snapshot, snapshotSecs float64 // MB, MB, s
	history                      float64 // MB of heap before any run went through the API
	notices                      float64 // MB of it
	ready                        float64 // s
	newest, later                float64 // ms, p99
	aloneP999, snapshotsP999     float64 // ms
}

func (c *historyCase) measure(ctx context.Context) (err error) {
	if c.data, err = c.on.directory("history"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.data)) }()
	if c.storeName == "clickhouse" {
		c.database = "bench_" + ids.Random{Now: time.Now}.New().String()
		defer func() {
			err = errors.Join(err, dropDatabase(context.WithoutCancel(ctx), c.ClickhouseURL,
				c.database))
		}()
	}
	if c.ops, err = freePort(); err != nil {
		return err
	}
	made, err := c.fill(ctx)
	if err != nil {
		return err
	}
	if err := c.restore(ctx, made); err != nil {
		return err
	}
	return c.look(ctx)
}

// fill makes the archive, and the state as a file, whose path it returns.
func (c *historyCase) fill(ctx context.Context) (backup string, err error) {
	addresses := make([]string, 0, c.Scrapers)
	for address := range c.web.URLs(c.Scrapers) {
		addresses = append(addresses, address)
	}
	c.on.Say("history: making %d scrapers", c.Scrapers)
	h, err := historytest.New(historytest.Config{Customers: c.Customers, Scrapers: c.Scrapers,
		Recipes: c.Recipes, Active: c.Active, Runs: c.runs - c.live, Keep: historyKeep,
		Address: func(n int) string { return addresses[n%len(addresses)] },
		Fields:  page.Fields(false), Shards: controlplane.Defaults().Shards, Now: time.Now()})
	if err != nil {
		return "", err
	}
	store, err := c.open(ctx)
	if err != nil {
		return "", err
	}
	begun, said := time.Now(), time.Now()
	err = h.Fill(ctx, store, func(runs int) {
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			c.on.Say("history: %d runs after %v", runs, said.Sub(begun).Round(time.Second))
		}
	})
	if err = errors.Join(err, store.Close()); err != nil {
		return "", err
	}
	c.report.note("%s: the archive took %s runs with their entries in %s s", c.storeName,
		thousands(strconv.Itoa(c.runs-c.live)), figure(time.Since(begun).Seconds()))
	c.scrapers = h.Scraper
	count, size := h.Notices()
	c.notices = float64(size) / 1e6
	c.report.note("%s, %s runs: %s notices of the last 90 days take %s MB of the state",
		c.storeName, thousands(strconv.Itoa(c.runs)), thousands(strconv.Itoa(count)),
		figure(c.notices))
	backup = filepath.Join(c.data, "state.backup")
	file, err := os.Create(backup)
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	return backup, errors.Join(h.Backup(file), file.Close())
}

func (c *historyCase) open(ctx context.Context) (rowstore.Store, error) {
	if c.database == "" {
		return sqlite.Open(sqlite.Config{Dir: filepath.Join(c.data, "rows")})
	}
	return clickhouse.Open(ctx, clickhouse.Config{URL: c.ClickhouseURL, Database: c.database,
		Node: "bench"})
}

// serve starts the service with these environment variables. It returns how long that took, and how
// much of it was processor time.
func (c *historyCase) serve(ctx context.Context, snapshots int, env ...string) (s *service, took,
	cpu time.Duration, err error) {
	args := append(unbounded(liveAtOnce), "--ops-listen", c.ops, "--ops-profiles",
		"--raft-snapshot-entries", strconv.Itoa(snapshots))
	if c.database != "" {
		at, err := url.Parse(c.ClickhouseURL)
		if err != nil {
			return nil, 0, 0, fmt.Errorf("bench: %w", err)
		}
		at.Path = "/" + c.database
		args = append(args, "--clickhouse-url", at.String())
	}
	begun := time.Now()
	if s, err = c.on.serve(ctx, c.data, env, []*web{c.web}, args...); err != nil {
		return nil, 0, 0, err
	}
	took = time.Since(begun)
	usage, err := s.Usage()
	return s, took, usage.CPU, err
}

// restore restores the state into a fresh service, and stops it.
func (c *historyCase) restore(ctx context.Context, backup string) error {
	s, _, _, err := c.serve(ctx, snapshotNever)
	if err != nil {
		return err
	}
	defer s.Kill()
	admin, err := s.admin(ctx)
	if err != nil {
		return err
	}
	file, err := os.Open(backup)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { _ = file.Close() }() // read-only
	c.on.Say("history: restoring the state")
	answer, err := admin.Do(ctx, http.MethodPost, "/api/admin/restore",
		url.Values{"force": {"true"}}, "application/octet-stream", file)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return errors.Join(answer.Body.Close(), os.Remove(backup))
}

// look starts the service again and measures it.
func (c *historyCase) look(ctx context.Context) error {
	point := historyPoint{runs: c.runs, notices: c.notices}
	snapshots := snapshotNever
	if c.live > 0 { // a restart replays no more entries than in a service that has grown
		snapshots = snapshotUsual
	}
	s, took, _, err := c.serve(ctx, snapshots)
	if err != nil {
		return err
	}
	defer func() { s.Kill() }()
	c.on.Say("history: ready after %v", took.Round(time.Millisecond))
	live, err := c.settleHeap(ctx)
	if err != nil {
		return err
	}
	point.history = float64(live) / 1e6
	if c.live > 0 {
		if err := c.runLive(ctx, s); err != nil {
			return err
		}
		if live, err = c.settleHeap(ctx); err != nil {
			return err
		}
		c.report.note("%s, %s runs: live heap was %s MB before the last %d went through the API",
			c.storeName, thousands(strconv.Itoa(c.runs)), figure(point.history), c.live)
	}
	usage, err := s.Usage()
	if err != nil {
		return err
	}
	if c.Profile != "" {
		name := fmt.Sprintf("%s-%d.heap", c.storeName, c.runs)
		if err := saveProfile(ctx, c.ops, "heap?gc=1", filepath.Join(c.Profile,
			name)); err != nil {
			return err
		}
	}
	if err := c.readPages(ctx, s, &point); err != nil {
		return err
	}
	s.Kill()
	if c.Profile != "" {
		if err := c.profileRestart(ctx); err != nil {
			return err
		}
	}
	again, took, cpu, err := c.serve(ctx,
		max(int(c.WriteRate*snapshotTurn*c.turn().Seconds()), 1))
	if err != nil {
		return err
	}
	s = again
	if err := c.sendCommands(ctx, s, &point); err != nil {
		return err
	}
	size, seconds, err := c.snapshots(ctx)
	if err != nil {
		return err
	}
	point.heap, point.snapshot, point.snapshotSecs = float64(live)/1e6, size/1e6, seconds
	point.ready = took.Seconds()
	c.points = append(c.points, point)
	c.states.add(thousands(strconv.Itoa(c.runs)), point.heap, float64(usage.Bytes)/1e6,
		point.snapshot, seconds, point.ready, cpu.Seconds(), c.archiveBytes()/1e6)
	return nil
}

// settleHeap returns the live heap in bytes, once background work is done with the runs.
func (c *historyCase) settleHeap(ctx context.Context) (int64, error) {
	if err := c.settleWork(ctx); err != nil {
		return 0, err
	}
	return heap(ctx, c.ops)
}

// profileRestart starts the service once more and stops it cleanly: a killed process leaves no CPU
// profile.
func (c *historyCase) profileRestart(ctx context.Context) error {
	name := fmt.Sprintf("%s-%d.cpu", c.storeName, c.runs)
	s, _, _, err := c.serve(ctx, snapshotNever, "SHOAL_CPUPROFILE="+filepath.Join(c.Profile, name))
	if err != nil {
		return err
	}
	_, err = s.Stop(stopWithin)
	return err
}

// archiveBytes is the size of SQLite's file.
func (c *historyCase) archiveBytes() float64 {
	info, err := os.Stat(filepath.Join(c.data, "rows", "rows.db"))
	if err != nil {
		return math.NaN() // another store
	}
	return float64(info.Size())
}

// judge compares the last case with the aims.
func (c *historyCase) judge() {
	r, last := c.report, c.points[len(c.points)-1]
	named := func(what string) string {
		return fmt.Sprintf("%s, %s runs: %s", c.storeName, thousands(strconv.Itoa(last.runs)), what)
	}
	r.atMost(named("live heap"), last.heap, historyHeap, "MB")
	if first := c.points[0]; first.runs == 0 && last.runs > 0 {
		r.atMost(named("history's part of it, without notices"),
			last.heap-first.heap-last.notices, historyPart, "MB")
	}
	r.atMost(named("what a snapshot delays commands by, p99.9"),
		max(last.snapshotsP999-last.aloneP999, 0), snapshotDelay, "ms")
	r.atMost(named("restart to ready"), last.ready, historyRestart, "s")
	if last.runs > 0 {
		r.atMost(named("newest page of history or ledger, p99"), last.newest, newestPage, "ms")
		r.atMost(named("later page of history or ledger, p99"), last.later, laterPage, "ms")
	}
	r.picture("history-"+c.storeName+".svg", historyChart(r, c.storeName, c.points))
}
