package dom

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
)

// oracle is a page read by x/net/html and adapted to a Document. It has no contents of templates,
// lower-case names, and namespaced attributes under their written names.
type oracle struct {
	root  *html.Node
	elems []*html.Node
}

func parseOracle(page string) (*oracle, error) {
	root, err := html.Parse(strings.NewReader(strings.TrimPrefix(page, "\ufeff")))
	if err != nil {
		return nil, err
	}
	o := &oracle{root: root}
	o.normalise(root)
	return o, nil
}

func (o *oracle) normalise(n *html.Node) {
	if n.Type == html.ElementNode {
		o.elems = append(o.elems, n)
		n.Data = lowerASCII(n.Data)
		for i, a := range n.Attr {
			key := lowerASCII(a.Key)
			if a.Namespace != "" {
				key = a.Namespace + ":" + key
			}
			n.Attr[i] = html.Attribute{Key: key, Val: a.Val}
		}
		if n.Data == "template" {
			for n.FirstChild != nil {
				n.RemoveChild(n.FirstChild)
			}
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		o.normalise(c)
	}
}

// textOf is AppendText implemented literally.
func textOf(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(p *html.Node) {
		for c := p.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.TextNode {
				b.WriteString(c.Data)
			}
			switch c.Data {
			case "script", "style", "template", "noscript", "iframe", "noembed", "noframes":
				if c.Type == html.ElementNode {
					continue
				}
			}
			walk(c)
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

// dump returns a document as text, one element a line.
func (d *Document) dump() []string {
	var lines []string
	var path []string
	for e := range d.elems {
		el := &d.elems[e]
		depth := 0
		for p := el.parent; p != None; p = d.elems[p].parent {
			depth++
		}
		path = append(path[:depth], el.name())
		line := fmt.Sprintf("%s end=%d prev=%d place=%d/%d", strings.Join(path, ">"), el.end,
			el.prev, el.index, el.kids)
		seen := map[string]bool{}
		for i := el.attrs; i < el.attrsEnd; i++ {
			seen[d.attrs[i].name] = true
			line += fmt.Sprintf(" %s=%q", d.attrs[i].name, d.value(i))
		}
		if seen["class"] != (el.class >= 0) || seen["id"] != (el.id >= 0) {
			line += " class or id not noted"
		}
		own := strings.Join(strings.Fields(string(d.appendRaw(nil, Elem(e), true))), " ")
		lines = append(lines, line+fmt.Sprintf(" %q %q", d.AppendText(nil, Elem(e)), own))
	}
	return lines
}

func (o *oracle) dump() []string {
	place := map[*html.Node]int{}
	for i, n := range o.elems {
		place[n] = i
	}
	var lines []string
	for _, n := range o.elems {
		var path []string
		for p := n; p != nil && p.Type == html.ElementNode; p = p.Parent {
			path = append([]string{p.Data}, path...)
		}
		prev, index, kids, own := -1, 1, 0, ""
		for s := n.PrevSibling; s != nil; s = s.PrevSibling {
			if s.Type == html.ElementNode {
				index++
				if prev == -1 {
					prev = place[s]
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.ElementNode {
				kids++
			}
			if c.Type == html.TextNode {
				own += c.Data
			}
		}
		line := fmt.Sprintf("%s end=%d prev=%d place=%d/%d", strings.Join(path, ">"),
			place[n]+count(n), prev, index, kids)
		for _, a := range n.Attr {
			line += fmt.Sprintf(" %s=%q", a.Key, a.Val)
		}
		lines = append(lines, line+fmt.Sprintf(" %q %q", textOf(n),
			strings.Join(strings.Fields(own), " ")))
	}
	return lines
}

// count returns the number of elements in n, itself included.
func count(n *html.Node) int {
	total := 0
	if n.Type == html.ElementNode {
		total = 1
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		total += count(c)
	}
	return total
}
