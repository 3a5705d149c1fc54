package detect

import (
	"net/url"
	"strings"

	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/model"
)

// maxNextDepth is how deep in objects of a body what leads to the next page is looked for.
const maxNextDepth = 4

// cursors are members with what asks for the next page, by their letters. Beside each stand the
// parameters of an address that take it, the first unless the address has another.
var cursors = map[string][]string{
	"next":              {"page", "cursor", "offset", "start"},
	"nextpage":          {"page", "p"},
	"nextcursor":        {"cursor", "after", "next"},
	"cursornext":        {"cursor", "after"},
	"cursor":            {"cursor", "after"},
	"endcursor":         {"after", "cursor"},
	"after":             {"after"},
	"nextpagetoken":     {"pageToken", "page_token", "token"},
	"nexttoken":         {"nextToken", "next_token", "token"},
	"continuation":      {"continuation"},
	"continuationtoken": {"continuationToken", "continuation_token"},
	"nextoffset":        {"offset", "start"},
	"nextstart":         {"start", "offset"},
	"scrollid":          {"scroll_id", "scrollId"},
}

// links are members with the address of the next page.
var links = map[string]bool{"next": true, "nexturl": true, "nextlink": true, "nexthref": true,
	"nextpage": true, "nextpageurl": true, "nextpagelink": true, "odatanextlink": true}

// nextInJSON is the pagination of a body that names its next page, nil otherwise.
func nextInJSON(v *structured.JSON, path string, page *url.URL, depth int) *model.Pagination {
	if v.Kind != structured.Object || depth > maxNextDepth {
		return nil
	}
	for i := range v.Members {
		m := &v.Members[i]
		if !printable(m.Name) {
			continue
		}
		name := strings.ToLower(strings.Join(split(m.Name), ""))
		at := path + step(m.Name)
		text := m.Value.Text
		switch {
		case m.Value.Kind == structured.Object && links[name]:
			if href := m.Value.Get("href"); href != nil && isLink(href.Text) {
				return &model.Pagination{Type: model.NextLink, Selector: at + ".href"}
			}
		case m.Value.Kind == structured.String && links[name] && isLink(text):
			return &model.Pagination{Type: model.NextLink, Selector: at}
		case (m.Value.Kind == structured.String || m.Value.Kind == structured.Number) &&
			cursors[name] != nil && text != "" && text != "0" && !isLink(text):
			return &model.Pagination{Type: model.JSONCursor, CursorPath: at,
				Param: parameterOf(page, cursors[name])}
		}
	}
	for i := range v.Members {
		m := &v.Members[i]
		if !printable(m.Name) {
			continue
		}
		if p := nextInJSON(&m.Value, path+step(m.Name), page, depth+1); p != nil {
			return p
		}
	}
	return nil
}

func isLink(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") ||
		strings.HasPrefix(text, "/") || strings.HasPrefix(text, "?")
}

// parameterOf is the one of the names that an address has, or the first.
func parameterOf(page *url.URL, names []string) string {
	query := page.Query()
	for _, name := range names {
		if query.Has(name) {
			return name
		}
	}
	return names[0]
}
