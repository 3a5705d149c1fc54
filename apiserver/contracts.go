package apiserver

import (
	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/apiserver/internal/contracts"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// ContractsConfig is what the ending of subscriptions works with.
type ContractsConfig = contracts.Config

// Contracts is the ending, at the payment provider, of what nobody is to pay for any more. It is a
// kind of background work.
func Contracts(config ContractsConfig) work.Kind { return contracts.Kind(config) }

// CountRefusedEndings declares the count of endings that the payment provider refused.
func CountRefusedEndings(to *telemetry.Metrics) prometheus.Counter {
	return contracts.CountRefused(to)
}
