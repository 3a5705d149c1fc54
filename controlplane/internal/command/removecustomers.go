package command

// RemoveCustomerPayload removes a customer for good: it blocks its credentials and stops its runs.
// It removes profile, accounts, sessions, keys, schemas and waiting e-mails at once.
// EraseCustomerPayload removes the rest. Wallet, ledger and history stay, under a reference that
// does not identify the person. By is the admin. Token is the preview's, "" accepts any valid
// preview. Faults: not_found, PREVIEW_REQUIRED, CASCADE_COUNT_DRIFT.
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

// EraseCustomerPayload continues the removal of a customer, even after a restore of an earlier
// backup. One command removes about 500 records: groups with their rows, webhooks with their
// deliveries, idempotency records, notices. Archived runs and entries leave the state. Rows says
// that the row store has only the customer's sums, history and ledger. When nothing is left the
// removal is complete. It ignores customers that are not removed.
type EraseCustomerPayload struct {
	Customer string `cbor:"1,keyasint"`
	Rows     bool   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EraseCustomerPayload) Declaration() Declaration {
	return Declaration{Number: 187, By: Ingest, Since: DeletesSince}
}

func (EraseCustomerPayload) yields(None) {}
