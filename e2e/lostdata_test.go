package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

const (
	lostHosts, lostPages = 10, 12 // per host
	// lostFiles are the backup's files.
	lostFile, lostRows = "shoal.backup", "shoal.backup.rows"
)

// lost is a product whose whole past is in the row store's archive, and the truth about it.
type lost struct {
	*service
	dir    string // of the backup
	runs   []suite.Launched
	truth  []recount.Reported // of runs
	ledger []recount.Transaction
	wallet recount.Wallet
}

// newLost makes runs and top-ups, and waits until the state has none of their history.
func newLost(t *testing.T) *lost {
	web := newWeb(t, synthweb.Config{Seed: 21, Hosts: lostHosts, PagesPerHost: 2 * lostPages,
		PageBytes: []int{2500}, Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 90},
			{Class: synthweb.NotFound, Weight: 5}, {Class: synthweb.Empty, Weight: 5}}})
	args := append(suite.Fast(), "--archive-every", suite.AtOnceEvery.String(), "--archive-keep",
		"0")
	l := &lost{service: newService(t, web, args...), dir: t.TempDir()}
	urls := slices.Collect(web.URLs(2 * lostHosts * lostPages))
	for half := range slices.Chunk(urls, lostHosts*lostPages) {
		l.Fill(l.Client, suite.Plenty)
		l.runs = append(l.runs, suite.ProductOrder(l.Client, half).Launch(t))
		l.truth = append(l.truth, l.report(l.runs[len(l.runs)-1]))
	}
	l.ledger = suite.Must(l.Ledger(t.Context()))(t)
	l.wallet = suite.Must(l.Wallet(t.Context()))(t)
	return l
}

func (l *lost) report(run suite.Launched) recount.Reported {
	l.T.Helper()
	return suite.Must(l.Report(suite.Within(l.T, suite.Patience), run))(l.T)
}

func (l *lost) file(name string) string { return filepath.Join(l.dir, name) }

// command runs a command on the data directory, whether or not a process serves it.
func (l *lost) command(ctx context.Context, args ...string) (string, error) {
	return process.Run(ctx, process.Config{Binary: binary(l.T), Data: l.data}, args...)
}

// dies starts a process that dies at a point of a backup or restore.
func (l *lost) dies(point, command string) {
	l.T.Helper()
	l.launch(l.T, crash.At+"="+point)
	if err := l.p.Ready(suite.Within(l.T, suite.ReadyWithin)); err != nil {
		l.T.Fatal(err)
	}
	ctx := suite.Within(l.T, suite.Patience)
	if _, err := l.command(ctx, "cluster", command, l.file(lostFile)); err == nil {
		l.T.Fatalf("the process survives %s", point)
	}
	<-l.p.Ended()
}

// putRows puts the backup's rows into the data directory; with a point the command dies there.
func (l *lost) putRows(point string) {
	l.T.Helper()
	config := process.Config{Binary: binary(l.T), Data: l.data}
	if point != "" {
		config.Env = []string{crash.At + "=" + point}
	}
	_, err := process.Run(suite.Within(l.T, suite.Patience), config, "cluster", "restore-rows",
		l.file(lostRows))
	if (err == nil) != (point == "") {
		l.T.Errorf("killed at %q: %v", point, err)
	}
	_, err = os.Stat(filepath.Join(l.data, rowsDir, "rows.db"))
	if there := err == nil; there != (point != "rowstore.before_place") {
		l.T.Errorf("killed at %q, there are rows: %v", point, there)
	}
}

// backUp makes the backup once all history has left the state.
func (l *lost) backUp() {
	l.T.Helper()
	for ctx := suite.Within(l.T, suite.Patience); ; {
		suite.Must(l.command(ctx, "cluster", "backup", "--force", l.file(lostFile)))(l.T)
		if l.dropped() {
			return
		}
	}
}

