package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
	"shoal.dev/shoal/pkg/work"
)

// stored is a row store with the rows of runs, each run on one page.
type stored map[ids.ID]*storedRun

type storedRun struct {
	rows []json.RawMessage
	sums []byte // of the page's record
}

func (s stored) EachRecord(_ context.Context, job ids.ID,
	visit func(rowstore.Record) error) error {
	run, known := s[job]
	if !known {
		return nil
	}
	return visit(rowstore.Record{Outcome: model.Delivered, Items: uint32(len(run.rows)),
		Sums: run.sums})
}

// Scan returns the next two rows.
func (s stored) Scan(_ context.Context, q rowstore.ScanQuery) ([]json.RawMessage, int64, error) {
	rows := s[q.Scope.Jobs[0]].rows[q.After:]
	if len(rows) <= 2 {
		return rows, q.Upto, nil
	}
	return rows[:2], q.After + 2, nil
}

// hanging is a row store that does not answer.
type hanging struct{ stored }

func (hanging) EachRecord(ctx context.Context, _ ids.ID, _ func(rowstore.Record) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// failing is a row store that cannot be reached.
type failing struct{ stored }

func (failing) EachRecord(context.Context, ids.ID, func(rowstore.Record) error) error {
	return io.EOF
}

// judgedRuns makes runs of a scraper and judges them.
type judgedRuns struct {
	t       *testing.T
	clock   *clock.Manual
	client  *clienttest.Client
	ids     ids.Source
	stored  stored
	judging client.Judging
	group   client.PutGroup
	scraper ids.ID
}

func newJudgedRuns(t *testing.T) *judgedRuns {
	now := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	j := &judgedRuns{t: t, clock: now, client: clienttest.New(t, now),
		ids: ids.Random{Now: now.Now}, stored: stored{}}
	j.judging = client.Judging{Store: j.stored,
		History: client.NewHistory(&rowstoretest.Archive{}), Within: time.Minute,
		Logger: slog.New(slog.DiscardHandler)}
	j.client.Must(t, client.OpenCustomer{Customer: "a", Entry: j.ids.New()})
	j.client.Must(t, client.AdjustWallet{Customer: "a", Entry: j.ids.New(), Amount: 1_000_000})
	j.group = client.PutGroup{Create: true, ID: j.ids.New(), Customer: "a", Name: "g",
		DataTable: "t", StartType: "MANUAL"}
	j.client.Must(t, j.group)
	j.group.Create, j.group.Quarantine = false, true
	j.newScraper("s")
	return j
}

func (j *judgedRuns) newScraper(name string) {
	j.scraper = j.ids.New()
	j.client.Must(j.t, client.PutScraper{Create: true, ID: j.scraper, Customer: "a",
		Group: j.group.ID, Spec: model.Scraper{Name: name, Type: model.SingleProduct}})
}

// run makes a run whose rows differ in each of a dozen fields but the price.
func (j *judgedRuns) run(rows int, price string) ids.ID {
	return j.runOf(rows, 11, price)
}

// runOf makes a run whose rows differ in so many fields besides the price.
func (j *judgedRuns) runOf(rows, fields int, price string) ids.ID {
	j.t.Helper()
	j.clock.Advance(time.Second)
	launch := client.LaunchRun{Job: j.ids.New(), Entry: j.ids.New(), Customer: "a",
		Scraper: j.scraper, List: j.ids.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	j.client.Must(j.t, launch)
	j.client.Dispatch(j.t, launch.Job, 0)
	receipt := model.Receipt{Job: launch.Job, Outcome: model.Delivered, Last: true,
		PriceRow: "tier:plain", Quantity: 1, Items: uint32(rows)}
	if err := j.client.Settle(j.t.Context(), []model.Receipt{receipt}, nil); err != nil {
		j.t.Fatal(err)
	}
	run, sums := &storedRun{}, profile.Sums{}
	for n := range rows {
		row := fmt.Appendf(nil, `{"price":%s`, price)
		for field := range fields {
			row = fmt.Appendf(row, `,"field %03d":"%03d of %03d"`, field, n, field)
		}
		row = append(row, '}')
		sums.Add(row)
		run.rows = append(run.rows, row)
	}
	run.sums = sums.EncodePage()
	j.stored[launch.Job] = run
	return launch.Job
}

// judged judges a run and compares the beginning of the verdict.
func (j *judgedRuns) judged(job ids.ID, want string) string {
	j.t.Helper()
	view := j.client.View()
	verdict, err := j.judging.JudgeInTime(j.t.Context(), view, view.Job(job))
	why := verdict.Odd
	if err != nil || !strings.HasPrefix(why, want) || (want == "") != (why == "") {
		j.t.Errorf("judged %q, %v, want %q", why, err, want)
	}
	return why
}

// close judges a run as the leader does.
func (j *judgedRuns) close(job ids.ID, want string) {
	j.t.Helper()
	j.client.HoldRun(j.t, job, j.judged(job, want))
	if held := j.client.View().HeldRun(job) != nil; held != (want != "") {
		j.t.Errorf("held: %v", held)
	}
}

// A run is judged if its group wants that. It is compared with earlier complete runs of its scraper
// that are not held back.
func TestRunsAreJudged(t *testing.T) {
	j := newJudgedRuns(t)
	c := j.client
	for range 3 {
		j.close(j.run(100, "10"), "")
	}
	few := j.run(9, "10")
	j.judged(few, "") // its group does not want it
	c.Must(t, j.group)
	j.close(few, "9 rows, where the last runs had 100")
	j.close(j.run(9, "10"), "9 rows") // held runs are not compared with
	cents := j.run(100, "1000")
	j.judged(cents, "price: the numbers are 1000 in the mean")
	j.stored[cents].sums = nil // stored by an older version
	j.judged(cents, "price: the numbers are 1000 in the mean")
	c.CloseRun(t, cents)
	gone := j.run(100, "10") // its records have expired: it is not compared with
	c.CloseRun(t, gone)
	delete(j.stored, gone)
	j.close(j.run(9, "10"), "9 rows, where the last runs had 100")
	j.close(j.run(110, "11"), "")
	// A rerun may have any number of rows, and later runs are not compared with it.
	left := j.run(1, "10")
	c.Spoil(t, func(tx *clienttest.Tx) {
		rerun := *tx.Job(left)
		rerun.Rest = true
		tx.PutJob(&rerun)
	})
	j.close(left, "")
	extract := j.run(1, "10") // of kept bodies
	c.Spoil(t, func(tx *clienttest.Tx) {
		measured := *tx.Job(extract)
		measured.Rest, measured.File = true, true
		tx.PutJob(&measured)
	})
	j.close(extract, "1 row, where the last runs had 100 to 110")
	j.close(j.run(2, "10"), "2 rows, where the last runs had 100 to 110")
	stopped := j.run(9, "10")
	c.Must(t, client.StopRun{Customer: "a", Job: stopped})
	j.judged(stopped, "")
}

// Runs of a list that version 1 made are not compared with: each may be a rerun.
func TestListRunsOfVersion1(t *testing.T) {
	j := newJudgedRuns(t)
	j.client.Must(t, j.group)
	for range 3 {
		j.close(j.run(9, "10"), "")
	}
	whole := j.run(100, "10")
	j.judged(whole, "100 rows")
	j.client.Spoil(t, func(tx *clienttest.Tx) {
		upgraded, list := *tx.Cluster(), *tx.Scraper(j.scraper)
		upgraded.RestsFrom, list.ListRun = tx.Job(whole).Queued, true
		tx.PutCluster(&upgraded)
		tx.PutScraper(&list)
	})
	j.judged(whole, "")
}

// A page of hundreds of fields has no sums, so the rows are read.
func TestRowsAreJudged(t *testing.T) {
	j := newJudgedRuns(t)
	j.client.Must(t, j.group)
	for range 3 {
		job := j.runOf(15, 400, "10")
		if j.stored[job].sums != nil {
			t.Fatalf("%d bytes of sums", len(j.stored[job].sums))
		}
		j.close(job, "")
	}
	j.close(j.runOf(15, 400, "10"), "")
	j.close(j.runOf(15, 400, "1000"), "price: the numbers are 1000 in the mean")
}

// However many runs in a row are odd or stopped, the next odd one is held back. A run whose rows
// have expired is not compared with.
func TestOddRunsInARow(t *testing.T) {
	j := newJudgedRuns(t)
	j.client.Must(t, j.group)
	for range 3 {
		j.close(j.run(100, "10"), "")
	}
	for n := range 201 {
		job := j.run(9, "10")
		if n%2 == 0 {
			j.client.Must(t, client.StopRun{Customer: "a", Job: job})
			j.client.CloseRun(t, job)
			continue
		}
		j.client.HoldRun(t, job, "few rows")
	}
	last := j.run(9, "10")
	j.close(last, "9 rows, where the last runs had 100")
	j.client.Spoil(t, func(tx *clienttest.Tx) {
		tx.PutWork(&client.WorkItem{ID: j.ids.New(), Kind: work.Expire,
			Progress: rowstore.NoteExpiry(j.clock.Now())})
	})
	j.judged(j.run(9, "10"), "")
}

// A judgement that runs out of time is skipped. The end of the leadership and failures of the row
// store are returned as errors.
func TestJudgementsThatFail(t *testing.T) {
	j := newJudgedRuns(t)
	j.client.Must(t, j.group)
	for range 3 {
		j.close(j.run(100, "10"), "")
	}
	odd := j.run(9, "10")
	view := j.client.View()
	hangs := j.judging
	hangs.Store, hangs.Within = hanging{}, time.Nanosecond
	late := client.Verdict{Unjudged: "it was not compared with earlier runs: that took too long"}
	if got, err := hangs.JudgeInTime(t.Context(), view, view.Job(odd)); got != late || err != nil {
		t.Errorf("a row store that hangs: %+v, %v", got, err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if _, err := hangs.JudgeInTime(over, view, view.Job(odd)); err == nil {
		t.Error("the leadership is over, and the run was judged")
	}
	fails := j.judging
	fails.Store = failing{}
	if _, err := fails.JudgeInTime(t.Context(), view, view.Job(odd)); !errors.Is(err, io.EOF) {
		t.Errorf("a row store that fails: %v", err)
	}
	j.close(odd, "9 rows")
	// If there is nothing to compare a run with, its records are not read.
	j.newScraper("t")
	first := j.run(9, "10")
	view = j.client.View()
	got, err := fails.JudgeInTime(t.Context(), view, view.Job(first))
	if got != (client.Verdict{}) || err != nil {
		t.Errorf("the first run of a scraper: %+v, %v", got, err)
	}
}
