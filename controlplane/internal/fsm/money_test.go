package fsm

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// testPrices are those of tests with few tiers: two a factor of five apart, and website contacts.
var testPrices = price.List{
	{RowKey: "tier:plain", Kind: "TIER", Label: "Plain", Micros: 150},
	{RowKey: "tier:render", Kind: "TIER", Label: "Render", Micros: 750},
	{RowKey: "plugin:websitecontacts", Kind: "PLUGIN", Label: "Website contacts", Micros: 150},
}

// testTags are those of all endpoints, and of none.
var testTags = []string{"", model.ProductPageTag, model.ProductListTag, model.SearchTag,
	model.WebsiteContacts}

// drawPrices is a price table: that of the specification, or one with any price in any row, and
// rows missing.
func drawPrices(t *rapid.T) price.List {
	micros := map[string]int64{"tier:plain": 150, "tier:render": 750, "tier:super": 1500,
		"tier:render+super":              3750,
		"plugin:/plugin/marketplace/pdp": 150, "plugin:/plugin/marketplace/search": 150,
		"plugin:/plugin/search":  1500,
		"plugin:websitecontacts": 150}
	usual := rapid.Bool().Draw(t, "usual prices")
	var rows price.List
	for _, key := range slices.Sorted(maps.Keys(micros)) {
		price := price.Row{RowKey: key, Micros: micros[key]}
		if !usual {
			price.Micros = rapid.SampledFrom([]int64{-1, 0, 1, 150, 151, 750, 2000}).Draw(t, key)
		}
		if price.Micros >= 0 {
			rows = append(rows, price)
		}
	}
	return rows
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
	lines     map[ids.ID]map[string]state.Line // what honest receipts come to, by job and price row
	// jobs that were given receipts which no fetcher would give
	dishonest map[ids.ID]bool
	toppedUp  bool
}

const customer = "c"

func newMoney(t *rapid.T) *money {
	return newMoneyAt(t, testPrices)
}

func newMoneyAt(t *rapid.T, prices price.List) *money {
	d := &money{m: New(), now: 1, scrapers: map[ids.ID]ids.ID{},
		delivered: map[ids.ID]map[model.Unit]bool{},
		lines:     map[ids.ID]map[string]state.Line{}, dishonest: map[ids.ID]bool{}}
	d.must(t, command.CreateClusterPayload{Version: command.Newest, ID: d.ids.New(), Shards: 1,
		FreeGrant: 5, Prices: prices})
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
		t.Fatalf("command %d: %v", payload.Declaration().Number, result.Err)
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
	if result := d.do(command.AdjustWalletPayload{Customer: customer, Entry: d.ids.New(),
		Amount: amount}); result.Err == nil {
		d.toppedUp = d.toppedUp || amount > 0
	}
}

// tomorrow lets the day change; ticks forget the days before.
func (d *money) tomorrow(t *rapid.T) {
	d.now += dayMillis
	d.must(t, command.TickPayload{})
}

// reprice sets other prices: those of runs that are there stay.
func (d *money) reprice(t *rapid.T) { d.must(t, command.PutPricesPayload{Rows: drawPrices(t)}) }

// specOf is a scraper whose pages are read under a tag, and the tag that its record has.
func specOf(name, tag string, pages int) (spec model.Scraper, recordTag string) {
	spec = model.Scraper{Name: name, Type: model.SingleProduct,
		SourceConfig: model.SourceConfig{Pagination: &model.Pagination{Type: model.NextLink,
			Max: &pages}}}
	switch tag {
	case model.ProductPageTag, model.ProductListTag:
		spec.Type, spec.Config = model.Marketplace, &model.ScraperConfig{EndpointTag: tag}
	case model.SearchTag:
		spec.Type = model.SearchEngineSearch
	case model.WebsiteContacts:
		spec.SourceConfig.Pagination, recordTag = nil, tag
	}
	return spec, recordTag
}

