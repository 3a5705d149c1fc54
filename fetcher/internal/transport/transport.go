// Package transport owns one try at one page: the exchange by a tier, redirects, robots.txt, text
// in UTF-8, and the verdict whether another try makes sense. It does not own politeness, attempts
// or their pace (the worker does), nor connections and the address guard (pkg/egress does).
package transport

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/fetcher/internal/chromium"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// DefaultUserAgent is what sites see unless configured.
const DefaultUserAgent = "Shoal"

// Bounds of a fetch.
const (
	MaxHops       = 10        // redirects of one page
	MaxRetryAfter = time.Hour // of what a Retry-After may ask
	defaultTotal  = 30 * time.Second
)

// Config sets a Transport. Zero values mean the defaults.
type Config struct {
	// UserAgent is sent with every request. Its first word is the name that robots.txt rules are
	// read for.
	UserAgent string
	// Timeout bounds a whole fetch: every hop, from DNS to the last byte. 30 s when 0.
	Timeout time.Duration
	// MaxBody bounds a page in bytes, as sent and as decompressed. egress's default when 0.
	MaxBody int64
	// Clock reads dates of Retry-After and ends the rests of proxies; the system's when nil.
	Clock clock.Clock
	// Proxies are the ways out of tier super; without one there is no such tier.
	Proxies []*egress.Proxy
	// Browser is for tier render; nil: without. Whoever opened it closes it.
	Browser *chromium.Browser
}

// Transport fetches pages. It is safe for concurrent use.
type Transport struct {
	config  Config
	tiers   map[model.Tier]tier
	proxies *proxies // nil: none
}

// tier is one way of getting a page, redirects included. It fills in what it learns as it goes.
type tier interface {
	fetch(ctx context.Context, req *Request, deadline time.Time, page *Page) error
}

// New makes a transport over the one way out. Tier plain is always there.
func New(client *egress.Client, config Config) *Transport {
	if config.UserAgent == "" {
		config.UserAgent = DefaultUserAgent
	}
	if config.Timeout <= 0 {
		config.Timeout = defaultTotal
	}
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	straight := plain{client: client, header: pageHeader(config.UserAgent), maxBody: config.MaxBody}
	t := &Transport{config: config, tiers: map[model.Tier]tier{model.Plain: &straight}}
	if len(config.Proxies) > 0 {
		t.proxies = newProxies(config.Proxies, config.Clock)
		through := straight
		through.proxies = t.proxies
		t.tiers[model.Super] = &through
	}
	if config.Browser != nil {
		t.tiers[model.Render] = &render{browser: config.Browser}
		if t.proxies != nil {
			t.tiers[model.RenderSuper] = &render{browser: config.Browser, proxies: t.proxies}
		}
	}
	return t
}

// Tiers are the tiers that this transport has.
func (t *Transport) Tiers() model.TierSet {
	var set model.TierSet
	for tier := range t.tiers {
		set |= model.TiersOf(tier)
	}
	return set
}

// Request asks for one try at one page.
type Request struct {
	// URL is the page's address.
	URL string
	// Tier is the way to get it; one of Tiers.
	Tier model.Tier
	// Load is what a browser does with the page once it is there; other tiers leave it alone.
	Load Load
	// As is the request that URL is asked for with; its own address does not matter. Nil is a GET.
	As *curl.Request
	// BeforeHop is called with the canonical target of each redirect before it is followed, and
	// with the request that is made of it: the place to wait for another host's permit and to ask
	// robots.txt. Its context ends with the fetch's deadline, and its time counts. An error ends
	// the fetch with that error. Nil follows all.
	BeforeHop func(ctx context.Context, url string, as *curl.Request) error
}

// Load is a pagination within a page (decision 14): more is loaded into it until nothing new comes.
type Load struct {
	More  bool
	Click string // selector of what is clicked for more; "": the page is scrolled to its end
	Max   int    // loads at most, the first included
}

