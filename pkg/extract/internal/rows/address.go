package rows

import (
	"bytes"

	"github.com/nlnwa/whatwg-url/url"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
)

// mayBeAddress says whether an attribute is an address, which rows have in absolute form (decision
// 62). isLate attributes are addresses only of elements that show a file.
func mayBeAddress(attr string) bool {
	switch attr {
	case "href", "src", "poster", "action", "data-src":
		return true
	}
	return isLate(attr)
}

// isLate says whether an attribute is one in which scripts find a picture's address to load it
// late. On other elements it may hold anything, such as an original price.
func isLate(attr string) bool { return attr == "data-original" || attr == "data-lazy-src" }

// HasAddresses says whether a column is such an attribute, so that its values depend on the page's
// base element.
func (c *Column) HasAddresses() bool { return c.kind == model.Attr && mayBeAddress(c.attr) }

// Base returns the selector of the element that a page's addresses are relative to.
func Base() *dom.Selector {
	s, err := dom.CompileSelector("base[href]", new(pattern.Total))
	if err != nil {
		panic("rows: " + err.Error())
	}
	return s
}

// At sets the page's address. Without one, addresses in rows stay as written.
func (w *Writer) At(pageURL string) { w.page, w.href, w.base, w.based = pageURL, "", nil, false }

// resolve makes an address absolute as a browser would, against the page's base element if it has
// one, else against its address. An address that is not on the web stays as written.
func (w *Writer) resolve(doc *dom.Document, cell []byte) []byte {
	if len(cell) == 0 || w.page == "" {
		return cell
	}
	if !w.based {
		w.based = true
		w.href, _ = doc.BaseHref()
	}
	switch path := isPlainPath(cell); {
	case path && w.href == "" && originLength(w.page) > 0:
		origin := w.page[:originLength(w.page)]
		cell = append(cell, origin...)
		copy(cell[len(origin):], cell)
		copy(cell, origin)
		return cell
	case !path && isPlain(cell):
		return cell
	}
	if w.base == nil {
		if w.base = BaseOf(w.page, w.href); w.base == nil {
			return cell
		}
	}
	link, err := w.base.Parse(string(cell))
	if err != nil || !IsWeb(link) {
		return cell
	}
	return append(cell[:0], link.Href(false)...)
}

// BaseOf returns the address that a page's links are relative to, or nil if page is not an address.
// A base element whose address is not on the web does not count.
func BaseOf(page, href string) *url.Url {
	base, err := url.Parse(page)
	if err != nil {
		return nil
	}
	if b, err := base.Parse(href); href != "" && err == nil && IsWeb(b) {
		return b
	}
	return base
}

// The addresses of most pages are resolved without parsing, because a browser would not change
// their spelling.

// isPlainPath says that an address is a path, with query and fragment, whose spelling a browser
// would not change.
func isPlainPath(cell []byte) bool {
	if cell[0] != '/' || len(cell) > 1 && cell[1] == '/' {
		return false
	}
	for i, c := range cell {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			bytes.IndexByte([]byte("/-_~=&+,;:@!$()*?#"), c) >= 0:
		case c == '.' && cell[i-1] != '/': // after a slash, it might go up
		default:
			return false
		}
	}
	return true
}

// isPlain says the same of an address with a scheme and a host.
func isPlain(cell []byte) bool {
	origin := originLength(cell)
	return origin > 0 && isPlainPath(cell[origin:])
}

// originLength returns the length of an address's scheme and host. It is 0 if a browser might
// change their spelling: numeric hosts, ports and names beyond ASCII.
func originLength[T string | []byte](address T) int {
	from := len("http://")
	if len(address) > from && address[4] == 's' {
		from++
	}
	if len(address) < from || string(address[:from]) != "https://" &&
		string(address[:from]) != "http://" {
		return 0
	}
	end, top, dashes := from, from, 0
	for ; end < len(address) && address[end] != '/'; end++ {
		switch c := address[end]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			dashes = 0
		case c == '.':
			top, dashes = end+1, 0
		case c == '-' && dashes == 0: // two mark a name beyond ASCII
			dashes++
		default:
			return 0
		}
	}
	if top == from || end >= len(address) || address[top] < 'a' || address[top] > 'z' {
		return 0
	}
	return end
}

// IsWeb says whether an address is http or https.
func IsWeb(u *url.Url) bool { return u.Scheme() == "http" || u.Scheme() == "https" }
