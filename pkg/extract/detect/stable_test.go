package detect

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// The same rules as regular expressions, which are shorter.
var (
	identifier = regexp.MustCompile(`^-?[a-zA-Z_][a-zA-Z0-9_-]*$`)
	generated  = regexp.MustCompile(`[0-9]{3,}|^(css|sc|jss|emotion|svelte|ember|data-v|ng|tw)-` +
		`|^_|__?[a-zA-Z0-9]*[0-9][a-zA-Z0-9]*$|^[a-z]{1,2}[0-9]+[a-z0-9]*$`)
	mixed = regexp.MustCompile(`^[a-z]{1,3}[A-Z][a-zA-Z]{2,5}$|[a-zA-Z][0-9][a-zA-Z]`)
)

// FuzzStable compares the byte scans with the regular expressions.
func FuzzStable(f *testing.F) {
	for _, name := range []string{"", "price", "-a", "--a", "-1", "post-123", "post-12", "a1b",
		"ab12cd", "abc12", "css-1x", "_a", "block__1x2", "block_a-1", "block_", "scBdV", "scBdVaJ",
		"aBcd", "abcdEfg", "h2", "h2a", "é", "in", "data-v-1", "{a", "@a", "Z9z"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got, want := isIdentifier(name), identifier.MatchString(name); got != want {
			t.Fatalf("identifier %q: %v", name, got)
		}
		if !isIdentifier(name) {
			return
		}
		if got, want := isGenerated(name), generated.MatchString(name); got != want {
			t.Errorf("generated %q: %v", name, got)
		}
		if got, want := isMixed(name), mixed.MatchString(name); got != want {
			t.Errorf("mixed %q: %v", name, got)
		}
		stable := len(name) <= 60 && !generated.MatchString(name) && !mixed.MatchString(name) &&
			!slices.Contains(states, name)
		if isStable(name) != stable {
			t.Errorf("stable %q: %v", name, !stable)
		}
	})
}

// TestClassesAreBounded: each class is kept once, up to the bound.
func TestClassesAreBounded(t *testing.T) {
	var names []string
	for i := range 2 * maxClasses {
		names = append(names, strings.Repeat("a", i%50+1)+strings.Repeat("-b", i/50))
	}
	n := &html.Node{Attr: []html.Attribute{{Key: "class",
		Val: names[0] + " " + strings.Join(names, "\n")}}}
	if got := classesOf(n); !slices.Equal(got, names[:maxClasses]) {
		t.Errorf("%d classes: %q", len(got), got)
	}
}
