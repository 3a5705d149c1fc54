package synthweb

import (
	"fmt"
	"html"
	"net"
	"strings"
)

// templateNumber is the placeholder of a Template for the address's number.
const templateNumber = "12345"

// barePageBytes is roughly the size of a product page without its filler.
const barePageBytes = 1400

const style = `<style>
body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#faf8f5;max-width:52rem;margin:0 auto;padding:1rem}
header a{font-weight:700;color:#7a4b2a;text-decoration:none}
main{background:#fff;border:1px solid #e5dfd8;border-radius:8px;padding:1rem 2rem;margin:1rem 0}
.price{font-size:1.5rem;font-weight:600}.was{text-decoration:line-through;color:#999}.offer{color:#b3261e}
.sku,.about,footer{color:#666;font-size:.9rem}.stock{color:#2e6b34}
.items{list-style:none;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(14rem,1fr));gap:1rem}
.item .title{font-size:1rem}
</style>`

// top writes a page up to its main part. canonical is empty for pages that must not have any field.
func (w *Web) top(dst []byte, host int, title, canonical string) []byte {
	shop := shopName(w.names[host])
	dst = fmt.Appendf(dst, "<!doctype html>\n<html lang=\"en\"><head><meta "+
		"charset=\"utf-8\"><title>%s · %s</title>",
		html.EscapeString(title), shop)
	if canonical != "" {
		dst = fmt.Appendf(dst, "<link rel=\"canonical\" href=\"%s\">", canonical)
	}
	dst = append(dst, style...)
	return fmt.Appendf(dst, "</head>\n<body><header><a href=\"/\">%s</a></header>\n<main>\n", shop)
}

func bottom(dst []byte) []byte {
	return append(dst, "</main>\n<footer>A shop of the synthetic web</footer></body></html>\n"...)
}

// message is a page without any field: errors, ends of chains.
func (w *Web) message(dst []byte, host int, text string) []byte {
	dst = w.top(dst, host, text, "")
	dst = fmt.Appendf(dst, "<p>%s</p>\n", html.EscapeString(text))
	return bottom(dst)
}

// product is the page of one product, padded to one of PageBytes.
func (w *Web) product(dst []byte, p page, g goods) []byte {
	dst = w.top(dst, int(p.host), g.title, w.url(p))
	if p.class == LinkedData {
		dst = w.linkedData(dst, p, g)
	}
	dst = fmt.Appendf(dst, "<h1 class=\"title\">%s</h1>\n", html.EscapeString(g.title))
	dst = appendGoods(dst, g)
	dst = append(dst, "<section class=\"about\">\n"...)
	dst = append(dst, w.padding[w.size(p)].text...)
	dst = append(dst, "</section>\n"...)
	return bottom(dst)
}

// appendGoods writes the fields except the title, the same way on product pages and in listings.
func appendGoods(dst []byte, g goods) []byte {
	dst = fmt.Appendf(dst, "<p><span class=\"price\">%s</span> <span class=\"currency\">EUR</span>",
		g.price)
	if g.offer {
		dst = fmt.Appendf(dst, " <span class=\"was\">%s</span> <b class=\"offer\">Offer</b>", g.was)
	}
	return fmt.Appendf(dst, "</p>\n<div class=\"sku\">%s</div>\n<div class=\"stock\">%s</div>\n",
		g.sku, g.stock)
}

// listing is one page of a chain. fetch is the number of fetches of the chain so far, including
// this one.
func (w *Web) listing(dst []byte, p page, fetch int) []byte {
	host, n := int(p.host), int(p.n)
	pages := w.chainPages(host, n)
	if int(p.turn) > pages && w.repeatsLast(p) {
		p.turn = int32(pages)
	}
	dst = w.top(dst, host, fmt.Sprintf("Shelf %d, page %d", n, p.turn), w.url(p))
	dst = fmt.Appendf(dst, "<h1>Shelf %d</h1>\n", n)
	if int(p.turn) > pages {
		return bottom(append(dst, "<p>Nothing more here.</p>\n"...))
	}
	dst = append(dst, "<ul class=\"items\">\n"...)
	from, to := w.itemRange(p)
	for i := from; i < to; i++ {
		g := w.goodsOf(host, n, i+1)
		if p.class.isChanging() {
			g.stock = fetchStock(fetch)
		}
		dst = fmt.Appendf(dst, "<li class=\"item\"><h2 class=\"title\"><a class=\"link\" "+
			"href=\"%s\">%s</a></h2>\n",
			w.url(w.itemPage(p, i)), html.EscapeString(g.title))
		dst = append(appendGoods(dst, g), "</li>\n"...)
	}
	dst = append(dst, "</ul>\n"...)
	if int(p.turn) < pages || p.class == BrokenListing {
		next := p
		next.turn++
		dst = fmt.Appendf(dst, "<nav><a rel=\"next\" href=\"%s\">Next page</a></nav>\n",
			w.path(next))
	}
	return bottom(dst)
}

// itemRange returns which of the chain's items a page shows.
func (w *Web) itemRange(p page) (from, to int) {
	from = (int(p.turn) - 1) * w.config.ItemsPerPage
	return from, min(from+w.config.ItemsPerPage, w.chainItems(int(p.host), int(p.n)))
}

// itemPage is the page of item number i, from 0, of the listing at p.
func (w *Web) itemPage(p page, i int) page {
	return page{host: p.host, n: p.n, sub: int32(i), turn: 1, class: item}
}

// fill writes the Template with the address's number in it.
func (w *Web) fill(dst []byte, p page) []byte {
	number := fmt.Appendf(nil, "%05d", w.number(p))
	for i, piece := range w.template {
		if i > 0 {
			dst = append(dst, number...)
		}
		dst = append(dst, piece.text...)
	}
	return dst
}

// frontPage shows people what a site has.
func (w *Web) frontPage(dst []byte, host int) []byte {
	dst = w.top(dst, host, "Welcome", "")
	dst = fmt.Appendf(dst, "<h1>%s</h1>\n<ul>\n", shopName(w.names[host]))
	for n := range min(w.config.PagesPerHost, 100) {
		p := w.startPage(host, n)
		label := fmt.Sprintf("%s %d", p.class, n)
		if p.class == Product {
			label = w.goodsOf(host, n, 0).title
		}
		dst = fmt.Appendf(dst, "<li><a href=\"%s\">%s</a></li>\n", w.path(p),
			html.EscapeString(label))
	}
	return bottom(append(dst, "</ul>\n"...))
}

// index lists the sites for people, under names that browsers resolve to the loopback.
func (w *Web) index(dst []byte) []byte {
	_, port, _ := net.SplitHostPort(w.Addr())
	dst = append(dst, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"+
		"<title>The synthetic web</title>"+style...)
	dst = append(dst, "</head>\n<body><main><h1>The synthetic web</h1>\n<ul>\n"...)
	for _, name := range w.names[:min(len(w.names), 1000)] {
		label := strings.TrimSuffix(name, "."+w.config.Suffix)
		dst = fmt.Appendf(dst, "<li><a href=\"http://%s.localhost:%s/\">%s</a></li>\n", label, port,
			shopName(name))
	}
	return bottom(append(dst, "</ul>\n"...))
}
