package detect

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/model"
)

// config are the fields of a list as a scraper has them.
func (p *probe) config(l list) []model.Field {
	items := p.sel.group(l.items)
	var fields []model.Field
	for _, f := range l.fields {
		css := p.fieldSelector(items, l.items, f)
		if css == "" {
			if len(fields) == 0 {
				return nil // the first field makes the rows
			}
			continue
		}
		fields = append(fields,
			model.Field{Name: f.name, Selector: css, Kind: f.kind, Attr: f.attr})
	}
	return fields
}

// fieldSelector finds a field in all the page: within the items where these have a selector, and
// otherwise by itself.
func (p *probe) fieldSelector(items string, holders []*html.Node, f field) string {
	if items != "" {
		if slices.Equal(holders, f.nodes) {
			return items
		}
		if inner := p.sel.within(holders, f.nodes, f.name == "title"); inner != "" {
			return items + " " + inner
		}
		if joined := p.joined(items, holders, f); joined != "" {
			return joined
		}
	}
	nodes := slices.DeleteFunc(slices.Clone(f.nodes), func(n *html.Node) bool { return n == nil })
	return p.sel.group(nodes)
}

// joined finds a field that stands at several places, by a selector for each.
func (p *probe) joined(items string, holders []*html.Node, f field) string {
	var whole, inner []string
	for _, nodes := range f.parts {
		css := p.sel.within(holders, nodes, false)
		if css == "" {
			return ""
		}
		inner, whole = append(inner, css), append(whole, items+" "+css)
	}
	if len(inner) == 0 || !p.sel.firsts(strings.Join(inner, ", "), holders, f.nodes, false) {
		return ""
	}
	return strings.Join(whole, ", ")
}

// nextLinks are how pages commonly mark the link to the next one.
var nextLinks = []string{`a[rel="next"]`, "a.next", ".next > a", `.pagination a[aria-label*="ext"]`,
	`a[aria-label="Next page"]`,
	"a.pagination-next", "li.next a", ".pagination__next", "a.page-next", ".pager a.next"}

// next is the pagination of a page that links to the next one, nil otherwise.
func (p *probe) next() *model.Pagination {
	for _, css := range nextLinks {
		matches := p.sel.all(css)
		if len(matches) == 0 {
			continue
		}
		href := strings.TrimSpace(attribute(matches[0], "href"))
		link, err := p.base.Parse(href)
		if err != nil || href == "" || href[0] == '#' {
			continue
		}
		if link.Fragment = ""; link.Host == p.base.Host && link.String() != p.base.String() {
			return &model.Pagination{Type: model.NextLink, Selector: css}
		}
	}
	return nil
}
