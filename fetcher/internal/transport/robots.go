package transport

import (
	"container/list"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds of robots.txt handling.
const (
	maxRobotsBody   = 500 << 10 // RFC 9309, 2.5: what must be read at least
	maxRobotsHops   = 5         // RFC 9309, 2.3.1.2
	maxRobotsHosts  = 65_536
	maxRobotsMemory = 64 << 20
	robotsTTL       = 24 * time.Hour
	robotsRetry     = 15 * time.Second // how long a failure to read the file is remembered
	robotsTimeout   = 15 * time.Second
	maxCrawlDelay   = 30 * time.Second
)

// RobotsError says that robots.txt does not let us fetch a page. It unwraps to a *fault.Error: robots_forbidden, or the
// connection's own failure where the host could not be reached at all.
type RobotsError struct {
	Fault *fault.Error
	// Retry says that the file could not be read, rather than that it forbids the page.
	Retry bool
}

func (e *RobotsError) Error() string { return e.Fault.Error() }

// Unwrap is the coded error.
func (e *RobotsError) Unwrap() error { return e.Fault }

// Robots is a bounded cache of robots.txt files, read for one user agent. It is safe for concurrent use; close it to
// end its fetches.
type Robots struct {
	client  *egress.Client
	clock   clock.Clock
	header  []egress.Field
	agent   string
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	fetches, failures atomic.Uint64

	mu     sync.Mutex
	sites  map[string]*list.Element // by scheme, host and port
	recent *list.List               // of *site, the last used first
	memory int
}

// site is one robots.txt; all but the origin and the size may be read once done is closed.
type site struct {
	origin  string
	done    chan struct{}
	rules   *rules
	err     *RobotsError
	expires time.Time
	size    int // in the cache's memory, under its lock
}

// NewRobots makes a cache. The user agent's first word is the name that rules are read for; "" means the default.
func NewRobots(client *egress.Client, userAgent string, clk clock.Clock) *Robots {
	if userAgent == "" {
		userAgent = DefaultUserAgent
	}
	if clk == nil {
		clk = clock.System{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Robots{
		client: client, clock: clk, header: pageHeader(userAgent), agent: productToken(userAgent),
		ctx: ctx, cancel: cancel, sites: make(map[string]*list.Element), recent: list.New(),
	}
}

// Close ends the fetches under way and waits for them.
func (r *Robots) Close() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.running.Wait()
}

// Known says whether Check of a canonical address would answer without a request, so that the worker can take a permit
// for the one that robots.txt needs.
func (r *Robots) Known(url string) bool {
	origin, _ := splitOrigin(url)
	r.mu.Lock()
	defer r.mu.Unlock()
	element := r.sites[origin]
	if element == nil {
		return false
	}
	entry := element.Value.(*site)
	return entry.isDone() && r.clock.Now().Before(entry.expires)
}

// Check is nil when robots.txt lets us fetch a canonical address. It fetches the file where it is not known; callers
// that ask for the same file meanwhile wait for the one fetch. The delay is the host's Crawl-delay, at most 30 s, 0
// when it sets none. The error is a *RobotsError, or the context's.
func (r *Robots) Check(ctx context.Context, url string) (delay time.Duration, err error) {
	origin, path := splitOrigin(url)
	entry := r.site(origin)
	select {
	case <-entry.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if entry.err != nil {
		return 0, entry.err
	}
	if !entry.rules.allow(path) {
		return entry.rules.delay, &RobotsError{Fault: fault.New(fault.PageRobots, "robots.txt forbids the page.")}
	}
	return entry.rules.delay, nil
}

// splitOrigin cuts a canonical address before its path.
func splitOrigin(url string) (origin, path string) {
	start := strings.Index(url, "://") + len("://")
	if slash := strings.IndexByte(url[start:], '/'); slash >= 0 {
		return url[:start+slash], url[start+slash:]
	}
	return url, "/"
}

func (s *site) isDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// site is the entry of an origin; a new one is being fetched.
func (r *Robots) site(origin string) *site {
	r.mu.Lock()
	defer r.mu.Unlock()
	if element := r.sites[origin]; element != nil {
		entry := element.Value.(*site)
		if !entry.isDone() || r.clock.Now().Before(entry.expires) {
			r.recent.MoveToFront(element)
			return entry
		}
		r.drop(element)
	}
	entry := &site{origin: strings.Clone(origin), done: make(chan struct{})}
	if r.ctx.Err() != nil {
		entry.err = &RobotsError{Fault: fault.Wrap(fault.Unavailable, r.ctx.Err(), "The fetcher is stopping."), Retry: true}
		close(entry.done)
		return entry
	}
	r.sites[entry.origin] = r.recent.PushFront(entry)
	for len(r.sites) > maxRobotsHosts {
		r.drop(r.recent.Back())
	}
	r.running.Go(func() { r.load(entry) })
	return entry
}

// drop forgets an entry. The lock is held.
func (r *Robots) drop(element *list.Element) {
	entry := r.recent.Remove(element).(*site)
	delete(r.sites, entry.origin)
	r.memory -= entry.size
	entry.size = 0
}

// load fetches the file.
func (r *Robots) load(entry *site) {
	r.fetches.Add(1)
	found, err := r.fetch(entry.origin)
	if err != nil {
		r.failures.Add(1)
	}
	r.keep(entry, found, err)
}

// keep completes an entry, and makes room for it.
func (r *Robots) keep(entry *site, found *rules, err *RobotsError) {
	ttl := robotsTTL
	if err != nil {
		ttl = robotsRetry
	}
	entry.rules, entry.err, entry.expires = found, err, r.clock.Now().Add(ttl)
	close(entry.done)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if element := r.sites[entry.origin]; element == nil || element.Value != entry {
		return // dropped meanwhile
	}
	entry.size = found.size
	r.memory += entry.size
	for r.memory > maxRobotsMemory && r.recent.Len() > 1 {
		r.drop(r.recent.Back())
	}
}

// fetch reads the file as RFC 9309 says: a 4xx allows everything, a 5xx nothing until it can be read.
func (r *Robots) fetch(origin string) (*rules, *RobotsError) {
	ask := egress.Request{
		URL: origin + "/robots.txt", Header: r.header, Deadline: time.Now().Add(robotsTimeout),
		MaxBody: maxRobotsBody, Truncate: true,
	}
	for hop := 0; ; hop++ {
		response, err := r.client.Do(r.ctx, &ask)
		if err != nil {
			return nil, unreachable(err)
		}
		status, location := response.Status, response.Header("Location")
		switch {
		case status >= 200 && status <= 299:
			found := parseRules(string(response.Body), r.agent)
			response.Release()
			return found, nil
		case status >= 500 || status == 429:
			response.Release()
			failed := fault.New(fault.PageRobots, "robots.txt answered with status %d.", status)
			return nil, &RobotsError{Fault: failed, Retry: true}
		}
		response.Release()
		if !isRedirect(status) || location == "" || hop == maxRobotsHops {
			return allowAll, nil
		}
		if ask.URL, err = egress.Resolve(ask.URL, location); err != nil {
			return allowAll, nil //nolint:nilerr // a redirect that leads nowhere leaves no rules to obey (RFC 9309)
		}
	}
}

// unreachable is the connection's own failure: a dead host is dead, not forbidden by its robots.txt. A file that is
// there and cannot be decoded says nothing, as one with a 5xx.
func unreachable(err error) *RobotsError {
	coded := fault.Wrap(fault.Unavailable, err, "robots.txt was not read.")
	switch code := fault.CodeOf(err); code {
	case fault.PageProtocol, fault.PageDecompression, fault.PageTooLarge:
		coded = fault.Wrap(fault.PageRobots, err, "robots.txt cannot be read.")
	case fault.PageDNS, fault.PageConnect, fault.PageTLS, fault.PageTimeout,
		fault.PageAddressForbidden, fault.PageInvalidURL:
		coded = fault.Wrap(code, err, "The host cannot be reached.")
	}
	ours := coded.Code == fault.PageRobots || coded.Code == fault.Unavailable
	return &RobotsError{Fault: coded, Retry: ours || retryable(err)}
}
