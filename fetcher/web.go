package fetcher

import (
	"context"
	"errors"
	"time"

	"shoal.dev/shoal/fetcher/internal/transport"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Web is the world outside: one try at a page, and what robots.txt says. It is safe for concurrent
// use.
type Web interface {
	// Tiers are the ways of fetching that there are.
	Tiers() model.TierSet
	// Fetch makes one try. Its error is a *Failure, ErrBusy, or the error of BeforeHop or of ctx as
	// it is.
	Fetch(ctx context.Context, req Request) (*Response, error)
	// RobotsKnown says that Robots of a canonical address would answer without a request.
	RobotsKnown(url string) bool
	// Robots is nil when robots.txt allows a canonical address, with the delay that it asks for
	// between two starts. Its error is a *Failure, or ctx's.
	Robots(ctx context.Context, url string) (delay time.Duration, err error)
}

// ErrBusy says that a tier can take no more at the moment: nothing was asked for.
var ErrBusy = errors.New("fetcher: the tier can take no more at the moment")

// Request is one try at a page.
type Request struct {
	URL  string
	Tier model.Tier
	// Load is what a browser does with the page once it is there; other tiers leave it alone.
	Load Load
	// As is the request that URL is asked for with; its own address does not matter. Nil is a GET.
	As *curl.Request
	// BeforeHop is asked before a redirect is followed to its canonical target, with the request
	// that is made of it; its error ends the try.
	BeforeHop func(ctx context.Context, url string, as *curl.Request) error
}

// Load is a pagination within a page (decision 14): more is loaded into it until nothing new comes.
type Load = transport.Load

// Response is a whole page with a 2xx status that is no wall. Nothing of it may be used after
// Release.
type Response struct {
	Final       string // canonical; where redirects led
	Status      int
	ContentType string
	Body        []byte // UTF-8
	Wire        int64  // bytes received, redirects included
	Release     func()
}

// Failure is a try that brought no page.
type Failure struct {
	Code       fault.Code // a page code
	Final      string     // canonical; who answered last, or was asked last
	Status     int        // of the last answer, 0 without one
	Wire       int64
	Retry      bool // another try of the same tier may end otherwise
	RetryAfter time.Duration
	Cause      error
}

func (e *Failure) Error() string {
	if e.Cause == nil {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Cause.Error()
}

// turnedAway says that the site did not let the try through; another tier may be.
func (e *Failure) turnedAway() bool { return e.Code == fault.PageBlocked || e.Status == 403 }

// Unwrap is the cause.
func (e *Failure) Unwrap() error { return e.Cause }
