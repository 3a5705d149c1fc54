package prose

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/wordset"
)

// trim removes from an article what is not its text: captions, pictures, asides, and links to
// elsewhere at its end.
func trim(article *html.Node) {
	var apart []*html.Node
	for n := range article.Descendants() {
		if n.Type == html.ElementNode && (isApart(n) || isPicture(n) || isMenu(n) || leadsOn(n)) {
			apart = append(apart, n)
		}
	}
	all := len(textOf(article))
	for _, n := range apart {
		if n.Parent != nil && 4*len(textOf(n)) < all {
			n.Parent.RemoveChild(n)
		}
	}
	for range maxTrimmed {
		last := lastBlock(article)
		if last == nil || !leadsAway(last) {
			return
		}
		last.Parent.RemoveChild(last)
	}
}

// apart are the words of elements that are in an article but not part of its text.
var apart = wordset.Of("caption credit credits copyright bildunterschrift bildtext bildquelle " +
	"legende related recommended recommendation recommendations newsletter subscribe share " +
	"sharing social comments teaser teasers promo advert advertisement disclaimer breadcrumb " +
	"breadcrumbs authorbox bio readmore tags ratings tweet embedded fb instagram author " +
	"citation noprint cookie paywall")

// comments are the words of elements with readers' comments.
var comments = wordset.Of("comment comments commentlist respond")

// maxCalled bounds how much of an element's class or id is examined, in bytes.
const maxCalled = 600

// isApart says whether an element's name, class or id sets it apart from the text around it.
func isApart(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Figcaption, atom.Aside, atom.Nav, atom.Footer, atom.Rt, atom.Rp:
		return true
	}
	return isCalled(n, apart)
}

// isComments says whether an element's name marks it as readers' comments.
func isComments(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Html, atom.Body, atom.Main, atom.Article:
		return false // their names only say whether there are any
	}
	return isCalled(n, comments)
}

// isCalled says whether an element's class or id contains one of the words.
func isCalled(n *html.Node, any map[string]bool) bool {
	for _, a := range n.Attr {
		if a.Key != "class" && a.Key != "id" {
			continue
		}
		called := strings.ToLower(a.Val[:min(len(a.Val), maxCalled)])
		for word := range strings.FieldsFuncSeq(called, isSign) {
			if any[word] {
				return true
			}
		}
	}
	return false
}

// minMenu is the minimum number of links of a menu.
const minMenu = 2

// isMenu says whether an element is a list of links that fill their items.
func isMenu(n *html.Node) bool {
	if n.DataAtom != atom.Ul && n.DataAtom != atom.Ol {
		return false
	}
	items := 0
	for c := range n.ChildNodes() {
		if c.DataAtom != atom.Li {
			continue
		}
		if items++; !leadsAway(c) {
			return false
		}
	}
	return items >= minMenu
}

// minOnward is the minimum length of a link's text to be another article's title, in bytes.
const minOnward = 20

// maxLabel bounds the label before such a link, in bytes.
const maxLabel = 40

// leadsOn says whether a block is only a link to another article, possibly with a label.
func leadsOn(n *html.Node) bool {
	switch n.DataAtom {
	case atom.P, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
	default:
		return false
	}
	label, linked := 0, 0
	end := ""
	for c := range n.Descendants() {
		switch {
		case c.Type == html.TextNode && isLinked(c, n):
			linked += len(strings.TrimSpace(c.Data))
		case c.Type == html.TextNode && linked > 0:
			if strings.TrimSpace(c.Data) != "" {
				return false // the link is part of a sentence
			}
		case c.Type == html.TextNode:
			if said := strings.TrimSpace(c.Data); said != "" {
				label, end = label+len(said), said
			}
		}
	}
	if linked < minOnward || label > maxLabel {
		return false
	}
	return label == 0 || strings.HasSuffix(end, ":") || strings.HasSuffix(end, "|")
}

// isLinked says whether a text is in a link within a block.
func isLinked(text, block *html.Node) bool {
	for n := text.Parent; n != nil && n != block; n = n.Parent {
		if n.DataAtom == atom.A {
			return true
		}
	}
	return false
}

// maxCaption bounds the text of a picture, in bytes.
const maxCaption = 250

// captioned matches the beginning of a picture's text.
var captioned = regexp.MustCompile(`^(?i:abbildung|abb\.|bild|foto|photo|figure|fig\.|image|imagen|immagine)` +
	`[^\pL:.]{0,6}[:.©]`)

// isPicture says whether an element is only a picture with its text, or such a text.
func isPicture(n *html.Node) bool {
	switch n.DataAtom {
	case atom.P, atom.Span:
		text := strings.TrimSpace(textOf(n))
		return len(text) <= maxCaption && captioned.MatchString(text)
	case atom.Div, atom.Figure:
	default:
		return false
	}
	pictures, length := 0, 0
	for c := range n.Descendants() {
		switch {
		case c.DataAtom == atom.Img:
			pictures++
		case c.Type == html.TextNode:
			length += len(strings.TrimSpace(c.Data))
		}
		if length > maxCaption {
			return false
		}
	}
	return pictures == 1
}

func isSign(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// maxTrimmed bounds the blocks removed from the end of an article: each costs a look at the whole
// article.
const maxTrimmed = 50

// lastBlock returns the last element with text in an article that contains no other block; nil if
// that is the article itself.
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

// longHeading is the maximum length of a heading, in bytes.
const longHeading = 80

func isHeading(n *html.Node) bool {
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	}
	return false
}

// leadsAway says whether the last block of an article is a heading without text below, or mostly
// links.
func leadsAway(n *html.Node) bool {
	text := strings.TrimSpace(textOf(n))
	if isHeading(n) || isBold(n, text) {
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

// isBold says whether a paragraph's whole text is in one bold element, which some editors use as a
// heading. A text that ends with a period is a sentence.
func isBold(n *html.Node, text string) bool {
	if n.DataAtom != atom.P && n.DataAtom != atom.Div || strings.HasSuffix(text, ".") {
		return false
	}
	for c := range n.ChildNodes() {
		if c.DataAtom == atom.Strong || c.DataAtom == atom.B {
			return strings.TrimSpace(textOf(c)) == text
		}
	}
	return false
}

func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var text strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode && !unread[c.Parent.DataAtom] {
			text.WriteString(c.Data)
		}
	}
	return text.String()
}

// inLine are the elements that do not separate text.
var inLine = map[atom.Atom]bool{atom.A: true, atom.Abbr: true, atom.B: true, atom.Br: true,
	atom.Code: true, atom.Em: true, atom.I: true, atom.Img: true, atom.Mark: true, atom.Q: true,
	atom.Ruby: true, atom.Rb: true, atom.Small: true, atom.Span: true,
	atom.Strong: true, atom.Sub: true, atom.Sup: true, atom.U: true}
