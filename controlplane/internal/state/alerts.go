package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// AlertsSince is the first cluster version in which customers are told what changed between runs.
const AlertsSince = 2

// Alerts says which changes between a group's runs its customer is told of.
type Alerts struct {
	// On lists ADDED, REMOVED and CHANGED, each at most once.
	On []string `cbor:"1,keyasint"`
	// Key names the fields that identify a row; none: the default of comparisons.
	Key []string `cbor:"2,keyasint,omitempty"`
}

// RunChanges says, in a notice, what changed from one run to the next.
type RunChanges struct {
	From    ids.ID `cbor:"1,keyasint,omitzero"` // the run before
	Added   uint64 `cbor:"2,keyasint,omitempty"`
	Removed uint64 `cbor:"3,keyasint,omitempty"`
	Changed uint64 `cbor:"4,keyasint,omitempty"`
	// Examples describes some of the rows in words.
	Examples []string `cbor:"5,keyasint,omitempty"`
	// Key names the fields that identified a row; none: the default of comparisons.
	Key []string `cbor:"6,keyasint,omitempty"`
}

// AlertID is the id of the notice of a run's changes, and of the work that looks for them.
func AlertID(customer string, job ids.ID) ids.ID {
	return NoticeID(model.RunChanged, customer, job, 0)
}
