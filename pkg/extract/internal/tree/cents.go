package tree

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// cents are parts of the class names that shops use for the last two digits of a price.
var cents = [...]string{"cent", "cts", "fraction", "decimal", "kop", "grosz", "minor", "sup",
	"öre", "pence", "haler"}

// others removes words that contain such a part but do not mean cents.
var others = strings.NewReplacer("center", "", "centre", "", "central", "", "centr", "",
	"percent", "", "accent", "", "recent", "", "ascent", "", "innocent", "", "century", "",
	"kopf", "", "kopi", "", "support", "", "suppl", "", "superscript", "sup", "super", "")

// Between returns the separator between a text that ends with a digit and an inline element that
// begins with one. It is the point or comma that a page leaves out before raised cents
// ($12<sup>95</sup>), even after spaces. It is ^ before three raised digits, which are not a digit
// group. It is a space before other raised digits, which are notes or powers, and "" before all
// other elements.
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
			return " " // the number has a fraction already
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

// Bounds of the text before cents, in bytes: its trailing white space, and that with the number.
// They avoid scanning the whole text again at each element.
const (
	maxGap  = 64
	maxNear = 2 * maxGap
)

// isCurrency says whether the text after two raised digits is at most a currency or a sign.
func isCurrency(rest string) bool {
	return utf8.RuneCountInString(strings.TrimLeft(rest, " \u00a0")) <= 3 &&
		!strings.ContainsAny(rest, "0123456789.,%")
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// leading returns the first text of an element, at most maxLeading bytes, and whether that is the
// whole text. If an element contains only another one, it looks into that one.
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

// maxLeading suffices for two digits and a currency.
const maxLeading = 12

// onlyElement returns an element's only content if that is an element, otherwise nil.
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
