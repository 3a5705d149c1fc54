package detect

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// Bounds of the search for the titles of a list's items.
const (
	minItems   = 3
	maxItems   = 10_000 // per list
	maxAbove   = 7      // levels above a caption that group it
	maxNames   = 4      // classes of each level
	maxGrouped = 20_000 // captions of a page
	maxTitle   = 600    // bytes
)

// caption is an element with its own text, which may be an item's title.
type caption struct {
	at     int // index in the outline
	text   string
	length int // in bytes
	prose  bool
	date   bool
	price  bool
	named  int // 1: named as a title, -1: named as something else, 0: neither
	head   int // the heading element around it, -1 if none
	target string
	within bool // part of a longer line of text
	mixed  bool // partly a link
}

// findCaptions returns a page's captions in its order.
func (p *probe) findCaptions() []caption {
	var list []caption
	for i := range p.all {
		e := &p.all[i]
		if !e.own || e.textLength() == 0 || e.textLength() > maxTitle || e.inLine(p.outline) {
			continue
		}
		text := textOf(e.node)
		if !strings.ContainsFunc(text, unicode.IsLetter) && !hasDigit(text) {
			continue
		}
		if list = append(list, p.captionOf(i, text)); len(list) == maxGrouped {
			break
		}
	}
	return list
}

// inLine says whether an element without classes is part of its parent's text.
func (e *element) inLine(o *outline) bool {
	return e.parent >= 0 && o.all[e.parent].own && inline[e.step] && e.step != "a" &&
		len(e.classes) == 0
}

func hasDigit(text string) bool { return strings.ContainsFunc(text, unicode.IsDigit) }

func (p *probe) captionOf(i int, text string) caption {
	c := caption{at: i, text: text, length: len(text), prose: isProse(text), head: -1}
	if len(text) <= 60 && hasDigit(text) {
		c.price = amount.Is(text)
		c.date = !c.price && dates.MatchString(text)
	}
	c.named = titled(p.all[i].node)
	for at, up := i, 0; at >= 0 && up < maxAbove; at, up = p.all[at].parent, up+1 {
		e := &p.all[at]
		switch e.step {
		case "h1", "h2", "h3", "h4", "h5", "h6":
			if c.head < 0 {
				c.head = at
			}
		case "a":
			if c.target == "" {
				c.target = p.targetOf(e.node)
			}
		}
		if up > 0 && up < 3 && c.named == 0 && titled(e.node) > 0 {
			c.named = 1
		}
	}
	if c.target == "" && p.all[i].linkedLength() > 0 {
		c.target = p.innerTarget(i)
	}
	linked := p.all[i].linkedLength()
	c.mixed = linked > 0 && linked*10 < p.all[i].textLength()*9
	if parent := p.all[i].parent; parent >= 0 && p.all[parent].own {
		c.within = p.all[parent].textLength() > 2*c.length
	}
	return c
}

// innerTarget returns where the first link in an element leads.
func (p *probe) innerTarget(i int) string {
	for k := i + 1; k < p.all[i].end; k++ {
		if p.all[k].step == "a" {
			return p.targetOf(p.all[k].node)
		}
	}
	return ""
}

// targetOf returns where a link leads, or "" if that is not another page.
func (p *probe) targetOf(n *html.Node) string {
	href := strings.TrimSpace(tree.Attr(n, "href"))
	if strings.HasPrefix(href, "#") {
		return ""
	}
	scheme, _, ok := strings.Cut(href, ":")
	if href == "" || ok && !strings.HasPrefix(scheme, "http") &&
		!strings.ContainsAny(scheme, "/?") {
		return ""
	}
	return href
}

var (
	titleWords = setOfNames(`title name heading headline subject titel titulo titre titolo nom
		caption`)
	otherWords = setOfNames(`brand vendor badge label tag tags category categories subtitle author
		byline date time location company sku more readmore button btn comments comment meta price
		user cta share`)
)

// titled returns 1 for an element named as a title, -1 for one named as something else, else 0.
func titled(n *html.Node) int {
	if n.Data == "button" || n.Data == "label" || n.Data == "time" {
		return -1
	}
	title := tree.Attr(n, "rel") == "bookmark"
	for word := range wordsOf(n) {
		if otherWords[word] {
			return -1
		}
		title = title || titleWords[word]
	}
	if title {
		return 1
	}
	return 0
}

// group is a set of similar captions that may be the titles of a list.
type group struct {
	members []int // indexes of captions
	items   []int // in the outline: for each caption, the largest element without another
	make    int   // most common path of the items
	way     way
	score   float64
}

// way says whether the captions and their parents share an ordinal among their siblings.
type way struct{ counted [2]bool }

