package detect

import (
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// maxVisits bounds the elements at which selectors are tried, per page. If that is not enough, some
// fields are left out.
const maxVisits = 20_000_000

// selectors makes and tries selectors for the elements of one page.
type selectors struct {
	root  *html.Node
	found map[string][]*html.Node // by selector, in document order
	size  map[*html.Node]int      // visits to search an element
	above map[*html.Node]int      // cost of the long names of an element and those above it
	left  int                     // visits left
}

func newSelectors(root *html.Node) *selectors {
	return &selectors{root: root, found: map[string][]*html.Node{}, size: map[*html.Node]int{},
		above: map[*html.Node]int{}, left: maxVisits}
}

// spend says whether an element may be searched, and pays for it.
func (s *selectors) spend(n *html.Node) bool {
	size, known := s.size[n]
	if !known {
		for c := range n.Descendants() {
			size += 1 + longNames(c)
		}
		s.size[n] = size
	}
	s.left -= size + 1
	return s.left >= 0
}

// all returns a selector's matches in the page. Most tried selectors differ only in their context,
// so matches of the last compound are cached and filtered.
func (s *selectors) all(css string) []*html.Node {
	if matches, known := s.found[css]; known {
		return matches
	}
	var matches []*html.Node
	group, err := cascadia.ParseGroup(css)
	switch own := subject(css); {
	case err != nil:
	case own != "":
		for _, n := range s.all(own) {
			if s.left -= aroundVisits + s.around(n); s.left >= 0 && group.Match(n) {
				matches = append(matches, n)
			}
		}
	case s.spend(s.root):
		matches = cascadia.QueryAll(s.root, group)
	}
	s.found[css] = matches
	return matches
}

// aroundVisits is about how many elements above a match are examined.
const aroundVisits = 10

// around returns the cost of the long names of an element and of those above it.
func (s *selectors) around(n *html.Node) int {
	if n == nil {
		return 0
	}
	cost, known := s.above[n]
	if !known {
		cost = longNames(n) + s.around(n.Parent)
		s.above[n] = cost
	}
	return cost
}

// longNames returns the extra visits that an element's long names cost. Names of ordinary elements
// take about a hundred bytes.
func longNames(n *html.Node) int {
	const ordinary, bytesPerVisit = 1024, 16
	cost := 0
	for i := range n.Attr {
		switch a := &n.Attr[i]; a.Key {
		case "class", "id", "itemprop":
			cost += max(0, len(a.Val)-ordinary) / bytesPerVisit
		}
	}
	return cost
}

// subject returns the selector's last compound, which every match must match. It is "" if that is
// the whole selector or not plain.
func subject(css string) string {
	at := strings.LastIndexByte(css, ' ')
	if at < 0 || strings.IndexByte(css, ',') >= 0 || strings.Count(css[at:], `"`)%2 != 0 {
		return ""
	}
	return css[at+1:]
}

// simple returns compounds that match an element, the most telling first.
func simple(n *html.Node) []string {
	var list []string
	if prop := tree.Attr(n, "itemprop"); isIdentifier(prop) {
		list = append(list, "[itemprop="+prop+"]")
	}
	for _, name := range [...]string{"data-testid", "data-test", "data-qa"} {
		if value := tree.Attr(n, name); isIdentifier(value) && isStable(value) {
			list = append(list, "["+name+"="+value+"]")
		}
	}
	classes := classesOf(n)
	telling := func(utilities bool) []string {
		return slices.DeleteFunc(slices.Clone(classes),
			func(class string) bool { return isUtility(class) != utilities })
	}
	meaning := telling(false)
	for _, class := range meaning {
		list = append(list, "."+class)
	}
	for _, class := range meaning {
		list = append(list, n.Data+"."+class)
	}
	for i, class := range meaning {
		for _, second := range meaning[i+1:] {
			list = append(list, "."+class+"."+second)
		}
	}
	for _, part := range modulesOf(n) {
		list = append(list, `[class*="`+part+`"]`)
	}
	if struckBy(n) == struckThrough {
		list = append(list, struckThrough)
	}
	list = append(list, n.Data)
	if utilities := telling(true); len(utilities) > 0 {
		list = append(list, n.Data+"."+strings.Join(utilities[:min(len(utilities), 3)], "."))
	}
	return list
}

// common returns the compounds that match all the elements.
func common(nodes []*html.Node) []string {
	list := simple(nodes[0])
	for _, n := range nodes[1:] {
		have := simple(n)
		list = slices.DeleteFunc(list, func(css string) bool { return !slices.Contains(have, css) })
	}
	return list
}

// group returns a selector that matches exactly the elements, or "" if none is likely to work on
// other pages of the site.
func (s *selectors) group(nodes []*html.Node) string {
	want := func(css string) bool { return slices.Equal(s.all(css), nodes) }
	own := common(nodes)
	for _, css := range own {
		if css != nodes[0].Data && want(css) { // a bare tr or li would match other things elsewhere
			return css
		}
	}
	// Try their surroundings, from near to far.
	around := slices.Clone(nodes)
	for range 6 {
		for i, n := range around {
			around[i] = n.Parent
		}
		if slices.ContainsFunc(around,
			func(n *html.Node) bool {
				return n == nil || n.Type != html.ElementNode ||
					n.Data == "html"
			}) {
			break
		}
		holders := common(slices.Compact(slices.Clone(around)))
		if id := tree.Attr(around[0], "id"); isIdentifier(id) && isStable(id) &&
			sameNode(around) {
			holders = append([]string{"#" + id}, holders...)
		}
		for _, holder := range holders {
			for _, css := range own {
				for _, joint := range [...]string{" > ", " "} {
					if want(holder + joint + css) {
						return holder + joint + css
					}
				}
			}
		}
	}
	if css := nodes[0].Data; slices.Contains(own, css) && want(css) {
		return css
	}
	return ""
}

func sameNode(nodes []*html.Node) bool {
	for _, n := range nodes {
		if n != nodes[0] {
			return false
		}
	}
	return true
}

func nth(n int) string { return ":nth-of-type(" + string(rune('0'+n)) + ")" }
