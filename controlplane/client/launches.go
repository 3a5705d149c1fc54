package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// The commands that launch and stop a group.
type (
	// LaunchRuns launches scrapers of a group, and StopGroup stops them all.
	LaunchRuns     = command.LaunchRunsPayload
	LaunchedRuns   = command.LaunchedRuns
	StopGroup      = command.StopGroupPayload
	GroupRun       = command.GroupRun
	GroupJob       = command.GroupJob
	SkippedScraper = command.SkippedScraper
	// SkipReason says why a scraper was not launched with its group.
	SkipReason = state.SkipReason
)

// The reasons to skip a scraper that are known before the command, and SkipBlocked.
const (
	SkipFile         = state.SkipFile
	SkipRunning      = state.SkipRunning
	SkipNoSource     = state.SkipNoSource
	SkipInvalid      = state.SkipInvalid
	SkipUnaffordable = state.SkipUnaffordable
	SkipLimit        = state.SkipLimit
	SkipUnreachable  = state.SkipUnreachable
	SkipSchema       = state.SkipSchema
	SkipPlan         = state.SkipPlan
	SkipPaused       = state.SkipPaused
	SkipBlocked      = state.SkipBlocked
)

// Bounds of a LaunchRuns.
const (
	MaxRunsAtOnce = command.MaxRunsAtOnce
	MaxSkips      = command.MaxSkips
)

// SkipFor returns the reason to skip a scraper whose launch had a fault.
func SkipFor(err error) SkipReason { return command.SkipFor(err) }

// Scheduled starts.
type (
	// Schedule says when a scraper or a group starts.
	Schedule     = state.Schedule
	Start        = state.Start
	PutStartType = command.PutStartTypePayload
	// LaunchItem is the background work of a LaunchRuns.
	LaunchItem = command.LaunchItem
	// DueRuns says what an item of background work launches.
	DueRuns = state.DueRuns
)

// DueOf decodes the arguments of an item.
func DueOf(args []byte) DueRuns { return state.DueOf(args) }
