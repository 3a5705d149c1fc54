package harvest

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/apiserver/internal/sitemap"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/robots"
)

// Manners.
const (
	userAgent     = "Shoal" // as pages are asked for
	maxPaces      = 10_000  // hosts whose last request is remembered
	maxHops       = 5
	triesOfFile   = 3
	retryAfter    = 3 * time.Second // after the first try, then twice as long
	maxRetryAfter = 30 * time.Second
	fileTime      = 5 * time.Minute // for a file of 50 MB
	robotsTime    = 15 * time.Second
)

// web asks hosts, each as often as it may be asked, for all harvests of this process.
type web struct {
	sender Sender
	clock  clock.Clock
	pace   time.Duration // between two requests to a host

	mu   sync.Mutex
	next map[string]time.Time // when an authority may be asked again
}

func newWeb(config *Config) *web {
	return &web{sender: config.Sender, clock: config.Clock, next: map[string]time.Time{},
		pace: time.Duration(float64(time.Second) / config.HostRate)}
}

// await waits for a host's turn.
func (w *web) await(ctx context.Context, url string, delay time.Duration) error {
	turn := w.takeTurn(address.AuthorityOf(url), max(delay, w.pace))
	if turn <= 0 {
		return ctx.Err()
	}
	return w.wait(ctx, turn)
}

func (w *web) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-w.clock.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeTurn is how long it is to a host's next turn, which is taken.
func (w *web) takeTurn(authority string, delay time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if len(w.next) >= maxPaces {
		for known, at := range w.next {
			if !at.After(now) {
				delete(w.next, known)
			}
		}
	}
	at := w.next[authority]
	if at.Before(now) {
		at = now
	}
	w.next[authority] = at.Add(delay)
	return at.Sub(now)
}

// answer is what a host said.
type answer struct {
	status int
	body   []byte // of at most what was asked for; nil where take has read it
	final  string // canonical, where redirects led
	// retry says that another try may end otherwise, after so long.
	retry bool
	after time.Duration
	err   error // of the connection; a *fault.Error
}

// ask makes a request, and follows redirects. before is asked before each of them, with its
// canonical address; its error ends the asking. The error is that, or the context's.
func (w *web) ask(ctx context.Context, ask egress.Request, within time.Duration,
	before func(ctx context.Context, url string) error) (answer, error) {
	ask.Header = []egress.Field{{Name: "User-Agent", Value: userAgent},
		{Name: "Accept", Value: "application/xml,text/xml,application/rss+xml,text/plain,*/*;q=0.5"}}
	ask.Truncate = true
	for hop := 0; ; hop++ {
		if err := before(ctx, ask.URL); err != nil {
			return answer{}, err
		}
		ask.Deadline = time.Now().Add(within) // its turn may have been long in coming
		response, err := w.sender.Do(ctx, &ask)
		if err != nil {
			if ctx.Err() != nil {
				return answer{}, ctx.Err()
			}
			return answer{final: ask.URL, err: err, retry: mayPass(err)}, nil
		}
		a := answer{status: response.Status, final: ask.URL,
			retry: response.Status >= 500 || response.Status == 429,
			after: restOf(response.Header("Retry-After"))}
		if ask.Take == nil {
			a.body = append([]byte(nil), response.Body...)
		}
		location := response.Header("Location")
		response.Release()
		if !isRedirect(a.status) || location == "" || hop == maxHops {
			return a, nil
		}
		if ask.URL, err = address.Resolve(ask.URL, location); err != nil {
			return a, nil //nolint:nilerr // it leads nowhere: it is not there
		}
	}
}

// mayPass says whether a failure of the way out may be another one next time.
func mayPass(err error) bool {
	switch fault.CodeOf(err) {
	case fault.PageAddressForbidden, fault.PageInvalidURL, fault.PageTLS, fault.PageTooLarge:
		return false
	}
	return true
}

// restOf reads Retry-After in seconds, within bounds; 0: it says nothing that is read here.
func restOf(text string) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || seconds <= 0 {
		return 0
	}
	return time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
}

func isRedirect(status int) bool {
	switch status {
	case 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// insist asks again where that may help.
func (w *web) insist(ctx context.Context, ask func() (answer, error)) (a answer, err error) {
	rest := retryAfter
	for n := 1; ; n++ {
		if a, err = ask(); err != nil || !a.retry || n == triesOfFile {
			return a, err
		}
		if err := w.wait(ctx, max(rest, a.after)); err != nil {
			return a, err
		}
		rest *= 2
	}
}

// rules asks for the robots.txt of a site, by the address of any of its pages. Its rules are nil
// when it cannot be read: then nothing of the site may be asked for.
func (w *web) rules(ctx context.Context, url string) (*robots.Rules, answer, error) {
	at, err := address.Resolve(url, robots.Path)
	if err != nil {
		return nil, answer{final: url, err: err}, nil //nolint:nilerr // of an address that was read
	}
	a, err := w.insist(ctx, func() (answer, error) {
		return w.ask(ctx, egress.Request{URL: at, MaxBody: robots.MaxBody}, robotsTime,
			func(ctx context.Context, url string) error { return w.await(ctx, url, 0) })
	})
	switch {
	case err != nil || a.err != nil || a.retry:
		return nil, a, err
	case a.status > 299:
		return robots.Parse("", userAgent), a, nil
	}
	return robots.Parse(string(a.body), userAgent), a, nil
}

// errForbidden says that robots.txt forbids a file.
var errForbidden = errors.New("robots.txt forbids it")

// file asks for a sitemap, and has its entries visited. Those of a try that breaks off are visited
// again with the next one.
func (w *web) file(ctx context.Context, url string,
	before func(ctx context.Context, url string) error,
	visit func(final string, e sitemap.Entry) bool) (a answer, broken error, err error) {
	a, err = w.insist(ctx, func() (answer, error) {
		final := url
		ask := egress.Request{URL: url, MaxBody: sitemap.MaxBytes}
		ask.Take = func(contentType string, body io.Reader) {
			_, broken = sitemap.Read(body, contentType,
				func(e sitemap.Entry) bool { return visit(final, e) })
		}
		broken = nil
		return w.ask(ctx, ask, fileTime, func(ctx context.Context, url string) error {
			final = url
			return before(ctx, url)
		})
	})
	return a, broken, err
}
