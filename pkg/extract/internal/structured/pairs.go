package structured

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of a labelled value, in bytes. A longer label is prose, a longer value not a fact.
const (
	maxLabel = 80
	maxFact  = 2_000
)

// pair adds a labelled value.
func (r *reader) pair(label, value string) {
	label = strings.TrimSpace(strings.TrimRight(label, " \u00a0:："))
	if label == "" || value == "" || len(label) > maxLabel || len(value) > maxFact {
		return
	}
	if len(r.data.Pairs) == maxPairs {
		r.data.Cut = true
		return
	}
	r.data.Pairs = append(r.data.Pairs, Pair{label, value})
}

func (r *reader) label(n *html.Node) string { return r.textUpTo(n, maxLabel) }
func (r *reader) fact(n *html.Node) string  { return r.textUpTo(n, maxFact) }

// readTable reads a table whose rows have a label and a value, or whose head labels its only other
// row.
func (r *reader) readTable(table *html.Node) {
	rows := rowsOf(table)
	if len(rows) == 0 {
		return
	}
	if head := rows[0]; len(rows) == 2 && len(head) > 2 && len(head) == len(rows[1]) &&
		allHeads(head) {
		for i, cell := range head {
			r.pair(r.label(cell), r.fact(rows[1][i]))
		}
		return
	}
	labelled := 0
	for _, row := range rows {
		if len(row) == 2 && !hasTable(row[1]) {
			labelled++
		}
	}
	if 2*labelled < len(rows) || labelled == 0 {
		return
	}
	for _, row := range rows {
		if len(row) == 2 && !allHeads(row) && !hasTable(row[1]) && !hasTable(row[0]) {
			r.pair(r.label(row[0]), r.fact(row[1]))
		}
	}
}

// rowsOf returns the cells of a table's own rows.
func rowsOf(table *html.Node) [][]*html.Node {
	var rows [][]*html.Node
	var visit func(*html.Node)
	visit = func(n *html.Node) {
		for c := n.FirstChild; c != nil && len(rows) < maxPairs; c = c.NextSibling {
			switch c.DataAtom {
			case atom.Thead, atom.Tbody, atom.Tfoot:
				visit(c)
			case atom.Tr:
				var cells []*html.Node
				for cell := c.FirstChild; cell != nil; cell = cell.NextSibling {
					if cell.DataAtom == atom.Td || cell.DataAtom == atom.Th {
						cells = append(cells, cell)
					}
				}
				rows = append(rows, cells)
			}
		}
	}
	visit(table)
	return rows
}

func allHeads(cells []*html.Node) bool {
	for _, c := range cells {
		if c.DataAtom != atom.Th {
			return false
		}
	}
	return true
}

func hasTable(n *html.Node) bool {
	for c := range n.Descendants() {
		if c.DataAtom == atom.Table {
			return true
		}
	}
	return false
}

// readDefinitions reads a definition list; several definitions of one term form one value.
func (r *reader) readDefinitions(list *html.Node) {
	label := ""
	var values []string
	flush := func() {
		if label != "" {
			r.pair(label, strings.Join(values, ", "))
		}
		values = nil
	}
	var visit func(*html.Node, int)
	visit = func(n *html.Node, depth int) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch c.DataAtom {
			case atom.Dt:
				flush()
				label = r.label(c)
			case atom.Dd:
				if v := r.fact(c); v != "" && len(values) < maxDepth {
					values = append(values, v)
				}
			case atom.Div:
				if depth == 0 {
					visit(c, 1)
				}
			}
		}
	}
	visit(list, 0)
	flush()
}

// readLine reads a line such as <li><b>Brand:</b> Acme</li>: a short element that ends with, or is
// followed by, a colon, and then the value.
func (r *reader) readLine(n *html.Node) {
	label := firstChild(n)
	if label == nil || label.Type != html.ElementNode || isBreak(label) &&
		label.DataAtom != atom.Label || label.DataAtom == atom.A {
		return
	}
	if label.NextSibling == nil || !isShort(n) {
		return
	}
	name, whole := r.label(label), r.fact(n)
	value, ok := strings.CutPrefix(whole, name)
	if !ok {
		return
	}
	value = strings.TrimSpace(value)
	if rest, ok := strings.CutPrefix(value, ":"); ok {
		value = strings.TrimSpace(rest)
	} else if !strings.HasSuffix(name, ":") && !strings.HasSuffix(name, "：") {
		return
	}
	r.pair(name, value)
}

func firstChild(n *html.Node) *html.Node {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode || c.Type == html.TextNode &&
			strings.TrimSpace(c.Data) != "" {
			return c
		}
	}
	return nil
}

// isShort says whether an element has few elements and little text.
func isShort(n *html.Node) bool {
	elements, text := 0, 0
	for c := range n.Descendants() {
		if c.Type == html.ElementNode {
			elements++
		} else {
			text += utf8.RuneCountInString(c.Data)
		}
		if elements > 12 || text > maxFact {
			return false
		}
	}
	return true
}
