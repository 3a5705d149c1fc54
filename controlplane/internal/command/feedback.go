package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// GiveFeedbackPayload keeps a customer's message to the operators for 400 days. Beyond 200 of a
// customer its oldest is removed, beyond 10,000 the oldest of all. Faults: unauthorized for a
// customer that does not exist, feedback_limit_reached (10 a UTC day).
type GiveFeedbackPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Text     string `cbor:"3,keyasint"` // 1 to 4,000 characters
}

// Declaration implements Payload.
func (GiveFeedbackPayload) Declaration() Declaration {
	return Declaration{Number: 231, By: APIServer, Kept: true, Since: state.FeedbackSince}
}

func (GiveFeedbackPayload) yields(GivenFeedback) {}

// GivenFeedback answers GiveFeedbackPayload.
type GivenFeedback struct {
	ID ids.ID `cbor:"1,keyasint"`
	At int64  `cbor:"2,keyasint"` // Unix milliseconds
}
