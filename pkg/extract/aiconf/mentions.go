package aiconf

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/extract/internal/prose"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/wordset"
)

// Pages name elements after what they hold: by class, id, itemprop, test attributes and data
// attributes with values. A name counts as a whole, or without uninformative words:
// product-price__value is a price. An element counts if its content looks like what its name says.
// Elements beside the thing do not count, nor do several similar ones, which belong to other things
// or to variants. Of the remaining elements, the one nearest to the heading counts.

// mention is an element with a name.
type mention struct {
	node *html.Node
	attr string // the data attribute with the name; "" if the element itself is named
}

// mentions holds a page's elements by the keys of their names.
type mentions struct {
	heading *html.Node // the main heading, nil if there is none
	by      map[string][]mention
	order   map[*html.Node]int // positions of the elements in by
	listed  map[kind]bool      // kinds of elements that are list items; nil until needed

	// Results by name, or by class and id together, because pages repeat them.
	keys   map[string][]string
	beside map[string]bool
	fit    map[*field][]fitting // see reader.fit
}

// Bounds of the examined names of a page.
const (
	maxMentions = 20_000
	maxNames    = 12  // per element
	maxToken    = 60  // bytes of a name
	maxShown    = 600 // bytes of an element's text; maxProse for a description
	maxProse    = 8_000
	maxLike     = 200 // examined mentions per field
)

// noise lists words that names contain beside their meaning.
var noise = wordset.Of("product products item article page detail details main info information " +
	"block box wrapper wrap container " +
	"inner outer value val text content field js pdp single entry summary current new now final " +
	"our the col row el elem element cell " +
	"line view formatted display heading h1 h2 woocommerce shopify magento symbol inline span " +
	"div module component " +
	"desktop mobile buy top header left right large small primary section area data attribute " +
	"prop property goods good offer offers " +
	"basic root special actual discounted")

// besides lists the words of elements that are beside a page's subject.
var besides = wordset.Of("nav navbar navigation menu megamenu footer breadcrumb breadcrumbs " +
	"related upsell upsells crosssell " +
	"crosssells recommended recommendation recommendations recommends similar also recently " +
	"facet facets pagination filter filters minicart " +
	"wishlist newsletter cookie cookies modal popup drawer toast tooltip swatch swatches " +
	"accessories bestsellers banner ad ads advert " +
	"skeleton placeholder")

var sidebars = wordset.Of("sidebar")

// unshown lists the classes of elements that only screen readers, or nobody, can see.
var unshown = wordset.Of("sr-only visually-hidden visuallyhidden screen-reader-text screen-reader " +
	"hidden d-none hide is-hidden u-hidden hidden-visually " +
	"a-offscreen")

// beforeNow lists the words of prices before a reduction. Many shops use regulars for any price.
var (
	beforeNow = wordset.Of("old was compare rrp before crossed strike strikethrough msrp uvp statt " +
		"original list retail")
	regulars = wordset.Of("regular")
	// notPrices lists the words of sums that are not the thing's price.
	notPrices = wordset.Of("unit per shipping delivery save saving savings saved discount " +
		"installment installments financing deposit " +
		"points monthly month difference badge label total subtotal")
	// sold lists the words of data attributes about a thing; other data attributes serve scripts.
	sold = wordset.Of("product item article sku mpn price brand ean gtin isbn currency rating " +
		"stock availability")
	// vague lists names that elements have for many reasons.
	vague = wordset.Of("content text body id link href url summary shop store merchant start end " +
		"image img picture photo section state")
)

// key makes names comparable: productPrice, price-product and product__price have the same key.
func key(words []string) string {
	words = slices.Clone(words)
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}

// wordsIn splits a name at signs, digits and capitals.
func wordsIn(name string) []string {
	var list []string
	start, last := -1, rune(0)
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r):
			if start >= 0 {
				list = append(list, strings.ToLower(name[start:i]))
			}
			start = -1
		case start < 0:
			start = i
		case unicode.IsUpper(r) && unicode.IsLower(last):
			list = append(list, strings.ToLower(name[start:i]))
			start = i
		}
		last = r
	}
	if start >= 0 {
		list = append(list, strings.ToLower(name[start:]))
	}
	return list
}

