package command

import "shoal.dev/shoal/controlplane/internal/state"

// BlockCustomerPayload blocks a customer's credentials, and launches of its runs, from now on. Runs
// already launched continue. An existing block stays as it is. Faults: not_found.
type BlockCustomerPayload struct {
	Customer string `cbor:"1,keyasint"`
	By       string `cbor:"2,keyasint"` // the admin's subject
}

// Declaration implements Payload.
func (BlockCustomerPayload) Declaration() Declaration {
	return Declaration{Number: 100, By: APIServer, Kept: true, Since: BlocksSince}
}

func (BlockCustomerPayload) yields(state.Customer) {}

// UnblockCustomerPayload removes a block, if there is one. Faults: not_found.
type UnblockCustomerPayload struct {
	Customer string `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (UnblockCustomerPayload) Declaration() Declaration {
	return Declaration{Number: 101, By: APIServer, Kept: true, Since: BlocksSince}
}

func (UnblockCustomerPayload) yields(state.Customer) {}

// BlocksSince is the first cluster version in which customers are blocked.
const BlocksSince = 2