// dropped says whether the backup's state is without history: a product with no rows cannot read
// it.
func (l *lost) dropped() bool {
	l.T.Helper()
	empty := &lost{service: &service{single: newSingle(l.T, l.Args)}, dir: l.dir}
	empty.Service = &suite.Service{T: l.T, Product: empty.single}
	empty.start()
	defer empty.single.Down(l.T)
	ctx := suite.Within(l.T, suite.Patience)
	if _, err := empty.command(ctx, "cluster", "restore", l.file(lostFile)); err == nil {
		l.T.Error("a backup is restored without its rows, and without force")
	}
	suite.Must(empty.command(ctx, "cluster", "restore", "--force", l.file(lostFile)))(l.T)
	empty.takeKey()
	return len(suite.Must(empty.Ledger(l.T.Context()))(l.T)) == 0
}

// takeKey has the process make a key that the restored state knows.
func (l *lost) takeKey() {
	l.T.Helper()
	l.single.Down(l.T)
	if err := os.Remove(filepath.Join(l.data, "api-key")); err != nil {
		l.T.Fatal(err)
	}
	l.start()
}

// lose loses the data directory: the next process starts in an empty one.
func (l *lost) lose() {
	l.T.Helper()
	l.p.Kill()
	<-l.p.Ended()
	l.data = l.T.TempDir()
}

// check compares everything with the truth.
func (l *lost) check() {
	t := l.T
	t.Helper()
	if diff := cmp.Diff(l.ledger, suite.Must(l.Ledger(t.Context()))(t)); diff != "" {
		t.Errorf("the ledger: %s", diff)
	}
	if diff := cmp.Diff(l.wallet, suite.Must(l.Wallet(t.Context()))(t)); diff != "" {
		t.Errorf("the wallet: %s", diff)
	}
	for i, run := range l.runs {
		if diff := cmp.Diff(l.truth[i], l.report(run)); diff != "" {
			t.Errorf("run %d, its rows and errors: %s", i, diff)
		}
	}
	if jobs, err := l.Jobs(t.Context(), ""); err != nil || len(jobs) != len(l.runs) {
		t.Errorf("the history has %d runs, want %d: %v", len(jobs), len(l.runs), err)
	}
	suite.CheckWallet(t, l.Client)
	runs, differ, err := l.Admin().RecountOfProduct(t.Context())
	if err != nil || runs != len(l.runs) || differ > 0 {
		t.Errorf("the product's own recount: %d of %d runs differ, %v", differ, runs, err)
	}
	out := suite.Must(l.command(suite.Within(t, suite.Patience), "audit", "verify"))(t)
	if !strings.Contains(out, "The chain holds: ") {
		t.Errorf("the trail: %s", out)
	}
}

// TestALostDataDirectoryComesBack makes a backup and loses the data directory. It puts the rows
// into an empty one, and then the state. Each step is killed in the middle and repeated. Ledger,
// history, rows, recount and trail are as they were, and work goes on.
func TestALostDataDirectoryComesBack(t *testing.T) {
	t.Parallel()
	l := newLost(t)
	ctx := suite.Within(t, suite.Patience)
	l.p.Kill()
	<-l.p.Ended()
	l.dies("rowstore.within_copy:2", "backup")
	if left := suite.Must(os.ReadDir(l.dir))(t); len(left) > 0 {
		t.Errorf("a backup that failed leaves %v", left)
	}
	l.start()
	l.backUp()
	extra := l.report(suite.Must(l.RunAgain(ctx, l.runs[0].ScraperID, true))(t))
	l.lose()

	for _, point := range []string{"rowstore.before_place", ""} {
		l.putRows(point)
	}
	if _, err := l.command(ctx, "cluster", "restore-rows", l.file(lostRows)); err == nil {
		t.Error("rows are put upon others")
	}
	l.dies("raft.after_restore", "restore")
	l.start()
	if _, err := l.command(ctx, "cluster", "restore-rows", l.file(lostRows)); err == nil {
		t.Error("rows are put under a process")
	}
	suite.Must(l.command(ctx, "cluster", "restore", l.file(lostFile)))(t)
	l.takeKey()
	l.check()
	if _, err := l.Entry(ctx, extra.Job.ID); err == nil {
		t.Error("a run after the backup is there")
	}
	l.Fill(l.Client, suite.Plenty)
	again := l.report(suite.Must(l.RunAgain(ctx, l.runs[0].ScraperID, true))(t))
	if len(again.Rows) != len(l.truth[0].Rows) {
		t.Errorf("the next run has %d rows, want %d", len(again.Rows), len(l.truth[0].Rows))
	}
	l.CheckBooks()
}
