package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// IssueTicketPayload makes a ticket, which is valid for a minute, and once. If the hash exists, the
// answer is that ticket. Beyond 20 per customer the oldest is removed. Faults: unauthorized when
// the customer does not exist.
type IssueTicketPayload struct {
	Hash     state.Hash `cbor:"1,keyasint"`
	Customer string     `cbor:"2,keyasint"`
	// Who asked: a key, or a sign-in with its subject.
	Key     ids.ID     `cbor:"3,keyasint,omitzero"`
	Session state.Hash `cbor:"4,keyasint,omitzero"`
	Subject string     `cbor:"5,keyasint,omitempty"`
	Admin   bool       `cbor:"6,keyasint,omitempty"`
	Until   int64      `cbor:"7,keyasint,omitempty"`
}

// Declaration implements Payload.
func (IssueTicketPayload) Declaration() Declaration {
	return Declaration{Number: 166, By: APIServer, Since: state.TicketsSince}
}

func (IssueTicketPayload) yields(state.Ticket) {}

// TakeTicketPayload uses a ticket up. Faults: unauthorized when there is none, or it has expired.
type TakeTicketPayload struct {
	Hash state.Hash `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (TakeTicketPayload) Declaration() Declaration {
	return Declaration{Number: 167, By: APIServer, Kept: true, Since: state.TicketsSince}
}

func (TakeTicketPayload) yields(state.Ticket) {}
