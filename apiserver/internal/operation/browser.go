package operation

import (
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/pkg/fault"
)

// Way is how a call came from its sender, which decides what may be entrusted to it.
type Way int

// The ways.
const (
	// InTheClear is what others on the way may read: no cookie counts there, and none is set.
	InTheClear Way = iota
	// Encrypted came over TLS to here, or to a trusted proxy which says so.
	Encrypted
	// OnTheSpot came in the clear from this machine to a name of this machine. Browsers do not take
	// Secure cookies there, all of them, and names that begin with __Host- need one.
	OnTheSpot
)

// SessionCookie holds the secret of a browser's session.
const SessionCookie = "shoal-session"

// cookieName is the name under which a browser has a cookie, "" where it may have none. One with
// __Host- cannot be set by another host or in the clear.
func (w Way) cookieName(name string) string {
	switch w {
	case Encrypted:
		return "__Host-" + name
	case OnTheSpot:
		return name
	}
	return ""
}

// way says how a call came.
func (x *exchange) way(peer netip.Addr) Way {
	if conn, ok := x.rc.Conn().(interface{ Secure() bool }); ok && conn.Secure() {
		return Encrypted
	}
	h := &x.rc.Request.Header
	if x.Proxies.Trust(peer) {
		said := lines(h.PeekAll("X-Forwarded-Proto"))
		if len(said) == 0 {
			return InTheClear
		}
		protocols := strings.Split(said[len(said)-1], ",")
		if strings.EqualFold(strings.TrimSpace(protocols[len(protocols)-1]), "https") {
			return Encrypted
		}
		return InTheClear
	}
	if peer.IsLoopback() && isLoopback(string(h.Host())) {
		return OnTheSpot
	}
	return InTheClear
}

// isLoopback says whether a Host header names this machine, with a port or without.
func isLoopback(host string) bool {
	if address, err := netip.ParseAddrPort(host); err == nil {
		return address.Addr().IsLoopback()
	}
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return address.IsLoopback()
	}
	name, _, _ := strings.Cut(host, ":")
	return strings.EqualFold(name, "localhost")
}

// named is a Host header that can be a part of addresses.
var named = regexp.MustCompile(
	`^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$`)

// Base is this service's own address without a path: the public one, or where nobody has said it
// that by which its caller knows it. On this machine it is the caller's, too. It is "" in the
// clear, where nobody knows whom an answer is of, and for a name that is none.
func (c *Caller) Base() string {
	switch {
	case c.Way == Encrypted && c.Public != "":
		return c.Public
	case c.Way == InTheClear || !named.MatchString(c.Host):
		return ""
	case c.Way == OnTheSpot:
		return "http://" + strings.ToLower(c.Host)
	}
	return "https://" + strings.ToLower(c.Host)
}

// Cookie is the value of a cookie, "" when it is not there or came in the clear.
func (c *Caller) Cookie(name string) string {
	if c.cookie == nil || c.Way == InTheClear {
		return ""
	}
	return c.cookie(c.Way.cookieName(name))
}

// SetCookie has the answer set a cookie for a time, or with 0 remove it. No script of a page sees
// it, and no other site's form sends it.
func (c *Caller) SetCookie(name, value string, life time.Duration) {
	if c.Way == InTheClear {
		return
	}
	var cookie fasthttp.Cookie
	cookie.SetKey(c.Way.cookieName(name))
	cookie.SetValue(value)
	cookie.SetPath("/")
	cookie.SetHTTPOnly(true)
	cookie.SetSecure(c.Way == Encrypted)
	cookie.SetSameSite(fasthttp.CookieSameSiteLaxMode)
	if cookie.SetMaxAge(int(life / time.Second)); life == 0 {
		cookie.SetExpire(fasthttp.CookieExpireDelete)
	}
	c.cookies = append(c.cookies, &cookie)
}

// Forget has the answer make the browser forget what pages of this service have stored in it.
func (c *Caller) Forget() { c.forgets = true }

// credential is what says who calls: the header Authorization, or where there is none the session
// of a browser.
func (x *exchange) credential() (text string, browser bool) {
	if header := x.rc.Request.Header.Peek("Authorization"); len(header) > 0 {
		return string(header), false
	}
	if session := x.from.Cookie(SessionCookie); session != "" && !x.op.Cookieless {
		return "Bearer " + session, true
	}
	return "", false
}

// ticket is the one that stands in the address in place of a credential, "" where there is none.
func (x *exchange) ticket() string {
	if !x.op.Tickets || len(x.rc.Request.Header.Peek("Authorization")) > 0 {
		return ""
	}
	return string(x.rc.QueryArgs().Peek("ticket"))
}

var errCrossSite = fault.New(fault.CrossSite, "a page of another site has sent this call")

// checkSite refuses what another site's page has a browser send, by the rules of net/http. A
// browser says with Sec-Fetch-Site or Origin where a write comes from. Programs say neither. What
// writes is a write by whatever method: a link leads to GET, too.
func (x *exchange) checkSite() error {
	h := &x.rc.Request.Header
	request := &http.Request{Method: string(h.Method()), Host: string(h.Host()),
		Header: http.Header{}}
	if x.op.Access == auth.Write || x.op.Access == auth.SignInOnly || x.op.Access == auth.Agent {
		request.Method = http.MethodPost
	}
	for _, name := range []string{"Sec-Fetch-Site", "Origin"} {
		if value := h.Peek(name); len(value) > 0 {
			request.Header.Set(name, string(value))
		}
	}
	if err := http.NewCrossOriginProtection().Check(request); err != nil || x.isRebound() {
		return errCrossSite
	}
	return nil
}

// isRebound says whether an agent calls from this machine by a name that is not this machine's. A
// page can have its own name lead here, and looks like no other site then.
func (x *exchange) isRebound() bool {
	peer, _ := netip.AddrFromSlice(x.rc.RemoteIP())
	return x.op.Access == auth.Agent && peer.IsLoopback() && !x.Proxies.Trust(peer) &&
		!isLoopback(string(x.rc.Request.Header.Host()))
}

// sendCookies sets what the handler had set, however the call ended.
func (x *exchange) sendCookies() {
	for _, cookie := range x.from.cookies {
		x.rc.Response.Header.SetCookie(cookie)
	}
	if x.from.forgets {
		x.rc.Response.Header.Set("Clear-Site-Data", `"storage"`)
	}
}
