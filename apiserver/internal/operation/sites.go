package operation

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// openPaths are the paths whose answers pages of other sites may read. Each has a stand-in
// operation that answers methods which the path lacks.
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

// preflight tells a browser whether a page of another site may call a path. It allows the path's
// methods and all headers; Authorization has to be named besides *. It always allows GET, so that a
// page that asks for a stream can read the 405.
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

// openUp lets pages of other sites read the answer and its headers, if the operation allows it.
// Browsers send no cookies under "*".
func (x *exchange) openUp() {
	if x.op.Anywhere || x.admits() {
		x.rc.Response.Header.Set("Access-Control-Allow-Origin", "*")
		x.rc.Response.Header.Set("Access-Control-Expose-Headers", "*")
	}
}

// admits says whether a page of another site may call the operation with a credential that it
// knows. The page must have come over https, or from this machine. A service on this machine admits
// only pages of this machine, as the Model Context Protocol requires.
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
