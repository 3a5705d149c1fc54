package prose

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// bodies are names, reduced to letters and digits, of elements that hold an article's text.
var bodies = []string{"articlebody", "articlecontent", "articletext", "entrycontent", "postcontent",
	"postbody", "postentry", "storybody", "storycontent", "storytext", "newstext", "newsbody",
	"bodytext", "artikeltext", "contenidonota", "cuerponoticia"}

func isBody(n *html.Node) bool {
	for _, a := range n.Attr {
		switch {
		case a.Key == "itemprop" && a.Val == "articleBody":
			return true
		case a.Key != "class" && a.Key != "id":
			continue
		}
		for name := range strings.FieldsSeq(strings.ToLower(a.Val[:min(len(a.Val), maxCalled)])) {
			name = strings.Map(func(r rune) rune {
				if isSign(r) {
					return -1
				}
				return r
			}, name)
			for _, body := range bodies {
				if strings.Contains(name, body) {
					return true
				}
			}
		}
	}
	return false
}

// calledText returns the text of the single element that is named as an article's text, or "".
// Pages with many articles have several such elements, which also give "".
func calledText(root *html.Node) string {
	best := ""
	several := false
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type != html.ElementNode || unread[c.DataAtom] || isComments(c) {
				continue
			}
			if !isBody(c) {
				visit(c)
				continue
			}
			text := strings.Join(paragraphs(c), "\n\n")
			if len(text) > minBody {
				several = several || best != ""
			}
			if len(text) > len(best) {
				best = text
			}
		}
	}
	visit(root)
	if several {
		return ""
	}
	return best
}

// isElsewhere says whether the longest paragraph of a text is missing in another one.
func isElsewhere(called, text string) bool {
	longest := ""
	for paragraph := range strings.SplitSeq(called, "\n\n") {
		if len(paragraph) > len(longest) {
			longest = paragraph
		}
	}
	longest = plain(longest)
	return len(longest) > minLead && !strings.Contains(plain(text), longest[:startsWith])
}

// Bounds of texts, in bytes: of an article, and of a paragraph that is not a label.
const (
	minBody = 200
	minLead = 80
)

var unread = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Noscript: true,
	atom.Template: true, atom.Head: true, atom.Svg: true, atom.Form: true, atom.Button: true,
	atom.Select: true, atom.Nav: true, atom.Iframe: true, atom.Rt: true, atom.Rp: true}

// blocks are the elements that separate a text.
var blocks = map[atom.Atom]bool{atom.P: true, atom.Li: true, atom.Blockquote: true, atom.Pre: true,
	atom.H2: true, atom.H3: true, atom.H4: true, atom.H5: true, atom.Td: true, atom.Th: true,
	atom.Dd: true, atom.Dt: true}

// paragraphs returns the texts of an element in order, without asides and links to elsewhere.
func paragraphs(n *html.Node) (list []string) {
	var heads []bool // which of them are headings
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch {
			case c.Type == html.TextNode:
				if text := plain(c.Data); len(text) >= minLead {
					list, heads = append(list, text), append(heads, false)
				}
			case c.Type != html.ElementNode || unread[c.DataAtom] || isApart(c) || isPicture(c) ||
				isMenu(c) || leadsOn(c):
			case blocks[c.DataAtom] && !holdsBlock(c):
				if text := plain(textOf(c)); text != "" && (isHeading(c) || !leadsAway(c)) {
					list, heads = append(list, text), append(heads, isHeading(c))
				}
			default:
				visit(c)
			}
		}
	}
	visit(n)
	for len(list) > 0 && heads[len(list)-1] {
		list = list[:len(list)-1] // a heading without text below
	}
	return list
}

func holdsBlock(n *html.Node) bool {
	for c := range n.Descendants() {
		if blocks[c.DataAtom] || c.DataAtom == atom.Div {
			return true
		}
	}
	return false
}

func plain(text string) string { return strings.Join(strings.Fields(Visible(text)), " ") }

// Visible removes the signs that readers do not see: they only allow a line break, or mean nothing.
func Visible(text string) string {
	for _, sign := range [...]string{"\u00ad", "\u200b", "\u2060", "\ufeff"} {
		text = strings.ReplaceAll(text, sign, "")
	}
	return text
}

// Bounds of the text between a heading and its article.
const (
	maxLead    = 1_500 // bytes
	startsWith = 40    // bytes of a paragraph by which it is recognized
)

// lead returns the paragraphs between the heading and the text that belong to the text, with a line
// break after them. It is "" if the text does not follow, or includes them.
func lead(root, heading *html.Node, text string) string {
	if heading == nil {
		return ""
	}
	text = plain(text)
	var found []string
	seen, done := false, false
	length := 0
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		for c := n.FirstChild; c != nil && !done; c = c.NextSibling {
			switch {
			case c == heading:
				seen = true
			case c.Type != html.ElementNode || unread[c.DataAtom] ||
				isApart(c) && !holds(c, heading):
			case !seen || !isParagraph(c):
				visit(c)
			default:
				said := plain(textOf(c))
				switch {
				case len(said) < minLead || leadsAway(c):
				case strings.Contains(text, said[:startsWith]):
					done = true
				default:
					found = append(found, said)
					length += len(said)
				}
				done = done || length > maxLead
			}
		}
	}
	visit(root)
	if !done || length > maxLead || len(found) == 0 {
		return ""
	}
	return strings.Join(found, "\n\n") + "\n\n"
}

// described returns the visible text that begins with the page's description, or "". Captions may
// be leads.
func described(root *html.Node, description string) string {
	description = plain(description)
	if len(description) < minLead {
		return ""
	}
	begins := strings.ToValidUTF8(description[:minLead], "")
	for n := range root.Descendants() {
		if n.Type != html.TextNode || n.Parent == nil || unread[n.Parent.DataAtom] {
			continue
		}
		if said := plain(n.Data); strings.HasPrefix(said, begins) {
			return said
		}
	}
	return ""
}

// isParagraph says whether an element may be a paragraph and contains no block.
func isParagraph(n *html.Node) bool {
	switch n.DataAtom {
	case atom.P, atom.Div, atom.H2, atom.H3, atom.H4, atom.Li, atom.Strong:
		return !holdsBlock(n)
	}
	return false
}

func holds(n, inner *html.Node) bool {
	for ; inner != nil; inner = inner.Parent {
		if inner == n {
			return true
		}
	}
	return false
}
