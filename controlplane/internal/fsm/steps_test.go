package fsm

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/price"
)

// came fails unless a customer's steps are want.
func (b *bench) came(customer string, want state.Steps) {
	b.t.Helper()
	if got := b.view().Steps(b.view().Customer(customer)); got != want {
		b.t.Errorf("customer %s: %+v, want %+v", customer, got, want)
	}
}

// A customer's steps are counted at once. They stay when it deletes everything or is removed.
func TestSteps(t *testing.T) {
	b := newBench(t)
	b.came("a", state.Steps{})
	group, members := b.members("g", 1)
	b.came("a", state.Steps{Scraper: true})
	b.must(command.AdjustWalletPayload{Customer: "a", Entry: b.ids.New(), Amount: 1e6})
	b.came("a", state.Steps{Scraper: true}) // no top-up
	launched, err := b.launch(members[0])
	if err != nil {
		t.Fatal(err)
	}
	b.came("a", state.Steps{Scraper: true, Run: true})
	for n, want := range []int{1, 2, 2} {
		session := fmt.Sprint("session ", n)
		b.must(command.OpenTopUpPayload{Session: session, Customer: "a", Amount: 5, Expires: 1e15})
		b.came("a", state.Steps{Scraper: true, Run: true, TopUps: min(n, 2)}) // unpaid
		paid := command.PayTopUpPayload{Session: session, Customer: "a", Amount: 5,
			Entry: b.ids.New(), Payment: session}
		b.must(paid)
		b.must(paid) // the provider reports it twice
		b.came("a", state.Steps{Scraper: true, Run: true, TopUps: want})
	}
	b.must(command.ReverseTopUpPayload{ID: "r", Payment: "session 0", Amount: 5,
		Entry: b.ids.New()})
	all := state.Steps{Scraper: true, Run: true, TopUps: 2}
	b.came("a", all)
	b.must(command.PayTopUpPayload{Session: "x", Customer: "b", Payment: "x"})
	b.came("b", state.Steps{}) // in another currency, so nobody was credited

	b.must(command.StopRunPayload{Customer: "a", Job: launched.Job})
	b.must(command.CloseRunPayload{Job: launched.Job})
	d := command.Deletion{Customer: "a", Operation: command.OpRemoveCustomer}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.RemoveCustomerPayload{Deletion: d, Token: "t", By: "root"})
	b.must(command.EraseCustomerPayload{Customer: "a"})
	b.index++
	err = b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		tx.RemoveJob(tx.Job(launched.Job)) // it is archived
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.view().Groups("a")) > 0 || b.view().Group(group) != nil {
		t.Fatal("its groups are there yet")
	}
	b.came("a", all)
}

// A customer's steps before they were recorded are derived from its scrapers and runs. A trial is
// not a run.
func TestStepsOfBefore(t *testing.T) {
	b := newBench(t)
	_, members := b.members("g", 1)
	forget := func(jobs ...*state.Job) {
		b.index++
		err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
			customer := *tx.Customer("a")
			customer.Made, customer.Ran = false, false
			tx.PutCustomer(&customer)
			for _, job := range jobs {
				tx.PutJob(job)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	forget()
	b.came("a", state.Steps{Scraper: true})
	forget(&state.Job{ID: ids.ID{1}, Customer: "a", Source: "url"})
	b.came("a", state.Steps{Scraper: true})
	if _, err := b.launch(members[0]); err != nil {
		t.Fatal(err)
	}
	if c := b.view().Customer("a"); !c.Made || !c.Ran {
		t.Errorf("nothing is noted: %+v", c)
	}
	forget()
	b.came("a", state.Steps{Scraper: true, Run: true})
}

// Before the cluster's upgrade nothing is recorded that older nodes do not know.
func TestStepsWaitForTheirVersion(t *testing.T) {
	b := &bench{t: t, m: New(), now: 1}
	b.must(command.CreateClusterPayload{Version: state.StepsSince - 1, ID: b.ids.New(), Shards: 1,
		FreeGrant: 5, Prices: testPrices})
	b.must(command.OpenCustomerPayload{Customer: "a", Entry: b.ids.New()})
	_, members := b.members("g", 1)
	if _, err := b.launch(members[0]); err != nil {
		t.Fatal(err)
	}
	if c := b.view().Customer("a"); c.Made || c.Ran {
		t.Errorf("noted: %+v", c)
	}
	b.came("a", state.Steps{Scraper: true, Run: true})
	for _, p := range []command.Payload{b.feedback("a"), b.changed(func(price.List) {})} {
		_, err := b.m.Encode(b.ids.New(), b.now, p, nil)
		if fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%T is taken: %v", p, err)
		}
	}
}
