package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestServeDefaults(t *testing.T) {
	b := newBench(t)
	var got ServeConfig
	b.run = func(_ context.Context, config ServeConfig) error { got = config; return nil }
	b.shoal("serve").want(t, exitOK)
	want := ServeConfig{Data: b.data, Listen: "127.0.0.1:8080",
		Roles:    []string{"controlplane", "fetcher", "ingest", "billing", "apiserver"},
		HostRate: 1, HostConnections: 2, MaxHostRate: 10, MaxHostConnections: 8}
	if diff := compare(want, got); diff != "" {
		t.Error(diff)
	}
}

func compare(want, got ServeConfig) string {
	return cmp.Diff(want, got, cmpopts.IgnoreFields(ServeConfig{}, "Ready"),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }))
}

func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	b := newBench(t)
	file := b.write("shoal.conf", `
# the file
listen = 127.0.0.1:1      # a comment
host-rate = 3
max-host-rate = 30
no-rate-limits = true
egress-allow = 10.0.0.0/8
egress-allow = fd00::/8
egress-origin = "*.example=127.0.0.1:9"
roles = ingest,fetcher,ingest
`)
	t.Setenv("SHOAL_CONFIG", file)
	t.Setenv("SHOAL_HOST_RATE", "4")
	t.Setenv("SHOAL_MAX_HOST_RATE", "40")
	var got ServeConfig
	b.run = func(_ context.Context, config ServeConfig) error { got = config; return nil }
	b.shoal("serve", "--max-host-rate", "50").want(t, exitOK)
	want := ServeConfig{Data: b.data, Listen: "127.0.0.1:1", Roles: []string{"fetcher", "ingest"}, HostRate: 4,
		HostConnections: 2, MaxHostRate: 50, MaxHostConnections: 8, NoRateLimits: true,
		EgressAllow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
		Origins:     map[string]string{"*.example": "127.0.0.1:9"}}
	if diff := compare(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRepeatedFieldsOfAFileKeepTheirCommas(t *testing.T) {
	b := newBench(t)
	b.in = "https://a.example/1\n"
	file := b.write("shoal.conf", "field = \"title=h1, h2\"\nfield = price=.price\n")
	b.shoal("--config", file, "run", "--url-file", "-").want(t, exitOK)
	items := queryOf(t, b.api, "POST /api/scraper/url-list-run").Get("itemsConfig")
	if !strings.Contains(items, `"h1, h2"`) || !strings.Contains(items, `".price"`) {
		t.Errorf("itemsConfig %s", items)
	}
}

func TestConfigIsStrict(t *testing.T) {
	for content, want := range map[string]string{
		"hostrate = 3":              `shoal.conf:1: unknown key "hostrate", did you mean "host-rate"?`,
		"\nzzzzzzzzzz = 3":          `shoal.conf:2: unknown key "zzzzzzzzzz"`,
		"listen":                    `shoal.conf:1: want 'key = value'`,
		`listen = "127.0.0.1:1`:     `the quote does not end`,
		"listen = a:1\nlisten=b:1":  `"listen" stands there 2 times`,
		"config = other.conf":       `unknown key "config"`,
		"egress-allow = 10.0.0.0":   `--egress-allow`,
		"host-rate = 11":            `--host-rate: above 0 and at most --max-host-rate (10)`,
		"host-rate = NaN":           `--host-rate`,
		"host-connections = 0":      `--host-connections`,
		"roles = fetcher,cook":      `--roles: "cook" is none of`,
		"listen = 8080":             `--listen: want HOST:PORT`,
		"egress-origin = a.b=c.d:1": `--egress-origin: a.b`,
	} {
		b := newBench(t)
		b.run = func(context.Context, ServeConfig) error { return errors.New("it served") }
		b.shoal("serve", "--config", b.write("shoal.conf", content)).want(t, exitUsage, want)
	}
	b := newBench(t)
	b.shoal("jobs", "--config", "missing.conf").want(t, exitUsage, "--config", "missing.conf")
}

func TestServePublishesItsAddressWhileItServes(t *testing.T) {
	b := newBench(t)
	b.run = func(ctx context.Context, config ServeConfig) error {
		config.Ready("[::]:1234")
		if got, err := readLine(b.data, addressFile); err != nil || got != "http://127.0.0.1:1234" {
			return fmt.Errorf("address %q: %v", got, err)
		}
		return nil
	}
	b.shoal("serve").want(t, exitOK, "Serving http://127.0.0.1:1234", "API key in "+b.data)
	if _, err := readLine(b.data, addressFile); err == nil {
		t.Error("the address is still published")
	}
	b.run = func(context.Context, ServeConfig) error { return errors.New("port taken") }
	b.shoal("serve").want(t, exitFailed, "port taken")
}

func FuzzConfig(f *testing.F) {
	f.Add("data = ./data\n# c\nfield = \"a=b # c\" # d\nfield=x=y\n")
	f.Add("= 1")
	f.Add("a = \"")
	f.Fuzz(func(t *testing.T, content string) {
		c, err := parseConfig("f", strings.NewReader(content))
		if err != nil {
			return
		}
		var again strings.Builder
		for _, key := range c.keys {
			for _, value := range c.flag[key] {
				if strings.ContainsAny(value, `"`) {
					return // a quote inside a value cannot be written inside quotes
				}
				fmt.Fprintf(&again, "%s = \"%s\"\n", key, value)
			}
		}
		d, err := parseConfig("f", strings.NewReader(again.String()))
		if err != nil || !maps.EqualFunc(c.flag, d.flag, func(a, b []string) bool { return cmp.Equal(a, b) }) {
			t.Errorf("%q became %q: %v", content, again.String(), err)
		}
	})
}
