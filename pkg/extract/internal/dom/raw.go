package dom

import "strings"

// rawContents returns the page from pos to the end tag with this name, or all the rest.
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

// mayEscapeTwice says whether a script's text may contain "<!--" followed by "<script". After
// these, an end tag might not end the script.
func mayEscapeTwice(text string) bool {
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
		if len(text) > len(scriptName) && strings.EqualFold(text[1:1+len(scriptName)], scriptName) {
			return true
		}
	}
}

const scriptName = "script"

// scriptContents is rawContents for a script, by the tokenizer's states. After "<!--" the text is
// escaped once, after "<script" twice until "</script"; "-->" ends both. As in x/net/html, the
// single escape also ends at a "<" that begins nothing.
func (b *builder) scriptContents() (text string, found bool) {
	rest := b.s[b.pos:]
	escaped, dashes := 0, 0
	for i := 0; i < len(rest); {
		c := rest[i]
		i++
		switch {
		case c == '-':
			dashes++
			continue
		case c == '>' && dashes >= 2:
			escaped = 0
		case c == '<':
			switch end, name := scriptTag(rest[i:]); {
			case escaped == 0 && strings.HasPrefix(rest[i:], "!--"):
				escaped, dashes = 1, 2
				i += len("!--")
				continue
			case end && name && escaped < 2:
				return rest[:i-1], true
			case end && name:
				escaped = 1
			case escaped == 1 && name:
				escaped = 2
			case escaped == 1 && !end && (i == len(rest) || !isLetter(rest[i])):
				escaped = 0
			}
		}
		dashes = 0
	}
	return rest, false
}

// scriptTag says whether s, the text after a "<", may begin an end tag, and whether the tag is a
// script's.
func scriptTag(s string) (end, script bool) {
	s, end = strings.CutPrefix(s, "/")
	return end, len(s) > len(scriptName) && strings.EqualFold(s[:len(scriptName)], scriptName) &&
		classes[s[len(scriptName)]]&nameEnd != 0
}

// skipTemplate adds a template without its contents, which are not part of the page.
func (b *builder) skipTemplate() {
	b.add()
	d := b.d
	attrs, s := len(d.attrs), skipped{depth: 1}
	for starts := 0; s.depth > 0 && b.odd == notOdd; {
		i := strings.IndexByte(b.s[b.pos:], '<')
		if i < 0 || b.pos+i+2 >= len(b.s) {
			b.giveUp(oddEnd)
			break
		}
		b.pos += i
		b.top().foreign = len(s.foreign) > 0
		switch c := b.s[b.pos+1]; {
		case isLetter(c):
			b.readTag(b.pos+1, true)
			b.skipStart(&s)
			d.attrs = d.attrs[:attrs]
			if starts++; starts+len(b.stack) > maxDepth {
				b.giveUp(oddLarge)
			}
		case c == '/' && isLetter(b.s[b.pos+2]):
			b.readTag(b.pos+2, false)
			b.skipEnd(&s)
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
	b.top().foreign = false
	b.pop()
}

// skipped is the state within a template that is skipped.
type skipped struct {
	depth   int      // open templates
	columns bool     // there may be columns, among which other elements are ignored
	foreign []string // open elements of SVG or MathML
}

// skipStart skips a start tag in a template, with its contents if they are raw.
func (b *builder) skipStart(s *skipped) {
	t := b.tok.tag
	if len(s.foreign) > 0 {
		switch name := b.tok.name(); {
		case invitesHTML(s.foreign[len(s.foreign)-1]) || escapes(name):
			b.giveUp(oddTemplate)
		case !b.tok.selfClosing:
			s.foreign = append(s.foreign, name)
		}
		return
	}
	switch {
	case t == tTemplate:
		s.depth++
	case t == tCol || t == tColgroup:
		s.columns = true
	case t == tSvg || t == tMath:
		if s.columns {
			b.giveUp(oddTemplate)
		} else if !b.tok.selfClosing {
			s.foreign = append(s.foreign, b.tok.name())
		}
	case t == tPlaintext:
		b.giveUp(oddRare)
	case t.is(rawText):
		text, found := b.rawContents(b.tok.name())
		if t == tScript && mayEscapeTwice(text) {
			text, found = b.scriptContents()
		}
		if !found {
			b.giveUp(oddEnd)
		}
		b.pos += len(text)
	}
}

// skipEnd skips an end tag in a template.
func (b *builder) skipEnd(s *skipped) {
	name := b.tok.name()
	for i := len(s.foreign) - 1; i >= 0; i-- {
		if s.foreign[i] == name {
			s.foreign = s.foreign[:i]
			return
		}
	}
	switch {
	case b.tok.tag == tTemplate:
		s.depth--
		s.foreign = s.foreign[:0]
	case len(s.foreign) > 0:
		b.giveUp(oddTemplate)
	}
}
