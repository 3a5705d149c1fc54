package cache

import "shoal.dev/shoal/pkg/telemetry"

// Measure declares what a cache counts.
func Measure(c Cache, to *telemetry.Metrics) {
	telemetry.NewSamples(func() (Counts, bool) { return c.Counts(), true }).
		Counter("shoal_cache_hits_total", "Values asked for and found.",
			func(c Counts) float64 { return float64(c.Hits) }).
		Counter("shoal_cache_misses_total", "Values asked for and not found.",
			func(c Counts) float64 { return float64(c.Misses) }).
		Counter("shoal_cache_failures_total", "Requests to Redis that failed or took too long.",
			func(c Counts) float64 { return float64(c.Failures) }).
		Counter("shoal_cache_fallbacks_total", "Limits that the process decided alone, because "+
			"Redis did not answer.",
			func(c Counts) float64 { return float64(c.Alone) }).
		Gauge("shoal_cache_down", "1 while Redis does not answer.", func(c Counts) float64 {
			if c.Down {
				return 1
			}
			return 0
		}).
		Declare(to)
}
