package contacts

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/wordset"
)

// Style sheets of a page say which parts of it nobody sees. These are letters in the midst of an
// address that only robots read, and whole addresses for them. They also show what the text does
// not have. Those in files of their own are not fetched.

// Bounds of what is looked at of style sheets.
const (
	maxSheets = 512 << 10 // bytes
	maxRules  = 5000
	maxOpen   = 200 // open elements
	maxParts  = 8   // of a selector, and classes of a part
	// rules and ancestors that the elements of a page are held to; behind that no rule holds
	maxTries = 2_000_000
)

// effect is what a rule does to elements, as a set.
type effect uint8

const (
	hides    effect = 1 << iota // nobody sees the text
	shows                       // what another rule hides
	reverses                    // the text is shown from its end
	adds                        // it shows an at sign that is not in the text
	writes                      // it shows an address that is not in the text
)

// rule is a selector with what it does.
type rule struct {
	parts  []compound // of the selector, from the ancestors to the element
	effect effect
	weight int // the selector's specificity: ids, classes and tags in three digits each
}

// compound is a part of a selector that one element fits.
type compound struct {
	tag, id string
	classes []string
	child   bool // of the part before it
}

// element is an open one of the page.
type element struct {
	tag, id, class string
}

// sheets are the style sheets of a page.
type sheets struct {
	rules  []rule
	vague  []doubtful       // hiding rules whose selectors are read in part
	by     map[string][]int // rules by what their last part asks for: #id, .class or a tag
	shown  []string         // attributes whose values are shown
	tries  int              // that are left
	nested int              // bytes that are left for rules in rules
}

// newSheets reads the style elements of a page, wherever they stand, and their texts: nil if they
// hide and add nothing.
func newSheets(body []byte) (s *sheets, texts []string) {
	s = &sheets{by: map[string][]int{}, tries: maxTries, nested: maxSheets}
	left := maxSheets
	for at := 0; left > 0; {
		from := indexFold(body[at:], "<style")
		if from < 0 {
			break
		}
		start := at + from
		end := bytes.IndexByte(body[start:], '>')
		if end < 0 {
			break
		}
		text := body[start+end+1:]
		length := indexFold(text, "</style")
		if length < 0 {
			length = len(text)
		}
		at = start + end + 1 + length
		tag := string(bytes.ToLower(body[start : start+end]))
		before := bytes.TrimRight(body[max(0, start-20):start], " \n\r\t")
		if !strings.Contains(tag, "print") &&
			!bytes.HasSuffix(bytes.ToLower(before), []byte("noscript>")) {
			length = min(length, left)
			sheet := strings.ToLower(string(text[:length]))
			texts = append(texts, sheet)
			s.read(sheet, 0, false)
			left -= length
		}
	}
	if len(s.rules) == 0 && len(s.shown) == 0 && len(s.vague) == 0 {
		return nil, texts
	}
	return s, texts
}

// indexFold is bytes.Index for a text in lower case that begins with < in any case.
func indexFold(s []byte, text string) int {
	for at := 0; ; at++ {
		next := bytes.IndexByte(s[at:], '<')
		if next < 0 {
			return -1
		}
		if at += next; len(s)-at >= len(text) && bytes.EqualFold(s[at:at+len(text)], []byte(text)) {
			return at
		}
	}
}

// read takes the rules of a sheet in lower case. What only some screens show is shown, and what
// only some hide is not hidden.
func (s *sheets) read(text string, depth int, some bool) {
	if !some && !containsAny(text,
		[]string{"none", "hidden", "collapse", "-9", "rtl", "content", "inset(", "font-size:0",
			"font-size: 0"}) {
		return
	}
	text = uncommented(text)
	for len(s.rules) < maxRules {
		prelude, rest, ok := strings.Cut(text, "{")
		if !ok {
			return
		}
		if at := strings.LastIndexByte(prelude, ';'); at >= 0 { // @import "x";
			prelude = prelude[at+1:]
		}
		end := blockEnd(rest)
		block := rest[:end]
		text = rest[min(end+1, len(rest)):]
		switch prelude = strings.TrimSpace(prelude); {
		case !strings.HasPrefix(prelude, "@"):
			own, inside := s.unnest(prelude, block)
			s.add(prelude, own, some)
			if depth < 3 && inside != "" {
				s.read(inside, depth+1, some)
			}
		case depth < 3 && (strings.HasPrefix(prelude, "@layer") ||
			strings.HasPrefix(prelude, "@supports") || isDesktop(prelude)):
			s.read(block, depth+1, some)
		case depth < 3 && strings.HasPrefix(prelude, "@media") &&
			!strings.Contains(prelude, "print"):
			s.read(block, depth+1, true)
		}
	}
}