// chain is what a group's captions share: the steps up to an element, and that element's name.
type chain struct {
	steps  int    // number of the step sequence from the caption up
	called string // class or id of the top element, "" without one
}

// groups returns the distinct sets of captions that share the steps up to an element of the same
// name.
func (p *probe) groups(captions []caption) []group {
	found := map[chain]*group{}
	var order []chain
	up := paths{}
	add := func(c chain, w way, member int) {
		g := found[c]
		if g == nil {
			g = &group{way: w}
			found[c] = g
			order = append(order, c)
		}
		if k := len(g.members); k == 0 || g.members[k-1] != member {
			g.members = append(g.members, member)
		}
	}
	for k := range captions {
		i := captions[k].at
		for _, counted := range [...][2]bool{{}, {true, false}, {false, true}} {
			if counted[0] && !p.hasTwins(i) || counted[1] && !p.hasTwins(p.all[i].parent) {
				continue
			}
			steps := 0
			for at, level := i, 0; at >= 0 && level < maxAbove; at, level = p.all[at].parent,
				level+1 {
				e := &p.all[at]
				n := 0
				for _, class := range e.classes {
					if n++; n > maxNames {
						break
					}
					add(chain{steps, "." + class}, way{counted: counted}, k)
				}
				if id := tree.Attr(e.node, "id"); level > 0 && isIdentifier(id) &&
					isStable(id) {
					add(chain{steps, "#" + id}, way{counted: counted}, k)
				}
				step := e.step
				if level < 2 && counted[level] {
					step += ordinal(e.node)
				}
				steps = up.of(steps, step)
				if level > 0 && level < 4 {
					add(chain{steps, ""}, way{counted: counted}, k)
				}
			}
			if !counted[1] {
				add(chain{-p.all[i].path, ordinalIf(counted[0], p.all[i].node)},
					way{counted: counted}, k)
			}
		}
	}
	all := make([]*group, len(order))
	for i, c := range order {
		all[i] = found[c]
	}
	return distinctGroups(all)
}

// distinctGroups returns the groups of admissible size, each set once.
func distinctGroups(all []*group) []group {
	var groups []group
	seen := map[uint64]bool{}
	for _, g := range all {
		if len(g.members) < minItems || len(g.members) > maxItems {
			continue
		}
		hash := uint64(14695981039346656037)
		for _, m := range g.members {
			hash = (hash ^ uint64(m)) * 1099511628211
		}
		if !seen[hash] {
			seen[hash] = true
			groups = append(groups, *g)
		}
	}
	return groups
}

func ordinalIf(counted bool, n *html.Node) string {
	if counted {
		return ordinal(n)
	}
	return ""
}

// hasTwins says whether an element has a sibling of the same name.
func (p *probe) hasTwins(i int) bool {
	if i < 0 || p.all[i].step != p.all[i].node.Data { // a cell's step has its column already
		return false
	}
	n := p.all[i].node
	for s := n.PrevSibling; s != nil; s = s.PrevSibling {
		if s.Data == n.Data && s.Type == html.ElementNode {
			return true
		}
	}
	for s := n.NextSibling; s != nil; s = s.NextSibling {
		if s.Data == n.Data && s.Type == html.ElementNode {
			return true
		}
	}
	return false
}

// maxOrdinal bounds the sibling ordinals that are distinguished.
const maxOrdinal = 9

// ordinal returns a pseudo-class for an element's position among siblings of its name.
func ordinal(n *html.Node) string {
	k := 1
	for s := n.PrevSibling; s != nil && k < maxOrdinal; s = s.PrevSibling {
		if s.Data == n.Data && s.Type == html.ElementNode {
			k++
		}
	}
	return nth(k)
}

// itemsOf maps each element to the largest one around it that holds no other, as runs of
// MULTIPLE_PRODUCTS do. It returns nil if one holds another.
func (o *outline) itemsOf(titles []int) []int {
	items := make([]int, len(titles))
	for k, item := range titles {
		before, after := -1, len(o.all)
		if k > 0 {
			before = titles[k-1]
		}
		if k+1 < len(titles) {
			after = titles[k+1]
		}
		if after < o.all[item].end {
			return nil
		}
		for up := o.all[item].parent; up >= 0 && up > before && o.all[up].end <= after; {
			item, up = up, o.all[up].parent
		}
		items[k] = item
	}
	return items
}

// rate scores a group by how title-like its captions are and by their surroundings.
func (p *probe) rate(g *group, captions []caption) {
	titles := make([]int, len(g.members))
	for k, m := range g.members {
		titles[k] = captions[m].at
	}
	title := p.titleWorth(g.members, captions)
	if title == 0 {
		return
	}
	if g.items = p.itemsOf(titles); g.items == nil {
		return
	}
	g.score = title * p.itemsWorth(g, titles)
	if (g.way.counted[0] || g.way.counted[1]) && p.areLists(g, captions) {
		g.score *= listsOfLists
	}
}

