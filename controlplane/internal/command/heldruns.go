package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// MaxWhy bounds the reason why a run is held back or was not judged, in bytes.
const MaxWhy = 500

// Verdict says why a run is to be held back, or why it could not be judged. At most one is set.
type Verdict struct{ Odd, Unjudged string }

// ReleaseRunPayload releases a run of the customer that is held back. It ignores any other run.
type ReleaseRunPayload struct {
	Customer string `cbor:"1,keyasint"`
	Job      ids.ID `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (ReleaseRunPayload) Declaration() Declaration {
	return Declaration{Number: 243, By: APIServer, Kept: true, Since: state.HeldRunsSince}
}

func (ReleaseRunPayload) yields(None) {}

// Needs implements Needing for runs that are held back.
func (p CloseRunPayload) Needs() uint32 {
	if p.Odd != "" {
		return state.HeldRunsSince
	}
	return 1
}
