package aiconf

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/schema"
)

// ofNamed returns a field's value from an element named after it.
func (r *reader) ofNamed(f *field) []byte {
	best, value := r.named(f)
	if best.node != nil || f.kind != currency && !f.means("originalPrice") {
		return value
	}
	price := r.words.field(schema.Property{Name: "price"}, 0) // a price may include both
	if best, _ = r.named(&price); best.node == nil || best.attr != "" {
		return nil
	}
	if f.kind == currency {
		return r.coerce(f, textOnly(moneyText(best.node, f.most()+1), false))
	}
	return r.struckIn(f, best.node)
}

// struckIn returns the crossed-out price inside an element with a price.
func (r *reader) struckIn(f *field, n *html.Node) []byte {
	left := maxShown
	for c := range n.Descendants() {
		if left--; left == 0 {
			break
		}
		if text := shownText(c, f.most()+1); c.Type == html.ElementNode && isCrossed(c) &&
			f.looks(text) {
			return r.coerce(f, textOnly(text, false))
		}
	}
	return nil
}

// moneyText returns an element's text about the current price, without crossed-out prices. If it
// has other numbers, text in brackets, sizes and unit quantities are removed.
func moneyText(n *html.Node, most int) string {
	if aloud := textAloud(n, most); isSum(aloud) {
		return aloud
	}
	var but func(*html.Node) bool
	if !isStruck(n) {
		but = isCrossed
	}
	text := textBut(n, most, but)
	if p, ok := amount.Parse(text); !ok || p.Sole {
		return text
	}
	return strings.TrimSpace(asides.ReplaceAllString(text, ""))
}

// named returns the element from which a field is taken, and the value; its node is nil if none.
func (r *reader) named(f *field) (mention, []byte) {
	m := r.mentioned()
	if m.listed == nil {
		m.listed = map[kind]bool{}
		for i := range r.fields {
			m.note(r.fit(&r.fields[i]))
		}
	}
	fit := slices.DeleteFunc(slices.Clone(r.fit(f)),
		func(at fitting) bool { return m.isListed(at.node) })
	if f.kind == money {
		fit = f.sums(fit)
	}
	best := m.nearest(fit)
	return best.mention, best.value
}

// fitting is an element with its value for a field.
type fitting struct {
	mention
	value []byte
}

// fit returns the elements that seem to hold the field, in page order.
func (r *reader) fit(f *field) []fitting {
	m := r.mentioned()
	if fit, known := m.fit[f]; known {
		return fit
	}
	var fit []fitting
	seen := map[mention]bool{}
	for _, name := range f.names {
		for _, at := range m.by[name] {
			if seen[at] || len(seen) >= maxLike {
				continue
			}
			seen[at] = true
			if value := r.held(f, at); value != nil {
				fit = append(fit, fitting{at, value})
			}
		}
	}
	// values for scripts may be outdated
	if slices.ContainsFunc(fit, func(at fitting) bool { return at.attr == "" }) {
		fit = slices.DeleteFunc(fit, func(at fitting) bool { return at.attr != "" })
	}
	slices.SortStableFunc(fit, func(a, b fitting) int { return m.order[a.node] - m.order[b.node] })
	m.fit[f] = innermost(fit)
	return m.fit[f]
}

// held returns an element's content as the field's value; nil if it does not look like one.
func (r *reader) held(f *field, at mention) []byte {
	if at.attr != "" {
		text := strings.TrimSpace(attrOf(at.node, at.attr))
		if f.kind == money && strings.Trim(text, "0123456789") == "" {
			text = r.asShown(text)
		}
		if !f.looks(text) {
			return nil
		}
		return r.coerce(f, textOnly(text, true))
	}
	switch at.node.DataAtom {
	case atom.Button, atom.Input, atom.Form, atom.Body, atom.Html, atom.Label:
		return nil
	}
	for _, name := range [...]string{"content", "datetime"} {
		if text := strings.TrimSpace(attrOf(at.node, name)); text != "" && f.looks(text) {
			return r.coerce(f, textOnly(text, true))
		}
	}
	if f.kind == link {
		return r.coerce(f, textOnly(linkIn(at.node, f.means("image")), true))
	}
	text := shownText(at.node, f.most()+1)
	if f.kind == money {
		text = moneyText(at.node, f.most()+1)
	}
	if f.means("author") {
		text = namedIn(at.node)
	}
	text = f.unlabelled(text)
	if !f.looks(text) {
		return nil
	}
	return r.coerce(f, textOnly(text, false))
}

