package recount

import (
	"net/netip"
	"slices"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// maxHops is how many requests an endless redirect may take per try.
const maxHops = 21

// requests compares the requests that the web saw: every page once, a failing page as often as
// allowed, and politely.
func (c *check) requests() error {
	recount, err := c.run.Web.Recount()
	if err != nil {
		return err
	}
	asked := map[string]bool{}
	for _, chain := range c.chains {
		for _, p := range chain.pages {
			asked[form(p.truth.URL)] = true
			for _, hop := range p.truth.Hops {
				asked[form(hop)] = true
			}
			c.fetches(p, recount.URLs[form(p.truth.URL)])
		}
		if chain.extra != "" {
			asked[chain.extra] = true
			c.fetched(chain.extra, recount.URLs[chain.extra], 1, 1)
		}
	}
	for address, count := range recount.URLs {
		c.sum.Requests += count.Requests
		if !asked[form(address)] {
			c.problem("%s was asked for %d times and is no page of the run", address,
				count.Requests)
		}
	}
	if most := c.run.MaxRefetched; len(c.run.Lost) > 0 && most > 0 && c.sum.Refetched > most {
		c.problem("%d pages were fetched again, at most %d were in flight", c.sum.Refetched, most)
	}
	c.neverAgain()
	c.politeness(recount)
	return nil
}

// fetches compares the requests to one page.
func (c *check) fetches(p *page, asked synthweb.URLCount) {
	least, most := 1, 1
	switch {
	case p.truth.Fails > 0:
		least, most = p.truth.Fails+1, p.truth.Fails+1
		if c.repeats() {
			least = 1
		}
	case p.truth.Outcome == model.Delivered:
	case p.class == synthweb.Private:
		least, most = 0, 0
	case p.class == synthweb.RedirectLoop:
		most = maxHops * c.run.Attempts
	case p.class == synthweb.Failing, p.class == synthweb.Reset, p.class == synthweb.Truncated,
		p.class == synthweb.Stall:
		most = c.run.Attempts
	}
	c.fetched(p.truth.URL, asked, least, most)
}

// repeats says whether any pages may be fetched again.
func (c *check) repeats() bool {
	return len(c.run.Deaths) > 0 || len(c.run.Lost) > 0 ||
		c.run.Lossy
}

// mayRepeat says whether a page with these requests may be fetched again.
func (c *check) mayRepeat(asked synthweb.URLCount) bool {
	return len(c.run.Deaths) > 0 || c.run.Lossy ||
		slices.ContainsFunc(asked.From,
			func(from netip.Addr) bool { return slices.Contains(c.run.Lost, from) })
}

func (c *check) fetched(address string, asked synthweb.URLCount, least, most int) {
	n := asked.Requests
	if c.run.Partial {
		least = 0
	}
	if n < least {
		c.problem("%s was asked for %d times, a fetch takes %d", address, n, least)
	}
	if n <= most {
		return
	}
	if !c.mayRepeat(asked) {
		c.problem("%s was asked for %d times by %v, a fetch takes at most %d", address, n,
			asked.From, most)
		return
	}
	c.sum.Refetched++
	if most == 0 {
		c.problem("%s was asked for %d times, and must not be", address, n)
	}
}

// neverAgain checks each death: pages whose record survived it must not be requested after it. No
// more pages may be fetched again than the configuration allows.
func (c *check) neverAgain() {
	if len(c.run.Deaths) == 0 || c.run.Lossy {
		return
	}
	life := func(at time.Time) int {
		n := 0
		for n < len(c.run.Deaths) && at.After(c.run.Deaths[n]) {
			n++
		}
		return n
	}
	stored := make(map[string]int, len(c.got.Records))
	for _, r := range c.got.Records {
		stored[form(r.URL)] = life(time.UnixMicro(r.At))
	}
	lives := map[string]int{} // the last life in which an address was requested, from 1
	again := make([]int, len(c.run.Deaths)+1)
	for r := range c.run.Web.Requests() {
		if r.Robots {
			continue
		}
		address := form("http://" + r.Host + r.Path)
		now := life(r.Start)
		if before := lives[address]; before > 0 && before-1 < now {
			again[now]++
		}
		lives[address] = max(lives[address], now+1)
		if at, ok := stored[address]; ok && now > at {
			c.problem("%s was stored in life %d and asked for again in life %d", address, at, now)
		}
	}
	for now, n := range again {
		if c.run.MaxRefetched > 0 && n > c.run.MaxRefetched {
			c.problem("life %d fetched %d pages of lives before it again, at most %d may "+
				"be unsettled", now, n, c.run.MaxRefetched)
		}
	}
}

// politeness checks what each host saw (decision 17), including that only one fetcher used it at a
// time.
func (c *check) politeness(recount *synthweb.Recount) {
	for name, host := range recount.Hosts {
		if c.run.MaxConnections > 0 && host.MaxConnections > c.run.MaxConnections {
			c.problem("%s saw %d connections at once, at most %d may be", name, host.MaxConnections,
				c.run.MaxConnections)
		}
		if c.run.MinGap > 0 && host.MinGap >= 0 && host.MinGap < c.run.MinGap {
			c.problem("%s was asked twice within %v, the least is %v", name, host.MinGap,
				c.run.MinGap)
		}
		if host.MaxClients > 1 {
			c.problem("%s was asked by %d fetchers at once", name, host.MaxClients)
		}
	}
}
