package egress

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/telemetry"
)

// metrics count outbound traffic. Every label value has its counter from the start: an exchange
// only adds to it.
type metrics struct {
	exchanges, dials prometheus.Counter
	failures         map[fault.Code]prometheus.Counter
	metadata         prometheus.Counter // refusals
	reserved         prometheus.Counter
	credentials      prometheus.Counter
}

func newMetrics(to *telemetry.Metrics) *metrics {
	refusals := to.Counters("shoal_egress_refusals_total",
		"Addresses that the address guard refused, by reason.", "reason")
	m := &metrics{
		exchanges: to.Counter("shoal_egress_exchanges_total",
			"Requests sent, whatever their outcome."),
		dials: to.Counter("shoal_egress_dials_total",
			"Attempts to open a connection. Other exchanges reuse a kept one."),
		failures:    map[fault.Code]prometheus.Counter{},
		metadata:    refusals.WithLabelValues("metadata"),
		reserved:    refusals.WithLabelValues("reserved"),
		credentials: refusals.WithLabelValues("credentials"),
	}
	failures := to.Counters("shoal_egress_failures_total",
		"Exchanges without a complete response, by page code.", "code")
	for code, entry := range fault.Catalog() {
		if entry.Status == 0 {
			m.failures[code] = failures.WithLabelValues(string(code))
		}
	}
	return m
}

// measure exports what the client holds.
func (c *Client) measure(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (*Client, bool) { return c, true }).
		Gauge("shoal_egress_exchanges_open", "Exchanges under way.",
			func(c *Client) float64 { return float64(len(c.slots)) }).
		Gauge("shoal_egress_buffered_bytes", "Bytes of response bodies held.",
			func(c *Client) float64 { return float64(c.held.total()) }).
		Gauge("shoal_egress_connections_idle", "Idle connections.", func(c *Client) float64 {
			c.pool.mu.Lock()
			defer c.pool.mu.Unlock()
			return float64(c.pool.count)
		}).
		Declare(to)
}

// note counts the error of an exchange.
func (m *metrics) note(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if counter := m.failures[fault.CodeOf(err)]; counter != nil {
		counter.Inc()
	}
}
