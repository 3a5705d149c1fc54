// Package egress is the only way out. Every outbound HTTP connection of every role goes through a
// Client, with one resolver, one address check at dial time and one set of limits. It owns which
// addresses may be reached, connections and one HTTP exchange at a time. It follows no redirect,
// repeats nothing and knows nothing of politeness, robots.txt or pages. What an address means is
// pkg/address's.
//
// The messages are fasthttp's. Its client is not used. That one sends a request again when it sees
// fit, keeps a goroutine per host, and has no bound over all hosts.
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
	// addresses stay forbidden whatever is listed.
	Allow []netip.Prefix
	// Origins maps hosts to the "ip:port" that is dialled instead of asking DNS, for demo and test
	// webs. A key is an exact host or "*.suffix". The address guard holds for them too.
	Origins map[string]string
	// Resolver answers host names; the system's when nil.
	Resolver Resolver
	// RootCAs are the trusted certificate authorities; the system's when nil.
	RootCAs *x509.CertPool
	// Clock ages the resolver's answers; the system's when nil.
	Clock clock.Clock

	// MaxExchanges bounds the exchanges under way; further ones wait, within their deadline. 1,024
	// when 0.
	MaxExchanges int
	// MaxIdle bounds the kept-alive connections over all hosts; the longest idle one makes room.
	// 4,096 when 0: as many hosts of a crawl at one page a second each can be kept.
	MaxIdle int
	// MaxIdleBytes bounds their memory, by what each is taken to hold (10 KB and its buffers). 64
	// MiB when 0.
	MaxIdleBytes int64
	// IdleTimeout is how long a connection is kept alive unused. 15 s when 0.
	IdleTimeout time.Duration
	// MaxBuffered bounds the bytes of all bodies that are held (read and not yet released). 256 MiB
	// when 0. One caller has four times what is left besides, at most.
	MaxBuffered int64
	// MaxHeader bounds the bytes of an answer's header. 16 KiB when 0.
	MaxHeader int
	// MaxBody bounds the bytes of a body, as sent and as decompressed, where the request names no
	// bound. 10 MiB when 0.
	MaxBody int64
	// Timeout bounds an exchange that names no deadline. 30 s when 0.
	Timeout time.Duration

	// Metrics is where the client counts; it may be nil.
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

// Client makes outbound exchanges. It is safe for concurrent use. Close it to end what it holds.
type Client struct {
	config    Config
	guard     *guard
	origins   origins
	names     *names
	verifier  *verifier
	public    *tls.Config // for what may be known one day: public pages
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

// New makes a client. It fails on an origin map that cannot be read.
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

// Leave closes the idle connections straight to an authority, of which the caller expects to ask
// nothing more for now.
func (c *Client) Leave(authority string) { c.pool.leave(authority) }

// Close closes the idle connections and waits for name look-ups. Exchanges under way end by their
// own deadlines.
func (c *Client) Close() {
	c.pool.close()
	c.names.close()
}

// Do makes one exchange: one request, sent once, and its whole answer, whatever its status.
// Redirects are answers. Everything (a free slot, DNS, dial, TLS, header, body) happens before the
// deadline. Errors are *fault.Error with a page code, except that a cancelled context answers with
// its own error. The caller releases the response.
func (c *Client) Do(ctx context.Context, req *Request) (*Response, error) {
	to, err := address.Parse(req.URL)
	if err != nil {
		return nil, fault.Wrap(fault.PageInvalidURL, err, "%s", detailOf(err))
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

// acquireSlot waits for one of MaxExchanges.
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

// contextError is the error of a context that has ended: a timeout of the page's, or the caller's
// own cancellation.
func contextError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Wrap(fault.PageTimeout, ctx.Err(), "Time ran out.")
	}
	return ctx.Err()
}
