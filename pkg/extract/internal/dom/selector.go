package dom

import (
	"slices"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/pattern"
)

// Selector is a compiled list of CSS selectors. It supports Selectors Level 3 and, of Level 4, :is,
// :where and :has of descendants. As in jQuery, it supports :contains, :containsOwn, :matches,
// :matchesOwn, :haschild, [name!=value] and [name#=expression]. It is safe for concurrent use.
type Selector struct {
	list     selectorList
	patterns int      // size of the regular expressions
	tags     tagSet   // possible tags of matches
	reads    tagSet   // tags of elements whose attributes are examined, including matches
	forward  bool     // a start tag and what precedes it decide whether the element matches
	roots    bool     // attributes of html or body may be decisive
	around   []string // names of decisive attributes of elements around a match; nil if any may be
	counts   bool     // the number of previous siblings may be decisive
	siblings bool     // previous siblings may be decisive
	class    string   // a class that every match has, "" if none is known
	// every match's start tag contains one of them, unless it is written with &#; empty if unknown
	needles []string
	start   string // every match's tag begins with this, in any case; or ""
	rare    int    // where start has the letter that pages have least
}

// selectorList matches an element that any of its selectors matches.
type selectorList []complexSelector

// complexSelector has the compounds of a selector from right to left. combinators[i] is between the
// compounds i+1 and i.
type complexSelector struct {
	compounds   []compound
	combinators []byte
}

// compound is a condition on a single element.
type compound struct {
	tag     tag
	name    string // "" for any
	id      string
	hasID   bool
	classes []string
	attrs   []attrTest
	pseudos []pseudo
}

// attrTest is one [name op value]; op is the operator's first byte, 0 for mere presence.
type attrTest struct {
	name, value string
	op          byte
	fold        bool
	re          *pattern.Pattern
}

// pseudo is a pseudo-class. Its kind determines which other members count.
type pseudo struct {
	kind   pseudoKind
	list   selectorList // of not, is, has, hasChild
	a, b   int          // of nth: an+b
	ofType bool
	last   bool
	own    bool // of contains, matches: only the element's own text
	text   string
	re     *pattern.Pattern
}

type pseudoKind uint8

const (
	pseudoNever pseudoKind = iota
	pseudoNot
	pseudoIs
	pseudoHas
	pseudoHasChild
	pseudoNth
	pseudoOnly
	pseudoContains
	pseudoMatches
	pseudoEmpty
	pseudoRoot
	pseudoLink
	pseudoLang
	pseudoInput
	pseudoEnabled
	pseudoDisabled
	pseudoChecked
)

// CompileSelector compiles a selector or a list of them. Errors name the position. Its regular
// expressions are added to patterns, even if it is refused.
func CompileSelector(css string, patterns *pattern.Total) (*Selector, error) {
	p, before := cssParser{s: css, patterns: patterns}, patterns.Size()
	list, err := p.list()
	if err == nil && p.i < len(p.s) {
		err = p.unexpected("a selector")
	}
	if err != nil {
		return nil, err
	}
	s := &Selector{list: list, patterns: patterns.Size() - before, forward: list.isForward(),
		reads: list.reads(), roots: list.readsRoots(), around: list.attrsAround(),
		siblings: list.readsSiblings(),
		counts:   list.readsCounts()}
	for i := range list {
		s.tags.addAll(list[i].compounds[0].tags())
	}
	s.reads.addAll(s.tags)
	if classes := list[0].compounds[0].classes; len(list) == 1 && len(classes) > 0 {
		s.class = classes[0]
	}
	for i := range list {
		needle := list[i].compounds[0].needle()
		if needle == "" {
			s.needles = nil
			break
		}
		s.needles = append(s.needles, needle)
	}
	if s.needles == nil {
		s.start, s.rare = list.startOf()
	}
	return s, nil
}

// tags returns the tags of the elements that the compound may match.
func (c *compound) tags() (s tagSet) {
	if c.name == "" {
		return allTags
	}
	s.add(c.tag)
	return s
}

// readsRoots says whether attributes of html or body may be decisive.
func (l selectorList) readsRoots() bool {
	for i := range l {
		all := l[i].compounds
		for j := range all {
			reads := selectorList{{compounds: all[j : j+1]}}.reads()
			if all[j].looksAround() {
				return true
			}
			// What is to the left must be able to match elements above or before them: nothing,
			// html, or html and head.
			left := all[j+1:]
			if len(left) > 2 || len(left) > 0 && !left[len(left)-1].isTag(tHTML, tHead) ||
				len(left) > 1 && !left[0].isTag(tHead) {
				continue
			}
			if reads.has(tHTML) || reads.has(tBody) {
				return true
			}
		}
	}
	return false
}

// attrsAround returns the names of decisive attributes of elements around a match, or nil if any
// attribute may be decisive.
func (l selectorList) attrsAround() []string {
	names := []string{}
	for i := range l {
		for j := range l[i].compounds {
			c := &l[i].compounds[j]
			if j > 0 {
				names = c.appendAttrs(names)
			}
			for k := range c.pseudos {
				inner := c.pseudos[k].attrsAround(j > 0)
				if inner == nil {
					return nil
				}
				names = append(names, inner...)
			}
		}
	}
	return names
}

// appendAttrs appends the names of the attributes that the compound itself examines.
func (c *compound) appendAttrs(names []string) []string {
	if len(c.classes) > 0 {
		names = append(names, "class")
	}
	if c.hasID {
		names = append(names, "id")
	}
	for i := range c.attrs {
		names = append(names, c.attrs[i].name)
	}
	return names
}

