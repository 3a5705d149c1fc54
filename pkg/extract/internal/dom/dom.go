// Package dom owns parsed pages and CSS selectors: a page is a flat list of elements in document order, so that an
// element is a number and its descendants are a range. It knows no field and no row.
package dom

import (
	"bytes"
	"errors"
	"math"

	"golang.org/x/net/html"
)

// Elem is an element of a document, by its place in document order.
type Elem int32

// Root is the html element, which every document has; Whole as a range to search means the whole document.
const (
	None  Elem = -1
	Root  Elem = 0
	Whole Elem = Root
)

// Document is a parsed page. Its memory is used again by the next Parse. The page's bytes must not change until Reset.
type Document struct {
	elems []element
	nodes []*html.Node // of elems
}

type element struct {
	parent Elem
	end    Elem // first element after the subtree
}

var errTooLong = errors.New("the page is too long")

// Parse reads a page as HTML, like a browser with scripting enabled.
func (d *Document) Parse(body []byte) error {
	if len(body) > math.MaxInt32 {
		return errTooLong
	}
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return err
	}
	d.Reset()
	d.add(root, None)
	return nil
}

// Reset forgets the page and keeps the memory.
func (d *Document) Reset() {
	d.elems = d.elems[:0]
	clear(d.nodes)
	d.nodes = d.nodes[:0]
}

func (d *Document) add(n *html.Node, parent Elem) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		e := Elem(len(d.elems))
		d.elems = append(d.elems, element{parent: parent})
		d.nodes = append(d.nodes, c)
		if c.Data != "template" {
			d.add(c, e)
		}
		d.elems[e].end = Elem(len(d.elems))
	}
}

// Parent is the element around e, None for the root.
func (d *Document) Parent(e Elem) Elem { return d.elems[e].parent }

// End is the first element after e and all that it holds.
func (d *Document) End(e Elem) Elem { return d.elems[e].end }
