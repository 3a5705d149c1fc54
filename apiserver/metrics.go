package apiserver

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/apiserver/agents"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/oidc"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/telemetry"
)

// callSeconds spans the latencies that clients notice: 1 ms to 30 s.
var callSeconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 30}

// metrics counts calls. It is the chain's observer.
type metrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	limited *prometheus.CounterVec
	refused prometheus.Counter
	signIns *prometheus.CounterVec
}

var _ operation.Observer = (*metrics)(nil)

func newMetrics(to *telemetry.Metrics) *metrics {
	return &metrics{
		calls: to.Counters("shoal_apiserver_calls_total",
			"Calls answered, by operation and status class.",
			"operation", "status"),
		seconds: to.Histograms("shoal_apiserver_call_seconds",
			"Time from a call's header to its answer.", callSeconds,
			"operation", "status"),
		limited: to.Counters("shoal_apiserver_rate_limited_total",
			"Calls refused by a rate limit, by the limit's class.", "class"),
		signIns: to.Counters("shoal_apiserver_sign_ins_total",
			"Password sign-ins and related events, by outcome: signed_in, refused, too_often, "+
				"signed_out, password_changed, letter_asked, password_recovered, "+
				"signed_up.", "outcome"),
		refused: to.Counter("shoal_apiserver_connections_refused_total",
			"Connections refused because their address or the server has reached its limit."),
	}
}

// Answered implements operation.Observer.
func (m *metrics) Answered(operation string, status int, took time.Duration) {
	class := statusClass(status)
	m.calls.WithLabelValues(operation, class).Inc()
	m.seconds.WithLabelValues(operation, class).Observe(took.Seconds())
}

// Limited implements operation.Observer.
func (m *metrics) Limited(class limits.Class) { m.limited.WithLabelValues(string(class)).Inc() }

// statusClass keeps 502 apart: there a customer's site failed, not the service.
func statusClass(status int) string {
	if status == http.StatusBadGateway {
		return "502"
	}
	switch status / 100 {
	case 2:
		return "2xx"
	case 3:
		return "3xx"
	case 4:
		return "4xx"
	}
	return "5xx"
}

// measure exports values that are counted elsewhere. issuer may be nil.
func measure(to *telemetry.Metrics, streams *limits.Streams, issuer *oidc.Issuer) {
	telemetry.NewSamples(func() (int, bool) { return streams.Total(), true }).
		Gauge("shoal_apiserver_streams_open", "Open event streams.",
			func(open int) float64 { return float64(open) }).
		Declare(to)
	telemetry.NewSamples(func() (state oidc.State, any bool) {
		if issuer != nil {
			state = issuer.State()
		}
		return state, issuer != nil
	}).
		Gauge("shoal_apiserver_issuer_reachable", "1 if the last fetch of the OpenID Connect "+
			"issuer's keys succeeded, else 0.",
			func(s oidc.State) float64 { return telemetry.Truth(s.Reachable) }).
		Gauge("shoal_apiserver_issuer_keys", "Keys of the OpenID Connect issuer that its tokens "+
			"are checked with.",
			func(s oidc.State) float64 { return float64(s.Keys) }).
		Gauge("shoal_apiserver_issuer_keys_age_seconds", "Time since the OpenID Connect issuer's "+
			"keys were fetched.",
			func(s oidc.State) float64 { return s.Age.Seconds() }).
		Counters("shoal_apiserver_issuer_fetches_total", "Fetches of the OpenID Connect issuer's "+
			"keys, by outcome: ok, failed.", []string{"outcome"},
			func(s oidc.State, emit func(float64, ...string)) {
				emit(float64(s.Fetched), "ok")
				emit(float64(s.Failed), "failed")
			}).
		Declare(to)
}

// measureAgents exports the number of open agent sessions and its limit.
func measureAgents(to *telemetry.Metrics, gateway *agents.Gateway) {
	telemetry.NewSamples(func() (int, bool) { return gateway.Sessions(), true }).
		Gauge("shoal_apiserver_agent_sessions", "Open agent sessions.",
			func(open int) float64 { return float64(open) }).
		Gauge("shoal_apiserver_agent_sessions_limit", "Limit of open agent sessions.",
			func(int) float64 { return agents.MaxSessions }).
		Declare(to)
}

// measureCertificate exports when the certificate expires. certificate may be nil.
func measureCertificate(to *telemetry.Metrics, certificate *Certificate) {
	telemetry.NewSamples(func() (ends time.Time, any bool) {
		if certificate != nil {
			ends = certificate.Expires()
		}
		return ends, certificate != nil
	}).
		Gauge("shoal_apiserver_certificate_expiry_timestamp_seconds",
			"When the certificate of customers' connections expires, in Unix time.",
			func(ends time.Time) float64 { return float64(ends.Unix()) }).
		Declare(to)
}
