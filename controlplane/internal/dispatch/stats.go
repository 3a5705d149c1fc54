package dispatch

import "time"

// Stats is a snapshot of the dispatcher.
type Stats struct {
	Window int // the most seqs out at a time
	Out    int // seqs out or proposed
	Aside  int // seqs set aside: no room at their host or in their shard
	Unsent int // dispatches not published yet
	Runs   int // runs that are not closed
	Hosts  int // hosts with seqs out or set aside
	// Markers that have not come back, and the age of the oldest.
	Markers      int
	OldestMarker time.Duration
}

// Stats returns a snapshot. It is safe to call at any time.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Stats{Window: d.config.Window, Out: d.out, Aside: d.aside, Runs: len(d.runs),
		Hosts: len(d.hosts)}
	now := d.config.Now()
	for i := range d.shards {
		s.Unsent += len(d.shards[i].unsent)
		markers := d.shards[i].markers
		s.Markers += len(markers)
		if len(markers) > 0 {
			s.OldestMarker = max(s.OldestMarker, now.Sub(markers[0].at))
		}
	}
	return s
}
