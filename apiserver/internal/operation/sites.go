package operation

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// openPaths are the paths whose answers pages of other sites may read, each with what they are told
// where it has no such method.
func openPaths(ops []*Operation) map[string]*Operation {
	paths := map[string]*Operation{}
	for _, op := range ops {
		for _, route := range op.Routes {
			if op.Anywhere || op.Cookieless {
				paths[route.Path] = &Operation{Declaration: Declaration{ID: "none",
					Anywhere: op.Anywhere, Cookieless: op.Cookieless, Access: op.Access}}
			}
		}
	}
	return paths
}

// preflight tells a browser whether a page of another site may call a path: with its methods, and
// with whatever headers. Authorization has to be named. One that asks for a stream by GET is to
// read that there is none.
func (c *Chain) preflight(op *Operation, methods []string) fasthttp.RequestHandler {
	if !slices.Contains(methods, fasthttp.MethodGet) {
		methods = append([]string{fasthttp.MethodGet}, methods...)
	}
	return func(rc *fasthttp.RequestCtx) {
		x := c.beginExchange(op, rc)
		if !op.Anywhere && !x.admits() {
			x.fail(errCrossSite)
			x.finish()
			return
		}
		x.openUp()
		h := &rc.Response.Header
		h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		h.Set("Access-Control-Allow-Headers", "*, Authorization")
		h.Set("Access-Control-Max-Age", "86400")
		rc.SetStatusCode(http.StatusNoContent)
		x.finish()
	}
}

// openUp lets pages of other sites read the answer and its headers, where the operation says so.
// Browsers take no cookies for "*".
func (x *exchange) openUp() {
	if x.op.Anywhere || x.admits() {
		x.rc.Response.Header.Set("Access-Control-Allow-Origin", "*")
		x.rc.Response.Header.Set("Access-Control-Expose-Headers", "*")
	}
}

// admits says whether a page of another site may call the operation with a credential that it
// knows. It may where nobody on the way could have changed the page. A service of this machine
// takes pages of this machine alone, as the Model Context Protocol wants it.
func (x *exchange) admits() bool {
	origin, err := url.Parse(string(x.rc.Request.Header.Peek("Origin")))
	switch {
	case !x.op.Cookieless || x.from.Way == InTheClear || err != nil || x.isRebound():
		return false
	case isLoopback(origin.Host):
		return true
	}
	return origin.Scheme == "https" && origin.Host != "" && !isLoopback(x.from.Host)
}
