package hold

import (
	"testing"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/clock"
)

// A host of somebody else's shard is shared with all fetchers.
func TestPaceAtAHost(t *testing.T) {
	h := New(Config{Clock: clock.System{}, ShardOf: func(host string) int { return len(host) }})
	h.fetchers = 4
	h.shards[3] = &shard{}
	pace := func(rate float64, connections int) frontier.Pace {
		return frontier.Pace{Rate: rate, Connections: connections}
	}
	if got := h.paceAt("abc", pace(2, 2)); got != (pace(2, 2)) {
		t.Errorf("pace at an own host is %+v", got)
	}
	if got := h.paceAt("ab", pace(2, 2)); got != (pace(0.5, 1)) {
		t.Errorf("pace at another's host is %+v", got)
	}
}
