package command

import "shoal.dev/shoal/pkg/ids"

// The payloads of background work. Only a kind interprets its arguments and progress.

// EnqueueWorkPayload adds an item, unless its id exists. Faults: limit_reached, when the customer
// has too many of the kind; invalid_request, when it is too large.
type EnqueueWorkPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Kind     string `cbor:"2,keyasint"`
	Customer string `cbor:"3,keyasint,omitempty"` // "": the service's own
	Args     []byte `cbor:"4,keyasint,omitempty"`
	// Once adds nothing if the customer has an item of the kind. With Wake, that item becomes due
	// at once if it waits.
	Once bool `cbor:"5,keyasint,omitempty"`
	Wake bool `cbor:"6,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EnqueueWorkPayload) Declaration() Declaration {
	return Declaration{Number: 70, By: Worker, Since: 2}
}

func (EnqueueWorkPayload) yields(None) {}

// WorkOutcome is a node's outcome of an item.
type WorkOutcome uint8

// The outcomes of a report.
const (
	WorkGoesOn   WorkOutcome = 0 // the node still holds it
	WorkEnded    WorkOutcome = 1 // it is done and removed
	WorkPaused   WorkOutcome = 2 // it rests until After
	WorkReleased WorkOutcome = 3 // another node may hold it
	WorkFailed   WorkOutcome = 4 // it is tried again after After
	WorkGivenUp  WorkOutcome = 5 // it failed for good
)

// WorkReport is a node's report on an item that it holds. It is ignored unless the node holds the
// item in that epoch.
type WorkReport struct {
	ID      ids.ID      `cbor:"1,keyasint"`
	Epoch   uint64      `cbor:"2,keyasint"`
	Outcome WorkOutcome `cbor:"3,keyasint,omitempty"`
	// Advanced says that Progress replaces the item's.
	Advanced bool   `cbor:"4,keyasint,omitempty"`
	Progress []byte `cbor:"5,keyasint,omitempty"`
	After    int64  `cbor:"6,keyasint,omitempty"` // milliseconds after the command's time
	Error    string `cbor:"7,keyasint,omitempty"` // why it failed
}

// WorkWant asks for items of a kind.
type WorkWant struct {
	Kind string `cbor:"1,keyasint"`
	Most uint32 `cbor:"2,keyasint"` // that the node may hold afterwards
	// PerCustomer is how many items of one customer all nodes together may hold.
	PerCustomer uint32 `cbor:"3,keyasint"`
	After       string `cbor:"4,keyasint,omitempty"` // customers after this one come first
}

// ExchangeWorkPayload is a node's turn at the table of work. It reports, which renews the lease on
// all its items, and then claims what has waited longest. It ends other nodes' expired leases, so
// that their items are free. Faults: not_found, when that start of the node is not the registered
// one.
type ExchangeWorkPayload struct {
	Node    string       `cbor:"1,keyasint"`
	Boot    ids.ID       `cbor:"2,keyasint"`
	Lease   int64        `cbor:"3,keyasint"` // milliseconds
	Reports []WorkReport `cbor:"4,keyasint,omitempty"`
	Wants   []WorkWant   `cbor:"5,keyasint,omitempty"`
	Leaving bool         `cbor:"6,keyasint,omitempty"` // the node releases everything it holds
}

// Declaration implements Payload.
func (ExchangeWorkPayload) Declaration() Declaration {
	return Declaration{Number: 71, By: Worker, Since: 2}
}

func (ExchangeWorkPayload) yields(None) {}
