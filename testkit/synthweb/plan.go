package synthweb

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Class is a kind of page. It is the first segment of the page's path, so that a reader of a log
// sees at once what an address is for.
type Class uint8

// The classes for a Mix.
const (
	Product  Class = iota // a product page
	Changing              // a product page whose stock counts its fetches
	// a chain of pages with items, linked by a[rel=next] and by ?page=N
	Listing
	// a Listing whose items' stock counts the fetches of the chain's pages
	ChangingListing
	BrokenListing // a Listing whose last page links to one that answers 404
	Empty         // 200 with none of the fields
	NotFound      // 404
	Gone          // 410
	Failing       // 500, always
	Flaky         // 500 at the first Config.Fails requests, then a product page
	// 503 with Retry-After at the first Config.Fails requests, then a product page
	Busy
	// leads to a product page over one or two hops, on this site or another
	Redirect
	RedirectLoop // leads to itself
	Private      // a product page forbidden by RobotsDisallow
	Reset        // the connection is reset instead of an answer
	Truncated    // the body ends before its Content-Length
	Drip         // a product page whose body takes Config.DripTime
	Stall        // half a body, then silence until the client leaves
	NotHTML      // 200 with binary content
	Article      // a page of text with a title, an author and a date
	LinkedData   // a product page that also states its product as JSON-LD
	API          // a product as JSON, with related ones

	templated // Config.Template; all pages of such a web

	firstHelper // classes from here on do not belong in a Mix
)

// Requests that are not a start address.
const (
	landing   = firstHelper + iota // where a Redirect ends
	hop                            // on the way there
	item                           // the page of one item of a listing
	robotsTxt                      // /robots.txt
	sitemap                        // /sitemap.xml, or /sitemap-N.xml of a site with several
	front                          // a site's front page, for people
	unknown                        // anything else: 404
	classCount
)

var classNames = [classCount]string{"product", "changing", "list", "changing-list", "broken-list",
	"empty", "missing",
	"gone", "failing", "flaky", "busy", "redirect", "loop", "private", "reset", "truncated", "drip",
	"stall", "binary",
	"article", "linked", "api", "p", "landing", "hop", "item", "robots.txt", "sitemap", "",
	"unknown"}

// String is the class's path segment.
func (c Class) String() string { return classNames[c] }

func (c Class) isListing() bool {
	return c == Listing || c == ChangingListing ||
		c == BrokenListing
}

func (c Class) isChanging() bool { return c == Changing || c == ChangingListing }

// countsFetches says whether an answer depends on the number of earlier fetches.
func (c Class) countsFetches() bool { return c.isChanging() || c == Flaky || c == Busy }

// Share is a class's weight in a Mix.
type Share struct {
	Class  Class
	Weight int
}

// Mix says how often each class occurs. The seed decides which pages have which class.
type Mix []Share

// Products is a mix of only product pages.
func Products() Mix { return Mix{{Product, 1}} }

// Listings is a mix of only complete chains.
func Listings() Mix { return Mix{{Listing, 1}} }

// Rough is a mix of product pages of which about one in five is troublesome. It leaves out the slow
// classes (Drip, Stall).
func Rough() Mix {
	return Mix{{Product, 800}, {Changing, 40}, {Redirect, 40}, {Flaky, 20}, {Busy, 5},
		{Private, 20}, {Empty, 10},
		{NotFound, 20}, {Gone, 10}, {Failing, 10}, {RedirectLoop, 5}, {Reset, 5}, {Truncated, 5},
		{NotHTML, 10}}
}

// RealWeb is a mix like the real web: products with and without JSON-LD, articles, listings and
// JSON. One page in twenty is gone, broken or moved.
func RealWeb() Mix {
	return Mix{{Product, 400}, {LinkedData, 150}, {Article, 250}, {Listing, 100}, {API, 50},
		{Redirect, 20}, {NotFound, 15},
		{Gone, 5}, {Failing, 4}, {Flaky, 4}, {Busy, 1}, {Truncated, 1}}
}

// LatencyShare is a range of latencies and its weight.
type LatencyShare struct {
	Weight   int
	Min, Max time.Duration
}

// Robots is a kind of robots.txt.
type Robots uint8

// The kinds of robots.txt.
const (
	RobotsAbsent   Robots = iota // 404
	RobotsEmpty                  // 200 with nothing in it
	RobotsDisallow               // forbids /private/
	RobotsDelay                  // asks for Config.CrawlDelay
)

