package detect

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/model"
)

// naming names the leaves.
type naming struct {
	items  set
	count  int
	leaves []*leaf
	taken  map[*leaf]bool
	fields []field
}

// addField makes a field of a leaf.
func (n *naming) addField(name string, l *leaf) {
	if slices.ContainsFunc(n.fields, func(f field) bool { return f.name == name }) {
		return
	}
	n.taken[l] = true
	f := field{name: name, kind: model.Text, attr: l.attr, nodes: l.nodes,
		share: float64(l.have) / float64(n.count)}
	if l.attr != "" {
		f.kind = model.Attr
	}
	n.fields = append(n.fields, f)
}

// best makes a field of the free leaf with the highest score above 0.
func (n *naming) best(name string, score func(*leaf) float64) *leaf {
	var best *leaf
	most := 0.0
	for _, l := range n.leaves {
		if n.taken[l] {
			continue
		}
		if s := score(l); s > most {
			best, most = l, s
		}
	}
	if best != nil {
		n.addField(name, best)
	}
	return best
}

// first returns a leaf's first element.
func (l *leaf) first() *html.Node {
	for _, n := range l.nodes {
		if n != nil {
			return n
		}
	}
	return nil
}

// most says whether so holds for at least six of ten values.
func (l *leaf) most(so func(string) bool) bool {
	n := 0
	for _, v := range l.values {
		if v != "" && so(v) {
			n++
		}
	}
	return n*10 >= l.have*6
}

// calls says whether a leaf's element, or one around it in the item, is named by one of any.
func (n *naming) calls(l *leaf, depth int, any ...string) bool {
	at := l.first()
	for range depth + 1 {
		if at == nil || n.items[at] && at != l.first() {
			return false
		}
		for _, word := range words(at) {
			if slices.Contains(any, word) {
				return true
			}
		}
		at = at.Parent
	}
	return false
}

var (
	digits = regexp.MustCompile(`^[0-9][0-9.,' ]*([.][-–—]+)?$`)
	cents  = regexp.MustCompile(`^[0-9][0-9.,' ]*([.,][0-9]{2}|[.][-–—]+)$`)
	stars  = regexp.MustCompile(`(?i)^(rated |rating:? ?)?[0-9]([.,][0-9]{1,2})?( ?(out of|/|von|sur|de|su) ?(5|10)| stars?| sterne)?[. ]*$|^(rated |rating:? ?)?[0-9]([.,][0-9]+)? (out of|von|sur) `)
	counts = regexp.MustCompile(`^\(? ?[0-9][0-9.,]* ?[+k]?\)?( (customer |global )?(reviews?|ratings?|bewertung(en)?|avis|opiniones|votes?))?\)?$`)
	dates  = regexp.MustCompile(`(?i)^[0-9]{4}-[0-9]{2}-[0-9]{2}|^[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}|^([0-9]{1,2}\.? )?(jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-zé]*\.?,? [0-9]{1,2}|^[0-9]{1,2}\.? (jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-zé]*\.? [0-9]{4}|^[0-9]+ (minutes?|hours?|days?|weeks?|months?) ago`)
)

// isProse says whether a value consists of words.
func isProse(v string) bool {
	letters := 0
	for _, r := range v {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127 {
			letters++
		}
	}
	return letters*2 > len(v)/2 && letters > 1
}

// title adds the field that makes the rows. Leaves that repeat the title are taken.
func (n *naming) title(titles []*html.Node) {
	n.fields = append(n.fields, field{name: "title", kind: model.Text, nodes: titles, share: 1})
	texts := make([]string, len(titles))
	for i, title := range titles {
		texts[i] = textOf(title)
	}
	for _, l := range n.leaves {
		same := 0
		for i, at := range l.nodes {
			if at != nil && l.attr == "" && (at == titles[i] || l.values[i] == texts[i]) {
				same++
			}
		}
		n.taken[l] = n.taken[l] || same*2 > l.have
	}
}

