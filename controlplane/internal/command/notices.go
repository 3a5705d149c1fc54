package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// ReadNoticesPayload notes that a customer has read a notice, or all of them. Faults: not_found.
type ReadNoticesPayload struct {
	Customer string `cbor:"1,keyasint"`
	ID       ids.ID `cbor:"2,keyasint,omitzero"`  // zero: all that there are
	Unread   bool   `cbor:"3,keyasint,omitempty"` // it is to be read again; with an ID alone
}

// Declaration implements Payload.
func (ReadNoticesPayload) Declaration() Declaration {
	return Declaration{Number: 110, By: APIServer, Since: state.NoticesSince}
}

func (ReadNoticesPayload) yields(state.Inbox) {}

// PreferNoticesPayload sets by which ways a customer is told of events; others stay as they are.
// Faults: limit_reached, when there are more preferences than events.
type PreferNoticesPayload struct {
	Customer string             `cbor:"1,keyasint"`
	Set      []state.Preference `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (PreferNoticesPayload) Declaration() Declaration {
	return Declaration{Number: 111, By: APIServer, Kept: true, Since: state.NoticesSince}
}

func (PreferNoticesPayload) yields(state.Inbox) {}
