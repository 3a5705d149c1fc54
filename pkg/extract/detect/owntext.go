package detect

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/amount"
)

// ownText marks a leaf whose value is an element's own first text, without its child elements.
const ownText = "text()"

// ownPrice returns the price that an element has as its own text, among child elements with other
// text. It is "" if the element's whole text is a price, or if there is no price.
func ownPrice(n *html.Node) string {
	own := firstText(n)
	if !amount.Is(own) || amount.Is(textOf(n)) {
		return ""
	}
	return own
}

// firstText returns the first text that is an element's direct child.
func firstText(n *html.Node) string {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" {
			return strings.Join(strings.Fields(c.Data), " ")
		}
	}
	return ""
}

// own finds prices that share their element with others, by XPath, which can select texts.
func (s *search) own(f field) string {
	if css := s.ownSelector(f.nodes); css != "" {
		return css
	}
	var whole []string
	for _, p := range f.parts {
		path := ""
		if p.with == nil && !p.own {
			path = xpathOf(s.selector(p.nodes, true))
		}
		if p.with == nil && path == "" {
			path = s.ownSelector(p.nodes)
		}
		if path == "" {
			return ""
		}
		whole = append(whole, path)
	}
	return strings.Join(whole, " | ")
}

// ownSelector returns an XPath expression that selects exactly the nodes' first texts, or "".
func (s *search) ownSelector(nodes []*html.Node) string {
	for _, n := range nodes {
		if n != nil && !amount.Is(firstText(n)) {
			return ""
		}
	}
	for _, prefix := range s.prefixes {
		for _, css := range s.inner(nodes) {
			path := ownTextOf(prefix + css)
			if path != "" && s.fitsAmong(prefix+css, nodes, true, hasOwnText) {
				return path
			}
		}
	}
	return ""
}

// ownTextOf returns an XPath expression for the own texts of what a selector matches, or "".
func ownTextOf(css string) string {
	path := xpathOf(css)
	if path == "" {
		return ""
	}
	return path + "/text()[normalize-space()]"
}

var (
	compound = regexp.MustCompile(`^([a-z][a-z0-9-]*)?((?:\.[A-Za-z_-][A-Za-z0-9_-]*)*)$`)
	markedBy = regexp.MustCompile(`^\[([a-z-]+)=([A-Za-z0-9_-]+)\]$`)
)

// xpathOf translates a selector of names, classes and marks to XPath; "" for any other selector.
func xpathOf(css string) string {
	if css == "" {
		return ""
	}
	var path strings.Builder
	joint := "//"
	for step := range strings.FieldsSeq(css) {
		if step == ">" {
			joint = "/"
			continue
		}
		path.WriteString(joint)
		joint = "//"
		if m := markedBy.FindStringSubmatch(step); m != nil {
			path.WriteString("*[@" + m[1] + "='" + m[2] + "']")
			continue
		}
		m := compound.FindStringSubmatch(step)
		if m == nil {
			return ""
		}
		if m[1] == "" {
			m[1] = "*"
		}
		path.WriteString(m[1])
		for class := range strings.SplitSeq(strings.TrimPrefix(m[2], "."), ".") {
			if class != "" {
				path.WriteString("[contains(concat(' ', normalize-space(@class), ' '), ' " + class +
					" ')]")
			}
		}
	}
	return path.String()
}
