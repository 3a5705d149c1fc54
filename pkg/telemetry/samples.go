package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Samples are metrics whose values are read together at a scrape, from one snapshot of a component.
// Values that a component counts anyway cost nothing between two scrapes.
type Samples[S any] struct {
	read     func() (S, bool)
	declared []Declared
	metrics  []sample[S]
}

type sample[S any] struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	single func(S) float64
	each   func(from S, emit func(value float64, labels ...string))
}

// NewSamples begins a set. read is called at each scrape and must be quick; false: there is nothing
// to export now.
func NewSamples[S any](read func() (S, bool)) *Samples[S] { return &Samples[S]{read: read} }

// Counter adds a count that only grows while the process lives.
func (s *Samples[S]) Counter(name, help string, value func(S) float64) *Samples[S] {
	return s.add(Declared{Name: name, Type: counterType, Help: help},
		sample[S]{kind: prometheus.CounterValue, single: value})
}

// Gauge adds a value.
func (s *Samples[S]) Gauge(name, help string, value func(S) float64) *Samples[S] {
	return s.add(Declared{Name: name, Type: gaugeType, Help: help},
		sample[S]{kind: prometheus.GaugeValue, single: value})
}

// Gauges adds values by labels, each emitted once with a value for every label.
func (s *Samples[S]) Gauges(
	name, help string, labels []string,
	each func(from S, emit func(value float64, labels ...string)),
) *Samples[S] {
	return s.add(Declared{Name: name, Type: gaugeType, Labels: labels, Help: help},
		sample[S]{kind: prometheus.GaugeValue, each: each})
}

// Counters is Gauges for counts.
func (s *Samples[S]) Counters(
	name, help string, labels []string,
	each func(from S, emit func(value float64, labels ...string)),
) *Samples[S] {
	return s.add(Declared{Name: name, Type: counterType, Labels: labels, Help: help},
		sample[S]{kind: prometheus.CounterValue, each: each})
}

func (s *Samples[S]) add(d Declared, m sample[S]) *Samples[S] {
	m.desc = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	s.declared, s.metrics = append(s.declared, d), append(s.metrics, m)
	return s
}

// Declare makes the set part of a process's metrics.
func (s *Samples[S]) Declare(to *Metrics) { to.declare(s, s.declared...) }

// Describe implements prometheus.Collector.
func (s *Samples[S]) Describe(to chan<- *prometheus.Desc) {
	for _, m := range s.metrics {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (s *Samples[S]) Collect(to chan<- prometheus.Metric) {
	from, any := s.read()
	if !any {
		return
	}
	for _, m := range s.metrics {
		if m.single != nil {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.single(from))
			continue
		}
		m.each(from, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
		})
	}
}

// Truth is the value of a gauge that says yes or no.
func Truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
