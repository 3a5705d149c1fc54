package contacts

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/wordset"
)

// Letters within an address may be hidden by unknown rules: those of style sheet files, those with
// partly understood selectors, and those beyond a bound. Such an address is in doubt. It counts as
// protected, because a wrong address is worse than none.
//
// Styles that leave a text to listeners alone (clip, a box of a pixel) put letters in doubt, too. A
// whole address in such an element is meant to be heard, and counts. Some styles hide blocks only,
// or until a script shows them (scale(0)), or by a variable. They do not split words elsewhere.

// Bounds of what may be in doubt.
const (
	maxVague  = 100    // selectors
	maxDoubts = 20_000 // element boundaries within words
)

// doubtful is what a selector certainly requires of an element. It may require more.
type doubtful struct {
	compound
	attribute string // an attribute that the element must have; "": none
}

// doubt is the boundary of an element whose letters may be hidden.
type doubt struct {
	at    int    // offset in the text
	class string // classes that sheets in files may name
	sure  bool   // in doubt even without such sheets
}

// inline is an open element that is not a block.
type inline struct {
	tag   string
	doubt doubt
}

// addVague keeps what is understood of the last part of a lower-case selector.
func (s *sheets) addVague(selector string) {
	if selector == "" || strings.Contains(selector, "::") {
		return
	}
	if len(s.vague) >= maxVague {
		s.cut = true
		return
	}
	at := strings.LastIndexAny(selector, " >+~")
	last := selector[at+1:]
	var v doubtful
	// otherwise the part is cut off inside brackets
	if strings.ContainsAny(last, "([") || !strings.ContainsAny(last, `)]\"'`) {
		plain := last
		if end := strings.IndexAny(last, `:[*\`); end >= 0 {
			plain = last[:end]
		}
		if parts := partsOf(plain); len(parts) == 1 {
			v.compound = parts[0]
		} else if end := strings.IndexAny(plain+".", ".#"); plain[:end] == "html" ||
			plain[:end] == "body" {
			return // it applies to the whole page
		}
		if _, attribute, ok := strings.Cut(last, "["); ok && !strings.Contains(last, "(") {
			v.attribute = attribute[:len(attribute)-len(strings.TrimLeft(attribute,
				"abcdefghijklmnopqrstuvwxyz0123456789_-"))]
		}
	}
	s.vague = append(s.vague, v)
}

// unnest splits a block into its own declarations and its nested rules. The nested rules get the
// selectors of the block.
func (s *sheets) unnest(selectors, block string) (own, inside string) {
	if !strings.Contains(block, "{") {
		return block, ""
	}
	var declarations, rules strings.Builder
	for {
		inner, rest, ok := strings.Cut(block, "{")
		at := strings.LastIndexByte(inner, ';') + 1
		if !ok {
			declarations.WriteString(inner)
			return declarations.String(), rules.String()
		}
		declarations.WriteString(inner[:at])
		inner = strings.TrimSpace(inner[at:])
		end := blockEnd(rest)
		for outer := range strings.SplitSeq(selectors, ",") {
			if s.nested -= len(outer) + len(inner) + end; s.nested < 0 {
				s.cut = true
				break
			}
			switch {
			case strings.HasPrefix(inner, "@"):
				rules.WriteString(inner + "{" + outer + "{" + rest[:end] + "}}")
			case strings.Contains(inner, "&"):
				rules.WriteString(strings.Replace(inner, "&", outer, 1) + "{" + rest[:end] + "}")
			default:
				rules.WriteString(outer + " " + inner + "{" + rest[:end] + "}")
			}
		}
		block = rest[min(end+1, len(rest)):]
	}
}

// weightOf returns the specificity of a selector.
func weightOf(parts []compound) int {
	weight := 0
	for _, part := range parts {
		weight += 1000 * len(part.classes)
		if part.id != "" {
			weight += 1_000_000
		}
		if part.tag != "" {
			weight++
		}
	}
	return weight
}

// mayHide says whether a rule that is not known, or not wholly, may match the element.
func (s *sheets) mayHide(t element, attrs map[string]string) bool {
	if s == nil {
		return false
	}
	if s.cut || s.tries < 0 || len(attrs["class"]) > maxClassBytes ||
		strings.Count(t.class, " ")+1 >= maxClasses {
		return true
	}
	for _, v := range s.vague {
		if s.tries -= costOf(t); s.tries < 0 {
			return true
		}
		if _, given := attrs[v.attribute]; (given || v.attribute == "") && v.fits(t) {
			return true
		}
	}
	return false
}

// hiddenClasses conventionally mark text for screen readers only.
var hiddenClasses = wordset.Of("sr-only visually-hidden visuallyhidden screen-reader-text " +
	"screenreader-only")

// doubtOf records the start of an element whose letters may be hidden.
func (p *parser) doubtOf(t *html.Token, attrs map[string]string, done effect) {
	if t.DataAtom == atom.Link && strings.Contains(strings.ToLower(attrs["rel"]), "stylesheet") &&
		!strings.Contains(attrs["href"], "//fonts.") {
		p.filed = true
	}
	if blocks[t.DataAtom] { // addresses do not continue across blocks
		p.inline = p.inline[:0]
		return
	}
	if voids[t.DataAtom] || skips[t.DataAtom] || t.Type != html.StartTagToken {
		return
	}
	e := elementOf(t, attrs)
	sure := p.sheets.mayHide(e, attrs) || done&veils != 0
	for class := range strings.FieldsSeq(e.class) {
		sure = sure || hiddenClasses[class]
	}
	in := inline{tag: t.Data, doubt: doubt{class: e.class, sure: sure}}
	p.addDoubt(in.doubt)
	if len(p.inline) < maxOpen { // the start alone puts an address in doubt
		p.inline = append(p.inline, in)
	}
}

// endDoubt records the end of an element whose letters may be hidden.
func (p *parser) endDoubt(t *html.Token) {
	for i := len(p.inline) - 1; i >= 0; i-- {
		if p.inline[i].tag == t.Data {
			p.addDoubt(p.inline[i].doubt)
			p.inline = p.inline[:i]
			return
		}
	}
}

// addDoubt keeps a boundary in doubt. It drops those before it that turned out to be at the edge of
// a word.
func (p *parser) addDoubt(d doubt) {
	if d.at = p.text.Len(); !d.sure && d.class == "" {
		return
	}
	text, last := p.text.String(), len(p.doubts)-1
	for ; last >= 0 && p.doubts[last].at < len(text) && !isWithin(text, p.doubts[last].at); last-- {
	}
	p.doubts = p.doubts[:last+1]
	if len(p.doubts) == maxDoubts {
		p.crowded = true
		return
	}
	p.doubts = append(p.doubts, d)
}

// isDoubtful says whether a boundary in doubt lies within the local part or the domain of an
// address in the text.
func (d *document) isDoubtful(h hit, text string) bool {
	if d.crowded && h.to > d.doubts[len(d.doubts)-1].at {
		return true
	}
	first, _ := slices.BinarySearchFunc(d.doubts, h.from+1,
		func(a doubt, at int) int { return a.at - at })
	for _, b := range d.doubts[first:] {
		if b.at >= h.to {
			break
		}
		if isWithin(text, b.at) && (b.sure || d.filed && !d.isTold(b.class)) {
			return true
		}
	}
	return false
}

// isWithin says whether a local part or a domain may go on across a place in the text.
func isWithin(text string, at int) bool {
	return at > 0 && isPart(text[at-1]) && isPart(text[at])
}

// isPart says whether a byte may belong to a local part or a domain.
func isPart(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' ||
		c == '-' || c == '_' || c == '+' || c >= 0x80
}

// isTold says whether one of the page's own style sheets names one of the classes.
func (d *document) isTold(classes string) bool {
	if d.told == nil {
		d.told = map[string]bool{}
		for _, sheet := range d.texts {
			for part := range strings.SplitSeq(sheet, ".") {
				name, _, _ := strings.Cut(part, "{")
				if end := strings.IndexAny(name, " \n\t\r,:>+~[#)"); end >= 0 {
					name = name[:end]
				}
				d.told[name] = true
			}
		}
	}
	return slices.ContainsFunc(strings.Fields(classes),
		func(class string) bool { return d.told[class] })
}
