package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// usualModel is the model's configuration without flags.
var usualModel = service.ModelFlags{Timeout: 30 * time.Second, MaxAnswer: 4000, PageTokens: 40_000,
	DayTokens: 5_000_000}

func TestModelFlags(t *testing.T) {
	b := newShell(t)
	var got service.Config
	b.run = func(_ context.Context, config service.Config) error { got = config; return nil }
	t.Setenv("SHOAL_MODEL_KEY", "secret")
	b.shoal("serve", "--model-url", "http://10.1.2.3/v1", "--model-name", "m", "--model-allow",
		"10.1.2.3/32", "--model-price-out",
		"0.6", "--model-day-cost", "5").want(t, terminal.ExitOK)
	want := usualModel
	want.URL, want.Name, want.Key, want.PriceOut, want.DayCost = "http://10.1.2.3/v1", "m",
		"secret", 0.6, 5
	want.Allow = []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}
	if diff := compare(service.Config{Model: want}, service.Config{Model: got.Model}); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--model-url", "http://h"}, "go together"},
		{[]string{"--model-name", "m"}, "go together"},
		{[]string{"--model-url", "h", "--model-name", "m"}, "--model-url"},
		{[]string{"--model-url", "http://h", "--model-name", "m", "--model-key-file", "f"},
			"only one"},
		{[]string{"--model-url", "http://h", "--model-name", "m", "--model-day-cost", "1"},
			"--model-price-in"},
		{[]string{"--model-url", "http://h", "--model-name", "m", "--model-price-in=-1"},
			"--model-price-in"},
		{[]string{"--model-url", "http://h", "--model-name", "m", "--model-max-answer", "0"},
			"--model-max-answer"},
	} {
		b.shoal(append([]string{"serve"}, c.flags...)...).want(t, terminal.ExitUsage, c.says)
	}
}

func TestStripeFlags(t *testing.T) {
	b := newShell(t)
	var got service.Config
	b.run = func(_ context.Context, config service.Config) error { got = config; return nil }
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	flags := func(key, secret, to string) []string {
		return []string{"serve", "--stripe-key-file", key, "--stripe-secret-file", secret,
			"--stripe-return-url", to}
	}
	key, secret, wrong := file("sk_test_1\n"), file("whsec_1\n"), file("kumquat")
	b.shoal(flags(key, secret, "https://h.test")...).want(t, terminal.ExitOK)
	if got.Stripe.KeyFile != key || got.Stripe.ReturnURL != "https://h.test" {
		t.Errorf("%+v", got.Stripe)
	}
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{flags(key, secret, "https://h.test")[:5], "go together"},
		{flags(wrong, secret, "https://h.test"), "sk_"},
		{flags(key, wrong, "https://h.test"), "whsec_"},
		{flags(key, file(""), "https://h.test"), "is empty"},
		{flags(key, key+".gone", "https://h.test"), "--stripe-secret-file"},
		{flags(key, secret, "http://h.test"), "want https://"},
	} {
		b.shoal(c.flags...).want(t, terminal.ExitUsage, c.says)
	}
}

