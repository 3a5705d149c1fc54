package fsm

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

func (b *bench) checkout(session string) {
	b.t.Helper()
	move := b.ids.New()
	b.must(command.BeginMovePayload{Customer: "a", Move: move})
	open := command.OpenCheckoutPayload{Customer: "a", Move: move, Checkout: state.Checkout{
		Session: session, URL: "u", Plan: "PRO", Expires: b.now + 1_000}}
	b.must(open)
	b.must(open)
}

// ending returns what the provider must end of all customers.
func (b *bench) ending() (contracts, checkouts []string) {
	b.view().EndingSubscriptions("", func(s *state.Subscription) bool {
		contracts, checkouts = append(contracts, s.Leaving...), append(checkouts, s.Stale...)
		return true
	})
	return contracts, checkouts
}

func (b *bench) remove(ref string) {
	b.t.Helper()
	d := command.Deletion{Customer: ref, Operation: command.OpRemoveCustomer}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.RemoveCustomerPayload{Deletion: d, Token: "t", By: "root"})
}

// TestReplacedCheckoutsEnd: a newer checkout or a contract adds earlier checkouts to those to be
// ended, once, and at most ten. An expired one has ended.
func TestReplacedCheckoutsEnd(t *testing.T) {
	b := newBench(t)
	want := func(current string, stale ...string) {
		t.Helper()
		if _, got := b.ending(); !slices.Equal(got, stale) ||
			b.view().Subscription("a").Checkout.Session != current {
			t.Errorf("current %q, to be ended %v; want %q, %v",
				b.view().Subscription("a").Checkout.Session, got, current, stale)
		}
	}
	end := func(session string) {
		b.must(command.EndCheckoutPayload{Customer: "a", Session: session})
	}
	end("s0") // of a customer without a checkout
	b.checkout("s1")
	want("s1")
	b.checkout("s2")
	want("s2", "s1")
	end("s1")
	end("s1")
	want("s2")
	b.must(command.EndCheckoutPayload{Customer: "b", Session: "s2"}) // another customer's
	want("s2")
	b.contract(contract("c"))
	want("", "s2")
	end("s2")
	b.checkout("s3")
	end("s3")
	want("")
	b.checkout("s4")
	b.now += 1_000
	b.checkout("s5")
	want("s5")
	for n := range maxContracts + 1 {
		b.checkout(fmt.Sprint("t", n))
	}
	want("t10", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9")
}

// TestLaterChoicesLeaveTheCheckout: a choice that needs no payment adds the open checkout to those
// to be ended, but not a checkout that was opened after it. Other reports on the contract leave
// nothing.
func TestLaterChoicesLeaveTheCheckout(t *testing.T) {
	b := newBench(t)
	want := func(current string, stale ...string) {
		t.Helper()
		_, got := b.ending()
		if open := b.view().Subscription("a").Checkout.Session; open != current ||
			!slices.Equal(got, stale) {
			t.Errorf("current %q, to be ended %v; want %q, %v", open, got, current, stale)
		}
		for _, session := range got {
			b.must(command.EndCheckoutPayload{Customer: "a", Session: session})
		}
	}
	amended := func(revision uint64, change ...func(*state.Contract)) state.Contract {
		c := contract("c", change...)
		c.Revision = revision
		return c
	}
	byHand := func(c *state.Contract) { c.Cancel, c.ToldAt = true, 9 }
	b.contract(contract("c"))
	b.checkout("s1")
	b.contract(contract("c", byHand))
	want("s1")
	b.must(command.BeginMovePayload{Customer: "a", Move: b.ids.New()}) // of a process that died
	b.contract(amended(2))
	want("", "s1")
	b.now += moveHeldMillis
	b.checkout("s2")
	b.contract(amended(2))
	b.contract(amended(2, byHand))
	want("s2")
	b.must(command.BeginMovePayload{Customer: "a", Move: b.ids.New()})
	b.now += moveHeldMillis
	b.checkout("s3")
	want("s3")
	b.contract(amended(4)) // a late report
	want("s3")
	for _, p := range []command.LeaveCheckoutPayload{{Customer: "a", Session: "s2"},
		{Customer: "b", Session: "s3"}, {Customer: "nobody", Session: "s3"}} {
		b.must(p)
		want("s3")
	}
	b.must(command.LeaveCheckoutPayload{Customer: "a", Session: "s3"})
	want("", "s3")
	b.must(command.LeaveCheckoutPayload{Customer: "a", Session: "s3"})
	want("")
	b.contract(amended(4, func(c *state.Contract) { c.Standing = state.ContractEnded }))
	b.checkout("s4")
	b.must(command.ChooseFreePayload{Customer: "a"})
	want("", "s4")
	b.contract(contract("d", func(c *state.Contract) { c.Created = 2 })) // s4 was paid
	b.stands("PRO", true, "")
}

// TestContractsOfTheRemovedEnd: whatever is reported of a removed customer's contracts, and when,
// each must be ended, once.
func TestContractsOfTheRemovedEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t)
		lives, ended := map[string]bool{}, map[string]bool{}
		removed := false
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			id := fmt.Sprint("c", rapid.IntRange(1, 3).Draw(rt, "contract"))
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				if !removed {
					b.checkout(fmt.Sprint("s", b.index))
					b.remove("a")
					removed = true
					if _, open := b.ending(); len(open) == 0 ||
						b.view().Subscription("a").Checkout.Session != "" {
						rt.Fatalf("the checkout goes on: %+v", b.view().Subscription("a"))
					}
				}
			case 1, 2:
				if leaving, _ := b.ending(); len(leaving) > 0 {
					id = leaving[0]
				}
				b.contract(contract(id, func(c *state.Contract) {
					c.Standing = state.ContractEnded
				}))
				ended[id] = true
			default:
				c := contract(id, func(c *state.Contract) {
					c.Created, c.ToldAt = int64(id[1]), int64(b.index)
					c.Standing = state.Standing(rapid.IntRange(0, 2).Draw(rt, "standing"))
				})
				b.contract(c)
				if c.Standing == state.ContractLive || removed {
					lives[id] = true
				}
			}
			if !removed {
				continue
			}
			b.must(command.EraseCustomerPayload{Customer: "a", Rows: true})
			leaving, _ := b.ending()
			for id := range lives {
				if slices.Contains(leaving, id) == ended[id] {
					rt.Fatalf("%s, ended %v: %+v", id, ended[id], b.view().Subscription("a"))
				}
			}
		}
	})
}
