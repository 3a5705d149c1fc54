package price_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

func domainRow(domain string, micros int64) price.Row {
	return price.Row{RowKey: price.DomainKey(domain), Kind: price.Domain, Micros: micros}
}

// TestDomainOfAHost: a domain's row applies to all its hosts, and no others.
func TestDomainOfAHost(t *testing.T) {
	list := price.List{{RowKey: "tier:plain", Kind: price.Tier, Micros: 150},
		domainRow("shop.example", 1), domainRow("shop.co.uk", 2), domainRow("me.github.io", 3),
		domainRow("xn--bcher-kva.example", 4), domainRow("off.example", 5)}
	list[5].Off = true
	places := list.Places()
	for authority, want := range map[string]int64{
		"shop.example": 1, "www.shop.example": 1, "a.b.shop.example:8443": 1, "shop.example.": 1,
		"myshop.example": 0, "shop.example.com": 0, "example": 0, "other.example": 0,
		"shop.co.uk": 2, "www.shop.co.uk": 2, "other.co.uk": 0, "co.uk": 0,
		"me.github.io": 3, "www.me.github.io": 3, "you.github.io": 0, "github.io": 0,
		"www.xn--bcher-kva.example": 4, "off.example": 0, "10.0.0.1:80": 0,
		"[2001:db8::1]:81": 0, "": 0,
	} {
		key, micros := "tier:plain", int64(150)
		if want > 0 {
			key, micros = list[want].RowKey, want
		}
		if place := places.Of(authority); int64(place) != want {
			t.Errorf("%q has place %d, want %d", authority, place, want)
		}
		charge := list.At(model.Charge{}, authority)
		row, _ := charge.Of(model.Plain)
		if page, ok := list.Page(model.Plain, charge); row != key || !ok || page != micros {
			t.Errorf("%q: a page under %q costs %d, %v", authority, row, page, ok)
		}
	}
	if places := list[:1].Places(); places != nil || places.Of("shop.example") != 0 {
		t.Errorf("places without rows: %v", places)
	}
}

// TestDomainReplacesTiers: a domain's row replaces the prices of all tiers, but of no endpoint.
func TestDomainReplacesTiers(t *testing.T) {
	list := append(price.Standard(), domainRow("shop.example", 40))
	for tag, plain := range map[string]int64{"": 40, model.ProductPageTag: 150,
		model.WebsiteContacts: 300} {
		endpoint, _ := model.EndpointOf(tag)
		charge := list.At(endpoint.Charge, "www.shop.example")
		for _, tier := range model.AllTiers.Tiers() {
			want := 40 * int64(max(charge.Quantity, 1))
			if tier == model.Plain {
				want = plain
			}
			if page, ok := list.Page(tier, charge); page != want || !ok {
				t.Errorf("a page of %q by %s costs %d, want %d", tag, tier, page, want)
			}
		}
	}
}

// TestPlaces: a place leads to the row of its domain.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t)
		rows, places := list.Domains(), list.Places()
		if len(places) != len(rows) {
			t.Fatalf("%v of %v", places, rows)
		}
		for _, place := range []int{0, len(rows) + 1} {
			if key := price.KeyAt(rows, uint8(place)); key != "" {
				t.Fatalf("at %d of %v is %q", place, rows, key)
			}
		}
		for n := range 4 {
			host := fmt.Sprintf("www.d%d.example", n)
			place, domain := places.Of(host), "tier:plain"
			if place > 0 {
				domain = price.KeyAt(rows, place)
			}
			if row, _ := list.At(model.Charge{}, host).Of(model.Plain); row != domain {
				t.Fatalf("%s is charged under %q, its place is that of %q", host, row, domain)
			}
			if _, on := list.Row(fmt.Sprintf("domain:d%d.example", n)); on != (place > 0) {
				t.Fatalf("%s has place %d, its row is on: %v", host, place, on)
			}
		}
	})
}

func TestDomainOf(t *testing.T) {
	for key, want := range map[string]string{
		"domain:shop.example": "shop.example", "domain:xn--bcher-kva.example": "xn--bcher-kva.example",
		"domain:" + strings.Repeat("a", 253): strings.Repeat("a", 253),
		"domain:" + strings.Repeat("a", 254): "", "domain:": "", "shop.example": "",
		"domain:Shop.example": "", "domain:shop.example/": "", "domain:a b": "",
		"domain:bücher.example": "", "tier:plain": "",
	} {
		if domain, ok := price.DomainOf(key); domain != want || ok != (want != "") {
			t.Errorf("%q is of %q, %v", key, domain, ok)
		}
	}
}
