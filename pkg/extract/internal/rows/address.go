package rows

import (
	"github.com/nlnwa/whatwg-url/url"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/model"
)

// isAddress says whether an attribute leads somewhere: rows have it as an absolute address (decision 62).
func isAddress(attr string) bool {
	switch attr {
	case "href", "src", "poster", "action", "data-src":
		return true
	}
	return false
}

// HasAddresses says whether a column is such an attribute: what it is depends on the page's base element.
func (c *Column) HasAddresses() bool { return c.kind == model.Attr && isAddress(c.attr) }

// Base chooses what a page's addresses are relative to.
func Base() *dom.Selector {
	s, err := dom.CompileSelector("base[href]")
	if err != nil {
		panic("rows: " + err.Error())
	}
	return s
}

// At says which address the page has. Without one, addresses in rows are as written.
func (w *Writer) At(pageURL string) { w.page, w.base, w.based = pageURL, nil, false }

// resolve makes an address absolute as a browser would, by the page's base element if it has one, else by its address.
// What leads nowhere on the web is as written.
func (w *Writer) resolve(doc *dom.Document, cell []byte) []byte {
	if len(cell) == 0 || w.page == "" {
		return cell
	}
	if !w.based {
		w.based = true
		if base, err := url.Parse(w.page); err == nil {
			w.base = base
			if href, ok := doc.BaseHref(); ok && href != "" {
				if b, err := base.Parse(href); err == nil && isWeb(b) {
					w.base = b
				}
			}
		}
	}
	if w.base == nil {
		return cell
	}
	link, err := w.base.Parse(string(cell))
	if err != nil || !isWeb(link) {
		return cell
	}
	return append(cell[:0], link.Href(false)...)
}

func isWeb(u *url.Url) bool { return u.Scheme() == "http" || u.Scheme() == "https" }
