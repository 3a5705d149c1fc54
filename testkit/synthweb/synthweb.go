// Package synthweb owns the synthetic web, for tests, benches and the built-in demo. It is one HTTP
// server on the loopback that plays up to a million sites, distinguished by the Host header. Every
// page follows from the configuration and its seed. So Truth can say without a request what a
// correct run must find. A log of the requests shows what a run really requested. Together they are
// a recount that knows nothing of the product.
//
// It does not own names: clients reach its hosts through an origin map ("*.example" → Addr). Nor
// does it own what is done with a page; it only imports the product's terms for fields and error
// codes.
//
// It uses fasthttp's server although it is neither the API server nor the control plane. It has to
// be far faster than what it measures, and no other part of the product depends on this test tool.
package synthweb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/pkg/clock"
)

// Bounds of a configuration.
const (
	MaxHosts = 1_000_000
	MaxPages = 20_000_000 // Hosts × PagesPerHost
)

// Config describes a web. Zero values take the defaults named at each field.
type Config struct {
	Seed  uint64
	Hosts int // sites, 1 to MaxHosts; default 10, or one per name in Names
	// addresses per site; Hosts × PagesPerHost is at most MaxPages; default 100
	PagesPerHost int
	// top-level domain of all sites; default "example", so that each site is a domain of its own
	Suffix string
	Names  []string // the sites' first labels; default shop-00000, shop-00001, …
	Mix    Mix      // share of each class of page; default products only
	// approximate sizes of product pages; the seed picks one per page; default 28,000
	PageBytes []int

	ChainPages int // listing chains have 1 to this many pages; default 5
	// items on every page of a chain except the last, which has 1 to this many; default 12
	ItemsPerPage int
	// failed answers of Flaky and Busy pages before they succeed; default 1
	Fails      int
	RetryAfter time.Duration // Retry-After of Busy answers, whole seconds; default 1 s
	DripTime   time.Duration // how long the body of a Drip page takes; default 1 s

	// every answer waits a time in this range, by the seed; default none
	MinLatency, MaxLatency time.Duration
	// replaces the two: several ranges, drawn by weight and seed
	Latencies []LatencyShare
	// evenly spread sites whose answers all take SlowLatency instead
	SlowHosts   int
	SlowLatency time.Duration
	// site number h has the robots.txt Robots[h % len]; default RobotsAbsent for all
	Robots     []Robots
	CrawlDelay int  // seconds, of RobotsDelay; default 1
	Sitemaps   bool // sites have sitemaps, named in their robots.txt
	// addresses in one sitemap; a site with more has an index of several; default 50,000
	SitemapURLs int
	Gzip        bool // answers are compressed for clients that accept it
	Brotli      bool // likewise, and preferred if a client accepts both
	TLS         bool // all addresses are https; certificates lead to Authority
	// with TLS, site number h has the certificate chain Chains[h % len]; default ChainDirect
	Chains []Chain

	// Template, if set, is the one page that all addresses show, with 12345 replaced by the
	// address's number (at least five digits). Then Mix and PageBytes do not matter. TemplateRow is
	// what a correct run reads from it.
	Template    []byte
	TemplateRow Row

	// Texts are the caller's own HTML pages, by host and path ("shop-00000.example/contact"). They
	// replace what the address would show. Truth does not know them.
	Texts map[string]string

	// requests that the log keeps, 48 bytes each; default 4,000,000; further ones are only counted
	LogLimit int
	Clock    clock.Clock // default clock.System
}

// Web is one synthetic web. All methods are safe for concurrent use.
type Web struct {
	config   Config
	mixTotal int
	// latencyTotal is the sum of the weights of Latencies.
	latencyTotal int

	names    []string       // full host names
	hosts    map[string]int // host name → number
	inflight []atomic.Int32 // per host
	// per address (host × PagesPerHost + page), for classes that count fetches
	fetches  []atomic.Int32
	padding  []piece   // one filler per entry of PageBytes
	related  []piece   // likewise, of JSON
	template []piece   // Template, split at its numbers
	plain    sync.Pool // of *[]byte: uncompressed bodies
	log      *requestLog
	// one per entry of Chains; none without TLS
	authorities []*authority
	connections atomic.Int64 // accepted
	answering   sync.RWMutex // Hold has it alone

	ctx     context.Context // ends when the server stops; waiting handlers then give up
	cancel  context.CancelFunc
	server  *fasthttp.Server
	ln      net.Listener
	stopped chan error
	started time.Time

	closing  sync.Once
	closeErr error
}

