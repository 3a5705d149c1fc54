package detect

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/model"
)

// Value is a value that a page shows, with the name that proposals give it.
type Value struct{ Name, Text string }

// Shown returns the values that proposals find on a page, each name once. thing is what the page is
// about; items are those of its best list, in page order. Either may be empty. Both are empty for a
// page of more than 20,000 elements.
func Shown(root *html.Node, pageURL string) (thing []Value, items [][]Value) {
	base, err := url.Parse(pageURL)
	if err != nil || isLarge(root) {
		return nil, nil
	}
	p := newProbe(root, base)
	lists := p.lists()
	for _, f := range p.product(lists) {
		if matches := p.sel.all(f.Selector); len(matches) > 0 {
			thing = append(thing, valueOf(f.Name, f.Kind, f.Attr, matches[0]))
		}
	}
	if len(lists) == 0 {
		return thing, nil
	}
	return thing, p.itemValues(&lists[0])
}

// itemValues returns the values of all items of a list. The list's own fields cover a bounded
// sample. Fields of further items are determined in batches of the same size.
func (p *probe) itemValues(l *list) (items [][]Value) {
	fields := l.fields
	for from := 0; from < len(l.items); from += maxSampled {
		to := min(from+maxSampled, len(l.items))
		if from > 0 {
			fields = p.fieldsOf(l.items[from:to], l.titles[from:to])
		}
		for i := range to - from {
			var item []Value
			for _, f := range fields {
				if n := f.nodes[i]; n != nil {
					item = append(item, valueOf(f.name, f.kind, f.attr, n))
				}
			}
			items = append(items, item)
		}
	}
	return items
}

// IsList says whether a page is about several things, by the rules of proposals. It is false for a
// page of more than 20,000 elements.
func IsList(data *structured.Data, pageURL string) bool {
	base, err := url.Parse(pageURL)
	if err != nil || data.Root == nil || isLarge(data.Root) {
		return false
	}
	p := newProbe(data.Root, base)
	p.things = thingsOf(data)
	found := p.lists()
	if len(found) == 0 || !found[0].has("url") {
		return false // rows of a table about one thing lead nowhere
	}
	_, counted := p.next(found)
	return !topicOf(data, p, found, p.product(found), counted).single
}

func valueOf(name string, kind model.FieldKind, attr string, n *html.Node) Value {
	if kind == model.Attr {
		return Value{name, strings.TrimSpace(tree.Attr(n, attr))}
	}
	return Value{name, textOf(n)}
}

// maxShown bounds a page's elements. It is below the bound for proposals, which customers request
// one at a time.
const maxShown = 20_000

// maxHeaded is the same bound for Heading.
const maxHeaded = 10_000

func isLarge(root *html.Node) bool { return elementsIn(root) > maxShown }

func elementsIn(root *html.Node) int {
	elements := 0
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			elements++
		}
	}
	return elements
}

// Heading returns the element that names what a page is about, or nil. It is nil for pages of more
// than 10,000 elements, because this work adds to that of other readers.
func Heading(data *structured.Data, pageURL string) *html.Node {
	base, err := url.Parse(pageURL)
	if err != nil || data.Root == nil || elementsIn(data.Root) > maxHeaded {
		return nil
	}
	p := newProbe(data.Root, base)
	p.things = thingsOf(data)
	n, _ := p.heading()
	return n
}
