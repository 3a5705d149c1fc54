package fsm

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// deliver gives an honest receipt of a due page. Its tier is one that the dispatch allows; its row
// and quantity are the run's endpoint's. The reservation must cover it.
func (d *money) deliver(t *rapid.T) {
	job := d.pick(t)
	if job == nil {
		return
	}
	outs := d.outs(job.ID)
	if len(outs) == 0 {
		return
	}
	seq := rapid.SampledFrom(slices.Sorted(maps.Keys(outs))).Draw(t, "seq")
	out := outs[seq]
	receipt := model.Receipt{Job: job.ID, Unit: model.Unit{Seq: seq, Page: out.Start},
		Outcome: model.Delivered, Items: 1,
		Last: job.MaxPages == 1 || rapid.Bool().Draw(t, "last"),
		Next: &model.Continuation{Page: out.Start + 1, URL: "u"}}
	unpaid := out.Limited || job.Charge.PaidOnly && rapid.IntRange(0, 2).Draw(t, "unpaid") == 0
	if !unpaid {
		tier := rapid.SampledFrom(out.Tiers.Tiers()).Draw(t, "tier")
		receipt.PriceRow, receipt.Quantity = d.chargeAt(job, out.Domain).Of(tier)
	}
	row, _ := d.pricesOf(job).Rows.Row(receipt.PriceRow)
	d.receipts = append(d.receipts, receipt)
	d.settled(receipt)
	want, line := row.Micros*int64(receipt.Quantity), d.line(job.ID, receipt.PriceRow)
	switch {
	case unpaid:
	case out.Unbilled || d.off():
		want = 0
		line.Unbilled += uint64(receipt.Quantity)
	case out.Free > 0:
		want = 0
		line.FreePages++
	default:
		line.Pages += uint64(receipt.Quantity)
		line.Amount -= want
	}
	if !unpaid {
		d.lines[job.ID][receipt.PriceRow] = line
	}
	d.must(t, command.SettlePayload{Receipts: []model.Receipt{receipt}})
	if after := d.m.Store().View().Job(job.ID); after.Charged-job.Charged != want ||
		after.Delivered != job.Delivered+1 {
		t.Fatalf("%+v of %+v cost %d, want %d", receipt, out, after.Charged-job.Charged, want)
	}
}

// line returns the sum of a job's honest receipts for a price row.
func (d *money) line(job ids.ID, row string) state.Line {
	if d.lines[job] == nil {
		d.lines[job] = map[string]state.Line{}
	}
	return d.lines[job][row]
}

func (d *money) settled(receipt model.Receipt) {
	if d.delivered[receipt.Job] == nil {
		d.delivered[receipt.Job] = map[model.Unit]bool{}
	}
	d.delivered[receipt.Job][receipt.Unit] = true
}

// covers checks that a page's reservation covers every tier that its dispatch allows. It also
// checks that jobs with only honest receipts have the right entries.
func (d *money) covers(t *rapid.T) {
	view := d.m.Store().View()
	for _, id := range d.jobs {
		job := view.Job(id)
		for seq, o := range d.outs(id) {
			if int(o.Domain) > len(d.pricesOf(job).Rows.Domains()) {
				t.Fatalf("seq %d is out at a price that %+v has not: %+v", seq, job, o)
			}
			if !o.Limited && (o.Tiers == 0 || o.Tiers&^job.Tiers != 0) {
				t.Fatalf("seq %d of %+v is out by the tiers %s", seq, job, o.Tiers)
			}
			for _, tier := range o.Tiers.Tiers() {
				price, _ := d.pricesOf(job).Rows.Page(tier, d.chargeAt(job, o.Domain))
				if !o.Limited && !o.Unbilled && price > o.Price {
					t.Fatalf("%d are held for a page that costs %d by %s: %+v", o.Price, price,
						tier, job)
				}
			}
		}
		if d.dishonest[id] {
			continue
		}
		entry := view.Entry(job.Entry)
		if entry == nil && job.Trial() && job.Closed && job.Delivered == 0 {
			entry = &state.Entry{} // nothing delivered, no entry
		}
		for _, line := range entry.Lines {
			want := d.line(id, line.RowKey)
			if line.Pages != want.Pages || line.FreePages != want.FreePages ||
				line.Amount != want.Amount || line.Unbilled != want.Unbilled {
				t.Fatalf("line %+v, the receipts come to %+v", line, want)
			}
		}
		if len(entry.Lines) != len(d.lines[id]) || entry.Amount != -job.Charged {
			t.Fatalf("entry %+v of %+v, the receipts come to %+v", entry, job, d.lines[id])
		}
	}
}

