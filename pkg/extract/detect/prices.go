package detect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/model"
)

// surely are words for a price before a reduction. formerly adds ambiguous words: many shops call
// every price regular or list, so without another price, that one is the current price.
var (
	surely = []string{"old", "was", "compare", "rrp", "before", "crossed", "strike", "msrp",
		"uvp", "statt", "strikethrough", "striked", "ancien", "anterior", "tachado", "barre"}
	formerly = append([]string{"regular", "list", "original", "retail", "standard", "normal",
		"non", "full"}, surely...)
)

// other are words for amounts that are not an item's price.
var other = []string{"unit", "per", "shipping", "delivery", "save", "saving", "savings", "saved",
	"discount", "installment", "installments", "tax", "vat", "percentage", "percent", "badge",
	"deposit", "fee", "base", "tier", "lowest", "history", "omnibus", "parcel", "instalment",
	"club", "member", "members", "loyalty"}

// current are words for the current price.
var current = []string{"sale", "sales", "special", "now", "current", "new", "actual",
	"offer", "promo", "reduced"}

// struck says whether a leaf is crossed out.
func (n *naming) struck(l *leaf) bool {
	for at := l.first(); at != nil && !n.items[at]; at = at.Parent {
		switch {
		case isStruck(at):
			return true
		case at.Data == "ins":
			return false
		}
	}
	return n.isCalled(l, surely)
}

// isCalled says whether, from a leaf upward, a word of any occurs before a word of current.
func (n *naming) isCalled(l *leaf, any []string) bool {
	at := l.first()
	for range maxInner {
		if at == nil || n.items[at] && at != l.first() {
			return false
		}
		called := statesLeftOut(at)
		switch {
		case sharesWord(called, any):
			return true
		case sharesWord(called, current):
			return false
		}
		at = at.Parent
	}
	return false
}

// statesLeftOut returns an element's words, without classes that only tell what it contains.
func statesLeftOut(n *html.Node) []string {
	var called []string
	for class := range strings.FieldsSeq(tree.Attr(n, "class")) {
		if list := split(class); !sharesWord(list, []string{"with", "has", "without", "on"}) {
			called = append(called, list...)
		}
	}
	return append(append(called, split(tree.Attr(n, "itemprop"))...),
		split(tree.Attr(n, "data-hook")+" "+tree.Attr(n, "data-testid")+" "+
			tree.Attr(n, "data-test")+" "+tree.Attr(n, "data-qa"))...)
}

// priced is a leaf with prices. score rates how likely they are the items' prices.
type priced struct {
	*leaf
	former, maybe bool // surely and possibly before a reduction
	aside         bool // called an amount other than the price
	score         float64
}

// prices finds the items' prices and their prices before a reduction. A regular price is the price
// of those items that have no other one.
func (n *naming) prices() {
	var leaves []*leaf
	for _, l := range n.leaves {
		shown := !l.isAttribute() || l.attr == "content" || strings.HasPrefix(l.attr, "data-price")
		if !n.taken[l] && shown && n.isPrice(l) && !l.most(isReduction) {
			leaves = append(leaves, l)
		}
	}
	var all []priced
	for _, l := range leaves {
		p := priced{leaf: l, former: n.struck(l), maybe: n.isCalled(l, formerly)}
		p.score = float64(l.have)
		if n.calls(l, 1, "price", "amount", "preis", "prix", "precio", "money") {
			p.score *= 2
		}
		if n.calls(l, 1, current...) && !p.maybe {
			p.score *= 1.2
		}
		var shared bool
		switch p.aside, shared = n.isAside(l, leaves); {
		case p.aside || l.most(isBeside):
			p.score /= 10
		case shared:
			p.score /= 2
		}
		if l.isAttribute() {
			p.score /= 3
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b priced) int { return cmp.Compare(b.score, a.score) })
	regular := 0 // items whose only price may be the regular one
	for _, p := range all {
		if p.maybe && !p.former && !p.aside {
			regular = max(regular, p.have)
		}
	}
	now := n.gather(all, func(p priced) bool {
		return !p.former && !p.maybe && (!p.aside || p.have > 2*regular)
	})
	maybe := n.gather(all, func(p priced) bool { return !p.former && p.maybe })
	former := n.gather(all, func(p priced) bool { return p.former })
	n.combine(now, maybe, former)
	elements := set{}
	for _, p := range all {
		n.taken[p.leaf] = true
		for _, i := range indexes(p.nodes) {
			elements[p.nodes[i]] = true
		}
	}
	for _, l := range n.leaves { // other texts in a price's element are not fields
		n.taken[l] = n.taken[l] || elements[l.first()]
	}
}

// isAside says whether a leaf, or an element around it alone, is called an amount other than the
// price. shared says whether an element around several amounts is called so. One of these may be
// the price, as in price-and-shipping.
func (n *naming) isAside(l *leaf, among []*leaf) (aside, shared bool) {
	at := l.first()
	for depth := range 3 {
		if at == nil || n.items[at] && depth > 0 {
			break
		}
		if sharesWord(statesLeftOut(at), other) {
			if depth == 0 || !l.isAmong(among, depth) {
				return true, false
			}
			shared = true
		}
		at = at.Parent
	}
	return false, shared
}

// isAmong says whether an element some levels above a leaf also holds another amount.
func (l *leaf) isAmong(among []*leaf, levels int) bool {
	for i, at := range l.nodes {
		around := at
		for range levels {
			if around != nil {
				around = around.Parent
			}
		}
		if around == nil {
			continue
		}
		for _, k := range among {
			if other := k.nodes[i]; other != nil && k.values[i] != l.values[i] &&
				holds(around, other) && !holds(at, other) && !holds(other, at) {
				return true
			}
		}
	}
	return false
}

