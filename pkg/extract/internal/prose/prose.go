// Package prose owns the text of an article: the paragraphs that a page is about, without anything
// beside and between them. The library go-readability finds them, as browsers' reader views do.
// This package bounds its work. The caller decides which field the text belongs to.
package prose

import (
	"net/url"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
)

// Article is the article of a page. It is empty if there is none.
type Article struct {
	Text   string // its paragraphs, separated by line breaks
	Lead   string // the page's description, if readers see it, too
	Byline string // the author as the page names it
	Sure   bool   // it is long enough that the page is hardly about anything else
}

// Bounds of a page. The library walks it up to four times, and visits each element once for each of
// its ancestors.
const (
	maxElements = 10_000
	maxLevels   = 100
	maxVisits   = 20 * maxElements // elements, each counted once per ancestor
	maxText     = 1 << 20          // bytes of all texts
	maxNames    = 2 << 20          // bytes of all classes and ids
)

// Read finds the article of a page; heading is nil if there is none. The page's description becomes
// part of the text if readers see it, too. The tree is not changed. Pages of more than 10,000
// elements, 1 MiB of text, or 2 MiB of classes and ids have no article.
func Read(root, heading *html.Node, pageURL string, descriptions ...string) Article {
	base, err := url.Parse(pageURL)
	if err != nil || !isBounded(root) {
		return Article{}
	}
	parser := readability.NewParser()
	sure := parser.CheckDocument(root)
	parser.DisableJSONLD = true // the caller has the stated data
	parser.KeepClasses = true   // trim needs them
	found, err := parser.ParseDocument(root, base)
	if err != nil || found.Node == nil {
		return Article{}
	}
	trim(found.Node)
	var rendered strings.Builder
	if err := found.RenderText(&rendered); err != nil {
		return Article{}
	}
	text := strings.TrimSpace(Visible(rendered.String()))
	if called := calledText(root); len(called)*2 > len(text)*3 || len(called) > len(text) &&
		isElsewhere(called, text) {
		text = called // the library lost some of it, or found another block
	} else {
		text = lead(root, heading, text) + text
	}
	leads := ""
	for _, description := range descriptions {
		if leads == "" {
			leads = described(root, description)
		}
	}
	if leads != "" && !strings.Contains(plain(text), leads[:startsWith]) {
		text = leads + "\n\n" + text
	}
	return Article{Text: text, Lead: leads, Byline: found.Byline(), Sure: sure}
}

func isBounded(root *html.Node) bool {
	elements, visits, text, names := 0, 0, 0, 0
	var visit func(n *html.Node, level int) bool
	visit = func(n *html.Node, level int) bool {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch c.Type {
			case html.TextNode:
				text += len(c.Data)
			case html.ElementNode:
				elements++
				visits += level
				for _, a := range c.Attr {
					if a.Key == "class" || a.Key == "id" {
						names += len(a.Val)
					}
				}
			}
			if elements > maxElements || visits > maxVisits || text > maxText ||
				names > maxNames || level > maxLevels || !visit(c, level+1) {
				return false
			}
		}
		return true
	}
	return visit(root, 0)
}
