package operation

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Examples holds values for examples in the description, as JSON by name. A name is a component, a
// member (Component.member) or a parameter (svc_id.parameter). "svc_id media/type" names a body
// that is not JSON. A bare name stands for all required members and parameters of that name. The
// most specific name wins.
type Examples map[string]string

// examples makes the examples of one description.
type examples struct {
	*schemas
	given   Examples
	used    map[string]bool
	missing []string
}

// anExampleID is the id that examples show.
const anExampleID = "68e5b1c2d3f4a5b6c7d8e9f0"

// find returns the example under the first of the names that has one.
func (e *examples) find(names ...string) (json.RawMessage, bool) {
	for _, name := range names {
		if text, ok := e.given[name]; ok {
			e.used[name] = true
			return json.RawMessage(text), true
		}
	}
	return nil, false
}

// of returns an example of a type. at is the name to report if there is none.
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

// member returns an example of a member or parameter that has none of its own.
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

// isMade says whether the example of a type is composed of examples of its parts.
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

// parameter returns the example of a parameter, nil if it has none and needs none.
func (e *examples) parameter(op *Operation, f *field, required bool) any {
	if given, ok := e.find(op.ID + "." + f.name); ok {
		return given
	}
	if !required {
		return nil
	}
	return e.member(f, true, op.ID+"."+f.name)
}

// binaries are the media types that nobody reads as text.
var binaries = []string{"application/octet-stream", "application/vnd.apache.parquet",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}

// text returns the example of a body that is not JSON.
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

// Lacking returns the names in a description that need an example and have none, and the names of
// examples that nothing uses.
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

// withExample adds an example to a media type's or parameter's object, unless it is nil.
func withExample(of object, example any) object {
	if example != nil {
		of["example"] = example
	}
	return of
}
