// Package egress is the only way out. Every outbound HTTP connection of every role goes through a
// Client, with one resolver, one address check at dial time and one set of limits. It owns the
// rules for reachable addresses, connections and single HTTP exchanges. It follows no redirects,
// repeats nothing and knows nothing of politeness, robots.txt or pages. Package address defines
// what an address means.
//
// The messages are fasthttp's, but its client is not used. That client resends requests on its own,
// keeps a goroutine per host, and has no limit over all hosts.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/netip"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/telemetry"
)

// Config says what a Client may reach and how much it may use. The zero value is a client for the
// public internet.
type Config struct {
	// Allow lists ranges that may be reached although they are private or reserved. Cloud metadata
	// addresses are always forbidden.
	Allow []netip.Prefix
	// Origins maps hosts to an "ip:port" to dial instead of asking DNS, for demo and test webs. A
	// key is an exact host or "*.suffix". The address guard applies to them, too.
	Origins map[string]string
	// Resolver resolves host names; nil: the system's.
	Resolver Resolver
	// RootCAs are the trusted certificate authorities; nil: the system's.
	RootCAs *x509.CertPool
	// Clock determines the age of resolved names; nil: the system's.
	Clock clock.Clock

	// MaxExchanges limits the exchanges under way; further ones wait within their deadline. 0:
	// 1,024.
	MaxExchanges int
	// MaxIdle limits the kept-alive connections over all hosts; the longest idle one makes room. 0:
	// 4,096, enough for that many hosts at one page a second each.
	MaxIdle int
	// MaxIdleBytes limits the estimated memory of these connections (10 KB each and its buffers).
	// 0: 64 MiB.
	MaxIdleBytes int64
	// IdleTimeout is how long a connection is kept alive unused. 0: 15 s.
	IdleTimeout time.Duration
	// MaxBuffered limits the bytes of all bodies that are read and not yet released. 0: 256 MiB.
	// One caller may also hold at most four times what is left.
	MaxBuffered int64
	// MaxHeader limits the bytes of a response's header. 0: 16 KiB.
	MaxHeader int
	// MaxBody limits the bytes of a body, as sent and as decompressed, if the request sets no
	// limit. 0: 10 MiB.
	MaxBody int64
	// Timeout limits an exchange without a deadline. 0: 30 s.
	Timeout time.Duration

	// Metrics is where the client counts; nil: nowhere.
	Metrics *telemetry.Metrics
}

func (c *Config) setDefaults() {
	setDefault(&c.MaxExchanges, 1024)
	setDefault(&c.MaxIdle, 4096)
	setDefault(&c.MaxIdleBytes, 64<<20)
	setDefault(&c.IdleTimeout, 15*time.Second)
	setDefault(&c.MaxBuffered, 256<<20)
	setDefault(&c.MaxHeader, 16<<10)
	setDefault(&c.MaxBody, 10<<20)
	setDefault(&c.Timeout, 30*time.Second)
	if c.Resolver == nil {
		c.Resolver = systemResolver{}
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
}

func setDefault[T int | int64 | time.Duration](setting *T, value T) {
	if *setting <= 0 {
		*setting = value
	}
}

// Client makes outbound exchanges. It is safe for concurrent use. Close releases its resources.
type Client struct {
	config    Config
	guard     *guard
	origins   origins
	names     *names
	verifier  *verifier
	public    *tls.Config // for public pages, whose content may become known one day
	private   *tls.Config
	pool      *pool
	slots     chan struct{}
	held      held
	responses sync.Pool
	readers   sync.Pool
	decoders  decoders
	connect   connectFunc
	metrics   *metrics
}

// New makes a client. It fails if the origin map is invalid.
func New(config Config) (*Client, error) {
	config.setDefaults()
	origins, err := parseOrigins(config.Origins)
	if err != nil {
		return nil, err
	}
	m := newMetrics(config.Metrics)
	c := &Client{
		config:   config,
		metrics:  m,
		guard:    newGuard(config.Allow, m),
		origins:  origins,
		names:    newNames(config.Resolver, config.Clock),
		verifier: newVerifier(config.RootCAs),
		private: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			RootCAs:            config.RootCAs,
			NextProtos:         []string{"http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions),
		},
		pool:  newPool(config.MaxIdle, config.MaxIdleBytes, config.IdleTimeout),
		slots: make(chan struct{}, config.MaxExchanges),
		held:  held{most: config.MaxBuffered, of: map[string]int64{}},
	}
	c.public = c.private.Clone()
	c.public.CurvePreferences = publicCurves
	c.connect = c.connectTCP
	c.measure(config.Metrics)
	return c, nil
}

// tlsSessions bounds the remembered TLS sessions (about 2 KB each), which make a second handshake
// cheap.
const tlsSessions = 1024

// Leave closes the idle direct connections to an authority. The caller expects no more requests
// there for now.
func (c *Client) Leave(authority string) { c.pool.leave(authority) }

// Close closes the idle connections and waits for name look-ups. Exchanges under way run until they
// end or reach their deadlines.
func (c *Client) Close() {
	c.pool.close()
	c.names.close()
}

// Do makes one exchange: it sends one request once and returns the whole response, whatever its
// status. It does not follow redirects. The deadline covers everything (a free slot, DNS, dial,
// TLS, header, body). Errors are *fault.Error with a page code, except that a cancelled context
// returns its own error. The caller releases the response.
func (c *Client) Do(ctx context.Context, req *Request) (*Response, error) {
	to, err := address.Parse(req.URL)
	if err != nil {
		return nil, fault.Wrap(fault.PageInvalidURL, err, "%s", fault.DetailOf(err))
	}
	resp, err := c.send(ctx, to, req)
	c.metrics.note(err)
	return resp, err
}

func (c *Client) send(ctx context.Context, to address.Address, req *Request) (*Response, error) {
	deadline := c.deadline(ctx, req)
	if err := c.acquireSlot(ctx, deadline); err != nil {
		return nil, err
	}
	defer func() { <-c.slots }()

	conn := c.pool.takeConn(originOf(to, req))
	if conn == nil {
		var err error
		if conn, err = c.dial(ctx, to, req, deadline); err != nil {
			return nil, err
		}
	}
	c.metrics.exchanges.Inc()
	return c.exchange(ctx, conn, to, req, deadline)
}

func (c *Client) deadline(ctx context.Context, req *Request) time.Time {
	deadline := req.Deadline
	if deadline.IsZero() {
		deadline = time.Now().Add(c.config.Timeout)
	}
	if own, ok := ctx.Deadline(); ok && own.Before(deadline) {
		return own
	}
	return deadline
}

// acquireSlot waits for one of MaxExchanges slots.
func (c *Client) acquireSlot(ctx context.Context, deadline time.Time) error {
	select {
	case c.slots <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	case <-timer.C:
		return fault.New(fault.PageTimeout, "No connection came free in time.")
	}
}

// contextError returns the error for an ended context: the page's timeout, or the caller's own
// cancellation.
func contextError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Wrap(fault.PageTimeout, ctx.Err(), "The request timed out.")
	}
	return ctx.Err()
}
