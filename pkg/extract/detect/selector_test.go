package detect

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestLongNamesAreVisits: a long name costs visits for each element inside it.
func TestLongNamesAreVisits(t *testing.T) {
	spent := func(class string) int {
		root, err := html.Parse(strings.NewReader("<div class='" + class + "'>" +
			strings.Repeat("<b class=x></b>", 1_000)))
		if err != nil {
			t.Fatal(err)
		}
		s := newSelectors(root)
		if s.all(".y .x"); s.left < 0 {
			t.Fatal("nothing left")
		}
		return maxVisits - s.left
	}
	short, long := spent("a b"), spent(strings.Repeat("a ", 5_000))
	if short > 20_000 || long < 500_000 {
		t.Errorf("%d visits, %d with a long name", short, long)
	}
}
