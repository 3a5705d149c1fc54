package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// SignUpPayload makes the profile of a customer that has not signed up. With Entry it also makes a
// missing customer and its wallet, as OpenCustomerPayload does. The customer has agreed to the user
// agreement. Faults: customer_exists when it has signed up, email_taken when another customer has,
// unauthorized when it does not exist and has no Entry.
type SignUpPayload struct {
	Customer  string `cbor:"1,keyasint"`
	Email     string `cbor:"2,keyasint"`
	Firstname string `cbor:"3,keyasint"`
	Lastname  string `cbor:"4,keyasint"`
	// Entry is the ledger entry of the free grant; zero: the customer exists.
	Entry ids.ID `cbor:"5,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (SignUpPayload) Declaration() Declaration {
	return Declaration{Number: 90, By: APIServer, Kept: true, Since: ProfilesSince}
}

func (SignUpPayload) yields(state.Profile) {}

// RenameCustomerPayload changes the name of a customer, who has agreed to the user agreement.
type RenameCustomerPayload struct {
	Customer  string `cbor:"1,keyasint"`
	Firstname string `cbor:"2,keyasint"`
	Lastname  string `cbor:"3,keyasint"`
}

// Declaration implements Payload.
func (RenameCustomerPayload) Declaration() Declaration {
	return Declaration{Number: 91, By: APIServer, Kept: true, Since: ProfilesSince}
}

func (RenameCustomerPayload) yields(state.Profile) {}

// ChangeInfoPayload changes the info in a customer's profile: it removes keys, then sets some. A
// missing key is already removed. Faults: limit_reached (100 keys, 65,536 bytes).
type ChangeInfoPayload struct {
	Customer string       `cbor:"1,keyasint"`
	Remove   []string     `cbor:"2,keyasint,omitempty"`
	Set      []state.Info `cbor:"3,keyasint,omitempty"`
}

// Declaration implements Payload.
func (ChangeInfoPayload) Declaration() Declaration {
	return Declaration{Number: 92, By: APIServer, Kept: true, Since: ProfilesSince}
}

func (ChangeInfoPayload) yields(state.Profile) {}

// ProfilesSince is the first cluster version in which customers have profiles.
const ProfilesSince = 2
