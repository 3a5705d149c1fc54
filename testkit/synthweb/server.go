package synthweb

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

func (w *Web) newServer() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:        w.handle,
		Name:           "synthweb",
		ReadBufferSize: 16 << 10,
		// One write call per page is a third faster.
		WriteBufferSize:       min(w.largestPage()+1<<10, 64<<10),
		MaxRequestBodySize:    1 << 20,
		TCPKeepalive:          true,
		CloseOnShutdown:       true,
		IdleTimeout:           5 * time.Minute,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
		Logger:                log.New(io.Discard, "", 0), // a client's mistake is no news
	}
}

// largestPage is roughly the size of the web's largest common page, in bytes.
func (w *Web) largestPage() int {
	return max(slices.Max(w.config.PageBytes), len(w.config.Template))
}

// handle answers one request and logs it, from when it is fully read until its answer is ready. For
// answers that are broken or slow on purpose it lasts until the last byte.
func (w *Web) handle(ctx *fasthttp.RequestCtx) {
	host, known := w.hostNumber(ctx.Host())
	if !known {
		w.handleOwn(ctx)
		return
	}
	target := string(ctx.RequestURI())
	p := w.parse(host, target)
	started := w.config.Clock.Now()
	entry := w.log.addEntry(p, target, started, w.inflight[host].Add(1), ctx.ConnID(),
		clientOf(ctx))
	w.wait(w.latency(p))
	w.answering.RLock()
	defer w.answering.RUnlock()
	status := fasthttp.StatusOK
	if text, ok := w.config.Texts[w.names[host]+target]; ok {
		ctx.Response.Header.SetContentType("text/html; charset=utf-8")
		ctx.Response.SetBodyString(text)
	} else {
		// A client with the last byte may send a request before this goroutine continues.
		status = w.answer(ctx, p.shown(),
			func() { w.log.end(entry, w.config.Clock.Now(), fasthttp.StatusOK) })
	}
	w.inflight[host].Add(-1)
	w.log.end(entry, w.config.Clock.Now(), status)
}

// clientOf is the address that a request came from, or the zero address if the listener has none.
func clientOf(ctx *fasthttp.RequestCtx) netip.Addr {
	if from, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
		return from.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// hostNumber finds the site for a Host header, under its own name or, for browsers, under
// .localhost.
func (w *Web) hostNumber(header []byte) (int, bool) {
	if colon := bytes.LastIndexByte(header, ':'); colon >= 0 {
		header = header[:colon]
	}
	if h, ok := w.hosts[string(header)]; ok {
		return h, true
	}
	name := strings.ToLower(string(header))
	if label, ok := strings.CutSuffix(name, ".localhost"); ok {
		name = label + "." + w.config.Suffix
	}
	h, ok := w.hosts[name]
	return h, ok
}

// wait waits, but not beyond the end of serving.
func (w *Web) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-w.config.Clock.After(d):
	case <-w.ctx.Done():
	}
}

// answer writes the page and returns the status, 0 if the answer is incomplete. It calls beforeLast
// before it sends the last byte itself.
func (w *Web) answer(ctx *fasthttp.RequestCtx, p page, beforeLast func()) int {
	fetch := 0
	if p.class.countsFetches() {
		fetch = int(w.fetches[int(p.host)*w.config.PagesPerHost+int(p.n)].Add(1))
	}
	host := int(p.host)
	switch p.class {
	case Reset, Truncated, Drip, Stall:
		return w.answerRaw(ctx, p, beforeLast)
	case Redirect, RedirectLoop, hop:
		return w.redirect(ctx, p)
	case robotsTxt:
		ctx.Response.Header.SetContentType("text/plain; charset=utf-8")
		ctx.Response.SetBodyString(w.robotsBody(host))
		if w.robots(host) == RobotsAbsent {
			ctx.SetStatusCode(fasthttp.StatusNotFound)
		}
		return ctx.Response.StatusCode()
	}
	status := w.status(p, fetch)
	if status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(int(w.config.RetryAfter/time.Second)))
	}
	coding := w.coding(ctx)
	if p.class == NotHTML {
		coding = nil
	}
	body := ctx.Response.SwapBody(nil)[:0] // the response's own buffer, which it pools
	var contentType string
	if coding == nil {
		body, contentType = w.body(body, p, fetch, status)
	} else {
		body, contentType = w.compressed(coding, body, p, fetch, status)
		ctx.Response.Header.SetContentEncoding(coding.name())
	}
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentType(contentType)
	ctx.Response.SwapBody(body)
	return status
}

