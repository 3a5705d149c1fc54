package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/retry"
)

// How proxies are rotated and rest.
const (
	// pages of a host through one proxy before the next proxy takes over
	stickyPages     = 20
	maxSticky       = 65_536 // hosts whose proxy is remembered
	toleratedMisses = 5      // hosts in a row that a proxy may miss before it counts as broken
)

// rests are how long a proxy rests after failures in a row.
var rests = retry.Backoff{First: 10 * time.Second, Most: 10 * time.Minute}

// proxies are the proxies of tier super. A host keeps its proxy for some pages, so that connections
// are reused and a visit has one origin. The next healthy proxy takes over after these pages, or
// when the proxy fails or the site refuses it. A failed proxy rests for a while, and counts as
// healthy again after its first successful connection.
type proxies struct {
	clock clock.Clock
	all   []*exit

	mu    sync.Mutex
	turn  int
	hosts *simplelru.LRU[string, *sticky]
}

// exit is one proxy.
type exit struct {
	proxy *egress.Proxy

	mu        sync.Mutex
	failures  int // in a row
	missed    int // hosts in a row that it did not reach
	restUntil time.Time
}

func (e *exit) isResting(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Before(e.restUntil)
}

// restore resets a proxy that brought a response.
func (e *exit) restore() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures, e.missed, e.restUntil = 0, 0, time.Time{}
}

// fail makes a proxy rest. If the fault may be the host's, it rests only after missing several
// hosts in a row.
func (e *exit) fail(now time.Time, own bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !own {
		if e.missed++; e.missed < toleratedMisses {
			return
		}
	}
	e.missed = 0
	e.failures++
	e.restUntil = now.Add(rests.After(e.failures))
}

type sticky struct {
	exit *exit
	left int
}

func newProxies(ways []*egress.Proxy, clk clock.Clock) *proxies {
	p := &proxies{clock: clk, hosts: cache.NewLRU[string, *sticky](maxSticky, nil)}
	for _, proxy := range ways {
		p.all = append(p.all, &exit{proxy: proxy})
	}
	return p
}

// pick returns the host's proxy for its next request; nil when all of them rest.
func (p *proxies) pick(host string) *exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if kept, known := p.hosts.Get(host); known {
		if kept.left > 0 && !kept.exit.isResting(now) {
			kept.left--
			return kept.exit
		}
		p.hosts.Remove(host)
	}
	for range p.all {
		next := p.all[p.turn%len(p.all)]
		p.turn++
		if next.isResting(now) {
			continue
		}
		p.hosts.Add(host, &sticky{exit: next, left: stickyPages - 1})
		return next
	}
	return nil
}

// report records the result of a request through a proxy. Any response restores the proxy.
func (p *proxies) report(host string, by *exit, err error) {
	var failed *egress.ProxyError
	isProxy := errors.As(err, &failed)
	switch {
	case err == nil:
		by.restore()
		return
	case !isProxy:
		return // the fault is unclear
	case !failed.Own:
		p.leave(host, by)
	}
	by.fail(p.clock.Now(), failed.Own)
}

// leave makes the host use another proxy next time.
func (p *proxies) leave(host string, by *exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, known := p.hosts.Peek(host); known && kept.exit == by {
		p.hosts.Remove(host)
	}
}

// turnedAway drops a proxy that the site refuses. It says whether there is another one.
func (p *proxies) turnedAway(host string, by *exit) bool {
	p.leave(host, by)
	return len(p.all) > 1
}

// resting returns how many proxies rest.
func (p *proxies) resting() int {
	n := 0
	for _, e := range p.all {
		if e.isResting(p.clock.Now()) {
			n++
		}
	}
	return n
}

// errNoProxy returns the error when all proxies rest.
func errNoProxy() error {
	return fault.New(fault.PageConnect, "No proxy is in good health at the moment.")
}

// maxExits bounds the proxies that one request tries. No failed one reached the host.
const maxExits = 3

// through makes a request through the host's proxy, or through another one if that proxy itself
// fails.
func (p *proxies) through(ctx context.Context, client *egress.Client, ask *egress.Request,
	page *Page) (*egress.Response, error) {
	host := address.AuthorityOf(ask.URL)
	for tries := 1; ; tries++ {
		by := p.pick(host)
		if by == nil {
			return nil, errNoProxy()
		}
		ask.Proxy, page.exit = by.proxy, by
		response, err := client.Do(ctx, ask)
		p.report(host, by, err)
		var failed *egress.ProxyError
		if tries == maxExits || !errors.As(err, &failed) || !failed.Own || ctx.Err() != nil {
			return response, err
		}
	}
}

// countProxies returns the number of proxies, and how many of them rest.
func (t *Transport) countProxies() (all, resting int) {
	if t.proxies == nil {
		return 0, 0
	}
	return len(t.proxies.all), t.proxies.resting()
}
