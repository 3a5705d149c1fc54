package fetcher

import (
	"container/list"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/model"
)

// Bounds of what is remembered of hosts.
const (
	maxRemembered = 65_536
	rememberFor   = 30 * time.Minute
	emptyPages    = 3 // in a row: from then on a host's pages are taken for ones that scripts make
)

// hostMemory knows which tiers do not get through to a host although a dearer one does, so that the next page begins with
// the one that worked. It forgets after a while: then the cheaper ones are tried again. Hosts that need no dearer tier
// take no room.
type hostMemory struct {
	most int

	mu     sync.Mutex
	places map[string]*list.Element
	noted  *list.List // of *hostNote, the last noted first
}

type hostNote struct {
	host   string
	futile model.TierSet
	empty  int // pages in a row that had no rows but in a browser
	until  time.Time
}

func newHostMemory(most int) *hostMemory {
	return &hostMemory{most: most, places: map[string]*list.Element{}, noted: list.New()}
}

// first is the place of the tier to begin with: the cheapest that is not known to be futile, or the cheapest of all when
// there is none.
func (m *hostMemory) first(host string, tiers []model.Tier, now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	place := m.places[host]
	if place == nil {
		return 0
	}
	note := place.Value.(*hostNote)
	if !now.Before(note.until) {
		m.drop(place)
		return 0
	}
	for i, tier := range tiers {
		if !note.futile.Has(tier) {
			return i
		}
	}
	return 0
}

// note remembers that some tiers did not get through and another one did.
func (m *hostMemory) note(host string, futile model.TierSet, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note := m.renewed(host, now)
	note.futile |= futile
}

// noteEmpty remembers that a page of some tiers had no rows and that of a browser had some. One such page says little of
// the others, which are to cost no more than they have to.
func (m *hostMemory) noteEmpty(host string, tiers model.TierSet, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note := m.renewed(host, now)
	if note.empty++; note.empty >= emptyPages {
		note.futile |= tiers
	}
}

// noteFilled remembers that a page had rows without a browser.
func (m *hostMemory) noteFilled(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	place := m.places[host]
	if place == nil {
		return
	}
	if note := place.Value.(*hostNote); note.futile == 0 {
		m.drop(place)
	} else {
		note.empty = 0
	}
}

// renewed is a host's note, good for a while from now. It needs the lock.
func (m *hostMemory) renewed(host string, now time.Time) *hostNote {
	note := &hostNote{host: host}
	if place := m.places[host]; place != nil {
		if earlier := place.Value.(*hostNote); now.Before(earlier.until) {
			note = earlier
		}
		m.drop(place)
	}
	note.until = now.Add(rememberFor)
	m.places[host] = m.noted.PushFront(note)
	if m.noted.Len() > m.most {
		m.drop(m.noted.Back())
	}
	return note
}

// forget is for a host where what worked works no more: everything is tried again.
func (m *hostMemory) forget(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if place := m.places[host]; place != nil {
		m.drop(place)
	}
}

// drop needs the lock.
func (m *hostMemory) drop(place *list.Element) {
	delete(m.places, m.noted.Remove(place).(*hostNote).host)
}
