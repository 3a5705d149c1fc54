package egress

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"shoal.dev/shoal/pkg/fault"
)

// Proxy is a way out through another machine that the operator named. It receives addresses, never
// names. Hosts are resolved and checked here, so a proxy cannot be made to reach what the guard
// forbids. Every connection is a tunnel, also to port 80.
type Proxy struct {
	socks          bool
	place          string // HOST:PORT
	user, password string
	login          bool
}

// maxProxyAnswer is the most bytes of a proxy's response to a CONNECT.
const maxProxyAnswer = 8 << 10

// ParseProxy parses http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ if the proxy needs
// a login. Its error quotes nothing of the text, which may hold a secret.
func ParseProxy(text string) (*Proxy, error) {
	parsed, err := url.Parse(strings.TrimSpace(text))
	if err != nil || parsed.Hostname() == "" {
		return nil, errors.New("want http://HOST:PORT or socks5://HOST:PORT, with " +
			"USER:PASSWORD@ before the host where needed")
	}
	p := &Proxy{socks: parsed.Scheme == "socks5" || parsed.Scheme == "socks5h"}
	port := parsed.Port()
	switch {
	case p.socks && port == "":
		port = "1080"
	case !p.socks && parsed.Scheme != "http":
		return nil, errors.New("the scheme must be http or socks5")
	case port == "":
		port = "80"
	}
	if parsed.Path != "" && parsed.Path != "/" || parsed.RawQuery != "" {
		return nil, errors.New("a proxy has no path")
	}
	p.place = net.JoinHostPort(parsed.Hostname(), port)
	if parsed.User != nil {
		p.login, p.user = true, parsed.User.Username()
		p.password, _ = parsed.User.Password()
		if p.socks && (len(p.user) == 0 || len(p.user) > 255 || len(p.password) > 255) {
			return nil, errors.New("socks5 takes a user of 1 to 255 bytes and a password " +
				"of at most 255")
		}
	}
	return p, nil
}

// String names the proxy without its login.
func (p *Proxy) String() string {
	if p == nil {
		return ""
	}
	if p.socks {
		return "socks5://" + p.place
	}
	return "http://" + p.place
}

// ProxyError is the failure of a proxy to connect. It is wrapped in a *fault.Error with the code
// connect_failed or timeout.
type ProxyError struct {
	// Own says that the proxy itself failed: it cannot be reached, refuses the login or violates
	// its protocol. Otherwise the host may be the cause.
	Own   bool
	Cause error
}

