package command

// RemoveCustomerPayload removes a customer for good: its credentials are refused, and its runs are
// stopped. Profile, accounts, sessions, keys and schemas are gone at once, and so are e-mails that
// wait. EraseCustomerPayload goes on with the rest. Wallet, ledger and history stay, under a
// reference that says nothing of the person. By is the admin. Token is that of the preview, "" for
// any that holds. Faults: not_found, PREVIEW_REQUIRED, CASCADE_COUNT_DRIFT.
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
// before. One command removes about 500 records: groups with their rows, webhooks with their
// deliveries, idempotency records, notices. Archived runs and entries leave the state. Rows says
// that the row store has nothing of the customer any more but sums, history and ledger. With
// nothing left the removal is over. For any other customer it changes nothing.
type EraseCustomerPayload struct {
	Customer string `cbor:"1,keyasint"`
	Rows     bool   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EraseCustomerPayload) Declaration() Declaration {
	return Declaration{Number: 187, By: Ingest, Since: DeletesSince}
}

func (EraseCustomerPayload) yields(None) {}
