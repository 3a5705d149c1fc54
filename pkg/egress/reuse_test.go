package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/fault"
)

const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

func get(t *testing.T, c *Client, url string) {
	t.Helper()
	resp, err := c.Do(t.Context(), &Request{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if string(resp.Body) != "hello" {
		t.Fatalf("body %q", resp.Body)
	}
	resp.Release()
}

func TestKeepAlive(t *testing.T) {
	url, conns := script(t, func(c net.Conn, _ string) { io.WriteString(c, hello) })
	c := newClient(t, Config{})
	for range 3 {
		get(t, c, url)
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections", conns.Load())
	}
}

// TestDeadKeepAlive: a connection that the server closed, or wrote to unasked, is not reused. No
// request is sent twice.
func TestDeadKeepAlive(t *testing.T) {
	for name, after := range map[string]func(net.Conn){
		"closed": func(c net.Conn) { c.Close() },
		"spoken": func(c net.Conn) { io.WriteString(c, hello) },
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			url, conns := script(t, func(c net.Conn, _ string) {
				requests.Add(1)
				io.WriteString(c, hello)
				after(c)
			})
			c := newClient(t, Config{})
			get(t, c, url)
			awaitNotAlive(c)
			get(t, c, url)
			if conns.Load() != 2 || requests.Load() != 2 {
				t.Errorf("%d connections, %d requests", conns.Load(), requests.Load())
			}
		})
	}
}

// awaitNotAlive waits until the server's close or data has reached the idle connection, if one is
// left.
func awaitNotAlive(c *Client) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.pool.oldest != nil {
		io.ReadFull(c.pool.oldest.Conn, make([]byte, 1))
		c.pool.oldest.alive = func() bool { return false }
	}
}

func TestAliveCheck(t *testing.T) {
	url, _ := script(t, func(c net.Conn, _ string) { io.WriteString(c, hello) })
	c := newClient(t, Config{})
	get(t, c, url)
	idle := c.pool.oldest
	if !idle.alive() {
		t.Error("an open silent connection is said to be dead")
	}
	idle.Conn.(*net.TCPConn).CloseRead()
	if idle.alive() {
		t.Error("an ended connection is said to be alive")
	}
}

func TestNoSecondSend(t *testing.T) {
	var requests atomic.Int32
	url, _ := script(t, func(c net.Conn, _ string) {
		if requests.Add(1) == 1 {
			io.WriteString(c, hello)
			return
		}
		c.Close() // the connection was fine when the request was written
	})
	c := newClient(t, Config{})
	get(t, c, url)
	if _, err := c.Do(t.Context(), &Request{URL: url}); fault.CodeOf(err) != fault.PageConnect {
		t.Errorf("got %v", err)
	}
	if requests.Load() != 2 {
		t.Errorf("%d requests", requests.Load())
	}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	c := newClient(t, Config{MaxIdle: 2, Origins: map[string]string{}})
	for range 5 {
		url, _ := script(t, func(c net.Conn, _ string) { io.WriteString(c, hello) })
		get(t, c, url)
	}
	if c.pool.count != 2 || len(c.pool.idle) != 2 {
		t.Errorf("%d idle connections of %d origins", c.pool.count, len(c.pool.idle))
	}
	c.Close() // the servers wait for the end of their connections
}

// TestIdleBytesAreBounded: idle bytes are limited over all hosts, and uncounted as they go.
func TestIdleBytesAreBounded(t *testing.T) {
	c := newClient(t, Config{MaxIdleBytes: 3*bareConn + 1})
	for range 5 {
		url, _ := script(t, func(c net.Conn, _ string) { io.WriteString(c, hello) })
		get(t, c, url)
		get(t, c, url)
	}
	if c.pool.count != 3 || c.pool.bytes != 3*bareConn {
		t.Errorf("%d idle connections of %d bytes", c.pool.count, c.pool.bytes)
	}
	c.Close()
	if c.pool.bytes != 0 {
		t.Errorf("%d bytes of none", c.pool.bytes)
	}
	read := &conn{to: origin{tls: true}, largest: 1 << 30}
	if got := read.weight(); got != tlsConn+tlsBuffer {
		t.Errorf("a connection over which much came weighs %d", got)
	}
}

