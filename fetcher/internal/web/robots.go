package web

import (
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/robots"
)

// Bounds of robots.txt handling.
const (
	maxRobotsBody   = robots.MaxBody
	maxRobotsHops   = 5 // RFC 9309, 2.3.1.2
	maxRobotsHosts  = 65_536
	maxRobotsMemory = 64 << 20
	robotsTTL       = 24 * time.Hour
	robotsRetry     = 15 * time.Second
	robotsTimeout   = 15 * time.Second
)

// robotsRetries are how long failures in a row to read a host's file are remembered. All pages of
// the host share what is asked then.
var robotsRetries = retry.Backoff{First: time.Second, Most: robotsRetry}

// Robots is a bounded cache of robots.txt files, read for one user agent. It is safe for concurrent
// use; close it to end its fetches.
type Robots struct {
	client  *egress.Client
	reader  *reading.Guard
	parse   func(body, agent string) *robots.Rules
	clock   clock.Clock
	header  []egress.Field
	agent   string
	shared  cache.Values // nil: none
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	fetches, failures atomic.Uint64

	mu    sync.Mutex
	sites *cache.Sized[string, *site] // by scheme, host and port
}

// site is one robots.txt; all but the origin may be read once done is closed.
type site struct {
	origin  string
	done    chan struct{}
	rules   *robots.Rules
	err     *Failure
	expires time.Time
	// failures in a row, this one included
	failures int
}

// newRobots makes a cache. What one fetcher has read is shared with the others: a shard that moves
// does not ask its hosts again.
func newRobots(client *egress.Client, config Config) *Robots {
	config.setDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	return &Robots{
		client: client, reader: config.Reader, parse: robots.Parse, clock: config.Clock,
		header: pageHeader(config.UserAgent), agent: robots.ProductToken(config.UserAgent),
		shared: config.Shared, ctx: ctx, cancel: cancel,
		sites: cache.NewSized[string, *site](maxRobotsHosts, maxRobotsMemory),
	}
}

// Close ends the fetches under way and waits for them.
func (r *Robots) Close() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.running.Wait()
}

// KnowsRules says whether CheckRules of a canonical address would answer without a request. So the
// worker can take a permit for the request that robots.txt needs.
func (r *Robots) KnowsRules(url string) bool {
	origin, _ := splitOrigin(url)
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, known := r.sites.Peek(origin)
	return known && entry.isDone() && r.clock.Now().Before(entry.expires)
}

