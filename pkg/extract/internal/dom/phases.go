package dom

import "strings"

// startTag places the start tag at hand.
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
		b.odd = b.odd || b.tok.tag.is(rawText)
		b.d.attrs = b.d.attrs[:b.tok.attrs]
	}
}

// startBeforeBody places a start tag by the rules of the phase, moving on where the tag belongs to
// a later one; true if there is nothing left to do here.
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
			return b.ignoreRoot()
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

// startInHead places the tags that belong into the head; false for others.
func (b *builder) startInHead() bool {
	switch t := b.tok.tag; t {
	case tHTML:
		return b.ignoreRoot()
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
		return b.ignoreRoot()
	case tHead:
		return true
	case tBody:
		b.add()
		b.phase = inBody
		return true
	case tFrameset:
		b.odd = true
		return true
	case tBase, tBasefont, tBgsound, tLink, tMeta, tNoframes, tScript, tStyle, tTemplate, tTitle:
		// Nothing but white space has come since the head, so it can be opened again.
		head := &b.d.elems[b.head]
		if len(b.d.texts) > int(head.textEnd) {
			b.odd = true // white space that is not the head's would stand among its texts
			return true
		}
		for _, found := range b.d.found {
			if found == b.head {
				b.within++
			}
		}
		kids, last := head.kids, None
		for e := b.head + 1; e < Elem(len(b.d.elems)); e = b.d.elems[e].end {
			last = e
		}
		b.stack = append(b.stack, open{elem: b.head, tag: tHead, kids: kids, last: last})
		b.opened[tHead]++
		b.startInHead()
		b.pop()
		return true
	}
	b.imply(tBody)
	b.phase = inBody
	return true
}

// ignoreRoot ignores a second html tag, which may bring the root no more attributes.
func (b *builder) ignoreRoot() bool {
	b.odd = b.odd || int(b.tok.attrs) < len(b.d.attrs)
	return true
}

// enterBody opens what is missing up to the body.
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

// endTag places the end tag at hand.
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
	if t == tScript && doubleEscaped(text) {
		b.odd = true
		return
	}
	b.pos += len(text)
	if t == tTextarea {
		text = trimNewline(text)
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

// rawContents is the page from pos to the end tag of the name, or all of the rest without one.
func (b *builder) rawContents(name string) (text string, found bool) {
	rest := b.s[b.pos:]
	for i := 0; ; i += 2 {
		n := strings.Index(rest[i:], "</")
		if n < 0 {
			return rest, false
		}
		i += n
		after := i + 2 + len(name)
		if after < len(rest) && strings.EqualFold(rest[i+2:after], name) &&
			classes[rest[after]]&nameEnd != 0 {
			return rest[:i], true
		}
	}
}

// doubleEscaped says whether a script's text may hold "<!--" and then "<script", behind which an
// end tag may not end it.
func doubleEscaped(text string) bool {
	i := strings.Index(text, "<!--")
	if i < 0 {
		return false
	}
	for text = text[i:]; ; text = text[1:] {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			return false
		}
		text = text[i:]
		if len(text) > len("script") && strings.EqualFold(text[1:1+len("script")], "script") {
			return true
		}
	}
}

// skipTemplate adds a template without its contents, which are no part of the page.
func (b *builder) skipTemplate() {
	b.add()
	d := b.d
	attrs, depth := len(d.attrs), 1
	for starts := 0; depth > 0 && !b.odd; {
		i := strings.IndexByte(b.s[b.pos:], '<')
		if i < 0 || b.pos+i+2 >= len(b.s) {
			b.odd = true
			break
		}
		b.pos += i
		switch c := b.s[b.pos+1]; {
		case isLetter(c):
			b.readTag(b.pos+1, false)
			depth += b.skipStart()
			starts++
			b.odd = b.odd || starts+len(b.stack) > maxDepth
		case c == '/' && isLetter(b.s[b.pos+2]):
			b.readTag(b.pos+2, false)
			if b.tok.tag == tTemplate {
				depth--
			}
		case c == '/' || c == '?':
			b.skipPast(b.pos+2, ">")
		case c == '!':
			b.declaration()
		default:
			b.pos++
		}
	}
	d.attrs = d.attrs[:attrs]
	b.tok.used = true
	b.pop()
}

// skipStart passes a start tag in a template, with its contents if they are raw; 1 if it opens
// another template.
func (b *builder) skipStart() int {
	switch t := b.tok.tag; {
	case t == tTemplate:
		return 1
	case t == tSvg || t == tMath || t == tPlaintext:
		b.odd = true
	case t.is(rawText):
		text, found := b.rawContents(b.tok.name())
		b.odd = b.odd || !found || t == tScript && doubleEscaped(text)
		b.pos += len(text)
	}
	return 0
}
