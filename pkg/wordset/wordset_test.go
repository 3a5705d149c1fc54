package wordset

import (
	"maps"
	"testing"
)

func TestOf(t *testing.T) {
	for list, want := range map[string]map[string]bool{
		"":                           {},
		" \t\n":                      {},
		"a b a":                      {"a": true, "b": true},
		"\n\té ne\u0301 .com\u00a0x": {"é": true, "ne\u0301": true, ".com": true, "x": true},
		"Save save":                  {"Save": true, "save": true},
	} {
		if got := Of(list); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", list, got, want)
		}
	}
}
