package command

import "shoal.dev/shoal/controlplane/internal/state"

// Bounds of settings.
const (
	MaxRateFigures   = 64
	MaxRateClassName = 64                // bytes
	MaxRateCount     = 1_000_000         // calls per figure
	MaxRateMillis    = 86_400_000        // 24 hours
	MaxThreshold     = 1_000_000_000_000 // micros
	MaxHeavyImports  = 16
	MaxUploadSeconds = 3_600
	MaxHoldMinutes   = 1_440 // a file is kept for a day
	MaxPlans         = 16
	MaxPlanTerms     = 32         // features of a plan, and also limits
	MaxPlanText      = 64         // bytes of a name
	MaxPlanCents     = 10_000_000 // per month: 100,000 EUR
	MaxPlanLimit     = 1_000_000_000
)

// PutSettingsPayload changes the operators' settings that it names, and no others. It answers the
// settings afterwards. Without a change the revision stays. Faults: invalid_request,
// settings_changed.
type PutSettingsPayload struct {
	By string `cbor:"1,keyasint,omitempty"` // the admin's subject
	// BillingOff switches wallet billing off, or on; nil: unchanged.
	BillingOff *bool `cbor:"2,keyasint,omitempty"`
	// Threshold is for new wallets, in micros; nil: unchanged. Below 0: the program's own.
	Threshold *int64 `cbor:"3,keyasint,omitempty"`
	// Rates and CustomerRates replace all figures, by class, ascending; nil: unchanged.
	Rates         *[]state.RateFigure `cbor:"4,keyasint,omitempty"`
	CustomerRates *[]state.RateFigure `cbor:"5,keyasint,omitempty"`
	// SignUp sets whether people may make their own accounts; nil: unchanged.
	SignUp *bool `cbor:"6,keyasint,omitempty"`
	// Uploads replaces the figures of uploads; nil: unchanged.
	Uploads *state.UploadFigures `cbor:"7,keyasint,omitempty"`
	// HistoryDays is how long an ended run stays in the history; nil: unchanged. 0: each leader's
	// own figure.
	HistoryDays *uint32 `cbor:"8,keyasint,omitempty"`
	// Plans replaces the catalogue of plans, which must not be empty; nil: unchanged.
	Plans *[]state.Plan `cbor:"9,keyasint,omitempty"`
	// Revision is that of the settings which the admin has read; nil: any. With another one than
	// today's nothing changes.
	Revision *uint64 `cbor:"10,keyasint,omitempty"`
}

// Declaration implements Payload.
func (PutSettingsPayload) Declaration() Declaration {
	return Declaration{Number: 132, By: APIServer, Kept: true, Since: state.SettingsSince}
}

func (PutSettingsPayload) yields(state.Settings) {}

// SeedPlansPayload proposes the catalogue of plans that a server was started with. It only takes
// effect if the settings have none. So the first server decides for all, and an operator's
// catalogue stays. The revision stays, since no operator made the change. It answers the settings
// afterwards. Faults: invalid_request.
type SeedPlansPayload struct {
	Plans []state.Plan `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (SeedPlansPayload) Declaration() Declaration {
	return Declaration{Number: 133, By: APIServer, Since: state.SettingsSince}
}

func (SeedPlansPayload) yields(state.Settings) {}