func (n *naming) link() {
	var title []*html.Node
	for _, f := range n.fields {
		if f.name == "title" {
			title = f.nodes
		}
	}
	n.best("url", func(l *leaf) float64 {
		at := l.first()
		if l.attr != "href" || at.Data != "a" || l.distinct < 2 {
			return 0
		}
		score := float64(l.have) * float64(l.distinct) / float64(l.have)
		around := 0
		for i, a := range l.nodes {
			if a != nil && title != nil && title[i] != nil &&
				(holds(a, title[i]) || holds(title[i], a)) {
				around++
			}
		}
		if around*2 > l.have {
			score *= 3
		}
		if !l.most(func(v string) bool {
			return !strings.HasPrefix(v, "#") && !strings.HasPrefix(v, "javascript:") &&
				!strings.HasPrefix(v, "mailto:")
		}) {
			return 0
		}
		return score
	})
	for _, l := range n.leaves {
		if l.attr == "href" {
			n.taken[l] = true
		}
	}
}

// pictured lists the attributes that hold a picture's one address, the best first. Rows have them
// in absolute form, unlike a srcset.
var pictured = []string{"data-src", "data-original", "data-lazy-src", "src"}

func (n *naming) picture() {
	n.best("image", func(l *leaf) float64 {
		at := l.first()
		order := slices.Index(pictured, l.attr)
		if at.Data != "img" || order < 0 || l.distinct*2 < l.have {
			return 0
		}
		score := float64(l.have) * (1 - float64(order)/10)
		if n.calls(l, 1, "icon", "badge", "flag", "logo", "avatar", "star") {
			score /= 4
		}
		return score
	})
	for _, l := range n.leaves {
		if at := l.first(); at.Data == "img" || at.Data == "source" {
			n.taken[l] = true
		}
	}
}

// marks lists field names with the words that name such elements and a check of their values.
var marks = []struct {
	name  string
	words []string
	fits  func(string) bool
}{
	{"currency", []string{"currency", "waehrung", "währung"}, amount.IsCode},
	{"rating", []string{"rating", "stars", "star", "score", "bewertung", "average"},
		stars.MatchString},
	{"reviewCount", []string{"reviews", "review", "ratings", "rating", "count", "votes", "comments",
		"avis"}, counts.MatchString},
	{"date", []string{"date", "time", "published", "posted", "datum", "datetime"},
		func(v string) bool { return dates.MatchString(v) }},
	{"sku", []string{"sku", "asin", "mpn", "ref", "reference", "artikelnummer"},
		func(v string) bool { return len(v) <= 60 }},
	{"brand", []string{"brand", "vendor", "manufacturer", "marke", "designer", "maker"}, isShort},
	{"author", []string{"author", "byline", "by", "user", "username", "writer"}, isShort},
	{"company", []string{"company", "employer", "organization", "hiring", "firma"}, isShort},
	{"location", []string{"location", "address", "city", "ort", "place", "locality"}, isShort},
	{"salary", []string{"salary", "compensation", "gehalt"}, isShort},
	{"availability", []string{"stock", "availability", "available", "inventory", "delivery"},
		isShort},
	{"category", []string{"category", "categories", "section", "topic", "kategorie"}, isShort},
	{"description", []string{"description", "desc", "excerpt", "summary", "teaser", "snippet",
		"abstract", "intro", "body"},
		func(v string) bool { return len(v) > 25 }},
}

// constants are the marks that are informative even if all items have the same value.
var constants = []string{"currency", "availability"}

// minConstant is the number of items from which equal values are no accident.
const minConstant = 3

// isConstant says whether all items have the same value in a leaf, which is then uninformative.
func (n *naming) isConstant(l *leaf) bool {
	return l.distinct < 2 && l.have == n.count && n.count >= minConstant
}

func isShort(v string) bool { return len(v) <= 120 }

// marked names the leaves whose elements are named by their meaning.
func (n *naming) marked() {
	for _, mark := range marks {
		n.best(mark.name, func(l *leaf) float64 {
			if n.isConstant(l) && !slices.Contains(constants, mark.name) {
				return 0
			}
			if !l.most(mark.fits) || l.attr == "aria-label" && mark.name != "rating" {
				return 0
			}
			score := float64(l.have)
			switch {
			case n.calls(l, 0, mark.words...):
				return 2 * score
			case n.calls(l, 1, mark.words...):
				return score
			case mark.name == "date" && (l.attr == "datetime" || l.first().Data == "time"):
				return 3 * score
			case mark.name == "date" && l.attr == "" && l.distinct > 1:
				return score / 2
			}
			return 0
		})
	}
	n.best("description", func(l *leaf) float64 {
		if l.attr != "" || !l.most(func(v string) bool { return len(v) > 50 }) ||
			l.distinct*2 < l.have {
			return 0
		}
		return float64(l.have)
	})
}

