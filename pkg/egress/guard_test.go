package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

// answers is a resolver with fixed answers.
type answers struct {
	mu    sync.Mutex
	addrs map[string][]string
	asked []string
}

func (a *answers) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, host)
	var addrs []netip.Addr
	for _, addr := range a.addrs[host] {
		addrs = append(addrs, netip.MustParseAddr(addr))
	}
	if addrs == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

// dialled replaces the network with a record of dialled addresses.
func dialled(c *Client) *[]string {
	var record []string
	c.connect = func(_ context.Context, to netip.AddrPort, _ time.Time) (net.Conn, error) {
		record = append(record, to.String())
		return nil, errors.New("recorded")
	}
	return &record
}

func TestForbiddenAddressesAreNotDialled(t *testing.T) {
	forbidden := map[string][]string{}
	for i, addr := range []string{
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
		"255.255.255.255", "224.0.0.1",
		"168.63.129.16", "192.0.0.192", "::", "::1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
		"fe80::1", "fd00:ec2::254",
		"64:ff9b::a00:1", "2002:a00:1::", "2001:db8::1", "ff02::1", "::a00:1", "198.18.0.1",
	} {
		forbidden[fmt.Sprintf("h%d.example", i)] = []string{addr}
	}
	c := newClient(t, Config{Resolver: &answers{addrs: forbidden},
		Origins: map[string]string{"origin.example": "10.1.1.1:80"}})
	record := dialled(c)
	hosts := []string{"origin.example", "169.254.169.254", "0xa9fea9fe", "[::1]",
		"[::ffff:10.0.0.1]", "012.0.0.1", "10.1"}
	for host := range forbidden {
		hosts = append(hosts, host)
	}
	for _, host := range hosts {
		if _, err := c.Do(t.Context(),
			&Request{URL: "http://" + host + "/"}); fault.CodeOf(
			err) != fault.PageAddressForbidden {
			t.Errorf("%s %v: %v", host, forbidden[host], err)
		}
		if err := c.CheckHost(t.Context(), host); fault.CodeOf(err) != fault.PageAddressForbidden {
			t.Errorf("CheckHost(%s): %v", host, err)
		}
	}
	if len(*record) != 0 {
		t.Errorf("dialled %v", *record)
	}
	for _, addrs := range forbidden {
		place := netip.AddrPortFrom(netip.MustParseAddr(addrs[0]), 80).String()
		if err := c.guard.control("tcp4", place,
			nil); fault.CodeOf(err) != fault.PageAddressForbidden {
			t.Errorf("at dial time, %s: %v", place, err)
		}
	}
}

