package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// adding adds the passkey n to ann's account.
func adding(n byte) command.AddPasskeyPayload {
	return command.AddPasskeyPayload{ID: ids.ID{n}, Account: ann.ID, Password: ann.Password,
		Name: "phone", Credential: []byte{'c', n}, PublicKey: []byte{'k', n}}
}

// using answers a challenge made at a time, by the passkey n, for a session of that time.
func using(n byte, asked int64, count uint32) command.UsePasskeyPayload {
	return command.UsePasskeyPayload{Passkey: ids.ID{n}, Asked: asked, Count: count,
		Hash: state.Hash{n, byte(asked)}}
}

func TestPasskeysAreAdded(t *testing.T) {
	b := newBench(t)
	b.must(ann)
	for range 2 { // a repeated command changes nothing
		if p := b.must(adding(1)).(state.Passkey); p.Customer != "ann" || p.Name != "phone" {
			t.Errorf("added %+v", p)
		}
	}
	wrong := adding(2)
	wrong.Password = "p0"
	b.refused(wrong, fault.Unauthorized)
	nobody := adding(2)
	nobody.Account = ids.ID{99}
	b.refused(nobody, fault.Unauthorized)
	again := adding(2)
	again.Credential = adding(1).Credential
	b.refused(again, fault.PasskeyTaken)
	for n := byte(2); n <= maxPasskeys; n++ {
		b.must(adding(n))
	}
	b.refused(adding(maxPasskeys+1), fault.LimitReached)
	b.must(command.RemovePasskeyPayload{Account: ids.ID{99}, Passkey: ids.ID{1}}) // not its own
	if len(b.view().Passkeys(ann.ID)) != maxPasskeys {
		t.Error("another account has removed a passkey")
	}
	for range 2 {
		b.must(command.RemovePasskeyPayload{Account: ann.ID, Passkey: ids.ID{1}})
	}
	b.must(adding(maxPasskeys + 1))
	b.must(command.HandLetterPayload{ID: ids.ID{7}, Account: ann.ID})
	b.must(command.UseLetterPayload{Letter: ids.ID{7}, Account: ann.ID, Password: "p2"})
	if left := b.view().Passkeys(ann.ID); len(left) > 0 {
		t.Errorf("whoever knew the password before signs in by %+v", left)
	}
	again = adding(2)
	again.Password = "p2"
	b.must(again)
	b.must(command.RemoveAccountPayload{Account: ann.ID})
	if b.view().PasskeyOf(adding(2).Credential) != nil {
		t.Error("a passkey outlives its account")
	}
}

func TestPasskeysAreUsed(t *testing.T) {
	b := newBench(t)
	b.must(ann)
	b.must(adding(1))
	b.refused(using(9, 10, 0), fault.Unauthorized)
	for range 2 { // the first answer may have been lost
		if s := b.must(using(1, 10, 0)).(state.Session); s.Account != ann.ID {
			t.Errorf("opened %+v", s)
		}
	}
	for _, asked := range []int64{9, 10} { // a challenge is answered once
		stolen := using(1, asked, 0)
		stolen.Hash = state.Hash{77}
		b.refused(stolen, fault.Unauthorized)
	}
	b.must(using(1, 11, 5)) // it counts from now on
	b.refused(using(1, 12, 5), fault.Unauthorized)
	b.refused(using(1, 12, 0), fault.Unauthorized)
	b.must(using(1, 12, 6))
	b.must(command.DisableAccountPayload{Account: ann.ID})
	b.refused(using(1, 13, 7), fault.AccountDisabled)
	b.must(command.DisableAccountPayload{Account: ann.ID, Enable: true})
	b.must(command.BlockCustomerPayload{Customer: "ann"})
	b.refused(using(1, 13, 7), fault.CustomerBlocked)
	b.must(command.UnblockCustomerPayload{Customer: "ann"})
	for n := range maxSessions + 5 {
		b.must(using(1, int64(20+n), uint32(20+n)))
	}
	if open := len(b.view().Sessions(ann.ID)); open != maxSessions {
		t.Errorf("%d sessions are open", open)
	}
	b.must(command.RemovePasskeyPayload{Account: ann.ID, Passkey: ids.ID{1}})
	b.refused(using(1, 99, 99), fault.Unauthorized)
}
