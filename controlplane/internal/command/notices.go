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

// PreferNoticesPayload sets how a customer is told of events; others stay as they are.
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

// TakeMailsPayload takes e-mails that are due, so that nothing joins them any more. Those that were
// taken before and are due again are among them. Nothing is sent by it.
type TakeMailsPayload struct {
	Most uint32 `cbor:"1,keyasint"` // e-mails; 100 at most
}

// Declaration implements Payload.
func (TakeMailsPayload) Declaration() Declaration {
	return Declaration{Number: 112, By: APIServer, Since: state.NoticesSince}
}

func (TakeMailsPayload) yields([]state.Mail) {}

// RecordMailsPayload notes what became of e-mails that were taken, and of letters that were due.
// What is not known any more is passed over.
type RecordMailsPayload struct {
	Done  []ids.ID    `cbor:"1,keyasint,omitempty"` // sent, or refused for good
	Later []MailLater `cbor:"2,keyasint,omitempty"`
}

// MailLater is an e-mail that is tried again.
type MailLater struct {
	ID    ids.ID `cbor:"1,keyasint"`
	After int64  `cbor:"2,keyasint"` // milliseconds from the command's time on
	// Untried says that the server failed, not the e-mail: it only goes behind the others.
	Untried bool `cbor:"3,keyasint,omitempty"`
}

// Declaration implements Payload.
func (RecordMailsPayload) Declaration() Declaration {
	return Declaration{Number: 113, By: APIServer, Since: state.NoticesSince}
}

func (RecordMailsPayload) yields(None) {}

// PutThresholdPayload sets below which balance a customer's wallet is low. A balance that is below
// it already is no news. Faults: unauthorized for a customer that does not exist.
type PutThresholdPayload struct {
	Customer  string `cbor:"1,keyasint"`
	Threshold int64  `cbor:"2,keyasint,omitempty"` // micros, not below 0
}

// Declaration implements Payload.
func (PutThresholdPayload) Declaration() Declaration {
	return Declaration{Number: 160, By: APIServer, Kept: true, Since: state.NoticesSince}
}

func (PutThresholdPayload) yields(state.Wallet) {}
