package state

import "cmp"

// SettingsSince is the first cluster version that keeps operators' settings in the state.
const SettingsSince = 2

// LowBalanceMicros is the threshold of a new wallet, unless an operator has set one: 5 EUR.
const LowBalanceMicros = 5_000_000

// Settings are what operators have set for all nodes. The zero value sets nothing.
type Settings struct {
	Revision uint64 `cbor:"1,keyasint"` // of the newest change, from 1; 0: nothing was ever set
	// BillingOff says that pages are counted and shown, but nothing is reserved or charged.
	BillingOff bool `cbor:"2,keyasint,omitempty"`
	// Threshold is the low-balance threshold of new wallets, in micros; nil: the program's.
	Threshold *int64 `cbor:"3,keyasint,omitempty"`
	// Rates and CustomerRates override each server's own figures, by class, ascending. A class
	// without an entry keeps the server's figure.
	Rates         []RateFigure `cbor:"4,keyasint,omitempty"`
	CustomerRates []RateFigure `cbor:"5,keyasint,omitempty"`
	ChangedAt     int64        `cbor:"6,keyasint,omitempty"` // Unix milliseconds of state time
	ChangedBy     string       `cbor:"7,keyasint,omitempty"` // the admin's subject
	// SignUp says that people may make their own accounts.
	SignUp bool `cbor:"8,keyasint,omitempty"`
	// Uploads holds the figures of uploads.
	Uploads UploadFigures `cbor:"9,keyasint,omitzero"`
	// HistoryDays is how long an ended run stays in the history; 0: each leader's own figure.
	HistoryDays uint32 `cbor:"10,keyasint,omitempty"`
	// Plans is the catalogue of legacy plans, by level; none: each server's own catalogue. An
	// operator's catalogue can be replaced, but not unset.
	Plans []Plan `cbor:"11,keyasint,omitempty"`
}

// Plan is an entry of the catalogue of legacy plans (decision 39).
type Plan struct {
	Name     string      `cbor:"1,keyasint"`
	Level    int32       `cbor:"2,keyasint,omitempty"` // the dearer plan has the higher level
	Cents    int64       `cbor:"3,keyasint,omitempty"` // of a euro, per month
	Features []string    `cbor:"4,keyasint,omitempty"`
	Limits   []PlanLimit `cbor:"5,keyasint,omitempty"` // by name, ascending
	Offered  bool        `cbor:"6,keyasint,omitempty"` // customers may choose it themselves
}

// PlanLimit is how many of one thing a plan allows.
type PlanLimit struct {
	Name string `cbor:"1,keyasint"`
	Most uint32 `cbor:"2,keyasint,omitempty"`
}

// Bounds of HistoryDays. A run stays at least as long as its rows.
const (
	MinHistoryDays = 90
	MaxHistoryDays = 36_500
)

// UploadFigures are the operators' figures of uploads; 0: the program's own.
type UploadFigures struct {
	Heavy   uint32 `cbor:"1,keyasint,omitempty"` // heavy ones imported at a time
	Seconds uint32 `cbor:"2,keyasint,omitempty"` // that the upload of a file may take
	// HoldMinutes is how long an upload without progress blocks its scraper for other files.
	HoldMinutes uint32 `cbor:"3,keyasint,omitempty"`
}

// The program's own figures of uploads.
const (
	HeavyImports = 1
	HoldMinutes  = 30
)

// Whole returns the figures, with the program's own where none are set, except for Seconds.
func (f UploadFigures) Whole() UploadFigures {
	f.Heavy, f.HoldMinutes = cmp.Or(f.Heavy, HeavyImports), cmp.Or(f.HoldMinutes, HoldMinutes)
	return f
}

// RateFigure bounds the rate of calls of a class.
type RateFigure struct {
	Class string `cbor:"1,keyasint"`
	Count uint32 `cbor:"2,keyasint"` // 1 or more
	Per   int64  `cbor:"3,keyasint"` // milliseconds, 1,000 or more
}

var settingsTable = define(SettingsSince, "settings",
	index("id", true, func(*Settings) []any { return []any{"settings"} }),
).told((*Settings).telling).always().followedByAll(Touch{What: TouchedWallet})

// Settings returns the settings in force, which must not be changed.
func (v *View) Settings() *Settings {
	if known := settingsTable.first(v, "id", "settings"); known != nil {
		return known
	}
	return &Settings{}
}

// PutSettings replaces the settings.
func (t *Tx) PutSettings(s *Settings) { settingsTable.put(t, s) }

// keepSettings keeps today's settings: the backup does not know what operators have decided since.
// The backup's hold if the replaced state never had any. Plans that a server brought at its start
// are not an operator's decision, but are kept, too.
func (f *follower) keepSettings(tx *Tx) {
	today, next := f.old.Settings(), *f.mine.Settings()
	lost := today.Plans
	if today.Revision > 0 {
		next, lost = *today, next.Plans
	}
	if len(next.Plans) == 0 {
		next.Plans = lost
	}
	if next.Revision > 0 || len(next.Plans) > 0 {
		tx.PutSettings(&next)
	}
}