// listsOfLists scales the score of a group that takes one link of each of several lists. The real
// list has all of their links.
const listsOfLists = 0.2

// areLists says whether a group's items are themselves lists. Such items have several links like
// the title, in varying numbers. Cards all have the same number of links.
func (p *probe) areLists(g *group, captions []caption) bool {
	counts := map[int]int{}
	most, total := 0, 0
	for k, m := range g.members {
		c := &captions[m]
		if c.target == "" {
			return false
		}
		path, item := p.all[c.at].path, &p.all[g.items[k]]
		n := 0
		for i := g.items[k]; i < item.end; i++ {
			if p.all[i].path == path && p.all[i].step == p.all[c.at].step {
				n++
			}
		}
		total += n
		counts[n]++
		most = max(most, counts[n])
	}
	return total >= 3*len(g.members) && most*2 < len(g.members)
}

// titleWorth rates captions as item titles; 0 if they are none.
func (p *probe) titleWorth(members []int, captions []caption) float64 {
	n := float64(len(members))
	texts, targets := map[string]bool{}, map[string]bool{}
	var length, linked, prose, dated, priced, called, miscalled, heads, within, mixed float64
	lettered := 0.0
	doubled, before := 0.0, ""
	for _, m := range members {
		c := &captions[m]
		doubled += one(c.target != "" && c.target == before)
		before = c.target
		texts[c.text] = true
		length += float64(utf8.RuneCountInString(c.text))
		if c.target != "" {
			linked++
			targets[c.target] = true
		}
		prose += one(c.prose)
		dated += one(c.date)
		priced += one(c.price)
		called += one(c.named > 0)
		miscalled += one(c.named < 0)
		heads += one(c.head >= 0)
		within += one(c.within)
		mixed += one(c.mixed)
		lettered += one(strings.ContainsFunc(c.text, unicode.IsLetter))
	}
	mean := length / n
	distinct := float64(len(texts)) / n
	if distinct < 0.4 || mean > 240 || lettered < 0.5*n ||
		doubled > 0.2*n || priced > 0.5*n {
		return 0
	}
	worth := distinct * distinct
	switch {
	case mean < 3:
		worth *= 0.2
	case mean < 8:
		worth *= 0.6
	case mean > 150:
		worth *= 0.5
	}
	worth *= 0.4 + 0.6*prose/n
	worth *= 1 - 0.8*dated/n
	worth *= 1 - 0.95*priced/n
	worth *= 1 - 0.6*miscalled/n
	worth *= 1 - 0.5*within/n
	worth *= 1 - 0.65*mixed/n
	worth *= 1 + 0.8*called/n
	worth *= 1 + heads/n
	if linked > 0 {
		worth *= 0.4 + 0.6*linked/n*float64(len(targets))/linked
	} else {
		worth *= 0.4
	}
	return worth
}

func one(is bool) float64 { return float64(count(is)) }

// itemsWorth rates a group's items by their number, similarity and share of the page. Images and
// text beside the titles count, too.
func (p *probe) itemsWorth(g *group, titles []int) float64 {
	n := float64(len(g.items))
	kinds, ways := map[int]int{}, map[int]int{}
	lengths := make([]int, 0, len(g.items))
	var beside, images, first, outside float64
	for k, i := range g.items {
		e, title := &p.all[i], &p.all[titles[k]]
		kinds[e.path]++
		ways[title.path]++
		length := e.textLength()
		if k+1 < len(g.items) && p.all[g.items[k+1]].parent == e.parent {
			length = p.all[g.items[k+1]].before.text - e.before.text // with what follows it
		}
		lengths = append(lengths, length)
		beside += one(title.beside)
		images += one(e.behind.images > e.before.images)
		if length > 0 {
			first += float64(title.before.text-e.before.text) / float64(length)
		}
		outside += one(length > title.textLength())
	}
	for path, found := range kinds {
		if found > kinds[g.make] || found == kinds[g.make] && path < g.make {
			g.make = path
		}
	}
	slices.Sort(lengths)
	median := lengths[len(lengths)/2]
	alike := float64(mostOf(kinds)+mostOf(ways)) / 2 / n
	mass := n * float64(min(median, 1_200)+int(60*images/n))
	share := min(1, mass/float64(p.text+1))
	worth := math.Log2(n) * alike * alike * (0.05 + share)
	worth *= 1 - 0.9*beside/n
	worth *= 1 + 0.3*images/n
	worth *= 0.4 + 0.6*outside/n
	worth *= 1 - 0.5*first/n
	return worth
}

func mostOf(counts map[int]int) int {
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	return most
}
