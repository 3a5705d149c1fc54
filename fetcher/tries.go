package fetcher

import (
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// again begins the next try at a page.
func (f *Fetcher) again(c *chain) {
	f.counts.retries.Add(1)
	c.restart()
}

// restart begins another try at the page.
func (c *chain) restart() {
	s := &c.fetch
	s.hops, s.permit, s.spent, s.busy = 0, false, 0, 0
	s.at, s.as = c.address(), nil
}

// climb goes on to the next tier among those given; false when none is left.
func (s *fetchState) climb(tiers []model.Tier, among model.TierSet) bool {
	for next := s.tier + 1; next < len(tiers); next++ {
		if among.Has(tiers[next]) {
			s.tier, s.failures = next, 0
			return true
		}
	}
	return false
}

// learn remembers, of a unit with rows, the tiers that brought nothing where another one brought
// its own page.
func (f *Fetcher) learn(c *chain) {
	host, now := address.AuthorityOf(c.address()), f.config.Clock.Now()
	var futile, empty model.TierSet
	for _, try := range c.fetch.tries {
		if try.Tier == c.fetch.by {
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
		f.hosts.note(host, futile, now)
	}
	switch {
	case empty != 0:
		f.hosts.noteEmpty(host, empty, now)
	case !c.fetch.by.Renders():
		f.hosts.noteFilled(host)
	}
}

// tried notes a try.
func (f *Fetcher) tried(c *chain, tier model.Tier, code fault.Code, status int, wire int64) {
	c.fetch.tries = append(c.fetch.tries,
		model.Try{Tier: tier, Code: string(code), Status: uint16(status),
			Millis: clamp(c.fetch.spent.Milliseconds())})
	c.fetch.wire += wire
	f.counts.bytes.Add(uint64(max(wire, 0)))
}
