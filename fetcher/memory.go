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

// note remembers that some tiers brought nothing and another one did.
func (m *hostMemory) note(host string, futile model.TierSet, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if place := m.places[host]; place != nil {
		futile |= place.Value.(*hostNote).futile
		m.drop(place)
	}
	m.places[host] = m.noted.PushFront(&hostNote{host: host, futile: futile, until: now.Add(rememberFor)})
	if m.noted.Len() > m.most {
		m.drop(m.noted.Back())
	}
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
