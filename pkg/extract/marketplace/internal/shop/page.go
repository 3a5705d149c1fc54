// Package shop owns the knowledge of shop systems: how to recognize the system behind a page, and
// where each keeps a product's properties. All systems give the same form of row. The plugins
// decide which kind of page to read.
package shop

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/pattern"
)

// Page is a parsed page of a shop.
type Page struct {
	root     *html.Node
	data     *structured.Data
	base     *url.URL
	address  string
	platform *platform           // nil if the system is unknown
	items    map[*html.Node]bool // list items, whose contents do not count
	heading  string              // of a product page
	work     *pattern.Budget
}

// Open parses a page; reading it ends with the context. Errors are coded not_html or unparsable.
func Open(ctx context.Context, p page.Page) (*Page, error) {
	if err := p.CheckHTML(); err != nil {
		return nil, err
	}
	root, err := tree.Parse(p.Body, tree.MaxBytes)
	if err != nil {
		return nil, fault.Wrap(fault.PageUnparsable, err, "the page cannot be parsed")
	}
	opened := &Page{root: root, data: structured.ReadTree(root, p.URL), address: p.URL,
		platform: detect(p.Body), work: pattern.NewBudget(ctx, maxWork)}
	if opened.base, err = baseOf(root, p.URL); err != nil {
		return nil, fault.Wrap(fault.PageUnparsable, err, "the page has no address")
	}
	return opened, nil
}

// Err returns an error coded too_costly if the page took too long to read, or the context's error.
// After either, what was read does not count.
func (p *Page) Err() error {
	err := p.work.Err()
	if errors.Is(err, pattern.ErrExhausted) {
		return fault.Wrap(fault.PageTooCostly, err, "the page takes too long to read")
	}
	return err
}

var errNoAddress = errors.New("the address is not absolute")

// baseOf returns the address that the page's links are relative to.
func baseOf(root *html.Node, address string) (*url.URL, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if !base.IsAbs() {
		return nil, errNoAddress
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "base" {
			continue
		}
		if given, err := base.Parse(tree.Attr(n, "href")); err == nil && isWeb(given) {
			return given, nil
		}
		break
	}
	return base, nil
}

func isWeb(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// counts says that an element lies outside the list items that do not count.
func (p *Page) counts(n *html.Node) bool {
	if len(p.items) == 0 {
		return true
	}
	for ; n != nil && p.work.Spend(1); n = n.Parent {
		if p.items[n] {
			return false
		}
	}
	return true
}

// Platform returns the shop system's name, or "schema.org" for an unknown system.
func (p *Page) Platform() string {
	if p.platform == nil {
		return "schema.org"
	}
	return p.platform.name
}

// resolve returns a link's absolute address, or "" if it cannot be fetched.
func (p *Page) resolve(link string) string {
	if link = strings.TrimSpace(link); link == "" || strings.HasPrefix(link, "#") {
		return ""
	}
	u, err := p.base.Parse(link)
	if err != nil || !isWeb(u) {
		return ""
	}
	return u.String()
}

// maxText is the bound on an element's text, in bytes.
const maxText = 1 << 16

// text returns the text that a browser shows of an element, with white space collapsed.
func (p *Page) text(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		switch {
		case b.Len() > maxText || !p.work.Spend(1+len(n.Data)/bytesPerStep):
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case n.Type == html.ElementNode &&
			(n.Data == "script" || n.Data == "style" || n.Data == "noscript" ||
				n.Data == "template"):
		default:
			apart := n.Type == html.ElementNode && !inline[n.Data]
			if apart {
				b.WriteByte(' ')
			} else if n.Type == html.ElementNode {
				b.WriteString(tree.Between(b.String(), n))
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				walk(c)
			}
			if apart {
				b.WriteByte(' ')
			}
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

// inline lists the elements that do not interrupt a line of text.
var inline = map[string]bool{"a": true, "abbr": true, "b": true, "bdi": true, "bdo": true,
	"em": true, "font": true, "i": true, "ins": true,
	"mark": true, "small": true, "span": true, "strong": true, "sub": true, "sup": true, "u": true}

// image returns the address of an img element, even where a lazy-loading script keeps it, or "" if
// there is none.
func (p *Page) image(n *html.Node) string {
	if n.Data != "img" && n.Data != "source" {
		for c := range n.Descendants() {
			if !p.work.Spend(1) {
				break
			}
			if c.Type == html.ElementNode && c.Data == "img" {
				if found := p.image(c); found != "" {
					return found
				}
			}
		}
		return ""
	}
	for _, name := range [...]string{"data-zoom-image", "data-large_image", "data-full-image",
		"data-original", "data-src", "data-lazy-src", "src"} {
		if link := tree.Attr(n, name); link != "" && !strings.HasPrefix(link, "data:") &&
			!strings.Contains(link, "{width}") {
			return p.resolve(link)
		}
	}
	for _, name := range [...]string{"data-srcset", "srcset"} {
		first, _, _ := strings.Cut(strings.TrimSpace(tree.Attr(n, name)), " ")
		if first = strings.TrimSuffix(first, ","); first != "" &&
			!strings.HasPrefix(first, "data:") {
			return p.resolve(first)
		}
	}
	return ""
}
