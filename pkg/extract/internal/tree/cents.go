package tree

import (
	"strings"

	"golang.org/x/net/html"
)

// cents are parts of the class names that shops give the last two digits of a price.
var cents = [...]string{"cent", "fraction", "decimal", "kop", "grosz", "minor", "sup"}

// Between is what parts a text that ends with a digit from an element that begins with one and
// stands in the same line. It is the point or comma that a page leaves out before raised cents
// ($12<sup>95</sup>). It is a space before other raised digits, which are notes or powers, and
// nothing before all other elements.
func Between(before string, n *html.Node) string {
	if before == "" || !isDigit(before[len(before)-1]) {
		return ""
	}
	own, whole := leading(n)
	raised := n.Data == "sup"
	switch {
	case own == "" || !isDigit(own[0]):
		return ""
	case whole && len(own) == 2 && isDigit(own[1]) && (raised || isCents(n)):
		number := before[strings.LastIndexFunc(before,
			func(r rune) bool { return r != '.' && r != ',' && (r < '0' || r > '9') })+1:]
		switch point, comma := strings.Contains(number, "."), strings.Contains(number, ","); {
		case point && comma:
			return " " // its own fraction is there
		case point:
			return ","
		}
		return "."
	case raised:
		return " "
	}
	return ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// leading is the first text of an element, at most three bytes, and whether that is all of it.
func leading(n *html.Node) (text string, whole bool) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.TextNode {
			return text, false
		}
		text += strings.TrimSpace(c.Data)
		if len(text) > 2 {
			return text[:3], false
		}
	}
	return text, true
}

func isCents(n *html.Node) bool {
	for _, a := range n.Attr {
		if a.Namespace != "" || a.Key != "class" {
			continue
		}
		class := strings.ToLower(a.Val)
		for _, part := range cents {
			if strings.Contains(class, part) {
				return true
			}
		}
	}
	return false
}
