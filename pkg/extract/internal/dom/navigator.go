package dom

import (
	"strings"
	"unsafe"

	"github.com/antchfx/xpath"
)

// navigator shows a document to XPath: as a tree of elements, their attributes and texts. There are no comments, and
// elements and attributes have their prefix as the page writes it. It counts each move as a step and panics with
// errTooSlow when there were too many.
type navigator struct {
	d      *Document
	elem   Elem  // the element, or that of the attribute or text; None is the document itself
	attr   int32 // in attrs, -1 if it is not at one
	text   int32 // the first one of those in texts that make a text node, -1 if it is not at one
	before Elem  // of a text node: the element before it, None if there is none
	after  Elem  // of a text node: the element behind it, the parent's end if there is none
}

// Steps of the work, each of which takes about as long as a step of a CSS selector.
const (
	moveSteps = 10
	copySteps = 50 // a copy may be kept
)

func (d *Document) navigate(e Elem) *navigator { return &navigator{d: d, elem: e, attr: -1, text: -1} }

func (n *navigator) spend(steps int) {
	if n.d.steps -= steps; !n.d.goesOn() {
		panic(errTooSlow)
	}
}

func (n *navigator) match() Match {
	m := Match{Elem: n.elem, attr: n.attr, text: n.text}
	if n.text >= 0 {
		m.textEnd = n.textEnd()
	}
	return m
}

func (n *navigator) NodeType() xpath.NodeType {
	switch {
	case n.attr >= 0:
		return xpath.AttributeNode
	case n.text >= 0:
		return xpath.TextNode
	case n.elem == None:
		return xpath.RootNode
	}
	return xpath.ElementNode
}

func (n *navigator) name() string {
	switch {
	case n.attr >= 0:
		return n.d.attrs[n.attr].name
	case n.text >= 0 || n.elem == None:
		return ""
	}
	return n.d.elems[n.elem].name()
}

func (n *navigator) LocalName() string {
	name := n.name()
	return name[strings.IndexByte(name, ':')+1:]
}

func (n *navigator) Prefix() string {
	name := n.name()
	return name[:max(strings.IndexByte(name, ':'), 0)]
}

func (n *navigator) Value() string {
	var value string
	switch {
	case n.attr >= 0:
		value = n.d.value(n.attr)
	case n.text >= 0:
		value = asString(n.d.appendTexts(nil, n.text, n.textEnd()))
	default:
		value = asString(n.d.appendRaw(nil, max(n.elem, Root), false))
	}
	n.spend(moveSteps + len(value))
	return value
}

// asString is bytes that nobody changes any more, without a copy.
func asString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (n *navigator) Copy() xpath.NodeNavigator {
	n.spend(copySteps)
	c := *n
	return &c
}

func (n *navigator) MoveTo(other xpath.NodeNavigator) bool {
	o, ok := other.(*navigator)
	if !ok || o.d != n.d {
		return false
	}
	*n = *o
	return true
}

func (n *navigator) MoveToRoot() { *n = *n.d.navigate(None) }

func (n *navigator) MoveToParent() bool {
	n.spend(moveSteps)
	switch {
	case n.attr >= 0 || n.text >= 0:
		n.attr, n.text = -1, -1
	case n.elem == None:
		return false
	default:
		n.elem = n.d.elems[n.elem].parent
	}
	return true
}

func (n *navigator) MoveToNextAttribute() bool {
	n.spend(moveSteps)
	if n.text >= 0 || n.elem == None {
		return false
	}
	el := &n.d.elems[n.elem]
	next := el.attrs
	if n.attr >= 0 {
		next = n.attr + 1
	}
	if next >= el.attrsEnd {
		return false
	}
	n.attr = next
	return true
}

func (n *navigator) MoveToChild() bool {
	n.spend(moveSteps)
	if n.attr >= 0 || n.text >= 0 {
		return false
	}
	if n.elem == None {
		n.elem = Root
		return true
	}
	return n.moveTo(n.elem, n.d.elems[n.elem].text, None, n.elem+1)
}

func (n *navigator) MoveToNext() bool {
	n.spend(moveSteps)
	switch {
	case n.attr >= 0 || n.elem <= Root && n.text < 0:
		return false
	case n.text >= 0:
		return n.moveTo(n.elem, n.textEnd(), n.before, n.after)
	}
	el := &n.d.elems[n.elem]
	return n.moveTo(el.parent, el.textEnd, n.elem, el.end)
}

// moveTo moves to the text node that begins at text, between two children of the parent, or to the second of these.
func (n *navigator) moveTo(parent Elem, text int32, before, after Elem) bool {
	limit := n.d.textLimit(parent, after)
	for text < limit && n.d.texts[text].parent != parent {
		text++ // of a head that was opened again behind it
	}
	if text < limit {
		n.elem, n.text, n.before, n.after = parent, text, before, after
		return true
	}
	if after == n.d.elems[parent].end {
		return false
	}
	n.elem, n.text = after, -1
	return true
}

// textLimit is where the texts end that stand right before the child after, which may be the parent's end.
func (d *Document) textLimit(parent, after Elem) int32 {
	if after == d.elems[parent].end {
		return d.elems[parent].textEnd
	}
	return d.elems[after].text
}

// textEnd is where the texts of the text node at hand end: where a comment came in between, or an element.
func (n *navigator) textEnd() int32 {
	end, limit := n.text+1, n.d.textLimit(n.elem, n.after)
	for end < limit && !n.d.texts[end].apart && n.d.texts[end].parent == n.elem {
		end++
	}
	return end
}

func (n *navigator) MoveToPrevious() bool {
	n.spend(moveSteps)
	if n.attr >= 0 || n.elem <= Root && n.text < 0 {
		return false
	}
	parent, text, before, after := n.elem, n.text, n.before, n.after
	if n.text < 0 {
		el := &n.d.elems[n.elem]
		parent, text, before, after = el.parent, el.text, el.prev, n.elem
	}
	first := n.d.elems[parent].text
	if before != None {
		first = n.d.elems[before].textEnd
	}
	if text > first && n.d.texts[text-1].parent == parent {
		for text--; text > first && !n.d.texts[text].apart && n.d.texts[text-1].parent == parent; text-- {
		}
		n.elem, n.text, n.before, n.after = parent, text, before, after
		return true
	}
	if before == None {
		return false
	}
	n.elem, n.text = before, -1
	return true
}

func (n *navigator) MoveToFirst() bool {
	moved := false
	for n.MoveToPrevious() {
		moved = true
	}
	return moved
}
