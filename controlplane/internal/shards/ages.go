package shards

import (
	"slices"
	"time"
)

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

// Short names the fetchers when the disks of all that are heard are short, in order; else none.
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
