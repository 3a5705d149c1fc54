package operation

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Character classes. blanks are the characters with Unicode's property White_Space.
const (
	controls = `\x00-\x1f\x7f-\x9f`
	// spaces are the blanks that are not control characters
	spaces = `\x20\xa0` + "\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
	blanks = `\x09-\x0d\x85` + spaces
	// plain matches the name of a column that does not begin with an underscore. A filter could not
	// name a column that breaks these rules.
	plain = `(?:[^_$"\\` + controls + blanks + `][^"\\` + controls + `]*|[` + spaces + `][^"\\` +
		controls + `]*[^"\\` + controls + blanks + `][^"\\` + controls + `]*)$`
)

const column = "must have another character than spaces, no control characters, \" or \\, " +
	"and not begin with $"

// Filled is the pattern of texts that are not blank.
func Filled() string {
	pattern, _, _ := formOf("filled")
	return pattern
}

// formOf is the pattern that a tag names, and what to say of a text that does not match.
func formOf(name string) (pattern, says string, known bool) {
	switch name {
	case "line":
		return `^[^` + controls + `]*$`, "must be one line without control characters", true
	case "filled":
		return `[^` + blanks + `]`, "must not be blank", true
	case "filled-line":
		return `^[^` + controls + `]*[^` + controls + blanks + `][^` + controls + `]*$`,
			"must not be blank, and one line without control characters", true
	case "trimmed-line":
		return `^(?:[^` + controls + blanks + `]|[^` + controls + blanks + `][^` + controls +
			`]*[^` + controls + blanks + `])$`, "must be one line, and not begin or end with a space", true
	case "field":
		return `^_*` + plain, column + "; underscores before it do not count", true
	case "named":
		return `[^_]`, "must have another character than _", true
	case "column":
		return `^` + plain, column + " or _", true
	case "day": // or empty
		return `^(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-` +
			`(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-9])))?$`, "must be a day, such as 2026-01-31", true
	case "attribute":
		return `^[^ \x09\x0a\x0c\x0d/>="'<\x00]*$`, "no attribute can have this name", true
	case "web":
		return `^[\x00-\x20]*[Hh][Tt][Tt][Pp][Ss]?:`, "must begin with http:// or https://", true
	}
	return "", "", false
}

// exact is the largest whole number that every reader of JSON reads exactly (RFC 8259, section 6).
const exact = 1<<53 - 1

// widen gives whole numbers the bounds of their type where they have none. Clamped ones need none.
func (r *rules) widen(t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if readsJSON(t) || readsText(t) || r.clamp != nil {
		return
	}
	least, most := -float64(exact), float64(exact)
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
	case reflect.Int32:
		least, most = math.MinInt32, math.MaxInt32
	case reflect.Uint, reflect.Uint64:
		least = 0
	case reflect.Uint32:
		least, most = 0, math.MaxUint32
	default:
		return
	}
	if r.min == nil {
		r.min = &least
	}
	if r.max == nil {
		r.max = &most
	}
}

// readParts reads the rules of items, or of a map's names, which are of type t. The tag is a list
// of name=value pairs between spaces.
func readParts(owner reflect.Type, f reflect.StructField, tag string, t reflect.Type) *rules {
	text := f.Tag.Get(tag)
	if text == "" && enumOf(t) == nil {
		return nil
	}
	var made strings.Builder
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		fmt.Fprintf(&made, "%s:%s ", name, strconv.Quote(value))
	}
	f.Tag, f.Type = reflect.StructTag(made.String()), t
	read := readRules(owner, f)
	return &read
}

// Enumerated is a string type with a fixed set of values. Requests may use no other; answers of
// later versions may.
type Enumerated interface{ Values() []string }

// enumOf is the values of an Enumerated type, nil for others.
func enumOf(t reflect.Type) []string {
	if all, ok := reflect.Zero(t).Interface().(Enumerated); ok && t.Kind() == reflect.String {
		return all.Values()
	}
	return nil
}
