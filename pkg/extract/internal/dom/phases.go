package dom

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// startTag places the current start tag.
func (b *builder) startTag() {
	switch {
	case len(b.stack) > 0 && b.top().foreign:
		b.startForeign()
	case b.phase == inBody && b.top().mode == modeBody:
		b.startContent()
	default:
		for !b.startBeforeBody() {
		}
		if b.phase == inBody && !b.tok.used {
			b.startInBody()
		}
	}
	if !b.tok.used {
		if b.tok.tag.is(rawText) {
			b.giveUp(oddRare)
		}
		b.d.attrs = b.d.attrs[:b.tok.attrs]
	}
}

// startBeforeBody places a start tag by the rules of the phase, and advances the phase if the tag
// belongs to a later one. It returns true when it is done.
func (b *builder) startBeforeBody() (done bool) {
	t := b.tok.tag
	switch b.phase {
	case initial:
		b.quirks = quirksOn
		b.phase = beforeHTML
	case beforeHTML:
		b.phase = beforeHead
		if t == tHTML {
			b.add()
			return true
		}
		b.imply(tHTML)
	case beforeHead:
		if t == tHTML {
			return b.mergeRoot(Root)
		}
		b.phase = inHead
		if t == tHead {
			b.head = b.add()
			return true
		}
		b.head = b.imply(tHead)
	case inHead:
		if b.startInHead() {
			return true
		}
		b.pop()
		b.phase = afterHead
	case afterHead:
		return b.startAfterHead()
	default:
		return true
	}
	return false
}

// startInHead places the tags that belong in the head; it returns false for others.
func (b *builder) startInHead() bool {
	switch t := b.tok.tag; t {
	case tHTML:
		return b.mergeRoot(Root)
	case tHead:
	case tBase, tBasefont, tBgsound, tLink, tMeta:
		b.addVoid()
	case tScript, tStyle, tTitle, tNoscript, tNoframes:
		b.addRaw()
	case tTemplate:
		b.skipTemplate()
	default:
		return false
	}
	return true
}

func (b *builder) startAfterHead() (done bool) {
	switch b.tok.tag {
	case tHTML:
		return b.mergeRoot(Root)
	case tHead:
		return true
	case tBody:
		b.add()
		b.phase = inBody
		return true
	case tFrameset:
		b.giveUp(oddFrames)
		return true
	case tBase, tBasefont, tBgsound, tLink, tMeta, tNoframes, tScript, tStyle, tTemplate, tTitle:
		b.reopenHead()
		return true
	}
	b.imply(tBody)
	b.phase = inBody
	return true
}

// reopenHead adds the current element to the head, after which only white space has come. That
// white space belongs to the root and stays after the head's contents.
func (b *builder) reopenHead() {
	d := b.d
	head := &d.elems[b.head]
	behind, apart := slices.Clone(d.texts[head.textEnd:]), b.apart
	d.texts = d.texts[:head.textEnd]
	for _, found := range d.found {
		if found == b.head {
			b.within++
		}
	}
	kids, last := head.kids, None
	for e := b.head + 1; e < Elem(len(d.elems)); e = d.elems[e].end {
		last = e
	}
	b.stack = append(b.stack, open{elem: b.head, tag: tHead, kids: kids, last: last})
	b.opened[tHead]++
	b.startInHead()
	b.pop()
	if len(behind) > 0 {
		d.texts, b.apart = append(d.texts, behind...), apart
	}
}

// enterBody opens all missing elements up to the body.
func (b *builder) enterBody() {
	if b.phase == initial {
		b.quirks = quirksOn
	}
	if b.phase <= beforeHTML {
		b.imply(tHTML)
	}
	if b.phase <= beforeHead {
		b.head = b.imply(tHead)
	}
	if b.phase <= inHead {
		b.pop()
	}
	if b.phase <= afterHead {
		b.imply(tBody)
	}
	b.phase = inBody
}

