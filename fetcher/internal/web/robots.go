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

// robotsRetries are how long a failure to read a host's file is cached, by failures in a row. All
// pages of the host share the next request.
var robotsRetries = retry.Backoff{First: time.Second, Most: robotsRetry}

// Robots is a bounded cache of robots.txt files for one user agent. It is safe for concurrent use.
// Close ends its fetches.
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
	sites *cache.Sized[string, *site] // by origin: scheme, host and port
}

// site is one robots.txt. Except origin and caller, its fields may be read once done is closed.
type site struct {
	origin  string
	caller  string // who asked first; the request is in their name
	done    chan struct{}
	rules   *robots.Rules
	err     *Failure
	expires time.Time
	// failures in a row, including this one
	failures int
}

// newRobots makes a cache. Fetchers share the files that they have read, so a moved shard does not
// ask its hosts again.
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

// KnowsRules says whether CheckRules would answer for a canonical address without a request. So the
// worker can take a permit for the request if one is needed.
func (r *Robots) KnowsRules(url string) bool {
	origin, _ := splitOrigin(url)
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, known := r.sites.Peek(origin)
	return known && entry.isDone() && r.clock.Now().Before(entry.expires)
}

// CheckRules returns nil if robots.txt allows a canonical address. It fetches an unknown file once
// for all concurrent callers. delay is the host's Crawl-delay, at most 30 s, or 0. The error is the
// context's or a *Failure: robots_forbidden, or the connection's error if the host could not be
// reached. caller is as in Request; the first caller's is used.
func (r *Robots) CheckRules(ctx context.Context, caller, url string) (delay time.Duration,
	err error) {
	origin, path := splitOrigin(url)
	entry := r.site(caller, origin)
	if entry.caller != caller && !entry.isDone() {
		// The name may wait behind others of that caller. This look-up ends the wait for both.
		_ = r.client.CheckHost(ctx, caller, address.HostOf(url))
	}
	select {
	case <-entry.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if entry.err != nil {
		failed := *entry.err // the failure is the file's; the page differs by caller
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

// splitOrigin splits a canonical address before its path.
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

// site returns the entry of an origin, and starts fetching a new one.
func (r *Robots) site(caller, origin string) *site {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := &site{origin: strings.Clone(origin), caller: strings.Clone(caller),
		done: make(chan struct{})}
	if old, known := r.sites.Get(origin); known {
		now := r.clock.Now()
		if !old.isDone() || now.Before(old.expires) {
			return old
		}
		if now.Sub(old.expires) < robotsRetry {
			entry.failures = old.failures // older failures do not count
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
	r.running.Go(func() { r.load(entry) })
	return entry
}

// load takes the file from the shared cache, or fetches it.
func (r *Robots) load(entry *site) {
	body, expires, shared := r.recall(entry.origin)
	var failed *Failure
	if !shared {
		r.fetches.Add(1)
		panicked := r.reader.Run(reading.Page{URL: entry.origin + robots.Path},
			func() { body, failed = r.fetch(entry.caller, entry.origin) })
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

// untilRetry returns how long a failure is cached. A temporary failure is retried within a page's
// tries, and later ever more rarely. A site's Retry-After is obeyed, up to the same bound as for
// pages.
func (s *site) untilRetry(failed *Failure) time.Duration {
	if !failed.Retry {
		return robotsRetry
	}
	return max(robotsRetries.After(s.failures), min(failed.RetryAfter, frontier.MaxBackoff))
}

// read parses a file.
func (r *Robots) read(origin, body string) (found *robots.Rules, failed *Failure) {
	panicked := r.reader.Run(reading.Page{URL: origin + robots.Path, ContentType: "text/plain",
		Body: []byte(body)},
		func() { found = r.parse(body, r.agent) })
	if panicked != nil {
		return nil, unreadable(panicked)
	}
	return found, nil
}

// unreadable returns the failure of a file whose reading panicked: its rules are unknown.
func unreadable(panicked error) *Failure {
	return refusal(fault.Wrap(fault.PageUnparsable, panicked, "robots.txt cannot be read."), false)
}

// recall returns a file that another fetcher has read, and its expiry.
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

// sharedKey includes the agent, because a site may give each agent its own file.
func (r *Robots) sharedKey(origin string) string { return "robots " + r.agent + " " + origin }

// sharedFormat is the first byte of a shared file. Files with another one are ignored.
const sharedFormat = 1

// sharedRobots encodes a file for sharing: format, expiry (Unix seconds, 8 bytes, big-endian),
// body.
func sharedRobots(body string, expires time.Time) []byte {
	value := make([]byte, 0, 1+8+len(body))
	value = append(value, sharedFormat)
	value = binary.BigEndian.AppendUint64(value, uint64(expires.Unix()))
	return append(value, body...)
}

// readSharedRobots decodes it; false if sharedRobots did not write it.
func readSharedRobots(value []byte) (body string, expires time.Time, ok bool) {
	if len(value) < 1+8 || value[0] != sharedFormat || len(value) > 1+8+maxRobotsBody {
		return "", time.Time{}, false
	}
	return string(value[1+8:]), time.Unix(int64(binary.BigEndian.Uint64(value[1:])), 0), true
}

// keep completes an entry and accounts for its size.
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

// fetch reads the file by RFC 9309: a 4xx allows everything, like an empty file; a 5xx allows
// nothing until the file can be read.
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
		status, location := response.Status, response.Redirect()
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
		if location == "" || hop == maxRobotsHops {
			return "", nil
		}
		if ask.URL, err = address.Resolve(ask.URL, location); err != nil {
			return "", nil //nolint:nilerr // an invalid redirect: no rules (RFC 9309)
		}
	}
}

// unreachable returns the failure of an unread file. A dead host keeps its own error, since
// robots.txt does not forbid it. A file that cannot be decoded counts like a 5xx.
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

// refusal returns why a page may not be fetched. retry is set if the file could not be read, and
// not if it forbids the page.
func refusal(cause *fault.Error, retry bool) *Failure {
	return &Failure{Code: pageCode(cause.Code), Retry: retry, Cause: cause}
}

// countFiles returns the number of cached files.
func (r *Robots) countFiles() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sites.Len()
}
