// Package web owns one try at one page. That is the exchange by a tier, redirects, robots.txt, text
// in UTF-8, and the verdict whether another try makes sense. It does not own politeness, attempts
// or their pace (hold and unit do), nor connections and the address guard (pkg/egress does).
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

// Config sets a Web. Zero values mean the defaults.
type Config struct {
	// UserAgent is sent with every request. Its first word is the name that robots.txt rules are
	// read for.
	UserAgent string
	// Timeout bounds a whole try: every hop, from DNS to the last byte.
	Timeout time.Duration
	// MaxBody bounds a page in bytes, as sent and as decompressed; egress's default when 0.
	MaxBody int64
	// Clock reads dates of Retry-After and ends the rests of proxies.
	Clock clock.Clock
	// Proxies are the ways out of tier super; without one there is no such tier.
	Proxies []*egress.Proxy
	// Chromium is the path of the browser of tier render; "": without.
	Chromium string
	// Pages is how many pages the browser loads at a time; 0: the browser's own measure.
	Pages  int
	Logger *slog.Logger
	// Reader runs what reads the answers of sites; nil: one that keeps no page.
	Reader *reading.Guard
	// Shared holds what robots.txt says for all fetchers; nil: each asks for itself.
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

// Web is the world outside: pages by tier, and what robots.txt says. It is safe for concurrent use.
type Web struct {
	*Transport
	*Robots
	client  *egress.Client
	browser *chromium.Browser // nil: none
}

// Open makes a Web over the one way out. It fails when the browser does not start.
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

// Leave closes what is kept open to an authority that nobody asks for now.
func (w *Web) Leave(authority string) { w.client.Leave(authority) }

// Close ends what is under way for robots.txt, and the browser. Whoever fetches must have ended.
func (w *Web) Close() {
	w.Robots.Close()
	if w.browser != nil {
		w.browser.Close()
	}
}

// Measure declares what is counted of robots.txt and proxies.
func (w *Web) Measure(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (*Web, bool) { return w, true }).
		Counter("shoal_fetcher_robots_fetches_total", "Fetches of robots.txt.",
			func(w *Web) float64 { return float64(w.fetches.Load()) }).
		Counter("shoal_fetcher_robots_failures_total",
			"Fetches of robots.txt that could not say what is allowed.",
			func(w *Web) float64 { return float64(w.failures.Load()) }).
		Gauge("shoal_fetcher_proxies", "Proxies of tier super.", func(w *Web) float64 {
			all, _ := w.countProxies()
			return float64(all)
		}).
		Gauge("shoal_fetcher_proxies_resting", "Proxies that rest after a failure.",
			func(w *Web) float64 {
				_, resting := w.countProxies()
				return float64(resting)
			}).
		Gauge("shoal_fetcher_robots_known", "Files of robots.txt in mind.",
			func(w *Web) float64 { return float64(w.countFiles()) }).
		Declare(to)
}
