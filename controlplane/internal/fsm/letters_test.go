package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

func letterTo(n byte) command.PutLetterPayload {
	return command.PutLetterPayload{ID: ids.ID{n}, Email: "ANN@x.test"}
}

func (b *bench) lettersDue() (all []*state.Letter) {
	b.view().LettersDue(func(l *state.Letter) bool { all = append(all, l); return true })
	return all
}

// A letter goes only to an account that can sign in. The answer does not tell.
func TestLettersGoToAccounts(t *testing.T) {
	b := newBench(t)
	b.must(letterTo(1))
	b.must(ann)
	b.must(command.DisableAccountPayload{Account: ann.ID})
	b.must(letterTo(2))
	b.must(command.DisableAccountPayload{Account: ann.ID, Enable: true})
	b.must(command.BlockCustomerPayload{Customer: "ann", By: "root"})
	b.must(letterTo(3))
	b.must(command.UnblockCustomerPayload{Customer: "ann"})
	if due := b.lettersDue(); len(due) != 0 {
		t.Fatalf("%d letters", len(due))
	}
	told := len(b.trail())
	b.must(letterTo(4))
	b.must(letterTo(4))
	letter := b.view().Letter(ids.ID{4})
	if letter == nil || letter.Email != ann.Email || letter.Account != ann.ID ||
		letter.Expires != b.now+state.LetterMillis || len(b.lettersDue()) != 1 {
		t.Errorf("%+v", letter)
	}
	if trail := b.trail(); len(trail) != told+1 || trail[told].Action != "put-letter" ||
		trail[told].Customer != "ann" {
		t.Errorf("the trail has %d more", len(trail)-told)
	}
}

// An account has at most three open letters. Strangers cannot add or remove any. A known browser
// gets one in place of the oldest.
func TestLettersAreBounded(t *testing.T) {
	b := newBench(t)
	b.must(ann)
	for n := range byte(maxLetters + 1) {
		b.now++
		b.must(letterTo(n + 1))
	}
	open := func() []*state.Letter { return b.view().LettersTo(ann.Email) }
	if len(open()) != maxLetters || b.view().Letter(ids.ID{maxLetters + 1}) != nil {
		t.Errorf("%d are open", len(open()))
	}
	known := letterTo(20)
	known.Known = true
	b.must(known)
	if len(open()) != maxLetters || b.view().Letter(ids.ID{20}) == nil ||
		b.view().Letter(ids.ID{1}) != nil || b.view().Letter(ids.ID{2}) == nil {
		t.Error("another one than the oldest made room")
	}
	b.now = b.view().Letter(ids.ID{2}).Expires
	b.must(letterTo(21)) // one has expired, but is not removed yet
	if b.view().Letter(ids.ID{21}) == nil {
		t.Error("a letter that has ended takes room")
	}
	b.must(command.TickPayload{})
	if b.view().Letter(ids.ID{2}) != nil || b.view().Letter(ids.ID{3}) == nil {
		t.Error("others are there than those whose time goes on")
	}
}

// The link sets the password once, before it expires. All sessions and letters of the account end.
func TestLettersSetPasswords(t *testing.T) {
	b := newBench(t)
	b.must(ann)
	b.must(opening(1))
	b.must(letterTo(1))
	b.must(letterTo(2))
	use := command.UseLetterPayload{Letter: ids.ID{1}, Account: ann.ID, Password: "p2"}
	wrong := use
	wrong.Letter = ids.ID{9}
	b.refused(wrong, fault.Unauthorized)
	other := ann
	other.ID, other.Email = ids.ID{7}, "bob@x.test"
	b.must(other)
	wrong = use
	wrong.Account = other.ID
	b.refused(wrong, fault.Unauthorized)
	b.now = 500
	b.must(use)
	stands := func() {
		t.Helper()
		if a := b.view().Account(ann.ID); a.Password != "p2" || a.PasswordAt != 500 ||
			len(b.view().LettersTo(ann.Email)) != 0 {
			t.Errorf("%+v, %d letters", a, len(b.view().LettersTo(ann.Email)))
		}
	}
	stands()
	if len(b.view().Sessions(ann.ID)) != 0 {
		t.Error("a session stays")
	}
	next := opening(3)
	next.Password = "p2"
	b.must(next)
	told := len(b.trail())
	b.now++
	b.must(use) // a repeat
	stands()
	if len(b.view().Sessions(ann.ID)) != 1 || len(b.trail()) != told {
		t.Error("a repeat changes something")
	}
	again := use
	again.Password = "p3"
	b.refused(again, fault.Unauthorized) // the link was used
	again.Letter = ids.ID{2}
	b.refused(again, fault.Unauthorized) // the other letters are gone, too
	stands()

	b.must(letterTo(4))
	b.now += state.LetterMillis
	late := command.UseLetterPayload{Letter: ids.ID{4}, Account: ann.ID, Password: "p4"}
	b.refused(late, fault.Unauthorized)
	if b.view().Account(ann.ID).Password != "p2" {
		t.Error("a late link sets a password")
	}
}