// rest names the remaining leaves by their elements' names or by the head of their column. Unnamed
// texts become fields if they distinguish items.
func (n *naming) rest() {
	known := map[string]bool{}
	for _, f := range n.fields {
		for _, node := range f.nodes {
			if node != nil && f.attr == "" {
				known[textOf(node)] = true
			}
		}
	}
	unnamed := 0
	for _, l := range n.leaves {
		if n.taken[l] || l.attr != "" || len(n.fields) >= maxFields || l.distinct < 2 ||
			l.have*2 < n.count {
			continue
		}
		repeats := 0
		for _, v := range l.values {
			if v != "" && known[v] {
				repeats++
			}
		}
		if repeats*2 > l.have || ancestor(l.first(), named("button", "form", "select")) != nil {
			continue
		}
		name := nameOf(l.first())
		if name == "" || n.isTaken(name) {
			name = n.columnOf(l.first())
		}
		if name == "" && l.distinct*2 > l.have && l.have*10 >= n.count*7 && unnamed < maxUnnamed {
			unnamed++
			if name = "text"; unnamed > 1 {
				name += strconv.Itoa(unnamed)
			}
		}
		if name != "" {
			n.addField(name, l)
		}
	}
}

// maxUnnamed bounds the unnamed texts of items.
const maxUnnamed = 3

func (n *naming) isTaken(name string) bool {
	return slices.ContainsFunc(n.fields, func(f field) bool { return f.name == name })
}

// columnOf returns the head or the number of the column that holds an element; "" outside tables.
func (n *naming) columnOf(at *html.Node) string {
	cell := ancestor(at, named("td", "th"))
	if cell == nil || cell.Parent == nil || n.items.inside(cell) == nil {
		return ""
	}
	k := slices.Index(cellsIn(cell.Parent), cell)
	if k < 0 {
		return ""
	}
	taken := map[string]bool{}
	for _, f := range n.fields {
		taken[f.name] = true
	}
	head := ""
	if table := ancestor(cell, named("table")); table != nil {
		if rows := rowsIn(table); len(rows) > 0 && all(cellsIn(rows[0]), "th") &&
			len(cellsIn(rows[0])) > k {
			head = textOf(cellsIn(rows[0])[k])
		}
	}
	return nameIn(head, k, taken)
}

// nameOf returns an element's name: its itemprop, or the last word of its most telling class.
func nameOf(n *html.Node) string {
	if prop := tree.Attr(n, "itemprop"); isIdentifier(prop) {
		return shortName(prop)
	}
	for _, class := range append(classesOf(n), modulesOf(n)...) {
		if isUtility(class) {
			continue
		}
		parts := split(class)
		for i := len(parts) - 1; i >= 0; i-- {
			if word := parts[i]; len(word) > 2 && !slices.Contains(hollow, word) &&
				!unspeakable.MatchString(word) {
				return word
			}
		}
	}
	return ""
}

// unspeakable matches words of no language, which a build tool made.
var unspeakable = regexp.MustCompile(`^[^aeiouy]{4,}$|[^aeiouy]{5}`)

// hollow lists words that do not tell what an element holds.
var hollow = []string{"product", "item", "card", "box", "wrap", "wrapper", "container", "inner",
	"outer", "content", "text", "block", "list",
	"grid", "row", "col", "cell", "element", "component", "link", "value", "label", "span", "div",
	"main", "primary", "secondary", "body",
	"view", "tile", "entry", "result", "info", "details", "detail", "data", "group", "field",
	"line", "section", "button", "btn", "woocommerce",
	"currency", "currencysymbol", "symbol", "price", "visually", "screen", "reader", "sr", "only",
	"hidden", "icon", "badge"}
