package dom

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"
)

// xpathNode is a node of a document as XPath sees it: the document itself, an element or a text.
// Nodes are in document order, so that a node's descendants are a range.
type xpathNode struct {
	elem          Elem  // the element, or a text's parent; None for the document itself
	text, textEnd int32 // of a text node, indexes in texts; otherwise -1
	parent        int32
	before        int32 // the previous sibling, -1 if there is none
	end           int32 // after all its descendants
}

// spot is a node, or one of its attributes.
type spot struct{ node, attr int32 } // attr is -1 for none

func compareSpots(a, b spot) int {
	return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.attr, b.attr))
}

// xpathNodes are a document's nodes for XPath, made for the first expression.
type xpathNodes struct {
	nodes  []xpathNode
	of     []int32 // nodes of elements
	marks  []int32 // the round in which each node was last marked
	round  int32
	filled bool

	ways    map[*step]*way // of steps across the page
	reached int            // total size of their reaches, in numbers
}

func (d *Document) fillNodes() {
	x := &d.xpath
	if x.filled {
		return
	}
	x.filled, x.round, x.reached = true, 0, 0
	clear(x.ways)
	x.nodes = slices.Grow(x.nodes[:0], 1+len(d.elems)+len(d.texts)) // each text at most once
	x.nodes = append(x.nodes, xpathNode{elem: None, text: -1, parent: -1, before: -1})
	x.of = append(x.of[:0], make([]int32, len(d.elems))...)
	d.addNodes(Root, 0, -1)
	x.nodes[0].end = int32(len(x.nodes))
	x.marks = append(x.marks[:0], make([]int32, len(x.nodes))...)
}

// addNodes adds an element and its contents, and returns the element's index.
func (d *Document) addNodes(e Elem, parent, before int32) int32 {
	x, el := &d.xpath, &d.elems[e]
	at := int32(len(x.nodes))
	x.of[e] = at
	x.nodes = append(x.nodes, xpathNode{elem: e, text: -1, parent: parent, before: before})
	last := int32(-1)
	text := el.text
	for child := e + 1; ; child = d.elems[child].end {
		limit := el.textEnd
		if child < el.end {
			limit = d.elems[child].text
		}
		for text < limit {
			if d.texts[text].parent != e { // it belongs to a head that was reopened before it
				text++
				continue
			}
			from := text
			for text++; text < limit && !d.texts[text].apart && d.texts[text].parent == e; text++ {
			}
			here := int32(len(x.nodes))
			x.nodes = append(x.nodes,
				xpathNode{elem: e, text: from, textEnd: text, parent: at, before: last,
					end: here + 1})
			last = here
		}
		if child >= el.end {
			break
		}
		last = d.addNodes(child, at, last)
		text = d.elems[child].textEnd
	}
	x.nodes[at].end = int32(len(x.nodes))
	return at
}

func (d *Document) matchAt(p spot) Match {
	n := &d.xpath.nodes[p.node]
	return Match{Elem: n.elem, attr: p.attr, text: n.text, textEnd: n.textEnd}
}

func (d *Document) nameAt(p spot) string {
	n := &d.xpath.nodes[p.node]
	switch {
	case p.attr >= 0:
		return d.attrs[p.attr].name
	case n.text >= 0 || n.elem == None:
		return ""
	}
	return d.elems[n.elem].name()
}

// valueAt returns the unchanged text of a node.
func (d *Document) valueAt(p spot) string {
	n := &d.xpath.nodes[p.node]
	var value string
	switch {
	case p.attr >= 0:
		value = d.value(p.attr)
	case n.text >= 0:
		value = asString(d.appendTexts(nil, n.text, n.textEnd))
	default:
		value = asString(d.appendRaw(nil, max(n.elem, Root), false))
	}
	d.spend(moveSteps + len(value))
	return value
}

