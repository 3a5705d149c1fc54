package command

import "shoal.dev/shoal/pkg/ids"

// DeletesSince is the first cluster version in which the rows of single runs, and groups, are
// deleted.
const DeletesSince = 2

// DeletedRun is what a deletion names of the run that is its target, as the history has it: the
// state may have it no more.
type DeletedRun struct {
	Group   ids.ID `cbor:"1,keyasint"`
	Scraper ids.ID `cbor:"2,keyasint"`
	// Next is the run that is the scraper's last once the target is none (decision 45), of those
	// that have ended; zero: there is none.
	Next       ids.ID `cbor:"3,keyasint,omitzero"`
	NextGroup  ids.ID `cbor:"4,keyasint,omitzero"`
	NextQueued int64  `cbor:"5,keyasint,omitempty"` // Unix milliseconds
}

// DeleteRunPayload deletes the rows of a customer's run, and stops it if it is under way. Its
// record stays in the history, and so does what was charged. Token is that of the preview, "" for
// any that holds. Faults: job_not_found (also of a run whose rows are deleted), PREVIEW_REQUIRED,
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

// NoteRowsRemovedPayload says that the row store has no rows of deleted runs any more. Others
// change nothing.
type NoteRowsRemovedPayload struct {
	Jobs []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (NoteRowsRemovedPayload) Declaration() Declaration {
	return Declaration{Number: 181, By: Ingest, Since: DeletesSince}
}

func (NoteRowsRemovedPayload) yields(None) {}

// ForgetDeletedRunsPayload drops the marks of runs that the history has no more: those whose rows
// were removed before a time, in Unix milliseconds. One command drops at most 1,000.
type ForgetDeletedRunsPayload struct {
	Before int64 `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetDeletedRunsPayload) Declaration() Declaration {
	return Declaration{Number: 182, By: Leader, Since: DeletesSince}
}

func (ForgetDeletedRunsPayload) yields(None) {}
