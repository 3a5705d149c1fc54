package dom

import (
	"bytes"
	"strings"
	"unsafe"

	"shoal.dev/shoal/pkg/pattern"
)

func (l selectorList) match(d *Document, e Elem) bool {
	el := &d.elems[e]
	for i := range l {
		if !l[i].compounds[0].mayMatch(el) {
			d.steps-- // as matchFrom would
			continue
		}
		if l[i].matchFrom(d, e, 0) == matched {
			return true
		}
	}
	return false
}

// mayMatch is a quick check: of the name, and whether there are a class and an id if needed.
func (c *compound) mayMatch(el *element) bool {
	return (c.name == "" || c.tag == el.tag) && (el.class >= 0 || len(c.classes) == 0) &&
		(el.id >= 0 || !c.hasID)
}

// outcome is the result of matching the rest of a selector. A failure for lack of ancestors also
// holds for every element above, so no search is repeated from there. Matching takes steps in
// proportion to depth and length, not to a power of the depth.
type outcome uint8

const (
	matched      outcome = iota
	failed               // from here
	failedAbove          // from here and from every ancestor
	failedBefore         // from here and from every previous sibling
)

// matchFrom matches the compounds from index i on, to the left; compound i is matched with e.
func (s *complexSelector) matchFrom(d *Document, e Elem, i int) outcome {
	if d.steps--; d.steps < 0 {
		return failedAbove
	}
	if !s.compounds[i].match(d, e) {
		return failed
	}
	if i+1 == len(s.compounds) {
		return matched
	}
	switch s.combinators[i] {
	case ' ':
		for p := d.elems[e].parent; p != None; p = d.elems[p].parent {
			if got := s.matchFrom(d, p, i+1); got == matched || got == failedAbove {
				return got
			}
		}
		return failedAbove
	case '>':
		p := d.elems[e].parent
		if p == None {
			return failedAbove
		}
		if got := s.matchFrom(d, p, i+1); got == matched || got == failedAbove {
			return got
		}
		return failed
	case '+':
		p := d.elems[e].prev
		if p == None {
			return failedBefore
		}
		if got := s.matchFrom(d, p, i+1); got != failed {
			return got
		}
		return failed
	default: // '~'
		return s.matchBefore(d, e, i)
	}
}

// siblingSearch identifies a search among the previous siblings of an element: the compound, and
// the siblings' parent.
type siblingSearch struct {
	compound *compound
	parent   Elem
}

// siblingResult is the result of a search backwards from the sibling upTo.
type siblingResult struct {
	upTo Elem
	got  outcome
}

// manySiblings is the position from which a search's result is kept, so that the next sibling does
// not repeat it.
const manySiblings = 32

// matchBefore matches the compounds left of the "~" before compound i, which is matched with e,
// against the siblings before e.
func (s *complexSelector) matchBefore(d *Document, e Elem, i int) outcome {
	el := &d.elems[e]
	search := siblingSearch{&s.compounds[i], el.parent}
	known := siblingResult{upTo: None, got: failedBefore}
	if el.index > manySiblings {
		if r, ok := d.searched[search]; ok && r.upTo < e {
			known = r
		}
	}
	got := known.got
	for p := el.prev; p > known.upTo; p = d.elems[p].prev {
		if tried := s.matchFrom(d, p, i+1); tried != failed {
			got = tried
			break
		}
	}
	if el.index > manySiblings {
		if d.searched == nil {
			d.searched = make(map[siblingSearch]siblingResult)
		}
		d.searched[search] = siblingResult{el.prev, got}
	}
	return got
}

func (c *compound) match(d *Document, e Elem) bool {
	el := &d.elems[e]
	if c.name != "" && (c.tag != el.tag || c.tag == other && c.name != el.named) {
		return false
	}
	if c.hasID && (el.id < 0 || d.value(el.id) != c.id) {
		return false
	}
	for _, class := range c.classes {
		if !d.hasClass(el.class, class) {
			return false
		}
	}
	for i := range c.attrs {
		if !c.attrs[i].match(d, e) {
			return false
		}
	}
	for i := range c.pseudos {
		if !c.pseudos[i].match(d, e) {
			return false
		}
	}
	return true
}

