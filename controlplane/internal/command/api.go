package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// The payloads that API calls propose. Beside each stands its declaration.

// OpenCustomerPayload makes the customer and its wallet with the free grant, unless both exist.
type OpenCustomerPayload struct {
	Customer string `cbor:"1,keyasint"`
	Entry    ids.ID `cbor:"2,keyasint"` // ledger entry of the free grant
}

// Declaration implements Payload.
func (OpenCustomerPayload) Declaration() Declaration {
	return Declaration{Number: 10, By: APIServer, Kept: true}
}

func (OpenCustomerPayload) yields(state.Customer) {}

// MintKeyPayload makes an API key. Faults: limit_reached (1,000 keys a customer).
type MintKeyPayload struct {
	ID       ids.ID      `cbor:"1,keyasint"`
	Customer string      `cbor:"2,keyasint"`
	Prefix   string      `cbor:"3,keyasint"`
	Hash     [32]byte    `cbor:"4,keyasint"`
	Name     string      `cbor:"5,keyasint"`
	Scope    model.Scope `cbor:"6,keyasint"`
	// ExpiresAt is when the key expires, in Unix milliseconds; 0: never.
	ExpiresAt int64 `cbor:"7,keyasint,omitempty" since:"2"`
}

// Needs implements Needing for keys with an expiry.
func (p MintKeyPayload) Needs() uint32 {
	if p.ExpiresAt != 0 {
		return KeysExpireSince
	}
	return 1
}

// KeysExpireSince is the first cluster version in which keys may expire.
const KeysExpireSince = 2

// Declaration implements Payload.
func (MintKeyPayload) Declaration() Declaration {
	return Declaration{Number: 11, By: APIServer, Kept: true}
}

func (MintKeyPayload) yields(state.Key) {}

