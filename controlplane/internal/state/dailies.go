package state

import (
	"slices"
)

// Daily counts what a customer has read today through an endpoint with daily limits. The day is
// UTC, by state time.
type Daily struct {
	Customer  string `cbor:"1,keyasint"`
	Day       int64  `cbor:"2,keyasint"`           // since 1970-01-01
	Reads     uint32 `cbor:"3,keyasint,omitempty"` // begun today
	Out       uint32 `cbor:"4,keyasint,omitempty"` // reads that are still out
	Uncharged uint32 `cbor:"5,keyasint,omitempty"` // reads that ended uncharged
	// Domains lists the domains read, ascending, with their reads. There are at most Reads of them.
	Domains []DomainReads `cbor:"6,keyasint,omitempty"`
}

// DomainReads counts the reads of one domain, named by its hash.
type DomainReads struct {
	Domain uint64 `cbor:"1,keyasint"`
	Reads  uint32 `cbor:"2,keyasint"`
}

// Clone returns a copy that may be changed.
func (d *Daily) Clone() *Daily {
	c := *d
	c.Domains = slices.Clone(d.Domains)
	return &c
}

// Read is the read that a dispatched seq counts as.
type Read struct {
	Day    int64  `cbor:"1,keyasint"`
	Domain uint64 `cbor:"2,keyasint"`
}

var dailiesTable = define(1, "dailies",
	index("id", true, func(d *Daily) []any { return []any{d.Customer} }),
	index("day", true, func(d *Daily) []any { return []any{d.Day, d.Customer} }),
).untold()

// Daily returns a customer's record, nil when it has read nothing lately.
func (v *View) Daily(customer string) *Daily { return dailiesTable.first(v, "id", customer) }

// DailiesByDay visits all records, oldest first, until visit returns false.
func (v *View) DailiesByDay(visit func(*Daily) bool) {
	dailiesTable.each(v, false, visit, "day_prefix")
}

// PutDaily adds or replaces a record.
func (t *Tx) PutDaily(d *Daily) { dailiesTable.put(t, d) }

// RemoveDaily removes a record.
func (t *Tx) RemoveDaily(d *Daily) { dailiesTable.remove(t, d) }