func TestCallFlags(t *testing.T) {
	b := newShell(t)
	var got service.Config
	b.run = func(_ context.Context, config service.Config) error { got = config; return nil }
	want := service.CallFlags{
		Rates: service.Rates{"run": {Count: 20, Per: time.Minute},
			"anonymous": {Count: 7, Per: time.Second},
			"top-up":    {Count: 1_000_000, Per: 24 * time.Hour}},
		CustomerRates: service.Rates{"run": {Count: 30, Per: time.Hour}},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
			netip.MustParsePrefix("fd00::/8")},
	}
	b.shoal("serve", "--rate", "run=20/1m,anonymous=7/1s", "--rate", "top-up=1000000/24h",
		"--customer-rate", "run=30/60m",
		"--trusted-proxies", "10.0.0.0/8,fd00::/8").want(t, terminal.ExitOK)
	if diff := compare(service.Config{Calls: want}, service.Config{Calls: got.Calls}); diff != "" {
		t.Error(diff)
	}
	t.Setenv("SHOAL_RATE", "run=20/1m,anonymous=7/1s,top-up=1000000/24h")
	t.Setenv("SHOAL_CUSTOMER_RATE", "run=30/1h")
	t.Setenv("SHOAL_TRUSTED_PROXIES", "10.0.0.0/8,fd00::/8")
	b.shoal("serve").want(t, terminal.ExitOK)
	if diff := compare(service.Config{Calls: want}, service.Config{Calls: got.Calls}); diff != "" {
		t.Errorf("from the environment: %s", diff)
	}
	for _, name := range []string{"SHOAL_RATE", "SHOAL_CUSTOMER_RATE", "SHOAL_TRUSTED_PROXIES"} {
		// t.Setenv above restores the old value at the test's end.
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "shoal.conf")
	if err := os.WriteFile(file, []byte("rate = run=20/1m,anonymous=7/1s\nrate = "+
		"top-up=1000000/24h\ncustomer-rate = run=30/1h\ntrusted-proxies = 10.0.0.0/8,fd00::/8\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	b.shoal("serve", "--config", file).want(t, terminal.ExitOK)
	if diff := compare(service.Config{Calls: want}, service.Config{Calls: got.Calls}); diff != "" {
		t.Errorf("from a file: %s", diff)
	}
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--rate", "walk=1/1m"},
			`--rate: "walk" is none of agents, anonymous, general, group-run`},
		{[]string{"--rate", "run"}, "--rate"},
		{[]string{"--rate", "run=10"}, "want COUNT/PER"},
		{[]string{"--rate", "run=/1m"}, "want COUNT/PER"},
		{[]string{"--rate", "run=10/m"}, "want COUNT/PER"},
		{[]string{"--rate", "run=0/1m"}, "want 1 to 1000000 calls in 1s to 24h0m0s"},
		{[]string{"--rate", "run=1/25h"}, "want 1 to 1000000 calls in 1s to 24h0m0s"},
		{[]string{"--rate", "run=1/1ms"}, "want 1 to 1000000 calls in 1s to 24h0m0s"},
		{[]string{"--customer-rate", "walk=1/1m"}, `--customer-rate: "walk" is none of`},
		{[]string{"--customer-rate", "anonymous=1/1m"}, "--customer-rate: anonymous"},
		{[]string{"--trusted-proxies", "10.0.0.1"}, "--trusted-proxies"},
		{[]string{"--rate", "run=1/1m", "--no-rate-limits"}, "nothing is limited"},
	} {
		b.shoal(append([]string{"serve"}, c.flags...)...).want(t, terminal.ExitUsage, c.says)
	}
}

func TestServeDefaults(t *testing.T) {
	b := newShell(t)
	var got service.Config
	b.run = func(_ context.Context, config service.Config) error { got = config; return nil }
	b.shoal("serve").want(t, terminal.ExitOK)
	want := usualConfig()
	want.Data, want.SelfKey = b.data, true
	want.Roles = []string{"controlplane", "fetcher", "ingest", "billing", "apiserver"}
	if diff := compare(want, got); diff != "" {
		t.Error(diff)
	}
}

// usualConfig is the configuration without flags.
func usualConfig() service.Config {
	return service.Config{Listen: "127.0.0.1:8080", Model: usualModel,
		Backups: service.BackupFlags{Every: 24 * time.Hour, Keep: 7},
		Mail:    service.MailFlags{Encryption: "starttls"},
		Traces:  service.Traces{Ratio: 0.01}, LogMB: 64, LogFiles: 2, FreeMB: 1024, BodyMB: 10240,
		HistoryDays: 400,
		Cluster: service.ClusterConfig{Listen: "0.0.0.0:7400", GossipListen: "0.0.0.0:7401",
			Capacity:        1,
			ElectionTimeout: 500 * time.Millisecond},
		Services: service.ServicesConfig{KafkaPrefix: "shoal.", RedisPrefix: "shoal:"},
		HostRate: 1, HostConnections: 2, MaxHostRate: 10, MaxHostConnections: 8,
		FetchTimeout: 30 * time.Second, Lease: 10 * time.Second, MarkerEvery: 3 * time.Second,
		ArchiveEvery: 10 * time.Second, ArchiveKeep: 10,
		StopWithin: 30 * time.Second}
}

