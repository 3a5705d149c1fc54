package forwarded

import (
	"net/netip"
	"strings"
	"testing"
)

func proxies(ranges ...string) (p Proxies) {
	for _, text := range ranges {
		p = append(p, netip.MustParsePrefix(text))
	}
	return p
}

func TestCaller(t *testing.T) {
	trusted := proxies("10.0.0.0/8", "fd00::/8")
	for name, c := range map[string]struct {
		peer           string
		forwarded, xff []string
		want           string
	}{
		"nothing said": {"10.0.0.1", nil, nil, "10.0.0.1"},
		"stranger says": {"192.0.2.9", []string{"for=1.1.1.1"}, []string{"1.1.1.1"},
			"192.0.2.9"},
		"mapped stranger":     {"::ffff:192.0.2.9", nil, []string{"1.1.1.1"}, "192.0.2.9"},
		"mapped proxy":        {"::ffff:10.0.0.1", nil, []string{"192.0.2.1"}, "192.0.2.1"},
		"one hop":             {"10.0.0.1", nil, []string{"192.0.2.1"}, "192.0.2.1"},
		"sender's own before": {"10.0.0.1", nil, []string{"1.1.1.1, 192.0.2.1"}, "192.0.2.1"},
		"two proxies": {"10.0.0.1", nil, []string{"1.1.1.1, 192.0.2.1, 10.0.0.2"},
			"192.0.2.1"},
		"lines": {"10.0.0.1", nil, []string{"1.1.1.1", "192.0.2.1", "10.0.0.2"},
			"192.0.2.1"},
		"sender says it is a proxy": {"10.0.0.1", nil, []string{"10.9.9.9, 192.0.2.1"},
			"192.0.2.1"},
		"all trusted":           {"10.0.0.1", nil, []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"port":                  {"10.0.0.1", nil, []string{"192.0.2.1:4711"}, "192.0.2.1"},
		"version 6":             {"fd00::1", nil, []string{"2001:db8::1"}, "2001:db8::1"},
		"version 6 and port":    {"fd00::1", nil, []string{"[2001:db8::1]:80"}, "2001:db8::1"},
		"zone":                  {"fd00::1", nil, []string{"fe80::1%eth0"}, "fe80::1"},
		"no address":            {"10.0.0.1", nil, []string{"192.0.2.1, unknown"}, "10.0.0.1"},
		"no address further on": {"10.0.0.1", nil, []string{"nonsense, 10.0.0.2"}, "10.0.0.2"},
		"empty":                 {"10.0.0.1", nil, []string{" , ,"}, "10.0.0.1"},

		"Forwarded": {"10.0.0.1",
			[]string{"for=192.0.2.1;proto=https;by=10.0.0.1"}, nil, "192.0.2.1"},
		"Forwarded of two": {"10.0.0.1",
			[]string{"for=1.1.1.1, FOR=192.0.2.1 ; by=_x,for=10.0.0.2"}, nil, "192.0.2.1"},
		"Forwarded, quoted": {"10.0.0.1", []string{`for="[2001:db8:cafe::17]:4711"`}, nil,
			"2001:db8:cafe::17"},
		"Forwarded, escaped":   {"10.0.0.1", []string{`for="192\.0.2.1"`}, nil, "192.0.2.1"},
		"Forwarded, bare port": {"10.0.0.1", []string{`for=192.0.2.1:80`}, nil, "192.0.2.1"},
		"Forwarded, no for": {"10.0.0.1", []string{"for=192.0.2.1, proto=http"}, nil,
			"10.0.0.1"},
		"Forwarded, hidden": {"10.0.0.1", []string{"for=192.0.2.1, for=_hidden"}, nil,
			"10.0.0.1"},
		"Forwarded, in quotes": {"10.0.0.1", []string{`for=192.0.2.1;host="a, for=1.1.1.1"`},
			nil, "192.0.2.1"},
		"Forwarded, open quote": {"10.0.0.1", []string{`for="1.1.1.1, for=192.0.2.1`}, nil,
			"10.0.0.1"},
		"Forwarded, quote elsewhere": {"10.0.0.1", []string{`for="1.1.1.1`, "for=192.0.2.1"}, nil,
			"192.0.2.1"},
		"Forwarded, twice": {"10.0.0.1", []string{"for=192.0.2.1;for=1.1.1.1"}, nil,
			"10.0.0.1"},
		"Forwarded, no value": {"10.0.0.1", []string{"for=, for"}, nil, "10.0.0.1"},

		"both": {"10.0.0.1", []string{"for=192.0.2.1"}, []string{"192.0.2.1"},
			"192.0.2.1"},
		"forged Forwarded": {"10.0.0.1", []string{"for=1.1.1.1"}, []string{"192.0.2.1"},
			"10.0.0.1"},
		"forged X-": {"10.0.0.1", []string{"for=192.0.2.1"}, []string{"1.1.1.1"},
			"10.0.0.1"},
		"empty Forwarded, X-": {"10.0.0.1", []string{""}, []string{"1.1.1.1"}, "10.0.0.1"},
	} {
		if got := trusted.Caller(netip.MustParseAddr(c.peer), c.forwarded,
			c.xff); got != netip.MustParseAddr(c.want) {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
	if got := Proxies(nil).Caller(netip.MustParseAddr("10.0.0.1"), nil,
		[]string{"1.1.1.1"}); got.String() != "10.0.0.1" {
		t.Errorf("nobody is trusted: %v", got)
	}
}

func TestHolder(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2::1":      "2001:db8:1:2::/64", "2001:db8:1:3::1": "2001:db8:1:3::/64",
		"fe80::1%eth0": "fe80::/64",
	} {
		if got := Holder(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// The nearest proxy's own line decides, whatever a sender writes before it. On a shared line its
// part decides, too, unless the sender spoils the line: then the proxy is the caller. It is never
// anybody else.
func FuzzCaller(f *testing.F) {
	for _, seed := range []string{"", "1.1.1.1", "for=1.1.1.1", `for="1.1.1.1`,
		`for="[::1]:80";by=x, for=_a`, "10.0.0.2", "for=10.0.0.2,",
		`for="\`, ";;,,", "for=1.1.1.1;host=\"", "[::1", "1.1.1.1:2:3"} {
		f.Add(seed)
	}
	trusted := proxies("10.0.0.0/8")
	peer, sender := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("192.0.2.1")
	f.Fuzz(func(t *testing.T, forged string) {
		if strings.ContainsAny(forged, "\r\n\x00") {
			t.Skip() // not a header line
		}
		for name, got := range map[string]netip.Addr{
			"X-, a line each":        trusted.Caller(peer, nil, []string{forged, "192.0.2.1"}),
			"X-, one line":           trusted.Caller(peer, nil, []string{forged + ", 192.0.2.1"}),
			"Forwarded, a line each": trusted.Caller(peer, []string{forged, "for=192.0.2.1"}, nil),
		} {
			if got != sender {
				t.Errorf("%s: %v", name, got)
			}
		}
		if got := trusted.Caller(peer, []string{forged + ", for=192.0.2.1"}, nil); got != sender &&
			got != peer {
			t.Errorf("Forwarded, one line: %v", got)
		}
		if got := trusted.Caller(peer, []string{forged}, []string{"192.0.2.1"}); got != sender &&
			got != peer {
			t.Errorf("both: %v", got)
		}
		if got := trusted.Caller(sender, []string{forged}, []string{forged}); got != sender {
			t.Errorf("nobody's proxy: %v", got)
		}
	})
}
