package fsm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// changed returns the current prices with one change.
func (b *bench) changed(change func(price.List)) command.SetPricesPayload {
	current := b.view().CurrentPrices()
	rows := slices.Clone(current.Rows)
	change(rows)
	return command.SetPricesPayload{By: "root", Version: current.Version, Rows: rows}
}

func TestSetPrices(t *testing.T) {
	b := newBench(t)
	first := *b.view().CurrentPrices()
	p := b.changed(func(rows price.List) { rows[0].Micros, rows[1].Off = 151, true })
	p.Rows[0], p.Rows[2] = p.Rows[2], p.Rows[0]
	set := b.must(p).(state.PriceTable)
	if set.Version != first.Version+1 || set.ChangedAt != b.now || set.ChangedBy != "root" ||
		!slices.Equal(set.Rows, p.Rows) {
		t.Errorf("set %+v", set)
	}
	if now := b.view().CurrentPrices(); now.Version != set.Version ||
		!slices.Equal(now.Rows, p.Rows) {
		t.Errorf("the prices are %+v", now)
	}
	if old := b.view().Prices(first.Version); !slices.Equal(old.Rows, first.Rows) {
		t.Errorf("the first version became %+v", old)
	}
	b.refused(p, fault.PricesChanged)
	p.Version, p.By = set.Version, "eve"
	if again := b.must(p).(state.PriceTable); again.Version != set.Version ||
		again.ChangedBy != "root" {
		t.Errorf("nothing changed, and it is %+v", again)
	}
	ahead := p
	ahead.Version++
	b.refused(ahead, fault.PricesChanged)
}

// Each bound is exact. A refusal names its field and changes nothing.
func TestPricesAreBounded(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		change func(price.List)
		field  string
	}{
		"the longest label": {func(r price.List) {
			r[0].Label = strings.Repeat("🐟", command.MaxPriceLabel)
		}, ""},
		"a longer one": {func(r price.List) {
			r[0].Label = strings.Repeat("l", command.MaxPriceLabel+1)
		}, "rows[0].label"},
		"none":     {func(r price.List) { r[1].Label = "" }, "rows[1].label"},
		"the most": {func(r price.List) { r[0].Micros = command.MaxPriceMicros }, ""},
		"nothing":  {func(r price.List) { r[0].Micros = 0 }, ""},
		"more": {func(r price.List) { r[1].Micros = command.MaxPriceMicros + 1 },
			"rows[1].sellingPriceMicros"},
		"less":            {func(r price.List) { r[1].Micros = -1 }, "rows[1].sellingPriceMicros"},
		"another kind":    {func(r price.List) { r[1].Kind = price.Plugin }, "rows[1].kind"},
		"plain disabled":  {func(r price.List) { r[0].Off = true }, "rows[0].enabled"},
		"render disabled": {func(r price.List) { r[1].Off = true }, ""},
		"made up":         {func(r price.List) { r[1].RowKey = "tier:best" }, "rows[1].rowKey"},
		"twice":           {func(r price.List) { r[1] = r[0] }, "rows[1].rowKey"},
	} {
		t.Run(name, func(t *testing.T) {
			before := b.view().CurrentPrices()
			result := b.do(b.changed(c.change))
			if field := fieldOf(result.Err); field != c.field {
				t.Errorf("names %q: %v", field, result.Err)
			}
			if now := b.view().CurrentPrices(); (now.Version == before.Version) != (c.field != "") {
				t.Errorf("of %+v it made %+v", before, now)
			}
		})
	}
	fewer := b.changed(func(price.List) {})
	fewer.Rows = fewer.Rows[:2]
	if field := fieldOf(b.do(fewer).Err); field != "rows" {
		t.Errorf("a row that is missing names %q", field)
	}
}

// Rows of domains are added and removed, within a bound, at most one per domain.
func TestPricesOfDomains(t *testing.T) {
	b := newBench(t)
	row := func(key string) price.Row {
		return price.Row{RowKey: key, Kind: price.Domain, Label: "One site", Micros: 7}
	}
	with := func(rows ...price.Row) command.SetPricesPayload {
		p := b.changed(func(price.List) {})
		p.Rows = append(slices.DeleteFunc(p.Rows,
			func(r price.Row) bool { return r.Kind == price.Domain }), rows...)
		return p
	}
	standard := len(b.view().CurrentPrices().Rows)
	var most []price.Row
	for n := range price.MaxDomains {
		most = append(most, row(price.DomainKey(fmt.Sprintf("shop-%d.example", n))))
	}
	for _, rows := range [][]price.Row{{row("domain:a.example")}, most,
		{row("domain:a.example"), row("domain:b.example")}, {row("domain:b.example")}, nil} {
		set := b.must(with(rows...)).(state.PriceTable)
		if !slices.Equal(set.Rows[standard:], rows) {
			t.Errorf("set %+v, the table has %+v", rows, set.Rows[standard:])
		}
	}
	b.must(with(row("domain:a.example")))
	off, tier, free := row("domain:b.example"), row("domain:b.example"), row("domain:b.example")
	off.Off, tier.Kind, free.Micros = true, price.Tier, -1
	for name, c := range map[string]struct {
		rows  []price.Row
		field string
	}{
		"disabled":       {[]price.Row{off}, ""},
		"one too many":   {append(slices.Clip(most), row("domain:a.example")), "rows"},
		"twice":          {append(slices.Clip(most[:1]), most[0]), "1.rowKey"},
		"capitals":       {[]price.Row{row("domain:A.example")}, "0.rowKey"},
		"no domain":      {[]price.Row{row("domain:")}, "0.rowKey"},
		"an address":     {[]price.Row{row("domain:a.example/x")}, "0.rowKey"},
		"no prefix":      {[]price.Row{row("a.example")}, "0.rowKey"},
		"a tier by kind": {[]price.Row{tier}, "0.kind"},
		"a debt":         {[]price.Row{free}, "0.sellingPriceMicros"},
		"a long name": {[]price.Row{row("domain:" + strings.Repeat("a", 254))},
			"0.rowKey"},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.field
			if place, member, within := strings.Cut(want, "."); within {
				n, err := strconv.Atoi(place)
				if err != nil {
					t.Fatal(err)
				}
				want = fmt.Sprintf("rows[%d].%s", standard+n, member)
			}
			before := b.view().CurrentPrices()
			if field := fieldOf(b.do(with(c.rows...)).Err); field != want {
				t.Errorf("names %q, want %q", field, want)
			}
			if now := b.view().CurrentPrices(); (now.Version == before.Version) != (want != "") {
				t.Errorf("of %+v it made %+v", before, now)
			}
		})
	}
}

