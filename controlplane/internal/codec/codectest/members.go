package codectest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Members lists the encoded members of all structs that a type contains, including itself. Each
// line has the struct's type, the member's key and the value's type. It leaves out members tagged
// since:"N" with N above version.
func Members(t reflect.Type, version int) []string {
	seen, lines := map[reflect.Type]bool{}, []string{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(t.Elem())
			return
		case reflect.Map:
			walk(t.Key())
			walk(t.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[t] || !strings.HasPrefix(t.PkgPath(), "shoal.dev/") {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			field := t.Field(i)
			key, _, _ := strings.Cut(field.Tag.Get("cbor"), ",")
			since := 1
			_, _ = fmt.Sscan(field.Tag.Get("since"), &since) // none: 1
			if !field.IsExported() || key == "-" || since > version {
				continue
			}
			if key == "" {
				key = field.Name
			}
			lines = append(lines, fmt.Sprintf("%s %s %s", t, key, field.Type))
			walk(field.Type)
		}
	}
	walk(t)
	slices.Sort(lines)
	return lines
}
