package web

import (
	"context"
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

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/reading"
	robotstxt "shoal.dev/shoal/pkg/robots"
)

func openRobots(t testing.TB, client *egress.Client, clk clock.Clock) *Robots {
	robots := newRobots(client, Config{UserAgent: "Shoal/1.0 (+https://shoal.example)", Clock: clk})
	t.Cleanup(robots.Close)
	return robots
}

func TestRobots(t *testing.T) {
	var asked atomic.Int32
	client := web(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch host, _, _ := strings.Cut(r.Host, "."); host {
		case "rules":
			io.WriteString(w, "User-agent: *\nDisallow: /\n\nUser-agent: shoal\nCrawl-delay: "+
				"2.5\nDisallow: /private\nAllow: /private/open\n")
		case "slow":
			io.WriteString(w, "User-agent: *\nCrawl-delay: 3600\n")
		case "large":
			io.WriteString(w, "User-agent: *\nDisallow: /x\n"+strings.Repeat("# filler\n", 100_000)+
				"Disallow: /y\n")
		case "gone":
			w.WriteHeader(http.StatusNotFound)
		case "denied":
			w.WriteHeader(http.StatusForbidden)
		case "down":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case "moved":
			http.Redirect(w, r, "http://rules.example/robots.txt", http.StatusMovedPermanently)
		case "loop":
			http.Redirect(w, r, "/robots.txt", http.StatusFound)
		case "broken":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "no gzip")
		}
	})
	robots := openRobots(t, client, clock.NewManual(time.Unix(0, 0)))
	for _, test := range []struct {
		url   string
		want  fault.Code
		retry bool
		delay time.Duration
	}{
		{"http://rules.example/", "", false, 2500 * time.Millisecond},
		{"http://rules.example/private/x?y", fault.PageRobots, false, 2500 * time.Millisecond},
		{"http://rules.example/private/open", "", false, 2500 * time.Millisecond},
		{"http://rules.example/robots.txt", "", false, 2500 * time.Millisecond},
		{"http://moved.example/private", fault.PageRobots, false, 2500 * time.Millisecond},
		{"http://slow.example/", "", false, robotstxt.MaxDelay},
		{"http://large.example/x", fault.PageRobots, false, 0},
		{"http://large.example/y", "", false, 0},
		{"http://gone.example/", "", false, 0},
		{"http://denied.example/", "", false, 0},
		{"http://loop.example/", "", false, 0},
		{"http://down.example/", fault.PageRobots, true, 0},
		{"http://busy.example/", fault.PageRobots, true, 0},
		{"http://broken.example/", fault.PageRobots, true, 0},
		{forbidden, fault.PageAddressForbidden, false, 0},
	} {
		for range 2 {
			delay, err := robots.CheckRules(t.Context(), "", test.url)
			var refused *Failure
			if fault.CodeOf(err) != test.want || delay != test.delay || errors.As(err, &refused) &&
				refused.Retry != test.retry {
				t.Errorf("%s: %v, %v", test.url, delay, err)
			}
		}
		if !robots.KnowsRules(test.url) {
			t.Errorf("%s is not known", test.url)
		}
	}
	if got := asked.Load(); got != 10+1+maxRobotsHops {
		t.Errorf("%d requests", got)
	}
	if robots.KnowsRules("http://other.example/") || robots.KnowsRules("https://rules.example/") {
		t.Error("what was not asked is known")
	}
}

func TestRobotsOfADeadHost(t *testing.T) {
	closed := httptest.NewServer(nil)
	place := closed.Listener.Addr().String()
	closed.Close()
	robots := openRobots(t, newEgress(t,
		egress.Config{Origins: map[string]string{"*.example": place}}), nil)
	_, err := robots.CheckRules(t.Context(), "", "http://a.example/")
	var refused *Failure
	if fault.CodeOf(err) != fault.PageConnect || !errors.As(err, &refused) || !refused.Retry {
		t.Errorf("got %v", err)
	}
}

