package fsm

import (
	"cmp"
	"slices"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/model"
)

// A read counts when its seq is dispatched, on that day, and only once over redispatches. It is
// uncounted when the seq comes back unread. Each read that is out may end uncharged, so it holds a
// place under that limit until its end. So the limits are never exceeded. Each day starts at zero,
// and earlier days' reads do not count.

const dayMillis = 24 * 60 * 60 * 1000

// dailies holds the daily counts within one command; nothing is written before save.
type dailies struct {
	tx      *state.Tx
	changed map[string]*state.Daily
}

func openDailies(tx *state.Tx) *dailies {
	return &dailies{tx: tx,
		changed: map[string]*state.Daily{}}
}

func (d *dailies) today() int64 { return d.tx.Now / dayMillis }

// of returns the command's copy of a customer's counts of today.
func (d *dailies) of(customer string) *state.Daily {
	if own, ok := d.changed[customer]; ok {
		return own
	}
	own := &state.Daily{Customer: customer, Day: d.today()}
	if known := d.tx.Daily(customer); known != nil && known.Day == own.Day {
		own = known.Clone()
	}
	d.changed[customer] = own
	return own
}

// verdict says whether one more read may begin.
type verdict int

const (
	readAllowed verdict = iota
	readLimited         // a limit is reached for today
	readWaits           // reads that are out may still reach a limit
)

// countRead counts a read of a domain, if the limits allow it.
func (d *dailies) countRead(customer string, limits model.DailyLimits, domain uint64) (verdict,
	*state.Read) {
	own := d.of(customer)
	at, found := findDomain(own, domain)
	switch {
	case own.Reads >= limits.Reads, own.Uncharged >= limits.Uncharged, found &&
		own.Domains[at].Reads >= limits.PerDomain:
		return readLimited, nil
	case own.Uncharged+own.Out >= limits.Uncharged:
		return readWaits, nil
	}
	own.Reads++
	own.Out++
	if !found {
		own.Domains = slices.Insert(own.Domains, at, state.DomainReads{Domain: domain})
	}
	own.Domains[at].Reads++
	return readAllowed, &state.Read{Day: own.Day, Domain: domain}
}

// end counts an ended read, unless it is nil or of another day.
func (d *dailies) end(customer string, read *state.Read, charged bool) {
	if read == nil || read.Day != d.today() {
		return
	}
	own := d.of(customer)
	own.Out--
	if !charged {
		own.Uncharged++
	}
}

// takeBack uncounts a read that did not happen.
func (d *dailies) takeBack(customer string, read *state.Read) {
	if read == nil || read.Day != d.today() {
		return
	}
	own := d.of(customer)
	own.Out--
	own.Reads--
	if at, found := findDomain(own, read.Domain); found {
		if own.Domains[at].Reads--; own.Domains[at].Reads == 0 {
			own.Domains = slices.Delete(own.Domains, at, at+1)
		}
	}
}

func findDomain(d *state.Daily, domain uint64) (at int, found bool) {
	return slices.BinarySearchFunc(d.Domains, domain, func(r state.DomainReads, wanted uint64) int {
		return cmp.Compare(r.Domain, wanted)
	})
}

func (d *dailies) save() {
	for _, own := range d.changed { // each write is to another record: order does not matter
		d.tx.PutDaily(own)
	}
}

// expireDailies removes counts of earlier days, a bounded number at a time.
func expireDailies(tx *state.Tx) {
	var past []*state.Daily
	tx.DailiesByDay(func(d *state.Daily) bool {
		if d.Day >= tx.Now/dayMillis || len(past) == maxExpiredPerTick {
			return false
		}
		past = append(past, d)
		return true
	})
	for _, d := range past {
		tx.RemoveDaily(d)
	}
}
