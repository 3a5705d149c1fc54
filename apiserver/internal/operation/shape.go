package operation

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/fault"
)

// rules are the bounds of one field, from its tags.
type rules struct {
	required bool
	stamped  bool
	fallback *string // default, as text
	min, max *float64
	clamp    *int64
	enum     []string
	pattern  *regexp.Regexp
	line     bool       // a text without control characters
	code     fault.Code // "": the operation's
	doc      string
	alone    bool // alone:"json": not among the parameters of a streamed body
}

// field is one field of a request struct.
type field struct {
	name  string
	index []int
	typ   reflect.Type
	rules rules
}

// shape is the fields of a struct, in order, embedded structs' included.
type shape struct {
	fields []field
	byName map[string]int
}

// shapes are all structs of one operation's request.
type shapes map[reflect.Type]*shape

// add compiles the structs of a JSON value's type, however deep.
func (s shapes) add(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		s.add(t.Elem())
	case reflect.Struct:
		if _, known := s[t]; known || readsText(t) || readsJSON(t) {
			return
		}
		made := &shape{byName: map[string]int{}}
		s[t] = made
		made.collect(t, nil, "json")
		for _, f := range made.fields {
			s.add(f.typ)
		}
	}
}

func (sh *shape) collect(t reflect.Type, prefix []int, tag string) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int{}, prefix...), i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct && f.Tag.Get(tag) == "" {
			sh.collect(f.Type, index, tag)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get(tag), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		if _, twice := sh.byName[name]; twice {
			panic(fmt.Sprintf("operation: %s has two fields %q", t, name))
		}
		sh.byName[name] = len(sh.fields)
		sh.fields = append(sh.fields,
			field{name: name, index: index, typ: f.Type, rules: readRules(t, f)})
	}
}

func readRules(t reflect.Type, f reflect.StructField) rules {
	number := func(tag string) *float64 {
		text, ok := f.Tag.Lookup(tag)
		if !ok {
			return nil
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(fmt.Sprintf("operation: %s.%s: %s %q is not a number", t, f.Name, tag, text))
		}
		return &n
	}
	r := rules{
		required: f.Tag.Get("required") == "true", stamped: f.Tag.Get("stamped") == "true",
		min: number("min"), max: number("max"), code: fault.Code(f.Tag.Get("code")),
		doc:   f.Tag.Get("doc"),
		alone: f.Tag.Get("alone") == "json",
		line:  f.Tag.Get("line") == "true",
	}
	if n := number("clamp"); n != nil {
		most := int64(*n)
		r.clamp = &most
	}
	if text, ok := f.Tag.Lookup("default"); ok {
		r.fallback = &text
	}
	if text := f.Tag.Get("enum"); text != "" {
		r.enum = strings.Split(text, ",")
	}
	if text := f.Tag.Get("pattern"); text != "" {
		r.pattern = regexp.MustCompile(text)
	}
	if _, known := fault.Catalog()[r.code]; r.code != "" && !known {
		panic(fmt.Sprintf("operation: %s.%s: no such code %q", t, f.Name, r.code))
	}
	return r
}

// problems collects the faults of one request, at most maxProblems.
type problems struct {
	list    fault.List
	invalid fault.Code // of faults that have no code of their own
}

const maxProblems = 100

func (p *problems) add(code fault.Code, path, format string, args ...any) {
	if len(p.list) == maxProblems {
		return
	}
	if code == "" {
		code = p.invalid
	}
	p.list = append(p.list, fault.Invalid(code, path, format, args...))
}

// check holds a decoded value against its rules. A clamped value is changed in place.
func (r *rules) check(v reflect.Value, path string, p *problems) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64, reflect.Int32:
		if r.clamp != nil && v.Int() > *r.clamp {
			v.SetInt(*r.clamp)
		}
		r.bounds(float64(v.Int()), path, "", p)
	case reflect.Uint, reflect.Uint64, reflect.Uint32:
		r.bounds(float64(v.Uint()), path, "", p)
	case reflect.Float64:
		r.bounds(v.Float(), path, "", p)
	case reflect.String:
		r.checkText(v.String(), path, p)
	case reflect.Slice, reflect.Map:
		if !readsJSON(v.Type()) {
			r.bounds(float64(v.Len()), path, " items", p)
		}
	}
}

func (r *rules) checkText(text, path string, p *problems) {
	if r.enum != nil {
		for _, allowed := range r.enum {
			if text == allowed {
				return
			}
		}
		p.add(r.code, path, "must be one of %s", strings.Join(r.enum, ", "))
		return
	}
	r.bounds(float64(utf8.RuneCountInString(text)), path, " characters", p)
	if r.pattern != nil && !r.pattern.MatchString(text) {
		p.add(r.code, path, "must match %s", r.pattern)
	}
	if r.line && strings.ContainsFunc(text, unicode.IsControl) {
		p.add(r.code, path, "must be one line without control characters")
	}
}

func (r *rules) bounds(n float64, path, unit string, p *problems) {
	format := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case r.min != nil && n < *r.min:
		p.add(r.code, path, "must be at least %s%s", format(*r.min), unit)
	case r.max != nil && n > *r.max:
		p.add(r.code, path, "must be at most %s%s", format(*r.max), unit)
	}
}