// An admin's letter replaces the others, is valid for a day, and is not mailed.
func TestLettersAreHandedOn(t *testing.T) {
	b := newBench(t)
	hand := command.HandLetterPayload{ID: ids.ID{5}, Account: ann.ID}
	b.refused(hand, fault.NotFound)
	b.must(ann)
	b.must(letterTo(1))
	made := b.must(hand).(state.Letter)
	if made.Expires != b.now+state.HandedMillis || made.At != 0 || len(b.lettersDue()) != 0 ||
		b.view().Letter(ids.ID{1}) != nil {
		t.Errorf("%+v", made)
	}
	b.now++
	if again := b.must(hand).(state.Letter); again != made {
		t.Errorf("made again: %+v", again)
	}
	b.must(letterTo(2)) // which keeps it
	b.must(command.RecordMailsPayload{Later: []command.MailLater{{ID: hand.ID, After: 1}}})
	if len(b.lettersDue()) != 1 {
		t.Error("a letter that is handed on is sent")
	}
	b.must(command.UseLetterPayload{Letter: hand.ID, Account: ann.ID, Password: "p2"})
	b.must(command.DisableAccountPayload{Account: ann.ID})
	b.refused(command.HandLetterPayload{ID: ids.ID{6}, Account: ann.ID}, fault.AccountDisabled)
}

// A letter ends when it is needless, or its account ends.
func TestLettersEnd(t *testing.T) {
	for name, end := range map[string]command.Payload{
		"another password": command.SetPasswordPayload{Account: ann.ID, Was: "p1", Password: "p2"},
		"disabled":         command.DisableAccountPayload{Account: ann.ID},
		"removed":          command.RemoveAccountPayload{Account: ann.ID},
	} {
		b := newBench(t)
		b.must(ann)
		b.must(letterTo(1))
		b.must(end)
		if b.view().Letter(ids.ID{1}) != nil {
			t.Errorf("%s: the letter is good", name)
		}
	}
}

// A letter is due until it is sent. A delayed one is tried again while its link is valid.
func TestLettersAreSentOnce(t *testing.T) {
	b := newBench(t)
	b.must(ann)
	b.must(letterTo(1))
	b.must(letterTo(2))
	later := func(after int64) command.RecordMailsPayload {
		return command.RecordMailsPayload{Done: []ids.ID{{1}, {9}},
			Later: []command.MailLater{{ID: ids.ID{2}, After: after}, {ID: ids.ID{8}}}}
	}
	b.must(later(0))
	due := b.lettersDue()
	if len(due) != 1 || due[0].ID != (ids.ID{2}) || due[0].Tries != 1 ||
		due[0].At != b.now+gatherMillis || b.view().Letter(ids.ID{1}) == nil {
		t.Fatalf("%d are due", len(due))
	}
	b.must(later(5 * gatherMillis)) // a repeat does not send it again
	if due := b.lettersDue(); len(due) != 1 || due[0].At != b.now+5*gatherMillis {
		t.Errorf("%d are due", len(due))
	}
	b.must(later(state.LetterMillis))
	b.must(later(0)) // late
	if len(b.lettersDue()) != 0 || b.view().Letter(ids.ID{2}) == nil {
		t.Error("it is tried when its link is good no more")
	}
}
