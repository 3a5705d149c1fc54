package schema

import (
	"bytes"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"shoal.dev/shoal/pkg/pattern"
)

// maxIdle is the most validators of a schema that are kept for further rows.
const maxIdle = 4

// validator is a compiled document whose patterns are paid from the current budget. It checks one
// row at a time.
type validator struct {
	row    *jsonschema.Schema
	budget *pattern.Budget
}

// validator compiles the document.
func (s *Schema) validator() (*validator, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.document))
	if err != nil {
		return nil, invalid("content", "is not JSON: %v", err)
	}
	v := &validator{}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	compiler.UseRegexpEngine(func(source string) (jsonschema.Regexp, error) {
		known := s.patterns[source]
		if known == nil { // in the library's own schema of schemas
			var err error
			if known, err = pattern.Compile(source, maxPattern); err != nil {
				return nil, err
			}
		}
		return priced{known, v}, nil
	})
	if err := compiler.AddResource(location, parsed); err != nil {
		return nil, invalid("content", "is no JSON Schema: %s", explain(err))
	}
	if v.row, err = compiler.Compile(location + "#" + s.at); err != nil {
		return nil, invalid("content", "is no JSON Schema: %s", explain(err))
	}
	return v, nil
}

// validate checks a value against the document.
func (s *Schema) validate(b *pattern.Budget, value any) error {
	var v *validator
	select {
	case v = <-s.idle:
	default:
		var err error
		if v, err = s.validator(); err != nil {
			return err
		}
	}
	v.budget = b
	err := v.row.Validate(value)
	v.budget = nil
	select {
	case s.idle <- v:
	default:
	}
	return err
}

// priced is a pattern in the form that the library needs.
type priced struct {
	pattern *pattern.Pattern
	of      *validator
}

// MatchString implements jsonschema.Regexp. Without a budget, the document itself is checked.
func (p priced) MatchString(text string) bool {
	if p.of.budget == nil {
		return p.pattern.Unpaid(text)
	}
	return p.pattern.Match(p.of.budget, text)
}

// String implements jsonschema.Regexp.
func (p priced) String() string { return p.pattern.String() }
