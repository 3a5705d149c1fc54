package client

import (
	"fmt"
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Made says how the rows of a group are made of another one's.
type Made = state.Made

// The ways.
const (
	Enriched = state.Enriched
	Matched  = state.Matched
)

// The commands on rows that are made of others, and on uploads that are protected.
type (
	ProtectGroup = command.ProtectGroupPayload
	FixKey       = command.FixKeyPayload
	KeyColumn    = command.KeyColumn
	BeginResult  = command.BeginResultPayload
	BegunResult  = command.BegunResult
)

// Bounds of them.
const (
	MaxResultArgs = command.MaxResultArgs
	MaxKeyColumns = command.MaxKeyColumns
	MaxKeyColumn  = command.MaxKeyColumn
)

// MaxMerged is how many runs are merged at once.
const MaxMerged = 100

// AppendMerge writes the runs that a merge is of, at most MaxMerged, for its work.
func AppendMerge(to []byte, runs []ids.ID) []byte {
	for _, run := range runs {
		to = append(to, run[:]...)
	}
	return to
}

// ReadMerge is what AppendMerge has written.
func ReadMerge(args []byte) ([]ids.ID, error) {
	var runs []ids.ID
	for run := range slices.Chunk(args, len(ids.ID{})) {
		if len(run) != len(ids.ID{}) {
			return nil, fmt.Errorf("client: the arguments of a merge have %d bytes", len(args))
		}
		runs = append(runs, ids.ID(run))
	}
	return runs, nil
}
