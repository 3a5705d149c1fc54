package egress

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"shoal.dev/shoal/pkg/fault"
)

// TestMain also checks that clients leave no goroutine behind. It ignores those of fasthttp's
// client: BenchmarkFasthttp uses it, and they end on their own some seconds later.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(
		"github.com/valyala/fasthttp.(*Client).mCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"))
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func newClient(t testing.TB, config Config) *Client {
	t.Helper()
	config.Allow = append(config.Allow, loopback...)
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// script is a server that reads one request and then plays a script. It returns its URL and the
// number of connections.
func script(t *testing.T, play func(c net.Conn, request string)) (url string, conns *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = new(atomic.Int32)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			running.Go(func() {
				defer c.Close()
				for {
					request, err := readRequest(c)
					if err != nil {
						return
					}
					play(c, request)
				}
			})
		}
	})
	t.Cleanup(func() { listener.Close(); running.Wait() })
	return "http://" + listener.Addr().String() + "/", conns
}

// readRequest reads a header; the end of the connection is an error.
func readRequest(c net.Conn) (string, error) {
	var request []byte
	buffer := make([]byte, 4096)
	for !bytes.Contains(request, []byte("\r\n\r\n")) {
		n, err := c.Read(buffer)
		if err != nil {
			return "", err
		}
		request = append(request, buffer[:n]...)
	}
	return string(request), nil
}

// endless writes until the other side closes the connection.
func endless(c net.Conn, first, rest string) {
	_, err := io.WriteString(c, first)
	for err == nil {
		_, err = io.WriteString(c, rest)
	}
}

