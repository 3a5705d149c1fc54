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

// youngTables are those that version 1 had not: their records are made by commands of later versions alone.
var youngTables = []string{"undone", "revoked"}

// TestVersionOneStaysAsItIs holds tables and records against what the release before versions had: whatever is new says since
// which version it is there (package command). The list is never changed.
func TestVersionOneStaysAsItIs(t *testing.T) {
	got := codectest.Members(reflect.TypeFor[savedRun](), 1)
	for name, maker := range decoders() {
		if !slices.Contains(youngTables, name) {
			got = append(append(got, "table "+name), codectest.Members(reflect.TypeOf(maker()), 1)...)
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
