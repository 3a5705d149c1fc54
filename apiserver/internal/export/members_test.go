package export_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/apiserver/internal/export"
)

// A file without members is the file of rows that never had them, whatever its format.
func TestMembersThatAreLeftOut(t *testing.T) {
	disks := map[string]export.Disk{"none": nil, "on disk": &disk{t.TempDir(), 1 << 40},
		"full": &disk{t.TempDir(), 0}}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "late", "=d", `e, "f"`, "_g", "ü", ""})
		value := rapid.SampledFrom([]any{nil, true, 1, 2.5, "x", "=1", []int{1}, "two\nlines"})
		docs := rapid.SliceOfN(rapid.MapOf(name, value), 0, 8).Draw(rt, "docs")
		without := map[string]bool{}
		for _, left := range rapid.SliceOf(name).Draw(rt, "without") {
			without[left] = true
		}
		first := []string{"a", "b", "none"}
		lean := []string{}
		for _, left := range first {
			if !without[left] {
				lean = append(lean, left)
			}
		}
		var rows, want []string
		for _, doc := range docs {
			rows = append(rows, encoded(rt, doc))
			for left := range without {
				delete(doc, left)
			}
			want = append(want, encoded(rt, doc))
		}
		for _, format := range []export.Format{export.CSV, export.JSONL, export.XLSX,
			export.Parquet} {
			for place, d := range disks {
				o := export.Options{Format: format, First: first, Disk: d,
					Members: export.Members{Without: without}}
				got := write(t, o, rows...)
				o.First, o.Members = lean, export.Members{}
				if got != write(t, o, want...) {
					rt.Fatalf("%s, %s: %q differs from the file of %q", format, place, got, want)
				}
			}
		}
	})
}

// Which members a row has follows from their decoded keys, and others stay as they are written.
func TestMembersOf(t *testing.T) {
	const row = `{"\u0061":1, "b" : {"a":[1]},"a":2,"c":1.50}`
	for want, kept := range map[string]export.Members{
		row:                           {},
		`{"b" :{"a":[1]},"c":1.50}`:   {Without: map[string]bool{"a": true, "none": true}},
		`{}`:                          {Without: map[string]bool{"a": true, "b": true, "c": true}},
		`{"c":1.50,"a":2}`:            {Fields: []string{"c", "a", "none"}},
		`{"\u0061":1,"a":2,"c":1.50}`: {Without: map[string]bool{"b": true}},
	} {
		if got, err := kept.Of(json.RawMessage(row)); err != nil || string(got) != want {
			t.Errorf("%v: %s, %v, want %s", kept, got, err, want)
		}
	}
	for _, kept := range []export.Members{{Fields: []string{"a"}},
		{Without: map[string]bool{"a": true}}} {
		if got, err := kept.Of(json.RawMessage(`{"a":1,`)); err == nil {
			t.Errorf("%v: half a row is %s", kept, got)
		}
	}
}

func encoded(t rapid.TB, doc map[string]any) string {
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(fmt.Errorf("a row: %w", err))
	}
	return string(text)
}
