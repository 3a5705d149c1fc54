package simulation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/controlplane/internal/steps"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

var (
	seeds = flag.Int("seeds", 1_500, "how many seeds the simulation runs")
	first = flag.Uint64("first", 0, "the first seed")
)

// check checks what must hold after every step.
func (w *world) check() error {
	if err := w.checkTime(); err != nil {
		return err
	}
	view := w.machine.Store().View()
	held, free, out := map[string]int64{}, map[string]int64{}, map[string]uint32{}
	for _, open := range w.openJobs() {
		var reserved int64
		for _, o := range open.run.Out {
			reserved += o.Money()
			free[open.job.Customer] += int64(o.Free)
			out[open.job.Customer]++
			if o.Grant == 0 || o.Free > o.Grant {
				return fmt.Errorf("out with grant %d and %d free", o.Grant, o.Free)
			}
		}
		if reserved != open.run.Reserved {
			return fmt.Errorf("run %s holds %d, its out set %d", open.job.ID, open.run.Reserved,
				reserved)
		}
		held[open.job.Customer] += reserved
		if limit := open.job.MaxCharge; limit != nil && open.job.Charged+reserved > *limit {
			return fmt.Errorf("run %s: charged %d and reserved %d are over the cap %d", open.job.ID,
				open.job.Charged, reserved, *limit)
		}
	}
	books := view.Books()
	money := books.Revenue + books.Adjustments + books.Clearing + books.Unmatched
	requests := books.FreeIssued + books.FreeUsed
	for _, wallet := range view.Wallets() {
		if wallet.Reserved != held[wallet.Customer] || wallet.FreeHeld != free[wallet.Customer] ||
			wallet.Out != out[wallet.Customer] {
			return fmt.Errorf("wallet %+v: the out sets hold %d, %d free requests, %d seqs", wallet,
				held[wallet.Customer],
				free[wallet.Customer], out[wallet.Customer])
		}
		if wallet.Available < 0 || wallet.Free < 0 {
			return fmt.Errorf("wallet %+v is below zero", wallet)
		}
		if err := w.checkEntries(view, wallet); err != nil {
			return err
		}
		if daily := view.Daily(wallet.Customer); daily != nil {
			if err := checkDaily(daily); err != nil {
				return err
			}
		}
		money += wallet.Available + wallet.Reserved
		requests += wallet.Free + wallet.FreeHeld
	}
	if money != 0 || requests != 0 {
		return fmt.Errorf("postings sum to %d micros and %d free requests", money, requests)
	}
	return nil
}

// checkDaily: no daily limit is exceeded, whatever happens to what is out.
func checkDaily(d *state.Daily) error {
	var reads uint32
	for _, domain := range d.Domains {
		if reads += domain.Reads; domain.Reads > limits.PerDomain {
			return fmt.Errorf("a domain is read too often: %+v", d)
		}
	}
	if d.Reads != reads || d.Reads > limits.Reads || d.Uncharged+d.Out > limits.Uncharged {
		return fmt.Errorf("daily limits are overshot: %+v", d)
	}
	return nil
}

// checkEntries checks a wallet against its entries: prefix sums, open accruals, and no more pages
// than delivered units. The wallet has the sum of those in the archive.
func (w *world) checkEntries(view *state.View, wallet *state.Wallet) error {
	sum, balance := wallet.ArchivedSum, wallet.ArchivedSum
	bySequence := map[uint64]*state.Entry{}
	var failed error
	view.Entries(wallet.Customer, func(e *state.Entry) bool {
		if e.Status == state.EntryOpen || e.Sequence > wallet.Archived {
			balance += e.Amount
		}
		if e.Status != state.EntryOpen {
			bySequence[e.Sequence] = e
		}
		if e.Type != state.EntryCharge {
			return true
		}
		job, err := w.job(e.Job)
		if err != nil {
			failed = err
			return false
		}
		var amount int64
		for _, line := range e.Lines {
			amount += line.Amount
			// Stored pages that cost more than the restored wallet has are charged only what it
			// has.
			if cost := int64(line.Pages) * line.UnitPrice; line.Amount != -cost &&
				!(w.restored && -line.Amount < cost) {
				failed = fmt.Errorf("line %+v of job %s", line, job.ID)
			}
		}
		if amount != e.Amount || -amount != job.Charged {
			failed = fmt.Errorf("entry %+v does not fit job %+v", e, job)
		}
		if int(job.Delivered) > len(w.delivered[job.ID]) {
			failed = fmt.Errorf("job %s was charged for %d pages, %d units were delivered", job.ID,
				job.Delivered, len(w.delivered[job.ID]))
		}
		return true
	})
	for n := wallet.Archived + 1; n <= wallet.Sequence; n++ {
		e := bySequence[n]
		if e == nil {
			return fmt.Errorf("wallet %s: entry %d of the seal order is missing", wallet.Customer,
				n)
		}
		if sum += e.Amount; e.BalanceAfter != sum {
			return fmt.Errorf("entry %+v: the prefix sum is %d", e, sum)
		}
	}
	if sum != wallet.Sealed || balance != wallet.Balance() {
		return fmt.Errorf("wallet %+v: sealed entries sum to %d, all to %d", wallet, sum, balance)
	}
	return failed
}

