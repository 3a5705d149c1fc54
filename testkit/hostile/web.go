package hostile

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// Honest is the host of a web's only good origin, whose page says so.
const Honest = "honest.example"

// Web runs all origins on the loopback, each at its own host under .example, and Honest.
type Web struct {
	Origins []Origin
	// Places are the hosts' addresses, in the form of egress.Config.Origins.
	Places map[string]string
	// Accepted gets a value for each connection to a hostile origin, if somebody reads it.
	Accepted chan struct{}

	honest    *httptest.Server
	listeners []net.Listener
	running   sync.WaitGroup
}

// NewWeb begins to listen. The caller closes the web.
func NewWeb() (*Web, error) {
	origins, err := Origins()
	if err != nil {
		return nil, err
	}
	w := &Web{Origins: origins, Accepted: make(chan struct{}, 1024)}
	w.honest = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<h1>honest</h1>")
	}))
	w.Places = map[string]string{Honest: w.honest.Listener.Addr().String()}
	for i, o := range w.Origins {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.listeners = append(w.listeners, listener)
		w.Places[fmt.Sprintf("h%d.example", i)] = listener.Addr().String()
		w.running.Go(func() { w.accept(listener, o.Serve) })
	}
	return w, nil
}

// URL returns the address of an origin.
func (w *Web) URL(i int) string {
	if w.Origins[i].TLS {
		return fmt.Sprintf("https://h%d.example/", i)
	}
	return fmt.Sprintf("http://h%d.example/", i)
}

// Close ends the web, and waits until every origin has released its connections.
func (w *Web) Close() error {
	var failed error
	for _, listener := range w.listeners {
		failed = errors.Join(failed, listener.Close())
	}
	w.honest.Close()
	w.running.Wait()
	return failed
}

// longest is how long an origin may hold a connection.
const longest = time.Minute

func (w *Web) accept(listener net.Listener, serve func(net.Conn)) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		w.running.Go(func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(longest))
			select {
			case w.Accepted <- struct{}{}:
			default:
			}
			serve(c)
		})
	}
}
