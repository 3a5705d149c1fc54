package unit

import (
	"time"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// repeat starts the next try at a page and counts it.
func (t *Turn) repeat() {
	t.units.counts.retries.Add(1)
	t.restart()
}

// restart resets the chain for another try at the page.
func (c *Chain) restart() {
	s := &c.fetch
	s.hops, s.permit, s.spent, s.busy = 0, false, 0, 0
	s.at, s.as = c.address(), nil
}

// climb moves on to the next of tiers that is in among; false if there is none.
func (s *fetchState) climb(tiers []model.Tier, among model.TierSet) bool {
	for next := s.tier + 1; next < len(tiers); next++ {
		if among.Has(tiers[next]) {
			s.tier, s.failures = next, 0
			return true
		}
	}
	return false
}

// learn records, for a unit with rows, the tiers that failed before another one succeeded.
func (t *Turn) learn() {
	host, now := address.AuthorityOf(t.address()), t.units.config.Clock.Now()
	var futile, empty model.TierSet
	for _, try := range t.fetch.tries {
		if try.Tier == t.fetch.by {
			continue
		}
		switch fault.Code(try.Code) {
		case fault.PageNoRows, fault.PageRowRejected:
			empty |= model.TiersOf(try.Tier)
		default:
			futile |= model.TiersOf(try.Tier)
		}
	}
	if futile != 0 {
		t.units.hosts.Note(host, futile, now)
	}
	switch {
	case empty != 0:
		t.units.hosts.NoteEmpty(host, empty, now)
	case !t.fetch.by.Renders():
		t.units.hosts.NoteFilled(host)
	}
}

// noteTry records a try.
func (t *Turn) noteTry(tier model.Tier, code fault.Code, status int, wire int64) {
	t.fetch.why = ""
	t.fetch.tries = append(t.fetch.tries,
		model.Try{Tier: tier, Code: string(code), Status: uint16(status),
			Millis: clamp(t.fetch.spent.Milliseconds())})
	t.fetch.wire += wire
	t.units.counts.bytes.Add(uint64(max(wire, 0)))
}

// mayTry says whether the unit's limits allow another try after a wait.
func (t *Turn) mayTry(wait time.Duration) bool {
	fetches, _ := t.recipe.extractor.Limits()
	return (fetches == 0 || len(t.fetch.tries) < fetches) &&
		!t.isOverdue(t.units.config.Clock.Now().Add(wait))
}

// timeout returns how long a request that starts now may take.
func (t *Turn) timeout(now time.Time) time.Duration {
	if t.fetch.until.IsZero() {
		return t.units.config.Timeout
	}
	return min(t.units.config.Timeout, t.fetch.until.Sub(now))
}

// isOverdue says whether the unit's time is over.
func (c *Chain) isOverdue(now time.Time) bool {
	return !c.fetch.until.IsZero() && !now.Before(c.fetch.until)
}

// lastCode returns why the current page is missing when the unit's time is over.
func (c *Chain) lastCode() fault.Code {
	if n := len(c.fetch.tries); n > 0 && c.fetch.asked == "" {
		return fault.Code(c.fetch.tries[n-1].Code)
	}
	return fault.PageTimeout
}