// simulate runs one seed with one kind of faults.
func simulate(seed uint64, faults string) (again int, err error) {
	w, err := newWorld(seed)
	if err != nil {
		return 0, err
	}
	w.lossy, w.harmed = faults == "hard" && seed%8 == 0, faults == "hard"
	for _, truth := range append([]*runTruth(nil), w.runs...) {
		if w.r.IntN(3) > 0 {
			if err := w.launch(truth); err != nil {
				return 0, err
			}
		}
	}
	for range 20 + w.r.IntN(300) {
		if err := w.step(); err != nil {
			return 0, err
		}
		if faults == "" || w.r.IntN(8) > 0 {
			continue
		}
		harm := map[string]func() error{"mild": w.mild, "receipts": w.loseReceipts, "hard": w.fault,
			"restore": w.restore}[faults]
		if err := harm(); err != nil {
			return 0, err
		}
		if err := w.check(); err != nil {
			return 0, err
		}
	}
	for _, truth := range append([]*runTruth(nil), w.runs...) {
		if err := w.launch(truth); err != nil {
			return 0, err
		}
	}
	if err := w.finish(); err != nil {
		return 0, err
	}
	return w.verify(faults)
}

// finish takes all runs to their end, without faults.
func (w *world) finish() error {
	w.stalled, w.harmed = false, false
	for n := 0; len(w.machine.Store().View().OpenJobs()) > 0; n++ {
		if n == 100_000 {
			return fmt.Errorf("never ends: %+v", w.openJobs())
		}
		if err := w.step(); err != nil {
			return err
		}
	}
	left := w.leader.Dispatcher.Stats()
	if left.Out != 0 || left.Aside != 0 || left.Hosts != 0 || left.Runs != 0 {
		return fmt.Errorf("all has ended, and the dispatcher has %+v", left)
	}
	return w.archiveAll()
}

// verify checks the end of every run against the truth.
func (w *world) verify(faults string) (again int, err error) {
	if err := w.verifyHistory(); err != nil {
		return 0, err
	}
	for _, truth := range w.runs {
		job, err := w.job(truth.job)
		if err != nil || job == nil {
			return 0, fmt.Errorf("run %s is gone: %w", truth.job, err)
		}
		if err := w.verifyRun(job, truth); err != nil {
			return 0, fmt.Errorf("job %+v: %w", job, err)
		}
	}
	costs := faults == "hard" || faults == "restore"
	if !costs {
		for job, records := range w.store.records {
			for unit, page := range records {
				if page.Code == "attempts_exhausted" {
					return 0, fmt.Errorf("job %s gave up %v, and nothing was lost", job, unit)
				}
			}
		}
	}
	for key, times := range w.fetched {
		again += times - 1
		if !costs && times > 1+w.cut[key] {
			return 0, fmt.Errorf("%v was fetched %d times", key, times)
		}
	}
	return again, nil
}

func (w *world) verifyRun(job *state.Job, truth *runTruth) error {
	var delivered, errored, items uint64
	for _, record := range w.store.records[job.ID] {
		if record.Outcome == model.Delivered {
			delivered++
			items += uint64(len(record.Rows))
		} else {
			errored++
		}
	}
	if delivered != job.Delivered || delivered+errored != job.Pages || items != job.Items {
		return fmt.Errorf("records: %d delivered, %d errored, %d rows", delivered, errored, items)
	}
	wallet := w.machine.Store().View().Wallet(job.Customer)
	if wallet.Reserved != 0 || wallet.FreeHeld != 0 || wallet.Out != 0 {
		return fmt.Errorf("wallet still holds something: %+v", wallet)
	}
	if err := w.recount(job); err != nil {
		return err
	}
	if job.State == model.Stopped || job.Message != "" && job.Pages == 0 {
		return nil
	}
	errors := uint32(0)
	for seq, l := range truth.links {
		last, err := w.verifyChain(job.ID, uint32(seq), l)
		if err != nil {
			return err
		}
		if last.Outcome == model.Errored {
			errors++
		}
	}
	if job.Errors != errors || job.Success+job.Errors != job.Links {
		return fmt.Errorf("want %d failed links", errors)
	}
	return nil
}

