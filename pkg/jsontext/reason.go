package jsontext

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"time"
)

// Reason says in JSON's terms why encoding/json has refused a document: which member is wrong ("":
// the whole document), and what is wrong with it. It names no type of the program.
func Reason(err error) (member, said string) {
	var mistyped *json.UnmarshalTypeError
	var malformed *json.SyntaxError
	unknown, isUnknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case errors.As(err, &mistyped):
		given, _, _ := strings.Cut(mistyped.Value, " ") // after a number that does not fit
		return mistyped.Field, "must be " + nameOf(mistyped.Type, given)
	case errors.As(err, &malformed):
		return "", "is not valid JSON: " + malformed.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "", "is not valid JSON: it ends too early"
	case isUnknown:
		return strings.Trim(unknown, `"`), "is not known"
	}
	return "", "cannot be read"
}

// nameOf returns the JSON name of a type. For a number that does not fit it says so.
func nameOf(t reflect.Type, given string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Float32, reflect.Float64:
		if given == "number" {
			return "a smaller number"
		}
		return "a number"
	case reflect.Struct, reflect.Map, reflect.Interface:
		if t == reflect.TypeFor[time.Time]() {
			return "a time"
		}
		return "an object"
	}
	return "a whole number that fits"
}
