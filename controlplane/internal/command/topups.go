package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// TopUpsSince is the first cluster version with top-ups through a provider.
const TopUpsSince = 2

// OpenTopUpPayload records a payment provider's session for a customer, and answers where it is
// paid. A known session stays as it is. Faults: unauthorized for a customer that does not exist,
// limit_reached (100 open ones a customer).
type OpenTopUpPayload struct {
	Session  string `cbor:"1,keyasint"` // the provider's id, 1 to 255 bytes
	Customer string `cbor:"2,keyasint"`
	Amount   int64  `cbor:"3,keyasint"` // micros, above 0
	Expires  int64  `cbor:"4,keyasint"` // of the session, Unix milliseconds
	URL      string `cbor:"5,keyasint"` // where it is paid, at most 4,096 bytes
}

// Declaration implements Payload.
func (OpenTopUpPayload) Declaration() Declaration {
	return Declaration{Number: 120, By: APIServer, Kept: true, Since: TopUpsSince}
}

func (OpenTopUpPayload) yields(OpenedTopUp) {}

// OpenedTopUp answers OpenTopUpPayload.
type OpenedTopUp struct {
	Session string `cbor:"1,keyasint"`
	URL     string `cbor:"2,keyasint"`
}

// PayTopUpPayload says that a session was paid. It credits the customer once per session, whatever
// the session's state. For an unknown customer, or money in another currency, the top-up is
// UNMATCHED. Faults: amount_overflow.
type PayTopUpPayload struct {
	Session  string `cbor:"1,keyasint"`
	Payment  string `cbor:"2,keyasint,omitempty"` // the provider's id of the payment
	Customer string `cbor:"3,keyasint"`           // ignored if the session was opened for another
	Amount   int64  `cbor:"4,keyasint"`           // micros; 0: paid in another currency
	Entry    ids.ID `cbor:"5,keyasint"`           // its ledger entry
}

// Declaration implements Payload.
func (PayTopUpPayload) Declaration() Declaration {
	return Declaration{Number: 121, By: APIServer, Kept: true, Since: TopUpsSince}
}

func (PayTopUpPayload) yields(PaidTopUp) {}

// PaidTopUp answers PayTopUpPayload.
type PaidTopUp struct {
	TopUp state.TopUp `cbor:"1,keyasint"`
	// Waiting lists the payment's reversals reported before it. Each must be reported again.
	Waiting []state.Reversal `cbor:"2,keyasint,omitempty"`
}

// EndTopUpPayload says that an open session ended without a payment. It ignores unknown sessions,
// and those that are not open.
type EndTopUpPayload struct {
	Session string `cbor:"1,keyasint"`
	Failed  bool   `cbor:"2,keyasint,omitempty"` // otherwise it expired
}

// Declaration implements Payload.
func (EndTopUpPayload) Declaration() Declaration {
	return Declaration{Number: 122, By: APIServer, Since: TopUpsSince}
}

func (EndTopUpPayload) yields(None) {}

// ReverseTopUpPayload says that money of a payment went back, and how much of it returned for good.
// The wallet is adjusted once for each, and may fall below zero. Until the payment is known, the
// reversal only waits. Faults: amount_overflow.
type ReverseTopUpPayload struct {
	ID      string `cbor:"1,keyasint"` // the provider's, of the refund or dispute
	Payment string `cbor:"2,keyasint"`
	Amount  int64  `cbor:"3,keyasint"`           // micros, above 0
	Back    int64  `cbor:"4,keyasint,omitempty"` // micros of it that returned, at most Amount
	Entry   ids.ID `cbor:"5,keyasint"`           // the ledger entry, if one is made
}

// Declaration implements Payload.
func (ReverseTopUpPayload) Declaration() Declaration {
	return Declaration{Number: 123, By: APIServer, Kept: true, Since: TopUpsSince}
}

func (ReverseTopUpPayload) yields(state.Reversal) {}
