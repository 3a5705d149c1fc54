// Package schema owns customers' extraction schemas: what a JSON Schema document may say here, whether a row fits it,
// and the properties that an extraction looks for. It reads no page, stores nothing and opens nothing: references never
// leave the document.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"shoal.dev/shoal/pkg/fault"
)

// Bounds of a document. They keep a check of a row linear in the row: a document cannot multiply the work by references
// to references.
const (
	MaxBytes      = 65_536
	MaxDepth      = 32    // of nested JSON
	MaxProperties = 500   // named anywhere in the document
	maxNodes      = 5_000 // JSON values
	maxExpanded   = 2_000 // schemas, with each reference counted as what it refers to
	maxPattern    = 512   // characters of a regular expression
	maxName       = 256   // characters of a property's name
)

// Bounds of a row's numbers. The comparison of numbers is exact, so that an exponent costs memory.
const (
	maxDigits   = 400
	maxExponent = 400
)

// Schema is a compiled document. It is safe for concurrent use.
type Schema struct {
	row        *jsonschema.Schema
	isList     bool
	properties []Property
	document   json.RawMessage
}

// Property is a property that rows may have.
type Property struct {
	Name        string
	Types       []string // of string, number, integer, boolean, array, object, null; empty where the document names none
	Required    bool
	Title       string
	Description string
	Format      string
	Enum        []string   // the texts and numbers of enum and const
	Items       *Property  // of an array, where the document describes its elements
	Properties  []Property // of an object, or of an array's elements within Items
}

// Is says whether the property may be of a type. One without types may be of any.
func (p *Property) Is(kind string) bool {
	if len(p.Types) == 0 {
		return true
	}
	for _, t := range p.Types {
		if t == kind || t == "number" && kind == "integer" {
			return true
		}
	}
	return false
}

// location is the name of the document for references; nothing is ever loaded from it.
const location = "schema:///content"

// nowhere is the loader: it has nothing.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema: %s is outside of the document", url)
}

// Compile checks and compiles a document: a JSON Schema of an object with properties, or of an array of such objects. It
// has to describe properties by name, references have to begin with # and must not lead in circles. Errors are a
// fault.List of the code schema_validation_failed, each naming its place, such as content.properties.price.
func Compile(document []byte) (*Schema, error) {
	c, err := newCheck(document)
	if err != nil {
		return nil, err
	}
	row := c.rowOf(c.root)
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, invalid("content", "is not JSON: %v", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	if err := compiler.AddResource(location, parsed); err != nil {
		return nil, invalid("content", "is no JSON Schema: %s", explain(err))
	}
	s := &Schema{isList: row.path != "", document: bytes.Clone(document)}
	if s.row, err = compiler.Compile(location + "#" + row.path); err != nil {
		return nil, invalid("content", "is no JSON Schema: %s", explain(err))
	}
	s.properties = c.properties(row.node, 0)
	return s, nil
}

func invalid(field, format string, args ...any) fault.List {
	return fault.List{fault.Invalid(fault.SchemaValidation, field, format, args...)}
}

// Document is the document as it was given.
func (s *Schema) Document() json.RawMessage { return s.document }

// IsList says that the document describes an array: its elements are the rows.
func (s *Schema) IsList() bool { return s.isList }

// Properties are those of a row, in the order of the document.
func (s *Schema) Properties() []Property { return s.properties }

// Validate says what is wrong with a row, a JSON object; nil if it fits. The error's text is short and holds no value
// of the row.
func (s *Schema) Validate(row []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(row))
	if err != nil {
		return fmt.Errorf("schema: the row is not JSON: %w", err)
	}
	if !sane(value) {
		return errors.New("schema: a number is out of range")
	}
	if err := s.row.Validate(value); err != nil {
		return fmt.Errorf("schema: %s", explain(err))
	}
	return nil
}

// sane says whether all numbers can be compared at an ordinary price.
func sane(value any) bool {
	switch v := value.(type) {
	case json.Number:
		return saneNumber(string(v))
	case []any:
		for _, e := range v {
			if !sane(e) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !sane(e) {
				return false
			}
		}
	}
	return true
}

func saneNumber(n string) bool {
	if len(n) > maxDigits {
		return false
	}
	at := strings.IndexAny(n, "eE")
	if at < 0 {
		return true
	}
	exponent := strings.TrimLeft(strings.TrimLeft(n[at+1:], "+-"), "0")
	return len(exponent) <= 3 && (len(exponent) < 3 || exponent <= fmt.Sprint(maxExponent))
}

// explain is the innermost cause of the library's error, in one line.
func explain(err error) string {
	var v *jsonschema.ValidationError
	if errors.As(err, &v) {
		for len(v.Causes) > 0 {
			v = v.Causes[0]
		}
		place := strings.Join(v.InstanceLocation, ".")
		keyword := strings.Join(v.ErrorKind.KeywordPath(), ".")
		if place == "" {
			place = "the whole"
		}
		return fmt.Sprintf("%.200s does not fit %q", place, keyword)
	}
	return fmt.Sprintf("%.300s", strings.ReplaceAll(err.Error(), location, ""))
}
