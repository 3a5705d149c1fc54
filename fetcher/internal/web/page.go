package web

import (
	"context"
	"time"

	"shoal.dev/shoal/fetcher/internal/chromium"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// ErrBusy says that a tier is full at the moment: nothing was requested.
var ErrBusy = chromium.ErrBusy

// ComeAgain is how long a caller refused with ErrBusy keeps its turn.
const ComeAgain = chromium.ComeAgain

// Request asks for one try at one page.
type Request struct {
	// URL is the page's address.
	URL string
	// Caller is the customer. Each customer may hold only a share of all memory for pages.
	Caller string
	// Tier is the tier to use, one of Tiers.
	Tier model.Tier
	// Load says what a browser does with the loaded page; other tiers ignore it.
	Load Load
	// As is the curl request to make at URL; its own address is ignored. Nil: a GET.
	As *curl.Request
	// BeforeHop is called before a redirect is followed, with its canonical target and the
	// resulting request. It can wait for another host's permit and check robots.txt. Its context
	// ends with the fetch's deadline, and its time counts. Its error ends the fetch. Nil follows
	// all redirects.
	BeforeHop func(ctx context.Context, url string, as *curl.Request) error
}

// Load is a pagination within a page (decision 14): more content is loaded until nothing new comes.
type Load struct {
	More  bool
	Click string // selector of the element to click; "": scroll to the end
	Max   int    // most loads, including the first
}

// Page is a delivered page: a 2xx response, read whole, that is not a wall. Its body must not be
// used after Release.
type Page struct {
	Final       string // canonical, after redirects
	Status      int
	Hops        int   // redirects followed
	Wire        int64 // bytes received, redirects included
	ContentType string
	Body        []byte // UTF-8 where ContentType is text
	Answer      Answer // owns the body; nil: nothing to release

	exit *exit // proxy of the last request; nil: none
}

// Answer owns a page's body and header.
type Answer interface {
	Header(name string) string
	Release()
}

// Release gives the page's buffers back. Call it at most once.
func (p *Page) Release() {
	if p.Answer != nil {
		p.Answer.Release()
		p.Answer, p.Body = nil, nil
	}
}

// fail returns the failure of a try that got as far as page.
func (p *Page) fail(cause error, code fault.Code) *Failure {
	return &Failure{Code: pageCode(code), Final: p.Final, Status: p.Status, Hops: p.Hops,
		Wire: p.Wire, Cause: cause}
}

// Failure is a try that delivered no page.
type Failure struct {
	Code   fault.Code // a code that a page's error may have
	Final  string     // canonical; the host that answered last, or was asked last
	Status int        // of the last response; 0 without one
	Hops   int        // redirects followed
	Wire   int64      // bytes received, redirects included
	// Retry says that another try by the same tier may succeed.
	Retry bool
	// RetryAfter is how long the site asked us to wait, at most MaxRetryAfter; 0: it did not ask.
	RetryAfter time.Duration
	// Wait is how long another try would get the same answer without a request.
	Wait  time.Duration
	Cause error
}

// Error returns the code, with the cause if there is one.
func (f *Failure) Error() string {
	if f.Cause == nil {
		return string(f.Code)
	}
	return string(f.Code) + ": " + f.Cause.Error()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// IsTurnedAway says whether the site refused the try; another tier may get through.
func (f *Failure) IsTurnedAway() bool { return f.Code == fault.PageBlocked || f.Status == 403 }

// pageCode maps an error's code to one that a page's error may have.
func pageCode(code fault.Code) fault.Code {
	switch {
	case fault.Lookup(code).Status == 0:
		return code
	case code == fault.InvalidURL:
		return fault.PageInvalidURL
	case code == fault.Unavailable: // our own limits allowed no request before the deadline
		return fault.PageTimeout
	}
	return fault.PageProtocol
}