// markupComment are the signs that sheets were once hidden from browsers with; what is between them
// holds.
var markupComment = strings.NewReplacer("<!--", "", "-->", "")

func uncommented(text string) string {
	text = markupComment.Replace(text)
	if !strings.Contains(text, "/*") {
		return text
	}
	var plain strings.Builder
	for text != "" {
		before, comment, _ := strings.Cut(text, "/*")
		plain.WriteString(before)
		_, text, _ = strings.Cut(comment, "*/")
	}
	return plain.String()
}

// blockEnd is where the block that a text begins with is closed.
func blockEnd(text string) int {
	depth := 1
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// scripted are classes that are hidden until a script has moved them in.
var scripted = wordset.Of("wow elementor-invisible et-waypoint animated reveal aos-init lazyload lazy")

// add takes a rule, once for each of its selectors.
func (s *sheets) add(selectors, block string, some bool) {
	done, content := effectOf(block), effect(0)
	if some {
		done &= shows
	} else {
		content = s.contentOf(block)
	}
	if done == 0 && content == 0 {
		return
	}
	for selector := range strings.SplitSeq(selectors, ",") {
		selector = strings.TrimSpace(selector)
		own := done
		for _, pseudo := range [...]string{"::before", "::after", ":before", ":after"} {
			if bare, ok := strings.CutSuffix(selector, pseudo); ok {
				selector, own = bare, content
				break
			}
		}
		parts := partsOf(selector)
		if own&hides != 0 && len(parts) == 0 {
			s.addVague(selector)
		}
		if own == 0 || len(parts) == 0 || len(s.rules) >= maxRules {
			continue
		}
		last := parts[len(parts)-1]
		if slices.ContainsFunc(last.classes,
			func(class string) bool { return scripted[class] }) {
			continue
		}
		key := last.tag
		if last.id != "" {
			key = "#" + last.id
		} else if len(last.classes) > 0 {
			key = "." + last.classes[0]
		}
		s.by[key] = append(s.by[key], len(s.rules))
		s.rules = append(s.rules, rule{parts, own, weightOf(parts)})
	}
}

// partsOf are the parts of a selector of tags, classes and ids; nil for any other one.
func partsOf(selector string) []compound {
	if strings.ContainsAny(selector, ":[+~*\\&()\"'") {
		return nil
	}
	var parts []compound
	child := false
	for word := range strings.FieldsSeq(strings.ReplaceAll(selector, ">", " > ")) {
		if word == ">" {
			child = true
			continue
		}
		part := compound{child: child}
		child = false
		for at := 0; at < len(word); {
			end := at + 1
			for end < len(word) && word[end] != '.' && word[end] != '#' {
				end++
			}
			switch name := word[at:end]; name[0] {
			case '.':
				part.classes = append(part.classes, name[1:])
			case '#':
				part.id = name[1:]
			default:
				part.tag = name
			}
			at = end
		}
		if parts = append(parts, part); len(parts) > maxParts ||
			len(part.classes) > maxParts || part.tag == "html" || part.tag == "body" {
			return nil
		}
	}
	return parts
}

// effectOf is what declarations in lower case do. What is transparent (opacity:0) is read: pages
// fade in with it.
func effectOf(declarations string) effect {
	if !containsAny(declarations, []string{"display", "visibility", "font-size", "-", "bidi"}) {
		return 0
	}
	var done effect
	moved, far, bidi, rtl, flat, cut := false, false, false, false, false, false
	for declaration := range strings.SplitSeq(declarations, ";") {
		name, value, _ := strings.Cut(declaration, ":")
		value = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "!important"))
		switch strings.TrimSpace(name) {
		case "display":
			done = done&^(hides|shows) | either(value == "none", hides, shows)
		case "clip-path":
			done |= either(strings.HasPrefix(value, "inset(100%") ||
				strings.HasPrefix(value, "inset(50%"), hides, 0)
		case "visibility":
			done |= either(value == "hidden" || value == "collapse", hides, shows)
		case "font-size":
			done |= either(strings.Trim(value, "0.pxem") == "" && strings.HasPrefix(value, "0"),
				hides, 0)
		case "max-height":
			flat = strings.HasPrefix(value, "0") && strings.Trim(value, "0.pxem%") == ""
		case "overflow":
			cut = value == "hidden" || value == "clip"
		case "position":
			moved = value == "absolute" || value == "fixed"
		case "left", "right", "top", "bottom", "inset-inline-start", "margin-left", "margin-top":
			far = far || isFar(value)
		case "text-indent":
			done |= either(isFar(value), hides, 0)
		case "unicode-bidi":
			bidi = strings.Contains(value, "override")
		case "direction":
			rtl = value == "rtl"
		}
	}
	if moved && far || flat && cut {
		done |= hides
	}
	if bidi && rtl {
		done |= reverses
	}
	if done&hides != 0 {
		done &^= shows
	}
	return done
}

