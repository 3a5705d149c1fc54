package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// ShareGroupPayload lets the owners of e-mail addresses read a customer's group. Existing shares
// stay. All are added or none. Faults: not_found (the group is not the customer's), invalid_request
// (an address is the customer's own). Also limit_reached (100 addresses a group, 2,000 a customer,
// 1,000 groups an address) and plan_limit_reached.
type ShareGroupPayload struct {
	Customer string   `cbor:"1,keyasint"`
	Group    ids.ID   `cbor:"2,keyasint"`
	Emails   []string `cbor:"3,keyasint"` // each at most 254 bytes
	// Cap bounds the customer's shares by its plan; nil: only the general limit.
	Cap *PlanCap `cbor:"4,keyasint,omitempty"`
}

// Declaration implements Payload.
func (ShareGroupPayload) Declaration() Declaration {
	return Declaration{Number: 194, By: APIServer, Kept: true, Since: state.SharesSince}
}

func (ShareGroupPayload) yields(None) {}

// RevokeSharePayload ends the share of a customer's group with an address. Faults: not_found (the
// group is not the customer's, or is not shared with it).
type RevokeSharePayload struct {
	Customer string `cbor:"1,keyasint"`
	Group    ids.ID `cbor:"2,keyasint"`
	Email    string `cbor:"3,keyasint"`
}

// Declaration implements Payload.
func (RevokeSharePayload) Declaration() Declaration {
	return Declaration{Number: 195, By: APIServer, Kept: true, Since: state.SharesSince}
}

func (RevokeSharePayload) yields(None) {}
