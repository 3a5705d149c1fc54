package client

import (
	"strings"
	"testing"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/profile"
)

// The reason for holding a run back has a bounded length, whatever its fields are called.
func TestOdditiesInWords(t *testing.T) {
	if got := inWords(nil); got != "" {
		t.Errorf("nothing is odd, in words: %q", got)
	}
	odd := []profile.Oddity{{Aspect: profile.RowCount, Text: "2 rows"}}
	for range toldOddities {
		odd = append(odd, profile.Oddity{Aspect: profile.Values, Text: "high",
			Field: "a\n\u202e\u200b\u2028" + strings.Repeat("ö", 60) + "\xff"})
	}
	got := inWords(odd)
	if !strings.HasPrefix(got, "2 rows; aö") || !strings.HasSuffix(got, "ö: high; and 1 more") ||
		strings.Contains(got, "\n") || !utf8.ValidString(got) ||
		strings.Count(got, "ö") != 39*(toldOddities-1) {
		t.Errorf("in words: %q", got)
	}
}
