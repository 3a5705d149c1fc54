package telemetry_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/telemetry"
)

// Declared metrics are exported at /metrics, and listed in the reference.
func ExampleMetrics() {
	metrics := telemetry.NewMetrics()
	metrics.Counters("shoal_fetcher_hops_total", "Redirects followed.",
		"tier").WithLabelValues("plain").Inc()
	for _, declared := range metrics.Declared() {
		fmt.Println(declared.Name, declared.Type, declared.Labels, declared.Help)
	}
	// Output: shoal_fetcher_hops_total counter [tier] Redirects followed.
}
