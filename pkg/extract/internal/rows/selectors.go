package rows

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/jsondoc"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
)

// language is the language of a selector.
type language uint8

const (
	css language = iota
	xPath
	jsonPath
)

// prefixes name a selector's language if its form would not.
var prefixes = map[string]language{"css": css, "xpath": xPath, "jsonpath": jsonPath}

// languageOf returns a selector's language, given by a prefix or by the selector's form, and the
// selector without the prefix.
func languageOf(selector string) (language, string) {
	selector = strings.TrimSpace(selector)
	if name, rest, ok := strings.Cut(selector, ":"); ok {
		if l, ok := prefixes[name]; ok {
			return l, strings.TrimSpace(rest)
		}
	}
	switch {
	case strings.HasPrefix(selector, "$"):
		return jsonPath, selector
	case xpathForm.MatchString(selector):
		return xPath, selector
	}
	return css, selector
}

// xpathForm matches beginnings that no CSS selector has: a step, an axis, a parenthesis, an
// attribute or a function call.
var xpathForm = regexp.MustCompile(`^(/|\.{1,2}/|\(|@|[a-zA-Z][a-zA-Z-]*\s*\(|` +
	`(ancestor|descendant)(-or-self)?\s*::|(following|preceding)(-sibling)?\s*::|` +
	`(attribute|child|namespace|parent|self)\s*::)`)

// IsJSON says whether fields are for JSON bodies, because the first one is a JSONPath.
func IsJSON(fields []model.Field) bool {
	if len(fields) == 0 {
		return false
	}
	l, _ := languageOf(fields[0].Selector)
	return l == jsonPath
}

// embeddedForm matches the beginning of a path into JSON that an HTML page embeds.
var embeddedForm = regexp.MustCompile(`^\$(\.embedded\b|\[['"]embedded['"]\])`)

// IsEmbedded says whether fields are for JSON embedded in HTML pages: the first one is such a path.
func IsEmbedded(fields []model.Field) bool {
	if !IsJSON(fields) {
		return false
	}
	_, selector := languageOf(fields[0].Selector)
	return embeddedForm.MatchString(selector)
}

// IsPath says whether a selector is a JSONPath.
func IsPath(selector string) bool {
	l, _ := languageOf(selector)
	return l == jsonPath
}

func (c *Column) compile(path, selector string, isJSON bool,
	patterns *pattern.Total) (f *fault.Error) {
	if isJSON {
		c.Path, f = CompilePath(path, selector, patterns)
		return f
	}
	c.Selector, f = CompileSelector(path, selector, patterns)
	if f == nil && c.kind == model.Attr && c.Selector.IsScalar() {
		f = fault.Invalid(fault.SchemaValidation, path,
			"the XPath expression gives a value, which has no attributes")
	}
	return f
}

// Selector selects in HTML pages: by CSS or, if that is nil, by XPath.
type Selector struct {
	CSS   *dom.Selector
	XPath *dom.XPath
}

// IsScalar says whether the selector gives a value instead of choosing nodes.
func (s Selector) IsScalar() bool { return s.XPath != nil && s.XPath.IsScalar() }

// First returns the first match in the document, or dom.NoMatch.
func (s Selector) First(doc *dom.Document) dom.Match {
	if s.CSS != nil {
		return dom.MatchOf(s.CSS.First(doc, dom.Whole))
	}
	if all := s.All(doc); len(all) > 0 {
		return all[0]
	}
	return dom.NoMatch
}

// All returns the matches in the document, in its order; none for a selector that gives a value.
func (s Selector) All(doc *dom.Document) []dom.Match {
	switch {
	case s.CSS != nil:
		elems := s.CSS.All(doc)
		all := make([]dom.Match, len(elems))
		for i, e := range elems {
			all[i] = dom.MatchOf(e)
		}
		return all
	case s.IsScalar():
		return nil
	}
	return s.XPath.All(doc)
}

// CompileSelector checks and compiles a selector for HTML pages; path names it in the fault. Its
// regular expressions are added to patterns, even if it is refused.
func CompileSelector(path, selector string, patterns *pattern.Total) (s Selector,
	f *fault.Error) {
	l, rest, f := checkSelector(path, selector)
	if f != nil {
		return s, f
	}
	var err error
	switch l {
	case jsonPath:
		return s, fault.Invalid(fault.SchemaValidation, path,
			"a JSONPath reads JSON bodies and cannot stand beside selectors of HTML pages")
	case xPath:
		if s.XPath, err = dom.CompileXPath(rest); err != nil {
			return s, fault.Invalid(fault.SchemaValidation, path, "not an XPath expression: %v",
				err)
		}
	default:
		if s.CSS, err = dom.CompileSelector(rest, patterns); err != nil {
			return s, fault.Invalid(fault.SchemaValidation, path, "not a CSS selector: %v", err)
		}
	}
	return s, nil
}

// CheckReach refuses an XPath expression that matches on no page; path names it in the fault.
func CheckReach(path, selector string) *fault.Error {
	l, rest := languageOf(selector)
	if l != xPath {
		return nil
	}
	if x, err := dom.CompileXPath(rest); err == nil && x.IsVain() {
		return fault.Invalid(fault.SchemaValidation, path, "matches on no page: comments and "+
			"processing instructions are not part of one")
	}
	return nil
}

// notInBrowsers matches what our selectors support beyond browsers.
var notInBrowsers = regexp.MustCompile(`(?i):(contains|containsown|matches|matchesown|haschild|input)\b|[!#]=`)

// CheckClick checks a selector that is passed to a browser unchanged; path names it in the fault.
func CheckClick(path, selector string) *fault.Error {
	l, rest, f := checkSelector(path, selector)
	switch {
	case f != nil:
		return f
	case l != css || rest != strings.TrimSpace(selector):
		return fault.Invalid(fault.SchemaValidation, path,
			"a browser finds what is clicked: CSS without a prefix is needed")
	case notInBrowsers.MatchString(rest):
		return fault.Invalid(fault.SchemaValidation, path,
			"a browser finds what is clicked, and does not know %s",
			notInBrowsers.FindString(rest))
	}
	if _, err := dom.CompileSelector(rest, new(pattern.Total)); err != nil {
		return fault.Invalid(fault.SchemaValidation, path, "not a CSS selector: %v", err)
	}
	return nil
}

// CompilePath checks and compiles a JSONPath; path names it in the fault. Its regular expressions
// are added to patterns, even if it is refused.
func CompilePath(path, selector string, patterns *pattern.Total) (*jsondoc.Path, *fault.Error) {
	l, rest, f := checkSelector(path, selector)
	if f != nil {
		return nil, f
	}
	if l != jsonPath {
		return nil, fault.Invalid(fault.SchemaValidation, path,
			"not a JSONPath: it has to begin with $; selectors of HTML pages cannot stand "+
				"beside JSONPaths")
	}
	compiled, err := jsondoc.Compile(rest, patterns)
	if err != nil {
		return nil, fault.Invalid(fault.SchemaValidation, path, "not a JSONPath: %v", err)
	}
	return compiled, nil
}

func checkSelector(path, selector string) (l language, rest string, f *fault.Error) {
	l, rest = languageOf(selector)
	switch {
	case rest == "":
		f = fault.Invalid(fault.SchemaValidation, path, "a selector is needed")
	case utf8.RuneCountInString(selector) > maxSelector:
		f = fault.Invalid(fault.SchemaValidation, path, "a selector has at most %d characters",
			maxSelector)
	}
	return l, rest, f
}
