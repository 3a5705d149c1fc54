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

// prices of the property test: two tiers a factor of five apart, and website contacts.
var testPrices = []model.Price{
	{RowKey: "tier:plain", Kind: "TIER", Label: "Plain", Micros: 150},
	{RowKey: "tier:render", Kind: "TIER", Label: "Render", Micros: 750},
	{RowKey: "plugin:websitecontacts", Kind: "PLUGIN", Label: "Website contacts", Micros: 150},
}

// testLimits are small enough to be reached.
var testLimits = model.DailyLimits{Reads: 6, Uncharged: 3, PerDomain: 2}

// money drives a state machine with random commands and keeps its own idea of what was charged.
type money struct {
	m         *FSM
	ids       ids.Sequence
	index     uint64
	now       int64
	jobs      []ids.ID
	scrapers  map[ids.ID]ids.ID // job → scraper
	receipts  []model.Receipt   // everything ever settled, to be repeated
	delivered map[ids.ID]map[model.Unit]bool
	toppedUp  bool
}

const customer = "c"

func newMoney(t *rapid.T) *money {
	d := &money{m: New(), now: 1, scrapers: map[ids.ID]ids.ID{}, delivered: map[ids.ID]map[model.Unit]bool{}}
	d.must(t, command.CreateClusterPayload{ID: d.ids.New(), Shards: 1, FreeGrant: 5, Prices: testPrices})
	d.must(t, command.OpenCustomerPayload{Customer: customer, Entry: d.ids.New()})
	return d
}

func (d *money) do(payload command.Payload) Result {
	data, err := d.m.Encode(d.ids.New(), d.now, payload, nil)
	if err != nil {
		return Result{Err: err}
	}
	d.index++
	d.now++
	return d.m.Apply(d.index, data)
}

func (d *money) must(t *rapid.T, payload command.Payload) any {
	result := d.do(payload)
	if result.Err != nil {
		t.Fatalf("command %d: %v", payload.Number(), result.Err)
	}
	return result.Value
}

func (d *money) wallet() *state.Wallet { return d.m.Store().View().Wallet(customer) }

func (d *money) pick(t *rapid.T) *state.Job {
	if len(d.jobs) == 0 {
		return nil
	}
	return d.m.Store().View().Job(rapid.SampledFrom(d.jobs).Draw(t, "job"))
}

func (d *money) outs(job ids.ID) map[uint32]state.Out {
	outs := map[uint32]state.Out{}
	d.m.Store().ReadRun(job, func(run *state.Run) {
		if run == nil {
			return
		}
		for seq, o := range run.Out {
			outs[seq] = *o
		}
	})
	return outs
}

func (d *money) adjust(t *rapid.T) {
	amount := rapid.Int64Range(-500, 3000).Draw(t, "amount")
	if result := d.do(command.AdjustWalletPayload{Customer: customer, Entry: d.ids.New(), Amount: amount}); result.Err == nil {
		d.toppedUp = d.toppedUp || amount > 0
	}
}

// tomorrow lets the day change; ticks forget the days before.
func (d *money) tomorrow(t *rapid.T) {
	d.now += dayMillis
	d.must(t, command.TickPayload{})
}

func (d *money) launch(t *rapid.T) {
	scraper, group := d.ids.New(), d.ids.New()
	d.must(t, command.PutGroupPayload{Create: true, ID: group, Customer: customer, Name: group.String()})
	pages := rapid.SampledFrom([]int{1, 3, 40}).Draw(t, "pages")
	d.must(t, command.PutScraperPayload{Create: true, ID: scraper, Customer: customer, Group: group, Spec: model.Scraper{
		Name: scraper.String(), Type: model.SingleProduct,
		SourceConfig: model.SourceConfig{Pagination: &model.Pagination{Type: model.NextLink, Max: &pages}}}})
	launch := command.LaunchRunPayload{Job: d.ids.New(), Entry: d.ids.New(), Customer: customer, Scraper: scraper,
		List: d.ids.New(), Links: rapid.Uint32Range(1, 6).Draw(t, "links"),
		Tiers: rapid.SampledFrom([]model.TierSet{model.TiersOf(model.Plain), model.TiersOf(model.Render),
			model.TiersOf(model.Plain, model.Render), model.AllTiers, model.TiersOf(model.Super)}).Draw(t, "tiers")}
	if contacts := rapid.Bool().Draw(t, "contacts"); contacts {
		endpoint, _ := model.EndpointOf(model.WebsiteContacts)
		launch.Tiers, launch.Charge, launch.Daily = endpoint.Tiers, endpoint.Charge, testLimits
	}
	if rapid.Bool().Draw(t, "capped") {
		limit := rapid.Int64Range(0, 4000).Draw(t, "cap")
		launch.MaxCharge = &limit
	}
	if result := d.do(launch); result.Err == nil {
		for _, tier := range d.m.Store().View().Job(launch.Job).Tiers.Tiers() {
			if _, found := priceOf(&state.PriceTable{Rows: testPrices}, tier.PriceRow()); !found {
				t.Fatalf("the run may use %s, which has no price", tier)
			}
		}
		d.jobs = append(d.jobs, launch.Job)
		d.scrapers[launch.Job] = scraper
		if failed := result.Value.(command.Launched).State == model.Failed; failed != (launch.Charge.PaidOnly && !d.toppedUp) {
			t.Fatalf("launch %+v: failed %v, topped up %v", launch, failed, d.toppedUp)
		}
	}
}

