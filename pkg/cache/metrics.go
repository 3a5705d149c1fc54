package cache

import "shoal.dev/shoal/pkg/telemetry"

// Measure exports the counts of a cache as metrics.
func Measure(c Cache, to *telemetry.Metrics) {
	telemetry.NewSamples(func() (Counts, bool) { return c.Counts(), true }).
		Counter("shoal_cache_hits_total", "Cache lookups that found a value.",
			func(c Counts) float64 { return float64(c.Hits) }).
		Counter("shoal_cache_misses_total", "Cache lookups that found no value.",
			func(c Counts) float64 { return float64(c.Misses) }).
		Counter("shoal_cache_failures_total", "Requests to Redis that failed or took too long.",
			func(c Counts) float64 { return float64(c.Failures) }).
		Counter("shoal_cache_fallbacks_total", "Rate limit checks that the process made alone "+
			"because Redis did not answer.",
			func(c Counts) float64 { return float64(c.Alone) }).
		Gauge("shoal_cache_down", "1 while Redis does not answer.",
			func(c Counts) float64 { return telemetry.Truth(c.Down) }).
		Declare(to)
}