// body appends the page for its fetch-th fetch to dst, and returns the content type.
func (w *Web) body(dst []byte, p page, fetch, status int) (body []byte, contentType string) {
	host := int(p.host)
	contentType = "text/html; charset=utf-8"
	switch {
	case status != fasthttp.StatusOK:
		return w.message(dst, host, fasthttp.StatusMessage(status)), contentType
	case p.class == NotHTML:
		return append(dst, "\x00\x01\x02 no page \xff"...), "application/octet-stream"
	case p.class == templated:
		return w.fill(dst, p), contentType
	case p.class == front:
		return w.frontPage(dst, host), contentType
	case p.class == sitemap:
		return w.sitemap(dst, p), "application/xml"
	case p.class.isListing():
		return w.listing(dst, p, fetch), contentType
	case p.class == Empty:
		return w.message(dst, host, "Nothing here."), contentType
	case p.class == Article:
		return w.article(dst, p), contentType
	case p.class == API:
		return w.item(dst, p, w.goodsAt(p, fetch)), "application/json"
	}
	return w.product(dst, p, w.goodsAt(p, fetch)), contentType
}

// Body returns the uncompressed answer to an address's first request, and its type. It fails unless
// the address answers 200 at once with a complete body.
func (w *Web) Body(address string) (body []byte, contentType string, err error) {
	p, err := w.pageAt(address)
	if err != nil {
		return nil, "", err
	}
	p = p.shown()
	switch p.class {
	case Reset, Truncated, Drip, Stall, Redirect, RedirectLoop, hop, robotsTxt:
		return nil, "", fmt.Errorf("synthweb: %s is no page that is there at once", address)
	}
	if status := w.status(p, 1); status != fasthttp.StatusOK {
		return nil, "", fmt.Errorf("synthweb: %s answers %d", address, status)
	}
	body, contentType = w.body(nil, p, 1, fasthttp.StatusOK)
	return body, contentType, nil
}

// status is the status that a page returns at its fetch-th fetch.
func (w *Web) status(p page, fetch int) int {
	switch p.class {
	case NotFound, unknown:
		return fasthttp.StatusNotFound
	case Gone:
		return fasthttp.StatusGone
	case Failing:
		return fasthttp.StatusInternalServerError
	case Flaky:
		if fetch <= w.config.Fails {
			return fasthttp.StatusInternalServerError
		}
	case Busy:
		if fetch <= w.config.Fails {
			return fasthttp.StatusServiceUnavailable
		}
	case BrokenListing:
		if int(p.turn) > w.chainPages(int(p.host), int(p.n)) {
			return fasthttp.StatusNotFound
		}
	}
	return fasthttp.StatusOK
}

// goodsAt returns the product that a page shows at its fetch-th fetch.
func (w *Web) goodsAt(p page, fetch int) goods {
	switch p.class {
	case item:
		return w.goodsOf(int(p.host), int(p.n), int(p.sub)+1)
	case landing:
		return w.goodsOf(int(p.sub), int(p.n), 0)
	case Changing:
		g := w.goodsOf(int(p.host), int(p.n), 0)
		g.stock = fetchStock(fetch)
		return g
	}
	return w.goodsOf(int(p.host), int(p.n), 0)
}

func (w *Web) redirect(ctx *fasthttp.RequestCtx, p page) int {
	location := w.path(p)
	if next, ok := w.next(p); ok {
		location = w.location(p, next)
	}
	status := w.redirectStatus(p)
	ctx.SetStatusCode(status)
	ctx.Response.Header.Set("Location", location) // unchanged: ctx.Redirect would make it absolute
	return status
}

