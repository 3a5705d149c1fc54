package dom

import "strings"

// startInBody places a start tag once the body is open. It applies the rules of the table around
// it, if there is one, and then those of the body.
func (b *builder) startInBody() {
	for b.odd == notOdd {
		switch b.top().mode {
		case modeBody:
			b.startContent()
			return
		case modeCell, modeCaption:
			if !b.closeCell() {
				b.startContent()
				return
			}
		case modeColgroup:
			switch b.tok.tag {
			case tCol:
				b.addVoid()
				return
			case tTemplate:
				b.skipTemplate()
				return
			case tHTML:
				b.mergeRoot(Root)
				return
			}
			b.pop()
		default:
			if b.startInTable() {
				return
			}
		}
	}
}

// closeCell closes the cell or caption if the current tag belongs to the table around it.
func (b *builder) closeCell() bool {
	switch t := b.tok.tag; t {
	case tCaption, tCol, tColgroup, tTbody, tTd, tTfoot, tTh, tThead, tTr:
		caption := b.top().mode == modeCaption
		if caption && t == tTh {
			b.giveUp(oddRare)
		}
		for {
			t := b.top().tag
			b.pop()
			if t == tTd || t == tTh || t == tCaption {
				break
			}
		}
		b.clearToMarker()
		return true
	}
	return false
}

// startInTable places a start tag directly inside a table, its body or a row. It returns false if
// it closed or opened an element and the tag must be examined again.
func (b *builder) startInTable() (done bool) {
	m := b.top().mode
	switch b.tok.tag {
	case tTd, tTh, tTr, tCaption, tCol, tColgroup, tTbody, tTfoot, tThead:
		b.clearToTable()
	}
	switch t := b.tok.tag; t {
	case tTd, tTh:
		switch m {
		case modeTable:
			b.imply(tTbody)
			return false
		case modeTableBody:
			b.imply(tTr)
			return false
		}
		b.add()
		b.addMarker()
	case tTr:
		switch m {
		case modeTable:
			b.imply(tTbody)
			return false
		case modeRow:
			b.pop()
			return false
		}
		b.add()
	case tCaption, tCol, tColgroup, tTbody, tTfoot, tThead:
		if m != modeTable {
			b.pop()
			return false
		}
		b.startTablePart()
	case tTable:
		b.closeInScope(tableScope, tTable)
		return false
	case tStyle, tScript:
		b.addRaw()
	case tTemplate:
		b.skipTemplate()
	case tInput:
		if i := b.tokenAttr("type"); i < 0 || !strings.EqualFold(b.d.value(i), "hidden") {
			b.startBeforeTable()
			break
		}
		b.addVoid()
	case tForm:
		if b.form == None {
			b.form = b.add()
			b.pop()
		}
	case tHTML:
		b.mergeRoot(Root)
	case tBody:
		b.mergeBody()
	default:
		b.startBeforeTable()
	}
	return true
}

func (b *builder) startTablePart() {
	switch b.tok.tag {
	case tCaption:
		b.addMarker()
		b.add()
	case tCol:
		b.imply(tColgroup)
		b.addVoid()
	default:
		b.add()
	}
}

// tokenAttr returns the index of the current tag's attribute with this name, or -1.
func (b *builder) tokenAttr(name string) int32 {
	for i := int(b.tok.attrs); i < len(b.d.attrs); i++ {
		if b.d.attrs[i].name == name {
			return int32(i)
		}
	}
	return -1
}

