package command

import "shoal.dev/shoal/pkg/ids"

// DropArchivedPayload says that the archive durably has everything sealed up to Upto. It removes
// that from the state, except for each customer's newest few and trials that still answer identical
// ones. It changes nothing unless Generation is the state's and From is the index archived so far.
type DropArchivedPayload struct {
	Generation ids.ID `cbor:"1,keyasint"`
	From       uint64 `cbor:"2,keyasint"`
	Upto       uint64 `cbor:"3,keyasint"`
	// Keep is how many runs, and how many entries, of each customer stay in the state.
	Keep uint32 `cbor:"4,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DropArchivedPayload) Declaration() Declaration {
	return Declaration{Number: 80, By: Leader, Since: 2}
}

func (DropArchivedPayload) yields(None) {}

// ExpireRunsPayload says that the history has expired runs by their age. It removes those that the
// state still keeps beside the archive.
type ExpireRunsPayload struct {
	Runs []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ExpireRunsPayload) Declaration() Declaration {
	return Declaration{Number: 81, By: Leader, Since: 2}
}

func (ExpireRunsPayload) yields(None) {}
