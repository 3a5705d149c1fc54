// Package prose owns the text of an article: the paragraphs that a page is about, without what
// stands beside and between them. The library go-readability finds them, as the reader view of
// browsers does. What bounds it is here. Which field the text belongs to is the caller's.
package prose

import (
	"net/url"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
)

// Article is the article of a page. All of it is empty where there is none.
type Article struct {
	Text   string // its paragraphs, divided by line breaks
	Lead   string // what the page says of itself, where readers see it, too
	Byline string // who wrote it, as the page says it
	Sure   bool   // there is so much of it that the page is hardly about anything else
}

// Bounds of a page that is read. The library goes over it up to four times, and over what an
// element holds once for each element around it.
const (
	maxElements = 10_000
	maxLevels   = 100
	maxVisits   = 20 * maxElements // elements within each element, all in all
	maxText     = 1 << 20          // bytes of all its texts
	maxNames    = 2 << 20          // bytes of all its classes and ids
)

// Read finds the article of a page, whose heading is nil where it has none. What the page says of
// itself is part of the text where readers see it, too. The tree stays as it is.
// Pages of more than 10,000 elements, 1 MiB of text, or 2 MiB of classes and ids have none.
func Read(root, heading *html.Node, pageURL string, descriptions ...string) Article {
	base, err := url.Parse(pageURL)
	if err != nil || !isBounded(root) {
		return Article{}
	}
	parser := readability.NewParser()
	sure := parser.CheckDocument(root)
	parser.DisableJSONLD = true // the caller knows what the page states
	parser.KeepClasses = true   // trim reads them
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
		text = called // the library has lost some of it, or read another block
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
