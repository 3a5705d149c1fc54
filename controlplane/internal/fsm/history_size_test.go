package fsm

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// mostOfARun bounds what an ended run adds to a snapshot, in bytes, including its idempotency
// record.
const mostOfARun = 300

// TestEndedRunsAreSmall: runs of 16 scrapers, each with its own key, leave little in the state once
// they are archived. Of 3,000 runs a customer has 1,000 notices, of 900 one of each. The
// architecture gives the figures.
func TestEndedRunsAreSmall(t *testing.T) {
	t.Run("900", func(t *testing.T) {
		before, kept := measureRuns(t, 900)
		documented(t, "ended run takes %d bytes of a snapshot, of a customer with 900 runs", before)
		documented(t, "ended run that the archive has leaves %d bytes of a snapshot", kept)
	})
	t.Run("3000", func(t *testing.T) {
		_, kept := measureRuns(t, 3_000)
		documented(t, "Of a customer with 3,000 runs it leaves %d,", kept)
	})
}

// documented checks that the architecture gives a figure as it was measured.
func documented(t *testing.T, sentence string, figure int) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(sentence, figure)
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("docs/architecture.md does not say %q", want)
	}
}

// measureRuns returns what an ended run adds to a snapshot, before the archive has it and then.
func measureRuns(t *testing.T, runs int) (waiting, kept int) {
	const scrapers = 16
	d := newDefiner(t, command.Newest)
	customer, group := d.owner(1)
	d.must(command.AdjustWalletPayload{Customer: customer, Entry: d.id(), Amount: 1 << 40})
	d.must(command.PutPricesPayload{Rows: testPrices})
	var all []ids.ID
	for n := range scrapers {
		put := command.PutScraperPayload{Create: true, ID: d.id(), Customer: customer,
			Group: group, Spec: recipe(n)}
		put.Spec.Name = fmt.Sprintf("Shop number %d", n)
		d.must(put)
		all = append(all, put.ID)
	}
	before := d.snapshotBytes()
	for n := range runs {
		d.run(customer, all[n%scrapers], fmt.Sprintf("order-%024d", n))
	}
	whole := d.snapshotBytes()
	for more := true; more; {
		batch, err := archive.Next(d.m.Store().View(), 2_000)
		if err != nil {
			t.Fatal(err)
		}
		d.must(command.DropArchivedPayload{Generation: batch.Generation, From: batch.From,
			Upto: batch.Upto, Keep: 10})
		more = batch.More
	}
	after := d.snapshotBytes()
	waiting, kept = (whole-before)/runs, (after-before)/runs
	t.Logf("a run adds %d bytes to the snapshot, and %d before the archive has it", kept, waiting)
	if kept > mostOfARun {
		t.Errorf("a run adds %d bytes, at most %d", kept, mostOfARun)
	}
	return waiting, kept
}

func (d *definer) snapshotBytes() int {
	d.Helper()
	var written bytes.Buffer
	if err := d.m.Store().Snapshot().Write(&written); err != nil {
		d.Fatal(err)
	}
	return written.Len()
}

// run makes a run of one page, from its launch to its end.
func (d *definer) run(customer string, scraper ids.ID, key string) {
	d.Helper()
	d.end(d.launch(customer, scraper, key))
}

// launch begins a run of one page.
func (d *definer) launch(customer string, scraper ids.ID, key string) ids.ID {
	d.Helper()
	launch := command.LaunchRunPayload{Job: d.id(), Entry: d.id(), Customer: customer,
		Scraper: scraper, List: d.id(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	data, err := d.m.Encode(d.id(), int64(d.index), launch, &command.Call{Customer: customer,
		Operation: "svc_run_scraper", Key: key, Request: d.number})
	if err != nil {
		d.Fatal(err)
	}
	d.index++
	if result := d.m.Apply(d.index, data); result.Err != nil {
		d.Fatal(result.Err)
	}
	return launch.Job
}

// end delivers a run's page and closes it.
func (d *definer) end(job ids.ID) {
	d.Helper()
	d.must(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: job, Seqs: []uint32{0}}}})
	d.must(command.SettlePayload{Receipts: []model.Receipt{{Job: job, Outcome: model.Delivered,
		PriceRow: "tier:plain", Quantity: 1, Items: 12, Last: true}}})
	d.must(command.CloseRunPayload{Job: job})
}
