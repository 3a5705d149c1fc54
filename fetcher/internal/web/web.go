// Package web owns one try at one page: tiers, redirects, robots.txt, conversion to UTF-8, and the
// verdict whether a retry makes sense. It does not own politeness, attempts and their pace (hold
// and unit do), or connections and the address guard (pkg/egress does).
package web

import (
	"context"
	"log/slog"
	"time"

	"shoal.dev/shoal/fetcher/internal/chromium"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/telemetry"
)

// Defaults of Config.
const (
	DefaultUserAgent = "Shoal"
	DefaultTimeout   = 30 * time.Second
)

// Config configures a Web. Zero values mean the defaults.
type Config struct {
	// UserAgent is sent with every request. Its first word selects the rules in robots.txt.
	UserAgent string
	// Timeout bounds a whole try: every hop, from DNS to the last byte.
	Timeout time.Duration
	// MaxBody bounds a page in bytes, both as sent and decompressed; egress's default when 0.
	MaxBody int64
	// Clock is used for Retry-After dates and the rests of proxies.
	Clock clock.Clock
	// Proxies are the proxies of tier super; without any there is no such tier.
	Proxies []*egress.Proxy
	// Chromium is the path of the browser for tier render; "": none.
	Chromium string
	// Pages is how many pages the browser loads at a time; 0: the browser's default.
	Pages  int
	Logger *slog.Logger
	// Reader guards the reading of what sites send; nil: one that keeps no pages.
	Reader *reading.Guard
	// Shared shares robots.txt files between fetchers; nil: each reads its own.
	Shared cache.Values
}

func (c *Config) setDefaults() {
	if c.UserAgent == "" {
		c.UserAgent = DefaultUserAgent
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Reader == nil {
		c.Reader = reading.New("fetcher", reading.Config{Clock: c.Clock, Logger: c.Logger})
	}
}

// Web fetches pages by tier and checks robots.txt. It is safe for concurrent use.
type Web struct {
	*Transport
	*Robots
	client  *egress.Client
	browser *chromium.Browser // nil: none
}

// Open makes a Web over one egress client. It fails if the browser does not start.
func Open(ctx context.Context, client *egress.Client, config Config) (*Web, error) {
	config.setDefaults()
	w := &Web{client: client}
	if config.Chromium != "" {
		var err error
		w.browser, err = chromium.Open(ctx,
			chromium.Config{Path: config.Chromium, Client: client, Pages: config.Pages,
				Logger: config.Logger, Reader: config.Reader})
		if err != nil {
			return nil, err
		}
	}
	w.Transport = newTransport(client, config, w.browser)
	w.Robots = newRobots(client, config)
	return w, nil
}

// Leave closes idle connections to an authority that nobody needs now.
func (w *Web) Leave(authority string) { w.client.Leave(authority) }

// Close ends robots.txt fetches and the browser. All calls of Fetch must have ended.
func (w *Web) Close() {
	w.Robots.Close()
	if w.browser != nil {
		w.browser.Close()
	}
}

// Measure exports figures about robots.txt and proxies.
func (w *Web) Measure(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (*Web, bool) { return w, true }).
		Counter("shoal_fetcher_robots_fetches_total", "Fetches of robots.txt.",
			func(w *Web) float64 { return float64(w.fetches.Load()) }).
		Counter("shoal_fetcher_robots_failures_total",
			"Fetches of robots.txt that did not show what is allowed.",
			func(w *Web) float64 { return float64(w.failures.Load()) }).
		Gauge("shoal_fetcher_proxies", "Proxies of tier super.", func(w *Web) float64 {
			all, _ := w.countProxies()
			return float64(all)
		}).
		Gauge("shoal_fetcher_proxies_resting", "Proxies of tier super that rest after a failure.",
			func(w *Web) float64 {
				_, resting := w.countProxies()
				return float64(resting)
			}).
		Gauge("shoal_fetcher_robots_known", "Files of robots.txt remembered.",
			func(w *Web) float64 { return float64(w.countFiles()) }).
		Declare(to)
}
