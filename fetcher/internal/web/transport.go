package web

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/fetcher/internal/chromium"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
)

// Bounds of a fetch.
const (
	MaxHops       = 10        // redirects per page
	MaxRetryAfter = time.Hour // the longest Retry-After that is obeyed
)

// Transport fetches pages. It is safe for concurrent use.
type Transport struct {
	config  Config
	tiers   map[model.Tier]tier
	proxies *proxies // nil: none
}

// tier fetches a page in one way, redirects included. It fills in page as it goes.
type tier interface {
	fetch(ctx context.Context, req *Request, deadline time.Time, page *Page) error
}

// newTransport makes a transport over one egress client. Tier plain is always there; tier render
// needs a browser.
func newTransport(client *egress.Client, config Config, browser *chromium.Browser) *Transport {
	config.setDefaults()
	straight := plain{client: client, header: pageHeader(config.UserAgent), maxBody: config.MaxBody}
	t := &Transport{config: config, tiers: map[model.Tier]tier{model.Plain: &straight}}
	if len(config.Proxies) > 0 {
		t.proxies = newProxies(config.Proxies, config.Clock)
		through := straight
		through.proxies = t.proxies
		t.tiers[model.Super] = &through
	}
	if browser != nil {
		t.tiers[model.Render] = &render{browser: browser}
		if t.proxies != nil {
			t.tiers[model.RenderSuper] = &render{browser: browser, proxies: t.proxies}
		}
	}
	return t
}

// Tiers returns the tiers of this transport.
func (t *Transport) Tiers() model.TierSet {
	var set model.TierSet
	for tier := range t.tiers {
		set |= model.TiersOf(tier)
	}
	return set
}

// Fetch makes one try. Its error is a *Failure or ErrBusy. If BeforeHop or the context ended it
// with an error without a code, it is that error. The caller releases the page.
func (t *Transport) Fetch(ctx context.Context, req Request) (*Page, error) {
	page := &Page{Final: req.URL}
	by, ok := t.tiers[req.Tier]
	if !ok {
		return nil, page.fail(fault.New(fault.Unavailable, "Tier %s is not available.", req.Tier),
			fault.Unavailable)
	}
	delivered := false
	defer func() {
		if !delivered {
			page.Release()
		}
	}()
	var err error
	panicked := t.config.Reader.Run(reading.Page{URL: req.URL,
		Record: func() []byte { return page.Body }},
		func() { err = t.try(ctx, by, &req, page) })
	switch {
	case panicked != nil:
		return nil, page.fail(panicked, fault.PageUnparsable)
	case err != nil:
		return nil, err
	}
	delivered = true
	return page, nil
}

// try fetches and judges a page. Decoding it may panic.
func (t *Transport) try(ctx context.Context, by tier, req *Request, page *Page) error {
	err := by.fetch(ctx, req, time.Now().Add(t.config.Timeout), page)
	var illegible error
	if err == nil { // walls are recognized by their text
		page.Body, illegible = toUTF8(page.Body, page.ContentType)
		err = verdict(req.URL, page)
	}
	if err == nil {
		err = illegible
	}
	if err != nil {
		return t.failure(page, err)
	}
	return nil
}

// failure turns an error into a *Failure, and returns errors without a code as they are.
func (t *Transport) failure(page *Page, err error) error {
	var coded *fault.Error
	if !errors.As(err, &coded) {
		return err
	}
	code := coded.Code
	failed := page.fail(err, code)
	failed.Retry = retryable(err)
	if before := (*Failure)(nil); errors.As(err, &before) {
		failed.Wait = before.Wait
	}
	if page.exit != nil && (code == fault.PageBlocked || page.Status == 403 ||
		page.Status == 429) {
		// The site refuses this proxy; it may let another one through.
		failed.Retry = t.proxies.turnedAway(address.AuthorityOf(page.Final), page.exit)
	}
	if page.Answer != nil && (code == fault.PageStatus || code == fault.PageBlocked) {
		failed.Retry = failed.Retry || code == fault.PageStatus && retryableStatus(page.Status)
		failed.RetryAfter = retryAfter(page.Answer.Header("Retry-After"), t.config.Clock.Now())
	}
	return failed
}

// verdict returns nil for a delivered page by decision 16, rows aside.
func verdict(asked string, page *Page) error {
	if wall := recogniseWall(page.Status, page.Body, page.Answer); wall != "" {
		return fault.New(fault.PageBlocked, "The site showed a bot wall (%s).", wall)
	}
	if page.Status < 200 || page.Status > 299 {
		return fault.New(fault.PageStatus, "The site answered with status %d.", page.Status)
	}
	if isLoginWall(asked, page) {
		return fault.New(fault.PageBlocked, "The site wants a login.")
	}
	return nil
}

// retryable says whether another try may succeed. Network failures may pass; decisions of the host,
// its owner or our own rules do not.
func retryable(err error) bool {
	var before *Failure
	if errors.As(err, &before) {
		return before.Retry
	}
	switch fault.CodeOf(err) {
	case fault.PageDNS:
		var dns *net.DNSError
		return !errors.As(err, &dns) || !dns.IsNotFound
	case fault.PageConnect, fault.PageTimeout, fault.PageProtocol, fault.Unavailable:
		return true
	}
	return false
}

func retryableStatus(status int) bool {
	return status >= 500 || status == 429 || status == 408 || status == 425
}

// retryAfter parses seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, MaxRetryAfter)
	}
	at, err := parseHTTPDate(value)
	if err != nil {
		return 0
	}
	return max(0, min(at.Sub(now), MaxRetryAfter))
}

// parseHTTPDate parses the date format that servers send.
func parseHTTPDate(value string) (time.Time, error) {
	return time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", value)
}
