package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of alerts.
const (
	MaxAlertKinds    = 3   // ADDED, REMOVED, CHANGED
	MaxAlertKey      = 5   // fields
	MaxAlertExamples = 10  // rows of a notice
	MaxAlertText     = 200 // bytes of an example, or of the message
)

// TellChangesPayload reports what changed since the run before, or, with a message, why the two
// were not compared. It ends the work that found it out. Without that work it changes nothing, so
// changes are reported once.
type TellChangesPayload struct {
	Customer string           `cbor:"1,keyasint"`
	Job      ids.ID           `cbor:"2,keyasint"`
	Scraper  ids.ID           `cbor:"3,keyasint"`
	Changes  state.RunChanges `cbor:"4,keyasint"`
	Message  string           `cbor:"5,keyasint,omitempty"`
}

// Declaration implements Payload.
func (TellChangesPayload) Declaration() Declaration {
	return Declaration{Number: 220, By: APIServer, Since: state.AlertsSince}
}

func (TellChangesPayload) yields(None) {}
