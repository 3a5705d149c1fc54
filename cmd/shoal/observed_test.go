package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/lifecycle"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/testkit/synthweb"
)

var update = flag.Bool("update", false, "write the golden list of metrics anew")

// metricsGolden lists every metric of a process with all roles: name, type and labels. Dashboards and alert rules are
// checked against it (deploy/monitoring).
const metricsGolden = "testdata/metrics.txt"

// TestMetricsAreListed keeps a metric from changing under the dashboards that use it.
func TestMetricsAreListed(t *testing.T) {
	n := newTestNode(t, ServeConfig{Data: t.TempDir(), Roles: roleNames(), Capacity: 1, HostRate: 1, HostConnections: 1,
		MaxHostRate: 1, MaxHostConnections: 1}, io.Discard, nil)
	var list bytes.Buffer
	for _, metric := range n.metrics.Declared() {
		list.WriteString(metric.String() + "\n")
	}
	if *update {
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

// newTestNode makes a process with all roles on embedded services.
func newTestNode(t *testing.T, config ServeConfig, log io.Writer, tracer *telemetry.Tracer) *node {
	t.Helper()
	services, err := openServices(t.Context(), config.Services, nodeName, filepath.Join(config.Data, "rows"),
		slog.New(slog.DiscardHandler), clock.System{}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := services.close(); err != nil {
			t.Error(err)
		}
	})
	signals, err := openSignals(t.Context(), config, nodeName, log)
	if err != nil {
		t.Fatal(err)
	}
	signals.tracer = tracer
	t.Cleanup(signals.close)
	n := &node{config: config, name: nodeName, clock: clock.System{}, ids: ids.Random{Now: time.Now}, signals: signals, services: services,
		point: func(string) {}}
	t.Cleanup(n.close)
	if err := n.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// whileServing serves a synthetic web's demo configuration and calls do meanwhile. It returns when the service has ended.
func whileServing(t *testing.T, web *synthweb.Web, log io.Writer, tracer *telemetry.Tracer,
	do func(n *node, demo *demoCommand, server string)) {
	t.Helper()
	demo := &demoCommand{Data: t.TempDir(), Listen: "127.0.0.1:0"}
	config := demo.config(web)
	ready := make(chan string, 1)
	config.Ready = func(listening string) { ready <- "http://" + listening }
	n := newTestNode(t, config, log, tracer)
	if err := n.listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- lifecycle.Run(ctx, n.parts()...) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	select {
	case server := <-ready:
		do(n, demo, server)
	case err := <-ended:
		ended <- nil
		t.Fatalf("the service ended: %v", err)
	}
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

func quietTerminal() *terminal {
	return &terminal{out: io.Discard, err: io.Discard, clock: clock.System{}, service: service{token: localToken}}
}

// TestMetricsStayBounded runs the demo, 2,000 pages of 40 hosts with all kinds of trouble, and looks at what it leaves.
func TestMetricsStayBounded(t *testing.T) {
	web := startWeb(t, synthweb.Demo())
	var families []*dto.MetricFamily
	whileServing(t, web, io.Discard, nil, func(n *node, demo *demoCommand, server string) {
		if err := demo.show(t.Context(), quietTerminal(), web, server); err != nil {
			t.Fatal(err)
		}
		var err error
		if families, err = n.metrics.Gather(); err != nil {
			t.Fatal(err)
		}
	})

	const bound = 60 // series of one metric, buckets not counted
	urlish := regexp.MustCompile(`://|/|\.example|[0-9a-f]{24}`)
	names := map[string]bool{}
	for _, family := range families {
		names[family.GetName()] = true
		if n := len(family.GetMetric()); n > bound && !strings.HasPrefix(family.GetName(), "shoal_apiserver_call") {
			t.Errorf("%s has %d series, want at most %d", family.GetName(), n, bound)
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if strings.HasPrefix(family.GetName(), "shoal_") && urlish.MatchString(label.GetValue()) {
					t.Errorf("%s has the label %s=%q: no run, customer, host or address belongs there",
						family.GetName(), label.GetName(), label.GetValue())
				}
			}
		}
	}
	// A metric that a busy process never shows is one that nothing feeds.
	golden, err := os.ReadFile(metricsGolden)
	if err != nil {
		t.Fatal(err)
	}
	quiet := []string{"shoal_apiserver_rate_limited_total", "shoal_controlplane_routine_failures_total",
		"shoal_node_certificate_expiry_timestamp_seconds"}
	for line := range strings.Lines(string(golden)) {
		name, _, _ := strings.Cut(line, " ")
		if !names[name] && !slices.Contains(quiet, name) {
			t.Errorf("%s is declared and was not shown after a busy run", name)
		}
	}
	t.Logf("%d metrics, %d series", len(families), series(families))
	want := map[string]float64{"shoal_ingest_pages_total": 2000, "shoal_stream_published_records_total": 6000}
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