// asString returns bytes as a string without a copy. They must not change afterwards.
func asString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// meets says whether a node passes a step's node test.
func (d *Document) meets(s *step, p spot) bool {
	n := &d.xpath.nodes[p.node]
	switch s.test {
	case "node()":
		return true
	case "text()":
		return n.text >= 0 && p.attr < 0
	case "none()":
		return false
	}
	if p.attr < 0 && (n.text >= 0 || n.elem == None || s.axis == "attribute") || p.attr >= 0 &&
		s.axis != "attribute" {
		return false
	}
	if s.test == "*" {
		return true
	}
	name := d.nameAt(p)
	if prefix, any := strings.CutSuffix(s.test, "*"); any {
		return strings.HasPrefix(name, prefix)
	}
	return name == s.test
}

// along visits the nodes of an axis from a node, in axis order, until visit returns false.
func (d *Document) along(axis string, p spot, visit func(spot) bool) {
	nodes := d.xpath.nodes
	n := &nodes[p.node]
	next := func(at int32) bool {
		d.spend(1)
		return visit(spot{at, -1})
	}
	switch axis {
	case "self", "filter":
		visit(p)
		return
	case "parent", "ancestor", "ancestor-or-self":
		if axis == "ancestor-or-self" && !visit(p) {
			return
		}
		at := n.parent
		if p.attr >= 0 {
			at = p.node
		}
		for at >= 0 && next(at) && axis != "parent" {
			at = nodes[at].parent
		}
		return
	case "descendant-or-self":
		if !visit(p) {
			return
		}
	case "following":
		from := n.end
		if p.attr >= 0 {
			from = p.node + 1
		}
		for at := from; at < int32(len(nodes)) && next(at); at++ {
		}
		return
	case "preceding":
		for at := p.node - 1; at >= 0; at-- {
			if d.spend(1); nodes[at].end <= p.node && !visit(spot{at, -1}) {
				return
			}
		}
		return
	}
	if p.attr >= 0 {
		return // it has no attributes, children or siblings
	}
	switch axis {
	case "attribute":
		if n.text >= 0 || n.elem == None {
			return
		}
		for i := d.elems[n.elem].attrs; i < d.elems[n.elem].attrsEnd; i++ {
			if d.spend(1); !visit(spot{p.node, i}) {
				return
			}
		}
	case "child":
		for at := p.node + 1; at < n.end && next(at); at = nodes[at].end {
		}
	case "descendant", "descendant-or-self":
		for at := p.node + 1; at < n.end && next(at); at++ {
		}
	case "following-sibling":
		if n.parent >= 0 {
			for at := n.end; at < nodes[n.parent].end && next(at); at = nodes[at].end {
			}
		}
	case "preceding-sibling":
		for at := n.before; at >= 0 && next(at); at = nodes[at].before {
		}
	}
}

// alongAll returns the nodes of an axis from several nodes in document order, each once, in no
// order. It visits no node more often than necessary.
func (d *Document) alongAll(s *step, from []spot) []spot {
	var found []spot
	keep := func(p spot) {
		if d.meets(s, p) {
			found = append(found, p)
		}
	}
	if len(from) == 0 {
		return nil
	}
	nodes, x := d.xpath.nodes, &d.xpath
	switch {
	case len(from) == 1 || s.axis == "self" || s.axis == "filter" || s.axis == "attribute" ||
		s.axis == "child":
		for _, p := range from {
			d.along(s.axis, p, func(p spot) bool { keep(p); return true })
		}
		return found
	case s.axis == "following":
		first := int32(len(nodes))
		for _, p := range from {
			if p.attr >= 0 {
				first = min(first, p.node+1)
			} else {
				first = min(first, nodes[p.node].end)
			}
		}
		for ; first < int32(len(nodes)); first++ {
			d.spend(1)
			keep(spot{first, -1})
		}
		return found
	case s.axis == "preceding":
		d.along(s.axis, from[len(from)-1], func(p spot) bool { keep(p); return true })
		return found
	}
	// On other axes, a walk ends where it meets an earlier one, which continued the same way.
	x.round++
	round := x.round
	order := from
	if s.axis == "preceding-sibling" {
		order = slices.Clone(from)
		slices.Reverse(order)
	}
	for _, p := range order {
		d.along(s.axis, p, func(q spot) bool {
			if q.attr >= 0 { // the attribute itself
				keep(q)
				return true
			}
			if x.marks[q.node] == round {
				return false
			}
			x.marks[q.node] = round
			keep(q)
			return true
		})
	}
	return found
}
