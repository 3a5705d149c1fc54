package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of a LaunchRunsPayload.
const (
	// MaxRunsAtOnce is how many runs one command makes: a customer's bound of open runs.
	MaxRunsAtOnce = 1_000
	// MaxSkips is how many skipped scrapers one command names. They are also in the idempotency
	// record: 1,000 skips take 17 KB of it, and 1,000 runs 27 KB.
	MaxSkips = 1_000
)

// LaunchesSince is the first cluster version in which groups are launched.
const LaunchesSince = 2

// LaunchRunsPayload launches scrapers of one group in one step. Those that the state refuses are
// skipped, with the reason. Faults: not_found, customer_blocked.
type LaunchRunsPayload struct {
	Customer string     `cbor:"1,keyasint"`
	Group    ids.ID     `cbor:"2,keyasint,omitempty"` // zero: scrapers of any groups
	Runs     []GroupRun `cbor:"3,keyasint,omitempty"` // at most MaxRunsAtOnce
	// Engines are the search engines that the runs name.
	Engines []model.SearchEngine `cbor:"4,keyasint,omitempty"`
	// Skipped lists the scrapers that the proposer has skipped, at most MaxSkips. Unnamed counts
	// the others.
	Skipped []SkippedScraper `cbor:"5,keyasint,omitempty"`
	Unnamed uint32           `cbor:"6,keyasint,omitempty"`
	// Item is the background work that launches the runs; nil: a call does.
	Item *LaunchItem `cbor:"7,keyasint,omitempty"`
}

// LaunchItem is the background work of a LaunchRunsPayload, which advances it in the same step. A
// command whose From is not the item's cursor changes nothing.
type LaunchItem struct {
	ID   ids.ID `cbor:"1,keyasint"`
	From []byte `cbor:"2,keyasint,omitempty"` // the item's cursor before
	Upto []byte `cbor:"3,keyasint,omitempty"` // and after
	Done bool   `cbor:"4,keyasint,omitempty"` // nothing is left: the item is removed
}

// GroupRun is one run of a LaunchRunsPayload. The fields that LaunchRunPayload has, too, have the
// same meaning.
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

// StopGroupPayload stops the active runs of all scrapers of a group. Their state is final at once;
// they then drain and close. Faults: not_found.
type StopGroupPayload struct {
	Customer string `cbor:"1,keyasint"`
	Group    ids.ID `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (StopGroupPayload) Declaration() Declaration {
	return Declaration{Number: 201, By: APIServer, Kept: true, Since: LaunchesSince}
}

func (StopGroupPayload) yields(LaunchedRuns) {}

// SkipFor returns the reason to skip a scraper whose launch failed.
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

// MaxMoves is how many schedules one command advances.
const MaxMoves = 500

// MoveSchedulesPayload sets when schedules start next, and makes background work of the due starts,
// in one step. It ignores a schedule that has changed or advanced since. It also ignores a due
// schedule whose customer has too much of that work.
type MoveSchedulesPayload struct {
	Moves []ScheduleMove `cbor:"1,keyasint"` // at most MaxMoves
}

// ScheduleMove advances one schedule. Times are Unix milliseconds.
type ScheduleMove struct {
	Target ids.ID `cbor:"1,keyasint"`
	Set    uint64 `cbor:"2,keyasint"`           // as the schedule has it
	From   int64  `cbor:"3,keyasint,omitempty"` // the start that was next
	To     int64  `cbor:"4,keyasint"`           // the next start from now on
	Start  int64  `cbor:"5,keyasint,omitempty"` // the start that is due; 0: none
	Missed uint32 `cbor:"6,keyasint,omitempty"` // starts from From on that are too late
	Item   ids.ID `cbor:"7,keyasint,omitempty"` // id of the work, if there is any
}

// Declaration implements Payload.
func (MoveSchedulesPayload) Declaration() Declaration {
	return Declaration{Number: 202, By: Leader, Since: LaunchesSince}
}

func (MoveSchedulesPayload) yields(None) {}

// ArrangeGroupsPayload gives schedules to groups that were made by a cluster version without
// schedules.
type ArrangeGroupsPayload struct {
	Groups []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ArrangeGroupsPayload) Declaration() Declaration {
	return Declaration{Number: 203, By: Leader, Since: LaunchesSince}
}

func (ArrangeGroupsPayload) yields(None) {}

// PutStartTypePayload sets how a group starts. Faults: not_found.
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