func either(first bool, a, b effect) effect {
	if first {
		return a
	}
	return b
}

// isFar says whether a length leads out of the screen: three digits below zero or more.
func isFar(value string) bool {
	digits, negative := strings.CutPrefix(value, "-")
	return negative && len(digits) >= 3 && strings.Trim(digits[:3], "0123456789") == ""
}

// signEscape is an at sign as style sheets may write it.
var signEscape = regexp.MustCompile(`\\0{0,4}40 ?`)

// halfAddress is an at sign with one side of it: content:"@firma.de" behind a text that says the
// other.
var halfAddress = regexp.MustCompile(`["'][^"']*(?:@[\pL\pN-]+\.[\pL]{2,}|[\pL\pN._-]{2,}@)["']`)

// contentOf is what the content that a pseudo-element shows adds. Attributes that it shows are
// noted.
func (s *sheets) contentOf(block string) effect {
	var done effect
	for declaration := range strings.SplitSeq(block, ";") {
		name, value, _ := strings.Cut(declaration, ":")
		if strings.TrimSpace(name) != "content" {
			continue
		}
		value = signEscape.ReplaceAllString(value, "@")
		switch {
		case len(findAddresses(value, nil)) > 0, halfAddress.MatchString(value):
			done |= writes
		case strings.ContainsAny(value, "@＠"):
			done |= adds
		}
		for rest := value; ; {
			_, after, ok := strings.Cut(rest, "attr(")
			if !ok || len(s.shown) >= 20 {
				break
			}
			attribute, tail, _ := strings.Cut(after, ")")
			s.shown = append(s.shown, strings.TrimSpace(attribute))
			rest = tail
		}
	}
	return done
}

// effect is what the sheets do to an element that stands in the open ones.
func (s *sheets) effect(t element, open []element) effect {
	if s == nil {
		return 0
	}
	var done effect
	// of the rules that hide and show, the weightiest one holds, and of its equals the last one
	last := -1
	try := func(key string) {
		for _, i := range s.by[key] {
			if s.tries -= costOf(t); s.tries < 0 {
				return
			}
			if r := s.rules[i]; s.fits(r, t, open) {
				done |= r.effect &^ (hides | shows)
				if r.effect&(hides|shows) != 0 {
					if last < 0 || r.weight > s.rules[last].weight ||
						r.weight == s.rules[last].weight && i > last {
						last = i
					}
				}
			}
		}
	}
	try(t.tag)
	if t.id != "" {
		try("#" + t.id)
	}
	for class := range strings.FieldsSeq(t.class) {
		try("." + class)
	}
	if last >= 0 {
		done |= s.rules[last].effect & (hides | shows)
	}
	return done
}

func (s *sheets) fits(r rule, t element, open []element) bool {
	last := len(r.parts) - 1
	if !r.parts[last].fits(t) {
		return false
	}
	child := r.parts[last].child
	at := len(open)
	for i := last - 1; i >= 0; i-- {
		for at--; at >= 0 && !r.parts[i].fits(open[at]); at-- {
			if s.tries -= costOf(open[at]); child || s.tries < 0 {
				return false
			}
		}
		if at < 0 {
			return false
		}
		child = r.parts[i].child
	}
	return true
}

func (c compound) fits(t element) bool {
	if c.tag != "" && c.tag != t.tag || c.id != "" && c.id != t.id {
		return false
	}
	for _, class := range c.classes {
		if !hasClass(t.class, class) {
			return false
		}
	}
	return true
}

// hasClass says whether a class is one of several with a space between.
func hasClass(classes, class string) bool {
	for classes != "" {
		first, rest, _ := strings.Cut(classes, " ")
		if first == class {
			return true
		}
		classes = rest
	}
	return false
}

// costOf is what it takes to hold an element to a rule, in tries.
func costOf(t element) int { return 1 + len(t.class)/64 }