// isReduction says whether a text is an amount to be taken off: -€5.00.
func isReduction(text string) bool {
	price, ok := amount.Parse(text)
	return ok && price.Negative
}

// isBeside says whether a price is for something other than the item.
func isBeside(text string) bool {
	text = strings.ToLower(text)
	for _, word := range [...]string{"save ", "tax", " off", "shipping", "versand", "livraison",
		"/mo", "per month", "spare", "mwst", "ust"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// isAttribute says whether a leaf's values are attributes rather than texts.
func (l *leaf) isAttribute() bool { return l.attr != "" && l.attr != ownText }

// gather combines leaves of different items: the best one, and further ones that cover other items.
func (n *naming) gather(all []priced, fits func(priced) bool) []part {
	var parts []part
	used := make([]bool, n.count)
	for _, p := range all {
		if !fits(p) || p.isAttribute() && len(parts) > 0 {
			continue
		}
		if len(parts) > 0 && (p.score*4 < all[0].score && p.have*2 > n.count ||
			slices.ContainsFunc(indexes(p.nodes), func(i int) bool { return used[i] })) {
			continue
		}
		for _, i := range indexes(p.nodes) {
			used[i] = true
		}
		parts = append(parts, part{nodes: p.nodes, own: p.attr == ownText})
		if p.isAttribute() {
			break
		}
	}
	return parts
}

// indexes returns the positions that have nodes.
func indexes(nodes []*html.Node) []int {
	var list []int
	for i, n := range nodes {
		if n != nil {
			list = append(list, i)
		}
	}
	return list
}

// merged combines the nodes of all parts.
func merged(parts []part, count int) []*html.Node {
	nodes := make([]*html.Node, count)
	for _, p := range parts {
		for i, at := range p.nodes {
			if nodes[i] == nil {
				nodes[i] = at
			}
		}
	}
	return nodes
}

// combine makes the fields price and listPrice.
func (n *naming) combine(now, maybe, former []part) {
	prices := merged(now, n.count)
	for _, m := range maybe {
		alone, both := make([]*html.Node, n.count), make([]*html.Node, n.count)
		for _, i := range indexes(m.nodes) {
			if prices[i] == nil {
				alone[i] = m.nodes[i]
			} else {
				both[i] = m.nodes[i]
			}
		}
		switch isAlone, isBoth := len(indexes(alone)) > 0, len(indexes(both)) > 0; {
		case !isBoth:
			now = append(now, m)
		case !isAlone:
			former = append(former, m)
		default: // the same place means either, depending on the item
			now = append(now, part{nodes: alone, with: prices, absent: true})
			former = append(former, part{nodes: both, with: prices})
		}
	}
	prices = merged(now, n.count)
	former = slices.DeleteFunc(former, func(p part) bool { return !isAbove(p.nodes, prices) })
	n.add("price", now)
	n.add("listPrice", former)
}

// isAbove says whether most prices of a place exceed the items' current prices. Equal prices are
// repetitions.
func isAbove(former, now []*html.Node) bool {
	above, both := 0, 0
	for _, i := range indexes(former) {
		if now[i] == nil {
			continue
		}
		before, after := amountOf(former[i]), amountOf(now[i])
		if before == 0 || after == 0 {
			continue
		}
		both++
		above += count(before > after)
	}
	return above*2 > both || both == 0
}

// amountOf returns an element's price; 0 if it has none.
func amountOf(n *html.Node) float64 {
	text := ownPrice(n)
	if text == "" {
		text = textOf(n)
	}
	price, ok := amount.Parse(text)
	if !ok {
		return 0
	}
	value, err := strconv.ParseFloat(price.Amount, 64)
	if err != nil {
		return 0
	}
	return value
}

// add makes a field of parts.
func (n *naming) add(name string, parts []part) {
	nodes := merged(parts, n.count)
	have := len(indexes(nodes))
	if have == 0 {
		return
	}
	f := field{name: name, kind: model.Text, nodes: nodes, exact: true,
		share: float64(have) / float64(n.count)}
	for _, p := range parts {
		f.own = f.own || p.own
	}
	for _, l := range n.leaves { // an attribute is the only part
		if len(parts) == 1 && l.isAttribute() && slices.Equal(l.nodes, parts[0].nodes) &&
			n.isPrice(l) {
			f.kind, f.attr = model.Attr, l.attr
		}
	}
	if len(parts) > 1 || parts[0].with != nil || f.own {
		f.parts = parts
	}
	n.fields = append(n.fields, f)
}

func (n *naming) isPrice(l *leaf) bool {
	if l.attr == "href" || l.attr == "src" {
		return false
	}
	if l.most(amount.Is) {
		return true
	}
	called := n.calls(l, 2, "price", "amount", "preis", "prix", "precio") ||
		strings.HasPrefix(l.attr, "data-price")
	if called && l.most(digits.MatchString) || n.struck(l) && l.most(cents.MatchString) {
		return true
	}
	return l.attr == "" && l.distinct > 1 && l.isMoney()
}

// isMoney says whether all values are short amounts of one currency, even with ambiguous signs.
func (l *leaf) isMoney() bool {
	currency := ""
	for _, v := range l.values {
		if v == "" {
			continue
		}
		price, ok := amount.Parse(v)
		if len(v) > 20 || !ok || price.Currency == "" ||
			currency != "" && price.Currency != currency {
			return false
		}
		currency = price.Currency
	}
	return currency != ""
}