func (d *money) launch(t *rapid.T) {
	scraper, group := d.ids.New(), d.ids.New()
	d.must(t, command.PutGroupPayload{Create: true, ID: group, Customer: customer,
		Name: group.String()})
	tag := rapid.SampledFrom(testTags).Draw(t, "tag")
	spec, recordTag := specOf(scraper.String(), tag,
		rapid.SampledFrom([]int{1, 3, 40}).Draw(t, "pages"))
	d.must(t, command.PutScraperPayload{Create: true, ID: scraper, Customer: customer, Group: group,
		Spec:    spec,
		ListRun: recordTag != "", Tag: recordTag})
	launch := command.LaunchRunPayload{Job: d.ids.New(), Entry: d.ids.New(), Customer: customer,
		Scraper: scraper,
		List:    d.ids.New(), Links: rapid.Uint32Range(1, 6).Draw(t, "links"),
		Tiers: model.TierSet(rapid.IntRange(1, int(model.AllTiers)).Draw(t, "tiers"))}
	if tag == model.SearchTag {
		launch.Search = &model.SearchEngine{Name: "e", URL: "https://e.test/?q={query}",
			PageParam: "p"}
	}
	if rapid.Bool().Draw(t, "capped") {
		limit := rapid.Int64Range(0, 4000).Draw(t, "cap")
		launch.MaxCharge = &limit
	}
	if tag != model.WebsiteContacts && rapid.IntRange(0, 3).Draw(t, "trial") == 0 {
		recipe := spec.Recipe()
		recipe.Pagination, launch.Links, launch.Search = nil, 1, nil
		launch.Trial = &command.Trial{Source: rapid.SampledFrom([]model.Source{model.SourceSample,
			model.SourcePreviewURL,
			model.SourcePreviewCurl}).Draw(t, "source"), Recipe: recipe, Group: group}
	}
	other := rapid.SampledFrom(testTags).Draw(t, "another tag")
	if endpoint, _ := model.EndpointOf(other); other != tag {
		launch.Charge = endpoint.Charge
		if err := d.do(launch).Err; fault.CodeOf(err) != fault.ScraperChanged {
			t.Fatalf("a run under %q at the price of %q: %v", tag, other, err)
		}
	}
	endpoint, _ := model.EndpointOf(tag)
	if launch.Charge = endpoint.Charge; endpoint.Tiers != 0 {
		launch.Tiers, launch.Daily = endpoint.Tiers, testLimits
	}
	result := d.do(launch)
	if result.Err != nil {
		return
	}
	job := d.m.Store().View().Job(launch.Job)
	if _, found := d.pricesOf(job).Rows.Row(job.Charge.Row); !found && tag != "" {
		t.Fatalf("%q runs without a price", tag)
	}
	for _, tier := range job.Tiers.Tiers() {
		if _, found := d.pricesOf(job).Rows.Page(tier, job.Charge); !found {
			t.Fatalf("the run may use %s, which has no price", tier)
		}
	}
	d.jobs = append(d.jobs, launch.Job)
	d.scrapers[launch.Job] = scraper
	failed := result.Value.(command.Launched).State == model.Failed
	if failed != (launch.Charge.PaidOnly && !d.toppedUp) {
		t.Fatalf("launch %+v: failed %v, topped up %v", launch, failed, d.toppedUp)
	}
	if job.State.Final() || launch.MaxCharge != nil || d.wallet().Out > 0 {
		return
	}
	// What may begin has money for a page.
	window := d.must(t, command.ExtendWindowPayload{
		Runs: []command.WindowRun{{Job: launch.Job, Seqs: []uint32{0}, Domains: []uint64{0}}}})
	if granted := window.(command.Window).Grants; len(granted) != 1 {
		t.Fatalf("%+v begins and gets no page out of %+v", job, d.wallet())
	}
}

