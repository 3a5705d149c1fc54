package dom

import (
	"slices"
	"strings"
)

// aside is a table with its contents, removed from the list while something is placed before it.
type aside struct {
	table int  // its index on the stack
	elem  Elem // its index in elems, and that of its texts in texts
	text  int32
	elems []element
	texts []text
	apart bool // the builder's apart at that time
}

// startBeforeTable places a start tag that does not belong in the table. By the rules of the body,
// it goes before the table.
func (b *builder) startBeforeTable() {
	b.fostering = true
	b.startContent()
	b.fostering = false
}

// clearToTable closes open elements that were placed before the table.
func (b *builder) clearToTable() {
	for t := b.top().tag; !t.holdsRows(); t = b.top().tag {
		b.pop()
	}
}

// innermostTable returns the stack index of the innermost table, which must exist.
func (b *builder) innermostTable() int {
	i := len(b.stack) - 1
	for b.stack[i].tag != tTable {
		i--
	}
	return i
}

// setAside removes the table from the list, so that the next element takes its place. Meanwhile,
// its elements have negative indexes on the stack.
func (b *builder) setAside() {
	d := b.d
	i := b.innermostTable()
	t := &b.stack[i]
	from, text := t.elem, d.elems[t.elem].text
	if slices.ContainsFunc(d.found, func(e Elem) bool { return e >= from }) ||
		slices.ContainsFunc(d.wanted, func(s *Selector) bool { return s.siblings || s.counts }) {
		b.giveUp(oddMatches)
	}
	b.mayMove(len(d.elems) - int(from) + len(d.texts) - int(text))
	a := aside{table: i, elem: from, text: text, elems: slices.Clone(d.elems[from:]),
		texts: slices.Clone(d.texts[text:]), apart: b.apart}
	b.apart = t.apart
	b.asides = append(b.asides, a)
	d.mostElems = max(d.mostElems, len(d.elems))
	clear(d.texts[text:])
	d.elems, d.texts = d.elems[:from], d.texts[:text]
	b.moveTable(&a, -asideBy)
}

// foster returns the parent, the previous sibling and the position of an element that is placed
// before the table set aside.
func (b *builder) foster(e Elem) (parent, prev Elem, index int32) {
	a := &b.asides[len(b.asides)-1]
	around, table := &b.stack[a.table-1], &a.elems[0]
	parent, prev, index = around.elem, table.prev, table.index
	around.kids++
	table.prev = e
	table.index++
	return parent, prev, index
}

// putBack puts the table after the elements placed before it.
func (b *builder) putBack() {
	d := b.d
	a := b.asides[len(b.asides)-1]
	b.asides[len(b.asides)-1] = aside{}
	b.asides = b.asides[:len(b.asides)-1]
	by, texts := Elem(len(d.elems))-a.elem, int32(len(d.texts))-a.text
	for i := range a.elems {
		el := &a.elems[i]
		el.text += texts
		if el.end > 0 {
			el.end += by
			el.textEnd += texts
		}
		if i > 0 {
			el.parent += by
			if el.prev != None {
				el.prev += by
			}
		}
	}
	for i := range a.texts {
		t := &a.texts[i]
		t.parent += by
		if t.hider >= a.elem {
			t.hider += by
		}
	}
	b.mayMove(len(a.elems) + len(a.texts))
	d.elems, d.texts = append(d.elems, a.elems...), append(d.texts, a.texts...)
	b.moveTable(&a, asideBy+by)
	b.stack[a.table-1].last = a.elem + by
	b.stack[a.table].apart, b.apart = false, a.apart
	if len(d.elems) > maxParts || len(d.texts) > maxParts {
		b.giveUp(oddLarge)
	}
}

// asideBy is subtracted from the indexes of a table set aside, so that they are below None.
const asideBy = Elem(1 << 30)

// moveTable moves the builder's references to a table's elements out of the list, or back in.
func (b *builder) moveTable(a *aside, by Elem) {
	moved := func(e *Elem) {
		if *e != None && (by < 0) == (*e > None) {
			*e += by
		}
	}
	for i := a.table; i < len(b.stack); i++ {
		moved(&b.stack[i].elem)
		moved(&b.stack[i].last)
		b.stack[i].attrs = int32(len(b.d.attrs))
	}
	if b.form < None || b.form >= a.elem {
		moved(&b.form)
	}
}

// addTableText adds text inside a table: white space stays there, other text goes before the table.
// It returns the rest if an element open there is to hold it.
func (b *builder) addTableText(s string) (left string) {
	if b.top().mode == modeColgroup {
		rest := strings.TrimLeft(s, whitespace)
		b.appendText(s[:len(s)-len(rest)], false)
		if rest == "" {
			return ""
		}
		if rest[0] == '&' && mayBeSpace(rest) {
			b.giveUp(oddRare)
			return ""
		}
		b.pop()
		s = rest
	}
	if !b.top().tag.holdsRows() {
		return s
	}
	if strings.Trim(s, whitespace) == "" || strings.IndexByte(s, '&') >= 0 &&
		strings.Trim(string(appendDecoded(nil, s, false)), whitespace) == "" {
		if b.pos < len(b.s) && b.untilMarkup(b.pos) > 0 {
			b.giveUp(oddRare) // this text continues
		}
		b.appendText(s, false)
		return ""
	}
	b.filled = b.filled || strings.IndexByte(s, '&') < 0
	b.fostering = true
	b.reconstruct()
	b.fostering = false
	if !b.top().tag.holdsRows() {
		return s
	}
	if b.within == 0 {
		return ""
	}
	b.setAside()
	around := b.stack[b.asides[len(b.asides)-1].table-1].elem
	b.d.texts = append(b.d.texts, text{s: s, parent: around, hider: None, apart: b.apart})
	b.putBack()
	return ""
}
