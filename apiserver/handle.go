package apiserver

import (
	"io"
	"log"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/operation"
)

func (s *Server) newServer() *fasthttp.Server {
	return &fasthttp.Server{
		Name:                         "shoal",
		Handler:                      s.handleWhole,
		ErrorHandler:                 s.unreadable,
		HeaderReceived:               headerReceived,
		ExpectHandler:                s.begin,
		ReadBufferSize:               maxHeader,
		ReadTimeout:                  headerTimeout,
		IdleTimeout:                  idleTimeout,
		Concurrency:                  3 * maxConnections, // listeners bound it; some are ending
		StreamRequestBody:            true,               // the operations meter bodies
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
		NoDefaultContentType:         true,
		// it would only log broken connections
		Logger: log.New(io.Discard, "", 0),
	}
}

// handle serves a request. A stopping server closes the connection afterwards.
func (s *Server) handle(rc *fasthttp.RequestCtx) {
	switch c, ok := rc.Conn().(*conn); {
	case ok && c.listener.operators:
		s.operators(rc)
	case s.portal != nil && s.portal.Serve(rc): // static files, not a call of the API
	case s.reference.Serve(rc): // static files, too
	default:
		s.customers(rc)
	}
	if s.stopping.Load() {
		rc.SetConnectionClose()
	}
}

// begin handles a request until it needs the body, or to its end. handleWhole then continues it, or
// unreadable does if the body does not arrive.
func (s *Server) begin(rc *fasthttp.RequestCtx) (status int) {
	begun, status := operation.Begin(rc, s.handle)
	if c, ok := rc.Conn().(*conn); ok {
		c.begun = begun
	}
	return status
}

func (s *Server) handleWhole(rc *fasthttp.RequestCtx) {
	if c, ok := rc.Conn().(*conn); !ok || !c.goOn(nil) {
		s.handle(rc)
	}
}

func (s *Server) unreadable(rc *fasthttp.RequestCtx, err error) {
	if c, ok := rc.Conn().(*conn); !ok || !c.goOn(err) {
		s.chain.Unreadable(rc, err)
	}
}

// headerReceived sets the time-out of the body. Large and streamed bodies set their own pace once
// they are read.
func headerReceived(*fasthttp.RequestHeader) fasthttp.RequestConfig {
	return fasthttp.RequestConfig{ReadTimeout: bodyTimeout}
}
