package fsm

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const month = 30 * 24 * 60 * 60 * 1000

// contract returns a contract of the plan PRO, paid for a month.
func contract(id string, change ...func(*state.Contract)) state.Contract {
	c := state.Contract{ID: id, Plan: "PRO", Created: 1, Standing: state.ContractLive,
		PeriodEnd: month, ToldAt: 1}
	for _, f := range change {
		f(&c)
	}
	return c
}

func (b *bench) contract(c state.Contract) state.Subscription {
	b.t.Helper()
	return b.must(command.TellContractPayload{Customer: "a", Contract: c}).(state.Subscription)
}

// stands checks a customer's subscription.
func (b *bench) stands(plan string, active bool, scheduled string) {
	b.t.Helper()
	s := b.view().Subscription("a")
	if s.Plan() != plan || s.Active() != active || s.Scheduled() != scheduled {
		b.t.Errorf("plan %q, active %v, scheduled %q; want %q, %v, %q: %+v", s.Plan(), s.Active(),
			s.Scheduled(), plan, active, scheduled, s)
	}
}

func (b *bench) at(now int64) {
	b.t.Helper()
	b.now = now
	b.must(command.TickPayload{})
}

func TestWithoutSubscriptionNothingGates(t *testing.T) {
	b := newBench(t)
	b.stands("", false, "")
	b.must(command.BeginMovePayload{Customer: "a", Move: b.ids.New()})
	b.stands("", false, "") // nor while a checkout is open
	b.contract(contract("c", func(c *state.Contract) { c.Standing = state.ContractPending }))
	b.stands("", false, "")
	b.must(command.ChooseFreePayload{Customer: "a"})
	b.stands("STARTER", true, "")
	b.contract(contract("c"))
	b.stands("PRO", true, "")
	b.must(command.ChooseFreePayload{Customer: "a"}) // not while another one is live
	b.stands("PRO", true, "")
	for _, p := range []command.Payload{command.BeginMovePayload{Customer: "nobody"},
		command.OpenCheckoutPayload{Customer: "nobody"},
		command.TellContractPayload{Customer: "nobody"},
		command.ChooseFreePayload{Customer: "nobody"},
		command.PutInvoicePayload{Invoice: state.Invoice{Customer: "nobody"}}} {
		b.refused(p, fault.Unauthorized)
	}
}

// TestPeriodsEnd: time alone applies the scheduled plan, at the millisecond. If no renewal is
// reported, the plan ends 30 days later.
func TestPeriodsEnd(t *testing.T) {
	lower := func(c *state.Contract) { c.Plan, c.Revision = "BASIC", 1 }
	cancel := func(c *state.Contract) { c.Cancel, c.Revision = true, 1 }
	for name, c := range map[string]struct {
		change              func(*state.Contract)
		scheduled, then     string
		stays               bool
		later               string
		renewed, nextPeriod string
	}{
		"renewed": {func(*state.Contract) {}, "", "PRO", true, "STARTER", "PRO", "PRO"},
		"lower":   {lower, "BASIC", "BASIC", true, "STARTER", "BASIC", "BASIC"},
		"ended":   {cancel, "STARTER", "STARTER", false, "STARTER", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.contract(contract("c"))
			b.contract(contract("c", c.change))
			b.at(month - 1)
			b.stands("PRO", true, c.scheduled)
			b.at(month)
			b.stands(c.then, c.stays, "")
			b.contract(contract("c", c.change)) // a repeat changes nothing
			b.stands(c.then, c.stays, "")
			b.at(month + state.LapseMillis - 1)
			b.stands(c.then, c.stays, "")
			b.at(month + state.LapseMillis)
			b.stands(c.later, false, "")
			if c.renewed == "" {
				return
			}
			b.contract(contract("c", c.change, func(c *state.Contract) {
				c.PeriodEnd, c.ToldAt = 3*month, 5
			}))
			b.stands(c.renewed, true, "")
		})
	}
}

// TestRenewalByTheProvidersClock: the provider may report the next period before ours is over.
func TestRenewalByTheProvidersClock(t *testing.T) {
	b := newBench(t)
	b.contract(contract("c"))
	b.contract(contract("c", func(c *state.Contract) { c.Plan, c.Revision = "BASIC", 1 }))
	b.stands("PRO", true, "BASIC")
	b.contract(contract("c", func(c *state.Contract) {
		c.Plan, c.Revision, c.PeriodEnd, c.ToldAt = "BASIC", 1, 2*month, 9
	}))
	b.stands("BASIC", true, "")
}

