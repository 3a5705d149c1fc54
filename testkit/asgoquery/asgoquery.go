// Package asgoquery reads a page's fields with goquery, as the reference for streaming. It evens
// out the differences between goquery, browsers, and the pages' own spelling.
package asgoquery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/model"
)

// Page parses a page with goquery and adapts it to ours. It drops the contents of templates, lowers
// the case of names, and names attributes of other namespaces as the page writes them. The error is
// that of x/net/html.
func Page(page string) (*goquery.Document, error) {
	root, err := html.Parse(strings.NewReader(strings.TrimPrefix(page, "\ufeff")))
	if err != nil {
		return nil, fmt.Errorf("x/net/html: %w", err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		n.Data = strings.ToLower(n.Data)
		for i, a := range n.Attr {
			if a.Namespace != "" {
				a.Key = a.Namespace + ":" + a.Key
			}
			n.Attr[i] = html.Attribute{Key: strings.ToLower(a.Key), Val: a.Val}
		}
		if n.Data == "template" {
			for n.FirstChild != nil {
				n.RemoveChild(n.FirstChild)
			}
		}
	}
	return goquery.NewDocumentFromNode(root), nil
}

// Field returns the value of a SINGLE_PRODUCT field: nil, a string or a bool.
func Field(doc *goquery.Document, f model.Field) any {
	found := doc.Find(f.Selector).First()
	switch {
	case f.Kind == model.Exists:
		return found.Length() > 0
	case found.Length() == 0:
	case f.Kind == model.Text:
		return Text(found.Nodes[0])
	default:
		if v, ok := found.Attr(f.Attr); ok {
			return string([]rune(v)) // each byte that is not UTF-8 becomes U+FFFD
		}
	}
	return nil
}

// hidden are the elements whose contents browsers do not show as text.
var hidden = []string{"script", "style", "template", "noscript", "iframe", "noembed", "noframes"}

// Text is goquery's text without hidden elements, with white space collapsed.
func Text(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := range n.ChildNodes() {
			switch {
			case c.Type == html.TextNode:
				b.WriteString(c.Data)
			case c.Type == html.ElementNode && slices.Contains(hidden, c.Data):
			default:
				walk(c)
			}
		}
	}
	walk(n)
	return string([]rune(strings.Join(strings.Fields(b.String()), " ")))
}
