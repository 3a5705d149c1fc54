package dom

import (
	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// convert reads the page with x/net/html and converts its tree to the document. It refuses pages
// with more than 512 nested elements, or too many elements.
func (d *Document) convert(body []byte) error {
	root, err := tree.Parse(body, maxTree)
	if err != nil {
		return err
	}
	d.decoded = true
	d.convertChildren(root, None, None)
	return nil
}

// Convert makes the document of a parsed page and returns the nodes of its elements.
func (d *Document) Convert(root *html.Node) []*html.Node {
	d.Reset()
	d.decoded = true
	d.convertChildren(root, None, None)
	return appendElements(make([]*html.Node, 0, len(d.elems)), root)
}

// appendElements appends the elements in n, in the order in which they are converted.
func appendElements(list []*html.Node, n *html.Node) []*html.Node {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		list = append(list, c)
		if tagOf(lowerASCII(c.Data)) != tTemplate {
			list = appendElements(list, c)
		}
	}
	return list
}

// convertChildren adds the contents of n; hider is the innermost element that hides them.
func (d *Document) convertChildren(n *html.Node, parent, hider Elem) {
	prev, index, apart := None, int32(0), false
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.CommentNode:
			apart = true
		case html.TextNode:
			d.texts = append(d.texts, text{s: c.Data, parent: parent, hider: hider, apart: apart})
			apart = false
		case html.ElementNode:
			e := Elem(len(d.elems))
			index++
			d.elems = append(d.elems,
				element{parent: parent, prev: prev, index: index, text: int32(len(d.texts))})
			d.convertElement(c, e, hider)
			prev = e
		}
	}
	if parent != None {
		d.elems[parent].kids = index
	}
}

func (d *Document) convertElement(n *html.Node, e, hider Elem) {
	el := element{named: lowerASCII(n.Data), attrs: int32(len(d.attrs)), class: -1, id: -1}
	el.tag = tagOf(el.named)
	for _, a := range n.Attr {
		name := lowerASCII(a.Key)
		if a.Namespace != "" {
			name = a.Namespace + ":" + name
		}
		switch name {
		case "class":
			el.class = int32(len(d.attrs))
		case "id":
			el.id = int32(len(d.attrs))
		}
		d.attrs = append(d.attrs, attr{name, a.Val})
	}
	old := &d.elems[e]
	el.attrsEnd = int32(len(d.attrs))
	el.parent, el.prev, el.index, el.text = old.parent, old.prev, old.index, old.text
	*old = el
	if el.tag.is(hidden) {
		hider = e
	}
	if el.tag != tTemplate {
		d.convertChildren(n, e, hider)
	}
	d.elems[e].end, d.elems[e].textEnd = Elem(len(d.elems)), int32(len(d.texts))
}

func lowerASCII(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