// TestOneMoveAtATime: a second move waits until the first has ended or is two minutes old. What the
// first does after that is refused.
func TestOneMoveAtATime(t *testing.T) {
	b := newBench(t)
	first, second := b.ids.New(), b.ids.New()
	begin := func(move ids.ID) state.Subscription {
		t.Helper()
		return b.must(command.BeginMovePayload{Customer: "a", Move: move}).(state.Subscription)
	}
	for range 2 { // a repeat is the same move
		if s := begin(first); s.Revision != 1 {
			t.Errorf("%+v", s)
		}
	}
	b.refused(command.BeginMovePayload{Customer: "a", Move: second}, fault.SubscriptionInFlight)
	b.must(command.BeginMovePayload{Customer: "b", Move: second})
	b.must(command.EndMovePayload{Customer: "a", Move: second}) // another move
	b.refused(command.BeginMovePayload{Customer: "a", Move: second}, fault.SubscriptionInFlight)
	b.now += moveHeldMillis
	if s := begin(second); s.Revision != 2 {
		t.Errorf("%+v", s)
	}
	open := command.OpenCheckoutPayload{Customer: "a", Move: first, Checkout: state.Checkout{
		Session: "cs", URL: "https://pay.test", Plan: "PRO", Expires: b.now + 100}}
	b.refused(open, fault.SubscriptionInFlight)
	open.Move = second
	for range 2 {
		if s := b.must(open).(state.Subscription); s.Checkout != open.Checkout || s.Revision != 2 {
			t.Errorf("%+v", s)
		}
	}
	begin(first)
	b.must(command.EndMovePayload{Customer: "a", Move: first})
	begin(second)
	b.must(command.TellContractPayload{Customer: "a", Move: second, Contract: contract("c")})
	begin(first)
	if s := b.view().Subscription("a"); s.Checkout.Session != "" || s.Revision != 5 {
		t.Errorf("a checkout that was paid is open: %+v", s)
	}
}

func TestCheckoutsExpire(t *testing.T) {
	b := newBench(t)
	move := b.ids.New()
	b.must(command.BeginMovePayload{Customer: "a", Move: move})
	b.must(command.OpenCheckoutPayload{Customer: "a", Move: move,
		Checkout: state.Checkout{Session: "cs", Expires: b.now + 100}})
	b.now += 100
	b.must(command.ChooseFreePayload{Customer: "a"})
	if s := b.view().Subscription("a"); s.Checkout.Session != "" {
		t.Errorf("%+v", s)
	}
}

// TestNewestContractCounts: the contract paid last replaces the earlier one, which must be ended.
func TestNewestContractCounts(t *testing.T) {
	newer := func(c *state.Contract) { c.Plan, c.Created, c.ToldAt = "BUSINESS", 2, 2 }
	ended := func(c *state.Contract) { c.Standing, c.ToldAt = state.ContractEnded, 3 }
	lapsed := func(c *state.Contract) { c.Standing, c.ToldAt = state.ContractLapsed, 3 }
	for name, order := range map[string][]state.Contract{
		"in order":     {contract("c"), contract("d", newer)},
		"out of order": {contract("d", newer), contract("c")},
		"not paid for": {contract("c"), contract("d", newer, lapsed), contract("d", newer)},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for _, c := range order {
				b.contract(c)
			}
			for range 2 {
				b.stands("BUSINESS", true, "")
				if s := b.view().Subscription("a"); !slices.Equal(s.Leaving, []string{"c"}) {
					t.Fatalf("leaving %v", s.Leaving)
				}
				b.contract(contract("c"))
			}
			b.contract(contract("c", ended))
			b.contract(contract("c")) // late
			if s := b.view().Subscription("a"); len(s.Leaving) > 0 ||
				!slices.Equal(s.Gone, []string{"c"}) {
				t.Errorf("leaving %v, gone %v", s.Leaving, s.Gone)
			}
			b.stands("BUSINESS", true, "")
			b.contract(contract("d", newer, ended))
			b.stands("STARTER", false, "")
			b.contract(contract("d", newer, func(c *state.Contract) { c.ToldAt = 9 }))
			b.stands("STARTER", false, "") // an end is final
		})
	}
	b := newBench(t)
	b.contract(contract("c", ended))
	b.contract(contract("c"))
	b.stands("", false, "") // it ended before it was reported
}

