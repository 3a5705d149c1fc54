// Package schema owns customers' extraction schemas. It defines what a JSON Schema document may say
// here, whether a row fits it, and which properties an extraction looks for. It reads no page,
// stores nothing and opens nothing: references never leave the document.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
)

// Bounds of a document. They keep the check of a row linear in the row: references to references
// cannot multiply the work.
const (
	MaxBytes      = 65_536
	MaxDepth      = 32    // of nested JSON
	MaxProperties = 500   // named anywhere in the document
	maxNodes      = 5_000 // JSON values
	maxExpanded   = 2_000 // schemas, counting each reference as its target
	maxListed     = 4_000 // properties, and alternatives of their types, likewise
	maxPattern    = 512   // characters of a regular expression
	maxName       = 256   // characters of a property's name
)

// Bounds of a row's numbers. Comparison of numbers is exact, so exponents cost memory.
const (
	maxDigits   = 400
	maxExponent = 400
)

// Schema is a compiled document. It is safe for concurrent use.
type Schema struct {
	at         string                      // JSON pointer to a row's schema in the document
	patterns   map[string]*pattern.Pattern // of the document, by source
	idle       chan *validator
	isList     bool
	properties []Property
	document   json.RawMessage
	work       *work // of a row
}

// Property is a property that rows may have.
type Property struct {
	Name string
	// string, number, integer, boolean, array, object, null; empty if the document names none
	Types       []string
	Required    bool
	Title       string
	Description string
	Format      string
	Enum        []string   // the texts and numbers of enum and const
	Items       *Property  // of an array whose elements the document describes
	Properties  []Property // of an object, or (in Items) of an array's elements
}

// Column returns the name of a row's property in the store.
func (p *Property) Column() string { return model.ColumnOf(p.Name) }

// Is reports whether the property may have a type. A property without types may have any.
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

// location is the document's base for references; nothing is ever loaded from it.
const location = "schema:///content"

// nowhere is a loader that finds nothing.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema: %s is outside of the document", url)
}

// Compile checks and compiles a document: a JSON Schema of an object with properties, or of an
// array of such objects. The document must name properties, and references must not leave it.
// Recursion may check a value against a schema only once. Errors are a fault.List with the code
// schema_validation_failed, each naming its place, such as content.properties.price.
func Compile(document []byte) (*Schema, error) {
	c, err := newCheck(document)
	if err != nil {
		return nil, err
	}
	row := c.rowOf(c.root)
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	s := &Schema{isList: row.path != "", document: bytes.Clone(document), at: row.path,
		patterns: c.patterns,
		idle:     make(chan *validator, maxIdle)}
	v, err := s.validator()
	if err != nil {
		return nil, err
	}
	s.idle <- v
	if s.properties = c.properties(row.node, 0); len(c.faults) > 0 {
		return nil, c.faults
	}
	s.work = c.workOf(row.node, map[*node]*work{})
	return s, nil
}

func invalid(field, format string, args ...any) fault.List {
	return fault.List{fault.Invalid(fault.SchemaValidation, field, format, args...)}
}

// Document returns the document as given.
func (s *Schema) Document() json.RawMessage { return s.document }

// Patterns returns the size of the document's regular expressions, as pattern.Total counts it.
func (s *Schema) Patterns() int {
	size := 0
	for _, p := range s.patterns {
		size += p.Size()
	}
	return size
}

// IsList reports that the document describes an array, whose elements are the rows.
func (s *Schema) IsList() bool { return s.isList }

// Properties returns the properties of a row, in the order of the document.
func (s *Schema) Properties() []Property { return s.properties }

// Mismatch says how a row does not fit. Its text is short and holds no value of the row.
type Mismatch struct {
	Property string // the property that does not fit; "": the row as a whole
	reason   string
}

// Error explains the mismatch to people.
func (m *Mismatch) Error() string { return "schema: " + m.reason }

// Validate checks a row, a JSON object; it returns nil or a *Mismatch. The budget pays for it
// beforehand, and for patterns. If it ends, the result is meaningless. A row that would take more
// than maxRowSteps does not fit.
func (s *Schema) Validate(b *pattern.Budget, row []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(row))
	if err != nil {
		return &Mismatch{reason: fmt.Sprintf("the row is not JSON: %v", err)}
	}
	if members, ok := value.(map[string]any); ok {
		for name, member := range members {
			if !sane(member) {
				return &Mismatch{name, fmt.Sprintf("%.200s: a number is out of range", name)}
			}
		}
	}
	steps := s.work.steps(value, maxRowSteps)
	if !b.Spend(min(steps, maxRowSteps)) || steps > maxRowSteps {
		return &Mismatch{reason: "the row takes too long to check"}
	}
	if err := s.validate(b, value); err != nil {
		property := ""
		if v := innermost(err); v != nil && len(v.InstanceLocation) > 0 {
			property = v.InstanceLocation[0]
		}
		return &Mismatch{property, explain(err)}
	}
	return nil
}

// sane reports whether all numbers can be compared at a normal cost.
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

// innermost returns the first root cause that the library reports, preferably one in a property. It
// is nil if the error is not about a value.
func innermost(err error) *jsonschema.ValidationError {
	var whole *jsonschema.ValidationError
	if !errors.As(err, &whole) {
		return nil
	}
	var first *jsonschema.ValidationError
	var visit func(*jsonschema.ValidationError) bool
	visit = func(v *jsonschema.ValidationError) bool {
		if len(v.Causes) == 0 {
			if first == nil || len(first.InstanceLocation) == 0 {
				first = v
			}
			return len(first.InstanceLocation) > 0
		}
		return slices.ContainsFunc(v.Causes, visit)
	}
	visit(whole)
	return first
}

// explain returns the library's error in one line.
func explain(err error) string {
	if v := innermost(err); v != nil {
		place := strings.Join(v.InstanceLocation, ".")
		if place == "" {
			place = "the whole"
		}
		return fmt.Sprintf("%.200s does not fit %q", place,
			strings.Join(v.ErrorKind.KeywordPath(), "."))
	}
	return fmt.Sprintf("%.300s", strings.ReplaceAll(err.Error(), location, ""))
}

// Answer returns the document as a response format for a language model. Models only return
// objects. So a list, or a row if list is set, is put into the member rows.
func (s *Schema) Answer(list bool) json.RawMessage {
	if !list && !s.isList {
		return s.document
	}
	var document any
	d := json.NewDecoder(bytes.NewReader(s.document))
	d.UseNumber()
	if err := d.Decode(&document); err != nil {
		return s.document // it was decoded before
	}
	at := "#/properties/rows"
	if !s.isList {
		at += "/items"
	}
	rebase(document, at)
	if !s.isList {
		document = map[string]any{"type": "array", "items": document}
	}
	answer, err := json.Marshal(map[string]any{"type": "object",
		"properties": map[string]any{"rows": document},
		"required":   []string{"rows"}})
	if err != nil {
		return s.document // decoded values can be encoded
	}
	return answer
}

// rebase changes the references of a document that moves to another place.
func rebase(value any, at string) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			rebase(e, at)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok { // within the document, perhaps by its $id
			_, fragment, _ := strings.Cut(ref, "#")
			if v["$ref"] = "#" + fragment; fragment == "" || fragment[0] == '/' {
				v["$ref"] = at + fragment
			}
		}
		delete(v, "$schema")
		if _, ok := v["$id"].(string); ok {
			delete(v, "$id")
		}
		for _, e := range v {
			rebase(e, at)
		}
	}
}
