package dom

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// Attr is the value of an attribute, as written in the page with its character references decoded. The name is lower
// case.
func (d *Document) Attr(e Elem, name string) (string, bool) {
	for _, a := range d.nodes[e].Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// AppendAttr appends the value of an attribute.
func (d *Document) AppendAttr(dst []byte, e Elem, name string) ([]byte, bool) {
	v, ok := d.Attr(e, name)
	return append(dst, v...), ok
}

// BaseHref is the href of the document's first base element that has one.
func (d *Document) BaseHref() (string, bool) {
	for e := range d.nodes {
		if d.nodes[e].Data == "base" {
			if href, ok := d.Attr(Elem(e), "href"); ok {
				return href, true
			}
		}
	}
	return "", false
}

// hidden are the elements whose contents a browser never shows as text.
func hidden(name string) bool {
	switch name {
	case "script", "style", "template", "noscript", "iframe", "noembed", "noframes":
		return true
	}
	return false
}

// AppendText appends an element's text: white space collapsed to single spaces and trimmed, without what is in script,
// style, template and other elements that a browser never shows as text. Asked for such an element itself, its
// contents are the text.
func (d *Document) AppendText(dst []byte, e Elem) []byte {
	t := collapser{dst: dst, start: len(dst)}
	t.walk(d.nodes[e])
	return t.dst
}

type collapser struct {
	dst   []byte
	start int
	gap   bool // white space since the last character
}

func (t *collapser) walk(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			t.add(c.Data)
		case c.Type == html.ElementNode && !hidden(c.Data):
			t.walk(c)
		}
	}
}

func (t *collapser) add(s string) {
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		if unicode.IsSpace(r) {
			t.gap = len(t.dst) > t.start
		} else {
			if t.gap {
				t.dst = append(t.dst, ' ')
				t.gap = false
			}
			t.dst = append(t.dst, s[i:i+size]...)
		}
		i += size
	}
}
