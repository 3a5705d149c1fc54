package codectest

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// CheckReleased compares what each released version has with its list, testdata/version-N. Released
// logs and snapshots stay readable, so a list never changes. members returns what a version has.
func CheckReleased(t *testing.T, members func(version int) []string) {
	t.Helper()
	lists, err := filepath.Glob(filepath.Join("testdata", "version-*"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("no lists of released versions: %v", err)
	}
	for _, list := range lists {
		version := 0
		if _, err := fmt.Sscanf(filepath.Base(list), "version-%d", &version); err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		listed, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		got, known := members(version), strings.Split(strings.TrimSpace(string(listed)), "\n")
		slices.Sort(got)
		for _, line := range slices.Compact(got) {
			if !slices.Contains(known, line) {
				t.Errorf("%s: version %d has not got it; say since which version it is there "+
					"(package command)", line, version)
			}
		}
		for _, line := range known {
			if !slices.Contains(got, line) {
				t.Errorf("%s: version %d has it, and must stay readable", line, version)
			}
		}
	}
}

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