// keysOf returns the keys of a name, with and without noise.
func keysOf(name string) []string {
	if len(name) > maxToken {
		return nil
	}
	words := wordsIn(name)
	if len(words) == 0 {
		return nil
	}
	keys := []string{key(words)}
	bare := slices.DeleteFunc(slices.Clone(words),
		func(w string) bool { return noise[w] || len(w) == 1 }) // c-price, a-price
	if len(bare) > 0 && len(bare) < len(words) {
		keys = append(keys, key(bare))
	}
	return keys
}

// nameAttrs are the attributes that name their element.
var nameAttrs = wordset.Of("class id itemprop property data-testid data-test data-test-id data-qa " +
	"data-cy data-hook data-automation-id data-role data-ui-id")

// mentioned collects the names on a page once.
func (r *reader) mentioned() *mentions {
	if r.names != nil {
		return r.names
	}
	m := &mentions{by: map[string][]mention{}, order: map[*html.Node]int{},
		keys: map[string][]string{}, beside: map[string]bool{},
		fit: map[*field][]fitting{}}
	r.names = m
	if r.data.Root == nil {
		return m
	}
	if m.heading = r.heading(); r.wantsArticle() {
		m.heading = r.headline(m.heading)
	}
	around := map[*html.Node]bool{} // the heading and what contains it are never beside it
	for n := m.heading; n != nil; n = n.Parent {
		around[n] = true
	}
	count := 0
	var visit func(*html.Node)
	visit = func(n *html.Node) {
		if count >= maxMentions {
			return
		}
		if n.Type == html.ElementNode {
			if !around[n] && (isUnseen(n) || m.isBeside(n)) {
				return
			}
			m.noteNames(n, &count)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			visit(c)
		}
	}
	visit(r.data.Root)
	return m
}

// noteNames records the names of an element.
func (m *mentions) noteNames(n *html.Node, count *int) {
	names := 0
	add := func(name, attr string) {
		if names++; names > maxNames {
			return
		}
		keys, known := m.keys[name]
		if !known {
			keys = keysOf(name)
			m.keys[name] = keys
		}
		for _, k := range keys {
			if list := m.by[k]; len(list) < maxLike &&
				(len(list) == 0 || list[len(list)-1] != mention{n, attr}) {
				m.by[k] = append(list, mention{n, attr})
				*count++
			}
		}
	}
	m.order[n] = len(m.order)
	for i := range n.Attr {
		a := &n.Attr[i]
		switch {
		case nameAttrs[a.Key]:
			for name := range strings.FieldsSeq(a.Val) {
				add(name, "")
			}
		case strings.HasPrefix(a.Key, "data-") && a.Val != "" && len(a.Val) <= maxShown:
			name := strings.TrimPrefix(a.Key, "data-")
			if slices.ContainsFunc(wordsIn(name), func(w string) bool { return sold[w] }) {
				add(name, a.Key)
			}
		}
	}
}

// heading returns the page's main heading: the first one that begins the title, else the first one.
// A heading with the site's name counts only if there is no other.
func (r *reader) heading() *html.Node {
	title := normal(r.data.Title)
	var first, site *html.Node
	for n := range r.data.Root.Descendants() {
		if n.DataAtom != atom.H1 {
			continue
		}
		shown := shownText(n, maxShown)
		text := normal(shown)
		switch {
		case text == "":
		case r.isSite(shown) || r.wantsArticle() && r.leadsHome(n):
			if site == nil {
				site = n
			}
		case title != "" && strings.HasPrefix(title, text):
			return n
		case first == nil:
			first = n
		}
	}
	if first == nil {
		return site
	}
	return first
}

// isUnseen says whether an element is invisible to readers. Buttons and inputs are visible: they
// have data attributes.
func isUnseen(n *html.Node) bool {
	if n.DataAtom != atom.Button && n.DataAtom != atom.Input && concealed(n) {
		return true
	}
	for class := range strings.FieldsSeq(attrOf(n, "class")) {
		if unshown[class] {
			return true
		}
	}
	return false
}

// isBeside says whether an element is beside the page's subject.
func (m *mentions) isBeside(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Html, atom.Body, atom.Main, atom.Article:
		return false
	case atom.Footer, atom.Aside, atom.Nav:
		return true
	case atom.Header:
		return ancestorOf(n, func(a *html.Node) bool {
			return a.DataAtom == atom.Main ||
				a.DataAtom == atom.Article
		}) == nil
	}
	called := attrOf(n, "class") + " #" + attrOf(n, "id")
	beside, known := m.beside[called]
	if !known {
		beside = hasWord(n, besides) || hasWord(n, sidebars) && !hasWord(n, sold)
		m.beside[called] = beside
	}
	return beside
}

