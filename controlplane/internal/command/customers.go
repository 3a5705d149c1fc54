package command

import "shoal.dev/shoal/controlplane/internal/state"

// BlockCustomerPayload has a customer's credentials refused from now on, and no run of it launched.
// Runs that were launched before go on. One that is blocked already stays blocked as it is. Faults:
// not_found.
type BlockCustomerPayload struct {
	Customer string `cbor:"1,keyasint"`
	By       string `cbor:"2,keyasint"` // the admin's subject
}

// Declaration implements Payload.
func (BlockCustomerPayload) Declaration() Declaration {
	return Declaration{Number: 100, By: APIServer, Kept: true, Since: BlocksSince}
}

func (BlockCustomerPayload) yields(state.Customer) {}

// UnblockCustomerPayload takes a block back. Where there is none it changes nothing. Faults:
// not_found.
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