// settle gives a receipt of a page that may or may not be due, or repeats one.
func (d *money) settle(t *rapid.T) {
	job := d.pick(t)
	if job == nil {
		return
	}
	receipt := model.Receipt{Job: job.ID,
		Unit:    model.Unit{Seq: rapid.Uint32Range(0, 6).Draw(t, "seq")},
		Outcome: rapid.SampledFrom([]model.Outcome{1, 1, 1, 2, 3, 4, 5}).Draw(t, "outcome"),
		PriceRow: rapid.SampledFrom([]string{"tier:plain", "tier:render", "tier:none",
			"plugin:websitecontacts", "domain:a.example", "domain:b.example",
			"plugin:/plugin/search"}).Draw(t, "row"),
		Quantity: rapid.SampledFrom([]uint32{1, 1, 0, 2}).Draw(t, "quantity"),
		Last:     rapid.Bool().Draw(t, "last"), Next: &model.Continuation{Page: 1, URL: "u"}}
	if o, ok := d.outs(job.ID)[receipt.Unit.Seq]; ok && rapid.IntRange(0, 3).Draw(t, "due") > 0 {
		receipt.Unit.Page = o.Start
	} else {
		receipt.Unit.Page = rapid.Uint32Range(0, 5).Draw(t, "page")
	}
	d.receipts = append(d.receipts, receipt)
	d.dishonest[job.ID] = true
	d.give(t, receipt)
}

// repeat repeats a receipt: a settled page does not change.
func (d *money) repeat(t *rapid.T) {
	if len(d.receipts) > 0 {
		d.give(t, rapid.SampledFrom(d.receipts).Draw(t, "old"))
	}
}

// give settles a receipt. It may cost at most what its page holds, and nothing twice.
func (d *money) give(t *rapid.T, receipt model.Receipt) {
	before, held := d.m.Store().View().Job(receipt.Job), d.outs(receipt.Job)[receipt.Unit.Seq].Price
	d.must(t, command.SettlePayload{Receipts: []model.Receipt{receipt}})
	after := d.m.Store().View().Job(receipt.Job)
	if after.Delivered == before.Delivered {
		if after.Charged != before.Charged {
			t.Fatalf("charged %d without a page delivered", after.Charged-before.Charged)
		}
		return
	}
	if receipt.Outcome != model.Delivered || d.delivered[receipt.Job][receipt.Unit] {
		t.Fatalf("%+v was charged twice, or not delivered", receipt)
	}
	d.settled(receipt)
	row, _ := d.pricesOf(before).Rows.Row(receipt.PriceRow)
	if cost := after.Charged - before.Charged; cost > min(row.Micros*int64(receipt.Quantity),
		held) {
		t.Fatalf("%+v cost %d with %d held", receipt, cost, held)
	}
}

func (d *money) redispatch(t *rapid.T) {
	job := d.pick(t)
	if job == nil {
		return
	}
	outs := d.outs(job.ID)
	for _, seq := range slices.Sorted(maps.Keys(outs)) {
		number := outs[seq].Number - rapid.Uint64Range(0, 1).Draw(t, "stale")
		d.must(t, command.RedispatchPayload{
			Lost: []command.DispatchRef{{Job: job.ID, Seq: seq, Number: number}}})
	}
}

func (d *money) stop(t *rapid.T) {
	if job := d.pick(t); job != nil {
		d.must(t, command.StopRunPayload{Customer: customer, Job: job.ID})
	}
}

func (d *money) close(t *rapid.T) {
	if job := d.pick(t); job != nil {
		d.must(t, command.CloseRunPayload{Job: job.ID})
	}
}

