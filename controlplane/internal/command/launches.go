package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of a LaunchRunsPayload.
const (
	// MaxRunsAtOnce is how many runs one command makes: as many as a customer may have open.
	MaxRunsAtOnce = 1_000
	// MaxSkips is how many scrapers that were passed over one command names. They stand in the
	// record of an idempotency key, too: 1,000 take 17 KB of it, and as many runs 50.
	MaxSkips = 1_000
)

// LaunchesSince is the first cluster version in which groups are launched.
const LaunchesSince = 2

// LaunchRunsPayload makes runs of scrapers of one group, all in one step. What the state refuses of
// them is skipped, with the reason. Faults: not_found, customer_blocked.
type LaunchRunsPayload struct {
	Customer string     `cbor:"1,keyasint"`
	Group    ids.ID     `cbor:"2,keyasint,omitempty"` // zero: the scrapers are of any groups
	Runs     []GroupRun `cbor:"3,keyasint,omitempty"` // at most MaxRunsAtOnce
	// Engines are the search engines that the runs name.
	Engines []model.SearchEngine `cbor:"4,keyasint,omitempty"`
	// Skipped are the scrapers that the proposer has passed over, at most MaxSkips; Unnamed counts
	// those beyond.
	Skipped []SkippedScraper `cbor:"5,keyasint,omitempty"`
	Unnamed uint32           `cbor:"6,keyasint,omitempty"`
	// Item is the background work that the runs are of; nil: a call's.
	Item *LaunchItem `cbor:"7,keyasint,omitempty"`
}

// LaunchItem is the background work of a LaunchRunsPayload, which moves it on in the same step. A
// command that does not begin where the item is changes nothing.
type LaunchItem struct {
	ID   ids.ID `cbor:"1,keyasint"`
	From []byte `cbor:"2,keyasint,omitempty"` // the item's cursor before
	Upto []byte `cbor:"3,keyasint,omitempty"` // and after
	Done bool   `cbor:"4,keyasint,omitempty"` // nothing is left: the item goes
}

// GroupRun is one run of a LaunchRunsPayload. What it has in common with LaunchRunPayload means the
// same.
type GroupRun struct {
	Job           ids.ID            `cbor:"1,keyasint"`
	Entry         ids.ID            `cbor:"2,keyasint"`
	Scraper       ids.ID            `cbor:"3,keyasint"`
	List          ids.ID            `cbor:"4,keyasint"`
	Links         uint32            `cbor:"5,keyasint"`
	Tiers         model.TierSet     `cbor:"6,keyasint"`
	MaxCharge     *int64            `cbor:"7,keyasint,omitempty"` // micros
	IgnoresRobots bool              `cbor:"8,keyasint,omitempty"`
	Charge        model.Charge      `cbor:"9,keyasint,omitzero"`
	Daily         model.DailyLimits `cbor:"10,keyasint,omitzero"`
	Engine        uint8             `cbor:"11,keyasint,omitempty"` // place in Engines, from 1; 0: none
}

// SkippedScraper is a scraper that was not launched.
type SkippedScraper struct {
	_       struct{} `cbor:",toarray"`
	Scraper ids.ID
	Reason  state.SkipReason
}

// Declaration implements Payload.
func (LaunchRunsPayload) Declaration() Declaration {
	return Declaration{Number: 200, By: APIServer, Kept: true, Since: LaunchesSince}
}

func (LaunchRunsPayload) yields(LaunchedRuns) {}

// LaunchedRuns answers LaunchRunsPayload and StopGroupPayload.
type LaunchedRuns struct {
	Jobs    []GroupJob       `cbor:"1,keyasint,omitempty"`
	Skipped []SkippedScraper `cbor:"2,keyasint,omitempty"` // at most MaxSkips
	Unnamed uint32           `cbor:"3,keyasint,omitempty"` // skipped beyond those
}

// GroupJob is a run of a LaunchedRuns.
type GroupJob struct {
	_       struct{} `cbor:",toarray"`
	Job     ids.ID
	Scraper ids.ID
	State   model.JobState
	Queued  int64 // Unix milliseconds
}

// StopGroupPayload stops the active runs of all scrapers of a group: their state is final at once,
// they drain and close by themselves. Faults: not_found.
type StopGroupPayload struct {
	Customer string `cbor:"1,keyasint"`
	Group    ids.ID `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (StopGroupPayload) Declaration() Declaration {
	return Declaration{Number: 201, By: APIServer, Kept: true, Since: LaunchesSince}
}

func (StopGroupPayload) yields(LaunchedRuns) {}

// SkipFor is the reason to skip a scraper whose launch had a fault.
func SkipFor(err error) state.SkipReason {
	switch fault.CodeOf(err) {
	case fault.ScraperAlreadyRunning:
		return state.SkipRunning
	case fault.WalletInsufficient:
		return state.SkipUnaffordable
	case fault.TierUnavailable:
		return state.SkipTiers
	case fault.LimitReached:
		return state.SkipLimit
	case fault.SchemaGone:
		return state.SkipSchema
	case fault.StartURLsUnreachable:
		return state.SkipUnreachable
	case fault.ScraperNotFound, fault.SearchNotConfigured:
		return state.SkipNoSource
	}
	return state.SkipInvalid
}

// MaxMoves is how many schedules one command moves on.
const MaxMoves = 500

// MoveSchedulesPayload says when schedules start next, and makes background work of the starts that
// are due: all in one step. A schedule that has changed or moved on since is left as it is. So is
// one that is due while its customer has too much of that work.
type MoveSchedulesPayload struct {
	Moves []ScheduleMove `cbor:"1,keyasint"` // at most MaxMoves
}

// ScheduleMove moves one schedule on. Times are Unix milliseconds.
type ScheduleMove struct {
	Target ids.ID `cbor:"1,keyasint"`
	Set    uint64 `cbor:"2,keyasint"`           // as the schedule has it
	From   int64  `cbor:"3,keyasint,omitempty"` // the start that was next
	To     int64  `cbor:"4,keyasint"`           // the start that is next
	Start  int64  `cbor:"5,keyasint,omitempty"` // that is due; 0: none is
	Missed uint32 `cbor:"6,keyasint,omitempty"` // starts from From on that are too old
	Item   ids.ID `cbor:"7,keyasint,omitempty"` // id of the work that it may become
}

// Declaration implements Payload.
func (MoveSchedulesPayload) Declaration() Declaration {
	return Declaration{Number: 202, By: Leader, Since: LaunchesSince}
}

func (MoveSchedulesPayload) yields(None) {}

// ArrangeGroupsPayload has groups start by their start types that do not yet: a version of the
// cluster without schedules had made them.
type ArrangeGroupsPayload struct {
	Groups []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ArrangeGroupsPayload) Declaration() Declaration {
	return Declaration{Number: 203, By: Leader, Since: LaunchesSince}
}

func (ArrangeGroupsPayload) yields(None) {}

// PutStartTypePayload says how a group starts. Faults: not_found.
type PutStartTypePayload struct {
	Customer  string `cbor:"1,keyasint"`
	Group     ids.ID `cbor:"2,keyasint"`
	StartType string `cbor:"3,keyasint"`
}

// Declaration implements Payload.
func (PutStartTypePayload) Declaration() Declaration {
	return Declaration{Number: 204, By: APIServer, Kept: true, Since: LaunchesSince}
}

func (PutStartTypePayload) yields(None) {}
