package apiserver_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
)

// Forwarding headers count only if a trusted proxy wrote them. The limits of addresses and the log
// use them.
func TestTrustedProxiesSayWhoCalls(t *testing.T) {
	anonymous := func(config *apiserver.Config) {
		config.Rates = map[string]apiserver.Rate{"anonymous": {Count: 1, Per: time.Hour}}
	}
	proxied := func(config *apiserver.Config) {
		config.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	direct := apitest.Start(t, apitest.WithRateLimits, anonymous)
	behind := apitest.Start(t, apitest.WithRateLimits, anonymous, proxied)
	call := func(s *apitest.Server, name, value string, status int) {
		t.Helper()
		s.Call(t, apitest.Scenario{Name: name + " " + value, As: apitest.Nobody,
			Do:     "GET /v3/api-docs",
			Header: map[string]string{name: value}, Status: status})
	}
	call(direct, "X-Forwarded-For", "192.0.2.1", 200)
	call(direct, "X-Forwarded-For", "192.0.2.2", 429)
	call(direct, "Forwarded", "for=192.0.2.3", 429)

	call(behind, "X-Forwarded-For", "192.0.2.1", 200)
	call(behind, "X-Forwarded-For", "192.0.2.2", 200)
	call(behind, "X-Forwarded-For", "192.0.2.3, 192.0.2.1", 429)
	call(behind, "Forwarded", "for=192.0.2.2", 429)
	call(behind, "Forwarded", `for="[2001:db8::1]:80"`, 200)
	call(behind, "X-Forwarded-For", "2001:db8::ffff", 429)
	call(behind, "X-Forwarded-For", "2001:db8:0:1::1", 200)
	for _, address := range []string{`"address":"127.0.0.1"`, `"address":"192.0.2.2"`,
		`"address":"2001:db8::ffff"`} {
		of := behind
		if strings.Contains(address, "127.0.0.1") {
			of = direct
		}
		if logs := of.Logs.String(); !strings.Contains(logs, address) {
			t.Errorf("the log lacks %s: %s", address, logs)
		}
	}
}
