// Package asgoquery reads a page's fields as goquery does: what streaming has to give, too. It owns
// what goquery and browsers, or the pages' own spelling, see differently.
package asgoquery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/model"
)

// Page is a page as goquery sees it, made alike to ours. It has no contents of templates, names in
// lower case, and attributes of another namespace under the names that the page writes. The error
// is that of x/net/html.
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

// Field is what a field of SINGLE_PRODUCT holds: nil, a string or a bool.
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
			return string([]rune(v)) // bytes that are not UTF-8 are U+FFFD, each
		}
	}
	return nil
}

// hidden are the elements whose contents no browser shows as text.
var hidden = []string{"script", "style", "template", "noscript", "iframe", "noembed", "noframes"}

// Text is goquery's text without that of elements that browsers never show, white space collapsed.
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
