package fetcher

import (
	"net/url"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/model"
)

// pager is a type of pagination (decision 14).
type pager interface {
	// next is the address of page number page, 1 or more, of the chain that begins at start; link is what the
	// recipe's selector found on the page before it. "" ends the chain.
	next(start string, page uint32, link string) string
}

// newPager is nil for a recipe without pagination.
func newPager(p *model.Pagination) pager {
	if p == nil {
		return nil
	}
	switch p.Type {
	case model.URLPageParam:
		pages := pageParam{param: p.Param, start: 1, step: 1}
		if p.Start != nil {
			pages.start = *p.Start
		}
		if p.Step != nil {
			pages.step = *p.Step
		}
		return pages
	case model.NextLink:
		return nextLink{}
	}
	return nil
}

// pageParam counts up in a query parameter. The first page is the address as it is listed.
type pageParam struct {
	param       string
	start, step int
}

func (p pageParam) next(start string, page uint32, _ string) string {
	return withParam(start, p.param, strconv.Itoa(p.start+int(page)*p.step))
}

// nextLink follows a link on the page.
type nextLink struct{}

func (nextLink) next(_ string, _ uint32, link string) string { return link }

// withParam sets a query parameter in a canonical address: in its place where it stands already, else at the end. The
// other parameters stay byte for byte.
func withParam(address, param, value string) string {
	base, query, _ := strings.Cut(address, "?")
	pair := url.QueryEscape(param) + "=" + value
	var pairs []string
	placed := false
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		switch {
		case name != param && name != url.QueryEscape(param):
			if part != "" {
				pairs = append(pairs, part)
			}
		case !placed:
			pairs, placed = append(pairs, pair), true
		}
	}
	if !placed {
		pairs = append(pairs, pair)
	}
	return base + "?" + strings.Join(pairs, "&")
}
