package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// A payment after the customer's removal is unmatched, and reported as that.
func TestPaidAfterRemoval(t *testing.T) {
	b := newBench(t)
	b.open("s")
	b.remove("a")
	balance := b.view().Wallet("a").Balance()
	if paid := b.pay("s", 10_000_000); paid.TopUp.Status != state.TopUpUnmatched ||
		b.view().Wallet("a").Balance() != balance {
		t.Errorf("%+v, the wallet %+v", paid, b.view().Wallet("a"))
	}
	if books := b.view().Books(); books.Unmatched == 0 {
		t.Errorf("%+v", books)
	}
}

// Choosing the free plan gives an unpaid contract up. A late payment does not restore its plan.
func TestLapsedContractIsLeft(t *testing.T) {
	b := newBench(t)
	b.contract(contract("c"))
	b.contract(contract("c", func(c *state.Contract) {
		c.Standing, c.ToldAt = state.ContractLapsed, 2
	}))
	b.must(command.ChooseFreePayload{Customer: "a"})
	if leaving, _ := b.ending(); len(leaving) != 1 || leaving[0] != "c" {
		t.Errorf("%v is left", leaving)
	}
}

// A key whose call was admitted before the block is not made after it.
func TestBlockedCustomersMintNothing(t *testing.T) {
	b := newBench(t)
	mint := command.MintKeyPayload{ID: b.ids.New(), Customer: "a", Prefix: "late"}
	b.must(command.BlockCustomerPayload{Customer: "a", By: "root"})
	b.refused(mint, fault.CustomerBlocked)
	b.must(command.UnblockCustomerPayload{Customer: "a"})
	b.must(mint)
}

// An admin's new password removes all passkeys: one may belong to a person who knew the old one.
func TestAdminsPasswordExpelsPasskeys(t *testing.T) {
	for _, expels := range []bool{false, true} {
		b := newBench(t)
		b.must(ann)
		b.must(adding(1))
		b.must(command.SetPasswordPayload{Account: ann.ID, Was: ann.Password, Password: "p2",
			Expels: expels})
		if left := len(b.view().Passkeys(ann.ID)); (left == 0) != expels {
			t.Errorf("expels %v: %d passkeys are left", expels, left)
		}
	}
}
