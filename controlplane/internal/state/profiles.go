package state

import (
	"slices"
	"strings"
)

// Profile is what a customer says about itself. It is made when the customer first says something.
type Profile struct {
	Customer string `cbor:"1,keyasint"`
	// Email is "" until the customer signs up, and never changes afterwards. It is unique among
	// profiles, ignoring case.
	Email     string `cbor:"2,keyasint,omitempty"`
	Firstname string `cbor:"3,keyasint,omitempty"`
	Lastname  string `cbor:"4,keyasint,omitempty"`
	AgreedAt  int64  `cbor:"5,keyasint,omitempty"` // to the user agreement; 0: never
	Info      []Info `cbor:"6,keyasint,omitempty"` // by key, ascending
	UpdatedAt int64  `cbor:"7,keyasint"`
}

// Info is one key and value that a customer keeps in its profile.
type Info struct {
	Key   string `cbor:"1,keyasint"`
	Value string `cbor:"2,keyasint"`
}

// FindInfo returns the place of a key, or where it would be inserted.
func (p *Profile) FindInfo(key string) (at int, found bool) {
	return slices.BinarySearchFunc(p.Info, key,
		func(i Info, key string) int { return strings.Compare(i.Key, key) })
}

// Clone returns a copy that may be changed.
func (p *Profile) Clone() *Profile {
	c := *p
	c.Info = slices.Clone(p.Info)
	return &c
}

var profilesTable = define(2, "profiles",
	index("id", true, func(p *Profile) []any { return []any{p.Customer} }),
	index("email", true, func(p *Profile) []any {
		if p.Email == "" {
			return nil
		}
		return []any{foldEmail(p.Email)}
	}),
).told((*Profile).telling)

// foldEmail lowers A to Z, independent of the version of Unicode.
func foldEmail(email string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, email)
}

// Profile returns a customer's profile, nil when it has none.
func (v *View) Profile(customer string) *Profile { return profilesTable.first(v, "id", customer) }

// ProfileByEmail returns the profile with an address, ignoring case, or nil.
func (v *View) ProfileByEmail(email string) *Profile {
	return profilesTable.first(v, "email", foldEmail(email))
}

// PutProfile adds or replaces a profile.
func (t *Tx) PutProfile(p *Profile) { profilesTable.put(t, p) }

// Launches counts a customer's launches by UTC day of state time, ascending. Days without launches
// have no entry. Days LaunchDays old or older may be missing.
type Launches struct {
	Customer string        `cbor:"1,keyasint"`
	Days     []DayLaunches `cbor:"2,keyasint"`
}

// DayLaunches counts the launches of one day.
type DayLaunches struct {
	Day  int64  `cbor:"1,keyasint"` // since 1970-01-01
	Runs uint32 `cbor:"2,keyasint"`
}

// LaunchDays is the number of days in which launches are counted, including today.
const LaunchDays = 30

var launchesTable = define(2, "launches",
	index("id", true, func(l *Launches) []any { return []any{l.Customer} })).untold()

// Launches counts a customer's launches of the last LaunchDays days, up to and including today.
func (v *View) Launches(customer string, today int64) int {
	sum := 0
	if known := launchesTable.first(v, "id", customer); known != nil {
		for _, d := range known.Days {
			if d.Day > today-LaunchDays && d.Day <= today {
				sum += int(d.Runs)
			}
		}
	}
	return sum
}

// CountLaunch counts one launch today.
func (t *Tx) CountLaunch(customer string, today int64) {
	next := &Launches{Customer: customer}
	if known := launchesTable.first(&t.View, "id", customer); known != nil {
		for _, d := range known.Days {
			if d.Day > today-LaunchDays {
				next.Days = append(next.Days, d)
			}
		}
	}
	if last := len(next.Days) - 1; last >= 0 && next.Days[last].Day == today {
		next.Days[last].Runs++
	} else {
		next.Days = append(next.Days, DayLaunches{Day: today, Runs: 1})
	}
	launchesTable.put(t, next)
	t.came(customer, ran)
}
