package apiserver

import (
	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// hasSession reports whether a browser sends a session cookie, which may have expired.
func hasSession(rc *fasthttp.RequestCtx) bool {
	h := &rc.Request.Header
	return len(h.Cookie(operation.SessionCookie)) > 0 ||
		len(h.Cookie("__Host-"+operation.SessionCookie)) > 0
}

// followSession returns the index of the state that a browser's page is made at. From then on the
// changes of its customer are kept for the stream that the page will open. It returns 0 for a
// session that this node does not know.
func (s *Server) followSession(rc *fasthttp.RequestCtx) uint64 {
	view := s.config.Client.View()
	for _, name := range []string{operation.SessionCookie, "__Host-" + operation.SessionCookie} {
		session := view.Session(auth.HashSession(string(rc.Request.Header.Cookie(name))))
		if session == nil || session.Ended(s.config.Clock.Now().UnixMilli()) {
			continue
		}
		if account := view.Account(session.Account); account != nil {
			following := s.config.Client.Follow(account.Customer, 0)
			defer following.End()
			return following.TakeChanges().Index
		}
	}
	return 0
}
