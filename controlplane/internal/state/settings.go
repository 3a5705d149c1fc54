package state

import "cmp"

// SettingsSince is the version of the cluster from which on operators have settings in the state.
const SettingsSince = 2

// LowBalanceMicros is the threshold of a new wallet, unless an operator has set one: 5 EUR.
const LowBalanceMicros = 5_000_000

// Settings are what operators have set for all nodes together. Of the zero value nothing is set.
type Settings struct {
	Revision uint64 `cbor:"1,keyasint"` // of the newest change, from 1; 0: nothing was ever set
	// BillingOff says that pages are counted and shown, and nothing is reserved or charged.
	BillingOff bool `cbor:"2,keyasint,omitempty"`
	// Threshold is the low-balance threshold of new wallets, in micros; nil: that of the program.
	Threshold *int64 `cbor:"3,keyasint,omitempty"`
	// Rates and CustomerRates take the place of what each server was started with, by class,
	// ascending. A class that is not among them stays as it is there.
	Rates         []RateFigure `cbor:"4,keyasint,omitempty"`
	CustomerRates []RateFigure `cbor:"5,keyasint,omitempty"`
	ChangedAt     int64        `cbor:"6,keyasint,omitempty"` // Unix milliseconds of state time
	ChangedBy     string       `cbor:"7,keyasint,omitempty"` // the admin's subject
	// SignUp says that people may make accounts for themselves.
	SignUp bool `cbor:"8,keyasint,omitempty"`
	// Uploads are figures of uploads.
	Uploads UploadFigures `cbor:"9,keyasint,omitzero"`
	// HistoryDays are how long an ended run stays in the history; 0: as each leader was started.
	HistoryDays uint32 `cbor:"10,keyasint,omitempty"`
	// Plans is the catalogue of legacy plans, by level; none: as each server was started. What an
	// operator has set is never taken back, only replaced.
	Plans []Plan `cbor:"11,keyasint,omitempty"`
}

// Plan is an entry of the catalogue of legacy plans (decision 39).
type Plan struct {
	Name     string      `cbor:"1,keyasint"`
	Level    int32       `cbor:"2,keyasint,omitempty"` // of two plans the dearer one has the higher
	Cents    int64       `cbor:"3,keyasint,omitempty"` // of a euro, a month
	Features []string    `cbor:"4,keyasint,omitempty"`
	Limits   []PlanLimit `cbor:"5,keyasint,omitempty"` // by name, ascending
	Offered  bool        `cbor:"6,keyasint,omitempty"` // customers may choose it by themselves
}

// PlanLimit is how many of a thing a plan allows.
type PlanLimit struct {
	Name string `cbor:"1,keyasint"`
	Most uint32 `cbor:"2,keyasint,omitempty"`
}

// Bounds of the days of history. A run stays no shorter than its rows.
const (
	MinHistoryDays = 90
	MaxHistoryDays = 36_500
)

// UploadFigures are what operators have set of uploads; 0: as it is in the program.
type UploadFigures struct {
	Heavy   uint32 `cbor:"1,keyasint,omitempty"` // heavy ones that are imported at a time
	Seconds uint32 `cbor:"2,keyasint,omitempty"` // that a file may take to come
	// HoldMinutes is how long an upload without progress keeps another file from its scraper.
	HoldMinutes uint32 `cbor:"3,keyasint,omitempty"`
}

// Figures of uploads where operators have set none.
const (
	HeavyImports = 1
	HoldMinutes  = 30
)

// Whole are the figures with those of the program where none are set, but for Seconds.
func (f UploadFigures) Whole() UploadFigures {
	f.Heavy, f.HoldMinutes = cmp.Or(f.Heavy, HeavyImports), cmp.Or(f.HoldMinutes, HoldMinutes)
	return f
}

// RateFigure is how often calls of a class may be made.
type RateFigure struct {
	Class string `cbor:"1,keyasint"`
	Count uint32 `cbor:"2,keyasint"` // 1 or more
	Per   int64  `cbor:"3,keyasint"` // milliseconds, 1,000 or more
}

var settingsTable = define(SettingsSince, "settings",
	index("id", true, func(*Settings) []any { return []any{"settings"} }),
).told((*Settings).telling).always().followedByAll(Touch{What: TouchedWallet})

// Settings are what holds now. They are not to be changed.
func (v *View) Settings() *Settings {
	if known := settingsTable.first(v, "id", "settings"); known != nil {
		return known
	}
	return &Settings{}
}

// PutSettings sets them.
func (t *Tx) PutSettings(s *Settings) { settingsTable.put(t, s) }

// keepSettings keeps the settings as they are today: what an operator has decided since the backup
// was not decided by it. Where the state that is replaced never had any, the backup's hold. Plans
// that a server's start has brought are no decision of an operator, but nor do they get lost.
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
