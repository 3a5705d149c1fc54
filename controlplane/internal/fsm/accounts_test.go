package fsm

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

var ann = command.CreateAccountPayload{ID: ids.ID{1}, Email: "Ann@x.test", Customer: "ann",
	Password: "p1", Entry: ids.ID{2}}

func opening(n byte) command.OpenSessionPayload {
	return command.OpenSessionPayload{Account: ann.ID, Password: "p1", Hash: state.Hash{n}}
}

func TestAccounts(t *testing.T) {
	b := newBench(t)
	made := b.must(ann).(state.Account)
	if b.view().Customer("ann") == nil || b.view().Wallet("ann") == nil {
		t.Error("the account's customer is not there")
	}
	if again := b.must(ann).(state.Account); again != made {
		t.Errorf("made again: %+v", again)
	}
	other := ann
	other.ID, other.Email, other.Customer = ids.ID{3}, "ANN@X.test", "other"
	b.refused(other, fault.EmailTaken)
	if b.view().Customer("other") != nil {
		t.Error("a refused account has a customer")
	}
	for n := 1; n < maxAccounts; n++ {
		b.must(command.CreateAccountPayload{ID: b.ids.New(), Email: fmt.Sprintf("%d@x.test", n),
			Customer: "ann"})
	}
	other.Email, other.Customer = "one@x.test", "ann"
	b.refused(other, fault.LimitReached)
}

// A session needs the checked password. It ends by its own sign-out, by a sign-out of all, as one
// too many, and when nobody uses it.
func TestSessions(t *testing.T) {
	b := newBench(t)
	b.must(ann)
	open := func() int { return len(b.view().Sessions(ann.ID)) }
	wrong := opening(1)
	wrong.Password = "p0"
	b.refused(wrong, fault.Unauthorized)
	wrong = opening(1)
	wrong.Account = ids.ID{9}
	b.refused(wrong, fault.Unauthorized)
	b.must(command.BlockCustomerPayload{Customer: "ann", By: "root"})
	b.refused(opening(1), fault.CustomerBlocked)
	b.must(command.UnblockCustomerPayload{Customer: "ann"})
	for n := range byte(maxSessions) {
		b.now += 10
		b.must(opening(n + 1))
		b.must(opening(n + 1)) // a repeat
	}
	first := b.view().Session(state.Hash{1})
	b.must(command.TouchSessionsPayload{Sessions: []command.SessionTouch{
		{Hash: state.Hash{1}, At: b.now}, {Hash: state.Hash{99}, At: b.now}}})
	b.must(command.TouchSessionsPayload{Sessions: []command.SessionTouch{{Hash: state.Hash{1},
		At: first.UsedAt}}})
	if got := b.view().Session(state.Hash{1}).UsedAt; got != b.now || open() != maxSessions {
		t.Errorf("used at %d, %d are open", got, open())
	}
	b.now += 10
	b.must(opening(50))
	if b.view().Session(state.Hash{2}) != nil || b.view().Session(state.Hash{1}) == nil ||
		open() != maxSessions {
		t.Error("the one that was not used for longest makes room")
	}
	b.must(command.EndSessionsPayload{Account: ids.ID{7}, Hash: state.Hash{1}})
	if open() != maxSessions {
		t.Error("another account ends a session")
	}
	for range 2 {
		b.must(command.EndSessionsPayload{Account: ann.ID, Hash: state.Hash{1}})
		if open() != maxSessions-1 {
			t.Errorf("%d are open after a sign-out", open())
		}
	}
	b.must(command.EndSessionsPayload{Account: ann.ID})
	if open() != 0 {
		t.Errorf("%d are open after a sign-out everywhere", open())
	}
	b.must(opening(1))
	b.now += state.SessionIdleMillis - 1
	b.must(command.TickPayload{})
	if open() != 1 {
		t.Error("it goes before its time")
	}
	b.now++
	b.must(command.TickPayload{})
	if open() != 0 {
		t.Error("an idle session stays")
	}
}

