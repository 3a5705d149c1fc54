package suite

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// Parameters of a Past: pages of its runs. Their hosts' pace leaves time to hold the web in the
// middle of the long one.
const (
	pastHosts  = 20
	shortPages = 40
	longPages  = 300
	undoneRuns = 2 // with shortPages each
)

// PastWeb is the web of a Past.
func PastWeb() synthweb.Config {
	pages := longPages + (1+undoneRuns)*shortPages
	return synthweb.Config{Seed: 9, Hosts: pastHosts, PagesPerHost: pages / pastHosts,
		PageBytes:  []int{2500},
		MaxLatency: 20 * time.Millisecond,
		Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 90},
			{Class: synthweb.NotFound, Weight: 5}, {Class: synthweb.Empty, Weight: 5}}}
}

// PastArgs are its product's flags. Frequent markers soon find what was out at the backup.
func PastArgs() []string {
	return []string{"--host-rate", "3", "--max-host-rate", "3", "--marker-every", "500ms"}
}

// Past is a product that went on after a backup. By then one run had ended, and one was in the
// middle. Since the backup, money was paid in and other runs were launched and ended.
type Past struct {
	*Service
	file   string // the backup
	ended  pastRun
	open   pastRun
	truth  recount.Reported // of the run that had ended
	undone []Launched
}

type pastRun struct {
	Order
	Launched
}

// NewPast makes the backup and what follows it, with the command line and the API.
func NewPast(s *Service) *Past {
	t := s.T
	t.Helper()
	p := &Past{Service: s, file: filepath.Join(t.TempDir(), "shoal.backup")}
	urls := slices.Collect(s.Web.URLs(longPages + (1+undoneRuns)*shortPages))
	launch := func(pages int) (run pastRun) {
		run.Order = ProductOrder(s.Client, urls[:pages])
		urls = urls[pages:]
		run.Launched = run.Launch(t)
		return run
	}
	s.Fill(s.Client, Plenty)
	p.ended = launch(shortPages)
	p.truth = Must(s.Report(Within(t, Patience), p.ended.Launched))(t)
	p.open = launch(longPages)
	Begun(t, s.Client, p.open.Launched, longPages/10)
	p.backUp()
	s.Fill(s.Client, Plenty)
	for range undoneRuns {
		run := launch(shortPages)
		Must(s.Report(Within(t, Patience), run.Launched))(t)
		p.undone = append(p.undone, run.Launched)
	}
	return p
}

// backUp makes the backup. The open run waits for its pages, however long the command takes.
func (p *Past) backUp() {
	p.T.Helper()
	defer p.Web.Hold()()
	Must(p.Command(Within(p.T, Patience), "cluster", "backup", p.file))(p.T)
	if job := Must(p.Job(p.T.Context(), p.open.Launched))(p.T); job.State != "RUNNING" {
		p.T.Fatalf("the run was over before the backup: %+v", job)
	}
}

// Restore restores the backup.
func (p *Past) Restore() error {
	_, err := p.Command(Within(p.T, Patience), "cluster", "restore", p.file)
	return err
}

// Restored says whether the state is the backup's: later payments are gone.
func (p *Past) Restored() bool {
	p.T.Helper()
	paid := 0
	for _, entry := range Must(p.Ledger(p.T.Context()))(p.T) {
		if entry.AmountMicros == Plenty {
			paid++
		}
	}
	return paid == 1
}

// Undone counts the runs that the product reports as undone by a restore, with stored data.
func (p *Past) Undone() int {
	p.T.Helper()
	var runs []struct{ Undone bool }
	err := p.Admin().Call(p.T.Context(), "POST", "/api/admin/billing/recount", nil, nil, &runs)
	if err != nil {
		p.T.Fatal(err)
	}
	undone := 0
	for _, run := range runs {
		if run.Undone {
			undone++
		}
	}
	return undone
}

// Check waits for the open run's end. Money, rows and recount must match the backup's ledger, to
// the page, and nobody reads a row of an undone run.
func (p *Past) Check() {
	t := p.T
	t.Helper()
	ended := Must(p.Report(Within(t, Patience), p.ended.Launched))(t)
	if diff := cmp.Diff(p.truth, ended); diff != "" {
		t.Errorf("the run that had ended: %s", diff)
	}
	open := Must(p.Report(Within(t, Patience), p.open.Launched))(t)
	expected := p.expected(p.open)
	expected.Free = 0 // the previous run used them
	t.Log(Check(t, expected, open))
	for _, run := range p.undone {
		if rows, err := p.Rows(t.Context(), run.JobID); err == nil && len(rows) > 0 {
			t.Errorf("%d rows of undone run %s are read", len(rows), run.JobID)
		}
	}
	CheckWallet(t, p.Client)
	wallet := Must(p.Wallet(t.Context()))(t)
	want := Plenty + ended.Entry.AmountMicros + open.Entry.AmountMicros
	if wallet.BalanceMicros != want {
		t.Errorf("the balance is %d, want %d", wallet.BalanceMicros, want)
	}
	runs, differ, err := p.Admin().RecountOfProduct(t.Context())
	if err != nil || runs != 2 || differ > 0 {
		t.Errorf("the product's own recount: %d of %d runs differ, %v", differ, runs, err)
	}
}

// CheckStored stops the product. Its row store must have the records of all runs; those of undone
// runs only while they are kept.
func (p *Past) CheckStored(kept bool) {
	t := p.T
	t.Helper()
	open := Must(p.Report(Within(t, Patience), p.open.Launched))(t)
	p.Down(t)
	open.Records = Must(p.Records(t.Context(), p.open.JobID))(t)
	expected := p.expected(p.open)
	expected.Free = 0
	Check(t, expected, open)
	p.truth.Records = Must(p.Records(t.Context(), p.ended.JobID))(t)
	Check(t, p.expected(p.ended), p.truth)
	for _, run := range p.undone {
		if records := Must(p.Records(t.Context(), run.JobID))(t); (len(records) > 0) != kept {
			t.Errorf("%d records of undone run %s are stored, want some: %v", len(records),
				run.JobID, kept)
		}
	}
}

// expected describes a run for the recount.
func (p *Past) expected(run pastRun) recount.Run {
	expected := p.Expected(run.Order)
	expected.Shared = true // the web's log does not say which run sent a request
	return expected
}

// testRestore restores a backup from the middle of a run, after that run and others have ended.
// Money, rows and recount are the backup's again, and undone data is kept for another restore.
func testRestore(t *testing.T, on Platform) {
	web := on.Web(t, PastWeb())
	p := NewPast(NewService(t, on, web, PastArgs()...))
	Must(p.Report(Within(t, Patience), p.open.Launched))(t)
	if p.Restored() {
		t.Fatal("there is nothing to undo")
	}
	if err := p.Restore(); err != nil {
		t.Fatal(err)
	}
	if !p.Restored() {
		t.Error("what was paid in after the backup is there")
	}
	p.Check()
	if undone := p.Undone(); undone != undoneRuns {
		t.Errorf("%d runs are undone, want %d", undone, undoneRuns)
	}
	p.CheckStored(true)
}
