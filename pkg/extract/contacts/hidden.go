package contacts

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// elementOf returns the parts of a tag that selectors examine.
func elementOf(t *html.Token, attrs map[string]string) element {
	return element{t.Data, strings.ToLower(attrs["id"]), classesOf(attrs["class"])}
}

// Bounds of an element's classes: each is checked against the rules that name it.
const (
	maxClasses    = 64
	maxClassBytes = 2048
)

// classesOf returns an attribute's distinct classes in lower case, separated by spaces.
func classesOf(attribute string) string {
	if attribute == "" {
		return ""
	}
	attribute = strings.ToValidUTF8(attribute[:min(len(attribute), maxClassBytes)], "")
	classes := make([]string, 0, 8)
	for class := range strings.FieldsSeq(strings.ToLower(attribute)) {
		if !slices.Contains(classes, class) && len(classes) < maxClasses {
			classes = append(classes, class)
		}
	}
	return strings.Join(classes, " ")
}

// style applies the style sheets to an element, and records addresses that they show.
func (p *parser) style(t *html.Token, attrs map[string]string) effect {
	done := effectOf(strings.ToLower(attrs["style"]))
	if t.DataAtom == atom.Bdo && strings.EqualFold(attrs["dir"], "rtl") {
		done |= reverses
	}
	if p.sheets != nil {
		p.addShown(attrs)
		done |= p.sheets.effect(elementOf(t, attrs), p.opened)
	}
	p.protected = p.protected || done&writes != 0
	if done&reverses != 0 {
		done |= hides
	}
	return done
}

// addShown records an address in attributes that a style sheet shows.
func (p *parser) addShown(attrs map[string]string) {
	for _, name := range p.sheets.shown {
		if value := attrs[name]; strings.ContainsAny(value, "@＠") || value != "" &&
			slices.ContainsFunc(p.own, func(own string) bool {
				return strings.Contains(strings.ToLower(value), own) ||
					strings.Contains(strings.ToLower(value), backwards(own))
			}) {
			p.protected = true
		}
	}
}

// turnBack records an address in text that is displayed reversed. Other text may be reversed, too,
// such as the stars of a rating.
func (p *parser) turnBack() {
	if p.turned != nil && len(findAddresses(backwards(p.turned.String()), p.own)) > 0 {
		p.protected = true
	}
	p.turned = nil
}

func backwards(s string) string {
	runes := []rune(s)
	slices.Reverse(runes)
	return string(runes)
}

// ends are elements that the next element of the same name closes.
var ends = map[atom.Atom]bool{atom.P: true, atom.Li: true, atom.Tr: true, atom.Td: true,
	atom.Th: true, atom.Dt: true, atom.Dd: true, atom.Option: true}

// enter opens an element for matching selectors.
func (p *parser) enter(t *html.Token, attrs map[string]string) {
	if p.sheets == nil || voids[t.DataAtom] || skips[t.DataAtom] ||
		t.Type != html.StartTagToken {
		return
	}
	if len(p.opened) >= maxOpen {
		p.sheets.cut = true // what selectors ask for may be this element
		return
	}
	if last := len(p.opened) - 1; last >= 0 && ends[t.DataAtom] && p.opened[last].tag == t.Data {
		p.opened = p.opened[:last]
	}
	p.opened = append(p.opened, elementOf(t, attrs))
}

// leave closes an element, and those within it whose end tags are missing.
func (p *parser) leave(t *html.Token) {
	for i := len(p.opened) - 1; i >= 0; i-- {
		if p.opened[i].tag == t.Data {
			p.opened = p.opened[:i]
			return
		}
	}
}

// startBare begins a hidden block. Scripts may show its contents, such as the text of a tab, so
// they count unless they are nothing but an address.
func (p *parser) startBare(t *html.Token, concealed bool) {
	switch {
	case p.bareTag == "" && concealed && !voids[t.DataAtom]:
		p.bareTag, p.bareIn, p.bareFrom, p.bareLinks = t.Data, 1, p.text.Len(), len(p.linked)
	case p.bareTag == t.Data:
		p.bareIn++
	}
}

func (p *parser) endBare(t *html.Token) {
	if p.bareTag != t.Data {
		return
	}
	if p.bareIn--; p.bareIn > 0 {
		return
	}
	p.bareTag = ""
	if to := p.text.Len(); to-p.bareFrom < maxTrap &&
		len(strings.Fields(p.text.String()[p.bareFrom:to])) <= 1 && len(p.bare) < maxHits {
		p.bare = append(p.bare, span{p.bareFrom, to})
		p.linked = p.linked[:p.bareLinks]
	}
}

// maxTrap bounds a hidden block that is a trap, in bytes.
const maxTrap = 300

// isTrap says whether an address stands alone in a hidden block.
func (d *document) isTrap(h hit) bool {
	return slices.ContainsFunc(d.bare,
		func(s span) bool { return s.from <= h.from && h.from < h.to && h.to <= s.to })
}
