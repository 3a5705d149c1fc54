package command

import "shoal.dev/shoal/pkg/ids"

// DropArchivedPayload says that the archive has everything sealed up to Upto, durably. It takes all
// that out of the state but for the newest few of each customer. It changes nothing unless
// Generation is that of the state and From how far it knew the archive to be.
type DropArchivedPayload struct {
	Generation ids.ID `cbor:"1,keyasint"`
	From       uint64 `cbor:"2,keyasint"`
	Upto       uint64 `cbor:"3,keyasint"`
	// Keep is how many runs, and how many entries, of each customer stay.
	Keep uint32 `cbor:"4,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DropArchivedPayload) Declaration() Declaration {
	return Declaration{Number: 80, By: Leader, Since: 2}
}

func (DropArchivedPayload) yields(None) {}
