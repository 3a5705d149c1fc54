package state

import (
	"reflect"
	"testing"

	"shoal.dev/shoal/controlplane/internal/codec/codectest"
)

// TestReleasedVersionsStayAsTheyAre compares tables and records with those of each released
// version.
func TestReleasedVersionsStayAsTheyAre(t *testing.T) {
	codectest.CheckReleased(t, func(version int) []string {
		got := codectest.Members(reflect.TypeFor[savedRun](), version)
		for _, table := range tables() {
			if int(table.since) <= version {
				got = append(append(got, "table "+table.name),
					codectest.Members(reflect.TypeOf(table.empty()), version)...)
			}
		}
		return got
	})
}