// textAloud returns an element's text for screen readers beside digits that are hidden from them:
// $15.00 beside $ 15 00. It is "" without such text, or with several.
func textAloud(n *html.Node, most int) (text string) {
	isHidden := false
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type != html.ElementNode:
		case attrOf(c, "aria-hidden") == "true":
			isHidden = true
		case isUnseen(c) && text != "":
			return ""
		case isUnseen(c):
			text = shownText(c, most)
		}
	}
	if !isHidden {
		return ""
	}
	return text
}

// linkIn returns the first address in an element, of a picture or of a link.
func linkIn(n *html.Node, isImage bool) string {
	try := func(n *html.Node) string {
		switch {
		case isImage && n.DataAtom == atom.Img:
			for _, name := range [...]string{"data-src", "data-original", "data-lazy-src", "src"} {
				if src := attrOf(n, name); src != "" && !strings.HasPrefix(src, "data:") {
					return src
				}
			}
		case !isImage && n.DataAtom == atom.A:
			return attrOf(n, "href")
		}
		return ""
	}
	if found := try(n); found != "" {
		return found
	}
	left := maxShown
	for c := range n.Descendants() {
		if left--; left == 0 {
			break
		}
		if found := try(c); found != "" {
			return found
		}
	}
	return ""
}

// unlabelled removes a label that names the field before a text: SKU: 123.
func (f *field) unlabelled(text string) string {
	if m := outOf.FindStringSubmatch(text); m != nil && f.means("rating") {
		return m[1]
	}
	if f.isNumbered() {
		if rest := numbering.ReplaceAllString(text, ""); rest != "" {
			return rest
		}
	}
	label, rest, ok := strings.Cut(text, ":")
	if ok && len(label) <= maxToken && strings.TrimSpace(rest) != "" &&
		(f.labels[normal(label)] || slices.Contains(f.names, key(wordsIn(label)))) {
		return strings.TrimSpace(rest)
	}
	return text
}

// isNumbered says whether the field is a shop's or manufacturer's number.
func (f *field) isNumbered() bool {
	return f.means("sku") || f.means("mpn") ||
		f.means("productId")
}

// most returns the maximum length of the field's text, in bytes.
func (f *field) most() int {
	switch {
	case f.means("description") || f.means("articleBody") || f.means("reviewBody"):
		return maxProse
	case f.kind == anything && f.concept != nil:
		return maxShown / 2
	case f.concept == nil:
		return maxShown
	}
	return 120
}

var (
	dated     = regexp.MustCompile(`\b(19|20)[0-9]{2}\b|\b[0-9]{1,2}[./][0-9]{1,2}\b`)
	outOf     = regexp.MustCompile(`(?i)^\D{0,12}([0-9](?:[.,][0-9]{1,2})?) ?(?:/|out of|von|sur|de|su|of|stars?|sterne)`)
	numbering = regexp.MustCompile(`(?i)^(?:(?:item|art|article|artikel|sku|mpn|ref|reference|model|code|cod|product|produkt|no|nr|number|nummer|id)\b[ .-]*)+[:#№°]+ *`)
	asides    = regexp.MustCompile(`(?i)\([^()]*\)|/ ?[0-9]+ ?\pL+$|` +
		`^(?:size|gr(?:ö|oe)(?:ß|ss)e|taille|talla|taglia|maat)\s*[0-9]+\s*[-–:,|]`)
	articleNumber = regexp.MustCompile(`^[\pL0-9][\pL0-9 ._/#-]{0,39}$`)
	placeholders  = regexp.MustCompile(`\{\{|\}\}|\$\{|<%|^(?i:n/?a|null|undefined|nan|loading.*|tba|tbd|-+|–|…)$`)
)