// TestLeave: Leave closes idle connections to one authority, public or private, and no others.
func TestLeave(t *testing.T) {
	hangUps := make(chan string, 3)
	place := func() string {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			io.WriteString(w, "hello")
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				hangUps <- server.URL
			}
		}
		server.Start()
		t.Cleanup(server.Close)
		return server.URL
	}
	c := newClient(t, Config{})
	left, kept := place(), place()
	get(t, c, left)
	get(t, c, kept)
	resp, err := c.Do(t.Context(), &Request{URL: left, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	resp.Release()
	if c.pool.count != 3 {
		t.Fatalf("%d idle connections: a private request shares none", c.pool.count)
	}
	c.Leave(strings.TrimPrefix(left, "http://"))
	if first, second := <-hangUps, <-hangUps; first != left || second != left ||
		c.pool.count != 1 {
		t.Errorf("closed %s and %s, %d kept", first, second, c.pool.count)
	}
}

func TestIdleConnectionsExpire(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		io.WriteString(w, "hello")
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(gone)
		}
	}
	server.Start()
	defer server.Close()
	c := newClient(t, Config{IdleTimeout: time.Millisecond})
	get(t, c, server.URL)
	<-gone
}

func TestExchangesAreBounded(t *testing.T) {
	asked := make(chan struct{})
	url, _ := script(t, func(c net.Conn, _ string) { asked <- struct{}{}; io.Copy(io.Discard, c) })
	c := newClient(t, Config{MaxExchanges: 1})
	ctx, cancel := context.WithCancel(t.Context())
	var first sync.WaitGroup
	first.Go(func() { c.Do(ctx, &Request{URL: url}) })
	<-asked
	_, err := c.Do(t.Context(), &Request{URL: url, Deadline: time.Now().Add(20 * time.Millisecond)})
	if fault.CodeOf(err) != fault.PageTimeout {
		t.Errorf("got %v", err)
	}
	cancel()
	first.Wait()
}

// TestBodiesOfOneCallerLeaveRoom: whatever one caller holds, another's page is read.
func TestBodiesOfOneCallerLeaveRoom(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		size := 300 << 10
		if r.URL.Path == "/small" {
			size = 60 << 10
		}
		w.Write(make([]byte, size))
	}))
	defer server.Close()
	c := newClient(t, Config{MaxBuffered: 4 << 20})
	var kept []*Response
	for _, caller := range []string{"one", "two"} {
		for {
			resp, err := c.Do(t.Context(), &Request{URL: server.URL, Caller: caller})
			if err != nil {
				if fault.CodeOf(err) != fault.Unavailable {
					t.Fatal(err)
				}
				break
			}
			if kept = append(kept, resp); len(kept) > 16 {
				t.Fatal("no bound")
			}
		}
	}
	if len(kept) < 4 {
		t.Errorf("%d large bodies of two callers fit", len(kept))
	}
	resp, err := c.Do(t.Context(), &Request{URL: server.URL + "/small", Caller: "three"})
	if err != nil {
		t.Fatalf("another caller's page is not read: %v", err)
	}
	for _, resp := range append(kept, resp) {
		resp.Release()
	}
	if len(c.held.of) > 0 || c.held.total() != 0 {
		t.Errorf("%d bytes still held, of %v", c.held.total(), c.held.of)
	}
}

func TestBodiesAreBoundedTogether(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.Write(make([]byte, 300<<10))
	}))
	defer server.Close()
	c := newClient(t, Config{MaxBuffered: 1 << 20})
	var held []*Response
	for {
		resp, err := c.Do(t.Context(), &Request{URL: server.URL})
		if err != nil {
			if fault.CodeOf(err) != fault.Unavailable {
				t.Error(err)
			}
			break
		}
		if held = append(held, resp); len(held) > 4 {
			t.Fatal("no bound")
		}
	}
	for _, resp := range held {
		resp.Release()
	}
	if c.held.total() != 0 {
		t.Errorf("%d bytes still held", c.held.total())
	}
}
