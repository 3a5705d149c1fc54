package fsm

import (
	"maps"
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// testPrices are for tests with few tiers: two a factor of five apart, and website contacts.
var testPrices = price.List{
	{RowKey: "tier:plain", Kind: "TIER", Label: "Plain", Micros: 150},
	{RowKey: "tier:render", Kind: "TIER", Label: "Render", Micros: 750},
	{RowKey: "plugin:websitecontacts", Kind: "PLUGIN", Label: "Website contacts", Micros: 150},
}

// testTags are the tags of all endpoints, and none.
var testTags = []string{"", model.ProductPageTag, model.ProductListTag, model.SearchTag,
	model.WebsiteContacts}

// drawPrices draws a price table: the specification's, or one with random prices and missing rows.
func drawPrices(t *rapid.T) price.List {
	micros := map[string]int64{"tier:plain": 150, "tier:render": 750, "tier:super": 1500,
		"tier:render+super":              3750,
		"plugin:/plugin/marketplace/pdp": 150, "plugin:/plugin/marketplace/search": 150,
		"plugin:/plugin/search":  1500,
		"plugin:websitecontacts": 150}
	usual := rapid.Bool().Draw(t, "usual prices")
	var rows price.List
	for _, key := range slices.Sorted(maps.Keys(micros)) {
		price := price.Row{RowKey: key, Label: key, Micros: micros[key]}
		if !usual {
			price.Micros = rapid.SampledFrom([]int64{-1, 0, 1, 150, 151, 750, 2000}).Draw(t, key)
		}
		if price.Micros >= 0 {
			rows = append(rows, price)
		}
	}
	return append(rows, drawDomains(t)...)
}

// testDomains are the domains that may have their own prices, in any order.
var testDomains = []string{"a.example", "b.example", "c.example"}

// drawDomains draws rows of domains with random prices.
func drawDomains(t *rapid.T) (rows price.List) {
	for _, domain := range rapid.Permutation(testDomains).Draw(t, "domains") {
		if rapid.Bool().Draw(t, "has a price") {
			rows = append(rows, price.Row{RowKey: price.DomainKey(domain), Kind: price.Domain,
				Label: domain, Off: rapid.IntRange(0, 3).Draw(t, "off") == 0,
				Micros: rapid.SampledFrom([]int64{0, 1, 150, 900, 5000}).Draw(t, "micros")})
		}
	}
	return rows
}

// testLimits are small enough to be reached.
var testLimits = model.DailyLimits{Reads: 6, Uncharged: 3, PerDomain: 2}

// money applies random commands to a state machine and keeps its own account of the charges.
type money struct {
	m         *FSM
	ids       ids.Sequence
	index     uint64
	now       int64
	jobs      []ids.ID
	scrapers  map[ids.ID]ids.ID // job → scraper
	receipts  []model.Receipt   // everything ever settled, for repeats
	delivered map[ids.ID]map[model.Unit]bool
	lines     map[ids.ID]map[string]state.Line // sums of honest receipts, by job and price row
	// jobs with receipts that no fetcher would give
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

// switchBilling switches billing off or on. That alone moves no money, whatever is out.
func (d *money) switchBilling(t *rapid.T) {
	off, before, books := rapid.Bool().Draw(t, "off"), *d.wallet(), *d.m.Store().View().Books()
	d.must(t, command.PutSettingsPayload{BillingOff: &off})
	if *d.wallet() != before || *d.m.Store().View().Books() != books {
		t.Fatalf("the switch moved money: %+v, then %+v", before, d.wallet())
	}
}

// off reports whether billing is off.
func (d *money) off() bool { return d.m.Store().View().Settings().BillingOff }

// tomorrow advances the day; ticks remove earlier days.
func (d *money) tomorrow(t *rapid.T) {
	d.now += dayMillis
	d.must(t, command.TickPayload{})
}

// reprice sets other prices, or switches rows off and on. Existing runs keep theirs.
func (d *money) reprice(t *rapid.T) {
	current := d.m.Store().View().CurrentPrices()
	if rapid.Bool().Draw(t, "other rows") {
		d.must(t, command.PutPricesPayload{Rows: drawPrices(t)})
	} else {
		rows := slices.DeleteFunc(slices.Clone(current.Rows),
			func(r price.Row) bool { return r.Kind == price.Domain })
		for i := range rows {
			rows[i].Micros = rapid.SampledFrom([]int64{rows[i].Micros, 0, 1, 750}).Draw(t, "micros")
			rows[i].Off = rows[i].RowKey != "tier:plain" && rapid.Bool().Draw(t, "off")
		}
		rows = append(drawDomains(t), rows...)
		d.must(t, command.SetPricesPayload{Version: current.Version, Rows: rows})
	}
	if old := d.m.Store().View().Prices(current.Version); !reflect.DeepEqual(old, current) {
		t.Fatalf("version %d was %+v, and is %+v", current.Version, current, old)
	}
}

// specOf returns a scraper whose pages are read under a tag, and its record's tag.
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
		if _, found := d.pricesOf(job).Rows.Page(tier, job.Charge.At("")); !found {
			t.Fatalf("the run may use %s, which has no price", tier)
		}
	}
	d.jobs = append(d.jobs, launch.Job)
	d.scrapers[launch.Job] = scraper
	failed := result.Value.(command.Launched).State == model.Failed
	if failed != (launch.Charge.PaidOnly && !d.toppedUp && !d.off()) {
		t.Fatalf("launch %+v: failed %v, topped up %v", launch, failed, d.toppedUp)
	}
	if job.State.Final() || launch.MaxCharge != nil || d.wallet().Out > 0 {
		return
	}
	// A run may begin with money for a page of the cheapest domain.
	place, least := uint8(0), int64(-1)
	for n := range uint8(len(d.pricesOf(job).Rows.Domains()) + 1) {
		page, _ := d.pricesOf(job).Rows.Cheapest(job.Tiers, d.chargeAt(job, n))
		if least < 0 || page < least {
			place, least = n, page
		}
	}
	window := d.must(t, command.ExtendWindowPayload{
		Runs: []command.WindowRun{{Job: launch.Job, Seqs: []uint32{0}, Domains: []uint64{0},
			Priced: []byte{place}}}})
	if granted := window.(command.Window).Grants; len(granted) != 1 {
		t.Fatalf("%+v begins and gets no page out of %+v", job, d.wallet())
	}
}

