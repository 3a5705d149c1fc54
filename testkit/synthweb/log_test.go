package synthweb_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/testkit/synthweb"
)

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func itoa(n int) string { return strconv.Itoa(n) }

// waitingClock signals when a handler begins to wait.
type waitingClock struct {
	*clock.Manual
	waiting chan time.Duration
}

func (c waitingClock) After(d time.Duration) <-chan time.Time {
	fired := c.Manual.After(d)
	c.waiting <- d
	return fired
}

func TestRecountOfPoliteness(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	now := clock.NewManual(begin)
	web := start(t, synthweb.Config{Clock: now})
	client := newClient(t, web)
	for _, step := range []struct {
		after   time.Duration
		address string
	}{
		{0, "http://shop-00000.example/robots.txt"},
		{time.Second, "http://shop-00000.example/product/1"},
		{time.Second, "http://shop-00001.example/product/1"},
		{2 * time.Second, "http://shop-00000.example/product/2"},
		{time.Second, "http://shop-00000.example/robots.txt"},
		{time.Second, "http://shop-00000.example/product/1?page=1"},
		// half the span of the last three is 1.25 s
		{time.Second / 2, "http://shop-00000.example/product/3"},
	} {
		now.Advance(step.after)
		client.mustGet(t, step.address)
	}
	recount, err := web.Recount()
	if err != nil {
		t.Fatal(err)
	}
	want := synthweb.HostCount{Requests: 4, RobotsRequests: 2, MaxInFlight: 1, MaxConnections: 1,
		MinGap: 1250 * time.Millisecond, MaxClients: 1}
	if got := recount.Hosts["shop-00000.example"]; got != want {
		t.Errorf("first site: %+v, want %+v", got, want)
	}
	if got := recount.Hosts["shop-00001.example"].MinGap; got != -1 {
		t.Errorf("second site: gap %v of a single request", got)
	}
	got := recount.URLs["http://shop-00000.example/product/1"]
	if got.Requests != 2 || !got.First.Equal(begin.Add(time.Second)) ||
		!got.Last.Equal(begin.Add(6*time.Second)) ||
		got.LastStatus != 200 {
		t.Errorf("first page: %+v", got)
	}
}

func TestRecountOfConcurrency(t *testing.T) {
	now := waitingClock{clock.NewManual(time.Unix(1_800_000_000, 0)), make(chan time.Duration)}
	web := start(t, synthweb.Config{Clock: now, Hosts: 10, SlowHosts: 5,
		SlowLatency: 10 * time.Second})
	client := newClient(t, web)
	var slow, quick string
	for address := range web.URLs(10) {
		truth, err := web.Truth(address)
		if err != nil {
			t.Fatal(err)
		}
		if truth.Slow {
			slow = address
		} else {
			quick = address
		}
	}
	client.mustGet(t, quick)
	var done sync.WaitGroup
	for range 3 {
		done.Go(func() { client.mustGet(t, slow) })
		if d := <-now.waiting; d != 10*time.Second {
			t.Errorf("waits %v", d)
		}
	}
	recount, err := web.Recount()
	if err != nil {
		t.Fatal(err)
	}
	if host := recount.Hosts[hostOf(t, slow)]; recount.Open != 3 || host.MaxConnections != 3 ||
		host.MaxInFlight != 3 {
		t.Errorf("%d open, want 3; the site: %+v", recount.Open, host)
	}
	if host := recount.Hosts[hostOf(t, quick)]; host.MaxConnections != 1 {
		t.Errorf("%d connections to the quick site, want 1", host.MaxConnections)
	}
	now.Advance(10 * time.Second)
	done.Wait()
	inflight := 0
	for r := range web.Requests() {
		inflight = max(inflight, r.InFlight)
		if took := r.End.Sub(r.Start); took != 0 && took != 10*time.Second {
			t.Errorf("%s%s took %v", r.Host, r.Path, took)
		}
	}
	if inflight != 3 {
		t.Errorf("%d in flight at once, want 3", inflight)
	}
}

func TestAFullLogRefusesTheRecount(t *testing.T) {
	web := start(t, synthweb.Config{LogLimit: 2})
	client := newClient(t, web)
	for address := range web.URLs(3) {
		client.mustGet(t, address)
	}
	if _, err := web.Recount(); err == nil {
		t.Error("a recount of a log that is not whole")
	}
	stats, err := web.Stats()
	if err != nil || stats.Requests != 3 || stats.Unlogged != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	web := start(t, synthweb.Config{Hosts: 1, PagesPerHost: 3})
	client := newClient(t, web)
	for address := range web.URLs(3) {
		client.mustGet(t, address)
	}
	client.transport.CloseIdleConnections()
	client.mustGet(t, "http://shop-00000.example/")
	var conns []uint64
	for r := range web.Requests() {
		conns = append(conns, r.Conn)
	}
	if len(conns) != 4 || conns[0] != conns[1] || conns[1] != conns[2] || conns[2] == conns[3] {
		t.Errorf("connections %v: want three requests on one and one on another", conns)
	}
}

func TestUnknownPathsAreLoggedAsAsked(t *testing.T) {
	web := start(t, synthweb.Config{})
	newClient(t, web).mustGet(t, "http://shop-00000.example/no/such?page=1&x")
	for r := range web.Requests() {
		if r.Path != "/no/such?page=1&x" || r.Status != 404 || r.Host != "shop-00000.example" {
			t.Errorf("%+v", r)
		}
	}
}

// TestRecountOfClients requests one site from two addresses, one after the other and at once.
func TestRecountOfClients(t *testing.T) {
	now := waitingClock{clock.NewManual(time.Unix(1_800_000_000, 0)), make(chan time.Duration)}
	web := start(t, synthweb.Config{Clock: now, Hosts: 2, MinLatency: time.Second,
		MaxLatency: time.Second})
	first, second := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	var asked sync.WaitGroup
	ask := func(from netip.Addr, address string) {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "tcp", web.Addr())
			}}}
		asked.Go(func() {
			answer, err := client.Get(address)
			if err != nil {
				t.Error(err)
				return
			}
			answer.Body.Close()
		})
		<-now.waiting
	}
	const apart, together = "http://shop-00000.example/product/1",
		"http://shop-00001.example/product/1"
	for _, from := range []netip.Addr{second, first} {
		ask(from, apart)
		now.Advance(time.Second)
		asked.Wait()
	}
	ask(first, together)
	ask(second, together)
	now.Advance(time.Second)
	asked.Wait()
	recount, err := web.Recount()
	if err != nil {
		t.Fatal(err)
	}
	if got := recount.URLs[apart].From; !slices.Equal(got, []netip.Addr{second, first}) {
		t.Errorf("asked from %v", got)
	}
	if one, two := recount.Hosts["shop-00000.example"],
		recount.Hosts["shop-00001.example"]; one.MaxClients != 1 ||
		two.MaxClients != 2 {
		t.Errorf("clients at once: %d of one after the other, %d of two at once", one.MaxClients,
			two.MaxClients)
	} else if one.MinGap != time.Second || two.MinGap != 0 {
		t.Errorf("gaps of %v and %v", one.MinGap, two.MinGap)
	}
}