func TestAllowOpensOnlyWhatIsListed(t *testing.T) {
	g := newGuard([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"),
		netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00::/8")},
		newMetrics(nil))
	for addr, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "169.254.1.1": true,
		"169.254.169.254": false,
		"fd00::1":         true, "fd00:ec2::254": false, "192.0.2.1": false, "93.184.216.34": true,
		"2606:4700::1111": true, "127.0.0.1": false,
	} {
		if got := g.check(netip.MustParseAddr(addr)) == nil; got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

// TestAllowedTunnelsCarryPublicAddressesOnly: an allowed NAT64 only carries public addresses.
func TestAllowedTunnelsCarryPublicAddressesOnly(t *testing.T) {
	g := newGuard([]netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"),
		netip.MustParsePrefix("2002::/16")}, newMetrics(nil))
	for addr, want := range map[string]bool{
		"64:ff9b::5db8:d822": true, "64:ff9b::a00:1": false, "64:ff9b::a9fe:a9fe": false,
		"64:ff9b::7f00:1":   false,
		"2002:5db8:d822::1": true, "2002:a00:1::1": false, "2002:a9fe:a9fe::1": false,
		"64:ff9b:1::5db8:d822": false,
	} {
		if got := g.check(netip.MustParseAddr(addr)) == nil; got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestMixedAnswersUseTheAllowedAddress(t *testing.T) {
	c := newClient(t, Config{Resolver: &answers{
		addrs: map[string][]string{"mixed.example": {"10.0.0.1", "93.184.216.34",
			"93.184.216.35"}}}})
	record := dialled(c)
	_, err := c.Do(t.Context(), &Request{URL: "https://mixed.example:8443/"})
	if want := []string{"93.184.216.34:8443",
		"93.184.216.35:8443"}; fault.CodeOf(err) != fault.PageConnect ||
		!slices.Equal(*record, want) {
		t.Errorf("dialled %v, %v", *record, err)
	}
}

func TestCheckURL(t *testing.T) {
	c := newClient(t, Config{Origins: map[string]string{"demo.localhost": "127.0.0.1:1"}})
	strict, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	for _, url := range []string{"http://example.com/", "https://93.184.216.34/",
		"http://notlocalhost/", "http://[2606:4700::1111]/"} {
		if err := strict.CheckURL(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{
		"ftp://example.com/", "http://user@example.com/", "http://:pass@example.com/", "nonsense",
		"http://127.0.0.1/", "http://0x7f.1/", "http://2130706433/",
		"http://017700000001/", "http://127.1/", "http://[::1]/", "http://[::ffff:7f00:1]/",
		"http://10.0.0.1:8080/", "http://localhost/",
		"http://LOCALHOST./", "http://a.localhost/", "http://169.254.169.254/latest/meta-data/",
		"http://①⑥⑨.254.169.254/", "http://127.0.0.1./", "http://%31%32%37.0.0.1/",
	} {
		if err := strict.CheckURL(url); fault.CodeOf(err) != fault.InvalidURL {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"http://127.0.0.1/", "http://0x7f.1/", "http://localhost:3000/",
		"http://demo.localhost/"} {
		if err := c.CheckURL(url); err != nil {
			t.Errorf("%s, allowed: %v", url, err)
		}
	}
}

func TestCheckHost(t *testing.T) {
	c := newClient(t, Config{Resolver: &answers{
		addrs: map[string][]string{"ok.example": {"93.184.216.34"}}}})
	for host, want := range map[string]fault.Code{
		"ok.example": "", "OK.example": "", "gone.example": fault.PageDNS, "127.0.0.1": "",
		"a b": fault.PageInvalidURL, "x:81": fault.PageInvalidURL,
	} {
		if got := fault.CodeOf(c.CheckHost(t.Context(), host)); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

func TestNamesAreRemembered(t *testing.T) {
	resolver := &answers{addrs: map[string][]string{"a.example": {"93.184.216.34"}}}
	now := clock.NewManual(time.Unix(0, 0))
	c := newClient(t, Config{Resolver: resolver, Clock: now})
	ask := func(host string, want int) {
		t.Helper()
		c.CheckHost(t.Context(), host)
		if len(resolver.asked) != want {
			t.Errorf("%s: asked %v, want %d", host, resolver.asked, want)
		}
	}
	ask("a.example", 1)
	ask("a.example", 1)
	ask("gone.example", 2)
	ask("gone.example", 2)
	now.Advance(failedNameTTL)
	ask("gone.example", 3)
	ask("a.example", 3)
	now.Advance(nameTTL)
	ask("a.example", 4)
	for i := range maxNames + 10 {
		c.CheckHost(t.Context(), fmt.Sprintf("h%d.example", i))
	}
	if len(c.names.known) > maxNames {
		t.Errorf("%d names known", len(c.names.known))
	}
}

func TestOrigins(t *testing.T) {
	o, err := parseOrigins(map[string]string{"*.demo.example": "127.0.0.1:1",
		"*.b.demo.example": "127.0.0.1:2", "X.demo.example": "127.0.0.1:3"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]uint16{
		"a.demo.example": 1, "c.a.demo.example": 1, "a.b.demo.example": 2, "x.demo.example": 3,
		"demo.example": 0, "example": 0, "adem.example": 0,
	} {
		if to, _ := o.find(host); to.Port() != want {
			t.Errorf("%s: %v, want port %d", host, to, want)
		}
	}
	if _, err := New(Config{Origins: map[string]string{"a": "nowhere"}}); err == nil {
		t.Error("a map without an address is taken")
	}
}

// askedNobody is a resolver that fails the test when a name is looked up.
type askedNobody struct{ t *testing.T }

func (r askedNobody) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.t.Errorf("%s is looked up", host)
	return nil, errors.New("nobody knows")
}

// TestLocalhostIsThisMachine: localhost is this machine, whatever a resolver says, and guarded.
func TestLocalhostIsThisMachine(t *testing.T) {
	open := newClient(t, Config{Resolver: askedNobody{t}})
	guarded, err := New(Config{Resolver: askedNobody{t}})
	if err != nil {
		t.Fatal(err)
	}
	defer guarded.Close()
	for _, host := range []string{"localhost", "LocalHost.", "a.localhost"} {
		if err := open.CheckHost(t.Context(), host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if err := guarded.CheckHost(t.Context(), host); fault.CodeOf(err) !=
			fault.PageAddressForbidden {
			t.Errorf("%s, guarded: %v", host, err)
		}
	}
}
