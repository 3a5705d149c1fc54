package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// What is replicated of harvests.
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

// Bounds of harvests, and for how long their counts are remembered after their end, in
// milliseconds.
const (
	MaxHarvestCap = command.MaxHarvestCap
	MaxHarvests   = command.MaxHarvests
	HarvestKept   = command.HarvestKept
)
