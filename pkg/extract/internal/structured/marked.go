package structured

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// readMicrodata reads the items marked by itemscope, itemprop and itemref.
func (r *reader) readMicrodata() {
	m := microdata{reader: r, open: map[*html.Node]bool{}}
	m.children(r.root, nil)
}

type microdata struct {
	*reader
	ids   map[string]*html.Node // built when an itemref needs it
	open  map[*html.Node]bool   // scopes being read, because itemref may be circular
	refs  int
	steps int // elements examined, including repetitions through itemref
}

const (
	maxSteps     = 5_000_000
	bytesPerStep = 16
)

// children reads the contents of n as properties of it, which is nil outside items.
func (m *microdata) children(n *html.Node, it *Item) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			m.element(c, it)
		}
	}
}

func (m *microdata) element(n *html.Node, it *Item) {
	if m.steps++; m.steps > maxSteps || m.values > maxStated {
		m.data.Cut = true
		return
	}
	m.steps += (len(tree.Attr(n, "itemprop")) + len(tree.Attr(n, "itemtype"))) / bytesPerStep
	props := m.names(tree.Attr(n, "itemprop"))
	if _, ok := tree.LookAttr(n, "itemscope"); !ok {
		if it != nil && len(props) > 0 {
			v := Value{Kind: String, Text: m.valueOf(n)}
			for _, name := range props {
				m.add(it, local(name), v)
			}
		}
		m.children(n, it)
		return
	}
	if m.open[n] {
		return
	}
	m.open[n] = true
	defer delete(m.open, n)
	scope := &Item{Source: Microdata, ID: strings.TrimSpace(tree.Attr(n, "itemid"))}
	for _, t := range m.names(tree.Attr(n, "itemtype")) {
		scope.Types = append(scope.Types, local(t))
	}
	if it == nil || len(props) == 0 {
		m.data.Items = append(m.data.Items, scope)
	}
	m.children(n, scope)
	m.referred(n, scope)
	if it != nil {
		if len(props) > 0 {
			m.nameByText(n, scope)
		}
		for _, name := range props {
			m.add(it, local(name), Value{Kind: Entity, Item: scope})
		}
	}
}

// nameByText uses an item's text as its name if it states nothing else.
func (r *reader) nameByText(n *html.Node, it *Item) {
	if len(it.Props) > 0 || it.ID != "" {
		return
	}
	text, ok := tree.LookAttr(n, "content")
	if !ok {
		text = r.textOf(n)
	}
	if text = strings.TrimSpace(text); text != "" {
		r.add(it, "name", Value{Kind: String, Text: text})
	}
}

// referred reads the elements that itemref names as if they were in the item.
func (m *microdata) referred(n *html.Node, it *Item) {
	for id := range strings.FieldsSeq(tree.Attr(n, "itemref")) {
		if m.refs++; m.refs > maxBlocks {
			m.data.Cut = true
			return
		}
		if m.ids == nil {
			m.ids = map[string]*html.Node{}
			for n := range m.root.Descendants() {
				if id := tree.Attr(n, "id"); id != "" && m.ids[id] == nil {
					m.ids[id] = n
				}
			}
		}
		if target := m.ids[id]; target != nil {
			m.element(target, it)
		}
	}
}

// valueOf returns the value of an element marked as a property.
func (r *reader) valueOf(n *html.Node) string {
	if content, ok := tree.LookAttr(n, "content"); ok {
		return strings.TrimSpace(content)
	}
	key := ""
	switch n.DataAtom {
	case atom.A, atom.Area, atom.Link:
		key = "href"
	case atom.Audio, atom.Embed, atom.Iframe, atom.Img, atom.Source, atom.Track, atom.Video:
		key = "src"
	case atom.Object:
		key = "data"
	case atom.Data, atom.Meter:
		if v, ok := tree.LookAttr(n, "value"); ok {
			return strings.TrimSpace(v)
		}
	case atom.Time:
		if v, ok := tree.LookAttr(n, "datetime"); ok {
			return strings.TrimSpace(v)
		}
	}
	if v, ok := tree.LookAttr(n, key); ok && key != "" {
		return r.resolve(v)
	}
	return r.textOf(n)
}

// readRDFa reads the items marked by typeof and property: RDFa Lite, and the parts of RDFa 1.0 that
// shops used.
func (r *reader) readRDFa() {
	r.rdfaChildren(r.root, scope{})
}

