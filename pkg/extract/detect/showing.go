package detect

import (
	"bytes"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/utf8text"
)

// MaxShownText bounds a shown text, in bytes.
const MaxShownText = 2_000

// Node is an element or a text of a page as shown. It has none of the page's attributes, and its
// name is from a closed list.
type Node struct {
	In   int    // number of the parent element; -1 if none is shown
	Name string // element name; "" for a text
	Text string // the text, or an image's alternative text
}

// Showing is a parsed view with numbered nodes. It is for one goroutine.
type Showing struct {
	// Nodes are the shown nodes in document order. A node's index is its number.
	Nodes []Node
	// Markup is the markup that selectors apply to.
	Markup []byte

	probe   *probe
	at      []*html.Node // by number
	numbers map[*html.Node]int
	doc     dom.Document // for the caller's selectors, whose work it bounds
	nodes   []*html.Node // by dom.Elem
}

// Show parses a view. Its error is coded unparsable.
func Show(v *View) (*Showing, error) {
	markup, err := v.Markup()
	if err != nil {
		return nil, err
	}
	root, err := tree.Parse(markup, maxTree)
	if err != nil {
		return nil, fault.Wrap(fault.PageUnparsable, err, "the page cannot be parsed")
	}
	base, err := url.Parse(v.URL)
	if err != nil {
		return nil, fault.Wrap(fault.PageUnparsable, err, "the page's address cannot be parsed")
	}
	s := &Showing{Markup: markup, numbers: map[*html.Node]int{}, Nodes: []Node{}}
	s.probe = &probe{outline: newOutline(root), root: root, base: base, sel: newSelectors(root)}
	s.probe.sel.left = pickVisits
	s.nodes = s.doc.Convert(root)
	s.add(root, -1, false)
	return s, nil
}

// shownNames are the elements that keep their names.
var shownNames = setOfNames(`a abbr address article aside b blockquote br caption cite code dd del
	dfn div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark
	nav ol p pre q s samp section small span strong sub sup table tbody td tfoot th thead time tr u
	ul var`)

// blocks are the elements shown as div. All others are shown as span.
var blocks = setOfNames(`body html center details dialog dir fieldset form hgroup legend menu
	optgroup search summary`)

func setOfNames(list string) map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		names[name] = true
	}
	return names
}

// add numbers the shown nodes of n as children of the element in.
func (s *Showing) add(n *html.Node, in int, pre bool) {
	switch n.Type {
	case html.TextNode:
		text := n.Data
		if !pre {
			text = collapse(text)
			if text == "" && isInline(n.PrevSibling) && isInline(n.NextSibling) {
				text = " " // keeps the words on both sides apart
			}
		}
		if text != "" && in >= 0 {
			s.push(n, Node{In: in, Text: utf8text.CutText(text, MaxShownText)})
		}
		return
	case html.ElementNode:
		if _, known := s.probe.index[n]; !known {
			return // it is hidden or beyond a bound
		}
		node := Node{In: in, Name: "span"}
		switch {
		case n.Data == "img":
			node.Name, node.Text = "img", utf8text.CutText(tree.Attr(n, "alt"), MaxShownText)
		case shownNames[n.Data]:
			node.Name = n.Data
		case blocks[n.Data]:
			node.Name = "div"
		}
		in = s.push(n, node)
		pre = pre || n.Data == "pre"
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		s.add(c, in, pre)
	}
}

// isInline says whether a node is an inline element.
func isInline(n *html.Node) bool {
	return n != nil && n.Type == html.ElementNode && inline[n.Data]
}

func (s *Showing) push(n *html.Node, node Node) int {
	s.numbers[n] = len(s.Nodes)
	s.Nodes = append(s.Nodes, node)
	s.at = append(s.at, n)
	return len(s.Nodes) - 1
}

// collapse replaces each run of white space by one space; "" if there is nothing else.
func collapse(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	all := strings.Join(words, " ")
	if bytes.IndexByte([]byte(" \t\r\n\f"), text[0]) >= 0 {
		all = " " + all
	}
	if bytes.IndexByte([]byte(" \t\r\n\f"), text[len(text)-1]) >= 0 {
		all += " "
	}
	return all
}