// hasClass says whether an attribute's value contains the word. It decodes the value only if the
// written form is inconclusive.
func (d *Document) hasClass(i int32, class string) bool {
	if i < 0 {
		return false
	}
	written := d.attrs[i].value
	if d.hasWord(written, class, false) {
		return d.decoded || strings.IndexByte(class, '&') < 0 ||
			d.hasWord(d.value(i), class, false)
	}
	return strings.IndexByte(written, '&') >= 0 && d.hasWord(d.value(i), class, false)
}

// hasWord says whether s, a list separated by white space, contains the word.
func (d *Document) hasWord(s, word string, fold bool) bool {
	if !fold {
		return d.hasExactWord(s, word)
	}
	d.steps -= len(s) / bytesPerStep
	for start := 0; start < len(s); {
		end := start
		for end < len(s) && classes[s[end]]&space == 0 {
			end++
		}
		if equal(s[start:end], word, fold) && end > start {
			return true
		}
		start = end + 1
	}
	return false
}

// hasExactWord searches for the word first, since it is usually absent.
func (d *Document) hasExactWord(s, word string) bool {
	d.steps -= len(s) / bytesSearched
	for from := 0; len(s)-from >= len(word) && word != ""; from++ {
		i := strings.Index(s[from:], word)
		if i < 0 {
			return false
		}
		d.steps--
		from += i
		end := from + len(word)
		if (from == 0 || classes[s[from-1]]&space != 0) &&
			(end == len(s) || classes[s[end]]&space != 0) {
			return !strings.ContainsAny(word, whitespace)
		}
	}
	return false
}

func equal(s, t string, fold bool) bool { return s == t || fold && strings.EqualFold(s, t) }

func (t *attrTest) match(d *Document, e Elem) bool {
	v, ok := d.Attr(e, t.name)
	if t.op == '!' {
		return !ok || !equal(v, t.value, t.fold)
	}
	if !ok {
		return false
	}
	value := t.value
	switch t.op {
	case 0:
		return true
	case '=':
		return equal(v, value, t.fold)
	case '~':
		return d.hasWord(v, value, t.fold)
	case '|':
		return equal(v, value, t.fold) ||
			len(v) > len(value) && v[len(value)] == '-' && equal(v[:len(value)], value, t.fold)
	case '#':
		return d.fits(t.re, v)
	}
	d.steps -= len(v) / bytesSearched
	if value == "" || strings.TrimSpace(v) == "" {
		return false
	}
	if t.fold {
		d.steps -= len(v) / bytesPerStep
		v, value = strings.ToLower(v), strings.ToLower(value)
	}
	switch t.op {
	case '^':
		return strings.HasPrefix(v, value)
	case '$':
		return strings.HasSuffix(v, value)
	default: // '*'
		return strings.Contains(v, value)
	}
}

func (p *pseudo) match(d *Document, e Elem) bool {
	el := &d.elems[e]
	switch p.kind {
	case pseudoNot:
		return !p.list.match(d, e)
	case pseudoIs:
		return p.list.match(d, e)
	case pseudoHas:
		for i := e + 1; i < el.end && d.goesOn(); i++ {
			if p.list.match(d, i) {
				return true
			}
		}
	case pseudoHasChild:
		for i := e + 1; i < el.end && d.goesOn(); i = d.elems[i].end {
			if p.list.match(d, i) {
				return true
			}
		}
	case pseudoNth:
		return p.matchNth(d, e)
	case pseudoOnly:
		if p.ofType {
			return d.types()[e].count == 1
		}
		return el.parent == None || d.elems[el.parent].kids == 1
	case pseudoContains, pseudoMatches:
		return p.matchText(d, e)
	case pseudoEmpty:
		return el.kids == 0 && d.isBlank(e)
	case pseudoRoot:
		return el.parent == None
	case pseudoLang:
		return p.matchLang(d, e)
	case pseudoLink, pseudoInput, pseudoEnabled, pseudoDisabled, pseudoChecked:
		return p.matchState(d, e)
	}
	return false
}