// next is where a redirecting page leads, other than to itself.
func (w *Web) next(p page) (page, bool) {
	switch p.class {
	case Redirect:
		return w.route(int(p.host), int(p.n))[0], true
	case hop:
		return w.route(int(p.sub), int(p.n))[1], true
	}
	return page{}, false
}

// answerRaw bypasses the server and writes to the connection, which the server then closes.
func (w *Web) answerRaw(ctx *fasthttp.RequestCtx, p page, beforeLast func()) int {
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(net.Conn) {})
	conn := ctx.Conn()
	if p.class == Reset {
		if secured, ok := conn.(*tls.Conn); ok {
			conn = secured.NetConn()
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			// If this fails, the connection is simply closed, which the client also sees as an
			// error.
			_ = tcp.SetLinger(0)
		}
		return 0
	}
	body := w.product(nil, p, w.goodsAt(p, 0))
	head := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/html; "+
		"charset=utf-8\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n", len(body))
	half := len(body) / 2
	stop := context.AfterFunc(w.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(append(head, body[:half]...)); err != nil {
		return 0
	}
	switch p.class {
	case Stall:
		_, _ = conn.Read(make([]byte, 1)) // returns when the client leaves or the web closes
	case Drip:
		return w.drip(conn, body[half:], beforeLast)
	}
	return 0
}

// drip writes the rest of a body in pieces over DripTime.
func (w *Web) drip(conn net.Conn, rest []byte, beforeLast func()) int {
	const pieces = 10
	for i := range pieces {
		w.wait(w.config.DripTime / pieces)
		piece := rest[len(rest)*i/pieces : len(rest)*(i+1)/pieces]
		if i == pieces-1 {
			beforeLast()
		}
		if _, err := conn.Write(piece); err != nil {
			return 0
		}
	}
	return fasthttp.StatusOK
}

// counted counts the connections that a listener accepts.
type counted struct {
	net.Listener
	accepted *atomic.Int64
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}

// Stats is the web's resource use and activity since it was made.
type Stats struct {
	Requests int64 `json:"requests"`
	Unlogged int64 `json:"unlogged"` // requests that LogLimit kept out of the log
	// all accepted connections
	Connections int64 `json:"connections"`
	// of the whole process: only the web's share if it has its own process
	CPU   time.Duration `json:"cpuNanos"`
	Wall  time.Duration `json:"wallNanos"`
	Share float64       `json:"share"` // CPU as a share of the machine's, from 0 to 1
}

// Stats reads the counters. A web in its own process also shows them as JSON at http://Addr/stats.
func (w *Web) Stats() (Stats, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return Stats{}, fmt.Errorf("synthweb: processor time: %w", err)
	}
	stats := Stats{CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		Wall: w.config.Clock.Now().Sub(w.started)}
	if stats.Wall > 0 {
		stats.Share = stats.CPU.Seconds() / stats.Wall.Seconds() / float64(runtime.NumCPU())
	}
	stats.Requests, stats.Unlogged = w.log.counts()
	stats.Connections = w.connections.Load()
	return stats, nil
}

// handleOwn answers requests to the server itself, not to a site. It is not logged.
func (w *Web) handleOwn(ctx *fasthttp.RequestCtx) {
	host, _, err := net.SplitHostPort(string(ctx.Host()))
	if err != nil || host != "localhost" && net.ParseIP(host) == nil {
		ctx.Error("no such site", fasthttp.StatusMisdirectedRequest)
		return
	}
	switch string(ctx.Path()) {
	case "/":
		ctx.SetContentType("text/html; charset=utf-8")
		ctx.SetBody(w.index(nil))
	case "/stats":
		stats, err := w.Stats()
		if err != nil {
			ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
			return
		}
		ctx.SetContentType("application/json")
		if err := json.NewEncoder(ctx).Encode(stats); err != nil {
			ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		}
	default:
		ctx.Error("not found", fasthttp.StatusNotFound)
	}
}
