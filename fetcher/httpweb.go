package fetcher

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"shoal.dev/shoal/fetcher/internal/chromium"
	"shoal.dev/shoal/fetcher/internal/transport"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
)

// HTTPWeb is the Web over HTTP.
type HTTPWeb struct {
	transport *transport.Transport
	robots    *transport.Robots
	browser   *chromium.Browser // nil: none
}

// WebConfig sets an HTTPWeb. Zero values mean the defaults.
type WebConfig struct {
	UserAgent string
	Timeout   time.Duration // of one try
	Clock     clock.Clock
	// Proxies are the ways out of tier super; without one there is no such tier.
	Proxies []*egress.Proxy
	// Chromium is the path of the browser of tier render; "": without.
	Chromium string
	// Pages is how many pages the browser loads at a time; 0: the browser's own measure.
	Pages  int
	Logger *slog.Logger
	// Reader runs what reads the answers of sites; nil: one that keeps no page.
	Reader *Reader
	// Shared holds what robots.txt says for all fetchers; nil: each asks for itself.
	Shared cache.Values
}

// NewHTTPWeb makes a Web over the one way out. It fails when the browser does not start.
func NewHTTPWeb(ctx context.Context, client *egress.Client, config WebConfig) (*HTTPWeb, error) {
	if config.Timeout <= 0 {
		config.Timeout = DefaultTimeout
	}
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Reader == nil {
		config.Reader = reading.New("fetcher",
			reading.Config{Clock: config.Clock, Logger: config.Logger})
	}
	w := &HTTPWeb{}
	if config.Chromium != "" {
		var err error
		w.browser, err = chromium.Open(ctx,
			chromium.Config{Path: config.Chromium, Client: client, Pages: config.Pages,
				Logger: config.Logger, Reader: config.Reader})
		if err != nil {
			return nil, err
		}
	}
	w.transport = transport.New(client,
		transport.Config{UserAgent: config.UserAgent, Timeout: config.Timeout,
			Clock: config.Clock, Proxies: config.Proxies, Browser: w.browser})
	w.robots = transport.NewRobots(client, config.UserAgent, config.Clock, config.Shared,
		config.Reader)
	return w, nil
}

// Close ends what is under way for robots.txt, and the browser. Fetchers must have ended.
func (w *HTTPWeb) Close() {
	w.robots.Close()
	if w.browser != nil {
		w.browser.Close()
	}
}

// Tiers implements Web.
func (w *HTTPWeb) Tiers() model.TierSet { return w.transport.Tiers() }

// Fetch implements Web.
func (w *HTTPWeb) Fetch(ctx context.Context, req Request) (*Response, error) {
	page, err := w.transport.Fetch(ctx,
		transport.Request{URL: req.URL, Tier: req.Tier, As: req.As, Load: req.Load,
			BeforeHop: req.BeforeHop})
	var failed *transport.Error
	switch {
	case err == nil:
		return &Response{Final: page.FinalURL, Status: page.Status, ContentType: page.ContentType,
			Body: page.Body,
			Wire: page.WireBytes, Release: page.Release}, nil
	case errors.As(err, &failed):
		return nil, &Failure{Code: pageCode(failed.Fault.Code), Final: failed.FinalURL,
			Status: failed.Status,
			Wire:   failed.WireBytes, Retry: failed.Retry, RetryAfter: failed.RetryAfter,
			Cause: err}
	case errors.Is(err, transport.ErrBusy):
		return nil, ErrBusy
	}
	return nil, err
}

// RobotsKnown implements Web.
func (w *HTTPWeb) RobotsKnown(url string) bool { return w.robots.Known(url) }

// Robots implements Web.
func (w *HTTPWeb) Robots(ctx context.Context, url string) (time.Duration, error) {
	delay, err := w.robots.Check(ctx, url)
	var refused *transport.RobotsError
	if errors.As(err, &refused) {
		return delay, &Failure{Code: pageCode(refused.Fault.Code), Final: url, Retry: refused.Retry,
			Cause: err}
	}
	return delay, err
}

// pageCode is the code that a link's error may carry for what went wrong on the way out.
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
