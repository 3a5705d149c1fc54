package contacts

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/wordset"
)

// A page's style sheets tell which parts of it are hidden: decoy letters within an address, or
// whole decoy addresses for robots. They also add text that is not in the page. Style sheet files
// are not fetched.

// Bounds of what is examined of style sheets. What lies beyond them may hide letters anywhere.
const (
	maxSheets = 512 << 10 // bytes
	maxRules  = 5000
	maxDepth  = 3         // of rules within rules
	maxOpen   = 200       // open elements
	maxParts  = 8         // per selector, and classes per part
	maxTries  = 2_000_000 // tries of rules and ancestors per page
)

// effect is a set of what a rule does to elements.
type effect uint8

const (
	hides    effect = 1 << iota // the text is not visible
	shows                       // undoes hides of another rule
	reverses                    // displays the text reversed
	adds                        // adds an at sign that is not in the text
	writes                      // adds an address that is not in the text
	veils                       // hides the text from eyes alone, or may hide it
)

// rule is a selector and its effect.
type rule struct {
	parts  []compound // of the selector, from the outermost to the element
	effect effect
	weight int // specificity: ids, classes and tags in three digits each
}

// compound is the part of a selector that applies to one element.
type compound struct {
	tag, id string
	classes []string
	child   bool // direct child of the previous part
}

// element is an open element of the page.
type element struct {
	tag, id, class string
}

// sheets are the style sheets of a page.
type sheets struct {
	rules  []rule
	vague  []doubtful       // hiding rules with partly understood selectors
	by     map[string][]int // rules by the key of their last part: #id, .class or a tag
	shown  []string         // attributes whose values are displayed
	tries  int              // tries left
	nested int              // bytes left for nested rules
	cut    bool             // a bound left out rules, or elements that they ask for
}

// newSheets reads a page's style elements, wherever they are, and returns their texts. s is nil if
// they hide and add nothing.
func newSheets(body []byte) (s *sheets, texts []string) {
	s = &sheets{by: map[string][]int{}, tries: maxTries, nested: maxSheets}
	left := maxSheets
	for at := 0; !s.cut; {
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
			s.cut = length > left
			length = min(length, left)
			sheet := strings.ToLower(string(text[:length]))
			texts = append(texts, sheet)
			s.read(sheet, 0, false)
			left -= length
		}
	}
	if len(s.rules) == 0 && len(s.shown) == 0 && len(s.vague) == 0 && !s.cut {
		return nil, texts
	}
	return s, texts
}

// indexFold finds a lower-case text that begins with <, ignoring case.
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

// read takes the rules of a lower-case sheet. some says that they apply only on some screens: such
// rules may show text, but do not hide it.
func (s *sheets) read(text string, depth int, some bool) {
	if !some && !containsAny(text,
		[]string{"none", "hidden", "collapse", "-9", "rtl", "content", "inset(", "font-size:0",
			"font-size: 0", "rect(", "circle(", "scale", "var("}) {
		return
	}
	if depth > maxDepth {
		s.cut = s.cut || !some
		return
	}
	text = uncommented(text)
	for {
		prelude, rest, ok := strings.Cut(text, "{")
		if !ok {
			return
		}
		if len(s.rules) >= maxRules {
			s.cut = true
			return
		}
		if at := strings.LastIndexByte(prelude, ';'); at >= 0 { // skip @import "x"; and the like
			prelude = prelude[at+1:]
		}
		end := blockEnd(rest)
		block := rest[:end]
		text = rest[min(end+1, len(rest)):]
		switch prelude = strings.TrimSpace(prelude); {
		case !strings.HasPrefix(prelude, "@"):
			own, inside := s.unnest(prelude, block)
			s.add(prelude, own, some)
			s.read(inside, depth+1, some)
		case strings.HasPrefix(prelude, "@layer") || strings.HasPrefix(prelude, "@supports") ||
			isDesktop(prelude):
			s.read(block, depth+1, some)
		case strings.HasPrefix(prelude, "@media") && !strings.Contains(prelude, "print"):
			s.read(block, depth+1, true)
		}
	}
}

// markupComment removes the signs that once hid sheets from old browsers; the rules between them
// apply.
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

// blockEnd returns where the block whose contents begin the text is closed.
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

// scripted are classes that are hidden only until a script animates them.
var scripted = wordset.Of("wow elementor-invisible et-waypoint animated reveal aos-init lazyload lazy")

// add adds a rule for each of its selectors.
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
		if own&(hides|veils) != 0 && len(parts) == 0 {
			s.addVague(selector)
		}
		if own == 0 || len(parts) == 0 {
			continue
		}
		if len(s.rules) >= maxRules {
			s.cut = true
			return
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

// partsOf returns the parts of a selector of tags, classes and ids; nil for any other selector.
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

// signEscape matches an at sign escaped for style sheets.
var signEscape = regexp.MustCompile(`\\0{0,4}40 ?`)

// halfAddress matches an at sign with one half of an address, such as content:"@firma.de". The text
// before it has the other half.
var halfAddress = regexp.MustCompile(`["'][^"']*(?:@[\pL\pN-]+\.[\pL]{2,}|[\pL\pN._-]{2,}@)["']`)

// contentOf returns the effect of a pseudo-element's content, and records the attributes that it
// displays.
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

// effect returns what the sheets do to an element within the open ones.
func (s *sheets) effect(t element, open []element) effect {
	if s == nil {
		return 0
	}
	var done effect
	// index of the winning hide or show rule: the highest weight, then the last
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

// hasClass says whether class is among space-separated classes.
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

// costOf returns the cost of checking an element against a rule, in tries.
func costOf(t element) int { return 1 + len(t.class)/64 }
