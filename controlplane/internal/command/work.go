package command

import "shoal.dev/shoal/pkg/ids"

// The payloads of background work. What a kind's arguments and progress mean is not known here.

// EnqueueWorkPayload adds an item, unless one of that id is there. Faults: limit_reached, when the
// customer has too many of the kind; invalid_request, when it is too large.
type EnqueueWorkPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Kind     string `cbor:"2,keyasint"`
	Customer string `cbor:"3,keyasint,omitempty"` // "": the service's own
	Args     []byte `cbor:"4,keyasint,omitempty"`
	// Once adds nothing when the customer has an item of the kind. With Wake, too, that one comes
	// due at once if it waits.
	Once bool `cbor:"5,keyasint,omitempty"`
	Wake bool `cbor:"6,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EnqueueWorkPayload) Declaration() Declaration {
	return Declaration{Number: 70, By: Worker, Since: 2}
}

func (EnqueueWorkPayload) yields(None) {}

// WorkOutcome says what a node made of an item.
type WorkOutcome uint8

// The outcomes of a report.
const (
	WorkGoesOn   WorkOutcome = 0 // the node holds it further
	WorkEnded    WorkOutcome = 1 // it is done: the item goes
	WorkPaused   WorkOutcome = 2 // it has come to a rest, until After
	WorkReleased WorkOutcome = 3 // it is another node's turn
	WorkFailed   WorkOutcome = 4 // it is tried again, after After
	WorkGivenUp  WorkOutcome = 5 // it failed for good
)

// WorkReport is what a node made of an item that it holds. Of one that it does not hold under that
// epoch nothing is taken.
type WorkReport struct {
	ID      ids.ID      `cbor:"1,keyasint"`
	Epoch   uint64      `cbor:"2,keyasint"`
	Outcome WorkOutcome `cbor:"3,keyasint,omitempty"`
	// Advanced says that Progress replaces the item's.
	Advanced bool   `cbor:"4,keyasint,omitempty"`
	Progress []byte `cbor:"5,keyasint,omitempty"`
	After    int64  `cbor:"6,keyasint,omitempty"` // milliseconds from the command's time on
	Error    string `cbor:"7,keyasint,omitempty"` // why it failed
}

// WorkWant asks for items of a kind.
type WorkWant struct {
	Kind string `cbor:"1,keyasint"`
	Most uint32 `cbor:"2,keyasint"` // that the node holds afterwards
	// PerCustomer is how many of one customer all nodes together may hold.
	PerCustomer uint32 `cbor:"3,keyasint"`
	After       string `cbor:"4,keyasint,omitempty"` // customers behind this one come first
}

// ExchangeWorkPayload is a node's turn at the table of work. It reports, which renews the lease on
// all that it holds, and then claims what waits longest. Leases of others that have ended are
// ended, so that their items are free. Faults: not_found, when that start of the node is not the
// registered one.
type ExchangeWorkPayload struct {
	Node    string       `cbor:"1,keyasint"`
	Boot    ids.ID       `cbor:"2,keyasint"`
	Lease   int64        `cbor:"3,keyasint"` // milliseconds
	Reports []WorkReport `cbor:"4,keyasint,omitempty"`
	Wants   []WorkWant   `cbor:"5,keyasint,omitempty"`
	Leaving bool         `cbor:"6,keyasint,omitempty"` // the node lets go of all that it holds
}

// Declaration implements Payload.
func (ExchangeWorkPayload) Declaration() Declaration {
	return Declaration{Number: 71, By: Worker, Since: 2}
}

func (ExchangeWorkPayload) yields(None) {}
