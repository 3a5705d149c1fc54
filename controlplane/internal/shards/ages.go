package shards

import (
	"slices"
	"time"
)

// Ages returns how long ago each node known to this leader was last heard.
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

// Short returns the names of all fetchers heard, in order, if all their disks are short; else none.
func (t *Tracker) Short() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.config.Now()
	for name, m := range t.members {
		switch {
		case !t.fresh(m, now) || m.beat.Leaving:
		case !m.beat.Short:
			return nil
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
