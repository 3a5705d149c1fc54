package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// MaxWhy is how many bytes say why a run is held back.
const MaxWhy = 500

// ReleaseRunPayload has a run of the customer count as others do again. One that is not held back
// changes nothing.
type ReleaseRunPayload struct {
	Customer string `cbor:"1,keyasint"`
	Job      ids.ID `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (ReleaseRunPayload) Declaration() Declaration {
	return Declaration{Number: 243, By: APIServer, Kept: true, Since: state.HeldRunsSince}
}

func (ReleaseRunPayload) yields(None) {}

// Needs implements Needing: a run that is held back does.
func (p CloseRunPayload) Needs() uint32 {
	if p.Odd != "" {
		return state.HeldRunsSince
	}
	return 1
}