func TestServeAsANodeOfACluster(t *testing.T) {
	b := newShell(t)
	var got service.Config
	b.run = func(_ context.Context, config service.Config) error { got = config; return nil }
	b.shoal("serve", "--identity", "/etc/f1.pem", "--join", "a:7401,b:7401", "--capacity", "3",
		"--leave-on-stop",
		"--kafka-brokers", "k1:9092,k2:9092", "--clickhouse-url", "http://c:8123/shoal",
		"--ops-listen", ":7402").want(t, terminal.ExitOK)
	want := usualConfig()
	want.Data, want.OpsListen = b.data, ":7402"
	want.Cluster.Identity, want.Cluster.Capacity, want.Cluster.LeaveOnStop = "/etc/f1.pem", 3, true
	want.Cluster.Join = []string{"a:7401", "b:7401"}
	want.Services.KafkaBrokers = []string{"k1:9092", "k2:9092"}
	want.Services.ClickhouseURL = "http://c:8123/shoal"
	if diff := compare(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--roles", "fetcher"}, "needs --identity"},
		{[]string{"--join", "a:7401"}, "needs --identity"},
		{[]string{"--bootstrap"}, "needs --identity"},
		{[]string{"--identity", "x.pem", "--join", "a:1"}, "--kafka-brokers and --clickhouse-url"},
		{[]string{"--identity", "x.pem", "--kafka-brokers", "k:1", "--clickhouse-url",
			"http://c/d"}, "--bootstrap creates it"},
		{[]string{"--identity", "x.pem", "--kafka-brokers", "k:1", "--clickhouse-url", "http://c/d",
			"--blobs", "dir:/blobs"}, "--blobs: the nodes of a cluster share a bucket"},
		{[]string{"--capacity", "0"}, "--capacity"},
		{[]string{"--capacity", "1001"}, "--capacity"},
		{[]string{"--election-timeout", "499ms"}, "--election-timeout: 500ms to 30s"},
		{[]string{"--election-timeout", "31s"}, "--election-timeout: 500ms to 30s"},
		{[]string{"--gossip-listen", "nowhere"}, "--gossip-listen: want HOST:PORT"},
		{[]string{"--kafka-replicas", "-1"}, "--kafka-replicas"},
		{[]string{"--kafka-prefix", "a b/"}, "--kafka-prefix"},
		{[]string{"--log-mb", "0"}, "--log-mb: 1 to 10000"},
		{[]string{"--log-mb", "10001"}, "--log-mb: 1 to 10000"},
		{[]string{"--log-files", "0"}, "--log-files: 1 to 100"},
		{[]string{"--log-files", "101"}, "--log-files: 1 to 100"},
		{[]string{"--free-mb=-1"}, "--free-mb: 0 to 1048576"},
		{[]string{"--free-mb", "1048577"}, "--free-mb: 0 to 1048576"},
		{[]string{"--body-mb", "127"}, "--body-mb: 128 to 1048576"},
		{[]string{"--body-mb", "1048577"}, "--body-mb: 128 to 1048576"},
		{[]string{"--stop-grace=-3s"}, "--stop-grace"},
		{[]string{"--trace-ratio", "4"}, "--trace-ratio"},
		{[]string{"--trace-ratio", "4", "--trace-endpoint", "http://127.0.0.1:4318"},
			"--trace-ratio"},
		{[]string{"--trace-endpoint", "nonsense"}, "--trace-endpoint"},
		{[]string{"--identity", "x.pem", "--kafka-brokers", "k:1", "--clickhouse-url", "http://c/d",
			"--roles", "fetcher",
			"--bootstrap"}, "--bootstrap: only a node with the role controlplane"},
		{[]string{"--cluster-listen", "0.0.0.0:0"},
			"--cluster-listen: want HOST:PORT, with a port from 1"},
		{[]string{"--gossip-listen", "0.0.0.0:70000"},
			"--gossip-listen: want HOST:PORT, with a port from 1"},
		{[]string{"--identity", "x.pem", "--kafka-brokers", "k:1", "--clickhouse-url", "http://c/d",
			"--join", "127.0.0.1:99999"},
			"--join: \"127.0.0.1:99999\": want HOST:PORT, with a port from 1"},
		{[]string{"--identity", "x.pem", "--kafka-brokers", "k:1", "--clickhouse-url", "http://c/d",
			"--join", "nohost"},
			"--join: \"nohost\": want HOST:PORT"},
		{[]string{"--identity", "x.pem", "--kafka-brokers", "k:1", "--clickhouse-url", "http://c/d",
			"--join", ":7401"},
			"--join: \":7401\": want HOST:PORT, with a host"},
		{[]string{"--advertise", "cp1:7400"}, "--advertise: \"cp1:7400\": want a host"},
	} {
		b.shoal(append([]string{"serve"}, c.flags...)...).want(t, terminal.ExitUsage, c.says)
	}
}

