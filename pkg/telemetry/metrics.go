package telemetry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
)

// Metrics is where the parts of a process declare their metrics, and what /metrics exports. It
// refuses names that are not shoal_<part>_<thing>_<unit>, and labels whose values grow with the
// crawled data or the customers. A nil Metrics accepts declarations and exports nothing.
type Metrics struct {
	registry *prometheus.Registry

	mu       sync.Mutex
	declared []Declared
}

// Declared is a metric as it was declared.
type Declared struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
}

// String returns the metric in one line: name, type, labels.
func (d Declared) String() string {
	if len(d.Labels) == 0 {
		return d.Name + " " + d.Type
	}
	return d.Name + " " + d.Type + " " + strings.Join(d.Labels, ",")
}

// The types.
const (
	counterType   = "counter"
	gaugeType     = "gauge"
	histogramType = "histogram"
)

// NewMetrics begins with the metrics of the Go runtime and the operating system for the process.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gather implements prometheus.Gatherer.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) {
	if m == nil {
		return nil, nil
	}
	return m.registry.Gather()
}

// Declared lists what was declared, by name.
func (m *Metrics) Declared() []Declared {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(slices.Values(m.declared),
		func(a, b Declared) int { return strings.Compare(a.Name, b.Name) })
}

// Counter declares a count of events.
func (m *Metrics) Counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.declare(c, Declared{Name: name, Type: counterType, Help: help})
	return c
}

// Counters declares a count by labels. Every label has a fixed set of values, or one value per
// node.
func (m *Metrics) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.declare(c, Declared{Name: name, Type: counterType, Labels: labels, Help: help})
	return c
}

// Gauge declares a value that its owner sets.
func (m *Metrics) Gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	m.declare(g, Declared{Name: name, Type: gaugeType, Help: help})
	return g
}

// Histogram declares a distribution over buckets with these upper bounds.
func (m *Metrics) Histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.declare(h, Declared{Name: name, Type: histogramType, Help: help})
	return h
}

// Histograms is Histogram by labels, like Counters for Counter.
func (m *Metrics) Histograms(name, help string, buckets []float64,
	labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help,
		Buckets: buckets}, labels)
	m.declare(h, Declared{Name: name, Type: histogramType, Labels: labels, Help: help})
	return h
}

// declare registers a collector with its declarations. A name that breaks the rules, or is declared
// twice, is a programming error: it panics.
func (m *Metrics) declare(c prometheus.Collector, all ...Declared) {
	for _, d := range all {
		if err := d.check(); err != nil {
			panic(err)
		}
	}
	if m == nil {
		return
	}
	m.registry.MustRegister(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.declared = append(m.declared, all...)
}

var (
	namePattern = regexp.MustCompile(`^shoal_[a-z]+(_[a-z0-9]+)+$`)
	// labels are all labels that metrics may have. None names customers or crawled data.
	labels = []string{"class", "code", "kind", "level", "node", "operation", "outcome", "parser",
		"reason", "role", "routine", "state", "status",
		"step", "table", "tier", "topic", "version", "where"}
)

func (d Declared) check() error {
	if !namePattern.MatchString(d.Name) {
		return fmt.Errorf("telemetry: %q is not shoal_<part>_<thing>_<unit>", d.Name)
	}
	if (d.Type == counterType) != strings.HasSuffix(d.Name, "_total") {
		return fmt.Errorf("telemetry: %s: counters, and only they, end in _total", d.Name)
	}
	for _, unit := range []string{"_ms", "_millis", "_milliseconds", "_micros_total", "_kb", "_mb",
		"_minutes"} {
		if strings.HasSuffix(d.Name, unit) {
			return fmt.Errorf("telemetry: %s: seconds and bytes are the units", d.Name)
		}
	}
	for _, label := range d.Labels {
		if !slices.Contains(labels, label) {
			return fmt.Errorf("telemetry: %s: no metric has a label %q", d.Name, label)
		}
	}
	return nil
}

// Buckets for durations and sizes.
var (
	// FastSeconds is for work on this machine: 100 µs to 10 s.
	FastSeconds = []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5,
		10}
	// SlowSeconds is for waiting on the outside world: 5 ms to 2 min.
	SlowSeconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	// Sizes is for the sizes of groups.
	Sizes = []float64{1, 5, 10, 50, 100, 250, 500, 1000, 2000, 5000}
	// Bytes is 1 KiB to 64 MiB.
	Bytes = prometheus.ExponentialBuckets(1<<10, 4, 9)
)