// RevokeKeyPayload removes a key and answers it. Faults: key_not_found.
type RevokeKeyPayload struct {
	Customer string `cbor:"1,keyasint"`
	ID       ids.ID `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (RevokeKeyPayload) Declaration() Declaration {
	return Declaration{Number: 12, By: APIServer, Kept: true}
}

func (RevokeKeyPayload) yields(state.Key) {}

// KeyTouch says when a key was last used, in Unix milliseconds, and from which address.
type KeyTouch struct {
	ID ids.ID `cbor:"1,keyasint"`
	At int64  `cbor:"2,keyasint"`
	// Address has at most 39 characters; "": unknown.
	Address string `cbor:"3,keyasint,omitempty" since:"2"`
}

// TouchKeysPayload records the last uses of keys, collected over a minute.
type TouchKeysPayload struct {
	Keys []KeyTouch `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (TouchKeysPayload) Declaration() Declaration {
	return Declaration{Number: 13, By: APIServer}
}

func (TouchKeysPayload) yields(None) {}

// PutGroupPayload creates (Create) or replaces a group. Faults: GROUP_NOT_FOUND on an update of a
// group that is not the customer's, limit_reached (10,000 groups a customer), plan_limit_reached.
// Before state.NamesakesSince also NAME_TAKEN.
type PutGroupPayload struct {
	Create              bool   `cbor:"1,keyasint,omitempty"`
	ID                  ids.ID `cbor:"2,keyasint"`
	Customer            string `cbor:"3,keyasint"`
	Name                string `cbor:"4,keyasint"`
	DataTable           string `cbor:"5,keyasint"`
	StartType           string `cbor:"6,keyasint"`
	ShouldMatchProducts bool   `cbor:"7,keyasint,omitempty"`
	// Filled says that the request left members out; the proposer filled them from the group.
	Filled bool `cbor:"9,keyasint,omitempty" since:"2"`
	// Retention is how many of each scraper's newest runs keep their rows, 0: the scraper decides.
	Retention int `cbor:"10,keyasint,omitempty" since:"2"`
	// Cap bounds the customer's groups by its plan; nil: only the general limit.
	Cap *PlanCap `cbor:"11,keyasint,omitempty" since:"2"`
	// Zone is the time zone of its starts, "": UTC.
	Zone string `cbor:"12,keyasint,omitempty" since:"2"`
	// Quarantine delays its runs: they count once COMPLETED, and unusual ones once released.
	Quarantine bool `cbor:"13,keyasint,omitempty" since:"2"`
	// Alerts says which changes between runs its customer is told of, nil: none.
	Alerts *state.Alerts `cbor:"14,keyasint,omitempty" since:"2"`
	// Left lists the members that the request left out. They keep their current values, since
	// another request may have changed them after the proposer looked.
	Left GroupMembers `cbor:"15,keyasint,omitempty" since:"2"`
}

// GroupMembers is a set of members of a group.
type GroupMembers uint16

// The members of a group that a request may leave out.
const (
	GroupName GroupMembers = 1 << iota
	GroupDataTable
	GroupStartType
	GroupMatching
	GroupRetention
	GroupZone
	GroupQuarantine
	GroupAlertsOn
	GroupAlertsKey
)

// Declaration implements Payload.
func (PutGroupPayload) Declaration() Declaration {
	return Declaration{Number: 20, By: APIServer, Kept: true}
}

func (PutGroupPayload) yields(state.Group) {}

// Needs implements Needing for groups with a retention, a time zone, quarantine or alerts.
func (p PutGroupPayload) Needs() uint32 {
	if p.Retention != 0 || p.Zone != "" || p.Quarantine || p.Alerts != nil {
		return max(RetentionSince, LaunchesSince, state.AlertsSince)
	}
	return 1
}

// RetentionSince is the first cluster version in which new runs replace older ones.
const RetentionSince = 2

// PutScraperPayload creates (Create) or replaces a scraper. Faults: scraper_not_found on an update
// of a scraper that is not the customer's, GROUP_NOT_FOUND, NAME_TAKEN (names are unique per
// customer). Also limit_reached (100,000 scrapers a customer, 256 MiB with their recipes), and
// plan_limit_reached.
type PutScraperPayload struct {
	Create   bool          `cbor:"1,keyasint,omitempty"`
	ID       ids.ID        `cbor:"2,keyasint"`
	Customer string        `cbor:"3,keyasint"`
	Group    ids.ID        `cbor:"4,keyasint"`
	Spec     model.Scraper `cbor:"5,keyasint"`
	ListRun  bool          `cbor:"6,keyasint,omitempty"`
	Tag      string        `cbor:"7,keyasint,omitempty"`
	// Cap bounds the customer's scrapers by its plan; nil: only the general limit.
	Cap *PlanCap `cbor:"8,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (PutScraperPayload) Declaration() Declaration {
	return Declaration{Number: 21, By: APIServer, Kept: true}
}

func (PutScraperPayload) yields(state.Scraper) {}

// Needs implements Needing for scrapers with a schedule, a retention or kept bodies. Version 1 has
// the member of the retention, and refuses to set it.
func (p PutScraperPayload) Needs() uint32 {
	needs := uint32(1)
	if p.Spec.Schedule != "" || p.Spec.ScheduleTimezone != "" {
		needs = LaunchesSince
	}
	if config := p.Spec.Config; config != nil {
		if config.RetentionCount != nil {
			needs = max(needs, RetentionSince)
		}
		if config.KeepBodyDays != nil {
			needs = max(needs, BodiesSince)
		}
	}
	return needs
}

// BodiesSince is the first cluster version in which bodies of pages are kept.
const BodiesSince = 2

// PutRetentionPayload sets how many of a scraper's newest runs keep their rows, 1 or more; 0: all.
// Faults: scraper_not_found, invalid_request below 0.
type PutRetentionPayload struct {
	Customer string `cbor:"1,keyasint"`
	Scraper  ids.ID `cbor:"2,keyasint"`
	Count    int    `cbor:"3,keyasint,omitempty"`
}

// Declaration implements Payload.
func (PutRetentionPayload) Declaration() Declaration {
	return Declaration{Number: 140, By: APIServer, Kept: true, Since: RetentionSince}
}

func (PutRetentionPayload) yields(state.Scraper) {}

// DeleteScraperPayload removes a customer's scraper and stops its runs. Run records stay. Rows
// stay, too, unless the query is WithData. Token is the preview's, "" accepts any valid preview.
// Faults: scraper_not_found, PREVIEW_REQUIRED, CASCADE_COUNT_DRIFT. Also limit_reached (the rows of
// 10,000 scrapers of the customer are being removed).
type DeleteScraperPayload struct {
	Deletion Deletion `cbor:"1,keyasint"`
	Token    string   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DeleteScraperPayload) Declaration() Declaration {
	return Declaration{Number: 22, By: APIServer, Kept: true, Since: ScraperDeletesSince}
}

func (DeleteScraperPayload) yields(None) {}

// ScraperDeletesSince is the first cluster version that deletes scrapers, and records previews of
// that.
const ScraperDeletesSince = 2

// ClaimCallPayload claims the envelope's idempotency key before the call's effect, for calls that
// stream a body or call other services. List is the link list that the call receives. Faults:
// idempotency_in_flight, idempotency_key_reused, idempotency_keys_exhausted.
type ClaimCallPayload struct {
	List ids.ID `cbor:"1,keyasint"`
	Node string `cbor:"2,keyasint"`
	Boot ids.ID `cbor:"3,keyasint"`
}

// Declaration implements Payload.
func (ClaimCallPayload) Declaration() Declaration {
	return Declaration{Number: 30, By: APIServer, Kept: true}
}

func (ClaimCallPayload) yields(*state.Claim) {}

// RenewClaimsPayload keeps claims under way from expiring. If a call ends without a result, nobody
// renews its claim, and it expires.
type RenewClaimsPayload struct {
	Node string `cbor:"1,keyasint"`
	Boot ids.ID `cbor:"2,keyasint"`
	// Ticket is the claim's; zero: all claims of this start of the node, as in version 1.
	Ticket ids.ID `cbor:"3,keyasint,omitzero" since:"2"`
}

// Declaration implements Payload.
func (RenewClaimsPayload) Declaration() Declaration {
	return Declaration{Number: 31, By: APIServer}
}

func (RenewClaimsPayload) yields(None) {}

// ReleaseClaimPayload drops the envelope's claim after the call failed before its effect.
type ReleaseClaimPayload struct{}

// Declaration implements Payload.
func (ReleaseClaimPayload) Declaration() Declaration {
	return Declaration{Number: 32, By: APIServer}
}

func (ReleaseClaimPayload) yields(None) {}

// LaunchRunPayload makes a run of a finished link list. With NewScraper it also makes the run's
// scraper (a list run). If only money can pay for the run and the customer never topped up, the run
// fails at once. Faults: scraper_not_found, GROUP_NOT_FOUND, NAME_TAKEN, scraper_already_running,
// WALLET_INSUFFICIENT_BALANCE, limit_reached (1,000 runs of a customer not closed),
// type_not_runnable (no price). Also scraper_changed (Charge is of another endpoint than the
// recipe's), customer_blocked, plan_limit_reached, and trial_limit_reached of a trial.
type LaunchRunPayload struct {
	Job        ids.ID             `cbor:"1,keyasint"`
	Entry      ids.ID             `cbor:"2,keyasint"` // its ledger entry
	Customer   string             `cbor:"3,keyasint"`
	Scraper    ids.ID             `cbor:"4,keyasint"`
	NewScraper *PutScraperPayload `cbor:"5,keyasint,omitempty"`
	List       ids.ID             `cbor:"6,keyasint"`
	Links      uint32             `cbor:"7,keyasint"` // 1 or more; the first so many of the list
	// duplicates left out of the list, for the answer
	Dropped       uint32        `cbor:"8,keyasint,omitempty"`
	Tiers         model.TierSet `cbor:"9,keyasint"`
	MaxCharge     *int64        `cbor:"10,keyasint,omitempty"` // micros, 0 or more
	IgnoresRobots bool          `cbor:"11,keyasint,omitempty"`
	// Trace is the call's span, for the leader that sees the run begin; nil: the run is not traced.
	// It is not stored in the state.
	Trace []byte `cbor:"12,keyasint,omitempty"`
	// Charge and Daily are those of the run's endpoint.
	Charge model.Charge      `cbor:"13,keyasint,omitzero"`
	Daily  model.DailyLimits `cbor:"14,keyasint,omitzero"`
	Trial  *Trial            `cbor:"20,keyasint,omitempty"`
	// Search is the current engine of a scraper of the type SEARCH_ENGINE_SEARCH. The scraper
	// stores it with its recipe.
	Search *model.SearchEngine `cbor:"21,keyasint,omitempty"`
	// Rest says that a rerun cut the list down to the rest of a list given before.
	Rest bool `cbor:"22,keyasint,omitempty" since:"2"`
	// Given is the length of the list if that is more than Links.
	Given uint32 `cbor:"23,keyasint,omitempty" since:"2"`
}

// Trial makes the run a sample or a preview. It runs its own recipe, beside any runs of Scraper.
// Scraper, which may be zero, and Group only serve the ledger.
type Trial struct {
	Source model.Source `cbor:"1,keyasint"`
	Recipe model.Recipe `cbor:"2,keyasint"` // of one page
	Group  ids.ID       `cbor:"3,keyasint,omitempty"`
	// the caller's key of the scope LLM_READ; zero: another credential
	Key ids.ID `cbor:"4,keyasint,omitempty"`
	// Same is a hash of everything that decides the trial's outcome; zero: it is not shared.
	Same state.Hash `cbor:"5,keyasint,omitzero" since:"2"`
	// Joins accepts an identical trial of the customer that is under way or has just delivered.
	// Then that one is the answer, and nothing is launched.
	Joins bool `cbor:"6,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (LaunchRunPayload) Declaration() Declaration {
	return Declaration{Number: 40, By: APIServer, Kept: true}
}

func (LaunchRunPayload) yields(Launched) {}

// Needs implements Needing for reruns, and for new scrapers with what these need. Without its mark
// a rerun's few rows would count as the newest run of the whole list. Leaders of version 1 read
// lists to their ends.
func (p LaunchRunPayload) Needs() uint32 {
	needs := uint32(1)
	if p.Rest || p.Given > 0 {
		needs = state.RestsSince
	}
	if p.NewScraper != nil {
		needs = max(needs, Since(*p.NewScraper))
	}
	return needs
}

// Launched answers LaunchRunPayload.
type Launched struct {
	Job     ids.ID         `cbor:"1,keyasint"`
	Scraper ids.ID         `cbor:"2,keyasint"`
	Tag     string         `cbor:"3,keyasint,omitempty"`
	Links   uint32         `cbor:"4,keyasint"`
	Dropped uint32         `cbor:"5,keyasint,omitempty"`
	State   model.JobState `cbor:"6,keyasint"`
	Queued  int64          `cbor:"7,keyasint"`           // Unix milliseconds
	Message string         `cbor:"8,keyasint,omitempty"` // why it failed at once
}

// StopRunPayload stops the scraper's active runs, or only the run Job. Their state is final at
// once; they then drain and close. Faults: not_found.
type StopRunPayload struct {
	Customer string `cbor:"1,keyasint"`
	Scraper  ids.ID `cbor:"2,keyasint"`
	Job      ids.ID `cbor:"3,keyasint,omitempty"`
}

// Declaration implements Payload.
func (StopRunPayload) Declaration() Declaration {
	return Declaration{Number: 41, By: APIServer, Kept: true}
}

func (StopRunPayload) yields(Stopped) {}

// Stopped answers StopRunPayload.
type Stopped struct {
	Jobs []ids.ID `cbor:"1,keyasint,omitempty"`
}

// AdjustWalletPayload books an operator's adjustment. Faults: amount_overflow, not_found for a
// customer that does not exist.
type AdjustWalletPayload struct {
	Customer string `cbor:"1,keyasint"`
	Entry    ids.ID `cbor:"2,keyasint"`
	Amount   int64  `cbor:"3,keyasint"` // not 0
	Note     string `cbor:"4,keyasint,omitempty"`
}

// Declaration implements Payload.
func (AdjustWalletPayload) Declaration() Declaration {
	return Declaration{Number: 50, By: APIServer, Kept: true}
}

func (AdjustWalletPayload) yields(state.Entry) {}

// PutPricesPayload makes a new version of the price table. Faults: prices_changed.
type PutPricesPayload struct {
	Rows price.List `cbor:"1,keyasint"`
	// Version is the required newest version; 0: any.
	Version uint32 `cbor:"2,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (PutPricesPayload) Declaration() Declaration {
	return Declaration{Number: 51, By: APIServer, Kept: true}
}

func (PutPricesPayload) yields(state.PriceTable) {}

// Needs implements Needing for tables of an expected version, and those with rows that are off.
func (p PutPricesPayload) Needs() uint32 {
	if p.Version != 0 || len(p.Rows.Enabled()) < len(p.Rows) {
		return state.PricesSince
	}
	return 1
}
