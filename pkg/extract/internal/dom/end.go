package dom

import "strings"

// endInBody places an end tag once the body is open. It applies the rules of the table around it,
// if there is one, and then those of the body.
func (b *builder) endInBody() {
	for b.odd == notOdd {
		var done bool
		switch b.top().mode {
		case modeBody:
			b.endContent()
			return
		case modeCell:
			done = b.endInCell()
		case modeCaption:
			done = b.endInCaption()
		case modeColgroup:
			switch b.tok.tag {
			case tColgroup:
				b.pop()
				return
			case tCol, tTemplate:
				return
			}
			b.pop()
		case modeRow:
			done = b.endInRow()
		case modeTableBody:
			done = b.endInTableBody()
		case modeTable:
			done = true
			b.endInTable()
		}
		if done {
			return
		}
	}
}

func (b *builder) endInCell() (done bool) {
	switch t := b.tok.tag; t {
	case tTd, tTh:
		if b.closeInScope(tableScope, t) {
			b.clearToMarker()
		}
	case tBody, tCaption, tCol, tColgroup, tHTML:
	case tTable, tTbody, tTfoot, tThead, tTr:
		if b.inScope(tableScope, t) < 0 {
			return true
		}
		for {
			t := b.top().tag
			b.pop()
			if t == tTd || t == tTh {
				break
			}
		}
		b.clearToMarker()
		return false
	default:
		b.endContent()
	}
	return true
}

func (b *builder) endInCaption() (done bool) {
	switch t := b.tok.tag; t {
	case tCaption, tTable:
		if b.closeInScope(tableScope, tCaption) {
			b.clearToMarker()
			return t == tCaption
		}
	case tBody, tCol, tColgroup, tHTML, tTbody, tTd, tTfoot, tTh, tThead, tTr:
	default:
		b.endContent()
	}
	return true
}

func (b *builder) endInRow() (done bool) {
	switch t := b.tok.tag; t {
	case tTr:
		b.clearToTable()
		b.pop()
	case tTable:
		b.clearToTable()
		b.pop()
		return false
	case tTbody, tTfoot, tThead:
		if b.inScope(tableScope, t) >= 0 {
			b.clearToTable()
			b.pop()
			return false
		}
	default:
		b.endInTable()
	}
	return true
}

func (b *builder) endInTableBody() (done bool) {
	switch t := b.tok.tag; t {
	case tTbody, tTfoot, tThead:
		if b.inScope(tableScope, t) >= 0 {
			b.clearToTable()
			b.pop()
		}
	case tTable:
		b.clearToTable()
		b.pop()
		return false
	default:
		b.endInTable()
	}
	return true
}

func (b *builder) endInTable() {
	switch b.tok.tag {
	case tTable:
		b.closeInScope(tableScope, tTable)
	case tBody, tCaption, tCol, tColgroup, tHTML, tTbody, tTd, tTfoot, tTh, tThead, tTr, tTemplate:
	default:
		b.fostering = true
		b.endContent()
		b.fostering = false
	}
}

// endContent places an end tag by the rules of the body.
func (b *builder) endContent() {
	switch t := b.tok.tag; t {
	case tBody, tHTML, tTemplate:
		// Content after the body's end tag still goes into the body.
	case tAddress, tArticle, tAside, tBlockquote, tButton, tCenter, tDetails, tDialog, tDir, tDiv,
		tDl, tFieldset,
		tFigcaption, tFigure, tFooter, tHeader, tHgroup, tListing, tMain, tMenu, tNav, tOl, tPre,
		tSearch, tSection,
		tSelect, tSummary, tUl:
		if b.inScope(defaultScope, t) >= 0 {
			b.closeImplied(other)
			b.closeInScope(defaultScope, t)
		}
	case tForm:
		b.endForm()
	case tP:
		if !b.closeInScope(buttonScope, tP) {
			b.imply(tP)
			b.pop()
		}
	case tLi:
		b.closeInScope(listItemScope, tLi)
	case tDd, tDt:
		b.closeInScope(defaultScope, t)
	case tH1, tH2, tH3, tH4, tH5, tH6:
		b.endHeading()
	case tA, tB, tBig, tCode, tEm, tFont, tI, tNobr, tS, tSmall, tStrike, tStrong, tTt, tU:
		b.endFormatting(t)
	case tApplet, tMarquee, tObject:
		if b.closeInScope(defaultScope, t) {
			b.clearToMarker()
		}
	case tBr:
		b.reconstruct()
		b.imply(tBr)
		b.pop()
	default:
		b.endOther(t, b.tok.name())
	}
}

