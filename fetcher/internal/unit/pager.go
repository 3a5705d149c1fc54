package unit

import (
	"net/url"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/model"
)

// pager is a type of pagination (decision 14).
type pager interface {
	// next is the address of page number page, 1 or more, of the chain that begins at the canonical
	// address start. link and cursor are what the recipe found on the page before it. "" ends the
	// chain.
	next(start string, page uint32, link, cursor string) string
}

// newPager is nil for a recipe without pagination, and for one whose pages a browser loads into
// one.
func newPager(p *model.Pagination, source *curl.Request) pager {
	if p == nil {
		return nil
	}
	switch p.Type {
	case model.URLPageParam:
		pages := pageParam{param: p.Param, start: 1, told: p.Start != nil, step: 1}
		if value, inBody := bodyParam(p, source); inBody {
			pages.start = listed(value, pages.start)
		}
		if p.Start != nil {
			pages.start = *p.Start
		}
		if p.Step != nil {
			pages.step = *p.Step
		}
		return pages
	case model.OffsetParam:
		pages := offsetParam{param: p.Param}
		if p.PageSize != nil {
			pages.size = *p.PageSize
		}
		if value, inBody := bodyParam(p, source); inBody {
			pages.first = listed(value, 0)
		}
		return pages
	case model.URLTemplate:
		return urlTemplate{p.Template}
	case model.NextLink:
		return nextLink{}
	case model.JSONCursor:
		return jsonCursor{p.Param}
	}
	return nil
}

// bodyParam is the value of the page parameter where it stands in a curl command's body. The
// address of a page has it in its query all the same, so that the pages of a chain can be told
// apart. See chain.request.
func bodyParam(p *model.Pagination, source *curl.Request) (value string, inBody bool) {
	if p == nil || p.Param == "" || source == nil {
		return "", false
	}
	if canonical, err := address.Canonical(source.URL); err != nil || hasParam(canonical, p.Param) {
		return "", false
	}
	return source.BodyParam(p.Param)
}

// pageParam counts up in a query parameter, unless told from where the listed address begins. The
// first page is the address as it is listed.
type pageParam struct {
	param string
	start int // where the address says nothing, or always
	told  bool
	step  int
}

func (p pageParam) next(start string, page uint32, _, _ string) string {
	first := p.start
	if value, has := paramOf(start, p.param); has && !p.told {
		first = listed(value, first)
	}
	return withParam(start, p.param, strconv.Itoa(first+int(page)*p.step))
}

// offsetParam counts rows in a query parameter, from where the listed address begins.
type offsetParam struct {
	param string
	size  int
	first int // where the address says nothing
}

func (p offsetParam) next(start string, page uint32, _, _ string) string {
	first := p.first
	if value, has := paramOf(start, p.param); has {
		first = listed(value, 0)
	}
	return withParam(start, p.param, strconv.Itoa(first+int(page)*p.size))
}

// maxListed bounds the number that a chain begins with.
const maxListed = 1 << 30

// listed reads where a chain begins; what is no such number is otherwise.
func listed(value string, otherwise int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > maxListed {
		return otherwise
	}
	return n
}

// urlTemplate numbers the pages from 1; the first one is the address as it is listed.
type urlTemplate struct{ template string }

func (t urlTemplate) next(start string, page uint32, _, _ string) string {
	number := strconv.FormatUint(uint64(page)+1, 10)
	next, err := address.Resolve(start,
		strings.ReplaceAll(t.template, model.PagePlaceholder, number))
	if err != nil {
		return ""
	}
	return next
}

// nextLink follows a link on the page.
type nextLink struct{}

func (nextLink) next(_ string, _ uint32, link, _ string) string { return link }

// jsonCursor hands the page's cursor on in a query parameter.
type jsonCursor struct{ param string }

func (c jsonCursor) next(start string, _ uint32, _, cursor string) string {
	if cursor == "" || len(cursor) > address.Longest {
		return ""
	}
	return withParam(start, c.param, url.QueryEscape(cursor))
}

// withParam sets a query parameter in a canonical address: in its place where it stands already,
// else at the end. The other parameters stay byte for byte.
func withParam(address, param, value string) string {
	pair := url.QueryEscape(param) + "=" + value
	base, pairs, at := cutParam(address, param)
	if at < 0 {
		at = len(pairs)
	}
	pairs = append(pairs[:at:at], append([]string{pair}, pairs[at:]...)...)
	return base + "?" + strings.Join(pairs, "&")
}

// withoutParam takes a query parameter out of a canonical address.
func withoutParam(address, param string) string {
	base, pairs, at := cutParam(address, param)
	if at < 0 {
		return address
	}
	if len(pairs) == 0 {
		return base
	}
	return base + "?" + strings.Join(pairs, "&")
}

// paramOf is the value of the first query parameter of that name.
func paramOf(address, param string) (value string, found bool) {
	_, query, _ := strings.Cut(address, "?")
	for part := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(part, "="); isParam(name, param) && part != "" {
			decoded, err := url.QueryUnescape(value)
			return decoded, err == nil
		}
	}
	return "", false
}

func hasParam(address, param string) bool {
	_, found := paramOf(address, param)
	return found
}

// cutParam cuts one parameter from an address. It gives the address without its query, the query's
// other parts, and the place among them where the first of that parameter's stood. The place is -1
// if there was none.
func cutParam(address, param string) (base string, pairs []string, at int) {
	base, query, _ := strings.Cut(address, "?")
	at = -1
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		switch {
		case part == "":
		case !isParam(name, param):
			pairs = append(pairs, part)
		case at < 0:
			at = len(pairs)
		}
	}
	return base, pairs, at
}

// isParam says whether a name as it stands in an address is that of a parameter.
func isParam(name, param string) bool {
	if name == param {
		return true
	}
	decoded, err := url.QueryUnescape(name)
	return err == nil && decoded == param
}