func (p *pseudo) matchNth(d *Document, e Elem) bool {
	el := &d.elems[e]
	index, count := el.index, int32(1)
	if p.ofType {
		index, count = d.types()[e].index, d.types()[e].count
	} else if el.parent != None {
		count = d.elems[el.parent].kids
	}
	if p.last {
		index = count - index + 1
	}
	n := int(index) - p.b
	if p.a == 0 {
		return n == 0
	}
	return n%p.a == 0 && n/p.a >= 0
}

// matchText charges the text's bytes as steps, because all ancestors share the text.
func (p *pseudo) matchText(d *Document, e Elem) bool {
	d.scratch = d.appendRaw(d.scratch[:0], e, p.own)
	d.steps -= len(d.scratch)
	if p.kind == pseudoMatches {
		// scratch does not change meanwhile
		return d.fits(p.re, unsafe.String(unsafe.SliceData(d.scratch), len(d.scratch)))
	}
	return bytes.Contains(bytes.ToLower(d.scratch), []byte(p.text))
}

// fits says whether a pattern matches in a text. It charges the pattern's price as steps.
func (d *Document) fits(p *pattern.Pattern, text string) bool {
	if !d.goesOn() {
		return false
	}
	d.budget.Reset(d.ctx, d.steps)
	found := p.Match(&d.budget, text)
	d.steps = d.budget.Left()
	return d.goesOn() && found
}

func (d *Document) isBlank(e Elem) bool {
	el := &d.elems[e]
	for i := el.text; i < el.textEnd; i++ {
		d.steps -= len(d.texts[i].s) / bytesPerStep
		if strings.TrimSpace(d.texts[i].s) != "" {
			d.scratch = d.appendRaw(d.scratch[:0], e, false)
			return len(bytes.TrimSpace(d.scratch)) == 0
		}
	}
	return true
}

func (p *pseudo) matchLang(d *Document, e Elem) bool {
	for ; e != None; e = d.elems[e].parent {
		d.steps--
		if v, ok := d.Attr(e, "lang"); ok && (v == p.text || strings.HasPrefix(v, p.text+"-")) {
			return true
		}
	}
	return false
}

func (d *Document) has(e Elem, attr string) bool {
	_, ok := d.Attr(e, attr)
	return ok
}

// matchState matches the pseudo-classes that depend on an element's kind and one or two attributes.
func (p *pseudo) matchState(d *Document, e Elem) bool {
	t, name := d.elems[e].tag, d.elems[e].name()
	link := (t == tA || t == tArea || t == tLink) && d.has(e, "href")
	group := t == tOptgroup || t == tFieldset || name == "menuitem"
	control := t == tButton || t == tInput || t == tSelect || t == tTextarea
	switch p.kind {
	case pseudoLink:
		return link
	case pseudoInput:
		return control
	case pseudoEnabled:
		return link || group && !d.has(e, "disabled") ||
			(control || t == tOption) && !d.has(e, "disabled") && !d.inDisabledFieldset(e)
	case pseudoDisabled:
		return group && d.has(e, "disabled") ||
			(control || t == tOption) && (d.has(e, "disabled") || d.inDisabledFieldset(e))
	default: // pseudoChecked
		kind, _ := d.Attr(e, "type")
		kind = lowerASCII(kind)
		return t == tOption && d.has(e, "selected") ||
			(t == tInput || name == "menuitem") && d.has(e, "checked") &&
				(kind == "checkbox" || kind == "radio")
	}
}

func (d *Document) inDisabledFieldset(e Elem) bool {
	for p := d.elems[e].parent; p != None; p = d.elems[p].parent {
		d.steps--
		if d.elems[p].tag == tFieldset && d.has(p, "disabled") {
			return true
		}
	}
	return false
}
