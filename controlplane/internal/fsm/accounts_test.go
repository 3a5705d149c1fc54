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

// A session begins with the password that was checked. It goes with its sign-out, with the one of
// all, when it is one too many, and when nobody uses it.
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
		b.must(opening(n + 1)) // again
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

// A repeated command of a sign-in does not bring back what a sign-out ended meanwhile, nor does a
// repeated sign-out end what began since.
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
