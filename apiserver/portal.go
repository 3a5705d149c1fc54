package apiserver

import (
	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// hasSession reports whether a browser sends a session cookie, which may have expired.
func hasSession(rc *fasthttp.RequestCtx) bool {
	h := &rc.Request.Header
	return len(h.Cookie(operation.SessionCookie)) > 0 ||
		len(h.Cookie("__Host-"+operation.SessionCookie)) > 0
}
