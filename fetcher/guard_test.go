//go:build linux

package fetcher

import (
	"context"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/browser"
	"shoal.dev/shoal/testkit/forbidden"
	"shoal.dev/shoal/testkit/netns"
)

// guarded is a fetcher's egress in a network where every address belongs to the test.
type guarded struct {
	t       *testing.T
	trap    *forbidden.Trap
	names   *forbidden.Names
	now     *clock.Manual
	client  *egress.Client
	web     *HTTPWeb
	targets []forbidden.Target
	pages   []forbidden.Target // what the pages of asking request
	worked  chan struct{}      // a page's worker has finished
}

// whole says whether all targets are tested (make guards), or only some.
func whole() bool { return os.Getenv("SHOAL_GUARD_SUITE") != "" }

// step returns one in how many targets is tested.
func step() int {
	switch {
	case whole():
		return 1
	case testing.Short():
		return 12
	default:
		return 4
	}
}

func newGuarded(t *testing.T, config egress.Config, with WebConfig) *guarded {
	t.Helper()
	g := &guarded{t: t, names: &forbidden.Names{}, worked: make(chan struct{}),
		now: clock.NewManual(time.Unix(1_800_000_000, 0))}
	g.targets = append(forbidden.Targets(), g.names.Rebind(forbidden.Addresses())...)
	g.targets = every(step(), g.targets)
	var err error
	if g.trap, err = forbidden.NewTrap(http.HandlerFunc(g.serve)); err != nil {
		t.Fatal(err)
	}
	config.Resolver, config.Clock = g.names, g.now
	if g.client, err = egress.New(config); err != nil {
		t.Fatal(err)
	}
	exit := httptest.NewServer(http.HandlerFunc(tunnel))
	g.trap.Expect(netip.MustParseAddrPort(exit.Listener.Addr().String()))
	proxy, err := egress.ParseProxy(exit.URL)
	if err != nil {
		t.Fatal(err)
	}
	with.Timeout, with.Clock, with.Proxies = 10*time.Second, g.now, []*egress.Proxy{proxy}
	if with.Chromium != "" { // a browser is slow on a busy machine
		// where pages' proxies listen
		g.trap.Expect(netip.MustParseAddrPort("127.0.0.1:0"))
		with.Timeout, with.Chromium = 30*time.Second, worldly(t, with.Chromium, g.trap)
	}
	if g.web, err = OpenWeb(t.Context(), g.client, with); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.web.Close()
		g.client.Close()
		exit.Close()
	})
	return g
}

