package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// The replicated records of harvests.
type (
	Harvest      = state.Harvest
	HarvestState = state.HarvestState
)

// The states of a harvest.
const (
	HarvestRunning = state.HarvestRunning
	HarvestDone    = state.HarvestDone
	HarvestFailed  = state.HarvestFailed
)

// The commands on harvests.
type (
	AskHarvest     = command.AskHarvestPayload
	EndHarvest     = command.EndHarvestPayload
	ForgetHarvests = command.ForgetHarvestsPayload
)

// Bounds of harvests. HarvestKept is how long their counts are kept after their end, in
// milliseconds.
const (
	MaxHarvestCap = command.MaxHarvestCap
	MaxHarvests   = command.MaxHarvests
	HarvestKept   = command.HarvestKept
)
