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

func shareWith(group ids.ID, emails ...string) command.ShareGroupPayload {
	return command.ShareGroupPayload{Customer: "a", Group: group, Emails: emails}
}

// A share holds for the owner of the address, whenever it signs up, until it is revoked. Repeats
// change nothing and notify nobody twice.
func TestSharesHoldUntilTheyAreRevoked(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	other, _ := b.members("other", 0)
	for range 2 {
		b.must(shareWith(group, "B@x.test", "c@x.test", "b@X.test"))
	}
	if b.view().Shared(group, "b") || len(b.view().Shares(group)) != 2 {
		t.Fatal("it is shared with who has not signed up, or twice")
	}
	b.must(command.SignUpPayload{Customer: "b", Email: "b@x.test"})
	b.must(command.SignUpPayload{Customer: "a", Email: "a@x.test"})
	if v := b.view(); !v.Shared(group, "b") || v.Shared(other, "b") || v.Shared(group, "a") {
		t.Fatal("it is shared wrongly")
	}
	revoke := command.RevokeSharePayload{Customer: "a", Group: group, Email: "b@x.test"}
	foreign := revoke
	foreign.Customer = "b"
	b.refused(foreign, fault.NotFound)
	b.refused(command.ShareGroupPayload{Customer: "b", Group: group, Emails: []string{"d@x.test"}},
		fault.NotFound)
	b.refused(shareWith(group, "d@x.test", "a@x.test"), fault.InvalidRequest)
	if b.view().Share(group, "d@x.test") != nil {
		t.Error("half of what is refused is done")
	}
	b.must(revoke)
	b.refused(revoke, fault.NotFound)
	if b.view().Shared(group, "b") {
		t.Error("it is shared after it was revoked")
	}
	for range 2 {
		b.must(shareWith(group, "b@x.test"))
		b.must(revoke)
	}
	notices := 0
	b.view().Notices("b", func(n *state.Notice) bool {
		if n.Event == model.GroupShared && n.Subject == group && n.Name == "g" {
			notices++
		}
		return true
	})
	if notices != 1 {
		t.Errorf("%d notices", notices)
	}
}

// TestSharesAreBounded per group, per customer and per address. Repeats are allowed.
func TestSharesAreBounded(t *testing.T) {
	b := newBench(t)
	emails := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("p%d@x.test", i))
		}
		return all
	}
	group, _ := b.members("g", 0)
	b.refused(shareWith(group, emails(maxShares+1)...), fault.LimitReached)
	twice, _ := b.members("twice", 0) // it asks for one address in two spellings
	b.must(shareWith(twice, append(emails(maxShares), "P0@x.test")...))
	b.must(shareWith(twice, append(emails(maxShares), "P0@x.test")...))
	b.deleteGroup(twice, "")
	for g := range maxSharesInTotal / maxShares {
		group, _ = b.members(fmt.Sprint("g", g), 0)
		b.must(shareWith(group, emails(maxShares)...))
		b.refused(shareWith(group, "more@x.test"), fault.LimitReached)
		b.must(shareWith(group, emails(maxShares)...))
	}
	group, _ = b.members("last", 0)
	b.refused(shareWith(group, "more@x.test"), fault.LimitReached)

	b = newBench(t)
	for n := range maxSharesOfTwo {
		group, _ = b.members(fmt.Sprint("g", n), 0)
		b.must(shareWith(group, "p@x.test"))
	}
	group, _ = b.members("last", 0)
	b.refused(shareWith(group, "P@x.test"), fault.LimitReached) // however few other customers have
	b.must(shareWith(group, "q@x.test"))

	b = newBench(t)
	b.index++
	if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		for n := range maxSharesTo {
			tx.PutShare(&state.Share{Group: b.ids.New(), Email: "p@x.test",
				Owner: fmt.Sprint("owner ", n)})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	group, _ = b.members("last", 0)
	b.refused(shareWith(group, "P@x.test"), fault.LimitReached)
	b.must(shareWith(group, "q@x.test"))
}

// Shares are deleted with their group. The preview counts them, and one more voids it.
func TestSharesGoWithTheirGroup(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 1)
	kept, _ := b.members("kept", 0)
	b.must(shareWith(kept, "b@x.test"))
	b.must(shareWith(group, "b@x.test"))
	d := command.Deletion{Customer: "a", Operation: command.OpDeleteGroup, Target: group}
	shown := b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"}).(state.Preview)
	if got := shown.Cascade.Count("shares"); got != 1 {
		t.Errorf("the preview says %+v", got)
	}
	b.must(shareWith(group, "c@x.test"))
	b.refused(command.DeleteGroupPayload{Deletion: d, Token: "t"}, fault.CascadeDrift)
	b.deleteGroup(group, "")
	if v := b.view(); len(v.Shares(group)) != 0 || v.SharesOf("a") != 1 {
		t.Errorf("%d shares are left of the group", len(v.Shares(group)))
	}
}

// A plan caps new shares, not existing ones.
func TestSharesOfAPlanAreCapped(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	capped := func(emails ...string) command.ShareGroupPayload {
		share := shareWith(group, emails...)
		share.Cap = &command.PlanCap{Plan: "PRO", Name: "DATA_SHARING_LIMITS", Most: 2}
		return share
	}
	b.refused(capped("b@x.test", "c@x.test", "d@x.test"), fault.PlanLimitReached)
	b.must(capped("b@x.test", "c@x.test"))
	b.refused(capped("d@x.test"), fault.PlanLimitReached)
	b.must(capped("c@x.test"))
}