func (w *Web) robots(host int) Robots { return w.config.Robots[host%len(w.config.Robots)] }

// page names one page by the parts of its path. n is the number within the host. sub is the host
// that a landing or hop comes from, or an item's number in its chain. turn is ?page=, from 1.
type page struct {
	host, n, sub, turn int32
	class              Class
}

// startPage returns the start page number n of a host.
func (w *Web) startPage(host, n int) page {
	return page{host: int32(host), n: int32(n), turn: 1, class: w.class(host, n)}
}

// class draws a page's class from the seed.
func (w *Web) class(host, n int) Class {
	if w.config.Template != nil {
		return templated
	}
	draw := int(w.hash(host, n, saltClass) % uint64(w.mixTotal))
	for _, share := range w.config.Mix {
		if draw < share.Weight {
			return share.Class
		}
		draw -= share.Weight
	}
	panic("synthweb: a draw beyond the mix")
}

// shown returns what an address shows. Only listings have more than one page, so ?page=2 of any
// other is empty.
func (p page) shown() page {
	if p.turn > 1 && !p.class.isListing() {
		p.class = Empty
	}
	return p
}

// number is the number that a Template shows for a page: its index in URLs.
func (w *Web) number(p page) int { return int(p.n)*w.config.Hosts + int(p.host) }

func (w *Web) path(p page) string { return string(w.appendPath(nil, p)) }

func (w *Web) appendPath(dst []byte, p page) []byte {
	dst = append(dst, '/')
	dst = append(dst, p.class.String()...)
	switch p.class {
	case robotsTxt, front:
		return dst
	case sitemap:
		if p.n > 0 {
			dst = append(dst, '-')
			dst = strconv.AppendInt(dst, int64(p.n), 10)
		}
		return append(dst, ".xml"...)
	case templated:
		return fmt.Appendf(dst, "/%05d", w.number(p))
	case landing, hop, item:
		return fmt.Appendf(dst, "/%d-%d", p.n, p.sub)
	}
	dst = append(dst, '/')
	dst = strconv.AppendInt(dst, int64(p.n), 10)
	if p.turn != 1 {
		dst = append(dst, "?page="...)
		dst = strconv.AppendInt(dst, int64(p.turn), 10)
	}
	return dst
}

func (w *Web) url(p page) string { return w.scheme() + w.names[p.host] + w.path(p) }

// scheme is the beginning of every address.
func (w *Web) scheme() string {
	if w.config.TLS {
		return "https://"
	}
	return "http://"
}

// parse reads a path with its query as a page of a host. Pages that do not exist have class
// unknown.
func (w *Web) parse(host int, target string) page {
	none := page{host: int32(host), class: unknown}
	path, query, _ := strings.Cut(target, "?")
	switch path {
	case "/":
		return page{host: int32(host), turn: 1, class: front}
	case "/robots.txt":
		return page{host: int32(host), turn: 1, class: robotsTxt}
	}
	if p, ok := w.parseSitemap(host, path); ok {
		return p
	}
	name, rest, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	class := classNamed(name)
	if !ok || class == unknown {
		return none
	}
	first, second, pair := strings.Cut(rest, "-")
	n, errN := parseNumber(first)
	sub, errSub := 0, error(nil)
	if pair {
		sub, errSub = parseNumber(second)
	}
	if errN != nil || errSub != nil || pair != (class == landing || class == hop || class == item) {
		return none
	}
	if class == templated {
		if n%w.config.Hosts != host {
			return none
		}
		n /= w.config.Hosts
	}
	p := page{host: int32(host), n: int32(n), sub: int32(sub), turn: turnOf(query), class: class}
	if n >= w.config.PagesPerHost || !w.exists(p) {
		return none
	}
	return p
}

func classNamed(name string) Class {
	for class := range unknown {
		if classNames[class] == name && class != robotsTxt && class != sitemap && class != front {
			return class
		}
	}
	return unknown
}

// parseNumber accepts plain decimal numbers that fit a page's fields.
func parseNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}

// turnOf is the value of ?page=; anything but a positive number counts as 1.
func turnOf(query string) int32 {
	if query == "" {
		return 1
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return 1
	}
	turn, err := parseNumber(values.Get("page"))
	if err != nil || turn < 1 {
		return 1
	}
	return int32(turn)
}

