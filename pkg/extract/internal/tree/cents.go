package tree

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// cents are parts of the class names that shops give the last two digits of a price.
var cents = [...]string{"cent", "cts", "fraction", "decimal", "kop", "grosz", "minor", "sup",
	"öre", "pence", "haler"}

// others are words with such a part that say nothing of cents.
var others = strings.NewReplacer("center", "", "centre", "", "central", "", "centr", "",
	"percent", "", "accent", "", "recent", "", "ascent", "", "innocent", "", "century", "",
	"kopf", "", "kopi", "", "support", "", "suppl", "", "superscript", "sup", "super", "")

// Between is what parts a text that ends with a digit from an element that begins with one and
// stands in the same line. It is the point or comma that a page leaves out before raised cents
// ($12<sup>95</sup>), behind spaces too. It is ^ before three raised digits, which are no group. It
// is a space before other raised digits, which are notes or powers, and nothing before all other
// elements.
func Between(before string, n *html.Node) string {
	before = before[max(0, len(before)-maxNear):]
	near := strings.TrimRight(before, " \n\t\r\f\u00a0")
	if near == "" || !isDigit(near[len(near)-1]) || len(near)+maxGap < len(before) {
		return ""
	}
	own, whole := leading(n)
	raised := n.Data == "sup"
	switch {
	case own == "" || !isDigit(own[0]):
		return ""
	case len(own) >= 2 && whole && isCurrency(own[2:]) && isDigit(own[1]) &&
		(raised || n.Data == "small" || isCents(n)):
		number := near[strings.LastIndexFunc(near,
			func(r rune) bool { return r != '.' && r != ',' && (r < '0' || r > '9') })+1:]
		switch point, comma := strings.Contains(number, "."), strings.Contains(number, ","); {
		case point && comma:
			return " " // its own fraction is there
		case point:
			return ","
		}
		return "."
	case raised && len(near) == len(before):
		if len(own)-len(strings.TrimLeft(own, "0123456789")) == 3 {
			return "^"
		}
		return " "
	}
	return ""
}

// Bounds of what stands before cents, in bytes: white space, and the number with it. A text grows
// element by element, and is not gone over again at each.
const (
	maxGap  = 64
	maxNear = 2 * maxGap
)

// isCurrency says whether what stands behind two raised digits is a currency or a sign at most.
func isCurrency(rest string) bool {
	return utf8.RuneCountInString(strings.TrimLeft(rest, " \u00a0")) <= 3 &&
		!strings.ContainsAny(rest, "0123456789.,%")
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// leading is the first text of an element, at most maxLeading bytes, and whether that is all of it.
// An element that holds nothing but another one begins as that does.
func leading(n *html.Node) (text string, whole bool) {
	for depth := 0; depth < 3; depth++ {
		child := onlyElement(n)
		if child == nil {
			break
		}
		n = child
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.TextNode {
			return text, false
		}
		text += strings.TrimSpace(c.Data[:min(len(c.Data), 4*maxLeading)])
		if len(text) > maxLeading {
			return text[:maxLeading], false
		}
	}
	return text, true
}

// maxLeading is enough for two digits and a currency.
const maxLeading = 12

// onlyElement is the element that is all of another one, nil if there is more or none.
func onlyElement(n *html.Node) *html.Node {
	var only *html.Node
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode && strings.TrimSpace(c.Data) == "":
		case c.Type != html.ElementNode || only != nil:
			return nil
		default:
			only = c
		}
	}
	return only
}

func isCents(n *html.Node) bool {
	for _, a := range n.Attr {
		if a.Namespace != "" || a.Key != "class" {
			continue
		}
		class := others.Replace(strings.ToLower(a.Val))
		for _, part := range cents {
			if strings.Contains(class, part) {
				return true
			}
		}
	}
	return false
}
