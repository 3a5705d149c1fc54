package shards

import "time"

// Ages says how long ago each node that this leader has heard was heard last.
func (t *Tracker) Ages() map[string]time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.config.Now()
	ages := make(map[string]time.Duration, len(t.members))
	for node, m := range t.members {
		ages[node] = now.Sub(m.heard)
	}
	return ages
}
