package operation

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Examples are what examples in the description are made of, each as JSON. A name is a component, a
// member of one (Component.member) or a parameter of an operation (svc_id.parameter). A body of
// another type than JSON is named by svc_id, a space and the media type. A bare name stands for all
// members and parameters that are called so and are required. The narrowest name counts.
type Examples map[string]string

// examples makes the examples of one description.
type examples struct {
	*schemas
	given   Examples
	used    map[string]bool
	missing []string
}

// anExampleID is an id in examples.
const anExampleID = "68e5b1c2d3f4a5b6c7d8e9f0"

// find is what is given under one of the names, and whether there is any.
func (e *examples) find(names ...string) (json.RawMessage, bool) {
	for _, name := range names {
		if text, ok := e.given[name]; ok {
			e.used[name] = true
			return json.RawMessage(text), true
		}
	}
	return nil, false
}

// of is an example of a type. at names it where there is none.
func (e *examples) of(t reflect.Type, request bool, at string) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	schema := e.schemas.of(t, request)
	if name := componentOf(schema.Ref); name != "" {
		if given, ok := e.find(name); ok {
			return given
		}
	}
	switch {
	case schema.Format == "date-time":
		return "2026-01-02T03:04:05.000Z"
	case t == idType:
		return anExampleID
	case schema.Ref != "" && t.Kind() == reflect.Struct:
		return e.object(t, request, componentOf(schema.Ref))
	}
	switch t.Kind() {
	case reflect.Slice:
		if t != rawType {
			return []any{e.of(t.Elem(), request, at)}
		}
	case reflect.Bool:
		return false
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64,
		reflect.Float64:
		return 1
	}
	if given, ok := e.find(at); ok {
		return given
	}
	e.missing = append(e.missing, at)
	return nil
}

func componentOf(ref string) string { return strings.TrimPrefix(ref, "#/components/schemas/") }

func (e *examples) object(t reflect.Type, request bool, component string) object {
	made := object{}
	sh := &shape{byName: map[string]int{}}
	sh.collect(t, nil, "json")
	for i := range sh.fields {
		f := &sh.fields[i]
		whole := component + "." + f.name
		if given, ok := e.find(whole); ok {
			made[f.name] = given
			continue
		}
		optional := strings.Contains(t.FieldByIndex(f.index).Tag.Get("json"), ",omit")
		if request && !f.rules.required || !request && optional {
			continue
		}
		made[f.name] = e.member(f, request, whole)
	}
	return made
}

// member is an example of a member or a parameter that has none of its own.
func (e *examples) member(f *field, request bool, at string) any {
	if len(f.rules.enum) > 0 {
		return f.rules.enum[0]
	}
	if given, ok := e.find(f.name); ok && !e.isMade(f.typ, request) {
		return given
	}
	switch {
	case f.rules.min != nil && f.typ.Kind() != reflect.String && f.typ.Kind() != reflect.Slice:
		return *f.rules.min
	}
	return e.of(f.typ, request, at)
}

// isMade says whether the example of a type is made of its parts.
func (e *examples) isMade(t reflect.Type, request bool) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t != rawType {
		if e.schemas.of(t, request).Ref != "" {
			return true
		}
		t = t.Elem()
	}
	return t != idType && t.Kind() != reflect.String && t.Kind() != reflect.Map && t != rawType &&
		t.Kind() != reflect.Uint8 && e.schemas.of(t, request).Ref != ""
}

// parameter is the example of a parameter, nil where it has none and needs none.
func (e *examples) parameter(op *Operation, f *field, required bool) any {
	if given, ok := e.find(op.ID + "." + f.name); ok {
		return given
	}
	if !required {
		return nil
	}
	return e.member(f, true, op.ID+"."+f.name)
}

// binaries are the types whose bodies nobody reads as text.
var binaries = []string{"application/octet-stream", "application/vnd.apache.parquet",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}

// text is the example of a body of a type that is no JSON.
func (e *examples) text(op *Operation, media string) any {
	name := op.ID + " " + media
	if given, ok := e.find(name); ok {
		return given
	}
	if !slices.Contains(binaries, media) {
		e.missing = append(e.missing, name)
	}
	return nil
}

// Lacking are the names in a description that have no example and need one, and those of examples
// that nothing has.
func Lacking(about About, ops []*Operation) (missing, unused []string) {
	e := about.examples()
	for _, op := range ops {
		for i := range op.Routes {
			op.describe(e, i)
		}
	}
	for name := range about.Examples {
		if !e.used[name] {
			unused = append(unused, name)
		}
	}
	slices.Sort(unused)
	slices.Sort(e.missing)
	return slices.Compact(e.missing), unused
}

func (about *About) examples() *examples {
	return &examples{schemas: newSchemas(), given: about.Examples, used: map[string]bool{}}
}

// withExample is a media type's object, or a parameter's, with an example unless that is nil.
func withExample(of object, example any) object {
	if example != nil {
		of["example"] = example
	}
	return of
}
