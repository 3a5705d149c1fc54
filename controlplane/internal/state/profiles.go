package state

import (
	"slices"
	"strings"
)

// Profile is what a customer says of itself. A customer has none until it says something.
type Profile struct {
	Customer string `cbor:"1,keyasint"`
	// Email is "" until the customer has signed up, and never changes afterwards. No other profile
	// has it, in whatever case its letters are.
	Email     string `cbor:"2,keyasint,omitempty"`
	Firstname string `cbor:"3,keyasint,omitempty"`
	Lastname  string `cbor:"4,keyasint,omitempty"`
	AgreedAt  int64  `cbor:"5,keyasint,omitempty"` // to the user agreement; 0: never
	Info      []Info `cbor:"6,keyasint,omitempty"` // by key, ascending
	UpdatedAt int64  `cbor:"7,keyasint"`
}

// Info is one thing that a customer keeps in its profile.
type Info struct {
	Key   string `cbor:"1,keyasint"`
	Value string `cbor:"2,keyasint"`
}

// FindInfo says where a key is, or belongs.
func (p *Profile) FindInfo(key string) (at int, found bool) {
	return slices.BinarySearchFunc(p.Info, key,
		func(i Info, key string) int { return strings.Compare(i.Key, key) })
}

// Clone is a copy that may be changed.
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

// foldEmail makes A to Z small, whatever the version of Unicode.
func foldEmail(email string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, email)
}

// Profile is nil when the customer has said nothing.
func (v *View) Profile(customer string) *Profile { return profilesTable.first(v, "id", customer) }

// ProfileByEmail is nil when nobody signed up with the address, in whatever case.
func (v *View) ProfileByEmail(email string) *Profile {
	return profilesTable.first(v, "email", foldEmail(email))
}

// PutProfile adds or replaces.
func (t *Tx) PutProfile(p *Profile) { profilesTable.put(t, p) }

// Launches counts a customer's launches by UTC day, of state time, ascending. Days without any have
// no entry, and those that are LaunchDays old or older may be missing.
type Launches struct {
	Customer string        `cbor:"1,keyasint"`
	Days     []DayLaunches `cbor:"2,keyasint"`
}

// DayLaunches are those of one day.
type DayLaunches struct {
	Day  int64  `cbor:"1,keyasint"` // since 1970-01-01
	Runs uint32 `cbor:"2,keyasint"`
}

// LaunchDays is for how many days launches are counted, today among them.
const LaunchDays = 30

var launchesTable = define(2, "launches",
	index("id", true, func(l *Launches) []any { return []any{l.Customer} })).untold()

// Launches counts a customer's launches of the last LaunchDays days, the one that is given being
// the last.
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

// CountLaunch counts one more of today.
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
