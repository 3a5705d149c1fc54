// Package price owns what a page costs: the standard price list, the rows of a list, and every sum
// that follows from one. The ledger, its recount and the API answer from these functions, so that
// they cannot differ. It does not know wallets: who pays, and with what, is the ledger's.
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
	Domain = "DOMAIN" // of a registrable domain, in place of those of tiers
)

// Row is a row of a price list.
type Row struct {
	RowKey string `cbor:"1,keyasint"` // stable key: tier:plain, plugin:/plugin/…, domain:…
	Kind   string `cbor:"2,keyasint"` // TIER, PLUGIN or DOMAIN
	Label  string `cbor:"3,keyasint"`
	Micros int64  `cbor:"4,keyasint"` // millionths of a euro for a page delivered, 0 or more
	// Off says that the row is not listed, and that runs launched under it go without it.
	Off bool `cbor:"5,keyasint,omitempty" since:"2"`
}

// Of is what so many pages of the row cost, in micros.
func (r Row) Of(quantity int64) int64 { return r.Micros * quantity }

// List is a price list: rows of different keys, in the order in which they are shown.
type List []Row

// Standard is the price list of the specification (2.9 and 4.14).
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
		// A credit; a website that is charged costs two.
		endpoint(model.WebsiteContacts, "Website contacts", 150),
	}
}

func endpoint(tag, label string, micros int64) Row {
	return Row{RowKey: model.EndpointRow(tag), Kind: Plugin, Label: label, Micros: micros}
}

// Enabled are the rows that are not off.
func (l List) Enabled() List {
	return slices.DeleteFunc(slices.Clone(l), func(r Row) bool { return r.Off })
}

// Row finds the row of a key. One that is off is as if it were not there.
func (l List) Row(key string) (Row, bool) {
	at := slices.IndexFunc(l, func(r Row) bool { return r.RowKey == key })
	if at < 0 || l[at].Off {
		return Row{}, false
	}
	return l[at], true
}

// Page is what a page by a tier costs under a charge, in micros. Not ok: the list has no such row.
func (l List) Page(tier model.Tier, charge model.PageCharge) (micros int64, ok bool) {
	key, quantity := charge.Of(tier)
	row, ok := l.Row(key)
	return row.Of(int64(quantity)), ok
}

// Least is the lowest price of a page of any domain among the tiers, in micros. Not ok: none is
// covered.
func (l List) Least(tiers model.TierSet, charge model.Charge) (micros int64, ok bool) {
	micros, ok = l.Cheapest(tiers, charge.At(""))
	for _, row := range l.Domains() {
		if page, _ := l.Cheapest(tiers, charge.At(row.RowKey)); ok {
			micros = min(micros, page)
		}
	}
	return micros, ok
}

// Covered are those of the tiers that the list has a price for. A page by any other would cost
// nothing.
func (l List) Covered(tiers model.TierSet, charge model.PageCharge) (set model.TierSet) {
	for _, tier := range tiers.Tiers() {
		if _, found := l.Page(tier, charge); found {
			set |= model.TiersOf(tier)
		}
	}
	return set
}

// CheapestFirst are the covered tiers by what a page costs; of equal ones the first that is tried.
func (l List) CheapestFirst(tiers model.TierSet, charge model.PageCharge) []model.Tier {
	covered := l.Covered(tiers, charge).Tiers()
	slices.SortStableFunc(covered, func(a, b model.Tier) int {
		left, _ := l.Page(a, charge)
		right, _ := l.Page(b, charge)
		return cmp.Compare(left, right)
	})
	return covered
}

// Cheapest is the lowest price of a page among the tiers, in micros. Not ok: none is covered.
func (l List) Cheapest(tiers model.TierSet, charge model.PageCharge) (micros int64, ok bool) {
	covered := l.CheapestFirst(tiers, charge)
	if len(covered) == 0 {
		return 0, false
	}
	return l.Page(covered[0], charge)
}