// attrsAround is attrsAround of the pseudo-class. around says that its element is around a match,
// not the match itself.
func (p *pseudo) attrsAround(around bool) []string {
	switch p.kind {
	case pseudoLang:
		return []string{"lang"}
	case pseudoLink, pseudoInput, pseudoEnabled, pseudoDisabled, pseudoChecked:
		return nil
	}
	names := p.list.attrsAround()
	if names == nil || !around {
		return names
	}
	for i := range p.list {
		names = p.list[i].compounds[0].appendAttrs(names)
	}
	return names
}

// looksAround says whether a pseudo-class of the compound examines ancestors or siblings at any
// distance.
func (c *compound) looksAround() bool {
	return slices.ContainsFunc(c.pseudos, func(p pseudo) bool {
		return p.kind == pseudoLang || slices.ContainsFunc(p.list, func(s complexSelector) bool {
			return len(s.compounds) > 1 || s.compounds[0].looksAround()
		})
	})
}

// isTag says whether the compound may match an element with one of the tags.
func (c *compound) isTag(any ...tag) bool {
	tags := c.tags()
	return slices.ContainsFunc(any, func(t tag) bool { return tags.has(t) })
}

// readsSiblings says whether previous siblings of an element may be decisive.
func (l selectorList) readsSiblings() bool {
	for i := range l {
		if slices.ContainsFunc(l[i].combinators,
			func(c byte) bool { return c == '+' || c == '~' }) {
			return true
		}
		for j := range l[i].compounds {
			if slices.ContainsFunc(l[i].compounds[j].pseudos,
				func(p pseudo) bool { return p.list.readsSiblings() }) {
				return true
			}
		}
	}
	return false
}

// readsCounts says whether the number of previous siblings may be decisive.
func (l selectorList) readsCounts() bool {
	for i := range l {
		for j := range l[i].compounds {
			if slices.ContainsFunc(l[i].compounds[j].pseudos, func(p pseudo) bool {
				return p.kind == pseudoNth || p.list.readsCounts()
			}) {
				return true
			}
		}
	}
	return false
}

// minNeedle is the shortest needle worth searching for.
const minNeedle = 3

// needle returns the longest known text that every match's start tag has in its attributes, or "".
func (c *compound) needle() (needle string) {
	texts := append(slices.Clone(c.classes), c.id)
	for i := range c.attrs {
		if t := &c.attrs[i]; !t.fold && t.op != '!' && t.op != '#' {
			texts = append(texts, t.value)
		}
	}
	for _, text := range texts {
		for _, part := range strings.FieldsFunc(text, mayBeNamed) {
			// &fjlig; stands for fj
			if len(part) > len(needle) && !strings.Contains(part, "fj") {
				needle = part
			}
		}
	}
	if len(needle) < minNeedle {
		return ""
	}
	return needle
}

// onlyAsTags are the beginnings of elements that only a tag with their name creates. Each has the
// place of the letter that pages have least.
var onlyAsTags = map[string]int{"<base": 1, "<link": 4, "<meta": 1}

// startOf returns how every match's tag begins, in any case, and where this has its rarest letter.
// It returns "" if unknown.
func (l selectorList) startOf() (string, int) {
	if len(l) != 1 {
		return "", 0
	}
	start := "<" + l[0].compounds[0].name
	rare, known := onlyAsTags[start]
	if !known {
		return "", 0
	}
	return start, rare
}

// mayBeNamed says whether a page may write the character as a named reference.
func mayBeNamed(r rune) bool { return r >= utf8.RuneSelf || r != '-' && !isAlphanumeric(byte(r)) }

// reads returns the tags of the elements whose attributes decide whether the selectors match.
func (l selectorList) reads() (s tagSet) {
	for i := range l {
		for j := range l[i].compounds {
			c := &l[i].compounds[j]
			if c.hasID || len(c.classes) > 0 || len(c.attrs) > 0 {
				s.addAll(c.tags())
			}
			for k := range c.pseudos {
				switch p := &c.pseudos[k]; p.kind {
				case pseudoNot, pseudoIs, pseudoHas, pseudoHasChild:
					s.addAll(p.list.reads())
				case pseudoLang, pseudoLink, pseudoInput, pseudoEnabled, pseudoDisabled,
					pseudoChecked:
					return allTags // they also examine elements around
				}
			}
		}
	}
	return s
}

func (l selectorList) isForward() bool {
	for i := range l {
		for j := range l[i].compounds {
			for k := range l[i].compounds[j].pseudos {
				if !l[i].compounds[j].pseudos[k].isForward() {
					return false
				}
			}
		}
	}
	return true
}

// isForward excludes pseudo-classes that depend on contents or on later siblings. It also excludes
// of-type, whose counts need the whole document.
func (p *pseudo) isForward() bool {
	switch p.kind {
	case pseudoNot, pseudoIs:
		return p.list.isForward()
	case pseudoNth:
		return !p.last && !p.ofType
	case pseudoHas, pseudoHasChild, pseudoOnly, pseudoContains, pseudoMatches, pseudoEmpty:
		return false
	}
	return true
}

// Patterns returns the size of the selector's regular expressions, as pattern.Total counts it.
func (s *Selector) Patterns() int { return s.patterns }

// First returns the first match among e and its descendants, or None.
func (s *Selector) First(d *Document, e Elem) Elem {
	if e == Whole {
		for i := range d.found {
			if d.wanted[i] == s {
				return d.found[i]
			}
		}
	}
	clear(d.searched)
	for i, end := e, d.elems[e].end; i < end && d.goesOn(); i++ {
		if s.list.match(d, i) {
			return i
		}
	}
	return None
}

// All returns the matches in the document, in its order.
func (s *Selector) All(d *Document) []Elem {
	clear(d.searched)
	var all []Elem
	for i := Root; i < Elem(len(d.elems)) && d.goesOn(); i++ {
		if s.list.match(d, i) {
			all = append(all, i)
		}
	}
	return all
}