// hangingNames is a resolver that knows one name, and blocks on all others until released.
type hangingNames struct {
	asked, release chan struct{}
	open, most     atomic.Int32
}

func (h *hangingNames) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	if host == "alive.test" {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	defer h.open.Add(-1)
	for open := h.open.Add(1); ; {
		most := h.most.Load()
		if open <= most || h.most.CompareAndSwap(most, open) {
			break
		}
	}
	h.asked <- struct{}{}
	select {
	case <-h.release:
	case <-ctx.Done():
	}
	return nil, errors.New("nobody knows")
}

// However many names of one customer hang, another customer's robots.txt is read.
func TestRobotsOfHangingNames(t *testing.T) {
	const hosts, share = 200, 51 // of 64 concurrent look-ups
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	names := &hangingNames{asked: make(chan struct{}, hosts), release: make(chan struct{})}
	robots := openRobots(t, newEgress(t, egress.Config{Resolver: names}), nil)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer close(names.release)
	for i := range hosts {
		waiting.Go(func() {
			_, _ = robots.CheckRules(t.Context(), "greedy", fmt.Sprintf("http://h%d.test/", i))
		})
	}
	for range share {
		<-names.asked
	}
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	alive := "http://alive.test:" + port
	robots.site("greedy", alive) // it wants this host's rules, too, behind all others
	_, err := robots.CheckRules(t.Context(), "seldom", alive+"/")
	if err != nil {
		t.Error(err)
	}
	for range hosts - share {
		names.release <- struct{}{}
		<-names.asked
	}
	if most := names.most.Load(); most != share {
		t.Errorf("%d names of one customer are asked for at a time", most)
	}
}

func TestRobotsAges(t *testing.T) {
	var asked atomic.Int32
	client := web(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 6 || asked.Load() == 8 {
			w.WriteHeader(500)
		}
	})
	now := clock.NewManual(time.Unix(0, 0))
	robots := openRobots(t, client, now)
	for i, step := range []struct {
		advance time.Duration
		asked   int32
		want    fault.Code
		wait    time.Duration
	}{
		{0, 1, fault.PageRobots, time.Second},
		{time.Second - 1, 1, fault.PageRobots, 1},
		{1, 2, fault.PageRobots, 2 * time.Second},
		{2 * time.Second, 3, fault.PageRobots, 4 * time.Second},
		{4 * time.Second, 4, fault.PageRobots, 8 * time.Second},
		{8 * time.Second, 5, fault.PageRobots, robotsRetry},
		{robotsRetry, 6, fault.PageRobots, robotsRetry},
		{robotsRetry - 1, 6, fault.PageRobots, 1},
		{1, 7, "", 0},
		{robotsTTL - 1, 7, "", 0},
		{1, 8, fault.PageRobots, time.Second},
		{time.Second, 9, "", 0},
	} {
		now.Advance(step.advance)
		_, err := robots.CheckRules(t.Context(), "", "http://a.example/")
		var failed *Failure
		if asked.Load() != step.asked || fault.CodeOf(err) != step.want ||
			errors.As(err, &failed) && failed.Wait != step.wait {
			t.Errorf("step %d: asked %d times, %+v", i, asked.Load(), failed)
		}
	}
	if robots.fetches.Load() != 9 || robots.failures.Load() != 7 {
		t.Errorf("%d fetches and %d failures are counted", robots.fetches.Load(),
			robots.failures.Load())
	}
}