// scope is the context set by the ancestors of an element.
type scope struct {
	item     *Item
	prefixes *prefix
	declared int      // number of prefixes
	rel      []string // properties of item whose value is the next item
}

// prefix is a declared prefix, linked to those declared before it.
type prefix struct {
	name, vocabulary string
	outer            *prefix
}

func (r *reader) rdfaChildren(n *html.Node, s scope) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			r.rdfa(c, s)
		}
	}
}

func (r *reader) rdfa(n *html.Node, s scope) {
	if r.values > maxStated {
		return
	}
	r.declare(&s, n)
	types, typed := tree.LookAttr(n, "typeof")
	property := r.expanded(&s, tree.Attr(n, "property"))
	for token := range strings.FieldsSeq(tree.Attr(n, "rel")) {
		if strings.Contains(token, ":") { // others describe relations of links
			property = append(property, r.expanded(&s, token)...)
		}
	}
	switch {
	case typed:
		it := &Item{Source: RDFa, Types: r.expanded(&s, types)}
		for _, key := range [...]string{"about", "resource", "href", "src"} {
			if id, ok := tree.LookAttr(n, key); ok && it.ID == "" {
				it.ID = strings.TrimSpace(id)
			}
		}
		if len(property) == 0 {
			property = s.rel
		}
		outer := s.item
		s.item, s.rel = it, nil
		if outer == nil || len(property) == 0 {
			r.data.Items = append(r.data.Items, it)
		}
		r.rdfaChildren(n, s)
		if outer != nil {
			if len(property) > 0 {
				r.nameByText(n, it)
			}
			for _, name := range property {
				r.add(outer, name, Value{Kind: Entity, Item: it})
			}
		}
		return
	case s.item != nil && len(property) > 0 && tree.Attr(n, "property") == "" &&
		tree.Attr(n, "href") == "" && tree.Attr(n, "resource") == "":
		s.rel = property
	case s.item != nil && len(property) > 0:
		v := Value{Kind: String, Text: r.rdfaValue(n)}
		for _, name := range property {
			r.add(s.item, name, v)
		}
	}
	r.rdfaChildren(n, s)
}

func (r *reader) rdfaValue(n *html.Node) string {
	for _, key := range [...]string{"content", "datetime"} {
		if v, ok := tree.LookAttr(n, key); ok {
			return strings.TrimSpace(v)
		}
	}
	for _, key := range [...]string{"resource", "href", "src"} {
		if v, ok := tree.LookAttr(n, key); ok {
			return r.resolve(v)
		}
	}
	return r.textOf(n)
}

// maxPrefixes bounds the prefixes in effect at an element, with each of which a name is compared.
// Pages that declare any have about ten.
const maxPrefixes = 200

// declare adds the prefixes that an element declares.
func (r *reader) declare(s *scope, n *html.Node) {
	add := func(name, vocabulary string) {
		if s.declared == maxPrefixes {
			r.data.Cut = true
			return
		}
		s.declared++
		s.prefixes = &prefix{name, vocabulary, s.prefixes}
	}
	if fields := strings.Fields(tree.Attr(n, "prefix")); len(fields) > 1 && len(fields) < maxDepth {
		for i := 0; i+1 < len(fields); i += 2 {
			add(strings.TrimSuffix(fields[i], ":"), fields[i+1])
		}
	}
	for i := range n.Attr {
		if name, ok := strings.CutPrefix(n.Attr[i].Key, "xmlns:"); ok {
			add(name, n.Attr[i].Val)
		}
	}
}

// names returns the names in a list. A page may have as many of them as values.
func (r *reader) names(list string) []string {
	var names []string
	for name := range strings.FieldsSeq(list) {
		if r.named++; r.named > maxStated {
			r.data.Cut = true
			break
		}
		names = append(names, name)
	}
	return names
}

// expanded returns the names in a list, with declared prefixes expanded.
func (r *reader) expanded(s *scope, list string) []string {
	names := r.names(list)
	for i := range names {
		names[i] = s.expand(names[i])
	}
	return names
}

func (s *scope) expand(name string) string {
	before, after, ok := strings.Cut(name, ":")
	if !ok || strings.HasPrefix(after, "//") {
		return local(name)
	}
	for p := s.prefixes; p != nil; p = p.outer {
		if strings.EqualFold(p.name, before) {
			if known := local(p.vocabulary + after); known != p.vocabulary+after {
				return known
			}
			break
		}
	}
	return local(name)
}
