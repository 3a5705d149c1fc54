package client

import (
	"fmt"
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Made says how the rows of a group are made from another group's.
type Made = state.Made

// The ways in which rows are made.
const (
	Enriched = state.Enriched
	Matched  = state.Matched
)

// The commands on rows made from other rows, and on protected uploads.
type (
	ProtectGroup = command.ProtectGroupPayload
	FixKey       = command.FixKeyPayload
	KeyColumn    = command.KeyColumn
	BeginResult  = command.BeginResultPayload
	BegunResult  = command.BegunResult
)

// Bounds of results and key columns.
const (
	MaxResultArgs = command.MaxResultArgs
	MaxKeyColumns = command.MaxKeyColumns
	MaxKeyColumn  = command.MaxKeyColumn
)

// MaxMerged is the largest number of runs in one merge.
const MaxMerged = 100

// AppendMerge encodes the runs of a merge, at most MaxMerged, as arguments of its work.
func AppendMerge(to []byte, runs []ids.ID) []byte {
	for _, run := range runs {
		to = append(to, run[:]...)
	}
	return to
}

// ReadMerge decodes what AppendMerge has written.
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
