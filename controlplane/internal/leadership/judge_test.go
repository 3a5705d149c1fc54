package leadership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
)

// records is a row store with the sums of runs, each run on one page.
type records map[ids.ID][]byte

func (r records) EachRecord(_ context.Context, job ids.ID,
	visit func(rowstore.Record) error) error {
	sums, known := r[job]
	if !known {
		return nil
	}
	items := uint32(0)
	if read, err := profile.Decode(sums); err == nil {
		items = uint32(read.Rows)
	}
	return visit(rowstore.Record{Outcome: model.Delivered, Items: max(items, 1), Sums: sums})
}

func (records) PastRuns(context.Context, rowstore.PastQuery) ([]rowstore.PastRecord, error) {
	return nil, nil
}

// hanging is a row store that does not answer.
type hanging struct{ records }

func (hanging) EachRecord(ctx context.Context, _ ids.ID, _ func(rowstore.Record) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// failing is a row store that cannot be reached.
type failing struct{ records }

func (failing) EachRecord(context.Context, ids.ID, func(rowstore.Record) error) error {
	return io.EOF
}

// A run is judged if its group wants that and all its pages have sums. It is compared with earlier
// complete runs of its scraper that are not held back.
func TestRunsAreJudged(t *testing.T) {
	now := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, source, store := clienttest.New(t, now), ids.Random{Now: now.Now}, records{}
	c.Must(t, client.OpenCustomer{Customer: "a", Entry: source.New()})
	c.Must(t, client.AdjustWallet{Customer: "a", Entry: source.New(), Amount: 1_000_000})
	put := client.PutGroup{Create: true, ID: source.New(), Customer: "a", Name: "g",
		DataTable: "t", StartType: "MANUAL"}
	c.Must(t, put)
	scraper := source.New()
	c.Must(t, client.PutScraper{Create: true, ID: scraper, Customer: "a", Group: put.ID,
		Spec: model.Scraper{Name: "s", Type: model.SingleProduct}})
	logger := slog.New(slog.DiscardHandler)
	j := judging{c.View, store, time.Minute, logger}
	run := func(rows int, price string) ids.ID {
		t.Helper()
		now.Advance(time.Second)
		launch := client.LaunchRun{Job: source.New(), Entry: source.New(), Customer: "a",
			Scraper: scraper, List: source.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
		c.Must(t, launch)
		c.Dispatch(t, launch.Job, 0)
		receipt := model.Receipt{Job: launch.Job, Outcome: model.Delivered, Last: true,
			PriceRow: "tier:plain", Quantity: 1, Items: uint32(rows)}
		if err := c.Settle(t.Context(), []model.Receipt{receipt}, nil); err != nil {
			t.Fatal(err)
		}
		var sums profile.Sums
		for range rows {
			sums.Add(fmt.Appendf(nil, `{"price":%s}`, price))
		}
		store[launch.Job] = sums.Append(nil)
		return launch.Job
	}
	judged := func(job ids.ID, want string) string {
		t.Helper()
		why, err := j.judge(t.Context(), c.View().Job(job))
		if err != nil || !strings.HasPrefix(why, want) || (want == "") != (why == "") {
			t.Errorf("judged %q, %v, want %q", why, err, want)
		}
		return why
	}
	for range 3 {
		job := run(100, "10")
		judged(job, "")
		c.CloseRun(t, job)
	}
	few := run(9, "10")
	judged(few, "") // its group does not want it
	put.Create, put.Quarantine = false, true
	c.Must(t, put)
	c.HoldRun(t, few, judged(few, "9 rows, where the last runs had 100 to 100"))
	again := run(9, "10") // held runs are not compared with
	c.HoldRun(t, again, judged(again, "9 rows"))
	if c.View().HeldRun(again) == nil {
		t.Error("it is not held")
	}
	cents := run(100, "1000")
	judged(cents, "price: the numbers are 1000 in the mean")
	store[cents] = nil // stored by an older version
	judged(cents, "")
	c.CloseRun(t, cents)
	gone := run(100, "10") // its records have expired: it is not compared with
	c.CloseRun(t, gone)
	delete(store, gone)
	cut := run(9, "10")
	c.HoldRun(t, cut, judged(cut, "9 rows, where the last runs had 100 to 100"))
	sound := run(110, "11")
	judged(sound, "")
	c.CloseRun(t, sound)
	// A rerun may have any number of rows, and later runs are not compared with it.
	left := run(1, "10")
	c.Spoil(t, func(tx *clienttest.Tx) {
		rerun := *tx.Job(left)
		rerun.Rest = true
		tx.PutJob(&rerun)
	})
	judged(left, "")
	c.CloseRun(t, left)
	extract := run(1, "10") // of kept bodies
	c.Spoil(t, func(tx *clienttest.Tx) {
		measured := *tx.Job(extract)
		measured.Rest, measured.File = true, true
		tx.PutJob(&measured)
	})
	c.HoldRun(t, extract, judged(extract, "1 rows, where the last runs had 100 to 110"))
	two := run(2, "10")
	c.HoldRun(t, two, judged(two, "2 rows, where the last runs had 100 to 110"))
	// A judgement that runs out of time is skipped. The end of the leadership and failures of the
	// row store are returned as errors.
	odd := run(9, "10")
	hangs := judging{c.View, hanging{}, time.Nanosecond, logger}
	if why, err := hangs.judgeInTime(t.Context(), c.View().Job(odd)); why != "" || err != nil {
		t.Errorf("a row store that hangs: %q, %v", why, err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if _, err := hangs.judgeInTime(over, c.View().Job(odd)); err == nil {
		t.Error("the leadership is over, and the run was judged")
	}
	fails := judging{c.View, failing{}, time.Minute, logger}
	if _, err := fails.judgeInTime(t.Context(), c.View().Job(odd)); !errors.Is(err, io.EOF) {
		t.Errorf("a row store that fails: %v", err)
	}
	if why, err := j.judgeInTime(t.Context(), c.View().Job(odd)); why == "" || err != nil {
		t.Errorf("in time: %q, %v", why, err)
	}
	c.CloseRun(t, odd)
	stopped := run(9, "10")
	c.Must(t, client.StopRun{Customer: "a", Job: stopped})
	judged(stopped, "")
	// If there is nothing to compare a run with, its records are not read.
	scraper = source.New()
	c.Must(t, client.PutScraper{Create: true, ID: scraper, Customer: "a", Group: put.ID,
		Spec: model.Scraper{Name: "t", Type: model.SingleProduct}})
	first := run(9, "10")
	if why, err := fails.judgeInTime(t.Context(), c.View().Job(first)); why != "" || err != nil {
		t.Errorf("the first run of a scraper: %q, %v", why, err)
	}
}

// The reason for holding a run back has a bounded length, whatever its fields are called.
func TestOdditiesInWords(t *testing.T) {
	if got := inWords(nil); got != "" {
		t.Errorf("nothing is odd, in words: %q", got)
	}
	odd := []profile.Oddity{{Aspect: profile.RowCount, Text: "2 rows"}}
	for range toldOddities {
		odd = append(odd, profile.Oddity{Aspect: profile.Values, Text: "high",
			Field: "a\n\u202e\u200b\u2028" + strings.Repeat("ö", 60) + "\xff"})
	}
	got := inWords(odd)
	if !strings.HasPrefix(got, "2 rows; aö") || !strings.HasSuffix(got, "ö: high; and 1 more") ||
		strings.Contains(got, "\n") || !utf8.ValidString(got) ||
		strings.Count(got, "ö") != 39*(toldOddities-1) {
		t.Errorf("in words: %q", got)
	}
}
