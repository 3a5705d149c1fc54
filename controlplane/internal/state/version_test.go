package state

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/codec/codectest"
)

// TestVersionOneStaysAsItIs compares tables and records with those of the first release. Everything
// newer must name its version (package command). The list must never change.
func TestVersionOneStaysAsItIs(t *testing.T) {
	got := codectest.Members(reflect.TypeFor[savedRun](), 1)
	for _, table := range tables() {
		if table.since == 1 {
			got = append(append(got, "table "+table.name),
				codectest.Members(reflect.TypeOf(table.empty()), 1)...)
		}
	}
	slices.Sort(got)
	got = slices.Compact(got)
	listed, err := os.ReadFile(filepath.Join("testdata", "version-1"))
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSpace(string(listed)), "\n")
	for _, line := range got {
		if !slices.Contains(known, line) {
			t.Errorf("%s: it is new; say since which version it is there (package command)", line)
		}
	}
	for _, line := range known {
		if !slices.Contains(got, line) {
			t.Errorf("%s: it was in version 1, whose snapshots must stay readable", line)
		}
	}
}
