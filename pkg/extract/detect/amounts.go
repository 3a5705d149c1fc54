package detect

import (
	"slices"

	"golang.org/x/net/html"
)

// maxAmounts bounds the amounts examined of a page about one thing.
const maxAmounts = 200

// amountsAfter returns the first amounts that a page shows after its heading, in its order, as
// leaves of one element each.
func (p *probe) amountsAfter(heading *html.Node, lists []list) []*leaf {
	behind := false
	var seen []*leaf
	elements(p.root, func(at *html.Node) bool {
		if at == heading {
			behind = true
		}
		if len(seen) == maxAmounts || p.isBeside(at) || inLists(lists, at) {
			return false
		}
		if !behind {
			return true
		}
		l := &leaf{nodes: []*html.Node{at}, values: []string{textOf(at)}, have: 1}
		whole := isAmount(at, l.values[0]) && !innerPrice(at, l.values[0])
		if own := ownPrice(at); own != "" && !whole && slices.Contains(words(at), "price") {
			l.attr, l.values[0] = ownText, own
		}
		if (whole || l.attr == ownText) && !isReduction(l.values[0]) {
			seen = append(seen, l)
		}
		return !whole
	})
	return seen
}

// shown returns the current price after the heading and the one before a reduction. The current one
// is the first that is not struck, unless a price beside it is a likelier one.
func (p *probe) shown(heading *html.Node, lists []list) (now, before *leaf) {
	n := naming{items: set{p.root: true}}
	seen := p.amountsAfter(heading, lists)
	var current *shownPrice
	for _, l := range seen {
		next := n.shownPrice(l, seen)
		switch {
		case next.former:
			if before == nil {
				before = l
			}
		case current == nil:
			current = &next
		case !next.isNear(current):
		case next.replaces(current):
			if before == nil && current.isReducedTo(&next) {
				before = current.leaf
			}
			current = &next
		case before == nil && next.isReducedTo(current):
			before = next.leaf
		}
	}
	if current != nil {
		return current.leaf, before
	}
	if before != nil && ancestor(before.first(), isStruck) == nil &&
		!n.calls(before, 2, surely...) {
		return before, nil
	}
	return nil, before
}

// shownPrice is an amount of a page about one thing.
type shownPrice struct {
	priced
	named bool // called a price
}

func (n *naming) shownPrice(l *leaf, among []*leaf) shownPrice {
	aside, _ := n.isAside(l, among)
	s := shownPrice{
		priced: priced{leaf: l, former: n.struck(l), maybe: n.isCalled(l, formerly)},
		named:  n.calls(l, 2, append(slices.Clone(current), "price")...),
	}
	s.aside = aside && !s.maybe || l.most(isBeside)
	return s
}

// maxNear bounds the levels from a price up to the block around it and the one before a reduction.
const maxNear = 3

// isNear says whether a price is in the same block of the page as another.
func (s *shownPrice) isNear(other *shownPrice) bool {
	around := s.first()
	for range maxNear {
		if around.Parent != nil && around.Parent.Data != "body" {
			around = around.Parent
		}
	}
	return holds(around, other.first())
}

// replaces says whether a price is likelier the current one than another before it.
func (s *shownPrice) replaces(earlier *shownPrice) bool {
	return s.named && !s.aside && (earlier.aside || earlier.isReducedTo(s))
}

// isReducedTo says whether a price may be the one before a reduction to another.
func (s *shownPrice) isReducedTo(now *shownPrice) bool {
	return s.maybe && !s.aside && !now.maybe && amountOf(s.first()) > amountOf(now.first())
}
