package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// exitNode is an HTTP proxy for tunnels. It records its requests.
type exitNode struct {
	*httptest.Server
	login string // required, as in the header

	mu     sync.Mutex
	asked  []string
	answer int // status instead of a tunnel
}

func newExit(t *testing.T, login string) *exitNode {
	t.Helper()
	e := &exitNode{login: login}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Server.Close)
	return e
}

func (e *exitNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	e.asked = append(e.asked, r.Method+" "+r.Host)
	status := e.answer
	e.mu.Unlock()
	if r.Header.Get("Proxy-Authorization") != e.login {
		status = http.StatusProxyAuthRequired
	}
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	to, err := net.Dial("tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer to.Close()
	w.WriteHeader(http.StatusOK)
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	var ways sync.WaitGroup
	ways.Go(func() { _, _ = io.Copy(to, from); _ = to.Close() })
	ways.Go(func() { _, _ = io.Copy(from, to); _ = from.Close() })
	ways.Wait()
}

func (e *exitNode) become(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = status
}

func (e *exitNode) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

func parseProxies(t *testing.T, texts ...string) []*egress.Proxy {
	t.Helper()
	var all []*egress.Proxy
	for _, text := range texts {
		proxy, err := egress.ParseProxy(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, proxy)
	}
	return all
}

func TestSuper(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/to":
			http.Redirect(w, r, "http://b.example/end", http.StatusFound)
		case "/private":
			http.Redirect(w, r, forbidden, http.StatusFound)
		default:
			fmt.Fprint(w, r.Host)
		}
	}))
	defer site.Close()
	place := site.Listener.Addr().String()
	client := newEgress(t, egress.Config{Origins: map[string]string{"*.example": place}})
	exit := newExit(t, "Basic dXNlcjpzZWNyZXQ=")
	address := strings.Replace(exit.URL, "http://", "http://user:secret@", 1)
	transport := newTransport(client, Config{Proxies: parseProxies(t, address)}, nil)
	if transport.Tiers() != model.TiersOf(model.Plain, model.Super) {
		t.Errorf("tiers %s", transport.Tiers())
	}
	page, err := transport.Fetch(t.Context(),
		Request{URL: "http://a.example/to", Tier: model.Super})
	if err != nil {
		t.Fatal(err)
	}
	if string(page.Body) != "b.example" || page.Hops != 1 {
		t.Errorf("got %q, %+v", page.Body, page)
	}
	page.Release()
	// The proxy sees only checked addresses and never names. It sees no forbidden ones.
	if want := []string{"CONNECT " + place, "CONNECT " + place}; !slices.Equal(exit.asked, want) {
		t.Errorf("the proxy was asked %q", exit.asked)
	}
	for _, url := range []string{forbidden, "http://a.example/private"} {
		page, err := transport.Fetch(t.Context(), Request{URL: url, Tier: model.Super})
		if failed := failureOf(t, page, err); failed.Code != fault.PageAddressForbidden ||
			failed.Retry {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, asked := range exit.asked {
		if asked != "CONNECT "+place {
			t.Errorf("the proxy was asked %q", asked)
		}
	}
}

// TestProxiesTakeTurns: a failing proxy rests. A proxy that a site refuses is no longer used for
// its host.
func TestProxiesTakeTurns(t *testing.T) {
	now := clock.NewManual(time.Unix(0, 0))
	p := newProxies(parseProxies(t, "http://10.0.0.1:1", "socks5://10.0.0.1:2",
		"http://10.0.0.1:3"), now)
	at := func(host string) int { return slices.Index(p.all, p.pick(host)) }
	for range stickyPages {
		if got := at("a"); got != 0 {
			t.Fatalf("host a goes by %d", got)
		}
	}
	if a, b, c := at("a"), at("b"), at("c"); a != 1 || b != 2 || c != 0 {
		t.Errorf("then they go by %d, %d, %d", a, b, c)
	}
	if !p.turnedAway("a", p.all[1]) || at("a") != 1 && at("a") != 2 {
		t.Error("there is another one")
	}
	ill := &egress.ProxyError{Own: true, Cause: errors.New("x")}
	for _, e := range p.all {
		p.report("z", e, ill)
	}
	if got := p.pick("a"); got != nil || p.resting() != 3 {
		t.Errorf("all rest, and %v is picked", got.proxy)
	}
	now.Advance(rests.First)
	if p.pick("a") == nil || p.resting() != 0 {
		t.Error("rests never end")
	}
	p.report("a", p.all[0], ill)
	now.Advance(rests.First)
	if p.resting() != 1 {
		t.Error("the second rest is no longer than the first")
	}
	p.report("a", p.all[0], nil)
	if p.resting() != 0 {
		t.Error("a proxy that works rests on")
	}
	missed := &egress.ProxyError{Cause: errors.New("x")}
	for n := range toleratedMisses {
		if p.resting() != 0 {
			t.Errorf("rests after %d hosts that were not there", n)
		}
		p.report(fmt.Sprint(n), p.all[0], missed)
	}
	if p.resting() != 1 {
		t.Error("reaches nothing, and goes on")
	}
	p.report("a", p.all[1], context.DeadlineExceeded)
	if p.resting() != 1 {
		t.Error("rests for a slow host")
	}
}

func TestProxiesThatFail(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer site.Close()
	client := newEgress(t, egress.Config{
		Origins: map[string]string{"*.example": site.Listener.Addr().String()}})
	closed := httptest.NewServer(nil)
	closed.Close()
	first, second := newExit(t, ""), newExit(t, "")
	transport := newTransport(client,
		Config{Proxies: parseProxies(t, closed.URL, first.URL, second.URL)}, nil)
	fetch := func(url string) *Failure {
		t.Helper()
		page, err := transport.Fetch(t.Context(), Request{URL: url, Tier: model.Super})
		if err == nil {
			page.Release()
			return nil
		}
		return failureOf(t, page, err)
	}
	if failed := fetch("http://a.example/"); failed != nil || first.count() != 1 {
		t.Errorf("with a dead proxy: %v, %d asked", failed, first.count())
	}
	if all, resting := transport.countProxies(); all != 3 || resting != 1 {
		t.Errorf("%d of %d rest", resting, all)
	}
	if failed := fetch("http://a.example/away"); failed == nil || !failed.Retry ||
		failed.Status != 403 {
		t.Errorf("turned away: %v", failed)
	}
	if failed := fetch("http://a.example/"); failed != nil || second.count() != 1 {
		t.Errorf("after it was turned away: %v, %d asked", failed, second.count())
	}
	first.become(http.StatusProxyAuthRequired)
	second.become(http.StatusProxyAuthRequired)
	transport = newTransport(newEgress(t,
		egress.Config{Origins: map[string]string{"*.example": site.Listener.Addr().String()}}),
		Config{Proxies: parseProxies(t, first.URL, second.URL)}, nil)
	for range 2 {
		if failed := fetch("http://a.example/"); failed == nil ||
			failed.Code != fault.PageConnect || !failed.Retry {
			t.Errorf("without a proxy that takes us: %v", failed)
		}
	}
}
