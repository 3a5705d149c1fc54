package rows

import (
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/jsondoc"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// language is what a selector is written in.
type language uint8

const (
	css language = iota
	jsonPath
)

// prefixes name a selector's language where its form would not.
var prefixes = map[string]language{"css": css, "jsonpath": jsonPath}

// languageOf tells a selector's language by its form, unless a prefix names it, and gives the selector without that.
func languageOf(selector string) (language, string) {
	selector = strings.TrimSpace(selector)
	if name, rest, ok := strings.Cut(selector, ":"); ok {
		if l, ok := prefixes[name]; ok {
			return l, strings.TrimSpace(rest)
		}
	}
	if strings.HasPrefix(selector, "$") {
		return jsonPath, selector
	}
	return css, selector
}

// IsJSON says whether fields are for JSON bodies: the first one is a JSONPath.
func IsJSON(fields []model.Field) bool {
	if len(fields) == 0 {
		return false
	}
	l, _ := languageOf(fields[0].Selector)
	return l == jsonPath
}

func (c *Column) compile(path, selector string, isJSON bool) (f *fault.Error) {
	if isJSON {
		c.Path, f = CompilePath(path, selector)
	} else {
		c.Selector, f = CompileSelector(path, selector)
	}
	return f
}

// CompileSelector checks and compiles a selector of HTML pages; path names it in the fault.
func CompileSelector(path, selector string) (*dom.Selector, *fault.Error) {
	l, rest, f := checkSelector(path, selector)
	if f != nil {
		return nil, f
	}
	if l == jsonPath {
		return nil, fault.Invalid(fault.SchemaValidation, path,
			"a JSONPath reads JSON bodies and cannot stand beside selectors of HTML pages")
	}
	compiled, err := dom.CompileSelector(rest)
	if err != nil {
		return nil, fault.Invalid(fault.SchemaValidation, path, "not a CSS selector: %v", err)
	}
	return compiled, nil
}

// CompilePath checks and compiles a JSONPath; path names it in the fault.
func CompilePath(path, selector string) (*jsondoc.Path, *fault.Error) {
	l, rest, f := checkSelector(path, selector)
	if f != nil {
		return nil, f
	}
	if l != jsonPath {
		return nil, fault.Invalid(fault.SchemaValidation, path,
			"not a JSONPath: it has to begin with $; selectors of HTML pages cannot stand beside JSONPaths")
	}
	compiled, err := jsondoc.Compile(rest)
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
		f = fault.Invalid(fault.SchemaValidation, path, "a selector has at most %d characters", maxSelector)
	}
	return l, rest, f
}
