package command

import "shoal.dev/shoal/controlplane/internal/state"

// Bounds of settings.
const (
	MaxRateFigures   = 64
	MaxRateClassName = 64                // bytes
	MaxRateCount     = 1_000_000         // calls of a figure
	MaxRateMillis    = 86_400_000        // 24 hours
	MaxThreshold     = 1_000_000_000_000 // micros
	MaxHeavyImports  = 16
	MaxUploadSeconds = 3_600
	MaxHoldMinutes   = 1_440 // a file is kept for a day
	MaxPlans         = 16
	MaxPlanTerms     = 32         // features of a plan, and limits
	MaxPlanText      = 64         // bytes of a name
	MaxPlanCents     = 10_000_000 // a month: 100,000 EUR
	MaxPlanLimit     = 1_000_000_000
)

// PutSettingsPayload changes the operators' settings: what it names, and nothing else. It answers
// the settings behind it. One that changes nothing leaves the revision as it is. Faults:
// invalid_request.
type PutSettingsPayload struct {
	By string `cbor:"1,keyasint,omitempty"` // the admin's subject
	// BillingOff switches wallet billing off, or on; nil: as it is.
	BillingOff *bool `cbor:"2,keyasint,omitempty"`
	// Threshold is of new wallets, in micros; nil: as it is. Below 0: that of the program.
	Threshold *int64 `cbor:"3,keyasint,omitempty"`
	// Rates and CustomerRates replace all figures, by class, ascending; nil: as they are.
	Rates         *[]state.RateFigure `cbor:"4,keyasint,omitempty"`
	CustomerRates *[]state.RateFigure `cbor:"5,keyasint,omitempty"`
	// SignUp lets people make accounts for themselves, or not; nil: as it is.
	SignUp *bool `cbor:"6,keyasint,omitempty"`
	// Uploads replaces the figures of uploads; nil: as they are.
	Uploads *state.UploadFigures `cbor:"7,keyasint,omitempty"`
	// HistoryDays are how long an ended run stays in the history; nil: as it is. 0: as each leader
	// was started.
	HistoryDays *uint32 `cbor:"8,keyasint,omitempty"`
	// Plans replaces the catalogue of plans; nil: as it is. None are no catalogue.
	Plans *[]state.Plan `cbor:"9,keyasint,omitempty"`
}

// Declaration implements Payload.
func (PutSettingsPayload) Declaration() Declaration {
	return Declaration{Number: 132, By: APIServer, Kept: true, Since: state.SettingsSince}
}

func (PutSettingsPayload) yields(state.Settings) {}

// SeedPlansPayload brings the catalogue of plans that a server was started with. It counts where
// the settings have none, and changes nothing elsewhere: so the first server decides for all, and
// what an operator has set stays. It is no change of the settings by an operator, so the revision
// stays. It answers the settings behind it. Faults: invalid_request.
type SeedPlansPayload struct {
	Plans []state.Plan `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (SeedPlansPayload) Declaration() Declaration {
	return Declaration{Number: 133, By: APIServer, Since: state.SettingsSince}
}

func (SeedPlansPayload) yields(state.Settings) {}
