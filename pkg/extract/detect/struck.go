package detect

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// through is what style sheets call a line through a text, and what utility classes call it, too.
const through = "line-through"

// struckThrough selects elements whose own style strikes them.
const struckThrough = `[style*="` + through + `"]`

// struckBy returns a selector of what strikes an element: its name, a class or its style. It is ""
// if nothing does.
func struckBy(n *html.Node) string {
	switch n.Data {
	case "del", "s", "strike":
		return n.Data
	}
	for class := range strings.FieldsSeq(tree.Attr(n, "class")) {
		if strings.HasSuffix(class, through) && isIdentifier(class) {
			return "." + class
		}
	}
	if strings.Contains(tree.Attr(n, "style"), through) {
		return struckThrough
	}
	return ""
}

func isStruck(n *html.Node) bool { return struckBy(n) != "" }

// unstruck returns compounds that match elements of one name and not the struck ones beside them.
// Nothing else may tell two prices apart.
func unstruck(nodes []*html.Node) []string {
	var list []string
	for _, n := range nodes {
		for _, beside := range [...]*html.Node{elementBefore(n), elementAfter(n)} {
			if beside == nil || beside.Data != n.Data {
				continue
			}
			by := struckBy(beside)
			if css := n.Data + ":not(" + by + ")"; by != "" && !slices.Contains(list, css) {
				list = append(list, css)
			}
		}
	}
	return list
}

// elementAfter returns the next sibling that is an element, or nil.
func elementAfter(n *html.Node) *html.Node {
	for n = n.NextSibling; n != nil && n.Type != html.ElementNode; n = n.NextSibling {
	}
	return n
}
