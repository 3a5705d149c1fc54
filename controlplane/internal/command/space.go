package command

import "shoal.dev/shoal/controlplane/internal/state"

// MaxShortBytes bounds NoteSpacePayload.Short.
const MaxShortBytes = 1_000

// NoteSpacePayload says whose disks have less than their floor, for operators; "": there is room.
// While there is none, nothing new is taken in and nothing is sent out (state.Cluster.Short).
// Faults: invalid_request.
type NoteSpacePayload struct {
	Short string `cbor:"1,keyasint,omitempty"`
}

// Declaration implements Payload.
func (NoteSpacePayload) Declaration() Declaration {
	return Declaration{Number: 205, By: Leader, Since: state.SpaceSince}
}

func (NoteSpacePayload) yields(None) {}