// Trace is what a try used and met, of pages and of failures.
type Trace struct {
	Tier      model.Tier
	FinalURL  string // canonical; after redirects
	Status    int    // of the last answer; 0 when there was none
	Hops      int    // redirects followed
	WireBytes int64  // of all answers
	Elapsed   time.Duration
}

// Page is a delivered page: a 2xx answer, read whole, that is no wall. Its body may not be used
// after Release.
type Page struct {
	Trace
	ContentType string
	// Body is UTF-8 where ContentType is text.
	Body []byte

	response answer
	exit     *exit // of the last request; nil: it went straight
}

// answer is where a page's body and header are.
type answer interface {
	Header(name string) string
	Release()
}

// Release gives the page's buffers back. It may be called once.
func (p *Page) Release() {
	if p.response != nil {
		p.response.Release()
		p.response, p.Body = nil, nil
	}
}

// Error is a try that brought no page. It unwraps to a *fault.Error with a page code.
type Error struct {
	Trace
	Fault *fault.Error
	// Retry says that another try of the same tier may well end otherwise.
	Retry bool
	// RetryAfter is how long the site asked us to stay away, at most MaxRetryAfter; 0 when it did
	// not ask.
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Fault.Error() }

// Unwrap is the coded error.
func (e *Error) Unwrap() error { return e.Fault }

// Fetch makes one try. Its error is an *Error, or ErrBusy, except where BeforeHop or the context
// ended it with an error that has no code: then it is that one. The caller releases the page.
func (t *Transport) Fetch(ctx context.Context, req Request) (*Page, error) {
	start := time.Now()
	page := &Page{Trace: Trace{Tier: req.Tier, FinalURL: req.URL}}
	by, ok := t.tiers[req.Tier]
	if !ok {
		return nil, &Error{Trace: page.Trace,
			Fault: fault.New(fault.Unavailable, "Tier %s is not available.", req.Tier)}
	}
	err := by.fetch(ctx, &req, start.Add(t.config.Timeout), page)
	if err == nil {
		err = verdict(req.URL, page)
	}
	if err == nil {
		page.Body, err = toUTF8(page.Body, page.ContentType)
	}
	page.Elapsed = time.Since(start)
	if err == nil {
		return page, nil
	}
	defer page.Release()
	return nil, t.failure(page, err)
}

// failure turns what went wrong into an *Error, and leaves errors without a code as they are.
func (t *Transport) failure(page *Page, err error) error {
	var coded *fault.Error
	if !errors.As(err, &coded) {
		return err
	}
	failed := &Error{Trace: page.Trace, Fault: coded, Retry: retryable(err)}
	if page.exit != nil && (coded.Code == fault.PageBlocked || page.Status == 403 ||
		page.Status == 429) {
		// The site turns this proxy away; it may let another one through.
		failed.Retry = t.proxies.turnedAway(address.AuthorityOf(page.FinalURL), page.exit)
	}
	if page.response != nil && (coded.Code == fault.PageStatus || coded.Code == fault.PageBlocked) {
		failed.Retry = failed.Retry || coded.Code == fault.PageStatus &&
			retryableStatus(page.Status)
		failed.RetryAfter = retryAfter(page.response.Header("Retry-After"), t.config.Clock.Now())
	}
	return failed
}

// verdict is nil for a page that counts as delivered: decision 16, but for its rows.
func verdict(asked string, page *Page) error {
	if wall := recogniseWall(page.Status, page.Body, page.response); wall != "" {
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

// retryable says whether the same try may end otherwise. The network's failures pass; what a host,
// its owner or our own rules decided stays.
func retryable(err error) bool {
	var robots *RobotsError
	if errors.As(err, &robots) {
		return robots.Retry
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

// retryAfter reads seconds or a date.
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

// parseHTTPDate reads the date form that servers send.
func parseHTTPDate(value string) (time.Time, error) {
	return time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", value)
}
