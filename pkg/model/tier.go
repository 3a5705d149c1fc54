package model

import "strings"

// Tier is a way of fetching a page. Records keep its number. Tiers are tried in the order of Tiers.
type Tier uint8

// The tiers of the specification (2.9).
const (
	Plain Tier = iota
	Super
	Render
	RenderSuper
	TierCount // number of tiers
)

// byPrice is the order in which tiers are tried: the cheapest working one first (2.9), by the
// specification's prices.
var byPrice = [TierCount]Tier{Plain, Render, Super, RenderSuper}

// String returns the tier's name in configurations, price rows and receipts.
func (t Tier) String() string {
	switch t {
	case Plain:
		return "plain"
	case Super:
		return "super"
	case Render:
		return "render"
	case RenderSuper:
		return "render+super"
	}
	return "unknown"
}

// parseTier returns the tier with a name.
func parseTier(name string) (Tier, bool) {
	for _, t := range byPrice {
		if t.String() == name {
			return t, true
		}
	}
	return 0, false
}

// PriceRow returns the stable key of the tier's price (2.9).
func (t Tier) PriceRow() string { return "tier:" + t.String() }

// Renders reports whether the tier uses a browser.
func (t Tier) Renders() bool { return t == Render || t == RenderSuper }

// TierSet is a set of tiers, one bit each.
type TierSet uint8

// AllTiers has every tier, Rendering those with a browser.
const (
	AllTiers  TierSet = 1<<TierCount - 1
	Rendering TierSet = 1<<Render | 1<<RenderSuper
)

// TiersOf makes a set.
func TiersOf(tiers ...Tier) TierSet {
	var set TierSet
	for _, t := range tiers {
		set |= 1 << t
	}
	return set
}

// Has reports whether t is in the set.
func (s TierSet) Has(t Tier) bool { return s&(1<<t) != 0 }

// Tiers lists the set, cheapest first.
func (s TierSet) Tiers() []Tier {
	var tiers []Tier
	for _, t := range byPrice {
		if s.Has(t) {
			tiers = append(tiers, t)
		}
	}
	return tiers
}

// String joins the names with commas.
func (s TierSet) String() string {
	var names []string
	for _, t := range s.Tiers() {
		names = append(names, t.String())
	}
	return strings.Join(names, ",")
}
