package clickhouse_test

import (
	"bytes"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

const password = "p@ss/word"

// doorman is a server that refuses every sign-in, like ClickHouse.
type doorman struct {
	mu   sync.Mutex
	seen map[string]bool // USER:PASSWORD
}

func (g *doorman) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	user, word, basic := r.BasicAuth()
	if !basic {
		user, word = r.Header.Get("X-ClickHouse-User"), r.Header.Get("X-ClickHouse-Key")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen[user+":"+word] = true
	w.Header().Set("X-ClickHouse-Exception-Code", "516")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, "Code: 516. DB::Exception: "+user+
		": Authentication failed: password is incorrect, "+
		"or there is no user with such name. (AUTHENTICATION_FAILED)")
}

// TestSignIn: the credentials reach the server, from the address or beside it, plain or over TLS. A
// refusal is an error at once, which does not quote the password.
func TestSignIn(t *testing.T) {
	g := &doorman{seen: map[string]bool{}}
	plain, secured := httptest.NewServer(g), httptest.NewTLSServer(g)
	defer plain.Close()
	defer secured.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(secured.Certificate())
	at := func(server *httptest.Server, user string) string {
		return strings.Replace(server.URL, "://", "://"+user, 1) + "/shoal"
	}
	for _, c := range []struct {
		config clickhouse.Config
		seen   string
	}{
		{clickhouse.Config{URL: at(plain, "a:p%40ss%2Fword@")}, "a:" + password},
		{clickhouse.Config{URL: at(plain, ""), Username: "b", Password: password}, "b:" + password},
		{clickhouse.Config{URL: at(secured, "c:p%40ss%2Fword@"), RootCAs: trusted},
			"c:" + password},
		{clickhouse.Config{URL: at(secured, "c:old@") + "?secure=true", Username: "d",
			Password: password, RootCAs: trusted},
			"d:" + password},
	} {
		var said bytes.Buffer
		c.config.Logger = slog.New(slog.NewTextHandler(&said, nil))
		_, err := clickhouse.Open(t.Context(), c.config)
		if err == nil || !strings.Contains(err.Error(), "Authentication failed") ||
			strings.Contains(err.Error(), "word@") ||
			strings.Contains(err.Error(), password) || said.Len() > 0 {
			t.Errorf("%s: error %v, log %s", c.seen, err, &said)
		}
		g.mu.Lock()
		if !g.seen[c.seen] || len(g.seen) != 1 {
			t.Errorf("the server saw %v, want %s", g.seen, c.seen)
		}
		clear(g.seen)
		g.mu.Unlock()
	}
	_, err := clickhouse.Open(t.Context(),
		clickhouse.Config{URL: at(secured, ""), Username: "e", Password: password})
	if err == nil || !strings.Contains(err.Error(), "unknown authority") || len(g.seen) > 0 {
		t.Errorf("a server that nobody vouches for: %v, and it saw %v", err, g.seen)
	}
}

// TestBehindTLS uses a real server behind one that speaks TLS and admits one user.
func TestBehindTLS(t *testing.T) {
	target, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	target.Path = ""
	onward := httputil.NewSingleHostReverseProxy(target)
	secured := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-ClickHouse-User") != "u" ||
			r.Header.Get("X-ClickHouse-Key") != password {
			t.Errorf("a call of %q", r.Header.Get("X-ClickHouse-User"))
		}
		r.Header.Del("X-ClickHouse-User")
		r.Header.Del("X-ClickHouse-Key")
		r.Header.Del("X-ClickHouse-SSL-Certificate-Auth")
		onward.ServeHTTP(w, r)
	}))
	defer secured.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(secured.Certificate())
	store := open(t, clickhouse.Config{URL: secured.URL, Database: database(t), Username: "u",
		Password: password,
		RootCAs:  trusted})
	if _, err := store.AllLists(t.Context()); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestAddresses: the error for a bad address does not quote the password.
func TestAddresses(t *testing.T) {
	for _, config := range []clickhouse.Config{
		{},
		{URL: "clickhouse://h:1/d"},
		{URL: "http://u:" + password + "@h:1/d"}, // not escaped
		{URL: "http://u:1/word@h:1/d"},           // its database would be the rest of the password
		{URL: "http://h:1"},
		{URL: "http://h:1/d", RootCAs: x509.NewCertPool()},
		{URL: "https://h:1/d?secure=false"},
	} {
		_, err := clickhouse.Open(t.Context(), config)
		if err == nil || config.Check() == nil || strings.Contains(err.Error(), "word") {
			t.Errorf("%s: error %v", config.URL, err)
		}
	}
}