// recount checks a run's entry against its page records: the charge per price row, and no free
// request where only money pays.
func (w *world) recount(job *state.Job) error {
	entry, err := w.entryOf(job)
	if err != nil {
		return err
	}
	quantity := map[string]int64{}
	for _, record := range w.store.records[job.ID] {
		if record.Outcome == model.Delivered && record.Quantity > 0 {
			quantity[record.PriceRow] += int64(record.Quantity)
			if err := w.rightRow(job, record); err != nil {
				return err
			}
		}
	}
	for _, line := range entry.Lines {
		if int64(line.Pages+line.FreePages+line.Unbilled) != quantity[line.RowKey] ||
			line.FreePages > 0 && job.Charge.PaidOnly {
			return fmt.Errorf("line %+v, the records have %v", line, quantity)
		}
		delete(quantity, line.RowKey)
	}
	if len(quantity) > 0 {
		return fmt.Errorf("not in the entry: %v", quantity)
	}
	return nil
}

// rightRow checks that a page is charged by the row of its host's domain, whichever leader
// dispatched it. Without one its tier's row counts. An endpoint's row has precedence.
func (w *world) rightRow(job *state.Job, record *model.Page) error {
	host := w.truthOf(seqKey{job.ID, record.Unit.Seq}).host
	want := map[int]string{1: "domain:h1", 2: "domain:h2"}[host]
	ok := record.PriceRow == want || want == "" && strings.HasPrefix(record.PriceRow, "tier:")
	if job.Charge.Row != "" {
		ok = ok || record.PriceRow == job.Charge.Row
	}
	if !ok {
		return fmt.Errorf("unit %v of host %d is charged under %q", record.Unit, host,
			record.PriceRow)
	}
	return nil
}

// verifyChain checks the records of one seq of a completed run against the truth. They must be all
// pages up to the chain's end, each by any fetch, and none behind it.
func (w *world) verifyChain(job ids.ID, seq uint32, l link) (last *model.Page, err error) {
	records := w.store.records[job]
	unit := model.Unit{Seq: seq}
	for last = records[unit]; last != nil && !last.Last; last = records[unit] {
		unit.Page++
	}
	if last == nil {
		return nil, fmt.Errorf("unit %v is missing", unit)
	}
	if exhausted := last.Code == "attempts_exhausted"; !exhausted && !l.changing &&
		int(unit.Page)+1 != l.pages {
		return nil, fmt.Errorf("link %d has %d pages, want %d", seq, unit.Page+1, l.pages)
	}
	for other := range records {
		if other.Seq == seq && other.Page > unit.Page {
			return nil, fmt.Errorf("a record stands behind the end of link %d", seq)
		}
	}
	return last, nil
}

// TestProtocol checks the promise of the architecture: whatever is lost, every run ends exactly, by
// markers alone.
func TestProtocol(t *testing.T) {
	count := *seeds
	if testing.Short() {
		count = min(count, 500)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var next, again atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !t.Failed() {
				n := next.Add(1) - 1
				if n >= int64(count) {
					return
				}
				seed := *first + uint64(n)
				for _, faults := range []string{"", "mild", "receipts", "restore", "hard"} {
					if faults == "restore" && seed%10 > 0 { // it writes and reads whole states
						continue
					}
					more, err := simulate(seed, faults)
					if err != nil {
						t.Errorf("seed %d, faults %q: %v", seed, faults, err)
					}
					again.Add(int64(more))
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d seeds exact; %d pages fetched again under faults", count, again.Load())
}

// TestPlannedMovesAreNoAttempts hands every shard over more often than a dispatch may be lost,
// while nobody begins a task.
func TestPlannedMovesAreNoAttempts(t *testing.T) {
	for seed := range uint64(50) {
		w, err := newWorld(seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, truth := range append([]*runTruth(nil), w.runs...) {
			if err := w.launch(truth); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 * steps.MaxAttempts {
			if err := w.moveAll(); err != nil {
				t.Fatal(err)
			}
		}
		for n := 0; len(w.machine.Store().View().OpenJobs()) > 0; n++ {
			if err := w.step(); err != nil || n == 100_000 {
				t.Fatalf("seed %d does not end: %v", seed, err)
			}
		}
		if _, err := w.verify("planned"); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// moveAll sends out what it can, hands all shards over, and returns the markers.
func (w *world) moveAll() error {
	ctx := context.Background()
	_, failed := w.leader.Read(ctx)
	_, err := w.leader.Extend(ctx)
	failed = errors.Join(failed, err)
	for s := range shards {
		for n := 0; n < 50 && failed == nil; n++ { // the log is full now and then
			_, err := w.leader.Publish(ctx, s)
			failed = errors.Join(failed, err, w.readTask(s))
		}
		failed = errors.Join(failed, w.handOver(s))
		for n := 0; n < 50 && failed == nil; n++ {
			failed = errors.Join(failed, w.readTask(s), w.ingest(s), w.bill(ctx, s))
		}
	}
	return failed
}