// New makes a web that does not serve yet: enough for URLs and Truth. The error names every wrong
// setting.
func New(config Config) (*Web, error) {
	config.applyDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	w := &Web{
		config:   config,
		hosts:    make(map[string]int, config.Hosts),
		inflight: make([]atomic.Int32, config.Hosts),
		fetches:  make([]atomic.Int32, config.Hosts*config.PagesPerHost),
		log:      &requestLog{limit: config.LogLimit},
	}
	for h := range config.Hosts {
		label := fmt.Sprintf("shop-%05d", h)
		if len(config.Names) > 0 {
			label = config.Names[h]
		}
		name := label + "." + config.Suffix
		if _, taken := w.hosts[name]; taken {
			return nil, fmt.Errorf("synthweb: Names: %q twice", label)
		}
		w.names = append(w.names, name)
		w.hosts[name] = h
	}
	for _, share := range config.Mix {
		w.mixTotal += share.Weight
	}
	for _, size := range config.PageBytes {
		w.padding = append(w.padding, w.newPiece(filler(size-barePageBytes)))
		w.related = append(w.related, w.newPiece(relatedItems(size-bareItemBytes)))
	}
	if config.Template != nil {
		for text := range bytes.SplitSeq(config.Template, []byte(templateNumber)) {
			w.template = append(w.template, w.newPiece(text))
		}
	}
	for _, share := range config.Latencies {
		w.latencyTotal += share.Weight
	}
	if config.TLS {
		if err := w.openAuthorities(); err != nil {
			return nil, err
		}
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.started = config.Clock.Now()
	return w, nil
}

// Start makes a web and serves it on a free port of 127.0.0.1, until Close.
func Start(config Config) (*Web, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("synthweb: listen: %w", err)
	}
	return StartOn(ln, config)
}

// StartOn is Start on a given listener, which the web owns from then on.
func StartOn(ln net.Listener, config Config) (*Web, error) {
	w, err := New(config)
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	w.serve(ln)
	return w, nil
}

// Serve serves on the listener until the context ends, and returns once every handler is done. A
// Web serves only once: by Start or by one call of Serve.
func (w *Web) Serve(ctx context.Context, ln net.Listener) error {
	w.serve(ln)
	select {
	case <-ctx.Done():
		return w.Close()
	case err := <-w.stopped:
		w.cancel()
		return err
	}
}

func (w *Web) serve(ln net.Listener) {
	w.ln = ln
	w.server = w.newServer()
	w.stopped = make(chan error, 1)
	ln = &counted{ln, &w.connections}
	if w.config.TLS {
		ln = w.secure(ln)
	}
	go func() { w.stopped <- w.server.Serve(ln) }()
}

// Close stops serving, cuts waiting answers short, and returns once every handler is done.
func (w *Web) Close() error {
	w.closing.Do(func() { w.closeErr = w.stop() })
	return w.closeErr
}

func (w *Web) stop() error {
	w.cancel()
	if w.server == nil {
		return nil
	}
	if err := w.server.Shutdown(); err != nil {
		return fmt.Errorf("synthweb: stop: %w", err)
	}
	// Shutdown does not know a listener that Serve has not reached yet. Without this, such a server
	// would keep serving.
	_ = w.ln.Close()
	if err := <-w.stopped; err != nil {
		return fmt.Errorf("synthweb: serve: %w", err)
	}
	return nil
}

// Hold lets sites answer nothing more until the caller releases them. Release it before the web
// closes. When Hold returns, the last answers are ready, but the server may still be sending them.
// It waits for pages that drip until they are out, and for those that stall until their client
// leaves.
func (w *Web) Hold() (release func()) {
	w.answering.Lock()
	return w.answering.Unlock
}

// Addr is the host:port for all sites in an origin map. The web must come from Start or StartOn;
// callers of Serve have the listener.
func (w *Web) Addr() string { return w.ln.Addr().String() }

// Pattern is the left side of that origin map: "*." and the suffix.
func (w *Web) Pattern() string { return "*." + w.config.Suffix }

// Hosts lists the host names.
func (w *Web) Hosts() []string { return append([]string(nil), w.names...) }

// URLs yields the first n addresses, round-robin over the hosts: address i is page i / Hosts of
// host i % Hosts. They are distinct; n beyond Hosts × PagesPerHost yields all there are.
func (w *Web) URLs(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range min(n, w.config.Hosts*w.config.PagesPerHost) {
			if !yield(w.url(w.startPage(i%w.config.Hosts, i/w.config.Hosts))) {
				return
			}
		}
	}
}

