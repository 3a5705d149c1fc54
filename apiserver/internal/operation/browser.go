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

// Way is how a call reached the server. It decides which secrets may be sent back.
type Way int

// The ways of calls.
const (
	// InTheClear can be read on the way: no cookie is accepted and none is set.
	InTheClear Way = iota
	// Encrypted came over TLS to this server, or to a trusted proxy that says so.
	Encrypted
	// OnTheSpot came unencrypted from this machine to a name of this machine. There not all
	// browsers take Secure cookies, which names that begin with __Host- require.
	OnTheSpot
)

// SessionCookie holds the secret of a browser's session.
const SessionCookie = "shoal-session"

// cookieName is the name of a cookie in the browser, "" where no cookie is allowed. A cookie with
// the prefix __Host- cannot be set by another host, nor unencrypted.
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

// named matches a Host header that can be part of an address.
var named = regexp.MustCompile(
	`^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$`)

// Base is this service's own address without a path. It is Public over TLS if the operator has set
// it, else made from the Host header. It is "" for calls in the clear, which may be forged, and for
// an invalid host.
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

// Cookie is the value of a cookie, "" if it is missing or the call came in the clear.
func (c *Caller) Cookie(name string) string {
	if c.cookie == nil || c.Way == InTheClear {
		return ""
	}
	return c.cookie(c.Way.cookieName(name))
}

// SetCookie makes the answer set a cookie that lives for life, or remove it if life is 0. Scripts
// cannot read the cookie, and forms of other sites do not send it.
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

// Forget makes the answer tell the browser to delete what this service's pages have stored.
func (c *Caller) Forget() { c.forgets = true }

// credential is what identifies the caller: the header Authorization, or without it the session
// cookie of a browser.
func (x *exchange) credential() (text string, browser bool) {
	if header := x.rc.Request.Header.Peek("Authorization"); len(header) > 0 {
		return string(header), false
	}
	if session := x.from.Cookie(SessionCookie); session != "" && !x.op.Cookieless {
		return "Bearer " + session, true
	}
	return "", false
}

// ticket is the ticket in the query, which replaces a credential; "" if there is none.
func (x *exchange) ticket() string {
	if !x.op.Tickets || len(x.rc.Request.Header.Peek("Authorization")) > 0 {
		return ""
	}
	return string(x.rc.QueryArgs().Peek("ticket"))
}

var errCrossSite = fault.New(fault.CrossSite, "a page of another site has sent this call")

// checkSite refuses calls that a page of another site makes a browser send, by the rules of
// net/http. Browsers name the source of a call in Sec-Fetch-Site or Origin; programs send neither.
// An operation that writes counts as a POST whatever its method, since links lead to GET.
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

// isRebound says whether an agent calls from this machine by a host name that is not this
// machine's. A page can point its own name here (DNS rebinding), and then looks same-site.
func (x *exchange) isRebound() bool {
	peer, _ := netip.AddrFromSlice(x.rc.RemoteIP())
	return x.op.Access == auth.Agent && peer.IsLoopback() && !x.Proxies.Trust(peer) &&
		!isLoopback(string(x.rc.Request.Header.Host()))
}

// sendCookies sets the cookies that the handler has set, however the call ended.
func (x *exchange) sendCookies() {
	for _, cookie := range x.from.cookies {
		x.rc.Response.Header.SetCookie(cookie)
	}
	if x.from.forgets {
		x.rc.Response.Header.Set("Clear-Site-Data", `"storage"`)
	}
}
