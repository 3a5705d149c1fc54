package telemetry

import (
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// value returns a metric's only series with these labels ("name=value").
func value(t *testing.T, m *Metrics, name string, labels ...string) float64 {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if hasLabels(metric, labels) {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
					float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Fatalf("there is no %s %v", name, labels)
	return 0
}

func hasLabels(metric *dto.Metric, want []string) bool {
	have := map[string]bool{}
	for _, label := range metric.GetLabel() {
		have[label.GetName()+"="+label.GetValue()] = true
	}
	for _, label := range want {
		if !have[label] {
			return false
		}
	}
	return true
}

func TestDeclaredMetricsAreShown(t *testing.T) {
	m := NewMetrics()
	m.Counter("shoal_test_things_total", "Things.").Add(3)
	m.Counters("shoal_test_pages_total", "Pages.", "tier").WithLabelValues("plain").Inc()
	m.Gauge("shoal_test_held_bytes", "Bytes.").Set(7)
	m.Histogram("shoal_test_step_seconds", "Steps.", FastSeconds).Observe(.1)
	m.Histograms("shoal_test_call_seconds", "Calls.", FastSeconds,
		"operation").WithLabelValues("svc_a").Observe(.1)
	NewSamples(func() (int, bool) { return 5, true }).
		Counter("shoal_test_samples_total", "Samples.", func(n int) float64 { return float64(n) }).
		Gauges("shoal_test_lag_records", "Lag.", []string{"topic"},
			func(n int, emit func(float64, ...string)) {
				emit(float64(n), "tasks")
				emit(float64(2*n), "pages")
			}).
		Declare(m)
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{3, "shoal_test_things_total", nil},
		{1, "shoal_test_pages_total", []string{"tier=plain"}},
		{7, "shoal_test_held_bytes", nil},
		{1, "shoal_test_step_seconds", nil},
		{1, "shoal_test_call_seconds", []string{"operation=svc_a"}},
		{5, "shoal_test_samples_total", nil},
		{10, "shoal_test_lag_records", []string{"topic=pages"}},
	} {
		if got := value(t, m, c.name, c.labels...); got != c.want {
			t.Errorf("%s is %g, want %g", c.name, got, c.want)
		}
	}
	var listed []string
	for _, d := range m.Declared() {
		listed = append(listed, d.String())
	}
	const want = `shoal_test_call_seconds histogram operation
shoal_test_held_bytes gauge
shoal_test_lag_records gauge topic
shoal_test_pages_total counter tier
shoal_test_samples_total counter
shoal_test_step_seconds histogram
shoal_test_things_total counter`
	if got := strings.Join(listed, "\n"); got != want {
		t.Errorf("declared are\n%s\nwant\n%s", got, want)
	}
	if value(t, m, "go_goroutines") < 1 || value(t, m, "process_cpu_seconds_total") < 0 {
		t.Error("the process says nothing of itself")
	}
}

func TestSamplesCanHaveNothingToShow(t *testing.T) {
	m := NewMetrics()
	NewSamples(func() (int, bool) { return 0, false }).
		Gauge("shoal_test_window_units", "Units.", func(int) float64 { return 1 }).Declare(m)
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "shoal_test_window_units" {
			t.Error("a metric without a sample is shown")
		}
	}
}

func TestNamesThatSayTooLittleOrTooMuchAreRefused(t *testing.T) {
	for name, declare := range map[string]func(*Metrics){
		"no prefix":             func(m *Metrics) { m.Gauge("held_bytes", "") },
		"no thing":              func(m *Metrics) { m.Gauge("shoal_bytes", "") },
		"counter without total": func(m *Metrics) { m.Counter("shoal_test_things", "") },
		"gauge with total":      func(m *Metrics) { m.Gauge("shoal_test_things_total", "") },
		"milliseconds": func(m *Metrics) {
			m.Histogram("shoal_test_call_ms", "",
				FastSeconds)
		},
		"a label for runs": func(m *Metrics) {
			m.Counters("shoal_test_pages_total", "",
				"job")
		},
		"a label for hosts": func(m *Metrics) {
			m.Counters("shoal_test_pages_total", "", "tier",
				"host")
		},
		"declared twice": func(m *Metrics) {
			m.Gauge("shoal_test_held_bytes", "")
			m.Gauge("shoal_test_held_bytes", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it is taken")
				}
			}()
			declare(NewMetrics())
		})
	}
}

func TestNobodyHasToListen(t *testing.T) {
	var m *Metrics
	m.Counter("shoal_test_things_total", "").Inc()
	NewSamples(func() (int, bool) { return 0, true }).Gauge("shoal_test_a_bytes", "",
		func(int) float64 { return 0 }).Declare(m)
	if families, err := m.Gather(); err != nil || len(families) > 0 {
		t.Errorf("%v, %v", families, err)
	}
}

func TestNodeTellsOfItself(t *testing.T) {
	m := NewMetrics()
	Node{Name: "f1", Roles: []string{"fetcher", "ingest"}, Version: "1.2",
		Disk: &Disk{Dir: t.TempDir(), Floor: NewFloor(7)}}.Declare(m)
	if value(t, m, "shoal_node_info", "node=f1", "version=1.2") != 1 ||
		value(t, m, "shoal_node_role_info", "node=f1", "role=ingest") != 1 {
		t.Error("no name or role")
	}
	free, size := value(t, m, "shoal_node_disk_free_bytes"),
		value(t, m, "shoal_node_disk_size_bytes")
	if free <= 0 || size < free {
		t.Errorf("%g of %g bytes are free", free, size)
	}
	if floor := value(t, m, "shoal_node_disk_floor_bytes"); floor != 7 {
		t.Errorf("the floor is %g", floor)
	}
}
