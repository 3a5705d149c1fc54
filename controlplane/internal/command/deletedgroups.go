package command

import "shoal.dev/shoal/pkg/ids"

// DeleteGroupPayload removes a customer's group, stops the runs in it and deletes its scrapers,
// categories and shares. Run records stay. Rows stay, too, unless the query is WithData: then all
// rows of the group are removed. The scrapers disappear from all reads at once. One command removes
// at most 200 of them, and DeleteMembersPayload the others. Token is the preview's, "" accepts any
// valid preview. Faults: not_found, PREVIEW_REQUIRED, CASCADE_COUNT_DRIFT. Also limit_reached
// (1,000 deleted groups of the customer are being removed).
type DeleteGroupPayload struct {
	Deletion Deletion `cbor:"1,keyasint"`
	Token    string   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DeleteGroupPayload) Declaration() Declaration {
	return Declaration{Number: 183, By: APIServer, Kept: true, Since: DeletesSince}
}

func (DeleteGroupPayload) yields(None) {}

// DeleteMembersPayload removes at most 200 scrapers of a deleted group. It ignores other groups.
type DeleteMembersPayload struct {
	Group ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (DeleteMembersPayload) Declaration() Declaration {
	return Declaration{Number: 184, By: Ingest, Since: DeletesSince}
}

func (DeleteMembersPayload) yields(None) {}

// ForgetGroupPayload drops the mark of a deleted group once the row store has removed its rows. It
// changes nothing while the group has scrapers.
type ForgetGroupPayload struct {
	Group ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetGroupPayload) Declaration() Declaration {
	return Declaration{Number: 185, By: Ingest, Since: DeletesSince}
}

func (ForgetGroupPayload) yields(None) {}
