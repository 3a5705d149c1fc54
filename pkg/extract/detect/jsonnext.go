package detect

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/model"
)

// maxNextDepth bounds how deep in a body's objects the next page's link or cursor is searched.
const maxNextDepth = 4

// cursors maps names of cursor members, reduced to their letters, to the address parameters that
// take the cursor. The first parameter is the default if the address has none of them.
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
	"nextpagecursor":    {"cursor", "pageCursor"},
	"continuetoken":     {"continue", "continueToken"},
	"paginationtoken":   {"pagination_token", "paginationToken", "token"},
	"nextmarker":        {"marker"},
	"nextpagenumber":    {"page", "pageNumber"},
	"startafter":        {"start_after", "startAfter"},
}

// links names the members that hold the next page's address.
var links = map[string]bool{"next": true, "nexturl": true, "nextlink": true, "nexthref": true,
	"nextpage": true, "nextpageurl": true, "nextpagelink": true, "odatanextlink": true}

// nextInJSON returns the pagination of a body that names its next page, or nil.
func nextInJSON(v *structured.JSON, path string, page *url.URL, depth int) *model.Pagination {
	if v.Kind != structured.Object || depth > maxNextDepth || isLast(v) {
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
		if list := m.Value; list.Kind == structured.Array && name == "links" && hasNextLink(&list) {
			return &model.Pagination{Type: model.NextLink, Selector: at + "[?@.rel == 'next'].href"}
		}
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

// hasNextLink says whether a list of links includes one to the next page.
func hasNextLink(list *structured.JSON) bool {
	for i := range list.Members {
		rel, href := list.Members[i].Value.Get("rel"), list.Members[i].Value.Get("href")
		if rel != nil && href != nil && rel.Text == "next" && isLink(href.Text) {
			return true
		}
	}
	return false
}

// moreLeft names the members that say whether there is a next page, reduced to their letters.
var moreLeft = map[string]bool{"hasnextpage": true, "hasnext": true, "hasmore": true}

// isLast says whether an object states that no page follows, even if it has a cursor.
func isLast(v *structured.JSON) bool {
	for i := range v.Members {
		m := &v.Members[i]
		if m.Value.Kind == structured.Bool && m.Value.Text == "false" &&
			moreLeft[strings.ToLower(strings.Join(split(m.Name), ""))] {
			return true
		}
	}
	return false
}

// endsIn says whether a body states that no page follows, or has a member for the next page, even
// an empty one.
func endsIn(v *structured.JSON, depth int) bool {
	if v.Kind != structured.Object || depth > maxNextDepth {
		return false
	}
	if isLast(v) {
		return true
	}
	for i := range v.Members {
		m := &v.Members[i]
		name := strings.ToLower(strings.Join(split(m.Name), ""))
		if links[name] || cursors[name] != nil || endsIn(&m.Value, depth+1) {
			return true
		}
	}
	return false
}

// pageParams are the parameters of an address that number pages. offsets are those that number
// items, each with its possible parameters for the page size.
var (
	pageParams = []string{"page", "p", "pageNumber", "page_number", "pageNo", "pg", "seite"}
	offsets    = map[string][]string{"offset": {"limit", "count", "size", "per_page"},
		"start": {"rows", "limit", "count"}, "skip": {"limit", "take", "top"},
		"from": {"size"}, "$skip": {"$top"}}
)

// nextByAddress returns the pagination of a body whose address has the number of its page or of its
// first item, or nil.
func nextByAddress(page *url.URL) *model.Pagination {
	query := page.Query()
	for _, name := range pageParams {
		if _, err := strconv.Atoi(query.Get(name)); err == nil {
			return &model.Pagination{Type: model.URLPageParam, Param: name}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(offsets)) {
		if _, err := strconv.Atoi(query.Get(name)); err != nil {
			continue
		}
		for _, size := range offsets[name] {
			if step, err := strconv.Atoi(query.Get(size)); err == nil && step > 0 {
				return &model.Pagination{Type: model.OffsetParam, Param: name, PageSize: &step}
			}
		}
	}
	return nil
}

func isLink(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") ||
		strings.HasPrefix(text, "/") || strings.HasPrefix(text, "?")
}

// parameterOf returns the first of the names that the address has, or else the first name.
func parameterOf(page *url.URL, names []string) string {
	query := page.Query()
	for _, name := range names {
		if query.Has(name) {
			return name
		}
	}
	return names[0]
}
