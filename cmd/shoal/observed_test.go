package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"shoal.dev/shoal/cmd/shoal/internal/demo"
	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/testkit/synthweb"
)

var Update = flag.Bool("update", false, "write the golden list of metrics anew")

// metricsGolden lists every metric of a process with all roles: name, type and labels. A test
// checks dashboards and alert rules against it (deploy/monitoring).
const metricsGolden = "testdata/metrics.txt"

// TestMetricsAreListed: a metric cannot change unnoticed under the dashboards that use it.
func TestMetricsAreListed(t *testing.T) {
	var list bytes.Buffer
	for _, metric := range declared(t, identity.Roles()...).Declared() {
		list.WriteString(metric.String() + "\n")
	}
	if *Update {
		if err := os.WriteFile(metricsGolden, list.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(metricsGolden)
	if err != nil {
		t.Fatal(err)
	}
	if list.String() != string(golden) {
		t.Errorf("the metrics have changed; run the test with -update, and mend what uses them:\n%s", list.String())
	}
}

// TestMetricsAreThoseOfTheRoles: a voter shows no metrics of fetching, storing and settling.
func TestMetricsAreThoseOfTheRoles(t *testing.T) {
	metrics := declared(t, "controlplane")
	var parts []string
	for _, metric := range metrics.Declared() {
		parts = append(parts, strings.Split(metric.Name, "_")[1])
	}
	for _, part := range []string{"fetcher", "ingest", "billing", "egress", "apiserver"} {
		if slices.Contains(parts, part) {
			t.Errorf("a voter shows metrics of %s", part)
		}
	}
	if !slices.Contains(parts, "controlplane") || !slices.Contains(parts, "node") {
		t.Errorf("it shows those of %v alone", slices.Compact(parts))
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := 0
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "shoal_") {
			series += len(family.GetMetric())
		}
	}
	t.Logf("%d series of ours", series)
}

// declared returns the metrics of a process with these roles, once it serves.
func declared(t *testing.T, roles ...string) *telemetry.Metrics {
	t.Helper()
	config := service.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", Roles: roles, HostRate: 1,
		HostConnections: 1, MaxHostRate: 1, MaxHostConnections: 1, Metrics: telemetry.NewMetrics(),
		Cluster: service.ClusterConfig{Capacity: 1}, Chromium: service.NoChromium}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	config.Ready = func(string) { stop() }
	if err := service.Run(ctx, config); err != nil {
		t.Fatal(err)
	}
	return config.Metrics
}

// whileServing serves the demo on a synthetic web and calls do meanwhile. It returns when the
// service has ended, with its data directory.
func whileServing(t *testing.T, web *synthweb.Web, metrics *telemetry.Metrics,
	tracer *telemetry.Tracer,
	do func(demo *demo.Command, server string)) (data string) {
	t.Helper()
	demo := &demo.Command{Data: t.TempDir(), Listen: "127.0.0.1:0"}
	config := demo.Config(web)
	ready := make(chan string, 1)
	config.Ready = func(listening string) { ready <- "http://" + listening }
	config.Metrics, config.Tracer = metrics, tracer
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx, config) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	select {
	case server := <-ready:
		do(demo, server)
	case err := <-ended:
		ended <- nil
		t.Fatalf("the service ended: %v", err)
	}
	return demo.Data
}

func startWeb(t *testing.T, config synthweb.Config) *synthweb.Web {
	t.Helper()
	web, err := synthweb.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := web.Close(); err != nil {
			t.Error(err)
		}
	})
	return web
}

func quietTerminal() *terminal.Terminal {
	return &terminal.Terminal{Out: io.Discard, Err: io.Discard, Clock: clock.System{}}
}

// TestMetricsStayBounded runs the demo, 2,000 pages of 40 hosts with all kinds of trouble, and
// counts the resulting series.
func TestMetricsStayBounded(t *testing.T) {
	web := startWeb(t, synthweb.Demo())
	var families []*dto.MetricFamily
	metrics := telemetry.NewMetrics()
	whileServing(t, web, metrics, nil, func(demo *demo.Command, server string) {
		if err := demo.Show(t.Context(), quietTerminal(), web, server); err != nil {
			t.Fatal(err)
		}
		var err error
		if families, err = metrics.Gather(); err != nil {
			t.Fatal(err)
		}
	})

	const bound = 96 // series of one metric without buckets: 21 kinds of work in 4 states
	urlish := regexp.MustCompile(`://|/|\.example|[0-9a-f]{24}`)
	names := map[string]bool{}
	for _, family := range families {
		names[family.GetName()] = true
		if n := len(family.GetMetric()); n > bound &&
			!strings.HasPrefix(family.GetName(), "shoal_apiserver_call") {
			t.Errorf("%s has %d series, want at most %d", family.GetName(), n, bound)
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if strings.HasPrefix(family.GetName(), "shoal_") &&
					urlish.MatchString(label.GetValue()) {
					t.Errorf("%s has the label %s=%q: no run, customer, host or address "+
						"belongs there",
						family.GetName(), label.GetName(), label.GetValue())
				}
			}
		}
	}
	// A metric that a busy process never shows is fed by nothing.
	golden, err := os.ReadFile(metricsGolden)
	if err != nil {
		t.Fatal(err)
	}
	quiet := []string{"shoal_apiserver_certificate_expiry_timestamp_seconds",
		"shoal_apiserver_issuer_fetches_total", "shoal_apiserver_issuer_keys",
		"shoal_apiserver_issuer_keys_age_seconds", "shoal_apiserver_issuer_reachable",
		"shoal_apiserver_rate_limited_total", "shoal_apiserver_sign_ins_total",
		"shoal_apiserver_webhook_calls_total",
		"shoal_controlplane_routine_failures_total",
		"shoal_node_certificate_expiry_timestamp_seconds",
		"shoal_node_disk_floor_bytes", "shoal_rowstore_disk_free_bytes"} // the demo has no floor
	for line := range strings.Lines(string(golden)) {
		name, _, _ := strings.Cut(line, " ")
		if !names[name] && !slices.Contains(quiet, name) {
			t.Errorf("%s is declared and was not shown after a busy run", name)
		}
	}
	t.Logf("%d metrics, %d series", len(families), series(families))
	want := map[string]float64{"shoal_ingest_pages_total": 2000,
		"shoal_stream_published_records_total": 6000}
	for name, least := range want {
		if got := sum(families, name); got < least {
			t.Errorf("%s is %g after 2,000 pages", name, got)
		}
	}
}

func series(families []*dto.MetricFamily) (n int) {
	for _, family := range families {
		n += len(family.GetMetric())
	}
	return n
}

// sum adds up the series of a counter.
func sum(families []*dto.MetricFamily, name string) (total float64) {
	for _, family := range families {
		if family.GetName() == name {
			for _, metric := range family.GetMetric() {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return total
}
