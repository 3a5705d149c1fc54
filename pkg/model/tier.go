package model

import "strings"

// Tier is a way of fetching a page, cheapest first.
type Tier uint8

// The tiers of the specification (2.9).
const (
	Plain Tier = iota
	Super
	Render
	RenderSuper
	tierCount
)

// String is the tier's name in price rows and receipts.
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

// PriceRow is the stable key of the tier's price (2.9).
func (t Tier) PriceRow() string { return "tier:" + t.String() }

// TierSet is a set of tiers, one bit each.
type TierSet uint8

// TiersOf makes a set.
func TiersOf(tiers ...Tier) TierSet {
	var set TierSet
	for _, t := range tiers {
		set |= 1 << t
	}
	return set
}

// Has says whether t is in the set.
func (s TierSet) Has(t Tier) bool { return s&(1<<t) != 0 }

// Tiers lists the set, cheapest first.
func (s TierSet) Tiers() []Tier {
	var tiers []Tier
	for t := range tierCount {
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
