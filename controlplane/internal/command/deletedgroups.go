package command

import "shoal.dev/shoal/pkg/ids"

// DeleteGroupPayload removes a customer's group, stops the runs in it and deletes its scrapers,
// categories and shares.
// Records of runs stay. So do rows, unless the query is WithData: then all that the group has go.
// Nobody sees the scrapers from then on; one command removes at most 200 of them, so
// DeleteMembersPayload goes on. Token is that of the preview, "" for any that holds. Faults:
// not_found, PREVIEW_REQUIRED, CASCADE_COUNT_DRIFT. Also limit_reached (1,000 deleted groups of the
// customer are being removed).
type DeleteGroupPayload struct {
	Deletion Deletion `cbor:"1,keyasint"`
	Token    string   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DeleteGroupPayload) Declaration() Declaration {
	return Declaration{Number: 183, By: APIServer, Kept: true, Since: DeletesSince}
}

func (DeleteGroupPayload) yields(None) {}

// DeleteMembersPayload removes at most 200 scrapers of a deleted group. Any other group stays as it
// is.
type DeleteMembersPayload struct {
	Group ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (DeleteMembersPayload) Declaration() Declaration {
	return Declaration{Number: 184, By: Ingest, Since: DeletesSince}
}

func (DeleteMembersPayload) yields(None) {}

// ForgetGroupPayload drops the note of a deleted group of which the row store has nothing any more
// that should go. It changes nothing while the group has scrapers.
type ForgetGroupPayload struct {
	Group ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetGroupPayload) Declaration() Declaration {
	return Declaration{Number: 185, By: Ingest, Since: DeletesSince}
}

func (ForgetGroupPayload) yields(None) {}