// limits checks that the daily counts match the reads that are out, and stay within the limits.
func (d *money) limits(t *rapid.T) {
	_, now := d.m.Store().Progress()
	daily := d.m.Store().View().Daily(customer)
	if daily == nil || daily.Day != now/dayMillis {
		daily = &state.Daily{Day: now / dayMillis}
	}
	var out, reads uint32
	for _, job := range d.jobs {
		for _, o := range d.outs(job) {
			if o.Read != nil && o.Read.Day == daily.Day {
				out++
			}
			if o.Limited && (o.Money() != 0 || o.Free != 0 || o.Read != nil) {
				t.Fatalf("%+v is over a limit and holds something", o)
			}
			if o.Unbilled && (o.Money() != 0 || o.Free != 0) {
				t.Fatalf("%+v is not billed and holds something", o)
			}
		}
	}
	for _, domain := range daily.Domains {
		if reads += domain.Reads; domain.Reads == 0 || domain.Reads > testLimits.PerDomain {
			t.Fatalf("%+v", daily)
		}
	}
	if out != daily.Out || reads != daily.Reads || daily.Reads > testLimits.Reads ||
		daily.Uncharged+daily.Out > testLimits.Uncharged {
		t.Fatalf("%d are out of %+v", out, daily)
	}
}

// check checks the invariants.
func (d *money) check(t *rapid.T) {
	d.limits(t)
	view, wallet, books := d.m.Store().View(), d.wallet(), d.m.Store().View().Books()
	if sum := books.Clearing + books.Unmatched + wallet.Available + wallet.Reserved +
		books.Revenue + books.Adjustments; sum != 0 {
		t.Fatalf("money postings sum to %d", sum)
	}
	if sum := wallet.Free + wallet.FreeHeld + books.FreeIssued + books.FreeUsed; sum != 0 {
		t.Fatalf("free request postings sum to %d", sum)
	}
	var held, free int64
	for _, job := range d.jobs {
		record := view.Job(job)
		var reserved int64
		for _, o := range d.outs(job) {
			reserved += o.Money()
			if free += int64(o.Free); record.Charge.PaidOnly && o.Free > 0 {
				t.Fatalf("%+v holds free requests, which do not pay for its run", o)
			}
		}
		held += reserved
		if record.MaxCharge != nil && record.Charged+reserved > *record.MaxCharge {
			t.Fatalf("job %+v is over its cap with %d reserved", record, reserved)
		}
	}
	if held != wallet.Reserved || free != wallet.FreeHeld || wallet.Free < 0 {
		t.Fatalf("wallet %+v: the out sets hold %d and %d free requests", wallet, held, free)
	}
	sealed := map[uint64]*state.Entry{}
	total := int64(0)
	view.Entries(customer, func(e *state.Entry) bool {
		total += e.Amount
		if e.Status != state.EntryOpen {
			sealed[e.Sequence] = e
		}
		return true
	})
	prefix := int64(0)
	for n := uint64(1); n <= wallet.Sequence; n++ {
		prefix += sealed[n].Amount
		if sealed[n].BalanceAfter != prefix {
			t.Fatalf("entry %+v: the prefix sum is %d", sealed[n], prefix)
		}
	}
	if total != wallet.Balance() || len(sealed) != int(wallet.Sequence) {
		t.Fatalf("balance %d, entries sum to %d", wallet.Balance(), total)
	}
}

// crawling wraps a step that must not take a wallet below zero.
func (d *money) crawling(step func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		before := d.wallet().Available
		step(t)
		if after := d.wallet().Available; after < min(before, 0) {
			t.Fatalf("crawling took what is available from %d to %d", before, after)
		}
	}
}

// steps returns all steps except settling.
func (d *money) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"adjust": d.adjust, "reprice": d.reprice, "launch": d.launch,
		"switch billing": d.switchBilling,
		"extend":         d.crawling(d.extend),
		"extend again":   d.crawling(d.extend), "redispatch": d.crawling(d.redispatch),
		"stop": d.stop, "close": d.close,
		"tomorrow": d.tomorrow, "deliver": d.crawling(d.deliver),
		"deliver again": d.crawling(d.deliver),
		"repeat":        d.crawling(d.repeat),
		"":              func(t *rapid.T) { d.check(t); d.covers(t) },
	}
}

// TestMoney: in any order of events, the books balance and no unit is charged twice. No crawl takes
// a wallet below zero (an operator's adjustment may).
func TestMoney(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newMoneyAt(t, drawPrices(t))
		steps := d.steps()
		steps["settle"], steps["settle again"] = d.crawling(d.settle), d.crawling(d.settle)
		t.Repeat(steps)
	})
}

// TestReservationsCover tries every endpoint, tier and price table. The reservation covers the
// receipts' cost, to the last micro, and the entry has its sum.
func TestReservationsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newMoneyAt(t, drawPrices(t))
		t.Repeat(d.steps())
	})
}
