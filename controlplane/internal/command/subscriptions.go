package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// PlanCap bounds the number of one thing by a customer's plan. The caller looks it up, since the
// catalogue of plans is the operator's.
type PlanCap struct {
	Plan string `cbor:"1,keyasint"`
	Name string `cbor:"2,keyasint"` // of the cap
	Most int    `cbor:"3,keyasint"`
}

// Allows refuses one more than the plan allows. A nil cap allows everything.
func (c *PlanCap) Allows(count int) error {
	if c == nil || count < c.Most {
		return nil
	}
	return fault.New(fault.PlanLimitReached, "the plan %s allows %d (%s)", c.Plan, c.Most, c.Name)
}

// BeginMovePayload claims a customer's subscription while a change is made at the payment provider.
// There is one claim at a time, for two minutes at most. It gets a new revision. Faults:
// unauthorized for a customer that does not exist, subscription_change_in_flight.
type BeginMovePayload struct {
	Customer string `cbor:"1,keyasint"`
	Move     ids.ID `cbor:"2,keyasint"` // a new one
}

// Declaration implements Payload.
func (BeginMovePayload) Declaration() Declaration {
	return Declaration{Number: 170, By: APIServer, Kept: true, Since: state.SubscriptionsSince}
}

func (BeginMovePayload) yields(state.Subscription) {}

// OpenCheckoutPayload records where a customer can subscribe, and ends the move that asked for it.
// Faults: subscription_change_in_flight when the move took too long and another one began.
type OpenCheckoutPayload struct {
	Customer string         `cbor:"1,keyasint"`
	Move     ids.ID         `cbor:"2,keyasint"`
	Checkout state.Checkout `cbor:"3,keyasint"`
}

// Declaration implements Payload.
func (OpenCheckoutPayload) Declaration() Declaration {
	return Declaration{Number: 171, By: APIServer, Kept: true, Since: state.SubscriptionsSince}
}

func (OpenCheckoutPayload) yields(state.Subscription) {}

// TellContractPayload reports a contract's state at the payment provider, from an event or from the
// answer to a Move. It reports states, not changes, so order and repetition do not matter. Its
// answer has the contracts still to be ended there. Faults: unauthorized for a customer that does
// not exist.
type TellContractPayload struct {
	Customer string         `cbor:"1,keyasint"`
	Contract state.Contract `cbor:"2,keyasint"`
	Move     ids.ID         `cbor:"3,keyasint,omitempty"` // the move to end; zero: an event
}

// Declaration implements Payload.
func (TellContractPayload) Declaration() Declaration {
	return Declaration{Number: 172, By: APIServer, Kept: true, Since: state.SubscriptionsSince}
}

func (TellContractPayload) yields(state.Subscription) {}

// EndMovePayload ends a move that changed nothing. A move that is not under way has ended.
type EndMovePayload struct {
	Customer string `cbor:"1,keyasint"`
	Move     ids.ID `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (EndMovePayload) Declaration() Declaration {
	return Declaration{Number: 173, By: APIServer, Since: state.SubscriptionsSince}
}

func (EndMovePayload) yields(None) {}

// ChooseFreePayload gives a customer without a live contract the free plan, and leaves an open
// checkout. Faults: unauthorized for a customer that does not exist.
type ChooseFreePayload struct {
	Customer string `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ChooseFreePayload) Declaration() Declaration {
	return Declaration{Number: 174, By: APIServer, Kept: true, Since: state.SubscriptionsSince}
}

func (ChooseFreePayload) yields(state.Subscription) {}

// LeaveCheckoutPayload says that the customer no longer wants to pay in a checkout, so that the
// provider must end it. It changes nothing unless the checkout is the current one.
type LeaveCheckoutPayload struct {
	Customer string `cbor:"1,keyasint"`
	Session  string `cbor:"2,keyasint"` // the provider's id
}

// Declaration implements Payload.
func (LeaveCheckoutPayload) Declaration() Declaration {
	return Declaration{Number: 198, By: APIServer, Since: state.SubscriptionsSince}
}

func (LeaveCheckoutPayload) yields(None) {}

// EndCheckoutPayload says that nobody can pay in a checkout any more. An unknown checkout has
// ended.
type EndCheckoutPayload struct {
	Customer string `cbor:"1,keyasint"`
	Session  string `cbor:"2,keyasint"` // the provider's id
}

// Declaration implements Payload.
func (EndCheckoutPayload) Declaration() Declaration {
	return Declaration{Number: 209, By: APIServer, Since: state.SubscriptionsSince}
}

func (EndCheckoutPayload) yields(None) {}

// PutInvoicePayload reports an invoice's state at the payment provider, in any order and
// repetition. Beyond 1,000 per customer the oldest is removed. Faults: unauthorized for a customer
// that does not exist.
type PutInvoicePayload struct {
	Invoice state.Invoice `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (PutInvoicePayload) Declaration() Declaration {
	return Declaration{Number: 175, By: APIServer, Since: state.SubscriptionsSince}
}

func (PutInvoicePayload) yields(None) {}