func TestContractsKnownAreBounded(t *testing.T) {
	b := newBench(t)
	for n := range int64(3 * maxContracts) {
		b.contract(contract(fmt.Sprint("c", n), func(c *state.Contract) { c.Created = n }))
		b.contract(contract(fmt.Sprint("gone", n), func(c *state.Contract) {
			c.Standing = state.ContractEnded
		}))
	}
	s := b.view().Subscription("a")
	if len(s.Leaving) != maxContracts || len(s.Gone) != maxContracts ||
		s.Leaving[maxContracts-1] != fmt.Sprint("c", 3*maxContracts-2) {
		t.Errorf("leaving %v, gone %v", s.Leaving, s.Gone)
	}
}

// TestContractsInAnyOrder: reports on a contract have the same result in any order and repetition.
// Only the answers to moves, which are ours, come in order.
func TestContractsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var told []state.Contract
		now := contract("c")
		for n := range rapid.IntRange(1, 8).Draw(t, "events") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				now.Revision++
				now.Plan = rapid.SampledFrom([]string{"BASIC", "PRO"}).Draw(t, "plan")
				now.Cancel = rapid.Bool().Draw(t, "cancel")
			case 1:
				now.PeriodEnd += month
			case 2:
				now.Standing = state.ContractLapsed
			case 3:
				now.Standing = state.ContractLive
			case 4:
				now.Cancel = !now.Cancel // by hand, at the provider
			case 5:
				if rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
					now.Standing = state.ContractEnded
				}
			}
			now.ToldAt = int64(n + 2)
			told = append(told, now)
		}
		tell := func(events []state.Contract) (s state.Subscription) {
			s.Customer = "a"
			s.Contract = contract("c")
			for _, c := range events {
				follow(&s, &c, 0)
			}
			return s
		}
		want := tell(told)
		again := append(rapid.Permutation(told).Draw(t, "order"), rapid.SliceOf(
			rapid.SampledFrom(told)).Draw(t, "again")...)
		got := tell(again)
		if want.Contract.Standing == state.ContractEnded {
			if got.Contract.Standing != state.ContractEnded {
				t.Errorf("%+v has not ended", got.Contract)
			}
			return
		}
		if got.Contract != want.Contract {
			t.Errorf("%+v\nin order: %+v", got.Contract, want.Contract)
		}
	})
}

// TestPlanCaps: the command that makes one more checks the plan's cap.
func TestPlanCaps(t *testing.T) {
	b := newBench(t)
	group := command.PutGroupPayload{Create: true, Customer: "b", DataTable: "t",
		Cap: &command.PlanCap{Plan: "BASIC", Name: "MAX_GROUPS", Most: 2}}
	have := len(b.view().Groups("b"))
	group.Cap.Most += have
	for n := range 2 {
		group.ID, group.Name = b.ids.New(), fmt.Sprint("g", n)
		b.must(group)
	}
	in := group.ID
	group.ID, group.Name = b.ids.New(), "one more"
	b.refused(group, fault.PlanLimitReached)
	group.Create, group.ID = false, in
	b.must(group) // a change adds none
	scraper := command.PutScraperPayload{Create: true, Customer: "b", Group: in,
		Cap: &command.PlanCap{Plan: "BASIC", Name: "MAX_SCRAPERS", Most: 1}}
	scraper.ID, scraper.Spec = b.ids.New(), model.Scraper{Name: "s"}
	b.must(scraper)
	kept := scraper.ID
	scraper.ID, scraper.Spec.Name = b.ids.New(), "t"
	b.refused(scraper, fault.PlanLimitReached)
	scraper.Create, scraper.ID = false, kept
	b.must(scraper)
	scraper.Create, scraper.ID, scraper.Cap = true, b.ids.New(), nil
	scraper.Spec.Name = "u"
	b.must(scraper) // without a plan there is no cap
}

