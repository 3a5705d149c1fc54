package command

// RemoveCustomerPayload removes a customer for good: its credentials are refused, its runs are
// stopped, and its profile, keys and schemas are gone at once. EraseCustomerPayload goes on with
// the rest. Wallet, ledger and history stay, under a reference that says nothing of the person. By
// is the admin. Token is that of the preview, "" for any that holds. Faults: not_found,
// PREVIEW_REQUIRED, CASCADE_COUNT_DRIFT.
type RemoveCustomerPayload struct {
	Deletion Deletion `cbor:"1,keyasint"`
	Token    string   `cbor:"2,keyasint,omitempty"`
	By       string   `cbor:"3,keyasint"`
}

// Declaration implements Payload.
func (RemoveCustomerPayload) Declaration() Declaration {
	return Declaration{Number: 186, By: APIServer, Kept: true, Since: DeletesSince}
}

func (RemoveCustomerPayload) yields(None) {}

// EraseCustomerPayload goes on with the removal of a customer, also after a restore of a backup of
// before. One command deletes at most 50 groups with their rows, and 500 notices. Rows says that
// the row store has no rows of the customer any more. With nothing left the removal is over. For
// any other customer it changes nothing.
type EraseCustomerPayload struct {
	Customer string `cbor:"1,keyasint"`
	Rows     bool   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EraseCustomerPayload) Declaration() Declaration {
	return Declaration{Number: 187, By: Ingest, Since: DeletesSince}
}

func (EraseCustomerPayload) yields(None) {}