// Repeating a sign-in does not restore a session that a sign-out ended meanwhile. Repeating a
// sign-out does not end newer sessions.
func TestRepeatedSignInsAndSignOuts(t *testing.T) {
	b := newBench(t)
	b.must(ann)
	apply := func(id ids.ID, payload command.Payload) {
		t.Helper()
		data, err := b.m.Encode(id, b.now, payload, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.index++
		if result := b.m.Apply(b.index, data); result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	signIn, signOut := ids.ID{101}, ids.ID{102}
	apply(signIn, opening(1))
	apply(signOut, command.EndSessionsPayload{Account: ann.ID})
	apply(signIn, opening(1))
	if b.view().Session(state.Hash{1}) != nil {
		t.Error("a repeat signs in again")
	}
	b.must(opening(2))
	apply(signOut, command.EndSessionsPayload{Account: ann.ID})
	if b.view().Session(state.Hash{2}) == nil {
		t.Error("a repeat signs out again")
	}
}

func TestSessionsEnd(t *testing.T) {
	s := state.Session{CreatedAt: 1000, UsedAt: 2000}
	for now, ended := range map[int64]bool{2000: false,
		1999 + state.SessionIdleMillis: false, 2000 + state.SessionIdleMillis: true} {
		if s.Ended(now) != ended {
			t.Errorf("at %d: want %v", now, ended)
		}
	}
	s.UsedAt = 999 + state.SessionMillis
	if s.Ended(s.UsedAt) || !s.Ended(1000+state.SessionMillis) {
		t.Error("it ends with its longest time, however much it is used")
	}
}

// Changing a password needs the current one. It ends all other sessions, once.
func TestPasswordsAreChanged(t *testing.T) {
	b := newBench(t)
	b.must(ann)
	for n := range byte(3) {
		b.must(opening(n + 1))
	}
	b.now = 500
	set := command.SetPasswordPayload{Account: ann.ID, Was: "p1", Password: "p2",
		Keep: state.Hash{2}}
	wrong := set
	wrong.Was = "p0"
	b.refused(wrong, fault.Unauthorized)
	wrong = set
	wrong.Account = ids.ID{9}
	b.refused(wrong, fault.Unauthorized)
	b.must(set)
	if open := b.view().Sessions(ann.ID); len(open) != 1 || open[0].Hash != set.Keep {
		t.Errorf("%d sessions are open", len(open))
	}
	if a := b.view().Account(ann.ID); a.Password != "p2" || a.PasswordAt != 500 {
		t.Errorf("%+v", a)
	}
	next := opening(7)
	next.Password = "p2"
	b.must(next)
	told := len(b.trail())
	b.now++
	b.must(set) // a repeat
	if len(b.view().Sessions(ann.ID)) != 2 || b.view().Account(ann.ID).PasswordAt != 500 ||
		len(b.trail()) != told {
		t.Error("a repeat changes something")
	}
	b.refused(opening(8), fault.Unauthorized)
	b.must(command.SetPasswordPayload{Account: ann.ID, Was: "p2", Password: "p3"})
	b.refused(set, fault.Unauthorized) // late
	if len(b.view().Sessions(ann.ID)) != 0 {
		t.Error("a session stays")
	}
}

// A disabled account has no session, and a removed one is gone. Repeats of earlier commands bring
// nothing back.
func TestAccountsAreDisabledAndRemoved(t *testing.T) {
	b := newBench(t)
	b.must(ann)
	b.must(opening(1))
	disable, enable := command.DisableAccountPayload{Account: ann.ID},
		command.DisableAccountPayload{Account: ann.ID, Enable: true}
	b.refused(command.DisableAccountPayload{Account: ids.ID{9}}, fault.NotFound)
	b.now = 700
	first := b.ids.New()
	b.by(anAdmin, first, disable)
	b.now++
	b.must(disable)
	if a := b.view().Account(ann.ID); a.DisabledAt != 700 || len(b.view().Sessions(ann.ID)) != 0 {
		t.Errorf("%+v", a)
	}
	b.refused(opening(2), fault.AccountDisabled)
	b.must(enable)
	b.must(opening(2))
	b.by(anAdmin, first, disable) // a repeat of an earlier command
	b.must(enable)
	if a := b.view().Account(ann.ID); a.DisabledAt != 0 || len(b.view().Sessions(ann.ID)) != 1 {
		t.Errorf("%+v", a)
	}
	for range 2 {
		b.must(command.RemoveAccountPayload{Account: ann.ID})
		if b.view().Account(ann.ID) != nil || b.view().Session(state.Hash{2}) != nil ||
			b.view().Customer("ann") == nil {
			t.Error("the account is not gone, or its customer is")
		}
	}
	b.refused(opening(3), fault.Unauthorized)
	actions := map[string]int{}
	for _, e := range b.trail() {
		for _, c := range e.Changes {
			if c.Table == "accounts" {
				actions[e.Action]++
			}
		}
	}
	if actions["svc_x"] != 1 || actions["disable-account"] != 1 || actions["remove-account"] != 1 {
		t.Errorf("the trail tells %v", actions)
	}
}

// Revocations are marked, so that no restore undoes them.
func TestRemovalsAreNoted(t *testing.T) {
	b := newBench(t)
	b.must(ann)
	b.must(adding(7))
	b.must(adding(8))
	group, _ := b.members("g", 0)
	b.must(shareWith(group, "B@x.test"))
	share := b.view().Share(group, "b@x.test").RevokedID()
	gone := []ids.ID{ann.ID, {7}, {8}, share}
	for _, id := range gone {
		if b.view().Revoked(id) != nil {
			t.Errorf("%v is noted before it is gone", id)
		}
	}
	b.must(command.RemovePasskeyPayload{Account: ann.ID, Passkey: ids.ID{7}})
	b.must(command.RemoveAccountPayload{Account: ann.ID})
	b.must(command.RevokeSharePayload{Customer: "a", Group: group, Email: "b@x.test"})
	for _, id := range gone {
		if b.view().Revoked(id) == nil {
			t.Errorf("%v is not noted", id)
		}
	}
}