// tunnel is a proxy that connects to any target.
func tunnel(w http.ResponseWriter, r *http.Request) {
	to, err := net.DialTimeout("tcp", r.Host, 10*time.Second)
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

// every returns each n-th target, or all if n is below 1.
func every(n int, targets []forbidden.Target) []forbidden.Target {
	var some []forbidden.Target
	for i := 0; i < len(targets); i += max(n, 1) {
		some = append(some, targets[i])
	}
	return some
}

// serve is the public site. It leads to targets by all kinds of redirects, and so do the robots.txt
// files of its hosts.
func (g *guarded) serve(w http.ResponseWriter, r *http.Request) {
	var target, status int
	if _, err := fmt.Sscanf(r.URL.Path+"$", "/to/%d/%d$", &target, &status); err == nil {
		w.Header().Set("Location", g.targets[target].URL)
		w.WriteHeader(status)
		return
	}
	if n, _ := fmt.Sscanf(r.Host, "robots-%d.example", &target); n == 1 &&
		r.URL.Path == "/robots.txt" {
		w.Header().Set("Location", g.targets[target].URL)
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	var first, last int
	if _, err := fmt.Sscanf(r.URL.Path+"$", "/ask/%d/%d$", &first, &last); err == nil {
		asking(w, g.pages[first:last])
		return
	}
	if g.serveUnits(w, r) || g.serveWorldly(w, r) {
		return
	}
	_, _ = io.WriteString(w, "<p>public</p>")
}

func (g *guarded) fetch(ctx context.Context, url string, tier model.Tier) {
	if response, err := g.web.Fetch(ctx, web.Request{URL: url, Tier: tier}); err == nil {
		response.Release()
	}
}

// entries are the ways in which an address gets requested.
func (g *guarded) entries() map[string]func(ctx context.Context, i int, url string) {
	redirects := []int{301, 302, 303, 307, 308}
	return map[string]func(ctx context.Context, i int, url string){
		"page": func(ctx context.Context, _ int, url string) { g.fetch(ctx, url, model.Plain) },
		"canonical page": func(ctx context.Context, _ int, url string) {
			if canonical, err := address.Canonical(url); err == nil {
				g.fetch(ctx, canonical, model.Plain)
			}
		},
		"redirect": func(ctx context.Context, i int, _ string) {
			g.fetch(ctx, fmt.Sprintf("http://public.example/to/%d/%d", i,
				redirects[i%len(redirects)]), model.Plain)
		},
		"proxy": func(ctx context.Context, _ int, url string) { g.fetch(ctx, url, model.Super) },
		"redirect through a proxy": func(ctx context.Context, i int, _ string) {
			g.fetch(ctx, fmt.Sprintf("http://public.example/to/%d/%d", i,
				redirects[i%len(redirects)]), model.Super)
		},
		"link": func(ctx context.Context, _ int, url string) {
			if next, err := address.Resolve("http://public.example/a/b?c", url); err == nil {
				g.fetch(ctx, next, model.Plain)
			}
		},
		"robots": func(ctx context.Context, _ int, url string) {
			if canonical, err := address.Canonical(url); err == nil {
				_, _ = g.web.CheckRules(ctx, "", canonical)
			}
		},
		"redirect of robots": func(ctx context.Context, i int, _ string) {
			if whole() && i%4 > 0 {
				// each needs its own host and connection, and ports are limited
				return
			}
			_, _ = g.web.CheckRules(ctx, "", fmt.Sprintf("http://robots-%d.example/", i))
		},
		"check before a launch": func(ctx context.Context, _ int, url string) {
			if canonical, err := address.Canonical(url); err == nil &&
				g.client.CheckURL(url) == nil {
				_ = g.client.CheckHost(ctx, "", address.HostOf(canonical))
			}
		},
	}
}

// askAll requests every target through one entry.
func (g *guarded) askAll(ask func(ctx context.Context, i int, url string)) {
	g.now.Advance(10 * time.Minute) // expires the names' look-ups
	var next atomic.Int64
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(g.targets) {
					return
				}
				ask(g.t.Context(), i, g.targets[i].URL)
			}
		})
	}
	running.Wait()
}

// TestGuard requests every spelling of every forbidden address through every entry. Forbidden
// addresses see no connection.
func TestGuard(t *testing.T) {
	if !netns.Alone(t) {
		return
	}
	g := newGuarded(t, egress.Config{}, WebConfig{})
	if len(g.targets)*step() < 20_000 {
		t.Errorf("only %d targets", len(g.targets))
	}
	asked := 0
	for name, ask := range g.entries() {
		t.Run(name, func(t *testing.T) {
			before := g.trap.Served()
			g.askAll(ask)
			asked += len(g.targets)
			if caught := g.trap.Caught(); len(caught) > 0 {
				t.Errorf("%d connections reached what is forbidden: %.500s", len(caught),
					strings.Join(caught, " "))
			}
			if strings.Contains(name, "redirect") && g.trap.Served() < before+len(g.targets)/4 {
				t.Errorf("only %d requests reached the public site", g.trap.Served()-before)
			}
		})
	}
	// Requests do work: public addresses are reached, by name and by number.
	for _, url := range []string{"http://public.example/", "http://93.184.216.34/",
		"http://[2606:2800:220:1:248:1893:25c8:1946]:8080/"} {
		response, err := g.web.Fetch(t.Context(), web.Request{URL: url})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		response.Release()
	}
	if err := g.trap.Close(); err != nil {
		t.Error(err)
	}
	if leaks := g.trap.Leaks(); len(leaks) > 0 {
		t.Errorf("packets went where nothing should go: %v", leaks)
	}
	t.Logf("%d targets, %d times asked for, %d requests served", len(g.targets), asked,
		g.trap.Served())
}