func (w *Web) exists(p page) bool {
	switch p.class {
	case landing, hop:
		from := int(p.sub)
		if from >= w.config.Hosts || w.class(from, int(p.n)) != Redirect {
			return false
		}
		route := w.route(from, int(p.n))
		end := route[len(route)-1]
		return p == end || len(route) == 2 && p == route[0]
	case item:
		return w.class(int(p.host), int(p.n)).isListing() &&
			int(p.sub) < w.chainItems(int(p.host), int(p.n))
	}
	return w.class(int(p.host), int(p.n)) == p.class
}

// route returns the one or two pages through which a Redirect leads.
func (w *Web) route(host, n int) []page {
	other := host
	if w.config.Hosts > 1 {
		hosts := w.config.Hosts
		other = (host + 1 + int(w.hash(host, n, saltOther)%uint64(hosts-1))) % hosts
	}
	at := func(h int, class Class) page {
		return page{host: int32(h), n: int32(n), sub: int32(host), turn: 1, class: class}
	}
	switch w.hash(host, n, saltRoute) % 3 {
	case 0:
		return []page{at(host, landing)}
	case 1:
		return []page{at(other, landing)}
	}
	return []page{at(other, hop), at(host, landing)}
}

// location is the Location header for a page: absolute, from the root, or relative to the path.
func (w *Web) location(from, to page) string {
	if from.host != to.host {
		return w.url(to)
	}
	switch w.hash(int(to.sub), int(to.n), saltLocation) % 3 {
	case 0:
		return w.url(to)
	case 1:
		return w.path(to)
	}
	return ".." + w.path(to)
}

// redirectStatus is 301, 302, 303, 307 or 308.
func (w *Web) redirectStatus(from page) int {
	statuses := [...]int{301, 302, 303, 307, 308}
	return statuses[w.hash(int(from.host), int(from.n),
		saltRoute+uint64(from.class))%uint64(len(statuses))]
}

// chainPages is the number of pages with items of a listing, 1 to ChainPages.
func (w *Web) chainPages(host, n int) int {
	return 1 + int(w.hash(host, n, saltChain)%uint64(w.config.ChainPages))
}

// chainItems is the number of items of a listing: all pages are full except the last, which has at
// least one.
func (w *Web) chainItems(host, n int) int {
	last := 1 + int(w.hash(host, n, saltItems)%uint64(w.config.ItemsPerPage))
	return (w.chainPages(host, n)-1)*w.config.ItemsPerPage + last
}

// repeatsLast says whether a listing shows its last page again beyond its end, as some sites do.
// The others, and all changing listings, show a page without items.
func (w *Web) repeatsLast(p page) bool {
	return p.class == Listing && w.hash(int(p.host), int(p.n), saltPastEnd)%2 == 0
}

// slow says whether a host is one of the evenly spread SlowHosts.
func (w *Web) slow(host int) bool {
	return (host+1)*w.config.SlowHosts/w.config.Hosts != host*w.config.SlowHosts/w.config.Hosts
}

// latency is how long an answer waits before it begins.
func (w *Web) latency(p page) time.Duration {
	if w.slow(int(p.host)) {
		return w.config.SlowLatency
	}
	least, most := w.config.MinLatency, w.config.MaxLatency
	if w.latencyTotal > 0 {
		least, most = w.latencySpan(int(w.hash(int(p.host), int(p.n),
			saltSpan) % uint64(w.latencyTotal)))
	}
	if most <= least {
		return least
	}
	return least + time.Duration(w.hash(int(p.host), int(p.n), saltLatency)%uint64(most-least))
}

// latencySpan returns the entry of Latencies for a draw below the sum of their weights.
func (w *Web) latencySpan(draw int) (least, most time.Duration) {
	for _, share := range w.config.Latencies {
		if draw -= share.Weight; draw < 0 {
			return share.Min, share.Max
		}
	}
	panic("synthweb: a draw beyond the latencies")
}

// Salts keep a page's draws independent. Items' draws begin at saltGoods.
const (
	saltClass uint64 = iota
	saltOther
	saltLocation
	saltChain
	saltItems
	saltPastEnd
	saltLatency
	saltSize
	saltStatus
	saltSpan
	saltDate
	saltRoute = 1 << 8
	saltGoods = 1 << 16
)

// hash draws 64 bits for a page from the seed (splitmix64's finaliser over the parts).
func (w *Web) hash(host, n int, salt uint64) uint64 {
	x := mix(w.config.Seed ^ 0x9e3779b97f4a7c15)
	x = mix(x ^ uint64(host)<<32 ^ uint64(n))
	return mix(x ^ salt)
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
