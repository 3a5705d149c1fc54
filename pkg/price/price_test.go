package price_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// TestStandard checks the prices of the specification: 2.9 for tiers, 2.9 and 4.14 for endpoints.
func TestStandard(t *testing.T) {
	want := map[string]int64{"tier:plain": 150, "tier:render": 750, "tier:super": 1500,
		"tier:render+super": 3750, "plugin:/plugin/marketplace/pdp": 150,
		"plugin:/plugin/marketplace/search": 150, "plugin:/plugin/search": 1500,
		"plugin:websitecontacts": 150}
	list := price.Standard()
	for _, row := range list {
		if row.Micros != want[row.RowKey] || row.Label == "" {
			t.Errorf("%+v, want %d micros", row, want[row.RowKey])
		}
		delete(want, row.RowKey)
	}
	if len(want) > 0 {
		t.Errorf("rows are missing: %v", want)
	}
	if cost, ok := list.Page(model.Plain, contacts().Charge.At("")); cost != 300 || !ok {
		t.Errorf("a website's contacts cost %d micros, %v", cost, ok)
	}
}

func contacts() model.Endpoint {
	endpoint, _ := model.EndpointOf(model.WebsiteContacts)
	return endpoint
}

// drawList draws a list of some rows, often with equal prices.
func drawList(t *rapid.T) price.List {
	list := slices.DeleteFunc(price.Standard(), func(price.Row) bool {
		return rapid.IntRange(0, 3).Draw(t, "without") == 0
	})
	for i := range list {
		list[i].Micros = rapid.Int64Range(0, 5).Draw(t, "micros") * 150
	}
	for n := range rapid.IntRange(0, 3).Draw(t, "domains") {
		list = append(list, price.Row{RowKey: price.DomainKey(fmt.Sprintf("d%d.example", n)),
			Kind: price.Domain, Micros: rapid.Int64Range(0, 5).Draw(t, "micros") * 150,
			Off: rapid.Bool().Draw(t, "off")})
	}
	return list
}

// TestLaws: the results of a list's functions agree, whatever its rows.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t)
		tiers := model.TierSet(rapid.Uint8Range(0, uint8(model.AllTiers)).Draw(t, "tiers"))
		run := model.Charge{Quantity: rapid.Uint32Range(0, 3).Draw(t, "quantity"),
			Row: rapid.SampledFrom([]string{"", "plugin:/plugin/search", "plugin:none"}).
				Draw(t, "row")}
		least, sold := list.Least(tiers, run)
		if dear, ok := list.Cheapest(tiers, run.At("")); ok != sold || least > dear {
			t.Fatalf("the least is %d, %v; without a domain %d, %v", least, sold, dear, ok)
		}
		charge := list.At(run, rapid.SampledFrom([]string{"d0.example", "www.d1.example:81",
			"d2.example.com", "other.example"}).Draw(t, "host"))
		if page, ok := list.Cheapest(tiers, charge); sold && ok && page < least {
			t.Fatalf("a page costs %d, the least is %d", page, least)
		}
		covered := list.Covered(tiers, charge)
		for _, tier := range model.AllTiers.Tiers() {
			cost, ok := list.Page(tier, charge)
			if covered.Has(tier) != (ok && tiers.Has(tier)) {
				t.Fatalf("%v of %v is covered: %v; it has a price: %v", tier, tiers, covered, ok)
			}
			key, quantity := charge.Of(tier)
			if row, found := list.Row(key); found != ok || cost != row.Micros*int64(quantity) {
				t.Fatalf("a page by %v costs %d, %v; its row is %+v", tier, cost, ok, row)
			}
		}
		sorted := list.CheapestFirst(tiers, charge)
		if model.TiersOf(sorted...) != covered || len(sorted) != len(covered.Tiers()) {
			t.Fatalf("%v sorted is %v", covered, sorted)
		}
		for i := 1; i < len(sorted); i++ {
			left, _ := list.Page(sorted[i-1], charge)
			right, _ := list.Page(sorted[i], charge)
			first := slices.Index(covered.Tiers(), sorted[i-1]) <
				slices.Index(covered.Tiers(), sorted[i])
			if left > right || left == right && !first {
				t.Fatalf("%v stands before %v", sorted[i-1], sorted[i])
			}
		}
		cheapest, ok := list.Cheapest(tiers, charge)
		if ok != (len(sorted) > 0) {
			t.Fatalf("the cheapest of %v: %v", sorted, ok)
		}
		for _, tier := range sorted {
			if cost, _ := list.Page(tier, charge); cost < cheapest {
				t.Fatalf("a page by %v costs %d, the cheapest %d", tier, cost, cheapest)
			}
		}
	})
}

// The price of a website's contacts, and of 1,000 plain pages.
func ExampleList() {
	list := price.Standard()
	endpoint, _ := model.EndpointOf(model.WebsiteContacts)
	website, _ := list.Page(model.Plain, endpoint.Charge.At(""))
	plain, _ := list.Row(model.Plain.PriceRow())
	fmt.Println(website, plain.Of(1000))
	// Output: 300 150000
}