// TestTrap proves that TestGuard can fail: without the guard, forbidden addresses are reached, and
// this is seen.
func TestTrap(t *testing.T) {
	if !netns.Alone(t) {
		return
	}
	g := newGuarded(t, egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"),
		netip.MustParsePrefix("::/0")}},
		WebConfig{})
	g.askAll(g.entries()["page"])
	byGuard := len(g.trap.Caught())
	g.askAll(g.entries()["redirect"])
	byRedirect := len(g.trap.Caught())
	g.askAll(g.entries()["proxy"])
	byProxy := len(g.trap.Caught())
	if byGuard < 200 || byRedirect < 200 || byProxy < 200 {
		t.Errorf("without a guard, %d, %d and %d connections were seen", byGuard, byRedirect,
			byProxy)
	}
	// Metadata addresses stay forbidden whatever is allowed. Dial without our client to see that
	// the trap holds them.
	for _, addr := range forbidden.Addresses() {
		if addr.Unmap().IsMulticast() ||
			addr.Unmap() == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			continue // has no TCP
		}
		if addr.IsLinkLocalUnicast() && addr.Is6() {
			addr = addr.WithZone("lo")
		}
		conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(addr, 80).String(), 10*time.Second)
		if err != nil {
			t.Errorf("the trap does not hold %s: %v", addr, err)
			continue
		}
		_, _ = io.ReadAll(conn)
		conn.Close()
		if caught := g.trap.Caught(); len(caught) != 1 {
			t.Errorf("%s: %v were seen", addr, caught)
		}
	}
	if err := g.trap.Close(); err != nil {
		t.Error(err)
	}
	if len(g.trap.Leaks()) < 100 {
		t.Errorf("packets to only %d places were seen", len(g.trap.Leaks()))
	}
}

// TestGuardOfTheBrowser lets a page request targets in every way it can, and lets the browser do
// whatever it does on its own. Only its own proxies are reached.
func TestGuardOfTheBrowser(t *testing.T) {
	path := browser.Path(t)
	if !netns.Alone(t) {
		return
	}
	g := newGuarded(t, egress.Config{}, WebConfig{Chromium: path})
	some := every(len(g.targets)/400, g.targets)
	if !whole() {
		some = every(len(g.targets)/100, g.targets)
	}
	const perPage = 25
	g.pages = some
	for i := 0; i < len(some); i += perPage {
		for _, page := range []string{"http://public.example/ask", "http://public.example/work",
			"https://public.example/elsewhere"} {
			page = fmt.Sprintf("%s/%d/%d", page, i, min(i+perPage, len(some)))
			response, err := g.web.Fetch(t.Context(), web.Request{URL: page, Tier: model.Render})
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if !strings.Contains(string(response.Body), "asked for all") {
				t.Errorf("%s: the page's script did not run: %.300s", page, response.Body)
			}
			response.Release()
		}
	}
	for i, target := range every(len(some)/10, some) {
		g.fetch(t.Context(), target.URL, model.Render)
		g.fetch(t.Context(), fmt.Sprintf("http://public.example/to/%d/302", i), model.Render)
	}
	if caught := g.trap.Caught(); len(caught) > 0 {
		t.Errorf("%d connections reached what is forbidden: %.500s", len(caught),
			strings.Join(caught, " "))
	}
	if g.trap.Served() < len(some)/perPage {
		t.Errorf("only %d requests reached the public site", g.trap.Served())
	}
	if err := g.trap.Close(); err != nil {
		t.Error(err)
	}
	if leaks := g.trap.Leaks(); len(leaks) > 0 {
		t.Errorf("packets went where nothing should go: %v", leaks)
	}
	t.Logf("%d targets, each asked for in nine ways by a page, in three by its worker, and "+
		"named as the page's other place", len(some))
}

