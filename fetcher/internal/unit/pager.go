package unit

import (
	"net/url"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/model"
)

// pager is one type of pagination (decision 14).
type pager interface {
	// next returns the address of page number page (1 or more) of the chain that begins at the
	// canonical address start. link and cursor were found on the page before. "" ends the chain.
	next(start string, page uint32, link, cursor string) string
}

// newPager returns nil for a recipe without pagination, and for pages that a browser loads into
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

// bodyParam returns the page parameter's value in a curl command's body, if it is there. Page
// addresses have the parameter in their query anyway, so that the pages of a chain differ. See
// Turn.target.
func bodyParam(p *model.Pagination, source *curl.Request) (value string, inBody bool) {
	if p == nil || p.Param == "" || source == nil {
		return "", false
	}
	if canonical, err := address.Canonical(source.URL); err != nil || hasParam(canonical, p.Param) {
		return "", false
	}
	return source.BodyParam(p.Param)
}

// pageParam counts up in a query parameter, from the listed address's value unless told otherwise.
// The first page is the listed address itself.
type pageParam struct {
	param string
	start int // where the address has no value, or always if told
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

// offsetParam counts rows in a query parameter, from the listed address's value.
type offsetParam struct {
	param string
	size  int
	first int // where the address has no value
}

func (p offsetParam) next(start string, page uint32, _, _ string) string {
	first := p.first
	if value, has := paramOf(start, p.param); has {
		first = listed(value, 0)
	}
	return withParam(start, p.param, strconv.Itoa(first+int(page)*p.size))
}

// maxListed bounds the first number of a chain.
const maxListed = 1 << 30

// listed parses the first number of a chain. Anything else yields otherwise.
func listed(value string, otherwise int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > maxListed {
		return otherwise
	}
	return n
}

// urlTemplate numbers the pages from 1. The first page is the listed address itself.
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

// jsonCursor passes the page's cursor on in a query parameter.
type jsonCursor struct{ param string }

func (c jsonCursor) next(start string, _ uint32, _, cursor string) string {
	if cursor == "" || len(cursor) > address.Longest {
		return ""
	}
	return withParam(start, c.param, url.QueryEscape(cursor))
}

// withParam sets a query parameter of a canonical address, in its old place or at the end. The
// other parameters stay byte for byte.
func withParam(address, param, value string) string {
	pair := url.QueryEscape(param) + "=" + value
	base, pairs, at := cutParam(address, param)
	if at < 0 {
		at = len(pairs)
	}
	pairs = append(pairs[:at:at], append([]string{pair}, pairs[at:]...)...)
	return base + "?" + strings.Join(pairs, "&")
}

// withoutParam removes a query parameter from a canonical address.
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

// paramOf returns the value of the first query parameter of that name.
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

// cutParam removes a parameter from an address. It returns the address without its query, the
// remaining parts of the query, and the index where the parameter first stood. at is -1 if there
// was none.
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

// isParam says whether a name as written in an address is param.
func isParam(name, param string) bool {
	if name == param {
		return true
	}
	decoded, err := url.QueryUnescape(name)
	return err == nil && decoded == param
}
