package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
)

// metadata are the addresses at which clouds hand out credentials to anyone who asks. Some are in
// public ranges.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // most clouds
	netip.MustParseAddr("169.254.170.2"),   // Amazon, containers
	netip.MustParseAddr("169.254.170.23"),  // Amazon, pods
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
	netip.MustParseAddr("fd00:ec2::23"),    // Amazon, pods
	netip.MustParseAddr("fd20:ce::254"),    // Google
}

// guard decides which IP addresses may be reached.
type guard struct {
	ranges  *ssrf.Guardian
	metrics *metrics
}

func newGuard(allow []netip.Prefix, m *metrics) *guard {
	var v4, v6 []netip.Prefix
	for _, prefix := range allow {
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix.Masked())
		} else {
			v6 = append(v6, prefix.Masked())
		}
	}
	return &guard{metrics: m,
		ranges: ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...),
			ssrf.WithAllowedV6Prefixes(v6...))}
}

// check returns nil for an address that may be reached. The error does not reveal the address: what
// a name resolves to in a private network is nobody's business outside.
func (g *guard) check(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	if inner, ok := embedded(addr); ok {
		if err := g.check(inner); err != nil {
			return err
		}
	}
	if slices.Contains(metadata, addr) {
		g.metrics.metadata.Inc()
		return fault.Wrap(fault.PageAddressForbidden,
			fmt.Errorf("%s is a cloud metadata address", addr),
			"The host's address may not be reached.")
	}
	if err := g.ranges.SafeAddr(addr); err != nil {
		g.metrics.reserved.Inc()
		return fault.Wrap(fault.PageAddressForbidden, err, "The host's address may not be reached.")
	}
	return nil
}

// nat64 and sixToFour embed IPv4 addresses. Both are forbidden unless explicitly allowed; then the
// embedded address must be allowed, too.
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// embedded returns the IPv4 address to which packets for an IPv6 address are finally sent.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:])), true
	}
	return netip.Addr{}, false
}

// control is the check at dial time, after all name resolution and right before the connection:
// nothing bypasses it.
func (g *guard) control(network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return fault.New(fault.PageAddressForbidden, "The host's address may not be reached.")
	}
	return g.check(to.Addr())
}

// CheckURL reports, without DNS, whether an address can be crawled at all. It must be http or
// https, without a user name or password. Its host must not be localhost or a literal IP address,
// in any spelling, that the guard forbids. The error has the code INVALID_URL.
func (c *Client) CheckURL(url string) error {
	to, err := address.Parse(url)
	if err != nil {
		return err
	}
	if to.Userinfo {
		c.metrics.credentials.Inc()
		return fault.New(fault.InvalidURL, "The address holds a user name or password.")
	}
	if to.Named && !strings.HasSuffix(to.Host, "localhost") {
		return nil
	}
	if _, mapped := c.origins.find(to.Host); mapped {
		return nil
	}
	addr, literal := literalAddr(to.Host)
	if literal && c.guard.check(addr) != nil {
		return fault.New(fault.InvalidURL, "The address is private, reserved or "+
			"otherwise forbidden.")
	}
	return nil
}

// CheckHost resolves a host (without port) and reports whether any of its addresses may be reached.
// Its errors have the codes dns_failed, address_forbidden and timeout.
func (c *Client) CheckHost(ctx context.Context, host string) error {
	if canonical, err := address.Parse("http://" + host + "/"); err != nil || canonical.Port != "" {
		return fault.New(fault.PageInvalidURL, "The host name is invalid.")
	} else {
		host = canonical.Host
	}
	_, err := c.reachable(ctx, "", host)
	return err
}

// literalAddr returns the address that a canonical host spells, without DNS.
func literalAddr(host string) (netip.Addr, bool) {
	name := strings.TrimSuffix(host, ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return addr, err == nil
}
