// Package utf8text owns the one rule for text that is not UTF-8, and that for characters that hide.
// Before encoding, each run of invalid bytes becomes U+FFFD, since decoders refuse such bytes. No
// text that a site or a node sends may become unreadable. For the same reason, text is cut only
// between characters.
package utf8text

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// replacement takes the place of bytes that are not UTF-8.
const replacement = "\ufffd"

// ellipsis ends a text that was cut.
const ellipsis = "…"

// Hides says whether a character is invisible and may deceive whoever reads a text (decision 50).
// Control characters do, and those that override or isolate the direction of writing.
func Hides(r rune) bool {
	return unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// HidesInText is Hides for texts of several lines, whose tabs and line breaks hide nothing.
func HidesInText(r rune) bool { return Hides(r) && r != '\n' && r != '\t' && r != '\r' }

// CutName returns the beginning of a name, at most most characters. It ends with a whole word if
// one ends in the second half.
func CutName(name string, most int) string {
	if len(name) <= most { // in bytes
		return name
	}
	chars := []rune(name)
	if len(chars) <= most {
		return name
	}
	end := most
	for end > most/2 && !isBetweenWords(chars[end-1]) && !isBetweenWords(chars[end]) {
		end--
	}
	if end == most/2 {
		end = most // one long word
	}
	return strings.TrimRightFunc(string(chars[:end]), isBetweenWords)
}

func isBetweenWords(r rune) bool { return unicode.IsSpace(r) || r == '_' || r == '-' }

// CutText returns text with at most most bytes, which is 3 or more. A longer text is cut between
// two characters, and ends with "…".
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

// MendText returns value itself if all its text is UTF-8, and otherwise a mended copy. It ignores
// byte slices and unexported fields. Values must be trees. If two keys of a map become equal, one
// of their values is kept.
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

// holdsText says whether values of a type may contain text. It saves walking long lists of numbers.
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

// isMapBroken says whether a map has text to mend. Most maps have none, and need no copy.
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
