package detect

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// maxElements bounds the elements of a page that are examined.
const maxElements = 50_000

// outline lists the shown elements of a page in document order. An element holds the ones up to its
// end.
type outline struct {
	all   []element
	index map[*html.Node]int
	text  int // bytes of text outside menus, footers and the like
}

// element is an element of an outline. Tallies count from the page's start, so an element's own
// tally is the difference between its two.
type element struct {
	node        *html.Node
	parent, end int // -1 is no parent
	path        int // number of the path of names to it
	before      tally
	behind      tally
	beside      bool   // in a menu, a footer or the like
	step        string // name, with the column if it is a cell
	classes     []string
	own         bool // it has text of its own
}

// tally counts bytes of text, bytes of text in links, and images.
type tally struct{ text, linked, images int }

func (e *element) textLength() int   { return e.behind.text - e.before.text }
func (e *element) linkedLength() int { return e.behind.linked - e.before.linked }

// paths numbers sequences of names. 0 is the empty sequence.
type paths map[pathEnd]int

type pathEnd struct {
	around int
	name   string
}

func (p paths) of(around int, name string) int {
	at := pathEnd{around, name}
	n, known := p[at]
	if !known {
		n = len(p) + 1
		p[at] = n
	}
	return n
}

func newOutline(root *html.Node) *outline {
	o := &outline{index: map[*html.Node]int{}}
	w := outliner{outline: o, paths: paths{}}
	w.walk(root, -1, false)
	o.text = w.now.text
	for i := range o.all {
		e := &o.all[i]
		if e.parent >= 0 && o.all[e.parent].beside {
			e.beside = true
		} else if e.beside = isAside(e, w.now.text); e.beside {
			o.text -= e.textLength()
		}
	}
	return o
}

// chosen lists the elements with texts to choose from or to edit, rather than to read.
var chosen = map[string]bool{"select": true, "option": true, "datalist": true, "textarea": true}

type outliner struct {
	*outline
	paths paths
	now   tally
}

func (w *outliner) walk(n *html.Node, parent int, linked bool) {
	at := parent
	switch n.Type {
	case html.TextNode:
		length := lengthOf(n.Data)
		w.now.text += length
		if linked {
			w.now.linked += length
		}
		return
	case html.ElementNode:
		if unseen[n.Data] || chosen[n.Data] || len(w.all) >= maxElements {
			return
		}
		around := 0
		if parent >= 0 {
			around = w.all[parent].path
		}
		at = len(w.all)
		linked = linked || n.Data == "a"
		if n.Data == "img" || n.Data == "picture" {
			w.now.images++
		}
		step := stepOf(n)
		w.all = append(w.all, element{node: n, parent: parent, path: w.paths.of(around, step),
			before: w.now, step: step, classes: classesOf(n), own: hasOwnText(n)})
		w.index[n] = at
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.walk(c, at, linked)
	}
	if n.Type == html.ElementNode {
		w.all[at].behind, w.all[at].end = w.now, len(w.all)
	}
}

// lengthOf returns a text's length in bytes with white space collapsed.
func lengthOf(text string) int {
	length, apart := 0, false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\n', '\r', '\f':
			apart = length > 0
		default:
			if apart {
				length++
			}
			length++
			apart = false
		}
	}
	return length
}

// stepOf returns an element's name, with its column if it is a cell.
func stepOf(n *html.Node) string {
	if n.Data != "td" && n.Data != "th" {
		return n.Data
	}
	column := 1
	for s := n.PrevSibling; s != nil; s = s.PrevSibling {
		if s.Type == html.ElementNode {
			column++
		}
	}
	return n.Data + ":nth-child(" + strconv.Itoa(column) + ")"
}

// isAside says whether an element is secondary to the page's subject, by its tag, role, id or
// class. Names count only if it has less than half of the page's text or is mostly links.
func isAside(e *element, all int) bool {
	switch n := e.node; n.Data {
	case "nav", "aside":
		return true
	case "header", "footer": // the page's own, not an article's or a section's
		return ancestor(n.Parent, named("article", "section", "main", "li", "tr")) == nil &&
			e.textLength()*2 < all
	case "body", "html", "main", "article", "h1", "h2", "h3":
		return false
	}
	menu := e.linkedLength()*10 > e.textLength()*7
	if !menu && e.textLength()*2 >= all || e.textLength()*10 >= all*9 {
		return false
	}
	switch tree.Attr(e.node, "role") {
	case "navigation", "banner", "contentinfo", "complementary", "menu", "menubar", "dialog":
		return true
	}
	if isAsideName(tree.Attr(e.node, "id")) {
		return true
	}
	for class := range strings.FieldsSeq(tree.Attr(e.node, "class")) {
		if isAsideName(class) {
			return true
		}
	}
	return false
}

// isAsideName says whether a class or an id names something secondary, rather than a container of
// it or its neighbor.
func isAsideName(name string) bool {
	switch name {
	case "widget", "widgets", "widget-area":
		return true
	}
	aside := false
	for word := range splitNames(name) {
		if aroundWords[word] {
			return false
		}
		aside = aside || asideWords[word]
	}
	return aside
}

// aroundWords name containers or neighbors of secondary elements.
var aroundWords = setOfNames(`no has with without content main page body layout wrap article primary
	results listing open closed`)

var asideWords = setOfNames(`nav navbar navigation menu submenu megamenu footer sidebar breadcrumb
	breadcrumbs related upsell upsells crosssell recommended recommendations similar facet facets
	pagination pager filters popular trending social share sharing cookie cookies consent modal
	popup newsletter topbar masthead toolbar`)
