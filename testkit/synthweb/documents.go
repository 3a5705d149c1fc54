package synthweb

import (
	"encoding/json"
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"
)

// story is the content of an article.
type story struct{ title, author, published string }

var topics = [...]string{"What we learned about", "A short history of", "How to look after a",
	"Five questions about the",
	"In praise of the", "The trouble with every"}

func (w *Web) storyOf(p page) story {
	host, n := int(p.host), int(p.n)
	draw := w.hash(host, n, saltGoods)
	things := trades[host%len(trades)]
	day := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0,
		int(w.hash(host, n, saltDate)%2000))
	return story{
		title:     topics[draw%uint64(len(topics))] + " " + things[mix(draw)%uint64(len(things))],
		author:    makers[mix(mix(draw))%uint64(len(makers))],
		published: day.Format(time.DateOnly),
	}
}

// article is a page of text, padded to one of PageBytes.
func (w *Web) article(dst []byte, p page) []byte {
	s := w.storyOf(p)
	dst = w.top(dst, int(p.host), s.title, w.url(p))
	dst = fmt.Appendf(dst, "<article><h1 class=\"title\">%s</h1>\n<p class=\"byline\">By <span "+
		"class=\"author\">%s</span>, "+
		"<time datetime=\"%s\">%s</time></p>\n", html.EscapeString(s.title),
		html.EscapeString(s.author), s.published,
		s.published)
	dst = append(dst, w.padding[w.size(p)].text...)
	return bottom(append(dst, "</article>\n"...))
}

func (w *Web) articleRow(p page) Row {
	s := w.storyOf(p)
	return Row{"title": s.title, "author": s.author, "published": s.published,
		"canonical": w.url(p)}
}

// item is a product as JSON, padded to one of PageBytes with related items.
func (w *Web) item(dst []byte, p page, g goods) []byte {
	dst = fmt.Appendf(dst, "{\"url\":%s,\"title\":%s,\"price\":%q", quoted(w.url(p)),
		quoted(g.title), g.price)
	if g.offer {
		dst = fmt.Appendf(dst, ",\"was\":%q", g.was)
	}
	dst = fmt.Appendf(dst, ",\"sku\":%q,\"stock\":%q,\"related\":[", g.sku, g.stock)
	dst = append(dst, w.related[w.size(p)].text...)
	return append(dst, "]}\n"...)
}

// linkedData states a page's product with schema.org.
func (w *Web) linkedData(dst []byte, p page, g goods) []byte {
	availability := "InStock"
	if g.stock == soldOut {
		availability = "OutOfStock"
	}
	return fmt.Appendf(dst,
		"<script type=\"application/ld+json\">{\"@context\":\"https://schema.org\",\"@type\":\"Product\","+
			"\"name\":%s,\"sku\":%q,\"url\":%s,\"offers\":{\"@type\":\"Offer\",\"price\":%q,\"priceCurrency\":\"EUR\","+
			"\"availability\":\"https://schema.org/%s\"}}</script>\n", quoted(g.title), g.sku,
		quoted(w.url(p)), g.price,
		availability)
}

// quoted is text as a JSON string that is also valid in a script element.
func quoted(text string) string {
	encoded, _ := json.Marshal(text) // a string can always be encoded
	return string(encoded)
}

// robotsBody is a site's robots.txt.
func (w *Web) robotsBody(host int) string {
	var body string
	switch w.robots(host) {
	case RobotsAbsent:
		return ""
	case RobotsDisallow:
		body = "User-agent: *\nDisallow: /" + Private.String() + "/\n"
	case RobotsDelay:
		body = "User-agent: *\nCrawl-delay: " + strconv.Itoa(w.config.CrawlDelay) + "\n"
	}
	if w.config.Sitemaps {
		body += "Sitemap: " + w.url(page{host: int32(host), turn: 1, class: sitemap}) + "\n"
	}
	return body
}

// sitemapParts is how many sitemaps a site's index names; 0: one sitemap, and no index.
func (w *Web) sitemapParts() int {
	if w.config.PagesPerHost <= w.config.SitemapURLs {
		return 0
	}
	return (w.config.PagesPerHost + w.config.SitemapURLs - 1) / w.config.SitemapURLs
}

// parseSitemap reads the path of one of a site's sitemaps.
func (w *Web) parseSitemap(host int, path string) (page, bool) {
	rest, begins := strings.CutPrefix(path, "/"+sitemap.String())
	rest, ends := strings.CutSuffix(rest, ".xml")
	if !begins || !ends || !w.config.Sitemaps {
		return page{}, false
	}
	p := page{host: int32(host), turn: 1, class: sitemap}
	if rest == "" {
		return p, true
	}
	digits, dash := strings.CutPrefix(rest, "-")
	n, err := parseNumber(digits)
	p.n = int32(n)
	return p, dash && err == nil && n >= 1 && n <= w.sitemapParts() && digits == strconv.Itoa(n)
}

const sitemapSpace = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\""

// sitemap writes one of a site's sitemaps, or their index.
func (w *Web) sitemap(dst []byte, p page) []byte {
	dst = append(dst, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"...)
	parts := w.sitemapParts()
	if p.n == 0 && parts > 0 {
		dst = append(dst, "<sitemapindex "+sitemapSpace+">\n"...)
		for part := range parts {
			at := page{host: p.host, n: int32(part + 1), turn: 1, class: sitemap}
			dst = fmt.Appendf(dst, "<sitemap><loc>%s</loc></sitemap>\n", w.url(at))
		}
		return append(dst, "</sitemapindex>\n"...)
	}
	from := (max(int(p.n), 1) - 1) * w.config.SitemapURLs
	dst = append(dst, "<urlset "+sitemapSpace+">\n"...)
	for n := from; n < min(from+w.config.SitemapURLs, w.config.PagesPerHost); n++ {
		dst = fmt.Appendf(dst, "<url><loc>%s</loc></url>\n", w.url(w.startPage(int(p.host), n)))
	}
	return append(dst, "</urlset>\n"...)
}
