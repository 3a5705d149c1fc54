// Package rows owns what the scraper types share: checked and compiled fields, and rows as JSON
// within their bounds.
package rows

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/jsondoc"
	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
)

// Bounds of a recipe. Lengths are in characters.
const (
	maxFields   = 500
	maxName     = 256
	maxSelector = 2048
	maxAttr     = 256
	// maxSelectors bounds all selectors together, since a character may take 100 bytes when it is
	// compiled: 300 for each field of the most fields.
	maxSelectors = 150_000
)

// Maker makes the rows of a page, with one of Rows, JSON and Read.
type Maker struct {
	// Rows reads a parsed HTML page. If Only is not empty, Rows asks the document for nothing but
	// the first matches of these selectors and their contents.
	Rows func(*dom.Document, *Writer) error
	Only []*dom.Selector
	// JSON reads a parsed JSON body.
	JSON func(*jsondoc.Document, *Writer) error
	// Read reads pages as they came; see Extractor.Extract. Its result depends on the pages alone.
	Read func(pages []page.Page, out *Writer) (More, error)
	// Unfetched, if not nil, makes the rows of an address that needs no fetch, and says whether it
	// is such an address. The page has no body.
	Unfetched func(p page.Page, out *Writer) (bool, error)
	// Failures says that Read also makes rows of a first page that could not be fetched.
	Failures bool
	// Fetches bounds the fetch attempts for pages of a unit, Within the time since the first
	// request started. 0 means the usual limit.
	Fetches int
	Within  time.Duration
	// Patterns is the size of the regular expressions, as pattern.Total counts it.
	Patterns int
}

// More is what Read returns besides rows.
type More struct {
	Next     string    // as in extract.Result
	Ask      *page.Ask // nil: the page is complete; otherwise the rows written do not count
	Rejected int
	Free     bool
}

// Column is a compiled field with a Selector or, for JSON bodies, a Path.
type Column struct {
	Selector Selector
	Path     *jsondoc.Path
	kind     model.FieldKind
	attr     string
	key      []byte // the name as JSON, with the colon
}

// CompileColumns checks and compiles itemsConfig; isJSON says that the fields are for JSON bodies.
// Names lose leading underscores, because only the server writes such keys (decision 20).
func CompileColumns(fields []model.Field) (columns []Column, isJSON bool, faults fault.List) {
	report := func(path, format string, args ...any) {
		faults = append(faults, fault.Invalid(fault.SchemaValidation, path, format, args...))
	}
	switch {
	case len(fields) == 0:
		report("itemsConfig", "at least one field is needed")
	case len(fields) > maxFields:
		report("itemsConfig", "at most %d fields are allowed", maxFields)
		return nil, false, faults
	}
	isJSON = IsJSON(fields)
	columns = make([]Column, len(fields))
	seen := make(map[string]int, len(fields))
	var patterns pattern.Total
	length := 0
	for i, f := range fields {
		path := fmt.Sprintf("itemsConfig[%d]", i)
		name := f.Column()
		if problem := badName(f.Name, name); problem != "" {
			report(path+".name", "%s", problem)
		} else if first, ok := seen[name]; ok {
			report(path+".name", "the name %q is that of itemsConfig[%d] already", name, first)
		} else {
			seen[name] = i
		}
		columns[i] = Column{kind: f.Kind, attr: strings.ToLower(f.Attr), key: jsonKey(name)}
		if length += utf8.RuneCountInString(f.Selector); length > maxSelectors {
			report(path+".selector", "the selectors are too long together: at most %d characters "+
				"are allowed", maxSelectors)
			return nil, isJSON, faults
		}
		bad := columns[i].compile(path+".selector", f.Selector, isJSON, &patterns)
		if patterns.Size() > pattern.MaxTotal {
			report(path+".selector", "%v", pattern.ErrTooMany)
			return nil, isJSON, faults
		}
		if bad != nil {
			faults = append(faults, bad)
		}
		switch f.Kind {
		case model.Text, model.Exists:
			if f.Attr != "" {
				report(path+".attr", "only the kind ATTR has an attribute")
			}
		case model.Attr:
			if isJSON {
				report(path+".kind", "a JSON value has no attributes")
			}
			if problem := badAttr(f.Attr); problem != "" {
				report(path+".attr", "%s", problem)
			}
		default:
			report(path+".kind", "the kind must be TEXT, ATTR or EXISTS")
		}
	}
	return columns, isJSON, faults
}

// patterns returns the size of the column's regular expressions.
func (c *Column) patterns() int {
	if c.Path != nil {
		return c.Path.Patterns()
	}
	return c.Selector.Patterns()
}

// Patterns returns the size of the selector's regular expressions.
func (s Selector) Patterns() int {
	if s.CSS != nil {
		return s.CSS.Patterns()
	}
	return 0 // XPath has none
}

// Patterns returns the size of the columns' regular expressions, as pattern.Total counts it.
func Patterns(columns []Column) int {
	size := 0
	for i := range columns {
		size += columns[i].patterns()
	}
	return size
}

// badName returns the problem with a field's name, or ""; stripped is the name without "_" prefix.
func badName(name, stripped string) string {
	switch {
	case strings.TrimSpace(stripped) == "":
		return "a name is needed; leading underscores do not count"
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Sprintf("a name has at most %d characters", maxName)
	case !utf8.ValidString(name):
		return "the name is not UTF-8"
	case strings.ContainsFunc(name,
		func(r rune) bool { return unicode.IsControl(r) || r == '"' || r == '\\' }):
		return `a name must not have control characters, " or \: rows could not be filtered by it`
	case strings.HasPrefix(stripped, "$"):
		return "names that begin with $ are reserved for the operators of filters"
	}
	return ""
}

func badAttr(attr string) string {
	switch {
	case attr == "":
		return "the kind ATTR needs the name of an attribute"
	case utf8.RuneCountInString(attr) > maxAttr:
		return fmt.Sprintf("an attribute name has at most %d characters", maxAttr)
	case strings.ContainsAny(attr, " \t\r\n\f/>=\"'<\x00"):
		return "no attribute can have this name"
	}
	return ""
}

func jsonKey(name string) []byte {
	key, _ := json.Marshal(name) // a string always marshals
	return append(key, ':')
}
