// Package price owns what a page costs: the standard price list, the rows of a list, and every sum
// derived from one. The ledger, its recount and the API all use these functions, so that they
// cannot differ. The package does not know wallets: who pays, and with what, is up to the ledger.
package price

import (
	"cmp"
	"slices"

	"shoal.dev/shoal/pkg/model"
)

// Kinds of rows.
const (
	Tier   = "TIER"   // of a way of fetching
	Plugin = "PLUGIN" // of an endpoint
	Domain = "DOMAIN" // of a registrable domain, instead of the tiers' rows
)

// Row is a row of a price list.
type Row struct {
	RowKey string `cbor:"1,keyasint"` // stable key: tier:plain, plugin:/plugin/…, domain:…
	Kind   string `cbor:"2,keyasint"` // TIER, PLUGIN or DOMAIN
	Label  string `cbor:"3,keyasint"`
	Micros int64  `cbor:"4,keyasint"` // millionths of a euro per delivered page, 0 or more
	// Off says that the row is not listed, and does not apply to runs launched while it is off.
	Off bool `cbor:"5,keyasint,omitempty" since:"2"`
}

// Of returns the price of a quantity of pages of the row, in micros.
func (r Row) Of(quantity int64) int64 { return r.Micros * quantity }

// List is a price list: rows with distinct keys, in display order.
type List []Row

// Standard returns the price list of the specification (2.9 and 4.14).
func Standard() List {
	return List{
		{RowKey: model.Plain.PriceRow(), Kind: Tier, Label: "Plain", Micros: 150},
		{RowKey: model.Render.PriceRow(), Kind: Tier, Label: "Render (browser)", Micros: 750},
		{RowKey: model.Super.PriceRow(), Kind: Tier, Label: "Super (residential proxy)",
			Micros: 1500},
		{RowKey: model.RenderSuper.PriceRow(), Kind: Tier, Label: "Render plus Super",
			Micros: 3750},
		endpoint(model.ProductPageTag, "Marketplace plugins", 150),
		endpoint(model.ProductListTag, "Marketplace plugins", 150),
		endpoint(model.SearchTag, "Search-engine search", 1500),
		// One credit; a charged website costs two.
		endpoint(model.WebsiteContacts, "Website contacts", 150),
	}
}

func endpoint(tag, label string, micros int64) Row {
	return Row{RowKey: model.EndpointRow(tag), Kind: Plugin, Label: label, Micros: micros}
}

// Enabled returns the rows that are not off.
func (l List) Enabled() List {
	return slices.DeleteFunc(slices.Clone(l), func(r Row) bool { return r.Off })
}

// Row finds the row with a key. A row that is off does not count.
func (l List) Row(key string) (Row, bool) {
	at := slices.IndexFunc(l, func(r Row) bool { return r.RowKey == key })
	if at < 0 || l[at].Off {
		return Row{}, false
	}
	return l[at], true
}

// Page returns the price of a page by a tier under a charge, in micros. ok is false without a row.
func (l List) Page(tier model.Tier, charge model.PageCharge) (micros int64, ok bool) {
	key, quantity := charge.Of(tier)
	row, ok := l.Row(key)
	return row.Of(int64(quantity)), ok
}

// Least returns the lowest price of a page among the tiers, for any domain, in micros. Not ok: no
// tier is covered.
func (l List) Least(tiers model.TierSet, charge model.Charge) (micros int64, ok bool) {
	micros, ok = l.Cheapest(tiers, charge.At(""))
	for _, row := range l.Domains() {
		if page, _ := l.Cheapest(tiers, charge.At(row.RowKey)); ok {
			micros = min(micros, page)
		}
	}
	return micros, ok
}

// Covered returns those of the tiers that have a price in the list. A page by any other tier would
// be free.
func (l List) Covered(tiers model.TierSet, charge model.PageCharge) (set model.TierSet) {
	for _, tier := range tiers.Tiers() {
		if _, found := l.Page(tier, charge); found {
			set |= model.TiersOf(tier)
		}
	}
	return set
}

// CheapestFirst returns the covered tiers by price; equal ones in the order of trying.
func (l List) CheapestFirst(tiers model.TierSet, charge model.PageCharge) []model.Tier {
	covered := l.Covered(tiers, charge).Tiers()
	slices.SortStableFunc(covered, func(a, b model.Tier) int {
		left, _ := l.Page(a, charge)
		right, _ := l.Page(b, charge)
		return cmp.Compare(left, right)
	})
	return covered
}

// Cheapest returns the lowest price of a page among the tiers, in micros. Not ok: none is covered.
func (l List) Cheapest(tiers model.TierSet, charge model.PageCharge) (micros int64, ok bool) {
	covered := l.CheapestFirst(tiers, charge)
	if len(covered) == 0 {
		return 0, false
	}
	return l.Page(covered[0], charge)
}