// startContent places a start tag by the rules of the body.
func (b *builder) startContent() {
	t := b.tok.tag
	switch courses[t] {
	case block:
		b.closeInScope(buttonScope, tP)
		b.add()
		return
	case inline:
		b.reconstruct()
		b.add()
		return
	case void:
		b.reconstruct()
		b.addVoid()
		return
	}
	switch t {
	case tHTML:
		b.mergeRoot(Root)
	case tBody:
		b.mergeBody()
	case tBase, tBasefont, tBgsound, tLink, tMeta, tNoframes, tScript, tStyle, tTitle, tNoscript,
		tTemplate:
		b.startInHead()
	case tH1, tH2, tH3, tH4, tH5, tH6:
		b.closeInScope(buttonScope, tP)
		if top := b.top().tag; tH1 <= top && top <= tH6 {
			b.pop()
		}
		b.add()
	case tForm:
		if b.form == None {
			b.closeInScope(buttonScope, tP)
			b.form = b.add()
		}
	case tLi:
		b.startItem(tLi, tLi)
	case tDd, tDt:
		b.startItem(tDd, tDt)
	case tTable:
		if b.inScope(buttonScope, tP) >= 0 && !b.isQuirky() {
			b.closeInScope(buttonScope, tP)
		}
		b.add()
	case tTextarea, tIframe, tNoembed:
		b.addRaw()
	case tXmp:
		b.closeInScope(buttonScope, tP)
		b.reconstruct()
		b.addRaw()
	case tHr:
		b.startRule()
	case tParam, tSource, tTrack:
		b.addVoid()
	case tRb, tRtc, tRp, tRt:
		if b.inScope(defaultScope, tRuby) >= 0 {
			except := other
			if t == tRp || t == tRt {
				except = tRtc
			}
			b.closeImplied(except)
		}
		b.add()
	case tCaption, tCol, tColgroup, tFrame, tHead, tTbody, tTd, tTfoot, tTh, tThead, tTr:
	case tFrameset:
		b.giveUp(oddFrames)
	case tPlaintext, tImage:
		b.giveUp(oddRare)
	default:
		b.startInline()
	}
}

// startInline places the tags before which formatting elements are reopened.
func (b *builder) startInline() {
	switch t := b.tok.tag; t {
	case tA:
		b.closeLink()
		b.reconstruct()
		b.addFormatting()
	case tB, tBig, tCode, tEm, tFont, tI, tS, tSmall, tStrike, tStrong, tTt, tU:
		b.reconstruct()
		b.addFormatting()
	case tNobr:
		b.reconstruct()
		if b.inScope(defaultScope, tNobr) >= 0 {
			b.endFormatting(tNobr)
			b.reconstruct()
		}
		b.addFormatting()
	case tApplet, tMarquee, tObject:
		b.reconstruct()
		b.add()
		b.addMarker()
	case tInput:
		b.closeInScope(defaultScope, tSelect)
		b.reconstruct()
		b.addVoid()
	case tButton:
		if b.inScope(defaultScope, tButton) >= 0 {
			b.closeImplied(other)
			b.closeInScope(defaultScope, tButton)
		}
		b.reconstruct()
		b.add()
	case tSelect:
		if b.closeInScope(defaultScope, tSelect) {
			return
		}
		b.reconstruct()
		b.add()
	case tOption, tOptgroup:
		b.startOption()
	case tSvg, tMath:
		b.reconstruct()
		b.addForeign()
	}
}

// startItem opens a list item. It closes the previous item, which has the tag t or u.
func (b *builder) startItem(t, u tag) {
	if b.opened[t] > 0 || b.opened[u] > 0 {
		for i := len(b.stack) - 1; i >= 0; i-- {
			o := &b.stack[i]
			if o.gone || o.tag == tAddress || o.tag == tDiv || o.tag == tP {
				continue
			}
			if o.tag == t || o.tag == u {
				b.popTo(i)
				break
			}
			if o.tag.is(special) {
				break
			}
		}
	}
	b.closeInScope(buttonScope, tP)
	b.add()
}

func (b *builder) startOption() {
	if b.inScope(defaultScope, tSelect) >= 0 {
		except := other
		if b.tok.tag == tOption {
			except = tOptgroup
		}
		b.closeImplied(except)
	} else if b.top().tag == tOption {
		b.pop()
	}
	b.reconstruct()
	b.add()
}

func (b *builder) startRule() {
	if b.inScope(buttonScope, tP) >= 0 {
		b.closeImplied(tP)
		b.closeInScope(defaultScope, tP)
	}
	if b.inScope(defaultScope, tSelect) >= 0 {
		b.closeImplied(other)
	}
	b.addVoid()
}

// closeLink closes an open link, because links do not nest.
func (b *builder) closeLink() {
	i := b.activeIndex(tA)
	if i < 0 {
		return
	}
	link := b.active[i].elem
	b.endFormatting(tA)
	for i := range b.active {
		if b.active[i].elem == link {
			b.dropActive(i)
			break
		}
	}
	for i := range b.stack {
		if b.stack[i].elem == link && !b.stack[i].gone {
			b.remove(i)
			break
		}
	}
}
