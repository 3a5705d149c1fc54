package command

import "shoal.dev/shoal/pkg/ids"

// DeletesSince is the first cluster version that deletes groups and the rows of single runs.
const DeletesSince = 2

// DeletedRun describes the run that a deletion targets, as in the history, since it may have left
// the state.
type DeletedRun struct {
	Group   ids.ID `cbor:"1,keyasint"`
	Scraper ids.ID `cbor:"2,keyasint"`
	// Next is the ended run that becomes the scraper's last one without the target (decision 45);
	// zero: there is none.
	Next       ids.ID `cbor:"3,keyasint,omitzero"`
	NextGroup  ids.ID `cbor:"4,keyasint,omitzero"`
	NextQueued int64  `cbor:"5,keyasint,omitempty"` // Unix milliseconds
}

// DeleteRunPayload deletes the rows of a customer's run, and stops it if it is under way. Its
// record stays in the history, and its charge stands. Token is the preview's, "" accepts any valid
// preview. Faults: job_not_found (also of a run whose rows are deleted), PREVIEW_REQUIRED,
// CASCADE_COUNT_DRIFT. Also limit_reached (10,000 such runs of the customer in the history).
type DeleteRunPayload struct {
	Deletion Deletion `cbor:"1,keyasint"`
	Token    string   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DeleteRunPayload) Declaration() Declaration {
	return Declaration{Number: 180, By: APIServer, Kept: true, Since: DeletesSince}
}

func (DeleteRunPayload) yields(None) {}

// NoteRowsRemovedPayload says that the row store has removed the rows of deleted runs. It ignores
// other runs.
type NoteRowsRemovedPayload struct {
	Jobs []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (NoteRowsRemovedPayload) Declaration() Declaration {
	return Declaration{Number: 181, By: Ingest, Since: DeletesSince}
}

func (NoteRowsRemovedPayload) yields(None) {}

// ForgetDeletedRunsPayload drops the marks of runs that have left the history: those whose rows
// were removed before a time, in Unix milliseconds. One command drops at most 1,000.
type ForgetDeletedRunsPayload struct {
	Before int64 `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetDeletedRunsPayload) Declaration() Declaration {
	return Declaration{Number: 182, By: Leader, Since: DeletesSince}
}

func (ForgetDeletedRunsPayload) yields(None) {}