// endTag places the current end tag.
func (b *builder) endTag() {
	if len(b.stack) > 0 && b.top().foreign {
		b.endForeign()
		return
	}
	if b.phase == inBody {
		b.endInBody()
		return
	}
	switch t := b.tok.tag; t {
	case tHead:
		if b.phase == initial {
			b.quirks = quirksOn
		}
		if b.phase <= beforeHTML {
			b.imply(tHTML)
		}
		if b.phase <= beforeHead {
			b.head = b.imply(tHead)
		}
		if b.phase <= inHead {
			b.pop()
			b.phase = afterHead
		}
	case tBody, tHTML, tBr:
		b.enterBody()
		b.endInBody()
	default:
		if b.phase == initial {
			b.quirks = quirksOn
			b.phase = beforeHTML
		}
	}
}

// addRaw adds an element whose contents are text up to its end tag.
func (b *builder) addRaw() {
	t, name := b.tok.tag, b.tok.name()
	b.add()
	text, found := b.rawContents(name)
	if t == tScript && mayEscapeTwice(text) {
		text, found = b.scriptContents()
	}
	b.pos += len(text)
	if t == tTextarea {
		text = b.trimNewline(text)
	}
	b.appendText(text, !t.is(references))
	b.pop()
	if found {
		attrs := len(b.d.attrs)
		b.readTag(b.pos+2, false)
		b.d.attrs = b.d.attrs[:attrs]
		b.tok.used = true
	}
}

// mergeBody gives the body the attributes of another body tag.
func (b *builder) mergeBody() {
	if len(b.stack) > 1 && b.stack[1].tag == tBody {
		b.mergeRoot(b.stack[1].elem)
	}
}

// mergeRoot gives html or body those attributes of the current tag that it lacks. That completes
// the tag.
func (b *builder) mergeRoot(e Elem) bool {
	d, t := b.d, &b.tok
	el := &d.elems[e]
	given := d.attrs[t.attrs:]
	var merged []attr
	added := 0
	for _, a := range given {
		if _, has := d.Attr(e, a.name); has {
			continue
		}
		if merged == nil {
			merged = slices.Clone(d.attrs[el.attrs:el.attrsEnd])
		}
		merged = append(merged, a)
		added++
	}
	if merged == nil {
		return true
	}
	if len(merged) > maxAttrs {
		b.giveUp(oddLarge)
	}
	el.attrs = t.attrs
	d.attrs = append(d.attrs[:t.attrs], merged...)
	el.attrsEnd = int32(len(d.attrs))
	for i := el.attrs; i < el.attrsEnd; i++ {
		switch d.attrs[i].name {
		case "class":
			el.class = i
		case "id":
			el.id = i
		}
	}
	b.recheckRoot(e, merged[len(merged)-added:])
	// When elements are dropped, these attributes must stay.
	for i := range b.stack {
		b.stack[i].attrs = el.attrsEnd
	}
	t.used = true
	return true
}

// recheckRoot matches html or body again after it got attributes. They may also have changed the
// matches inside it.
func (b *builder) recheckRoot(e Elem, added []attr) {
	d := b.d
	for i, s := range d.wanted {
		if !s.roots {
			continue
		}
		found, matches := d.found[i], s.list.match(d, e)
		around := s.around == nil || slices.ContainsFunc(added, func(a attr) bool {
			return slices.Contains(s.around, a.name)
		})
		if around || matches && (found == None || found > e) || !matches && found == e {
			b.giveUp(oddRoots)
		}
	}
}

// isQuirky says whether the page's doctype, or its absence, lets a table be inside a paragraph.
func (b *builder) isQuirky() bool {
	if b.quirks == quirksUnknown {
		b.quirks = quirksOff
		root, err := html.Parse(strings.NewReader("<!doctype" + b.declared + "<p><table>"))
		if err != nil {
			b.giveUp(oddRare)
			return false
		}
		for n := range root.Descendants() {
			if n.DataAtom == atom.Table && n.Parent.DataAtom == atom.P {
				b.quirks = quirksOn
			}
		}
	}
	return b.quirks == quirksOn
}