// A site's Retry-After is obeyed for its robots.txt.
func TestRobotsRetryAfter(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	answers := []struct {
		status int
		after  string
	}{{503, "20"}, {429, "Mon, 30 Nov 2026 12:00:50 GMT"}, {503, "7200"}, {503, "1"}, {503, "x"},
		{200, "20"}}
	var asked atomic.Int32
	client := web(t, func(w http.ResponseWriter, _ *http.Request) {
		answer := answers[asked.Add(1)-1]
		w.Header().Set("Retry-After", answer.after)
		w.WriteHeader(answer.status)
	})
	now := clock.NewManual(start)
	robots := openRobots(t, client, now)
	for i, step := range []struct {
		advance time.Duration
		asked   int32
		wait    time.Duration
	}{
		{0, 1, 20 * time.Second},
		{20*time.Second - 1, 1, 1},
		{1, 2, 30 * time.Second},
		{30 * time.Second, 3, frontier.MaxBackoff},
		{frontier.MaxBackoff - 1, 3, 1},
		{1, 4, 8 * time.Second}, // longer than it asks for, after four failures
		{8 * time.Second, 5, robotsRetry},
		{robotsRetry, 6, 0},
	} {
		now.Advance(step.advance)
		_, err := robots.CheckRules(t.Context(), "", "http://a.example/")
		failed := &Failure{}
		if errors.As(err, &failed); asked.Load() != step.asked || failed.Wait != step.wait ||
			failed.Status != 0 {
			t.Errorf("step %d: asked %d times, %+v", i, asked.Load(), failed)
		}
	}
}

func TestRobotsCoalesces(t *testing.T) {
	var asked atomic.Int32
	answer := make(chan struct{})
	client := web(t, func(http.ResponseWriter, *http.Request) { asked.Add(1); <-answer })
	robots := openRobots(t, client, nil)
	impatient, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		defer close(left)
		if _, err := robots.CheckRules(impatient, "", "http://a.example/"); !errors.Is(err,
			context.Canceled) {
			t.Errorf("impatient: %v", err)
		}
	})
	for range 8 {
		waiting.Go(func() {
			if _, err := robots.CheckRules(t.Context(), "", "http://a.example/"); err != nil {
				t.Error(err)
			}
		})
	}
	cancel()
	<-left // before there is an answer, which would do as well
	close(answer)
	waiting.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestRobotsIsBounded(t *testing.T) {
	robots := openRobots(t, newEgress(t, egress.Config{}), nil)
	body := "User-agent: *\n" + strings.Repeat("Disallow: /"+strings.Repeat("x", 1000)+"\n", 400)
	for i := range 2 * maxRobotsMemory / 400_000 {
		entry := &site{origin: fmt.Sprint(i), done: make(chan struct{})}
		robots.sites.Add(entry.origin, entry, 0)
		robots.keep(entry, robotstxt.Parse(body, "Shoal"), nil, time.Now())
	}
	if held := robots.sites.Size(); held > maxRobotsMemory || held < maxRobotsMemory*9/10 {
		t.Errorf("%d bytes are held, by %d", held, robots.sites.Len())
	}
}

// If reading robots.txt panics, its site's pages are not fetched, and nothing else is affected.
func TestPanicOfRobots(t *testing.T) {
	client := web(t, func(w http.ResponseWriter,
		r *http.Request) {
		io.WriteString(w, "# "+r.Host)
	})
	robots := openRobots(t, client, nil)
	robots.parse = func(body, agent string) *robotstxt.Rules {
		if body == "# bad.example" {
			panic("a reader's")
		}
		return robotstxt.Parse(body, agent)
	}
	for range 2 {
		if _, err := robots.CheckRules(t.Context(), "",
			"http://bad.example/"); fault.CodeOf(err) != fault.PageUnparsable {
			t.Errorf("a page behind it: %v", err)
		}
	}
	if _, err := robots.CheckRules(t.Context(), "", "http://good.example/"); err != nil {
		t.Error(err)
	}
}

