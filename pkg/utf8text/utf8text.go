// Package utf8text owns the one rule for text that is not UTF-8: each run of bytes that are none
// becomes U+FFFD before anything is encoded. Decoders refuse such text, and what a site or a node
// sends must not be what no reader accepts. So text is cut between its characters, too.
package utf8text

import (
	"reflect"
	"strings"
	"unicode/utf8"
)

// replacement is put in place of what is not UTF-8.
const replacement = "\ufffd"

// ellipsis ends a text that was cut.
const ellipsis = "…"

// CutText is a text of at most so many bytes, 3 or more. One that is longer is cut at a character,
// and ends with "…".
func CutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// MendText returns value when all text in it is UTF-8, and else a copy in which it is. The value is
// not changed. Bytes and what is not exported are no text. Values must be trees; two keys of a map
// that become one keep one of their values.
func MendText(value any) any {
	v := reflect.ValueOf(value)
	if !v.IsValid() {
		return value
	}
	if mended, changed := mend(v); changed {
		return mended.Interface()
	}
	return value
}

func mend(v reflect.Value) (mended reflect.Value, changed bool) {
	switch v.Kind() {
	case reflect.String:
		if utf8.ValidString(v.String()) {
			return v, false
		}
		return reflect.ValueOf(strings.ToValidUTF8(v.String(), replacement)).Convert(v.Type()), true
	case reflect.Pointer, reflect.Interface:
		return mendTarget(v)
	case reflect.Struct:
		return mendParts(v, v.NumField(), v.Field)
	case reflect.Slice, reflect.Array:
		if !holdsText(v.Type().Elem()) {
			return v, false
		}
		return mendParts(v, v.Len(), v.Index)
	case reflect.Map:
		return mendMap(v)
	}
	return v, false
}

// holdsText says whether values of a type may hold text: it spares long lists of numbers a walk.
func holdsText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Map:
		return true
	case reflect.Slice, reflect.Array:
		return holdsText(t.Elem())
	}
	return false
}

func mendTarget(v reflect.Value) (reflect.Value, bool) {
	if v.IsNil() {
		return v, false
	}
	target, changed := mend(v.Elem())
	if !changed {
		return v, false
	}
	if v.Kind() == reflect.Interface {
		return target, true
	}
	copied := reflect.New(v.Type().Elem())
	copied.Elem().Set(target)
	return copied, true
}

// mendParts mends the fields of a struct, or the elements of a slice or an array.
func mendParts(v reflect.Value, count int, part func(int) reflect.Value) (reflect.Value, bool) {
	var copied reflect.Value
	for i := range count {
		from := part(i)
		if !from.CanInterface() {
			continue // a field that is not exported
		}
		mended, changed := mend(from)
		if !changed {
			continue
		}
		if !copied.IsValid() {
			copied = shallowCopy(v)
		}
		if v.Kind() == reflect.Struct {
			copied.Field(i).Set(mended)
		} else {
			copied.Index(i).Set(mended)
		}
	}
	if copied.IsValid() {
		return copied, true
	}
	return v, false
}

func shallowCopy(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Slice {
		copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(copied, v)
		return copied
	}
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	return copied
}

func mendMap(v reflect.Value) (reflect.Value, bool) {
	if v.IsNil() || !holdsText(v.Type().Key()) && !holdsText(v.Type().Elem()) || !isMapBroken(v) {
		return v, false
	}
	copied := reflect.MakeMapWithSize(v.Type(), v.Len())
	for members := v.MapRange(); members.Next(); {
		key, _ := mend(members.Key())
		value, _ := mend(members.Value())
		copied.SetMapIndex(key, value)
	}
	return copied, true
}

// isMapBroken says whether there is text to mend in a map. Most have none, and need no copy.
func isMapBroken(v reflect.Value) bool {
	for members := v.MapRange(); members.Next(); {
		if _, changed := mend(members.Key()); changed {
			return true
		}
		if _, changed := mend(members.Value()); changed {
			return true
		}
	}
	return false
}