func TestExchange(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Test", "yes")
		w.WriteHeader(404)
		io.WriteString(w, "not here")
	}))
	defer server.Close()
	c := newClient(t, Config{})
	resp, err := c.Do(t.Context(), &Request{
		Method: "POST", URL: server.URL + "/a%2Fb//c?x=1&y", Body: []byte("payload"),
		Header: []Field{{"User-Agent", "tester"}, {"Content-Type", "text/plain"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Release()
	if resp.Status != 404 || string(resp.Body) != "not here" || resp.Header("X-Test") != "yes" ||
		resp.WireBytes < 50 {
		t.Errorf("answer %d %q %q, %d bytes", resp.Status, resp.Body, resp.Header("X-Test"),
			resp.WireBytes)
	}
	if got.RequestURI != "/a%2Fb//c?x=1&y" || got.UserAgent() != "tester" ||
		string(body) != "payload" {
		t.Errorf("request %q by %q: %q", got.RequestURI, got.UserAgent(), body)
	}
}

func TestRedirectIsAnAnswer(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	resp, err := newClient(t, Config{}).Do(t.Context(), &Request{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Release()
	if resp.Status != 302 || resp.Header("Location") != "/elsewhere" || requests.Load() != 1 {
		t.Errorf("status %d to %q after %d requests", resp.Status, resp.Header("Location"),
			requests.Load())
	}
}

// Only five statuses lead on, and only with an address.
func TestRedirect(t *testing.T) {
	for status := 200; status <= 999; status++ {
		r := Response{Status: status}
		if to := r.Redirect(); to != "" {
			t.Errorf("status %d without an address leads to %q", status, to)
		}
		r.message.Header.Set("Location", "/next")
		want := ""
		switch status {
		case 301, 302, 303, 307, 308:
			want = "/next"
		}
		if to := r.Redirect(); to != want {
			t.Errorf("status %d leads to %q, want %q", status, to, want)
		}
	}
}

func TestContentCodings(t *testing.T) {
	page := []byte(strings.Repeat("<p>words and words</p>\n", 5000))
	encode := map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"x-gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"Deflate": func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 6); return z },
		"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd":    func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		coding := r.URL.Query().Get("coding")
		w.Header().Set("Content-Encoding", coding)
		if r.URL.Path == "/empty" {
			return
		}
		var packed bytes.Buffer
		z := encode[coding](&packed)
		z.Write(page)
		z.Close()
		if r.URL.Path == "/cut" {
			packed.Truncate(packed.Len() / 2)
		}
		w.Write(packed.Bytes())
	}))
	defer server.Close()
	c := newClient(t, Config{})
	for coding := range encode {
		for range 2 { // the second time with a reused decompressor
			resp, err := c.Do(t.Context(), &Request{URL: server.URL + "/?coding=" + coding})
			if err != nil {
				t.Fatal(coding, err)
			}
			if !bytes.Equal(resp.Body, page) || resp.WireBytes > 20_000 {
				t.Errorf("%s: %d bytes from %d", coding, len(resp.Body), resp.WireBytes)
			}
			resp.Release()
		}
		resp, err := c.Do(t.Context(), &Request{URL: server.URL + "/empty?coding=" + coding})
		if err != nil || len(resp.Body) != 0 {
			t.Errorf("%s, empty: %v, %v", coding, resp, err)
		}
		_, err = c.Do(t.Context(), &Request{URL: server.URL + "/cut?coding=" + coding})
		if fault.CodeOf(err) != fault.PageDecompression {
			t.Errorf("%s, cut: %v", coding, err)
		}
		resp, err = c.Do(t.Context(),
			&Request{URL: server.URL + "/?coding=" + coding, MaxBody: 50_000, Truncate: true})
		if err != nil || !resp.Truncated || !bytes.Equal(resp.Body, page[:50_000]) {
			t.Errorf("%s, truncated: %v", coding, err)
		}
		_, err = c.Do(t.Context(),
			&Request{URL: server.URL + "/?coding=" + coding, MaxBody: 50_000})
		if fault.CodeOf(err) != fault.PageTooLarge {
			t.Errorf("%s, bomb: %v", coding, err)
		}
	}
	resp, err := c.Do(t.Context(), &Request{URL: server.URL + "/empty?coding=pack200"})
	if err != nil || len(resp.Body) != 0 {
		t.Errorf("empty, unknown coding: %v, %v", resp, err)
	}
}

// TestCodingsAsServersNameThem: odd codings and trailing bytes do no harm; no type stays none.
func TestCodingsAsServersNameThem(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("<p>words"))
	z.Close()
	one := packed.String()
	for name, test := range map[string]struct{ coding, body, want string }{
		"none":            {"none", "<p>words", "<p>words"},
		"a charset":       {"UTF-8", "<p>words", "<p>words"},
		"of an upload":    {"gzip,aws-chunked", one, "<p>words"},
		"with identity":   {"identity, gzip", one, "<p>words"},
		"two members":     {"gzip", one + one, "<p>words<p>words"},
		"lines behind":    {"gzip", one + "\n\n", "<p>words"},
		"zeros behind":    {"gzip", one + strings.Repeat("\x00", 20_000), "<p>words"},
		"half a member":   {"gzip", one + one[:12], "an error"},
		"twice gzip":      {"gzip, gzip", one, "an error"},
		"not known":       {"pack200, none", "x", "an error"},
		"nothing encoded": {"", "<p>words", "<p>words"},
	} {
		url, _ := script(t, func(c net.Conn, _ string) {
			fmt.Fprintf(c,
				"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s",
				test.coding, len(test.body), test.body)
			c.Close()
		})
		got := "an error"
		if resp, err := newClient(t, Config{}).Do(t.Context(), &Request{URL: url}); err == nil {
			got = string(resp.Body) + resp.Header("Content-Type")
			resp.Release()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func gzipBomb(megabytes int) string {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for range megabytes {
		z.Write(zeros)
	}
	z.Close()
	return packed.String()
}

func TestHostileAnswers(t *testing.T) {
	bomb := gzipBomb(64)
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, test := range map[string]struct {
		play func(c net.Conn)
		want fault.Code
	}{
		"endless body": {func(c net.Conn) { endless(c, ok+"\r\n", strings.Repeat("x", 9000)) },
			fault.PageTooLarge},
		"endless chunks": {func(c net.Conn) {
			endless(c, ok+"Transfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n")
		}, fault.PageTooLarge},
		"endless chunk extension": {func(c net.Conn) {
			endless(c, ok+"Transfer-Encoding: chunked\r\n\r\n5;", strings.Repeat("x", 9000))
		}, fault.PageTooLarge},
		"endless header": {func(c net.Conn) {
			endless(c, ok,
				"X-Flood: "+strings.Repeat("x", 100)+"\r\n")
		}, fault.PageProtocol},
		"endless line": {func(c net.Conn) {
			endless(c, ok+"X-Flood: ",
				strings.Repeat("x", 9000))
		}, fault.PageProtocol},
		"endless interim answers": {func(c net.Conn) {
			endless(c, "", "HTTP/1.1 103 Early Hints\r\n\r\n")
		}, fault.PageProtocol},
		"endless trailer": {func(c net.Conn) {
			endless(c, ok+"Transfer-Encoding: chunked\r\n\r\n0\r\n",
				"X-T: "+strings.Repeat("x", 100)+"\r\n")
		}, fault.PageProtocol},
		"huge length": {func(c net.Conn) {
			endless(c, ok+"Content-Length: 9000000000\r\n\r\n",
				"x")
		}, fault.PageTooLarge},
		"length that lies": {func(c net.Conn) {
			io.WriteString(c, ok+"Content-Length: 100\r\n\r\nshort")
			c.Close()
		}, fault.PageProtocol},
		"cut between chunks": {func(c net.Conn) {
			io.WriteString(c, ok+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			c.Close()
		}, fault.PageProtocol},
		"half closed": {func(c net.Conn) {
			c.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c)
		}, fault.PageConnect},
		"reset": {func(c net.Conn) {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}, fault.PageConnect},
		"two lengths": {func(c net.Conn) {
			io.WriteString(c,
				ok+"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx")
		}, fault.PageProtocol},
		"not HTTP": {func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n\r\n") },
			fault.PageProtocol},
		"other coding": {func(c net.Conn) {
			io.WriteString(c,
				ok+"Content-Encoding: pack200\r\nContent-Length: 1\r\n\r\nx")
		}, fault.PageDecompression},
		"bad gzip": {func(c net.Conn) {
			io.WriteString(c,
				ok+"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nxxxx")
		}, fault.PageDecompression},
		"bomb": {func(c net.Conn) {
			fmt.Fprintf(c, ok+"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(bomb),
				bomb)
		}, fault.PageTooLarge},
		"upgrade": {func(c net.Conn) {
			io.WriteString(c,
				"HTTP/1.1 101 Switching Protocols\r\n\r\n")
		}, fault.PageProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			url, conns := script(t, func(c net.Conn, _ string) { test.play(c); c.Close() })
			c := newClient(t, Config{})
			resp, err := c.Do(t.Context(),
				&Request{URL: url, MaxBody: 100_000, Deadline: time.Now().Add(20 * time.Second)})
			if fault.CodeOf(err) != test.want {
				t.Errorf("%v, %v; want %s", resp, err, test.want)
			}
			if conns.Load() != 1 {
				t.Errorf("%d connections", conns.Load())
			}
			if held := c.held.total(); held != 0 {
				t.Errorf("%d bytes still held", held)
			}
		})
	}
}

func TestSlowAnswersEndAtTheDeadline(t *testing.T) {
	for name, first := range map[string]string{
		"header": "HTTP/1.1 200 OK\r\nX: ", "body": "HTTP/1.1 200 OK\r\nContent-Length: " +
			"10000000\r\n\r\n",
		"chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffff\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := script(t, func(c net.Conn, _ string) {
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for _, err := io.WriteString(c, first); err == nil; _,
					err = io.WriteString(c, "x") {
					<-tick.C
				}
			})
			_, err := newClient(t, Config{}).Do(t.Context(),
				&Request{URL: url, Deadline: time.Now().Add(50 * time.Millisecond)})
			if fault.CodeOf(err) != fault.PageTimeout {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		url, _ := script(t, func(c net.Conn, _ string) { io.Copy(io.Discard, c) })
		_, err := newClient(t, Config{}).Do(t.Context(),
			&Request{URL: url, Deadline: time.Now().Add(50 * time.Millisecond)})
		if fault.CodeOf(err) != fault.PageTimeout {
			t.Errorf("got %v", err)
		}
	})
}

func TestCancelEndsAnExchange(t *testing.T) {
	asked := make(chan struct{})
	url, _ := script(t, func(c net.Conn, _ string) {
		close(asked)
		io.Copy(io.Discard, c)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := newClient(t, Config{}).Do(ctx, &Request{URL: url}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		io.WriteString(w, "hello")
	}))
	defer server.Close()
	server.Config.ErrorLog = nil
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	place := server.Listener.Addr().String()
	c := newClient(t, Config{RootCAs: roots,
		Origins: map[string]string{"*.example": place, "example.com": place}})
	get(t, c, "https://example.com/") // the test server's certificate is for this name
	get(t, c, "https://example.com/")
	if c.pool.count != 1 {
		t.Errorf("%d connections kept", c.pool.count)
	}
	for name, client := range map[string]*Client{
		"other name": c, "unknown authority": newClient(t,
			Config{Origins: map[string]string{"*.example": place}}),
	} {
		if _, err := client.Do(t.Context(),
			&Request{URL: "https://other.example/"}); fault.CodeOf(err) != fault.PageTLS {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFieldsCannotSmuggle(t *testing.T) {
	url, _ := script(t, func(c net.Conn, _ string) { io.WriteString(c, hello) })
	c := newClient(t, Config{})
	for _, field := range []Field{{"X", "a\r\nHost: b"}, {"X: y\r\nZ", "a"}, {"", "a"},
		{"X Y", "a"}} {
		if _, err := c.Do(t.Context(), &Request{URL: url, Header: []Field{field}}); err == nil {
			t.Errorf("%q was sent", field)
		}
	}
}

// TestBodyWithGet: any method may have a body; a GET without one has no Content-Length.
func TestBodyWithGet(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %q %q", r.Method, r.Header.Get("Content-Length"), body)
	}))
	defer server.Close()
	c := newClient(t, Config{})
	for _, ask := range []struct {
		req  Request
		want string
	}{
		{Request{Method: "GET", Body: []byte("x")}, `GET "1" "x"`},
		{Request{}, `GET "" ""`},
		{Request{Method: "DELETE"}, `DELETE "0" ""`},
	} {
		ask.req.URL = server.URL
		resp, err := c.Do(t.Context(), &ask.req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Release()
		if got != ask.want {
			t.Errorf("sent %s, want %s", got, ask.want)
		}
	}
}