func (d *money) pricesOf(job *state.Job) *state.PriceTable {
	return d.m.Store().View().Prices(job.Prices)
}

// chargeAt returns how a page is charged whose domain's row has a place.
func (d *money) chargeAt(job *state.Job, place uint8) model.PageCharge {
	if place == 0 {
		return job.Charge.At("")
	}
	return job.Charge.At(d.pricesOf(job).Rows.Domains()[place-1].RowKey)
}

func (d *money) extend(t *rapid.T) {
	if job := d.pick(t); job != nil {
		seqs := rapid.SliceOfN(rapid.Uint32Range(0, 6), 1, 6).Draw(t, "seqs")
		window := command.WindowRun{Job: job.ID, Seqs: seqs}
		if rapid.Bool().Draw(t, "of domains") { // some have no row in the run's prices
			window.Priced = rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "far places")
			for range seqs {
				window.Priced = append([]byte{rapid.ByteRange(0, 4).Draw(t, "place")},
					window.Priced...)
			}
		}
		if job.Daily != (model.DailyLimits{}) {
			for range seqs {
				window.Domains = append(window.Domains, rapid.Uint64Range(0, 4).Draw(t, "domain"))
			}
		}
		d.must(t, command.ExtendWindowPayload{Runs: []command.WindowRun{window}})
	}
}
