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

// How proxies take turns and rest.
const (
	// pages of a host through one proxy, before the next one has its turn
	stickyPages     = 20
	maxSticky       = 65_536 // hosts whose proxy is remembered
	toleratedMisses = 5      // hosts in a row that a proxy did not reach, before it is at fault
)

// rests are how long a proxy rests after failures in a row.
var rests = retry.Backoff{First: 10 * time.Second, Most: 10 * time.Minute}

// proxies are the ways out of tier super. A host keeps its proxy for some pages, so that
// connections are used again and a visit looks like one. After these pages, or when the proxy
// fails or the site turns it away, the next one in good health takes over. A proxy that fails rests
// for a while, and is well again with the first connection that it makes.
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

// restore is for a proxy that brought an answer.
func (e *exit) restore() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures, e.missed, e.restUntil = 0, 0, time.Time{}
}

// fail lets a proxy rest. One that is not at fault itself does so when it has not reached several
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

// pick is the host's proxy for its next request; nil when all of them rest.
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

// report says how a request through a proxy went: an answer, whatever it says, is the proxy's
// recovery.
func (p *proxies) report(host string, by *exit, err error) {
	var failed *egress.ProxyError
	isProxy := errors.As(err, &failed)
	switch {
	case err == nil:
		by.restore()
		return
	case !isProxy:
		return // nobody knows whose fault it is
	case !failed.Own:
		p.leave(host, by)
	}
	by.fail(p.clock.Now(), failed.Own)
}

// leave makes the host take another proxy the next time.
func (p *proxies) leave(host string, by *exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, known := p.hosts.Peek(host); known && kept.exit == by {
		p.hosts.Remove(host)
	}
}

// turnedAway is for a proxy that the site does not let through. It says whether there is another
// one.
func (p *proxies) turnedAway(host string, by *exit) bool {
	p.leave(host, by)
	return len(p.all) > 1
}

// resting counts the proxies that are.
func (p *proxies) resting() int {
	n := 0
	for _, e := range p.all {
		if e.isResting(p.clock.Now()) {
			n++
		}
	}
	return n
}

// errNoProxy says that all proxies rest.
func errNoProxy() error {
	return fault.New(fault.PageConnect, "No proxy is in good health at the moment.")
}

// maxExits bounds the proxies that one request tries. None of those that failed reached the host.
const maxExits = 3

// through makes an exchange by way of a proxy of the host's, or of another one when that fails by
// itself.
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

// countProxies is how many proxies of tier super there are, and how many of them rest.
func (t *Transport) countProxies() (all, resting int) {
	if t.proxies == nil {
		return 0, 0
	}
	return len(t.proxies.all), t.proxies.resting()
}
