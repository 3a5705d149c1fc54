package extract

import (
	"bytes"
	"strings"

	"github.com/nlnwa/whatwg-url/url"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// checkHTML refuses what is no HTML page: another media type, or none and a body that does not begin like markup.
func checkHTML(p Page) error {
	media, _, _ := strings.Cut(p.ContentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	switch media {
	case "text/html", "application/xhtml+xml":
		return nil
	case "":
		body := bytes.TrimLeft(bytes.TrimPrefix(p.Body, []byte("\xef\xbb\xbf")), " \t\r\n\f")
		if len(body) > 0 && body[0] == '<' && !bytes.HasPrefix(body, []byte("<?xml")) {
			return nil
		}
		return fault.New(fault.PageNotHTML, "the answer has no media type and does not look like HTML")
	}
	return fault.New(fault.PageNotHTML, "the media type is %.100q", media)
}

func compileNext(p *model.Pagination) (*dom.Selector, *fault.Error) {
	if p == nil || p.Type != model.NextLink {
		return nil, nil
	}
	return rows.CompileSelector("sourceConfig.pagination.selector", p.Selector)
}

// nextLink is the href of the selector's first match, resolved as a browser would: against the page's base element if
// it has one, else against its address.
func nextLink(doc *dom.Document, next *dom.Selector, pageURL string) string {
	if next == nil {
		return ""
	}
	match := next.First(doc, dom.Whole)
	if match == dom.None {
		return ""
	}
	href, ok := doc.Attr(match, "href")
	if !ok {
		return ""
	}
	base, err := url.Parse(pageURL)
	if err != nil {
		return ""
	}
	if baseHref, ok := doc.BaseHref(); ok {
		if b, err := base.Parse(baseHref); err == nil {
			base = b
		}
	}
	link, err := base.Parse(href)
	if err != nil || (link.Scheme() != "http" && link.Scheme() != "https") {
		return ""
	}
	return link.Href(false)
}
