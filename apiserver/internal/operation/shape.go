package operation

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/fault"
)

// rules are the bounds of one field, read from its tags.
type rules struct {
	required bool
	stamped  bool
	fallback *string // default, as text
	min, max *float64
	clamp    *int64
	enum     []string
	values   []string // of its type
	not      []string
	unlike   *regexp.Regexp
	format   string // in the schema only: something else checks it
	pattern  *regexp.Regexp
	says     string     // the message for a text that does not match
	trim     bool       // surrounding spaces do not count in the length
	must     bool       // the value must be true
	unique   bool       // no item comes twice
	object   bool       // raw JSON that is an object
	each     *rules     // of items, and of the values of a map
	keys     *rules     // of the names of a map's members
	code     fault.Code // of refusals; "": the operation's
	doc      string
	alone    bool   // alone:"json": not among the parameters of a streamed body
	agent    string // agentNeeds or agentLacks, "" for neither
	scraped  string // the member that says where texts were scraped; "-": none does; "": none were
}

// field is one field of a request struct.
type field struct {
	name  string
	index []int
	typ   reflect.Type
	rules rules
}

// shape is the fields of a struct in order, including those of embedded structs.
type shape struct {
	fields []field
	byName map[string]int
}

// shapes are all structs in one operation's request.
type shapes map[reflect.Type]*shape

// add compiles the structs in a JSON value's type, at any depth.
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
		read := readRules(t, f)
		read.widen(f.Type)
		sh.byName[name] = len(sh.fields)
		sh.fields = append(sh.fields, field{name: name, index: index, typ: f.Type, rules: read})
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
		doc: f.Tag.Get("doc"), agent: f.Tag.Get("agent"), scraped: f.Tag.Get("scraped"),
		alone: f.Tag.Get("alone") == "json", trim: f.Tag.Get("trim") == "true",
		must: f.Tag.Get("must") == "true", unique: f.Tag.Get("unique") == "true",
		format: f.Tag.Get("format"), object: f.Tag.Get("object") == "true", values: enumOf(f.Type),
	}
	switch f.Type.Kind() {
	case reflect.Map:
		r.keys = readParts(t, f, "keys", f.Type.Key())
		r.each = readParts(t, f, "each", f.Type.Elem())
	case reflect.Slice:
		r.each = readParts(t, f, "each", f.Type.Elem())
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
	if text := f.Tag.Get("not"); text != "" {
		r.not = strings.Split(text, ",")
	}
	if text := f.Tag.Get("unlike"); text != "" {
		r.unlike = regexp.MustCompile(text)
	}
	if text := f.Tag.Get("pattern"); text != "" {
		r.pattern = regexp.MustCompile(text)
	}
	if name := f.Tag.Get("form"); name != "" {
		pattern, says, known := formOf(name)
		if !known || r.pattern != nil {
			panic(fmt.Sprintf("operation: %s.%s: no form %q, or a pattern beside it", t, f.Name,
				name))
		}
		r.pattern, r.says = regexp.MustCompile(pattern), says
	}
	if r.code != "" && !fault.Known(r.code) {
		panic(fmt.Sprintf("operation: %s.%s: no such code %q", t, f.Name, r.code))
	}
	return r
}

// problems collects the faults of one request, at most maxProblems.
type problems struct {
	list    fault.List
	invalid fault.Code // for faults without a code of their own
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

// check checks a decoded value against its rules. It clamps values in place.
func (r *rules) check(v reflect.Value, path string, p *problems) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64, reflect.Int32:
		if slices.Contains(r.not, strconv.FormatInt(v.Int(), 10)) {
			p.add(r.code, path, "must not be %d", v.Int())
		}
		r.bounds(float64(v.Int()), path, "", p)
		if r.clamp != nil && v.Int() > *r.clamp {
			v.SetInt(*r.clamp)
		}
	case reflect.Uint, reflect.Uint64, reflect.Uint32:
		r.bounds(float64(v.Uint()), path, "", p)
	case reflect.Float64:
		r.bounds(v.Float(), path, "", p)
	case reflect.String:
		r.checkText(v.String(), path, p)
	case reflect.Bool:
		if r.must && !v.Bool() {
			p.add(r.code, path, "must be true")
		}
	case reflect.Slice, reflect.Map:
		if !readsJSON(v.Type()) {
			r.bounds(float64(v.Len()), path, " items", p)
			r.checkParts(v, path, p)
		}
	}
}

// checkParts checks the items of an array or the members of a map against their rules.
func (r *rules) checkParts(v reflect.Value, path string, p *problems) {
	if v.Kind() == reflect.Map {
		if r.keys == nil && r.each == nil {
			return
		}
		names := v.MapKeys()
		slices.SortFunc(names,
			func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, name := range names {
			at := join(path, name.String())
			if r.keys != nil {
				r.keys.check(name, at, p)
			}
			if r.each != nil {
				r.each.check(v.MapIndex(name), at, p)
			}
		}
		return
	}
	seen := map[any]bool{}
	for i := range v.Len() {
		item := v.Index(i)
		at := fmt.Sprintf("%s[%d]", path, i)
		if r.each != nil {
			r.each.check(item, at, p)
		}
		if !r.unique {
			continue
		}
		if key := item.Interface(); seen[key] {
			p.add(r.code, at, "is there already")
		} else {
			seen[key] = true
		}
	}
}

func (r *rules) checkText(text, path string, p *problems) {
	if allowed := slices.Concat(r.enum, r.values); len(allowed) > 0 {
		if !slices.Contains(allowed, text) {
			p.add(r.code, path, "must be one of %s", strings.Join(allowed, ", "))
		}
		return
	}
	measured := text
	if r.trim {
		measured = strings.TrimSpace(text)
	}
	if !r.bounds(float64(utf8.RuneCountInString(measured)), path, " characters", p) {
		return
	}
	switch {
	case slices.Contains(r.not, text):
		p.add(r.code, path, "must be none of %s", strings.Join(r.not, ", "))
	case r.unlike != nil && r.unlike.MatchString(text):
		p.add(r.code, path, "must not match %s", r.unlike)
	case r.pattern == nil || r.pattern.MatchString(text):
	case r.says != "":
		p.add(r.code, path, "%s", r.says)
	default:
		p.add(r.code, path, "must match %s", r.pattern)
	}
}

// bounds reports a number outside min and max, and says whether it is within.
func (r *rules) bounds(n float64, path, unit string, p *problems) bool {
	format := func(f float64) string {
		number := strconv.FormatFloat(f, 'f', -1, 64)
		if f == 1 {
			return number + strings.TrimSuffix(unit, "s")
		}
		return number + unit
	}
	switch {
	case r.min != nil && n < *r.min:
		p.add(r.code, path, "must be at least %s", format(*r.min))
	case r.max != nil && n > *r.max:
		p.add(r.code, path, "must be at most %s", format(*r.max))
	default:
		return true
	}
	return false
}
