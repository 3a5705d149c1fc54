package fsm

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// A removed customer leaves its wallet, ledger and runs, and nothing that identifies it. Repeated
// or early commands change nothing, and other customers stay as they are.
func TestCustomerIsRemoved(t *testing.T) {
	b := newBench(t)
	for _, ref := range []string{"a", "b"} {
		b.must(command.SignUpPayload{Customer: ref, Email: ref + "@shop.test", Firstname: "F",
			Lastname: "L"})
		b.must(command.MintKeyPayload{ID: b.ids.New(), Customer: ref, Prefix: ref,
			Hash: [32]byte{ref[0]}, Scope: model.ScopeUser})
		b.schema(ref, ids.ID{}, 1, "{}")
	}
	group, members := b.members("g", 3)
	for n := range 50 {
		b.members(fmt.Sprint("g", n), 0)
	}
	launched, err := b.launch(members[0])
	if err != nil {
		t.Fatal(err)
	}
	b.index++
	err = b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		for range erasedAtOnce {
			tx.PutNotice(&state.Notice{ID: b.ids.New(), Customer: "a", Made: tx.Index})
		}
		tx.PutMail(&state.Mail{ID: b.ids.New(), Customer: "a"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	erase := command.EraseCustomerPayload{Customer: "a", Rows: true}
	b.must(erase) // before the removal
	b.must(command.EraseCustomerPayload{Customer: "c", Rows: true})
	balance := b.view().Wallet("a").Balance()
	d := command.Deletion{Customer: "a", Operation: command.OpRemoveCustomer}
	remove := command.RemoveCustomerPayload{Deletion: d, Token: "t", By: "root"}
	b.refused(remove, fault.PreviewRequired)
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(remove)
	b.refused(remove, fault.NotFound)
	b.refused(command.UnblockCustomerPayload{Customer: "a"}, fault.NotFound)
	v := b.view()
	if c := v.Customer("a"); !c.Blocked() || c.BlockedBy != "root" || !c.Removed() {
		t.Errorf("the customer: %+v", c)
	}
	if v.Profile("a") != nil || v.ProfileByEmail("a@shop.test") != nil || len(v.Keys("a")) > 0 ||
		len(v.Schemas("a")) > 0 || len(v.Previews("a")) > 0 ||
		!v.Job(launched.Job).State.Final() {
		t.Error("profile, keys or schemas are there, or a run goes on")
	}
	b.must(erase)
	if v := b.view(); !v.Leaves("a") || len(v.Groups("a")) > 0 || v.Customer("a").ErasedAt != 0 {
		t.Error("one command removes all, or none")
	}
	b.must(erase)
	b.must(erase) // its groups still have rows
	if v := b.view(); v.Leaves("a") || v.Customer("a").ErasedAt != 0 {
		t.Error("something is left, or it is over too early")
	}
	for _, deleted := range b.view().DeletedGroupsOf("a") {
		if !deleted.Rows {
			t.Errorf("%+v leaves its rows", deleted)
		}
		b.must(command.DeleteMembersPayload{Group: deleted.Group})
		b.must(command.ForgetGroupPayload{Group: deleted.Group})
	}
	b.must(erase) // a run is open
	if b.view().Customer("a").ErasedAt != 0 {
		t.Error("it is over before its runs are closed")
	}
	b.must(command.CloseRunPayload{Job: launched.Job})
	b.must(command.EraseCustomerPayload{Customer: "a"}) // nobody has checked the row store
	if b.view().Customer("a").ErasedAt != 0 {
		t.Error("it is over before its rows are gone")
	}
	b.now++
	for range 2 {
		b.must(erase)
		if at := b.view().Customer("a").ErasedAt; at != b.now {
			t.Errorf("it was over at %d", at)
		}
	}
	v = b.view()
	if v.Group(group) != nil || v.Scraper(members[0]) != nil || b.left(group) > 0 ||
		v.Wallet("a").Balance() != balance || v.Job(launched.Job) == nil {
		t.Error("its groups are there, or its money and history are not")
	}
	v.CustomersRemoving(func(c *state.Customer) bool { t.Errorf("%+v", c); return true })
	if v.Profile("b") == nil || len(v.Keys("b")) != 1 || len(v.Schemas("b")) != 1 {
		t.Error("another customer has lost something")
	}
}