// URL is address n of site number host, both from 0; it is among URLs.
func (w *Web) URL(host, n int) string { return w.url(w.startPage(host, n)) }

func (c *Config) applyDefaults() {
	if c.Hosts == 0 {
		c.Hosts = len(c.Names)
	}
	setDefault(&c.Hosts, 10)
	setDefault(&c.PagesPerHost, 100)
	setDefault(&c.Suffix, "example")
	setDefault(&c.ChainPages, 5)
	setDefault(&c.ItemsPerPage, 12)
	setDefault(&c.Fails, 1)
	setDefault(&c.RetryAfter, time.Second)
	setDefault(&c.DripTime, time.Second)
	setDefault(&c.CrawlDelay, 1)
	setDefault(&c.SitemapURLs, 50_000)
	setDefault(&c.LogLimit, 4_000_000)
	if c.Mix == nil {
		c.Mix = Products()
	}
	if c.PageBytes == nil {
		c.PageBytes = []int{28_000}
	}
	if c.Robots == nil {
		c.Robots = []Robots{RobotsAbsent}
	}
	if c.Chains == nil {
		c.Chains = []Chain{ChainDirect}
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
}

func setDefault[T comparable](setting *T, value T) {
	var zero T
	if *setting == zero {
		*setting = value
	}
}

func (c *Config) validate() error {
	var errs []error
	check := func(ok bool, field, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("synthweb: %s: %s", field, want))
		}
	}
	check(c.Hosts > 0 && c.Hosts <= MaxHosts, "Hosts", fmt.Sprintf("1 to %d", MaxHosts))
	check(c.PagesPerHost > 0 && c.PagesPerHost <= MaxPages/max(c.Hosts, 1), "PagesPerHost",
		fmt.Sprintf("at least 1, and Hosts × PagesPerHost at most %d", MaxPages))
	check(c.Suffix == strings.ToLower(strings.Trim(c.Suffix, ".")), "Suffix",
		"lower case, no dot at its ends")
	check(len(c.Names) == 0 || len(c.Names) == c.Hosts, "Names", "as many as Hosts")
	check(c.ChainPages > 0, "ChainPages", "at least 1")
	check(c.ItemsPerPage > 0, "ItemsPerPage", "at least 1")
	check(c.Fails > 0, "Fails", "at least 1")
	check(c.RetryAfter > 0 && c.RetryAfter%time.Second == 0, "RetryAfter", "whole seconds")
	check(c.DripTime > 0, "DripTime", "above 0")
	check(c.MinLatency >= 0 && (c.MaxLatency == 0 || c.MaxLatency >= c.MinLatency), "MaxLatency",
		"at least MinLatency, which is at least 0")
	for _, share := range c.Latencies {
		check(share.Weight > 0 && share.Min >= 0 && share.Max >= share.Min, "Latencies",
			"weights above 0, and each Max at least its Min, which is at least 0")
	}
	check(c.SitemapURLs > 0, "SitemapURLs", "at least 1")
	check(c.SlowHosts >= 0 && c.SlowHosts <= c.Hosts, "SlowHosts", "0 to Hosts")
	check(c.SlowHosts == 0 || c.SlowLatency > 0, "SlowLatency", "above 0 when there are SlowHosts")
	check(len(c.Robots) > 0, "Robots", "at least one kind")
	check(len(c.Chains) > 0 && slices.Max(c.Chains) <= lastChain, "Chains",
		"at least one kind, and only those there are")
	check(c.CrawlDelay > 0, "CrawlDelay", "at least 1 s")
	check(c.LogLimit > 0, "LogLimit", "at least 1")
	check(c.Template == nil || bytes.Contains(c.Template, []byte(templateNumber)), "Template",
		"holds the number "+templateNumber)
	for _, size := range c.PageBytes {
		check(size >= barePageBytes && size <= 10<<20, "PageBytes",
			fmt.Sprintf("each %d to %d", barePageBytes, 10<<20))
	}
	check(len(c.PageBytes) > 0, "PageBytes", "at least one size")
	total := 0
	for _, share := range c.Mix {
		check(share.Class < firstHelper && share.Class != templated, "Mix", "only exported classes")
		check(share.Weight >= 0, "Mix", "no negative weight")
		total += share.Weight
	}
	check(total > 0, "Mix", "at least one weight above 0")
	return errors.Join(errs...)
}
