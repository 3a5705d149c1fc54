package apiserver

import (
	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// hasSession says whether a browser sends the cookie of a session, which need not hold any more.
func hasSession(rc *fasthttp.RequestCtx) bool {
	h := &rc.Request.Header
	return len(h.Cookie(operation.SessionCookie)) > 0 ||
		len(h.Cookie("__Host-"+operation.SessionCookie)) > 0
}
