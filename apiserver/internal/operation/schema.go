package operation

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/pkg/ids"
)

// Schematic is a type that describes its own JSON form. A schema that has a title is the component
// of that name.
type Schematic interface{ Schema() *jsonschema.Schema }

var schematicType = reflect.TypeFor[Schematic]()

// schemas makes JSON Schemas of Go types by the same tags that decoding reads. Structs become named
// components.
type schemas struct {
	components map[string]*jsonschema.Schema
	types      map[string]reflect.Type
}

func newSchemas() *schemas {
	return &schemas{components: map[string]*jsonschema.Schema{}, types: map[string]reflect.Type{}}
}

// of is the schema of a type. In requests a member is required when its tag says so, in answers
// when it is always there.
func (s *schemas) of(t reflect.Type, request bool) *jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		return nullable(s.of(t.Elem(), request))
	}
	switch {
	case t.Implements(schematicType):
		return s.titled(t, reflect.Zero(t).Interface().(Schematic).Schema())
	case t == reflect.TypeFor[ids.ID]():
		return &jsonschema.Schema{Type: "string", Pattern: "^([0-9a-fA-F]{24})?$"}
	case t == rawType:
		return &jsonschema.Schema{}
	}
	switch t.Kind() {
	case reflect.Struct:
		if t.Name() == "" {
			return s.object(t, request)
		}
		return s.component(t, request)
	case reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: s.of(t.Elem(), request)}
	case reflect.Map:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: s.of(t.Elem(), request)}
	case reflect.Interface:
		return &jsonschema.Schema{}
	}
	made, err := jsonschema.ForType(t, nil)
	if err != nil {
		// a declared type: a programmer's slip
		panic(fmt.Sprintf("operation: no schema for %s: %v", t, err))
	}
	return made
}

// titled is a type's own schema, or a reference to the component that it is.
func (s *schemas) titled(t reflect.Type, own *jsonschema.Schema) *jsonschema.Schema {
	name := own.Title
	if name == "" {
		return own
	}
	own.Title = ""
	return s.refer(name, t, func() *jsonschema.Schema { return own })
}

// component names a struct's schema and refers to it. A struct is named by its type, a page by what
// it is of first, and what a request has with Input behind it. Two types of one name are a
// programmer's slip.
func (s *schemas) component(t reflect.Type, request bool) *jsonschema.Schema {
	name, parameters, generic := strings.Cut(t.Name(), "[")
	if generic {
		name = parameters[strings.LastIndexByte(parameters, '.')+1:len(parameters)-1] + name
	}
	name = strings.ToUpper(name[:1]) + name[1:]
	if request && !strings.HasSuffix(name, "Request") {
		name = strings.TrimSuffix(name, "Input") + "Input"
	}
	return s.refer(name, t, func() *jsonschema.Schema { return s.object(t, request) })
}

// refer refers to the component of a type, which is made when nothing has referred to it before.
func (s *schemas) refer(name string, t reflect.Type,
	describe func() *jsonschema.Schema) *jsonschema.Schema {
	if known, ok := s.types[name]; ok && known != t {
		panic(fmt.Sprintf("operation: %s and %s are both named %s", known, t, name))
	}
	if _, known := s.types[name]; !known {
		s.types[name] = t
		s.components[name] = describe()
	}
	return &jsonschema.Schema{Ref: "#/components/schemas/" + name}
}

func (s *schemas) object(t reflect.Type, request bool) *jsonschema.Schema {
	sh := &shape{byName: map[string]int{}}
	sh.collect(t, nil, "json")
	made := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for i := range sh.fields {
		f := &sh.fields[i]
		member := s.field(f, request)
		made.Properties[f.name] = member
		made.PropertyOrder = append(made.PropertyOrder, f.name)
		tag := t.FieldByIndex(f.index).Tag.Get("json")
		always := !strings.Contains(tag, ",omitempty") && !strings.Contains(tag, ",omitzero")
		if request && f.rules.required || !request && always {
			made.Required = append(made.Required, f.name)
		}
	}
	if request {
		made.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	return made
}

// field is a member's schema with what its tags say.
func (s *schemas) field(f *field, request bool) *jsonschema.Schema {
	made := s.of(f.typ, request)
	if made.Ref != "" && f.rules.doc != "" {
		made = &jsonschema.Schema{Ref: made.Ref}
	}
	if f.typ == idType && f.rules.required {
		made.Pattern = "^[0-9a-fA-F]{24}$"
	}
	made.Description = f.rules.doc
	made.ReadOnly = f.rules.stamped
	for _, value := range f.rules.enum {
		made.Enum = append(made.Enum, value)
	}
	if f.rules.pattern != nil {
		made.Pattern = f.rules.pattern.String()
	}
	if f.rules.line {
		made.Pattern = linePattern
	}
	if f.rules.fallback != nil {
		made.Default = defaultJSON(f.typ, *f.rules.fallback)
	}
	bound(made, &f.rules, f.typ)
	return made
}

// linePattern is a text without control characters, in words that every language's regular
// expressions know.
const linePattern = `^[^\x00-\x1f\x7f-\x9f]*$`

// bound writes min and max as what they bound: a value, characters or items.
func bound(to *jsonschema.Schema, r *rules, t reflect.Type) {
	whole := func(n *float64) *int {
		if n == nil {
			return nil
		}
		i := int(math.Round(*n))
		return &i
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		to.MinLength, to.MaxLength = whole(r.min), whole(r.max)
	case reflect.Slice:
		to.MinItems, to.MaxItems = whole(r.min), whole(r.max)
	case reflect.Map:
		to.MinProperties, to.MaxProperties = whole(r.min), whole(r.max)
	default:
		if r.min != nil {
			to.Minimum = r.min
		}
		if r.max != nil {
			to.Maximum = r.max
		}
		if r.clamp != nil {
			to.Description = strings.TrimSpace(fmt.Sprintf("%s Greater values count as %d.",
				to.Description, *r.clamp))
		}
	}
}

func defaultJSON(t reflect.Type, text string) []byte {
	if t.Kind() == reflect.String || readsText(t) {
		return []byte(strconv.Quote(text))
	}
	return []byte(text)
}

func nullable(of *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case of.Ref != "":
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{of, {Type: "null"}}}
	case of.Type != "":
		of.Types, of.Type = []string{of.Type, "null"}, ""
	}
	return of
}
