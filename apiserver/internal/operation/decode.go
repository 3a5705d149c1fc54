package operation

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

var (
	idType   = reflect.TypeFor[ids.ID]()
	rawType  = reflect.TypeFor[json.RawMessage]()
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType = reflect.TypeFor[json.Unmarshaler]()
)

func readsText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textType) }
func readsJSON(t reflect.Type) bool { return reflect.PointerTo(t).Implements(jsonType) }

// decodeText sets v from the text of a path segment, query parameter or header. Structs, maps and
// raw JSON are read as JSON.
func (s shapes) decodeText(text string, v reflect.Value, r *rules, path string, p *problems) {
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		v.Set(reflect.New(t.Elem()))
		s.decodeText(text, v.Elem(), r, path, p)
		return
	}
	switch {
	case readsText(t):
		s.setText(text, v, r, path, p)
		return
	case t.Kind() == reflect.String:
		v.SetString(text)
	case t.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			p.add(r.code, path, "must be true or false")
			return
		}
		v.SetBool(text == "true")
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, t.Bits())
		// Out of range, n is the type's nearest number, which the rules refuse or clamp.
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			p.add(r.code, path, "must be an integer")
			return
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, t.Bits())
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			p.add(r.code, path, "must be an integer of at least 0")
			return
		}
		v.SetUint(n)
	default:
		s.decodeTextAsJSON([]byte(text), v, r, path, p)
		return
	}
	r.check(v, path, p)
}

// decodeTextAsJSON decodes JSON in a parameter, within the bounds of a body.
func (s shapes) decodeTextAsJSON(data []byte, v reflect.Value, r *rules, path string, p *problems) {
	if err := checkSyntax(data); err != nil {
		var beyond *boundError
		if errors.As(err, &beyond) {
			p.add(r.code, path, "%v", err)
			return
		}
		p.add(r.code, path, "must be valid JSON: %v", err)
		return
	}
	s.decodeJSON(data, v, r, path, p)
}

func (s shapes) setText(text string, v reflect.Value, r *rules, path string, p *problems) {
	err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	switch {
	case v.Type() == idType && err == nil && text != "" && !r.required && v.IsZero():
		// No object has this id. A handler would take it for no id: a filter on it would match
		// everything.
		p.add(fault.InvalidID, path, "must be an id, not all zeros")
	case v.Type() == idType && (err != nil || text == "" && r.required):
		p.add(fault.InvalidID, path, "must be an id of 24 hex digits")
	case err != nil:
		p.add(r.code, path, "%s", reason(err))
	}
}

// reason is the message of a type's own decoder for refused text.
func reason(err error) string {
	if coded := (*fault.Error)(nil); errors.As(err, &coded) {
		return coded.Detail
	}
	return "is malformed"
}

// mark is the byte order mark of UTF-8. Some tools begin every text with it.
const mark = "\xef\xbb\xbf"

// decodeBody reads a whole JSON document, with or without a byte order mark. path names the
// document in faults; "": it has no name.
func (s shapes) decodeBody(data []byte, v reflect.Value, r *rules, path string, p *problems) {
	data = bytes.TrimPrefix(data, []byte(mark))
	if len(bytes.TrimSpace(data)) == 0 {
		p.add(fault.InvalidBody, path, "a JSON body is needed")
		return
	}
	if !utf8.Valid(data) { // the decoder would silently replace invalid bytes
		p.add(fault.InvalidBody, path, "not valid UTF-8")
		return
	}
	if err := checkSyntax(data); err != nil {
		var beyond *boundError
		if errors.As(err, &beyond) {
			p.add(fault.InvalidBody, cmp.Or(path, beyond.member), "%v", err)
			return
		}
		p.add(fault.InvalidBody, path, "not valid JSON: %v", err)
		return
	}
	s.decodeJSON(data, v, r, path, p)
}

// checkSyntax reads all tokens once, so that later decoding can rely on valid JSON. It refuses
// duplicate members, since choosing one of them would be a guess.
func checkSyntax(data []byte) error {
	if !json.Valid(data) {
		var any json.RawMessage
		return json.Unmarshal(data, &any)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	return checkMembers(dec)
}

// maxDepth is how deep the arrays and objects of a body may be nested. Stored and replicated forms
// wrap them in further levels, and allow as many again.
const maxDepth = 32

// boundError says which bound a value exceeds, and in which member of the body.
type boundError struct{ member, said string }

// Error implements error.
func (e *boundError) Error() string { return e.said }

func checkMembers(dec *json.Decoder) error {
	type level struct {
		names map[string]bool // nil in an array
		key   bool            // a name comes next
	}
	var stack []level
	member := "" // "": the body itself
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if beyond := (*json.UnmarshalTypeError)(nil); errors.As(err, &beyond) {
			return &boundError{member, "has a number that is too large"}
		}
		if err != nil {
			return err
		}
		var top *level
		if len(stack) > 0 {
			top = &stack[len(stack)-1]
		}
		if name, isText := token.(string); isText && top != nil && top.names != nil && top.key {
			if len(stack) == 1 {
				member = name
			}
			if top.names[name] {
				return &boundError{member, fmt.Sprintf("member %.100q comes twice", name)}
			}
			if len(top.names) == maxMembers {
				return &boundError{member, fmt.Sprintf("an object has more than %d members",
					maxMembers)}
			}
			top.names[name], top.key = true, false
			continue
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			stack = stack[:len(stack)-1]
			continue
		}
		if top != nil {
			top.key = true
		}
		if len(stack) == maxDepth && (token == json.Delim('{') || token == json.Delim('[')) {
			return &boundError{member, fmt.Sprintf("may be nested at most %d levels deep", maxDepth)}
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{names: map[string]bool{}, key: true})
		case json.Delim('['):
			stack = append(stack, level{})
		}
	}
}

