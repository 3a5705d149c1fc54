// Package prose owns the text of an article: the paragraphs that a page is about, without what
// stands beside and between them. The library go-readability finds them, as the reader view of
// browsers does. What bounds it is here. Which field the text belongs to is the caller's.
package prose

import (
	"net/url"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Article is what a page has of an article. All of it is empty where there is none.
type Article struct {
	Text   string // its paragraphs, divided by line breaks
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
)

// Read finds the article of a page. The tree stays as it is. Pages of more than 10,000 elements or
// 1 MiB of text have none.
func Read(root *html.Node, pageURL string) Article {
	base, err := url.Parse(pageURL)
	if err != nil || !isBounded(root) {
		return Article{}
	}
	parser := readability.NewParser()
	sure := parser.CheckDocument(root)
	parser.DisableJSONLD = true // the caller knows what the page states
	found, err := parser.ParseDocument(root, base)
	if err != nil || found.Node == nil {
		return Article{}
	}
	trim(found.Node)
	var text strings.Builder
	if err := found.RenderText(&text); err != nil {
		return Article{}
	}
	return Article{Text: strings.TrimSpace(text.String()), Byline: found.Byline(), Sure: sure}
}

func isBounded(root *html.Node) bool {
	elements, visits, text := 0, 0, 0
	var visit func(n *html.Node, level int) bool
	visit = func(n *html.Node, level int) bool {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch c.Type {
			case html.TextNode:
				text += len(c.Data)
			case html.ElementNode:
				elements++
				visits += level
			}
			if elements > maxElements || visits > maxVisits || text > maxText ||
				level > maxLevels || !visit(c, level+1) {
				return false
			}
		}
		return true
	}
	return visit(root, 0)
}

// trim takes out of an article what is not its text: captions and pictures, and at its end what
// leads elsewhere.
func trim(article *html.Node) {
	var captions []*html.Node
	for n := range article.Descendants() {
		if n.DataAtom == atom.Figcaption {
			captions = append(captions, n)
		}
	}
	for _, n := range captions {
		n.Parent.RemoveChild(n)
	}
	for range maxTrimmed {
		last := lastBlock(article)
		if last == nil || !leadsAway(last) {
			return
		}
		last.Parent.RemoveChild(last)
	}
}

// maxTrimmed is how many blocks are taken from the end of an article: each costs a look at all of
// it.
const maxTrimmed = 50

// lastBlock is the last element with text in an article that holds no other block; nil if the
// article is nothing but that.
func lastBlock(article *html.Node) *html.Node {
	n := article
	for {
		last := n.LastChild
		for last != nil && strings.TrimSpace(textOf(last)) == "" {
			last = last.PrevSibling
		}
		if last == nil || last.Type != html.ElementNode || inLine[last.DataAtom] {
			break
		}
		n = last
	}
	if n == article {
		return nil
	}
	return n
}

// longHeading is how long a line is that is no heading, in bytes.
const longHeading = 80

// leadsAway says whether the last block of an article is a heading of nothing, or links and little
// else.
func leadsAway(n *html.Node) bool {
	text := strings.TrimSpace(textOf(n))
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return len(text) <= longHeading
	}
	linked := 0
	for c := range n.Descendants() {
		if c.DataAtom == atom.A {
			linked += len(strings.TrimSpace(textOf(c)))
		}
	}
	return 10*linked > 8*len(text)
}

func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var text strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			text.WriteString(c.Data)
		}
	}
	return text.String()
}

// inLine are the elements that part no text.
var inLine = map[atom.Atom]bool{atom.A: true, atom.Abbr: true, atom.B: true, atom.Br: true,
	atom.Code: true, atom.Em: true, atom.I: true, atom.Img: true, atom.Mark: true, atom.Q: true,
	atom.Small: true, atom.Span: true, atom.Strong: true, atom.Sub: true, atom.Sup: true,
	atom.U: true}
