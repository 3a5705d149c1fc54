package web

import (
	"context"
	"time"

	"shoal.dev/shoal/fetcher/internal/chromium"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// ErrBusy says that a tier can take no more at the moment: nothing was asked for.
var ErrBusy = chromium.ErrBusy

// ComeAgain is within what time who was told so keeps their turn by coming again.
const ComeAgain = chromium.ComeAgain

// Request asks for one try at one page.
type Request struct {
	// URL is the page's address.
	URL string
	// Caller is whom it is for: what is held of their pages is a share of what may be held at all.
	Caller string
	// Tier is the way to get it; one of Tiers.
	Tier model.Tier
	// Load is what a browser does with the page once it is there; other tiers leave it alone.
	Load Load
	// As is the request that URL is asked for with; its own address does not matter. Nil is a GET.
	As *curl.Request
	// BeforeHop is called with the canonical target of each redirect before it is followed, and
	// with the request that is made of it. It is the place to wait for another host's permit and to
	// ask robots.txt. Its context ends with the fetch's deadline, and its time counts. An error
	// ends the fetch with that error. Nil follows all.
	BeforeHop func(ctx context.Context, url string, as *curl.Request) error
}

// Load is a pagination within a page (decision 14): more is loaded into it until nothing new comes.
type Load struct {
	More  bool
	Click string // selector of what is clicked for more; "": the page is scrolled to its end
	Max   int    // loads at most, the first included
}

// Page is a delivered page: a 2xx answer, read whole, that is no wall. Its body may not be used
// after Release.
type Page struct {
	Final       string // canonical; where redirects led
	Status      int
	Hops        int   // redirects followed
	Wire        int64 // bytes received, redirects included
	ContentType string
	Body        []byte // UTF-8 where ContentType is text
	Answer      Answer // where the body is; nil: nowhere that has to be given back

	exit *exit // of the last request; nil: it went straight
}

// Answer is where a page's body and header are.
type Answer interface {
	Header(name string) string
	Release()
}

// Release gives the page's buffers back. It may be called once.
func (p *Page) Release() {
	if p.Answer != nil {
		p.Answer.Release()
		p.Answer, p.Body = nil, nil
	}
}

// fail is the failure of a try that got as far as the page.
func (p *Page) fail(cause error, code fault.Code) *Failure {
	return &Failure{Code: pageCode(code), Final: p.Final, Status: p.Status, Hops: p.Hops,
		Wire: p.Wire, Cause: cause}
}

// Failure is a try that brought no page.
type Failure struct {
	Code   fault.Code // one that a page's error may carry
	Final  string     // canonical; who answered last, or was asked last
	Status int        // of the last answer; 0 when there was none
	Hops   int        // redirects followed
	Wire   int64      // bytes received, redirects included
	// Retry says that another try of the same tier may well end otherwise.
	Retry bool
	// RetryAfter is how long the site asked us to stay away, at most MaxRetryAfter; 0 when it did
	// not ask.
	RetryAfter time.Duration
	// Wait is how long another try would only be told the same, without a request.
	Wait  time.Duration
	Cause error
}

// Error is the code, and the cause where there is one.
func (f *Failure) Error() string {
	if f.Cause == nil {
		return string(f.Code)
	}
	return string(f.Code) + ": " + f.Cause.Error()
}

// Unwrap is the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// IsTurnedAway says that the site did not let the try through; another tier may be.
func (f *Failure) IsTurnedAway() bool { return f.Code == fault.PageBlocked || f.Status == 403 }

// pageCode is the code that a page's error may carry for what went wrong on the way out.
func pageCode(code fault.Code) fault.Code {
	switch {
	case fault.Lookup(code).Status == 0:
		return code
	case code == fault.InvalidURL:
		return fault.PageInvalidURL
	case code == fault.Unavailable: // our own limits left no room before the deadline
		return fault.PageTimeout
	}
	return fault.PageProtocol
}
