package fsm

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/price"
)

// changed are the prices as they are but for one thing.
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

// Each bound holds at its edge, and what is refused names its field and changes nothing.
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

func fieldOf(err error) string {
	var coded *fault.Error
	if !errors.As(err, &coded) {
		return ""
	}
	return coded.Field
}

// All versions are kept, so there is an end of them.
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
	if after := told.Changes[0].After; after != `{"sellingPriceMicros":"tier:plain=151, `+
		`tier:render=750 off, plugin:websitecontacts=150"}` {
		t.Errorf("it tells of the table: %s", after)
	}
}
