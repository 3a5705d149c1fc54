package operation

import (
	"strings"
	"testing"
)

// The service's own address is the Host header, if that is a name or an address. In the clear it is
// empty, because anybody may have written the header.
func TestBase(t *testing.T) {
	for _, c := range []struct {
		way  Way
		host string
		want string
	}{
		{Encrypted, "API.shop.example", "https://api.shop.example"},
		{Encrypted, "api.shop.example:8443", "https://api.shop.example:8443"},
		{Encrypted, strings.Repeat("a", 253), "https://" + strings.Repeat("a", 253)},
		{Encrypted, strings.Repeat("a", 254), ""},
		{OnTheSpot, "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{OnTheSpot, "[::1]:8080", "http://[::1]:8080"},
		{InTheClear, "api.shop.example", ""},
		{Encrypted, "", ""},
		{Encrypted, "a.example/path", ""},
		{Encrypted, "user@a.example", ""},
		{Encrypted, `a"b`, ""},
		{Encrypted, "a b", ""},
		{Encrypted, "a.example:123456", ""},
	} {
		caller := Caller{Way: c.way, Host: c.host}
		if got := caller.Base(); got != c.want {
			t.Errorf("%v %q: %q, want %q", c.way, c.host, got, c.want)
		}
		if c.way == Encrypted {
			c.want = "https://scrape.example"
		}
		caller.Public = "https://scrape.example"
		if got := caller.Base(); got != c.want {
			t.Errorf("%v %q with a public address: %q, want %q", c.way, c.host, got, c.want)
		}
	}
}
