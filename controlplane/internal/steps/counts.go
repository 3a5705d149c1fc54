package steps

import "sync/atomic"

// Counts counts what the leaderships of a process have done.
type Counts struct {
	Published    atomic.Uint64 // tasks that the log accepted
	Full         atomic.Uint64 // publications refused because the partition was full
	MarkersSent  atomic.Uint64
	MarkersBack  atomic.Uint64 // markers of this leadership that came back
	Redispatched atomic.Uint64 // dispatches found lost and sent again
	Exhausted    atomic.Uint64 // dispatches given up after MaxAttempts
}