// looks says whether a text looks like what the field's name means.
func (f *field) looks(text string) bool {
	if text == "" || len(text) > f.most() || placeholders.MatchString(text) {
		return false
	}
	switch f.kind {
	case money:
		return isSum(text)
	case quantity, count:
		return strings.ContainsAny(text, "0123456789") && lettersIn(text) <= 24
	case stock:
		return truth(text) != ""
	case date:
		return len(text) <= 60 && dated.MatchString(text)
	case link:
		return strings.Contains(text, "/")
	}
	switch {
	case f.isNumbered():
		return articleNumber.MatchString(text) &&
			(strings.ContainsAny(text, "0123456789") || strings.ToUpper(text) == text)
	case f.means("name"):
		return lettersIn(text) > 1
	case f.means("description") || f.means("articleBody"):
		return len(text) > 25
	case f.means("email"):
		return strings.Contains(text, "@")
	case f.means("telephone"):
		return lettersIn(text) < 6 && strings.ContainsAny(text, "0123456789")
	}
	return true
}

func lettersIn(text string) int {
	n := 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			n++
		}
	}
	return n
}

// isSum says whether a text is one sum of money above zero.
func isSum(text string) bool {
	p, ok := amount.Parse(text)
	return ok && (p.Sole || p.Named && (p.Max != "" || p.Today)) &&
		strings.Trim(p.Amount, "0.") != "" && !strings.Contains(text, "%") &&
		lettersIn(text) <= 12
}

// innermost drops elements that contain others, because they hold more than the value.
func innermost(list []fitting) []fitting {
	inside := map[*html.Node]bool{}
	for _, at := range list {
		for n := at.node.Parent; n != nil && !inside[n]; n = n.Parent {
			inside[n] = true
		}
	}
	return slices.DeleteFunc(list,
		func(at fitting) bool { return at.attr == "" && inside[at.node] })
}

// sums separates current from former prices, and both from other sums.
func (f *field) sums(list []fitting) []fitting {
	former := f.means("originalPrice")
	var sure, regular []fitting
	for _, at := range list {
		switch {
		case around(at.node, notPrices):
		case isStruck(at.node) != former:
		case !former && around(at.node, regulars):
			regular = append(regular, at)
		default:
			sure = append(sure, at)
		}
	}
	if len(sure) == 0 {
		return regular
	}
	return sure
}

// around says whether an element or one of its two nearest ancestors has one of the words.
func around(n *html.Node, any map[string]bool) bool {
	for range 3 {
		if n == nil || n.Type != html.ElementNode {
			return false
		}
		if hasWord(n, any) {
			return true
		}
		n = n.Parent
	}
	return false
}

// isStruck says whether a price is crossed out or named as a former one.
func isStruck(n *html.Node) bool {
	return isCrossed(n) || ancestorOf(n, isCrossed) != nil || hasWord(n, beforeNow) ||
		n.Parent != nil && hasWord(n.Parent, beforeNow)
}

// isCrossed says whether an element crosses out its text.
func isCrossed(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Del, atom.S, atom.Strike:
		return true
	}
	return strings.Contains(attrOf(n, "style"), "line-through")
}

// namesOf returns the keys of names of elements that may hold the field.
func namesOf(f *field) []string {
	names := []string{key(wordsIn(f.Name))}
	add := func(list string) {
		for name := range strings.FieldsSeq(list) {
			if k := key(wordsIn(name)); k != "" && !vague[k] && !slices.Contains(names, k) {
				names = append(names, k)
			}
		}
	}
	if vague[names[0]] || names[0] == "" {
		names = nil
	}
	if c := f.concept; c != nil {
		add(c.fields)
		add(c.labels)
		add(c.called)
	}
	return names
}
