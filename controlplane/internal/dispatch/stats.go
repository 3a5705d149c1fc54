package dispatch

import "time"

// Stats is what the dispatcher holds at one moment.
type Stats struct {
	Window int // most seqs out at a time
	Out    int // seqs out or proposed
	Aside  int // seqs set aside: no room at their host or in their shard
	Unsent int // dispatches not published yet
	Runs   int // runs that are not closed
	Hosts  int // hosts with seqs out or set aside
	// Markers not returned yet, and how long ago the oldest of them was sent.
	Markers      int
	OldestMarker time.Duration
}

// Stats is safe to call at any time.
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
