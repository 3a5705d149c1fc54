package detect

import (
	"iter"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// elements visits n and the elements in it, in document order. If visit returns false, the
// element's contents are skipped. Elements that browsers never show are skipped, too.
func elements(n *html.Node, visit func(*html.Node) bool) {
	if n.Type == html.ElementNode && (unseen[n.Data] || !visit(n)) {
		return
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		elements(c, visit)
	}
}

var unseen = map[string]bool{"script": true, "style": true, "template": true, "noscript": true,
	"svg": true, "iframe": true, "head": true}

// inline lists the elements that do not interrupt a line of text.
var inline = map[string]bool{"a": true, "abbr": true, "b": true, "bdi": true, "em": true, "i": true,
	"ins": true, "mark": true,
	"small": true, "span": true, "strong": true, "sub": true, "sup": true, "u": true}

// maxText bounds the text of an element, in bytes.
const maxText = 4_096

// textOf returns the text that a browser shows of an element, with white space collapsed.
func textOf(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		switch {
		case b.Len() > maxText || n.Type == html.ElementNode && unseen[n.Data]:
			return
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		}
		apart := n.Type == html.ElementNode && !inline[n.Data]
		if apart {
			b.WriteByte(' ')
		} else if n.Type == html.ElementNode {
			b.WriteString(tree.Between(b.String(), n))
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		if apart {
			b.WriteByte(' ')
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

// hasOwnText says whether an element has text that is not in a child element.
func hasOwnText(n *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" {
			return true
		}
	}
	return false
}

func holds(outer, n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == outer {
			return true
		}
	}
	return false
}

// ancestor returns n or the nearest element around it that fits, or nil.
func ancestor(n *html.Node, fits func(*html.Node) bool) *html.Node {
	for ; n != nil; n = n.Parent {
		if n.Type == html.ElementNode && fits(n) {
			return n
		}
	}
	return nil
}

func named(names ...string) func(*html.Node) bool {
	return func(n *html.Node) bool { return slices.Contains(names, n.Data) }
}

// hashed matches a class of a CSS module: its readable part and a hash.
var hashed = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z][A-Za-z0-9]*)*__)[A-Za-z0-9_-]{5,6}$`)

// modulesOf returns the readable parts of an element's CSS module classes.
func modulesOf(n *html.Node) []string {
	var parts []string
	for class := range strings.FieldsSeq(tree.Attr(n, "class")) {
		if m := hashed.FindStringSubmatch(class); m != nil {
			if parts = append(parts, m[1]); len(parts) == maxClasses {
				break
			}
		}
	}
	return parts
}

// utility matches classes that describe an element's look rather than its meaning.
var utility = regexp.MustCompile(`^(col|row|container|offset|order|m|mt|mb|ml|mr|mx|my|p|pt|pb|pl|pr|px|py|d|w|h|text|font|bg|border|` +
	`rounded|shadow|flex|grid|block|inline|float|pull|items|justify|gap|space|leading|tracking|sm|md|lg|xl|xs|position|relative|absolute|` +
	`overflow|align|hidden|visible|img|btn|u|g|small|large|left|right|center|clear|has|is)(-|$)`)

func isUtility(class string) bool {
	return utility.MatchString(class) && !sharesWord(split(class), meaningful)
}

// meaningful lists class words that name an element's content, so the class is not a utility.
var meaningful = []string{"price", "title", "name", "product", "image", "description", "date",
	"author", "heading", "headline", "brand", "rating", "category", "company", "location", "sku",
	"code", "author", "summary", "article", "post", "entry", "item", "card",
	"through"}

// namingAttributes are the attributes whose words name an element.
var namingAttributes = []string{"class", "itemprop", "data-testid", "data-test", "data-qa",
	"property"}

// words returns the words of an element's naming attributes, in lower case.
func words(n *html.Node) []string { return slices.Collect(wordsOf(n)) }

// wordsOf iterates over words: an element may have half a million.
func wordsOf(n *html.Node) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range namingAttributes {
			for word := range splitNames(tree.Attr(n, name)) {
				if !yield(word) {
					return
				}
			}
		}
	}
}

// split is splitNames as a list.
func split(names string) []string { return slices.Collect(splitNames(names)) }

// splitNames splits names at signs and capitals: productCard__priceNow gives product, card, price
// and now.
func splitNames(names string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := -1
		for i := range len(names) + 1 {
			capital := i < len(names) && names[i] >= 'A' && names[i] <= 'Z'
			letter := capital || i < len(names) && names[i] >= 'a' && names[i] <= 'z'
			if start >= 0 && (!letter || capital && names[i-1] >= 'a') {
				if !yield(strings.ToLower(names[start:i])) {
					return
				}
				start = -1
			}
			if letter && start < 0 {
				start = i
			}
		}
	}
}
