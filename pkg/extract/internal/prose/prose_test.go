package prose

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestBounds: pages that would cost too much have no article, and the tree stays as it is.
func TestBounds(t *testing.T) {
	paragraph := "<p>" + strings.Repeat("The bridge has opened, and many came. ", 20) + "</p>"
	for name, c := range map[string]struct {
		page string
		read bool
	}{
		"an article": {strings.Repeat(paragraph, 5), true},
		"many elements": {strings.Repeat(paragraph, 5) +
			strings.Repeat("<b></b>", maxElements), false},
		"much text": {strings.Repeat(paragraph, maxText/len(paragraph)+99), false},
		"nested":    {strings.Repeat("<div>", maxLevels) + paragraph, false},
		"a menu":    {"<ul><li><a href=/a>One</a></ul>", false},
	} {
		root, err := html.Parse(strings.NewReader(c.page))
		if err != nil {
			t.Fatal(err)
		}
		var before, after strings.Builder
		if err := html.Render(&before, root); err != nil {
			t.Fatal(err)
		}
		got := Read(root, "https://wire.example/a")
		if err := html.Render(&after, root); err != nil {
			t.Fatal(err)
		}
		if (got.Text != "" && got.Sure) != c.read {
			t.Errorf("%s: %.60q, sure %t", name, got.Text, got.Sure)
		}
		if before.String() != after.String() {
			t.Errorf("%s: the tree is another one", name)
		}
	}
}
