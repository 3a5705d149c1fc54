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
	emptyPages  = 3 // in a row: from then on a host's pages are taken for ones that scripts make
)

// Hosts knows which tiers do not get through to a host although a dearer one does. So the next
// page begins with the one that worked. It forgets after a while: then the cheaper ones are tried
// again. Hosts that need no dearer tier take no room.
type Hosts struct {
	mu    sync.Mutex
	notes *simplelru.LRU[string, *hostNote] // the last noted stay
}

type hostNote struct {
	futile model.TierSet
	empty  int // pages in a row that had no rows but in a browser
	until  time.Time
}

// NewHosts makes a memory of no host, with room for so many.
func NewHosts(most int) *Hosts {
	return &Hosts{notes: cache.NewLRU[string, *hostNote](most, nil)}
}

// First is the place of the tier to begin with. That is the cheapest that is not known to be
// futile, or the cheapest of all when there is none.
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

// Note remembers that some tiers did not get through and another one did.
func (m *Hosts) Note(host string, futile model.TierSet, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note := m.renewLocked(host, now)
	note.futile |= futile
}

// NoteEmpty remembers that a page of some tiers had no rows and that of a browser had some. One
// such page says little of the others, which are to cost no more than they have to.
func (m *Hosts) NoteEmpty(host string, tiers model.TierSet, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note := m.renewLocked(host, now)
	if note.empty++; note.empty >= emptyPages {
		note.futile |= tiers
	}
}

// NoteFilled remembers that a page had rows without a browser.
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

// renewLocked is a host's note, good for a while from now.
func (m *Hosts) renewLocked(host string, now time.Time) *hostNote {
	note, known := m.notes.Peek(host)
	if !known || !now.Before(note.until) {
		note = &hostNote{}
	}
	note.until = now.Add(RememberFor)
	m.notes.Add(host, note)
	return note
}

// Forget is for a host where what worked works no more: everything is tried again.
func (m *Hosts) Forget(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes.Remove(host)
}
