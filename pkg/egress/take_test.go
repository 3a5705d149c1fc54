package egress

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"shoal.dev/shoal/pkg/fault"
)

// A body may be read as it comes: whole, up to its bound, or as far as somebody wants. Its
// connection is used again only when nothing is left on it.
func TestTake(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=x")
		w.Header().Set("From", r.RemoteAddr)
		switch r.URL.Path {
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, text) // or the client is gone
			_ = z.Close()
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "not here")
		case "/broken":
			w.Header().Set("Content-Length", fmt.Sprint(2*len(text)))
			_, _ = io.WriteString(w, text)
		default:
			_, _ = io.WriteString(w, text)
		}
	}))
	defer server.Close()
	client := newClient(t, Config{})
	for _, c := range []struct {
		path     string
		max      int64
		reads    int // how far; -1: to the end
		want     int
		body     string
		failed   bool // the reader is told
		code     fault.Code
		truncate bool
		cut      bool
	}{
		{path: "/plain", reads: -1, want: len(text)},
		{path: "/packed", reads: -1, want: len(text)},
		{path: "/plain", reads: 10, want: 10},
		{path: "/packed", reads: 0},
		{path: "/gone", reads: -1, body: "not here"},
		{path: "/plain", max: int64(len(text)), reads: -1, want: len(text)},
		{path: "/plain", max: int64(len(text)) - 1, reads: -1, want: len(text) - 1, failed: true,
			code: fault.PageTooLarge},
		{path: "/plain", max: 1_000, reads: -1, want: 1_000, failed: true, truncate: true,
			cut: true},
		{path: "/packed", max: 100_000, reads: -1, want: 100_000, failed: true, truncate: true,
			cut: true},
		{path: "/broken", reads: -1, want: len(text), failed: true, code: fault.PageProtocol},
	} {
		read, failure := 0, error(nil)
		response, err := client.Do(t.Context(), &Request{URL: server.URL + c.path, MaxBody: c.max,
			Truncate: c.truncate, Deadline: time.Now().Add(time.Minute),
			Take: func(contentType string, body io.Reader) {
				if contentType != "text/plain; charset=x" {
					t.Errorf("%s: type %q", c.path, contentType)
				}
				if c.reads >= 0 {
					body = io.LimitReader(body, int64(c.reads))
				}
				all, err := io.ReadAll(body)
				if read, failure = len(all), err; string(all) != text[:len(all)] {
					t.Errorf("%s: other bytes", c.path)
				}
				if n, again := body.Read(make([]byte, 1)); n != 0 ||
					err != nil && !errors.Is(again, err) {
					t.Errorf("%s: behind its end it has %d bytes, %v", c.path, n, again)
				}
			}})
		if read != c.want || (failure != nil) != c.failed || fault.CodeOf(err) != c.code {
			t.Errorf("%+v: %d bytes, %v, %v", c, read, failure, err)
		}
		if err != nil {
			continue
		}
		if string(response.Body) != c.body || response.Truncated != c.cut {
			t.Errorf("%+v: body %q, truncated %v", c, response.Body, response.Truncated)
		}
		response.Release()
	}
}
