package memo

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of what is remembered of hosts.
const (
	MaxHosts    = 65_536
	RememberFor = 30 * time.Minute
	emptyPages  = 3 // in a row; then the host's pages are assumed to need scripts
)

// Hosts remembers which tiers fail at a host where a dearer tier works. So the next page begins
// with the one that worked. Notes expire, and then cheaper tiers are tried again. Hosts that need
// no dearer tier take no room.
type Hosts struct {
	mu    sync.Mutex
	notes *simplelru.LRU[string, *hostNote] // the most recently noted stay
}

type hostNote struct {
	futile model.TierSet
	empty  int // pages in a row with rows only in a browser
	until  time.Time
}

// NewHosts returns an empty memory with room for most hosts.
func NewHosts(most int) *Hosts {
	return &Hosts{notes: cache.NewLRU[string, *hostNote](most, nil)}
}

// First returns the index of the tier to begin with: the cheapest that is not known to be futile,
// or the cheapest if all are.
func (m *Hosts) First(host string, tiers []model.Tier, now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	note, known := m.notes.Peek(host)
	if !known {
		return 0
	}
	if !now.Before(note.until) {
		m.notes.Remove(host)
		return 0
	}
	for i, tier := range tiers {
		if !note.futile.Has(tier) {
			return i
		}
	}
	return 0
}

// Note records tiers that did not get through where another one did.
func (m *Hosts) Note(host string, futile model.TierSet, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note := m.renewLocked(host, now)
	note.futile |= futile
}

// NoteEmpty records that a page had no rows by some tiers and had rows in a browser. One such page
// proves little about the host's other pages, so it takes emptyPages of them.
func (m *Hosts) NoteEmpty(host string, tiers model.TierSet, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note := m.renewLocked(host, now)
	if note.empty++; note.empty >= emptyPages {
		note.futile |= tiers
	}
}

// NoteFilled records that a page had rows without a browser.
func (m *Hosts) NoteFilled(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note, known := m.notes.Peek(host)
	switch {
	case !known:
	case note.futile == 0:
		m.notes.Remove(host)
	default:
		note.empty = 0
	}
}

// renewLocked returns a host's note and extends it from now.
func (m *Hosts) renewLocked(host string, now time.Time) *hostNote {
	note, known := m.notes.Peek(host)
	if !known || !now.Before(note.until) {
		note = &hostNote{}
	}
	note.until = now.Add(RememberFor)
	m.notes.Add(host, note)
	return note
}

// Forget drops a host's note when what worked no longer works: everything is tried again.
func (m *Hosts) Forget(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes.Remove(host)
}