// A file that one fetcher has read is not requested by the next, until the first would request it
// again. Failures are not shared.
func TestRobotsIsShared(t *testing.T) {
	var asked atomic.Int32
	client := web(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch host, _, _ := strings.Cut(r.Host, "."); host {
		case "rules":
			io.WriteString(w, "User-agent: *\nDisallow: /private\nCrawl-delay: 2\n")
		case "gone":
			w.WriteHeader(http.StatusNotFound)
		case "down":
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	now := clock.NewManual(time.Unix(1_800_000_000, 0))
	shared := cache.NewLocal(now)
	check := func(agent, url string, want fault.Code, wantDelay time.Duration, wantAsked int32) {
		t.Helper()
		// a new fetcher has no files
		robots := newRobots(client, Config{UserAgent: agent, Clock: now, Shared: shared})
		defer robots.Close()
		before := asked.Load()
		delay, err := robots.CheckRules(t.Context(), "", url)
		if got := asked.Load() - before; fault.CodeOf(err) != want || delay != wantDelay ||
			got != wantAsked {
			t.Errorf("%s: %v, %v, asked %d times", url, delay, err, got)
		}
	}
	const rules, gone, down = "http://rules.example/private", "http://gone.example/",
		"http://down.example/"
	for fetcher := range int32(2) {
		first := 1 - fetcher
		check("Shoal", rules, fault.PageRobots, 2*time.Second, first)
		check("Shoal", gone, "", 0, first)
		check("Shoal", down, fault.PageRobots, 0, 1)
	}
	check("Other", rules, fault.PageRobots, 2*time.Second, 1)
	check("Shoal", "http://rules.example:81/private", fault.PageRobots, 2*time.Second, 1)

	shared.Set(t.Context(), "robots Shoal http://rules.example", []byte("damaged"), time.Hour)
	check("Shoal", rules, fault.PageRobots, 2*time.Second, 1)
	now.Advance(robotsTTL - time.Second)
	check("Shoal", rules, fault.PageRobots, 2*time.Second, 0)
	now.Advance(time.Second)
	check("Shoal", rules, fault.PageRobots, 2*time.Second, 1)
}

// A shared file expires when the fetcher that read it would have requested it again.
func TestSharedRobotsKeepsItsAge(t *testing.T) {
	var asked atomic.Int32
	client := web(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	now := clock.NewManual(time.Unix(1_800_000_000, 0))
	shared := cache.NewLocal(now)
	reader := reading.New("fetcher", reading.Config{})
	first, second := newRobots(client, Config{Clock: now, Shared: shared, Reader: reader}),
		newRobots(client, Config{Clock: now, Shared: shared, Reader: reader})
	defer second.Close()
	for i, step := range []struct {
		robots  *Robots
		advance time.Duration
		asked   int32
	}{{first, 0, 1}, {second, robotsTTL - time.Second, 1}, {second, time.Second, 2}} {
		now.Advance(step.advance)
		if _, err := step.robots.CheckRules(t.Context(), "", "http://a.example/"); err != nil ||
			asked.Load() != step.asked {
			t.Errorf("step %d: asked %d times, %v", i, asked.Load(), err)
		}
		first.Close() // waits until it has shared the file
	}
}

func FuzzSharedRobots(f *testing.F) {
	f.Add(sharedRobots("User-agent: *", time.Unix(1_800_000_000, 0)))
	f.Add([]byte{})
	f.Add([]byte("\x01\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, value []byte) {
		body, expires, ok := readSharedRobots(value)
		if ok && string(sharedRobots(body, expires)) != string(value) {
			t.Errorf("%q is read as %q, %v", value, body, expires)
		}
	})
}

func BenchmarkRobotsAbsent(b *testing.B) { benchmarkRobots(b, "") }

func BenchmarkRobotsShop(b *testing.B) {
	benchmarkRobots(b, "User-agent: *\n"+strings.Repeat("Disallow: /checkout/step\nDisallow: "+
		"/*?sort=\nAllow: /media/*.css$\n", 20))
}

// benchmarkRobots measures what a known robots.txt costs per page.
func benchmarkRobots(b *testing.B, body string) {
	client := web(b, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
	robots := openRobots(b, client, nil)
	for b.Loop() {
		if _, err := robots.CheckRules(b.Context(), "",
			"http://a.example/category/shoes/product-12345.html?color=blue"); err != nil {
			b.Fatal(err)
		}
	}
}