func (d *money) extend(t *rapid.T) {
	if job := d.pick(t); job != nil {
		seqs := rapid.SliceOfN(rapid.Uint32Range(0, 6), 1, 6).Draw(t, "seqs")
		window := command.WindowRun{Job: job.ID, Seqs: seqs}
		if job.Daily != (model.DailyLimits{}) {
			for range seqs {
				window.Domains = append(window.Domains, rapid.Uint64Range(0, 4).Draw(t, "domain"))
			}
		}
		d.must(t, command.ExtendWindowPayload{Runs: []command.WindowRun{window}})
	}
}

// settle gives a receipt of a page that may or may not be due, or repeats an old one.
func (d *money) settle(t *rapid.T) {
	job := d.pick(t)
	if job == nil {
		return
	}
	receipt := model.Receipt{Job: job.ID, Unit: model.Unit{Seq: rapid.Uint32Range(0, 6).Draw(t, "seq")},
		Outcome:  rapid.SampledFrom([]model.Outcome{1, 1, 1, 2, 3, 4, 5}).Draw(t, "outcome"),
		PriceRow: rapid.SampledFrom([]string{"tier:plain", "tier:render", "tier:none", "plugin:websitecontacts"}).Draw(t, "row"),
		Quantity: rapid.SampledFrom([]uint32{1, 1, 0, 2}).Draw(t, "quantity"),
		Last:     rapid.Bool().Draw(t, "last"), Next: &model.Continuation{Page: 1, URL: "u"}}
	if o, ok := d.outs(job.ID)[receipt.Unit.Seq]; ok && rapid.IntRange(0, 3).Draw(t, "due") > 0 {
		receipt.Unit.Page = o.Start
	} else {
		receipt.Unit.Page = rapid.Uint32Range(0, 5).Draw(t, "page")
	}
	if len(d.receipts) > 0 && rapid.IntRange(0, 3).Draw(t, "repeat") == 0 {
		receipt = rapid.SampledFrom(d.receipts).Draw(t, "old")
	}
	d.receipts = append(d.receipts, receipt)
	before, held := d.m.Store().View().Job(receipt.Job), d.outs(receipt.Job)[receipt.Unit.Seq].Price
	d.must(t, command.SettlePayload{Receipts: []model.Receipt{receipt}})
	after := d.m.Store().View().Job(receipt.Job)
	if after.Delivered == before.Delivered {
		if after.Charged != before.Charged {
			t.Fatalf("charged %d without a page delivered", after.Charged-before.Charged)
		}
		return
	}
	if d.delivered[receipt.Job] == nil {
		d.delivered[receipt.Job] = map[model.Unit]bool{}
	}
	if receipt.Outcome != model.Delivered || d.delivered[receipt.Job][receipt.Unit] {
		t.Fatalf("%+v was charged twice, or not delivered", receipt)
	}
	d.delivered[receipt.Job][receipt.Unit] = true
	if price, _ := priceOf(&state.PriceTable{Rows: testPrices}, receipt.PriceRow); after.Charged-before.Charged > min(price.Micros*int64(receipt.Quantity), held) {
		t.Fatalf("%+v cost %d with %d held", receipt, after.Charged-before.Charged, held)
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
		d.must(t, command.RedispatchPayload{Lost: []command.DispatchRef{{Job: job.ID, Seq: seq, Number: number}}})
	}
}

func (d *money) stop(t *rapid.T) {
	if job := d.pick(t); job != nil {
		d.must(t, command.StopRunPayload{Customer: customer, Scraper: d.scrapers[job.ID]})
	}
}

func (d *money) close(t *rapid.T) {
	if job := d.pick(t); job != nil {
		d.must(t, command.CloseRunPayload{Job: job.ID})
	}
}

// limits demands that the daily counts are those of the reads that are out, and never beyond the limits.
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
		}
	}
	for _, domain := range daily.Domains {
		if reads += domain.Reads; domain.Reads == 0 || domain.Reads > testLimits.PerDomain {
			t.Fatalf("%+v", daily)
		}
	}
	if out != daily.Out || reads != daily.Reads || daily.Reads > testLimits.Reads || daily.Uncharged+daily.Out > testLimits.Uncharged {
		t.Fatalf("%d are out of %+v", out, daily)
	}
}

// check is what must hold whatever happened.
func (d *money) check(t *rapid.T) {
	d.limits(t)
	view, wallet, books := d.m.Store().View(), d.wallet(), d.m.Store().View().Books()
	if sum := wallet.Available + wallet.Reserved + books.Revenue + books.Adjustments; sum != 0 {
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

// TestMoney: whatever comes in whatever order, the books balance, no unit is charged twice, and no crawl takes a wallet
// below zero (an operator's adjustment may).
func TestMoney(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newMoney(t)
		crawling := func(step func(*rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				before := d.wallet().Available
				step(t)
				if after := d.wallet().Available; after < min(before, 0) {
					t.Fatalf("crawling took what is available from %d to %d", before, after)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"adjust": d.adjust, "launch": d.launch, "extend": crawling(d.extend), "settle": crawling(d.settle),
			"settle again": crawling(d.settle), "redispatch": crawling(d.redispatch), "stop": d.stop, "close": d.close,
			"tomorrow": d.tomorrow,
			"":         d.check,
		})
	})
}