// A chain keeps its first price, whatever domain a later leader computes.
func TestAChainKeepsItsPrice(t *testing.T) {
	b := newBench(t)
	p := b.changed(func(price.List) {})
	p.Rows = append(p.Rows, price.Row{RowKey: "domain:a.example", Kind: price.Domain, Label: "A",
		Micros: 7})
	b.must(p)
	b.must(command.OpenCustomerPayload{Customer: "c", Entry: b.ids.New()})
	b.must(command.AdjustWalletPayload{Customer: "c", Entry: b.ids.New(), Amount: 1_000_000})
	group, scraper, job := b.ids.New(), b.ids.New(), b.ids.New()
	spec, _ := specOf("s", "", 40)
	b.must(command.PutGroupPayload{Create: true, ID: group, Customer: "c", Name: "g"})
	b.must(command.PutScraperPayload{Create: true, ID: scraper, Customer: "c", Group: group,
		Spec: spec})
	b.must(command.LaunchRunPayload{Job: job, Entry: b.ids.New(), Customer: "c", Scraper: scraper,
		List: b.ids.New(), Links: 2, Tiers: model.TiersOf(model.Plain)})
	send := func(place byte) string {
		t.Helper()
		window := b.must(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: job,
			Seqs: []uint32{1}, Priced: []byte{place}}}}).(command.Window)
		if len(window.Grants) != 1 || window.Grants[0].Budget != pageBudget {
			t.Fatalf("%+v goes out", window)
		}
		return window.Grants[0].Domain
	}
	if domain := send(1); domain != "domain:a.example" {
		t.Errorf("it goes out under %q", domain)
	}
	for page := range uint32(pageBudget) {
		b.must(command.SettlePayload{Receipts: []model.Receipt{{Job: job,
			Unit: model.Unit{Seq: 1, Page: page}, Outcome: model.Delivered, Quantity: 1,
			PriceRow: "domain:a.example",
			Next:     &model.Continuation{Page: page + 1, URL: "u"}}}})
	}
	if domain := send(0); domain != "domain:a.example" {
		t.Errorf("its next pages go out under %q", domain)
	}
}

// A leader adds no rows to a table that is not the newest.
func TestPutPricesOfAVersion(t *testing.T) {
	b := newBench(t)
	first := b.view().CurrentPrices()
	b.must(command.PutPricesPayload{Rows: first.Rows, Version: first.Version})
	b.refused(command.PutPricesPayload{Rows: first.Rows, Version: first.Version},
		fault.PricesChanged)
	if now := b.view().CurrentPrices(); now.Version != first.Version+1 {
		t.Errorf("the prices are %+v", now)
	}
}

func fieldOf(err error) string {
	var coded *fault.Error
	if !errors.As(err, &coded) {
		return ""
	}
	return coded.Field
}

// All versions are kept, so their number is bounded.
func TestVersionsOfPricesAreBounded(t *testing.T) {
	b := newBench(t)
	current := *b.view().CurrentPrices()
	current.Rows = slices.Clone(current.Rows)
	full := command.MaxPriceBytes - 3*priceBytes(current.Rows)
	current.Rows[0].Label = strings.Repeat("l", full)
	if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		tx.AddPrices(current)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p := b.changed(func(rows price.List) { rows[0].Label, rows[0].Micros = "Plain", 1 })
	b.must(p)
	last := b.changed(func(rows price.List) { rows[0].Label, rows[0].Micros = "Plain", 2 })
	b.refused(last, fault.LimitReached)
}

// The audit trail tells who set which prices.
func TestPricesAreTold(t *testing.T) {
	b := newBench(t)
	p := b.changed(func(rows price.List) { rows[0].Micros, rows[1].Off = 151, true })
	data, err := b.m.EncodeBy(&state.Actor{Subject: "root", Admin: true,
		Operation: "svc_admin_put_prices"}, b.ids.New(), b.now, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.index++
	if r := b.m.Apply(b.index, data); r.Err != nil {
		t.Fatal(r.Err)
	}
	var told *state.AuditEntry
	b.view().EachAudit(func(e *state.AuditEntry) bool { told = e; return true })
	if told == nil || told.Action != "svc_admin_put_prices" || told.Actor.Subject != "root" ||
		len(told.Changes) != 1 || told.Changes[0].Table != "prices" {
		t.Fatalf("it tells %+v", told)
	}
	if after := told.Changes[0].After; !strings.HasPrefix(after, `{"sellingPriceMicros":"tier:plain=`+
		`151, tier:render=750 off, plugin:websitecontacts=150","labelsSha256":"`) {
		t.Errorf("it tells of the table: %s", after)
	}
}
