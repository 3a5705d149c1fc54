package fsm

import (
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// contacts is a run of website contacts with daily limits, of a customer with money.
type contacts struct {
	*money
	t   *rapid.T
	job ids.ID
}

func newContacts(t *rapid.T, limits model.DailyLimits) *contacts {
	d := newMoney(t)
	d.must(t, command.AdjustWalletPayload{Customer: customer, Entry: d.ids.New(), Amount: 100_000})
	group, scraper := d.ids.New(), d.ids.New()
	d.must(t, command.PutGroupPayload{Create: true, ID: group, Customer: customer, Name: "g"})
	d.must(t, command.PutScraperPayload{Create: true, ID: scraper, Customer: customer, Group: group,
		ListRun: true,
		Tag:     model.WebsiteContacts, Spec: model.Scraper{Name: "s"}})
	endpoint, _ := model.EndpointOf(model.WebsiteContacts)
	launch := command.LaunchRunPayload{Job: d.ids.New(), Entry: d.ids.New(), Customer: customer,
		Scraper: scraper, List: d.ids.New(),
		Links: 20, Tiers: endpoint.Tiers, Charge: endpoint.Charge, Daily: limits}
	d.must(t, launch)
	d.scrapers[launch.Job] = scraper
	return &contacts{money: d, t: t, job: launch.Job}
}

// send dispatches a seq and returns the outcome.
func (c *contacts) send(seq uint32, domain uint64) string {
	c.t.Helper()
	window := c.must(c.t, command.ExtendWindowPayload{
		Runs: []command.WindowRun{{Job: c.job, Seqs: []uint32{seq},
			Domains: []uint64{domain}}}}).(command.Window)
	switch {
	case len(window.Refused) == 1:
		return "waits"
	case len(window.Grants) == 1 && window.Grants[0].Limited:
		return "limited"
	case len(window.Grants) == 1:
		return "out"
	}
	return "passed over"
}

func (c *contacts) end(seq uint32, outcome model.Outcome, quantity uint32) {
	c.t.Helper()
	c.must(c.t, command.SettlePayload{Receipts: []model.Receipt{{Job: c.job,
		Unit: model.Unit{Seq: seq}, Outcome: outcome, Items: 1,
		PriceRow: "plugin:websitecontacts", Quantity: quantity, Last: true}}})
}

func (c *contacts) want(what, got, want string) {
	c.t.Helper()
	if got != want {
		c.t.Fatalf("%s: %s, want %s", what, got, want)
	}
}

func (c *contacts) daily() state.Daily {
	if d := c.m.Store().View().Daily(customer); d != nil {
		return *d
	}
	return state.Daily{}
}

func TestDailyLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newContacts(t, model.DailyLimits{Reads: 5, Uncharged: 3, PerDomain: 2})
		c.want("first of a domain", c.send(0, 7), "out")
		c.want("again", c.send(0, 7), "passed over")
		c.want("second of it", c.send(1, 7), "out")
		c.want("third of it", c.send(2, 7), "limited")
		c.want("no read", c.send(3, 0), "out")
		c.want("another domain", c.send(4, 8), "out")
		// Three reads are out, and all may end uncharged.
		c.want("a fourth", c.send(5, 9), "waits")
		c.end(0, model.Delivered, 2)
		c.end(0, model.Delivered, 2)
		c.want("when one was charged", c.send(5, 9), "out")
		for _, o := range c.outs(c.job) {
			c.must(c.t, command.RedispatchPayload{
				Lost: []command.DispatchRef{{Job: c.job, Seq: 1, Number: o.Number}}})
		}
		if d := c.daily(); d.Reads != 4 || d.Out != 3 || d.Uncharged != 0 {
			t.Fatalf("%+v", d)
		}
		c.end(1, model.Delivered, 0)
		c.end(4, model.Errored, 0)
		c.end(5, model.Delivered, 2)
		c.end(2, model.Delivered, 0) // beyond a limit, so not a read
		c.end(3, model.Delivered, 0) // not a read either
		if d := c.daily(); d.Reads != 4 || d.Out != 0 || d.Uncharged != 2 {
			t.Fatalf("%+v", d)
		}
		c.want("the fifth read", c.send(6, 10), "out")
		c.want("a sixth", c.send(7, 11), "limited")
		charged := c.m.Store().View().Job(c.job).Charged
		c.tomorrow(t)
		if d := c.m.Store().View().Daily(customer); d != nil {
			t.Fatalf("tomorrow there is still %+v", d)
		}
		c.end(6, model.Delivered, 0) // yesterday's read
		c.want("tomorrow", c.send(8, 7), "out")
		if d := c.daily(); d.Reads != 1 || d.Out != 1 || d.Uncharged != 0 || charged != 600 {
			t.Fatalf("%+v, charged %d", d, charged)
		}
	})
}

// Reads that a stopped run did not make do not count, nor do those that money does not cover.
func TestDailyReadsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newContacts(t, model.DailyLimits{Reads: 5, Uncharged: 3, PerDomain: 2})
		c.must(t, command.AdjustWalletPayload{Customer: customer, Entry: c.ids.New(),
			Amount: -100_000 + 700})
		c.want("first", c.send(0, 7), "out")
		c.want("second", c.send(1, 8), "out")
		c.want("without money", c.send(2, 9), "waits")
		if d := c.daily(); d.Reads != 2 || d.Out != 2 || len(d.Domains) != 2 {
			t.Fatalf("%+v", d)
		}
		c.must(t, command.StopRunPayload{Customer: customer, Scraper: c.scrapers[c.job]})
		c.end(0, model.Cancelled, 0)
		c.must(t, command.RedispatchPayload{
			Lost: []command.DispatchRef{{Job: c.job, Seq: 1, Number: c.outs(c.job)[1].Number}}})
		if d := c.daily(); d.Reads != 0 || d.Out != 0 || len(d.Domains) != 0 ||
			c.wallet().Available != 700 {
			t.Fatalf("%+v, wallet %+v", d, c.wallet())
		}
	})
}