// maxCalled bounds how much of an element's class or id is examined, in bytes.
const maxCalled = 600

// hasWord says whether an element's class or id contains one of the words.
func hasWord(n *html.Node, any map[string]bool) bool {
	for _, name := range [...]string{attrOf(n, "class"), attrOf(n, "id")} {
		for _, word := range wordsIn(name[:min(len(name), maxCalled)]) {
			if any[word] {
				return true
			}
		}
	}
	return false
}

func ancestorOf(n *html.Node, fits func(*html.Node) bool) *html.Node {
	for n = n.Parent; n != nil; n = n.Parent {
		if n.Type == html.ElementNode && fits(n) {
			return n
		}
	}
	return nil
}

// kind identifies similar elements in one place.
type kind struct {
	parent      *html.Node
	name, class string
}

func kindOf(n *html.Node) kind { return kind{n.Parent, n.Data, attrOf(n, "class")} }

// note finds the kinds of elements of which several hold the field with different values.
func (m *mentions) note(list []fitting) {
	type branch struct {
		node  *html.Node
		value []byte
	}
	first := map[kind]branch{}
	for _, at := range list {
		for n := at.node; n.Parent != nil; n = n.Parent {
			k := kindOf(n)
			before, known := first[k]
			if !known {
				first[k] = branch{n, at.value}
			} else if before.node != n && !bytes.Equal(before.value, at.value) {
				m.listed[k] = true
			}
		}
	}
}

// isListed says whether an element is within one of those.
func (m *mentions) isListed(n *html.Node) bool {
	for ; n.Parent != nil; n = n.Parent {
		if m.listed[kindOf(n)] {
			return true
		}
	}
	return false
}

// nearest returns the element that shares most ancestors with the heading; of several, the first.
func (m *mentions) nearest(list []fitting) fitting {
	if len(list) == 0 {
		return fitting{}
	}
	depth := map[*html.Node]int{}
	var path []*html.Node
	for n := m.heading; n != nil; n = n.Parent {
		path = append(path, n)
	}
	for i, n := range path {
		depth[n] = len(path) - i
	}
	best, most := list[0], -1
	for _, at := range list {
		n := at.node
		for n != nil && depth[n] == 0 {
			n = n.Parent
		}
		if n != nil && depth[n] > most {
			best, most = at, depth[n]
		}
	}
	return best
}

// Bounds of the nodes that are examined for a text: some for each byte, and at least as many as a
// card has.
const (
	nodesPerByte = 2
	minNodes     = 2_000
)

// shownText returns an element's visible text with white space collapsed, up to about most bytes.
func shownText(n *html.Node, most int) string { return textBut(n, most, nil) }

// textBut returns an element's visible text without the parts for which isLeft holds.
func textBut(n *html.Node, most int, isLeft func(*html.Node) bool) string {
	var out strings.Builder
	left := max(nodesPerByte*most, minNodes)
	var visit func(*html.Node)
	visit = func(n *html.Node) {
		for c := n.FirstChild; c != nil && out.Len() <= most && left > 0; c = c.NextSibling {
			left--
			switch {
			case c.Type == html.TextNode:
				out.WriteString(beginning(c.Data, most))
			case c.Type != html.ElementNode || isUnseen(c) || isLeft != nil && isLeft(c):
			case inLine[c.DataAtom]:
				out.WriteString(tree.Between(out.String(), c))
				visit(c)
			default:
				out.WriteByte(' ')
				visit(c)
				out.WriteByte(' ')
			}
		}
	}
	visit(n)
	return strings.Join(strings.Fields(prose.Visible(out.String())), " ")
}

// beginning cuts a text, leaving room for white space that is collapsed later. Otherwise each line
// of a hostile page would be copied whole.
func beginning(text string, most int) string {
	if enough := 8*most + 1024; len(text) > enough {
		return strings.ToValidUTF8(text[:enough], "")
	}
	return text
}

// inLine lists the elements that do not separate words.
var inLine = map[atom.Atom]bool{atom.A: true, atom.Abbr: true, atom.B: true, atom.Bdi: true,
	atom.Em: true, atom.I: true, atom.Ins: true,
	atom.Mark: true, atom.Ruby: true, atom.Rb: true,
	atom.Small: true, atom.Span: true, atom.Strong: true, atom.Sub: true,
	atom.Sup: true, atom.U: true}
