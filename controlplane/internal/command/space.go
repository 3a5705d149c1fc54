package command

import "shoal.dev/shoal/controlplane/internal/state"

// MaxShortBytes bounds NoteSpacePayload.Short.
const MaxShortBytes = 1_000

// NoteSpacePayload says, for operators, which disks have less than their minimum of free space; "":
// all have enough. Otherwise no new work is accepted and nothing is dispatched
// (state.Cluster.Short). Faults: invalid_request.
type NoteSpacePayload struct {
	Short string `cbor:"1,keyasint,omitempty"`
}

// Declaration implements Payload.
func (NoteSpacePayload) Declaration() Declaration {
	return Declaration{Number: 205, By: Leader, Since: state.SpaceSince}
}

func (NoteSpacePayload) yields(None) {}