func (b *builder) endForm() {
	form := b.form
	b.form = None
	i := b.inScope(defaultScope, tForm)
	if form == None || i < 0 || b.stack[i].elem != form {
		return
	}
	b.closeImplied(other)
	for i := len(b.stack) - 1; i >= 0; i-- {
		if b.stack[i].elem == form {
			b.remove(i)
			return
		}
	}
}

// endHeading closes the innermost heading in scope, whatever its level.
func (b *builder) endHeading() {
	innermost := -1
	for t := tH1; t <= tH6; t++ {
		innermost = max(innermost, b.inScope(defaultScope, t))
	}
	if innermost >= 0 {
		b.popTo(innermost)
	}
}

// maxAdoptions bounds how often one end tag moves blocks out of formatting elements.
const maxAdoptions = 8

// endFormatting closes a formatting element. It ends before a block that it holds, and continues
// inside the block.
func (b *builder) endFormatting(t tag) {
	if top := b.top(); top.tag == t && !b.isActive(top.elem) {
		b.pop()
		return
	}
	for round := 0; round < maxAdoptions && b.odd == notOdd; round++ {
		i := b.activeIndex(t)
		if i < 0 {
			b.endOther(t, tagInfo[t].name)
			return
		}
		if !b.active[i].open {
			b.dropActive(i)
			return
		}
		if b.inScope(defaultScope, t) < 0 {
			return
		}
		at, block := len(b.stack)-1, -1
		for ; b.stack[at].elem != b.active[i].elem; at-- {
			if !b.stack[at].gone && b.stack[at].tag.is(special) {
				block = at
			}
		}
		if block < 0 {
			b.popTo(at)
			b.dropActive(i)
			return
		}
		b.adopt(at, block)
	}
}

func (b *builder) isActive(e Elem) bool {
	for i := range b.active {
		if b.active[i].elem == e {
			return true
		}
	}
	return false
}

// endOther closes the innermost element with the name, unless a special element is in between.
func (b *builder) endOther(t tag, name string) {
	for i := len(b.stack) - 1; i >= 0; i-- {
		if b.looked++; b.looked > maxLooked {
			b.giveUp(oddLarge) // x/net/html has its own bound
			return
		}
		o := &b.stack[i]
		if o.gone {
			continue
		}
		if o.tag == t && b.d.elems[o.elem].name() == name {
			b.popTo(i)
			return
		}
		if o.tag.is(special) {
			return
		}
	}
}

// addForeign opens an element of SVG or MathML.
func (b *builder) addForeign() {
	b.add()
	o := b.top()
	o.foreign = true
	b.opened[o.tag]--
	if b.tok.selfClosing {
		b.pop()
	}
}

// startForeign places a start tag inside SVG or MathML. HTML inside, by escape or by invitation,
// makes the page odd, and so does an element inside one that hides its contents.
func (b *builder) startForeign() {
	top := b.top()
	if top.tag.is(hidden) || invitesHTML(b.d.elems[top.elem].name()) || escapes(b.tok.name()) {
		b.giveUp(oddForeign)
		return
	}
	b.addForeign()
}

// invitesHTML says whether an element of SVG or MathML may hold HTML.
func invitesHTML(name string) bool {
	switch name {
	case "desc", "foreignobject", "title", "mi", "mo", "mn", "ms", "mtext", "annotation-xml":
		return true
	}
	return false
}

// escapes says whether a start tag ends SVG and MathML, or may end it: font does with some
// attributes, and template is not examined further.
func escapes(name string) bool {
	switch name {
	case "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em",
		"embed", "font", "h1",
		"h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "math", "menu",
		"meta", "nobr", "ol", "p",
		"pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "table", "template",
		"tt", "u", "ul", "var":
		return true
	}
	return false
}

// endForeign closes the innermost element with the name in SVG or MathML. An end tag for an element
// around it makes the page odd.
func (b *builder) endForeign() {
	for i := len(b.stack) - 1; i >= 0 && b.stack[i].foreign; i-- {
		if strings.EqualFold(b.d.elems[b.stack[i].elem].name(), b.tok.name()) {
			b.popTo(i)
			return
		}
	}
	b.giveUp(oddForeign)
}
