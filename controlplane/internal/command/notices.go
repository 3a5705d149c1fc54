package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// ReadNoticesPayload marks a notice, or all notices, as read. Faults: not_found.
type ReadNoticesPayload struct {
	Customer string `cbor:"1,keyasint"`
	ID       ids.ID `cbor:"2,keyasint,omitzero"`  // zero: all
	Unread   bool   `cbor:"3,keyasint,omitempty"` // marks it as unread; only with an ID
}

// Declaration implements Payload.
func (ReadNoticesPayload) Declaration() Declaration {
	return Declaration{Number: 110, By: APIServer, Since: state.NoticesSince}
}

func (ReadNoticesPayload) yields(state.Inbox) {}

// PreferNoticesPayload sets how a customer is told of some events; others stay as they are. Faults:
// limit_reached, when there are more preferences than events.
type PreferNoticesPayload struct {
	Customer string             `cbor:"1,keyasint"`
	Set      []state.Preference `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (PreferNoticesPayload) Declaration() Declaration {
	return Declaration{Number: 111, By: APIServer, Kept: true, Since: state.NoticesSince}
}

func (PreferNoticesPayload) yields(state.Inbox) {}

// TakeMailsPayload takes the e-mails that are due, so that no notice joins them any more. They
// include those that were taken before and are due again. It sends nothing.
type TakeMailsPayload struct {
	Most uint32 `cbor:"1,keyasint"` // e-mails, at most 100
}

// Declaration implements Payload.
func (TakeMailsPayload) Declaration() Declaration {
	return Declaration{Number: 112, By: APIServer, Since: state.NoticesSince}
}

func (TakeMailsPayload) yields([]state.Mail) {}

// RecordMailsPayload records the outcome of e-mails that were taken and of letters that were due.
// Unknown ones are skipped.
type RecordMailsPayload struct {
	Done  []ids.ID    `cbor:"1,keyasint,omitempty"` // sent, or finally refused
	Later []MailLater `cbor:"2,keyasint,omitempty"`
}

// MailLater is an e-mail to be tried again.
type MailLater struct {
	ID    ids.ID `cbor:"1,keyasint"`
	After int64  `cbor:"2,keyasint"` // milliseconds after the command's time
	// Untried says that the mail server failed, not the e-mail: it only goes behind the others.
	Untried bool `cbor:"3,keyasint,omitempty"`
}

// Declaration implements Payload.
func (RecordMailsPayload) Declaration() Declaration {
	return Declaration{Number: 113, By: APIServer, Since: state.NoticesSince}
}

func (RecordMailsPayload) yields(None) {}

// PutThresholdPayload sets the low-balance threshold of a customer's wallet. A balance already
// below it causes no notice. Faults: unauthorized for a customer that does not exist.
type PutThresholdPayload struct {
	Customer  string `cbor:"1,keyasint"`
	Threshold int64  `cbor:"2,keyasint,omitempty"` // micros, not below 0
}

// Declaration implements Payload.
func (PutThresholdPayload) Declaration() Declaration {
	return Declaration{Number: 160, By: APIServer, Kept: true, Since: state.NoticesSince}
}

func (PutThresholdPayload) yields(state.Wallet) {}
