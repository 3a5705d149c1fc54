package state

import (
	"time"

	"shoal.dev/shoal/pkg/ids"
)

// HarvestsSince is the first cluster version in which sitemaps are harvested.
const HarvestsSince = 2

// HarvestState is the state of a harvest.
type HarvestState string

// The states of a harvest.
const (
	HarvestRunning HarvestState = "RUNNING" // background work reads sitemaps
	HarvestDone    HarvestState = "DONE"    // Count is final
	HarvestFailed  HarvestState = "FAILED"  // nothing could be read; Code says why
)

// Harvest is one reading of the sitemaps of a scraper's site. The row store has what it found.
// Times are in Unix milliseconds.
type Harvest struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Scraper  ids.ID `cbor:"3,keyasint"`
	// URL is the scraper's start address at the time of the call, in canonical form. Cap bounds the
	// addresses taken. IgnoreRobots also reads sitemaps that robots.txt forbids.
	URL          string       `cbor:"4,keyasint"`
	Cap          uint32       `cbor:"5,keyasint"`
	IgnoreRobots bool         `cbor:"6,keyasint,omitempty"`
	State        HarvestState `cbor:"7,keyasint"`
	Count        uint32       `cbor:"8,keyasint,omitempty"` // addresses, once it is DONE
	CreatedAt    int64        `cbor:"9,keyasint"`
	EndedAt      int64        `cbor:"10,keyasint,omitempty"`
	// Wiped says that the row store has none of its addresses any more.
	Wiped bool `cbor:"11,keyasint,omitempty"`
	// Operation and Key are those of the call that asked for it. If the harvest fails, the key may
	// be used again.
	Operation string `cbor:"12,keyasint,omitempty"`
	Key       string `cbor:"13,keyasint,omitempty"`
	// Code and Detail say why it failed.
	Code   string `cbor:"14,keyasint,omitempty"`
	Detail string `cbor:"15,keyasint,omitempty"`
}

var harvestsTable = define(HarvestsSince, "harvests",
	index("id", true, func(h *Harvest) []any { return []any{h.ID} }),
	index("scraper", true, func(h *Harvest) []any { return []any{h.Scraper, h.CreatedAt, h.ID} }),
	index("customer", true, func(h *Harvest) []any { return []any{h.Customer, h.ID} }),
).told((*Harvest).telling).watchable()

// Harvest returns the harvest with an id, or nil.
func (v *View) Harvest(id ids.ID) *Harvest { return harvestsTable.first(v, "id", id) }

// WatchHarvest returns the harvest and a channel that is closed when the harvest changes.
func (v *View) WatchHarvest(id ids.ID) (*Harvest, <-chan struct{}) {
	return harvestsTable.watch(v, id)
}

// HarvestsOf lists a scraper's harvests, the oldest first.
func (v *View) HarvestsOf(scraper ids.ID) []*Harvest {
	return harvestsTable.all(v, "scraper_prefix", scraper)
}

// NewestHarvest returns a scraper's newest harvest that has not failed; nil: there is none.
func (v *View) NewestHarvest(scraper ids.ID) (newest *Harvest) {
	for _, h := range v.HarvestsOf(scraper) {
		if h.State != HarvestFailed {
			newest = h
		}
	}
	return newest
}

// wipedAt is the hour of the day, in UTC, at which harvested addresses are wiped.
const wipedAt = 2

// LastWipe returns the time of the last wipe at or before now.
func LastWipe(now time.Time) time.Time {
	now = now.UTC()
	at := time.Date(now.Year(), now.Month(), now.Day(), wipedAt, 0, 0, 0, time.UTC)
	if at.After(now) {
		at = at.AddDate(0, 0, -1)
	}
	return at
}

// Shows reports whether a harvest's addresses are shown. It must be its scraper's newest, and no
// wipe may have come since its end.
func (h *Harvest) Shows(v *View, now time.Time) bool {
	return !h.Wiped && v.isNewest(h) &&
		(h.EndedAt == 0 || h.EndedAt >= LastWipe(now).UnixMilli())
}

// Waits reports whether a harvest's addresses may be shown again: a newer one is under way and may
// fail.
func (h *Harvest) Waits(v *View, now time.Time) bool {
	if h.State != HarvestDone || h.EndedAt < LastWipe(now).UnixMilli() {
		return false
	}
	newer := false
	for _, other := range v.HarvestsOf(h.Scraper) {
		switch {
		case other.ID == h.ID:
			newer = true
		case newer && other.State == HarvestDone:
			return false
		}
	}
	return true
}

// Orphaned reports whether a harvest has lost its readers: its scraper or its customer is gone.
func (h *Harvest) Orphaned(v *View) bool {
	scraper := v.Scraper(h.Scraper)
	return scraper == nil || scraper.Customer != h.Customer || v.Customer(h.Customer).Removed()
}

// Goes reports whether a wiped harvest may be forgotten. It failed and its call may be repeated, or
// it ended before a time, or nobody reads it. The count of one that is done answers repeated calls
// even if its scraper is gone.
func (h *Harvest) Goes(v *View, before int64) bool {
	return v.Customer(h.Customer).Removed() || h.Orphaned(v) && h.State != HarvestDone ||
		h.State == HarvestFailed || h.EndedAt != 0 && h.EndedAt <= before
}

func (v *View) isNewest(h *Harvest) bool {
	newest := v.NewestHarvest(h.Scraper)
	return newest != nil && newest.ID == h.ID
}

// HarvestsFor lists a customer's harvests.
func (v *View) HarvestsFor(customer string) []*Harvest {
	return harvestsTable.all(v, "customer_prefix", customer)
}

// EachHarvest visits all harvests, until visit returns false.
func (v *View) EachHarvest(visit func(*Harvest) bool) {
	harvestsTable.each(v, false, visit, "id_prefix")
}

// PutHarvest adds or replaces a harvest.
func (t *Tx) PutHarvest(h *Harvest) { harvestsTable.put(t, h) }

// RemoveHarvest removes a harvest.
func (t *Tx) RemoveHarvest(h *Harvest) { harvestsTable.remove(t, h) }