func compare(want, got service.Config) string {
	return cmp.Diff(want, got, cmpopts.IgnoreFields(service.Config{}, "Ready", "Notice"),
		cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }))
}

func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	b := newShell(t)
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
identity = /etc/n.pem
join = a:1
kafka-brokers = k:1
clickhouse-url = http://c/d
`)
	t.Setenv("SHOAL_CONFIG", file)
	t.Setenv("SHOAL_HOST_RATE", "4")
	t.Setenv("SHOAL_MAX_HOST_RATE", "40")
	var got service.Config
	b.run = func(_ context.Context, config service.Config) error { got = config; return nil }
	b.shoal("serve", "--max-host-rate", "50").want(t, terminal.ExitOK)
	want := usualConfig()
	want.Data, want.Listen, want.Roles = b.data, "127.0.0.1:1", []string{"fetcher", "ingest"}
	want.Cluster.Identity, want.Cluster.Join = "/etc/n.pem", []string{"a:1"}
	want.Services.KafkaBrokers, want.Services.ClickhouseURL = []string{"k:1"}, "http://c/d"
	want.HostRate, want.MaxHostRate, want.NoRateLimits = 4, 50, true
	want.EgressAllow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("fd00::/8")}
	want.Origins = map[string]string{"*.example": "127.0.0.1:9"}
	if diff := compare(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRepeatedFieldsOfAFileKeepTheirCommas(t *testing.T) {
	b := newShell(t)
	b.in = "https://a.example/1\n"
	file := b.write("shoal.conf", "field = \"title=h1, h2\"\nfield = price=.price\n")
	b.shoal("--config", file, "run", "--url-file", "-").want(t, terminal.ExitOK)
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
		"egress-allow = 10.0.0.5":   `--egress-allow: "10.0.0.5": want a range such as 10.0.0.0/8, or 10.0.0.5/32 for one`,
		"host-rate = 11":            `--host-rate: above 0 and at most --max-host-rate (10)`,
		"host-rate = NaN":           `--host-rate`,
		"host-connections = 0":      `--host-connections`,
		"roles = fetcher,cook":      `--roles: "cook" is none of`,
		"listen = 8080":             `--listen: want HOST:PORT`,
		"egress-origin = a.b=c.d:1": `--egress-origin: a.b`,
	} {
		b := newShell(t)
		b.run = func(context.Context, service.Config) error { return errors.New("it served") }
		b.shoal("serve", "--config", b.write("shoal.conf", content)).want(t, terminal.ExitUsage,
			want)
	}
	b := newShell(t)
	b.shoal("jobs", "--config", "missing.conf").want(t, terminal.ExitUsage, "--config",
		"missing.conf")
}

func TestServePublishesItsAddressWhileItServes(t *testing.T) {
	b := newShell(t)
	b.run = func(ctx context.Context, config service.Config) error {
		config.Ready("[::]:1234")
		if got, err := datadir.ReadLine(b.data, datadir.AddressFile); err != nil ||
			got != "http://127.0.0.1:1234" {
			return fmt.Errorf("address %q: %v", got, err)
		}
		return nil
	}
	b.shoal("serve").want(t, terminal.ExitOK, "Serving http://127.0.0.1:1234", "API key in "+b.data)
	if _, err := datadir.ReadLine(b.data, datadir.AddressFile); err == nil {
		t.Error("the address is still published")
	}
	b.run = func(context.Context, service.Config) error { return errors.New("port taken") }
	b.shoal("serve").want(t, terminal.ExitFailed, "port taken")
}
