package fetcher

import (
	"shoal.dev/shoal/pkg/telemetry"
)

// measure exports the counts that the fetcher keeps anyway.
func (f *Fetcher) measure(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (Counts, bool) { return f.Counts(), true }).
		Counter("shoal_fetcher_retries_total", "Retries of pages.",
			func(c Counts) float64 { return float64(c.Retries) }).
		Counter("shoal_fetcher_markers_total", "Markers passed on.",
			func(c Counts) float64 { return float64(c.Markers) }).
		Counter("shoal_fetcher_dropped_tasks_total",
			"Tasks dropped because they were held already, or above the limit of held tasks.",
			func(c Counts) float64 { return float64(c.Dropped) }).
		Counter("shoal_fetcher_undecodable_records_total",
			"Records skipped: undecodable, or without a budget.",
			func(c Counts) float64 { return float64(c.Undecodable) }).
		Counter("shoal_fetcher_shards_taken_total", "Shards taken over.",
			func(c Counts) float64 { return float64(c.Taken) }).
		Counter("shoal_fetcher_shards_released_total", "Shards handed over by a planned release.",
			func(c Counts) float64 { return float64(c.Released) }).
		Counter("shoal_fetcher_leases_lapsed_total",
			"Shards dropped because their lease had lapsed.",
			func(c Counts) float64 { return float64(c.Lapsed) }).
		Counter("shoal_fetcher_pages_refused_total", "Pages whose rows the log refused for "+
			"their size. They are errors of their links.",
			func(c Counts) float64 { return float64(c.Refused) }).
		Counter("shoal_fetcher_heartbeat_failures_total", "Heartbeats that got no answer.",
			func(c Counts) float64 { return float64(c.LostBeats) }).
		Gauge("shoal_fetcher_tasks_open", "Open tasks.",
			func(c Counts) float64 { return float64(c.Open) }).
		Gauge("shoal_fetcher_tasks_waiting", "Tasks waiting for their turn.",
			func(c Counts) float64 { return float64(c.Waiting) }).
		Gauge("shoal_fetcher_requests_open", "Requests under way, extraction included.",
			func(c Counts) float64 { return float64(c.Turns) }).
		Gauge("shoal_fetcher_shards_held", "Shards held.",
			func(c Counts) float64 { return float64(c.Shards) }).
		Gauge("shoal_fetcher_hosts_ready", "Hosts that may be asked now and wait for a free "+
			"worker.",
			func(c Counts) float64 { return float64(c.ReadyHosts) }).
		Gauge("shoal_fetcher_hosts_known", "Hosts remembered.",
			func(c Counts) float64 { return float64(c.Hosts) }).
		Gauge("shoal_fetcher_held_bytes", "Bytes of bodies and unpublished pages held.",
			func(c Counts) float64 { return float64(c.HeldBytes) }).
		Counter("shoal_fetcher_kept_bodies_total", "Pages whose bodies were written into packs.",
			func(c Counts) float64 { return float64(c.Kept.Bodies) }).
		Counter("shoal_fetcher_kept_bytes_total", "Bytes of body packs written.",
			func(c Counts) float64 { return float64(c.Kept.Bytes) }).
		Counter("shoal_fetcher_packs_total", "Body packs written.",
			func(c Counts) float64 { return float64(c.Kept.Packs) }).
		Counter("shoal_fetcher_packs_displaced_total", "Body packs removed because their "+
			"customer exceeded its quota of bytes.",
			func(c Counts) float64 { return float64(c.Kept.Displaced) }).
		Counter("shoal_fetcher_lost_bodies_total", "Pages whose bodies should have been kept but "+
			"were too large, or refused by the blob store.",
			func(c Counts) float64 { return float64(c.Kept.Lost) }).
		Gauge("shoal_fetcher_lease_age_seconds", "Time since the heartbeat that the leases "+
			"count from; 0 without shards.",
			func(c Counts) float64 { return c.LeaseAge.Seconds() }).
		Declare(to)
}
