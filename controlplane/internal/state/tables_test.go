package state

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestKeysTellPartsApart: zero bytes within names must not make one customer's key equal another's.
func TestKeysTellPartsApart(t *testing.T) {
	if bytes.Equal(key("a\x00b", "c"), key("a", "b\x00c")) ||
		bytes.Equal(key("a\x00\x01b"), key("a", "b")) {
		t.Fatal("different parts have one key")
	}
	text := rapid.StringOf(rapid.SampledFrom([]rune{0, 1, 'a', 'b', 0xFF}))
	rapid.Check(t, func(t *rapid.T) {
		a, b, c, d := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c"), text.Draw(t, "d")
		got := bytes.Compare(key(a, b), key(c, d))
		if want := cmp.Or(cmp.Compare(a, c), cmp.Compare(b, d)); got != want {
			t.Fatalf("keys of (%q, %q) and (%q, %q) compare as %d, want %d", a, b, c, d, got, want)
		}
		if bytes.HasPrefix(key(c, d), key(a)) != (a == c) {
			t.Fatalf("the key of %q as a prefix of that of (%q, %q)", a, c, d)
		}
	})
}

// TestEveryTableIsListed: a table that is defined but not listed would be missing in snapshots.
func TestEveryTableIsListed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	defined := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		defined += strings.Count(string(source), "Table = "+"define(")
	}
	listed := map[string]bool{}
	for _, table := range tables() {
		listed[table.name] = true
	}
	if defined != len(listed) {
		t.Errorf("%d tables are defined, %d listed", defined, len(listed))
	}
}

// ofCustomer reports whether records of a type name a customer, or something a customer owns.
func ofCustomer(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return ofCustomer(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if slices.Contains([]string{"Customer", "Account", "Group", "Scraper", "Job", "List",
				"Webhook", "Email"}, field.Name) || ofCustomer(field.Type) {
				return true
			}
		}
	}
	return false
}

// TestEveryTableHasABound: each table bounds what a customer can store, as the architecture says.
func TestEveryTableHasABound(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Bounds of the state\n")
	if !found {
		t.Fatal("the architecture says no bounds of the state")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	bounded, fates := map[string]bool{}, map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, name := range strings.Split(cells[1], ",") {
			fates[strings.Trim(name, " `")] = strings.TrimSpace(cells[4])
			bounded[strings.Trim(name, " `")] = !slices.ContainsFunc(cells[2:6],
				func(cell string) bool { return strings.TrimSpace(cell) == "" })
		}
	}
	for _, table := range tables() {
		if owned := ofCustomer(reflect.TypeOf(table.empty())); owned && fates[table.name] == "–" {
			t.Errorf("table %s has a customer's records, and a removal passes over it", table.name)
		}
		if !bounded[table.name] {
			t.Errorf("table %s has no bound, or does not say what a removal or an export does", table.name)
		}
		delete(bounded, table.name)
	}
	for name := range bounded {
		t.Errorf("there is no table %s", name)
	}
}