// CheckRules is nil when robots.txt lets us fetch a canonical address. It fetches the file where it
// is not known; callers that ask for the same file meanwhile wait for the one fetch. The delay is
// the host's Crawl-delay, at most 30 s, 0 when it sets none. The error is a *Failure
// (robots_forbidden, or the connection's own where the host could not be reached at all), or the
// context's. The caller is as in a Request; who comes first asks for all.
func (r *Robots) CheckRules(ctx context.Context, caller, url string) (delay time.Duration,
	err error) {
	origin, path := splitOrigin(url)
	entry := r.site(caller, origin)
	select {
	case <-entry.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if entry.err != nil {
		failed := *entry.err // the file's; the page is each caller's own
		failed.Final = url
		if failed.Retry {
			failed.Wait = max(0, entry.expires.Sub(r.clock.Now()))
		}
		return 0, &failed
	}
	if !entry.rules.Allow(path) {
		forbidden := refusal(fault.New(fault.PageRobots, "robots.txt forbids the page."), false)
		forbidden.Final = url
		return entry.rules.Delay, forbidden
	}
	return entry.rules.Delay, nil
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
func (r *Robots) site(caller, origin string) *site {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := &site{origin: strings.Clone(origin), done: make(chan struct{})}
	if old, known := r.sites.Get(origin); known {
		now := r.clock.Now()
		if !old.isDone() || now.Before(old.expires) {
			return old
		}
		if now.Sub(old.expires) < robotsRetry {
			entry.failures = old.failures // of longer ago they say nothing
		}
		r.sites.Remove(origin)
	}
	if r.ctx.Err() != nil {
		entry.err = refusal(fault.Wrap(fault.Unavailable, r.ctx.Err(),
			"The fetcher is stopping."), true)
		close(entry.done)
		return entry
	}
	r.sites.Add(entry.origin, entry, 0)
	r.running.Go(func() { r.load(caller, entry) })
	return entry
}

// load takes the file from the other fetchers, or fetches it.
func (r *Robots) load(caller string, entry *site) {
	body, expires, shared := r.recall(entry.origin)
	var failed *Failure
	if !shared {
		r.fetches.Add(1)
		panicked := r.reader.Run(reading.Page{URL: entry.origin + robots.Path},
			func() { body, failed = r.fetch(caller, entry.origin) })
		if panicked != nil {
			failed = unreadable(panicked)
		}
		expires = r.clock.Now().Add(robotsTTL)
	}
	var found *robots.Rules
	if failed == nil {
		found, failed = r.read(entry.origin, body)
	}
	if failed != nil {
		r.failures.Add(1)
		entry.failures++
		r.keep(entry, nil, failed, r.clock.Now().Add(entry.untilRetry(failed)))
		return
	}
	entry.failures = 0
	r.keep(entry, found, nil, expires)
	if r.shared != nil && !shared {
		r.shared.Set(r.ctx, r.sharedKey(entry.origin), sharedRobots(body, expires), robotsTTL)
	}
}

// untilRetry is how long a failure is remembered. One that may pass does so within a page's tries,
// or else is asked for ever more seldom. A site that says how long to stay away is heeded, as far
// as its answers to pages are.
func (s *site) untilRetry(failed *Failure) time.Duration {
	if !failed.Retry {
		return robotsRetry
	}
	return max(robotsRetries.After(s.failures), min(failed.RetryAfter, frontier.MaxBackoff))
}

// read makes rules of a file.
func (r *Robots) read(origin, body string) (found *robots.Rules, failed *Failure) {
	panicked := r.reader.Run(reading.Page{URL: origin + robots.Path, ContentType: "text/plain",
		Body: []byte(body)},
		func() { found = r.parse(body, r.agent) })
	if panicked != nil {
		return nil, unreadable(panicked)
	}
	return found, nil
}

// unreadable is a file whose reading panicked: what it forbids is not known.
func unreadable(panicked error) *Failure {
	return refusal(fault.Wrap(fault.PageUnparsable, panicked, "robots.txt cannot be read."), false)
}

// recall is what another fetcher has read, and when that is to be read again.
func (r *Robots) recall(origin string) (body string, expires time.Time, ok bool) {
	if r.shared == nil {
		return "", time.Time{}, false
	}
	value, found := r.shared.Get(r.ctx, r.sharedKey(origin))
	if !found {
		return "", time.Time{}, false
	}
	body, expires, ok = readSharedRobots(value)
	now := r.clock.Now()
	return body, expires, ok && now.Before(expires) && !expires.After(now.Add(robotsTTL))
}

// sharedKey has the agent in it: a site may answer each with a file of its own.
func (r *Robots) sharedKey(origin string) string { return "robots " + r.agent + " " + origin }

// sharedFormat begins a shared file; another one is not read.
const sharedFormat = 1

// sharedRobots is a file as it is shared. It holds the format, when it is to be read again (Unix
// seconds, 8 bytes, the highest first), and the body.
func sharedRobots(body string, expires time.Time) []byte {
	value := make([]byte, 0, 1+8+len(body))
	value = append(value, sharedFormat)
	value = binary.BigEndian.AppendUint64(value, uint64(expires.Unix()))
	return append(value, body...)
}

// readSharedRobots is false for what sharedRobots did not write.
func readSharedRobots(value []byte) (body string, expires time.Time, ok bool) {
	if len(value) < 1+8 || value[0] != sharedFormat || len(value) > 1+8+maxRobotsBody {
		return "", time.Time{}, false
	}
	return string(value[1+8:]), time.Unix(int64(binary.BigEndian.Uint64(value[1:])), 0), true
}

// keep completes an entry, and makes room for it.
func (r *Robots) keep(entry *site, found *robots.Rules, err *Failure, expires time.Time) {
	entry.rules, entry.err, entry.expires = found, err, expires
	close(entry.done)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sites.Resize(entry.origin, entry, found.Size)
}

// fetch reads the file as RFC 9309 says: a 4xx allows everything, as an empty file does, a 5xx
// nothing until it can be read.
func (r *Robots) fetch(caller, origin string) (body string, _ *Failure) {
	ask := egress.Request{
		URL: origin + robots.Path, Caller: caller, Header: r.header,
		Deadline: time.Now().Add(robotsTimeout), MaxBody: maxRobotsBody, Truncate: true,
	}
	for hop := 0; ; hop++ {
		response, err := r.client.Do(r.ctx, &ask)
		if err != nil {
			return "", unreachable(err)
		}
		status, location := response.Status, response.Header("Location")
		switch {
		case status >= 200 && status <= 299:
			body := string(response.Body)
			response.Release()
			return body, nil
		case status >= 500 || status == 429:
			failed := refusal(fault.New(fault.PageRobots,
				"robots.txt answered with status %d.", status), true)
			failed.RetryAfter = retryAfter(response.Header("Retry-After"), r.clock.Now())
			response.Release()
			return "", failed
		}
		response.Release()
		if !isRedirect(status) || location == "" || hop == maxRobotsHops {
			return "", nil
		}
		if ask.URL, err = address.Resolve(ask.URL, location); err != nil {
			return "", nil //nolint:nilerr // it leads nowhere: no rules to obey (RFC 9309)
		}
	}
}

// unreachable is the connection's own failure: a dead host is dead, not forbidden by its
// robots.txt. A file that is there and cannot be decoded says nothing, as one with a 5xx.
func unreachable(err error) *Failure {
	coded := fault.Wrap(fault.Unavailable, err, "robots.txt was not read.")
	switch code := fault.CodeOf(err); code {
	case fault.PageProtocol, fault.PageDecompression, fault.PageTooLarge:
		coded = fault.Wrap(fault.PageRobots, err, "robots.txt cannot be read.")
	case fault.PageDNS, fault.PageConnect, fault.PageTLS, fault.PageTimeout,
		fault.PageAddressForbidden, fault.PageInvalidURL:
		coded = fault.Wrap(code, err, "The host cannot be reached.")
	}
	ours := coded.Code == fault.PageRobots || coded.Code == fault.Unavailable
	return refusal(coded, ours || retryable(err))
}

// refusal is why a page may not be fetched. Another try makes sense where the file could not be
// read, rather than that it forbids the page.
func refusal(cause *fault.Error, retry bool) *Failure {
	return &Failure{Code: pageCode(cause.Code), Retry: retry, Cause: cause}
}

// countFiles is the number of files in the cache.
func (r *Robots) countFiles() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sites.Len()
}
