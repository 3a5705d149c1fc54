package apiserver

import (
	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/apiserver/internal/contracts"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// ContractsConfig is the configuration of Contracts.
type ContractsConfig = contracts.Config

// Contracts is a kind of background work. It ends contracts at the payment provider that nobody is
// to pay for any more.
func Contracts(config ContractsConfig) work.Kind { return contracts.Kind(config) }

// CountRefusedEndings declares the counter of endings that the payment provider refused.
func CountRefusedEndings(to *telemetry.Metrics) prometheus.Counter {
	return contracts.CountRefused(to)
}
