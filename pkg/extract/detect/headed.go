package detect

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/utf8text"
)

// Bounds of tables.
const (
	minRows     = 3
	keptTables  = 3
	maxNameChar = 60
)

// headed is a data table: its head names the columns, and its other rows have one cell for each.
type headed struct {
	rows   []*html.Node
	fields []model.Field // the first one makes the rows
}

// headed finds the data tables, in the order of the page.
func (p *probe) headed() []headed {
	var found []headed
	seen := 0
	elements(p.root, func(n *html.Node) bool {
		if seen++; seen > maxElements || len(found) == keptTables {
			return false
		}
		if n.Data == "table" && !p.isBeside(n) {
			if t, ok := p.headedTable(n); ok {
				found = append(found, t)
			}
		}
		return true
	})
	return found
}

func (p *probe) headedTable(n *html.Node) (headed, bool) {
	rows := rowsIn(n)
	var head []*html.Node
	for len(rows) > 0 && all(cellsIn(rows[0]), "th") {
		head, rows = cellsIn(rows[0]), rows[1:]
	}
	var t headed
	for _, row := range rows[:min(len(rows), maxItems)] {
		if len(cellsIn(row)) == len(head) {
			t.rows = append(t.rows, row)
		}
	}
	if len(head) < 2 || len(head) > maxJSONFields || slices.ContainsFunc(head, spans) ||
		len(t.rows) < minRows ||
		len(t.rows)*10 < len(rows)*7 && len(rows) <= maxItems {
		return t, false
	}
	table := p.tableSelector(n)
	if table == "" {
		return t, false
	}
	t.fields = columnsIn(table, head, t.rows)
	return t, len(t.fields) > 1
}

// tableSelector returns a selector for one table, or "" if there is none.
func (p *probe) tableSelector(n *html.Node) string {
	if id := tree.Attr(n, "id"); isIdentifier(id) && isStable(id) &&
		len(p.sel.all("#"+id)) == 1 {
		return "#" + id
	}
	return p.sel.group([]*html.Node{n})
}

// columnsIn makes fields of a table's columns. The first field is a column of plain cells that all
// rows fill, because a selector for row heads would also match the column heads.
func columnsIn(table string, head, rows []*html.Node) []model.Field {
	var fields []model.Field
	names := map[string]bool{}
	first, link := -1, ""
	for k, cell := range head {
		heads, texts, links, same := 0, 0, 0, 0
		whole := textOf(cellsIn(rows[0])[k])
		for _, row := range rows {
			own := cellsIn(row)[k]
			text := textOf(own)
			heads += count(own.Data == "th")
			texts += count(text != "")
			links += count(linkIn(own))
			same += count(text == whole)
		}
		if texts == 0 || same == len(rows) {
			continue // constant or empty
		}
		data := "td"
		if heads*2 > len(rows) {
			data = "th"
		}
		css := fmt.Sprintf("%s %s:nth-child(%d)", table, data, k+1)
		if data == "td" && heads == 0 && texts == len(rows) && first < 0 {
			first = len(fields)
		}
		if links*10 >= len(rows)*7 && link == "" {
			link = css + " a"
		}
		fields = append(fields,
			model.Field{Name: nameIn(textOf(cell), k, names), Selector: css, Kind: model.Text})
	}
	if first < 0 {
		return nil
	}
	makes := fields[first]
	fields = append([]model.Field{makes}, slices.Delete(fields, first, first+1)...)
	if link != "" && !names["url"] {
		fields = append(fields,
			model.Field{Name: "url", Selector: link, Kind: model.Attr, Attr: "href"})
	}
	return fields
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// nameIn makes a unique field name of a column head's text.
func nameIn(text string, k int, taken map[string]bool) string {
	name := shortName(text)
	if name == "" {
		name = fmt.Sprintf("column %d", k+1)
	}
	for n, whole := 2, name; taken[name]; n++ {
		name = fmt.Sprintf("%s %d", whole, n)
	}
	taken[name] = true
	return name
}

// shortName makes a field's name of a page's words, or "" if there are none. A page may write
// anything, and agents read names as the customer's own. So a name is short, and has only letters,
// digits, spaces, underscores and hyphens.
func shortName(words string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsNumber(r), r == '_', r == '-':
			return r
		case utf8text.Hides(r) && !unicode.IsSpace(r), unicode.Is(unicode.Cf, r):
			return -1 // it separates no words
		}
		return ' '
	}, words)
	name = strings.Join(strings.Fields(name), " ")
	return utf8text.CutName(strings.Trim(name, "_- "), maxNameChar)
}

// rowsIn returns a table's own rows.
func rowsIn(table *html.Node) []*html.Node {
	var rows []*html.Node
	for part := table.FirstChild; part != nil; part = part.NextSibling {
		switch part.Data {
		case "thead", "tbody", "tfoot":
			for row := part.FirstChild; row != nil; row = row.NextSibling {
				if row.Data == "tr" {
					rows = append(rows, row)
				}
			}
		}
	}
	return rows
}

func cellsIn(row *html.Node) []*html.Node {
	var cells []*html.Node
	for cell := row.FirstChild; cell != nil; cell = cell.NextSibling {
		if cell.Data == "td" || cell.Data == "th" {
			cells = append(cells, cell)
		}
	}
	return cells
}

// all says whether there are cells and all have this name.
func all(cells []*html.Node, name string) bool {
	return len(cells) > 0 && !slices.ContainsFunc(cells,
		func(n *html.Node) bool { return n.Data != name })
}

// spans says whether a cell spans several columns or rows.
func spans(n *html.Node) bool {
	wide, tall := tree.Attr(n, "colspan"), tree.Attr(n, "rowspan")
	return wide != "" && wide != "1" || tall != "" && tall != "1"
}

// linkIn says whether a cell has a link to elsewhere.
func linkIn(cell *html.Node) bool {
	found := false
	elements(cell, func(n *html.Node) bool {
		href := tree.Attr(n, "href")
		found = found || n.Data == "a" && href != "" && href[0] != '#'
		return !found
	})
	return found
}

// wholeCells says whether most nodes are the whole text of their cells.
func wholeCells(nodes []*html.Node) bool {
	whole := 0
	for _, n := range nodes {
		if cell := ancestor(n, named("td", "th")); cell != nil && textOf(cell) == textOf(n) {
			whole++
		}
	}
	return whole*2 > len(nodes)
}