// TestTrapOfTheBrowser proves that TestGuardOfTheBrowser can fail: without the guard, the page
// reaches its targets.
func TestTrapOfTheBrowser(t *testing.T) {
	path := browser.Path(t)
	if !netns.Alone(t) {
		return
	}
	g := newGuarded(t, egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"),
		netip.MustParsePrefix("::/0")}},
		WebConfig{Chromium: path})
	for _, host := range []string{"10.0.0.1", "192.168.0.1", "169.254.0.1", "[fd00::1]",
		"is-0.example"} {
		g.pages = append(g.pages,
			forbidden.Target{URL: "http://" + host + "/", For: netip.MustParseAddr("10.0.0.1")})
	}
	for _, page := range []string{"ask", "work"} {
		url := fmt.Sprintf("http://public.example/%s/0/%d", page, len(g.pages))
		response, err := g.web.Fetch(t.Context(), web.Request{URL: url, Tier: model.Render})
		if err != nil {
			t.Fatal(err)
		}
		response.Release()
		reached := map[string]bool{}
		for _, place := range g.trap.Caught() {
			reached[place] = true
		}
		if len(reached) < 4 {
			t.Errorf("%s: without a guard, only %v were seen", url, reached)
		}
	}
	// The page's alternative service uses QUIC, which is off in our browser.
	lone := exec.CommandContext(t.Context(), worldly(t, path, g.trap), "--headless", "--no-sandbox",
		"--user-data-dir="+t.TempDir(),
		"--dump-dom", "--host-resolver-rules=MAP public.example "+forbidden.Public[0].String(),
		"https://public.example/elsewhere/0/1")
	if page, err := lone.Output(); err != nil || !strings.Contains(string(page), "asked for all") {
		t.Errorf("a browser of its own: %.300s, %v", page, err)
	}
	if err := g.trap.Close(); err != nil {
		t.Error(err)
	}
	if leaks := g.trap.Leaks(); leaks["10.0.0.1:443"] == 0 {
		t.Errorf("a browser of its own: only %v were seen", leaks)
	}
}

// asking serves a page that requests targets in every way it can.
func asking(w http.ResponseWriter, targets []forbidden.Target) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!DOCTYPE html><head>")
	for _, target := range targets {
		url := html.EscapeString(target.URL)
		_, _ = fmt.Fprintf(w, `<link rel=dns-prefetch href="%[1]s"><link rel=preconnect href="%[1]s"><link rel=prefetch href="%[1]s">
			<link rel=stylesheet href="%[1]s"><script async src="%[1]s"></script>`, url)
	}
	_, _ = io.WriteString(w, "<body>")
	for _, target := range targets {
		url := html.EscapeString(target.URL)
		_,
			_ = fmt.Fprintf(w,
			`<iframe src="%[1]s"></iframe><img src="%[1]s"><object data="%[1]s"></object>`, url)
	}
	_, _ = io.WriteString(w, "<script>\n")
	for _, target := range targets {
		_, _ = fmt.Fprintf(w, `try { fetch(%[1]q, {mode: "no-cors"}).catch(() => 0); navigator.sendBeacon(%[1]q);
			new WebSocket(%[1]q.replace(/^http/, "ws"));
			new RTCPeerConnection({iceServers: [{urls: "stun:%[2]s:3478"}, {urls: "turn:%[2]s:3478?transport=tcp", username: "u", credential: "c"}]}).
				createDataChannel("x") } catch (e) {}
			`, target.URL, bracketed(target.For))
	}
	_, _ = io.WriteString(w, `const peer = new RTCPeerConnection({iceServers: [{urls: "stun:10.0.0.1:3478"}, {urls: "stun:stun.example:3478"}]});
		peer.createDataChannel("x"); peer.createOffer().then(o => peer.setLocalDescription(o));
		document.body.append("asked for all")</script>`)
}

func bracketed(addr netip.Addr) string {
	if addr.Is6() {
		return "[" + addr.WithZone("").String() + "]"
	}
	return addr.String()
}
