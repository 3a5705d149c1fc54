package state

import "shoal.dev/shoal/pkg/ids"

// HeldRunsSince is the first cluster version in which unusual runs are held back.
const HeldRunsSince = 2

// HeldRun marks a run that is held back because it differs from the runs before it. Its rows are
// readable by its id. Nobody sees it as its scraper's last run until its customer releases it.
type HeldRun struct {
	Job      ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Scraper  ids.ID `cbor:"3,keyasint"`
	Why      string `cbor:"4,keyasint"` // in words
	At       int64  `cbor:"5,keyasint"` // Unix milliseconds
	// as in Notice, for the one of its release
	Pages  uint64 `cbor:"6,keyasint,omitempty"`
	Items  uint64 `cbor:"7,keyasint,omitempty"`
	Errors uint32 `cbor:"8,keyasint,omitempty"`
	Micros int64  `cbor:"9,keyasint,omitempty"`
}

var heldRunsTable = define(HeldRunsSince, "heldRuns",
	index("id", true, func(h *HeldRun) []any { return []any{h.Job} }),
	index("customer", true, func(h *HeldRun) []any { return []any{h.Customer, h.At, h.Job} }),
).told((*HeldRun).telling)

// HeldRun returns the mark of a run; nil: it is not held back.
func (v *View) HeldRun(job ids.ID) *HeldRun { return heldRunsTable.first(v, "id", job) }

// HeldRunsOf lists a customer's marks, the longest held first.
func (v *View) HeldRunsOf(customer string) []*HeldRun {
	return heldRunsTable.all(v, "customer_prefix", customer)
}

// PutHeldRun adds or replaces a mark.
func (t *Tx) PutHeldRun(h *HeldRun) { heldRunsTable.put(t, h) }

// RemoveHeldRun removes a mark.
func (t *Tx) RemoveHeldRun(h *HeldRun) { heldRunsTable.remove(t, h) }

func (h *HeldRun) telling() telling {
	return telling{h.Customer, struct {
		Scraper ids.ID `json:"scraperId"`
		Why     string `json:"why"`
	}{h.Scraper, h.Why}}
}
