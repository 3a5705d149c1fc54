package accounts

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/fault"
)

// A link signs in only with its secret, from this machine, until it expires. It is in no log.
func TestOnceIsChecked(t *testing.T) {
	made := time.Unix(1_000, 0)
	once, address := NewOnce("a@b.example", made.Add(time.Minute))
	link, err := url.Parse(address)
	if err != nil || link.Path != OncePath || len(link.Query().Get("link")) != 26 {
		t.Fatalf("the link is %s, %v", address, err)
	}
	secret, here := link.Query().Get("link"), netip.MustParseAddr("127.0.0.1")
	for _, c := range []struct {
		name, secret, from string
		after              time.Duration
		good               bool
	}{
		{"good", secret, "127.0.0.1", time.Minute - 1, true},
		{"of version 6", secret, "::1", 0, true},
		{"too old", secret, "127.0.0.1", time.Minute, false},
		{"from elsewhere", secret, "10.0.0.1", 0, false},
		{"another secret", strings.ToLower(secret), "127.0.0.1", 0, false},
		{"no secret", "", "127.0.0.1", 0, false},
	} {
		err := once.check(c.secret, netip.MustParseAddr(c.from), made.Add(c.after))
		if (err == nil) != c.good || err != nil && fault.CodeOf(err) != fault.Unauthorized {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	once.used = true
	if err := once.check(secret, here, made); err == nil {
		t.Error("a link that was used is good")
	}
}
