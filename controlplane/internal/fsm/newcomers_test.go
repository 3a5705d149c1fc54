package fsm

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

func joining(n byte, email string) command.PutLetterPayload {
	return command.PutLetterPayload{ID: ids.ID{n}, Email: email, SignUp: true}
}

// newOpenBench makes a bench where people may make their own accounts.
func newOpenBench(t *testing.T) *bench {
	b := newBench(t)
	on := true
	b.must(command.PutSettingsPayload{By: "root", SignUp: &on})
	return b
}

// A letter makes an account, once, while sign-up is on. The account has a customer of its own, and
// all letters to the address end.
func TestNewcomers(t *testing.T) {
	b := newBench(t)
	b.must(joining(1, "new@x.test"))
	if b.view().Newcomers() != 0 {
		t.Fatal("a letter makes an account, and nobody may sign up")
	}
	b = newOpenBench(t)
	told := len(b.trail())
	b.must(command.PutLetterPayload{ID: ids.ID{1}, Email: "new@x.test"}) // no SignUp
	b.must(joining(2, "new@x.test"))
	b.must(joining(3, "NEW@x.test"))
	b.must(joining(4, strings.Repeat("a", 250)+"@x.test"))
	if b.view().Newcomers() != 2 || len(b.lettersDue()) != 2 || len(b.trail()) != told {
		t.Fatalf("%d letters, %d entries", b.view().Newcomers(), len(b.trail())-told)
	}
	use := command.UseLetterPayload{Letter: ids.ID{3}, Account: ids.ID{30}, Password: "p",
		Entry: ids.ID{31}}
	wrong := use
	wrong.Letter = ids.ID{9}
	b.refused(wrong, fault.Unauthorized)
	b.must(use)
	made := *b.view().Account(use.Account)
	if made.Email != "NEW@x.test" || made.Customer != (ids.ID{30}).String() || made.Admin ||
		b.view().Wallet(made.Customer) == nil || b.view().Newcomers() != 0 {
		t.Errorf("%+v", made)
	}
	b.must(use)
	if again := b.view().Account(use.Account); *again != made {
		t.Errorf("made again: %+v", again)
	}
	second := use
	second.Account = ids.ID{32}
	b.refused(second, fault.Unauthorized) // the letter was used
	if trail := b.trail(); len(trail) != told+1 || trail[told].Action != "use-letter" {
		t.Errorf("the trail has %d more", len(trail)-told)
	}
	b.must(joining(5, "new@x.test")) // goes to its account
	if l := b.view().Letter(ids.ID{5}); l == nil || l.Account != made.ID || !l.SignUp {
		t.Errorf("%+v", l)
	}
	late := command.UseLetterPayload{Letter: ids.ID{5}, Account: ids.ID{33}, Password: "p"}
	b.refused(late, fault.Unauthorized) // that letter sets a password
	b.must(joining(6, "late@x.test"))
	late.Letter = ids.ID{6}
	off := false
	b.must(command.PutSettingsPayload{By: "root", SignUp: &off})
	b.refused(late, fault.Unauthorized)
	on := true
	b.must(command.PutSettingsPayload{By: "root", SignUp: &on})
	b.now += state.LetterMillis
	b.refused(late, fault.Unauthorized)
}

// When an admin makes the account, the letters that would make it end.
func TestAdminsComeBeforeNewcomers(t *testing.T) {
	b := newOpenBench(t)
	b.must(joining(1, ann.Email))
	b.must(ann)
	b.refused(command.UseLetterPayload{Letter: ids.ID{1}, Account: ids.ID{30}}, fault.Unauthorized)
	if b.view().Newcomers() != 0 {
		t.Error("a letter stays")
	}
}

// Letters that make accounts are bounded, three per address. Other letters are not counted.
func TestNewcomersAreBounded(t *testing.T) {
	b := newOpenBench(t)
	b.must(ann)
	for n := range byte(maxLetters + 1) {
		b.must(joining(n+1, "one@x.test"))
	}
	if b.view().Newcomers() != maxLetters {
		t.Errorf("%d letters to one address", b.view().Newcomers())
	}
	for n := range maxNewcomers {
		b.must(command.PutLetterPayload{ID: b.ids.New(), SignUp: true,
			Email: fmt.Sprintf("%d@x.test", n)})
	}
	if b.view().Newcomers() != maxNewcomers {
		t.Errorf("%d letters make accounts", b.view().Newcomers())
	}
	b.must(letterTo(99))
	if b.view().Letter(ids.ID{99}) == nil {
		t.Error("newcomers keep an account from its letter")
	}
}