// TestQuotaNearLimitIsTold: at four fifths of a plan's cap the customer is notified, once until
// there is less again. Without a cap there is no notice.
func TestQuotaNearLimitIsTold(t *testing.T) {
	for most, near := range map[int]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 6: 5, 10: 8} {
		b := newBench(t)
		limit := &command.PlanCap{Plan: "PRO", Name: "MAX_GROUPS", Most: most}
		group := command.PutGroupPayload{Customer: "a", Cap: limit}
		for n := 1; n <= most; n++ {
			group.ID, group.Name, group.Create = b.ids.New(), fmt.Sprint("n", n), true
			b.must(group)
			group.Create = false
			b.must(group) // adds none
			all := told(b.view(), "a")
			if len(all) > 0 != (n >= near) || len(all) > 1 {
				t.Fatalf("%d of %d: %d notices", n, most, len(all))
			}
		}
		got := told(b.view(), "a")[0]
		if got.Event != model.QuotaNearLimit || got.Name != "MAX_GROUPS" || got.Message != "PRO" ||
			int(got.Count) != near || int(got.Most) != most {
			t.Errorf("told %+v", got)
		}
		b.deleteGroup(group.ID, "")
		group.ID, group.Create = b.ids.New(), true
		b.must(group)
		if again := len(told(b.view(), "a")); again > 1 != (most-1 < near) {
			t.Errorf("one of %d less, and again: %d notices", most, again)
		}
	}
}

// TestEachCapIsTold: caps of scrapers, alone and in list runs, of categories and of shares.
func TestEachCapIsTold(t *testing.T) {
	limit := func(name string, most int) *command.PlanCap {
		return &command.PlanCap{Plan: "PRO", Name: name, Most: most}
	}
	b := newBench(t)
	group, _ := b.members("g", 0)
	want := func(name string, count int) {
		t.Helper()
		all := told(b.view(), "a")
		if len(all) != count || all[0].Name != name || all[0].Event != model.QuotaNearLimit {
			t.Errorf("%s: %d notices, want %d", name, len(all), count)
		}
	}
	scraper := command.PutScraperPayload{Create: true, ID: b.ids.New(), Customer: "a",
		Group: group, Spec: model.Scraper{Name: "one"}, Cap: limit("MAX_SCRAPERS", 1)}
	b.must(scraper)
	want("MAX_SCRAPERS", 1)
	list := scraper
	list.ID, list.Spec.Name, list.ListRun = b.ids.New(), "two", true
	list.Cap = limit("MAX_SCRAPERS", 2)
	b.must(command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(), Customer: "a",
		Scraper: list.ID, NewScraper: &list, List: b.ids.New(), Links: 1,
		Tiers: model.TiersOf(model.Plain)})
	want("MAX_SCRAPERS", 2)
	b.must(command.PutCategoryPayload{ID: b.ids.New(), Customer: "a", Group: group, Name: "c",
		Cap: limit("GROUP_CUSTOM_CATEGORIES_LIMIT", 1)})
	want("GROUP_CUSTOM_CATEGORIES_LIMIT", 3)
	share := shareWith(group, "x@x.test", "x@x.test", "y@x.test")
	share.Cap = limit("DATA_SHARING_LIMITS", 3)
	b.must(share)
	if got := len(told(b.view(), "a")); got != 3 {
		t.Errorf("2 of 3 shares: %d notices", got)
	}
	share.Emails = []string{"z@x.test"}
	b.must(share)
	want("DATA_SHARING_LIMITS", 4)
}

// TestInvoicesInAnyOrder: each state wins over the earlier ones.
func TestInvoicesInAnyOrder(t *testing.T) {
	states := []state.InvoiceStatus{state.InvoiceDraft, state.InvoiceOpen,
		state.InvoiceUncollectible, state.InvoicePaid}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t)
		order := rapid.Permutation([]int{0, 1, 2, 3, 3, 1}).Draw(rt, "order")
		for _, n := range order {
			b.must(command.PutInvoicePayload{Invoice: state.Invoice{ID: "in", Customer: "a",
				Status: states[n], ToldAt: int64(n), IssuedAt: 5, Cents: int64(n)}})
		}
		if got := b.view().Invoice("in"); got.Status != state.InvoicePaid || got.Cents != 3 {
			rt.Errorf("%+v", got)
		}
	})
}

func TestInvoicesAreBounded(t *testing.T) {
	b := newBench(t)
	put := func(n int64) {
		b.must(command.PutInvoicePayload{Invoice: state.Invoice{ID: fmt.Sprint("in", n),
			Customer: "a", IssuedAt: n}})
	}
	for n := range int64(maxInvoices + 1) {
		put(n + 1)
	}
	put(0) // older than all others
	b.must(command.PutInvoicePayload{Invoice: state.Invoice{ID: "in7", Customer: "b",
		IssuedAt: 9, Status: state.InvoicePaid}}) // another customer's invoice stays its own
	all := b.view().Invoices("a")
	if len(all) != maxInvoices || all[0].ID != "in2" || b.view().Invoice("in7").Customer != "a" {
		t.Errorf("%d invoices, the oldest %+v", len(all), all[0])
	}
}