// Error includes the cause.
func (e *ProxyError) Error() string { return "proxy: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *ProxyError) Unwrap() error { return e.Cause }

// own wraps a failure of the proxy itself. Its text contains no login.
func own(err error) error { return &ProxyError{Own: true, Cause: err} }

// connectThrough opens a tunnel through a proxy to an address that the guard has passed.
func (c *Client) connectThrough(ctx context.Context, p *Proxy, to netip.AddrPort,
	deadline time.Time) (net.Conn, error) {
	if err := c.guard.check(to.Addr()); err != nil {
		return nil, err
	}
	// The operator named the proxy, so it may be in a private network, but not at a cloud metadata
	// address.
	dialer := net.Dialer{Deadline: deadline, KeepAlive: -1,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || slices.Contains(metadata, at.Addr().Unmap().WithZone("")) {
				return fault.New(fault.PageAddressForbidden,
					"The proxy's address may not be reached.")
			}
			return nil
		}}
	conn, err := dialer.DialContext(ctx, "tcp", p.place)
	if err != nil {
		return nil, own(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = conn.SetDeadline(deadline)
	if err == nil && p.socks {
		err = p.greetSOCKS(conn, to)
	} else if err == nil {
		err = p.greetHTTP(conn, to)
	}
	if !stop() {
		err = own(ctx.Err())
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{}) // the caller sets another deadline
	}
	if err != nil {
		_ = conn.Close() // it is useless
		return nil, err
	}
	return conn, nil
}

// greetHTTP asks for a tunnel by CONNECT.
func (p *Proxy) greetHTTP(conn net.Conn, to netip.AddrPort) error {
	ask := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n", to, to)
	if p.login {
		ask += "Proxy-Authorization: Basic " +
			base64.StdEncoding.EncodeToString([]byte(p.user+":"+p.password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, ask+"\r\n"); err != nil {
		return own(err)
	}
	// Byte by byte, so that nothing from inside the tunnel is read.
	var answer []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(answer[max(0, len(answer)-4):]),
		"\r\n\r\n"); {
		if len(answer) == maxProxyAnswer {
			return own(errors.New("the answer to CONNECT is too long"))
		}
		if _, err := io.ReadFull(conn, one); err != nil {
			return own(fmt.Errorf("answer to CONNECT: %w", err))
		}
		answer = append(answer, one[0])
	}
	var status int
	if _, err := fmt.Sscanf(string(answer), "HTTP/1.%1d %3d", new(int), &status); err != nil {
		return own(errors.New("the answer to CONNECT is not HTTP"))
	}
	switch {
	case status >= 200 && status <= 299:
		return nil
	case status == 502 || status == 503 || status == 504:
		return &ProxyError{Cause: fmt.Errorf("CONNECT was answered with %d", status)}
	}
	return own(fmt.Errorf("CONNECT was answered with %d", status))
}

// The parts of SOCKS 5 (RFC 1928, RFC 1929) that are used here.
const (
	socksVersion   = 5
	socksNoLogin   = 0
	socksPassword  = 2
	socksConnect   = 1
	socksIPv4      = 1
	socksName      = 3
	socksIPv6      = 4
	socksLoginSpec = 1
)

func (p *Proxy) greetSOCKS(conn net.Conn, to netip.AddrPort) error {
	method := byte(socksNoLogin)
	if p.login {
		method = socksPassword
	}
	var answer [4]byte
	if err := exchangeBytes(conn, []byte{socksVersion, 1, method}, answer[:2]); err != nil {
		return err
	}
	if answer[0] != socksVersion || answer[1] != method {
		return own(errors.New("the proxy wants another login, or does not speak SOCKS 5"))
	}
	if p.login {
		login := append([]byte{socksLoginSpec, byte(len(p.user))}, p.user...)
		login = append(append(login, byte(len(p.password))), p.password...)
		if err := exchangeBytes(conn, login, answer[:2]); err != nil {
			return err
		}
		if answer[1] != 0 {
			return own(errors.New("the proxy refuses the login"))
		}
	}
	ask := []byte{socksVersion, socksConnect, 0, socksIPv6}
	if to.Addr().Is4() {
		ask[3] = socksIPv4
	}
	ask = append(ask, to.Addr().AsSlice()...)
	if err := exchangeBytes(conn, append(ask, byte(to.Port()>>8), byte(to.Port())),
		answer[:4]); err != nil {
		return err
	}
	if err := skipSOCKSAddress(conn, answer[3]); err != nil {
		return own(err)
	}
	switch answer[1] {
	case 0:
		return nil
	case 3, 4, 5, 6: // network or host unreachable, refused, timed out
		return &ProxyError{Cause: fmt.Errorf("SOCKS answered with %d", answer[1])}
	}
	return own(fmt.Errorf("SOCKS answered with %d", answer[1]))
}

func exchangeBytes(conn net.Conn, ask, answer []byte) error {
	if _, err := conn.Write(ask); err != nil {
		return own(err)
	}
	if _, err := io.ReadFull(conn, answer); err != nil {
		return own(fmt.Errorf("answer of SOCKS: %w", err))
	}
	return nil
}

// skipSOCKSAddress skips the address that the proxy connected from.
func skipSOCKSAddress(conn net.Conn, kind byte) error {
	var size int
	switch kind {
	case socksIPv4:
		size = 4
	case socksIPv6:
		size = 16
	case socksName:
		var length [1]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return err
		}
		size = int(length[0])
	default:
		return errors.New("the answer of SOCKS has no address")
	}
	_, err := io.ReadFull(conn, make([]byte, size+2))
	return err
}
