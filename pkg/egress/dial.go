package egress

import (
	"context"
	"crypto/fips140"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
)

// connectFunc opens a TCP connection to an address that the guard has passed.
type connectFunc func(ctx context.Context, to netip.AddrPort, deadline time.Time) (net.Conn, error)

// connectTCP is the only place that opens connections. The guard checks once more the very address
// that is dialled.
func (c *Client) connectTCP(ctx context.Context, to netip.AddrPort, deadline time.Time) (net.Conn,
	error) {
	dialer := net.Dialer{Control: c.guard.control, Deadline: deadline, KeepAlive: -1}
	return dialer.DialContext(ctx, "tcp", to.String())
}

// Tunnel opens a bare connection to a host (as in a canonical address) and port, for those with
// their own protocol: the browser. It is checked like any other connection. Its errors are those of
// Do. Whoever called closes it; caller is as in a Request.
func (c *Client) Tunnel(ctx context.Context, caller, host string, port uint16,
	via *Proxy) (net.Conn, error) {
	to, err := address.Parse("http://" + net.JoinHostPort(strings.Trim(host, "[]"),
		strconv.Itoa(int(port))) + "/")
	if err != nil {
		return nil, fault.Wrap(fault.PageInvalidURL, err, "%s", fault.DetailOf(err))
	}
	deadline := time.Now().Add(c.config.Timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	tcp, err := c.reach(ctx, caller, to, via, deadline)
	c.metrics.note(err)
	return tcp, err
}

// reach connects to one of the addresses of a host. It tries each in turn, with an equal share of
// the time left.
func (c *Client) reach(ctx context.Context, caller string, to address.Address, via *Proxy,
	deadline time.Time) (net.Conn, error) {
	places, err := c.reachable(ctx, caller, to.Host)
	if err != nil {
		return nil, err
	}
	c.metrics.dials.Inc()
	var tcp net.Conn
	for i, place := range places {
		if place.Port() == 0 {
			place = netip.AddrPortFrom(place.Addr(), portNumber(to))
		}
		until := time.Now().Add(time.Until(deadline) / time.Duration(len(places)-i))
		if via != nil {
			tcp, err = c.connectThrough(ctx, via, place, until)
		} else {
			tcp, err = c.connect(ctx, place, until)
		}
		if err == nil {
			return tcp, nil
		}
		if failed := (*ProxyError)(nil); errors.As(err, &failed) && failed.Own {
			break // it would fail for the other addresses, too
		}
	}
	return nil, dialError(ctx, err)
}

// dial opens a connection for exchanges with an address's host.
func (c *Client) dial(ctx context.Context, to address.Address, req *Request,
	deadline time.Time) (*conn, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	tcp, err := c.reach(ctx, req.Caller, to, req.Proxy, deadline)
	if err != nil {
		return nil, err
	}
	if !to.TLS {
		return newConn(tcp, tcp, originOf(to, req)), nil
	}
	secure := tls.Client(tcp, c.secured(to, req.Private))
	if err := shakeHands(ctx, secure, tcp, deadline); err != nil {
		tcp.Close()
		return nil, handshakeError(ctx, err)
	}
	return newConn(secure, tcp, originOf(to, req)), nil
}

// shakeHands is HandshakeContext without a goroutine per connection.
func shakeHands(ctx context.Context, secure *tls.Conn, tcp net.Conn, deadline time.Time) error {
	if err := tcp.SetDeadline(deadline); err != nil {
		return err
	}
	stop := interruptOn(ctx, tcp)
	err := secure.Handshake()
	if !stop() {
		return ctx.Err()
	}
	return err
}

// publicCurves leave out the post-quantum key exchange. It takes a quarter of a connection's cost,
// and would only protect what anybody can read at the host.
var publicCurves = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}

// secured returns the TLS configuration for an address's host.
func (c *Client) secured(to address.Address, private bool) *tls.Config {
	config := c.public
	if private {
		config = c.private
	}
	config = config.Clone()
	host := strings.TrimSuffix(strings.Trim(to.Host, "[]"), ".")
	config.ServerName = host
	if fips140.Enabled() {
		return config // then crypto/tls checks chains more strictly
	}
	// The verifier checks certificates instead, also those of resumed connections. It remembers
	// intermediate certificates.
	config.InsecureSkipVerify = true //nolint:gosec // VerifyConnection does all that it leaves out
	config.VerifyConnection = func(state tls.ConnectionState) error {
		return c.verifier.verify(state.PeerCertificates, host)
	}
	return config
}

func portNumber(a address.Address) uint16 {
	if a.Port == "" {
		if a.TLS {
			return 443
		}
		return 80
	}
	var port uint16
	for _, digit := range []byte(a.Port) {
		port = port*10 + uint16(digit-'0')
	}
	return port
}

func dialError(ctx context.Context, err error) error {
	var coded *fault.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &coded):
		return coded
	case isTimeout(err):
		return fault.Wrap(fault.PageTimeout, err, "The host did not take the connection in time.")
	case isProxy(err):
		return fault.Wrap(fault.PageConnect, err, "The host was not reached through a proxy.")
	}
	return fault.Wrap(fault.PageConnect, err, "The host takes no connection.")
}

func handshakeError(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case isTimeout(err):
		return fault.Wrap(fault.PageTimeout, err, "The host did not finish the TLS "+
			"handshake in time.")
	case isBroken(err):
		return fault.Wrap(fault.PageConnect, err, "The host broke off the TLS handshake.")
	}
	return fault.Wrap(fault.PageTLS, err, "The host's TLS or certificate is not valid.")
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// isBroken reports that the other side ended the connection.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func isProxy(err error) bool {
	var failed *ProxyError
	return errors.As(err, &failed)
}