func (d *money) pricesOf(job *state.Job) *state.PriceTable {
	return d.m.Store().View().Prices(job.Prices)
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

// deliver gives the receipt that a fetcher gives of a page that is due: by a tier that its dispatch
// allows, under the row and as often as the run's endpoint says. What was reserved must pay for all
// of it.
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
		receipt.PriceRow, receipt.Quantity = job.Charge.Of(tier)
	}
	row, _ := d.pricesOf(job).Rows.Row(receipt.PriceRow)
	d.receipts = append(d.receipts, receipt)
	d.settled(receipt)
	want, line := row.Micros*int64(receipt.Quantity), d.line(job.ID, receipt.PriceRow)
	switch {
	case unpaid:
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

// line is what a job's honest receipts of a price row come to.
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

// covers demands that what is held for a page pays for it by any tier that its dispatch allows, and
// that the entries of jobs that saw none but honest receipts say what these come to.
func (d *money) covers(t *rapid.T) {
	view := d.m.Store().View()
	for _, id := range d.jobs {
		job := view.Job(id)
		for seq, o := range d.outs(id) {
			if !o.Limited && (o.Tiers == 0 || o.Tiers&^job.Tiers != 0) {
				t.Fatalf("seq %d of %+v is out by the tiers %s", seq, job, o.Tiers)
			}
			for _, tier := range o.Tiers.Tiers() {
				if price, _ := d.pricesOf(job).Rows.Page(tier, job.Charge); !o.Limited &&
					price > o.Price {
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
			entry = &state.Entry{} // nothing delivered, nothing entered
		}
		for _, line := range entry.Lines {
			want := d.line(id, line.RowKey)
			if line.Pages != want.Pages || line.FreePages != want.FreePages ||
				line.Amount != want.Amount {
				t.Fatalf("line %+v, the receipts come to %+v", line, want)
			}
		}
		if len(entry.Lines) != len(d.lines[id]) || entry.Amount != -job.Charged {
			t.Fatalf("entry %+v of %+v, the receipts come to %+v", entry, job, d.lines[id])
		}
	}
}

// settle gives a receipt of a page that may or may not be due, or repeats an old one.
func (d *money) settle(t *rapid.T) {
	job := d.pick(t)
	if job == nil {
		return
	}
	receipt := model.Receipt{Job: job.ID,
		Unit:    model.Unit{Seq: rapid.Uint32Range(0, 6).Draw(t, "seq")},
		Outcome: rapid.SampledFrom([]model.Outcome{1, 1, 1, 2, 3, 4, 5}).Draw(t, "outcome"),
		PriceRow: rapid.SampledFrom([]string{"tier:plain", "tier:render", "tier:none",
			"plugin:websitecontacts",
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

// repeat gives a receipt again: of a page that was settled nothing changes.
func (d *money) repeat(t *rapid.T) {
	if len(d.receipts) > 0 {
		d.give(t, rapid.SampledFrom(d.receipts).Draw(t, "old"))
	}
}

// give settles a receipt that may cost what is held for its page at most, and nothing twice.
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

// limits demands that the daily counts are those of the reads that are out, and never beyond the
// limits.
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
	if out != daily.Out || reads != daily.Reads || daily.Reads > testLimits.Reads ||
		daily.Uncharged+daily.Out > testLimits.Uncharged {
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

// crawling demands of a step that it takes no wallet below zero.
func (d *money) crawling(step func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		before := d.wallet().Available
		step(t)
		if after := d.wallet().Available; after < min(before, 0) {
			t.Fatalf("crawling took what is available from %d to %d", before, after)
		}
	}
}

// steps are all that happens but for settling.
func (d *money) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"adjust": d.adjust, "reprice": d.reprice, "launch": d.launch,
		"extend":       d.crawling(d.extend),
		"extend again": d.crawling(d.extend), "redispatch": d.crawling(d.redispatch),
		"stop": d.stop, "close": d.close,
		"tomorrow": d.tomorrow, "deliver": d.crawling(d.deliver),
		"deliver again": d.crawling(d.deliver),
		"repeat":        d.crawling(d.repeat),
		"":              func(t *rapid.T) { d.check(t); d.covers(t) },
	}
}

// TestMoney: whatever comes in whatever order, the books balance, no unit is charged twice, and no
// crawl takes a wallet below zero (an operator's adjustment may).
func TestMoney(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newMoneyAt(t, drawPrices(t))
		steps := d.steps()
		steps["settle"], steps["settle again"] = d.crawling(d.settle), d.crawling(d.settle)
		t.Repeat(steps)
	})
}

// TestReservationsCover: of every endpoint, by every tier that a dispatch allows, at every price
// table, what is reserved pays for what its receipts cost, to the last micro, and the entry says
// what they come to.
func TestReservationsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newMoneyAt(t, drawPrices(t))
		t.Repeat(d.steps())
	})
}
