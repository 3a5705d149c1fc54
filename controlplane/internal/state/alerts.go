package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// AlertsSince is the first cluster version in which customers are told what changed between runs.
const AlertsSince = 2

// Alerts says of a group which changes from run to run its customer is told of.
type Alerts struct {
	// On are ADDED, REMOVED or CHANGED, each once.
	On []string `cbor:"1,keyasint"`
	// Key are the members that tell rows apart, none: as comparisons do unless told.
	Key []string `cbor:"2,keyasint,omitempty"`
}

// RunChanges is what changed from a run to the next one, of a notice of it.
type RunChanges struct {
	From    ids.ID `cbor:"1,keyasint,omitzero"` // the run before
	Added   uint64 `cbor:"2,keyasint,omitempty"`
	Removed uint64 `cbor:"3,keyasint,omitempty"`
	Changed uint64 `cbor:"4,keyasint,omitempty"`
	// Examples are some of the rows, in words.
	Examples []string `cbor:"5,keyasint,omitempty"`
	// Key are the members that told rows apart, none: those of a comparison unless told.
	Key []string `cbor:"6,keyasint,omitempty"`
}

// AlertID is the id of the notice of what changed up to a run, and of the work that looks for it.
func AlertID(customer string, job ids.ID) ids.ID {
	return NoticeID(model.RunChanged, customer, job, 0)
}
