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
	guards "shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/robots"
)

// How politely hosts are asked.
const (
	userAgent     = "Shoal" // the same as for pages
	maxPaces      = 10_000  // hosts whose last request is remembered
	maxHops       = 5
	triesOfFile   = 3
	maxRetryAfter = 30 * time.Second
	fileTime      = 5 * time.Minute // for a file of 50 MB
	robotsTime    = 15 * time.Second
)

// tryAgain is the wait before another try at a file.
var tryAgain = retry.Backoff{First: 3 * time.Second, Most: maxRetryAfter}

// web sends requests to hosts at their pace, for all harvests of this process.
type web struct {
	sender Sender
	reader *guards.Guard
	clock  clock.Clock
	pace   time.Duration // between two requests to a host

	mu   sync.Mutex
	next map[string]time.Time // when an authority may be asked again
}

func newWeb(config *Config) *web {
	return &web{sender: config.Sender, reader: config.Reader, clock: config.Clock,
		next: map[string]time.Time{},
		pace: time.Duration(float64(time.Second) / config.HostRate)}
}

// await waits for a host's turn.
func (w *web) await(ctx context.Context, url string, delay time.Duration) error {
	turn := w.takeTurn(address.AuthorityOf(url), max(delay, w.pace))
	if turn > 0 {
		clock.Pause(ctx, w.clock, turn)
	}
	return ctx.Err()
}

// takeTurn takes a host's next turn, and returns how long to wait for it.
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

// answer is a host's answer.
type answer struct {
	status int
	body   []byte // at most the size requested; nil if Take has read it
	final  string // canonical; where redirects led
	// retry says that another try, not before after, may succeed.
	retry bool
	after time.Duration
	err   error // of the connection; a *fault.Error
}

// ask sends a request and follows redirects. It calls before ahead of each request, with its
// canonical address, and fails with its error. Its other errors are the context's.
func (w *web) ask(ctx context.Context, ask egress.Request, within time.Duration,
	before func(ctx context.Context, url string) error) (answer, error) {
	ask.Header = []egress.Field{{Name: "User-Agent", Value: userAgent},
		{Name: "Accept", Value: "application/xml,text/xml,application/rss+xml,text/plain,*/*;q=0.5"}}
	ask.Truncate = true
	for hop := 0; ; hop++ {
		if err := before(ctx, ask.URL); err != nil {
			return answer{}, err
		}
		ask.Deadline = time.Now().Add(within) // waiting for the turn may have taken long
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
		location := response.Redirect()
		response.Release()
		if location == "" || hop == maxHops {
			return a, nil
		}
		if ask.URL, err = address.Resolve(ask.URL, location); err != nil {
			return a, nil //nolint:nilerr // it leads nowhere: it is not there
		}
	}
}

// mayPass says whether a failed connection may succeed next time.
func mayPass(err error) bool {
	switch fault.CodeOf(err) {
	case fault.PageAddressForbidden, fault.PageInvalidURL, fault.PageTLS, fault.PageTooLarge:
		return false
	}
	return true
}

// restOf reads Retry-After in seconds, within bounds; 0: absent or in another form.
func restOf(text string) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || seconds <= 0 {
		return 0
	}
	return time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
}

// insist repeats a request if that may help.
func (w *web) insist(ctx context.Context, ask func() (answer, error)) (a answer, err error) {
	for n := 1; ; n++ {
		if a, err = ask(); err != nil || !a.retry || n == triesOfFile {
			return a, err
		}
		if !clock.Pause(ctx, w.clock, max(tryAgain.After(n), a.after)) {
			return a, ctx.Err()
		}
	}
}

// rules requests the robots.txt of a site, given the address of any of its pages. The rules are nil
// if it cannot be read; then nothing of the site may be requested.
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

// file requests a sitemap and visits its entries. If a try breaks off, the next one visits its
// entries again.
func (w *web) file(ctx context.Context, url string,
	before func(ctx context.Context, url string) error,
	visit func(final string, e sitemap.Entry) bool) (a answer, broken error, err error) {
	a, err = w.insist(ctx, func() (answer, error) {
		final := url
		ask := egress.Request{URL: url, MaxBody: sitemap.MaxBytes}
		ask.Take = func(contentType string, body io.Reader) {
			broken = w.read(final, contentType, body,
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

// read reads the body of a sitemap. A body that makes its reader panic is broken; a panic of visit
// is not the body's.
func (w *web) read(url, contentType string, body io.Reader,
	visit func(sitemap.Entry) bool) (broken error) {
	tail := &guards.Tail{From: body}
	var ours *guards.Panic
	panicked := w.reader.Run(guards.Page{URL: url, ContentType: contentType, Record: tail.Bytes},
		func() {
			_, broken = sitemap.Read(tail, contentType, func(e sitemap.Entry) (more bool) {
				ours = guards.Catch(func() { more = visit(e) })
				return more && ours == nil
			})
		})
	switch {
	case ours != nil:
		panic(ours)
	case panicked != nil:
		return panicked
	}
	return broken
}
