package state

import (
	"time"

	"shoal.dev/shoal/pkg/ids"
)

// HarvestsSince is the first cluster version in which sitemaps are harvested.
const HarvestsSince = 2

// HarvestState says how it stands with a harvest.
type HarvestState string

// The states of a harvest.
const (
	HarvestRunning HarvestState = "RUNNING" // background work reads sitemaps
	HarvestDone    HarvestState = "DONE"    // Count is final
	HarvestFailed  HarvestState = "FAILED"  // nothing could be read; Code says why
)

// Harvest is one reading of the sitemaps of a scraper's site. What was found is in the row store.
// Times are in Unix milliseconds.
type Harvest struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Scraper  ids.ID `cbor:"3,keyasint"`
	// URL is where the scraper began when it was asked, in its canonical form. Cap is how many
	// addresses are taken. IgnoreRobots reads sitemaps that robots.txt forbids, too.
	URL          string       `cbor:"4,keyasint"`
	Cap          uint32       `cbor:"5,keyasint"`
	IgnoreRobots bool         `cbor:"6,keyasint,omitempty"`
	State        HarvestState `cbor:"7,keyasint"`
	Count        uint32       `cbor:"8,keyasint,omitempty"` // addresses, once it is DONE
	CreatedAt    int64        `cbor:"9,keyasint"`
	EndedAt      int64        `cbor:"10,keyasint,omitempty"`
	// Wiped says that the row store has nothing of it any more.
	Wiped bool `cbor:"11,keyasint,omitempty"`
	// Operation and Key are those of the call that asked for it; a failure frees them.
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
).untold().watchable()

// Harvest is nil when there is none of that id.
func (v *View) Harvest(id ids.ID) *Harvest { return harvestsTable.first(v, "id", id) }

// WatchHarvest is Harvest, with a channel that is closed when it is another one.
func (v *View) WatchHarvest(id ids.ID) (*Harvest, <-chan struct{}) {
	return harvestsTable.watch(v, id)
}

// HarvestsOf lists a scraper's harvests, the oldest first.
func (v *View) HarvestsOf(scraper ids.ID) []*Harvest {
	return harvestsTable.all(v, "scraper_prefix", scraper)
}

// NewestHarvest is a scraper's newest harvest that has not failed; nil: there is none.
func (v *View) NewestHarvest(scraper ids.ID) (newest *Harvest) {
	for _, h := range v.HarvestsOf(scraper) {
		if h.State != HarvestFailed {
			newest = h
		}
	}
	return newest
}

// wipedAt is the hour of the day, in UTC, at which what was found goes.
const wipedAt = 2

// LastWipe is when what had been found went for the last time before a moment, or at it.
func LastWipe(now time.Time) time.Time {
	now = now.UTC()
	at := time.Date(now.Year(), now.Month(), now.Day(), wipedAt, 0, 0, 0, time.UTC)
	if at.After(now) {
		at = at.AddDate(0, 0, -1)
	}
	return at
}

// Shows says whether what a harvest found is shown: it is the newest of its scraper, and no wipe
// has come since its end.
func (h *Harvest) Shows(v *View, now time.Time) bool {
	return !h.Wiped && v.isNewest(h) &&
		(h.EndedAt == 0 || h.EndedAt >= LastWipe(now).UnixMilli())
}

// Waits says whether what a harvest found may be shown again: a newer one is under way, and may
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

// Orphaned says whether nobody reads a harvest any more: its scraper is gone, or its customer.
func (h *Harvest) Orphaned(v *View) bool {
	scraper := v.Scraper(h.Scraper)
	return scraper == nil || scraper.Customer != h.Customer || v.Customer(h.Customer).Removed()
}

// Goes says whether a harvest may be forgotten whose rows are gone. Nobody reads it, or its call is
// free to ask anew, or it ended before a time.
func (h *Harvest) Goes(v *View, before int64) bool {
	return h.Orphaned(v) || h.State == HarvestFailed || h.EndedAt != 0 && h.EndedAt <= before
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

// PutHarvest adds or replaces.
func (t *Tx) PutHarvest(h *Harvest) { harvestsTable.put(t, h) }

// RemoveHarvest removes.
func (t *Tx) RemoveHarvest(h *Harvest) { harvestsTable.remove(t, h) }