// decodeJSON sets v from a valid JSON value.
func (s shapes) decodeJSON(data []byte, v reflect.Value, r *rules, path string, p *problems) {
	data = bytes.TrimSpace(data)
	t := v.Type()
	if t == rawType {
		if r.object && data[0] != '{' {
			p.add(r.code, path, "must be an object")
			return
		}
		v.SetBytes(slices.Clone(data))
		return
	}
	if string(data) == "null" && (r.required || !readsJSON(t)) { // else the type reads null
		if t.Kind() != reflect.Pointer && r.required {
			p.add(r.code, path, "must not be null")
		}
		return
	}
	if t.Kind() == reflect.Pointer {
		v.Set(reflect.New(t.Elem()))
		s.decodeJSON(data, v.Elem(), r, path, p)
		return
	}
	switch {
	case readsJSON(t):
		if err := json.Unmarshal(data, v.Addr().Interface()); err != nil {
			p.add(r.code, path, "%s", reason(err))
		}
		return
	case readsText(t):
		var text string
		if json.Unmarshal(data, &text) != nil {
			p.add(r.code, path, "must be text")
			return
		}
		s.setText(text, v, r, path, p)
		return
	}
	before := len(p.list)
	switch t.Kind() {
	case reflect.Struct:
		s.decodeObject(data, v, path, p)
		return
	case reflect.Map:
		s.decodeMap(data, v, path, p)
	case reflect.Slice:
		s.decodeArray(data, v, r, path, p)
	default:
		if json.Unmarshal(data, v.Addr().Interface()) != nil && !setWhole(data, v) {
			p.add(r.code, path, "must be %s", kindName(t))
			return
		}
	}
	if len(p.list) == before {
		r.check(v, path, p)
	}
}

// setWhole sets an integer from a number such as 1.0 or 1e3, which is whole as well.
func setWhole(data []byte, v reflect.Value) bool {
	n, err := strconv.ParseFloat(string(data), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > exact {
		return false
	}
	switch {
	case v.CanInt() && !v.OverflowInt(int64(n)):
		v.SetInt(int64(n))
	case v.CanUint() && n >= 0 && !v.OverflowUint(uint64(n)):
		v.SetUint(uint64(n))
	default:
		return false
	}
	return true
}

func (s shapes) decodeObject(data []byte, v reflect.Value, path string, p *problems) {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		p.add("", path, "must be an object")
		return
	}
	shape := s[v.Type()]
	for i := range shape.fields {
		f := &shape.fields[i]
		raw, given := members[f.name]
		delete(members, f.name)
		switch at := join(path, f.name); {
		case f.rules.stamped:
		case given && (f.rules.fallback == nil || f.typ.Kind() == reflect.Pointer ||
			string(raw) != "null"):
			s.decodeJSON(raw, v.FieldByIndex(f.index), &f.rules, at, p)
		default:
			s.absent(v.FieldByIndex(f.index), f, at, p)
		}
	}
	for _, name := range sortedKeys(members) {
		p.add(fault.UnknownField, join(path, name), "there is no such member")
	}
}

// absent handles a field that was not given: it sets the default, or reports a required field.
func (s shapes) absent(v reflect.Value, f *field, path string, p *problems) {
	switch {
	case f.rules.fallback != nil:
		s.decodeText(*f.rules.fallback, v, &f.rules, path, p)
	case f.rules.required:
		p.add(f.rules.code, path, "is required")
	}
}

func (s shapes) decodeMap(data []byte, v reflect.Value, path string, p *problems) {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		p.add("", path, "must be an object")
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(members)))
	for _, name := range sortedKeys(members) {
		value := reflect.New(v.Type().Elem()).Elem()
		if value.Kind() == reflect.Interface {
			_ = json.Unmarshal(members[name], value.Addr().Interface()) // valid JSON fits any type
		} else {
			s.decodeJSON(members[name], value, &rules{required: true}, join(path, name), p)
		}
		v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), value)
	}
}

// maxItems bounds the items of an array without a bound of its own. maxMembers bounds the members
// of any object.
const (
	maxItems   = 10_000
	maxMembers = 10_000
)

// decodeArray counts the items before it decodes them. Decoded, many small items take far more
// memory than the body.
func (s shapes) decodeArray(data []byte, v reflect.Value, r *rules, path string, p *problems) {
	most := maxItems
	if r.max != nil {
		most = int(*r.max)
	}
	if countItems(data) > most {
		p.add(r.code, path, "must be at most %d items", most)
		return
	}
	if v.Type().Elem().Kind() == reflect.String &&
		json.Unmarshal(data, v.Addr().Interface()) == nil &&
		!bytes.Contains(data, []byte("null")) {
		return
	}
	v.SetZero()
	var items []json.RawMessage
	if json.Unmarshal(data, &items) != nil {
		p.add("", path, "must be an array")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		s.decodeJSON(item, v.Index(i), &rules{required: true}, path+"["+strconv.Itoa(i)+"]", p)
	}
}

// countItems counts the items of a valid JSON array; for other values the result means nothing.
func countItems(data []byte) int {
	commas, depth, inText, empty := 0, 0, false, true
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText, empty = !inText, false
		case inText:
		case c == '[' || c == '{':
			empty = empty && depth == 0
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			commas++
		case c > ' ':
			empty = false
		}
	}
	if empty {
		return 0
	}
	return commas + 1
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	}
	if strings.HasPrefix(t.Kind().String(), "uint") {
		return "an integer of at least 0"
	}
	return "an integer"
}
