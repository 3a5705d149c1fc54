package fsm

import (
	"bytes"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

func (b *bench) feedback(customer string) command.GiveFeedbackPayload {
	return command.GiveFeedbackPayload{ID: b.ids.New(), Customer: customer, Text: "more, please"}
}

// A customer gives feedback ten times per UTC day of state time. Repeated commands count once.
func TestFeedbackIsLimitedByDay(t *testing.T) {
	b := newBench(t)
	b.now = 50*dayMillis + 1
	first := b.feedback("a")
	for n := range maxFeedbackADay {
		p := first
		if n > 0 {
			p = b.feedback("a")
		}
		want := command.GivenFeedback{ID: p.ID, At: b.now}
		if given := b.must(p); given != want {
			t.Errorf("number %d: %+v", n, given)
		}
	}
	b.refused(b.feedback("a"), fault.FeedbackLimit)
	b.must(first) // a repeat does not count
	b.must(b.feedback("b"))
	b.now = 51*dayMillis - 1
	b.refused(b.feedback("a"), fault.FeedbackLimit)
	b.now++
	b.must(b.feedback("a"))
	b.refused(b.feedback("nobody"), fault.Unauthorized)
	if own := b.view().FeedbackOf("a"); len(own) != maxFeedbackADay+1 ||
		own[0].Text != first.Text || own[0].At != 50*dayMillis+1 {
		t.Errorf("%d of them, %+v first", len(own), own[0])
	}
	var newest *state.Feedback
	b.view().NewestFeedback(func(f *state.Feedback) bool { newest = f; return false })
	if newest.At != b.now {
		t.Errorf("the newest is of %d", newest.At)
	}
}

// A text is counted in characters, whatever their size.
func TestFeedbackIsBoundedInCharacters(t *testing.T) {
	for _, character := range []string{"a", "ä", "🐟", "\u0301", "\n"} {
		b := newBench(t)
		for text, code := range map[string]fault.Code{
			strings.Repeat(character, maxFeedbackText+1): fault.InvalidRequest,
			"": fault.InvalidRequest,
			strings.Repeat(character, maxFeedbackText): "",
		} {
			p := b.feedback("a")
			if p.Text = text; code != "" {
				b.refused(p, code)
				continue
			}
			b.must(p)
			if b.view().Feedback(p.ID).Text != text {
				t.Errorf("%q: another text is kept", character)
			}
		}
	}
}

// fill adds feedback of a customer to the state, a millisecond apart, starting at from.
func (b *bench) fill(customer string, count int, from int64) {
	b.t.Helper()
	b.index++
	err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		for n := range count {
			tx.PutFeedback(&state.Feedback{ID: b.ids.New(), Customer: customer,
				Text: "x", At: from + int64(n)})
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// The oldest message of a customer is removed to make room, and the oldest of all.
func TestFeedbackMakesRoom(t *testing.T) {
	b := newBench(t)
	b.now = 500 * dayMillis
	b.fill("a", maxFeedback, 490*dayMillis)
	b.must(b.feedback("a"))
	if own := b.view().FeedbackOf("a"); len(own) != maxFeedback || own[0].At != 490*dayMillis+1 {
		t.Errorf("%d of them, the oldest of %d", len(own), own[0].At)
	}
	b.fill("others", maxFeedbackInTotal-maxFeedback, 480*dayMillis)
	b.must(b.feedback("a")) // it has made its own room
	if all := b.view().AllFeedback(); all != maxFeedbackInTotal ||
		len(b.view().FeedbackOf("others")) != maxFeedbackInTotal-maxFeedback {
		t.Errorf("%d of all, and others have lost some", all)
	}
	b.must(b.feedback("b"))
	if others := b.view().FeedbackOf("others"); b.view().AllFeedback() != maxFeedbackInTotal ||
		others[0].At != 480*dayMillis+1 || len(b.view().FeedbackOf("a")) != maxFeedback {
		t.Error("another than the oldest of all made room")
	}
}

func TestFeedbackGoesByAge(t *testing.T) {
	b := newBench(t)
	b.now = 500 * dayMillis
	b.fill("a", 2, 100*dayMillis)
	b.must(command.TickPayload{})
	if own := b.view().FeedbackOf("a"); len(own) != 1 || own[0].At != 100*dayMillis+1 {
		t.Errorf("%d are left", len(own))
	}
}

// Feedback is removed at once with its customer, and none is accepted afterwards.
func TestFeedbackGoesWithItsCustomer(t *testing.T) {
	b := newBench(t)
	b.must(b.feedback("a"))
	d := command.Deletion{Customer: "a", Operation: command.OpRemoveCustomer}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.RemoveCustomerPayload{Deletion: d, Token: "t", By: "root"})
	if b.view().AllFeedback() != 0 {
		t.Error("it is there yet")
	}
	b.refused(b.feedback("a"), fault.CustomerBlocked)
}

// The audit trail tells that an admin gave feedback for a customer, without the text.
func TestFeedbackIsToldWithoutItsText(t *testing.T) {
	b := newBench(t)
	p := b.feedback("a")
	data, err := b.m.EncodeBy(&state.Actor{Subject: "root", Admin: true, Customer: "a",
		Operation: "svc_give_feedback"}, b.ids.New(), b.now, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.index++
	if r := b.m.Apply(b.index, data); r.Err != nil {
		t.Fatal(r.Err)
	}
	var told *state.AuditEntry
	b.view().EachAudit(func(e *state.AuditEntry) bool { told = e; return true })
	if told == nil || told.Action != "svc_give_feedback" || told.Customer != "a" ||
		len(told.Changes) != 1 || told.Changes[0].Table != "feedback" {
		t.Fatalf("it tells %+v", told)
	}
	if after := told.Changes[0].After; after != `{"createdAt":1}` {
		t.Errorf("it tells of the record: %s", after)
	}
}

// A restored snapshot has feedback in each index.
func TestFeedbackIsRestored(t *testing.T) {
	b := newBench(t)
	p := b.feedback("a")
	b.must(p)
	var snapshot bytes.Buffer
	if err := b.m.Snapshot().Write(&snapshot); err != nil {
		t.Fatal(err)
	}
	restored := New()
	if err := restored.Restore(&snapshot); err != nil {
		t.Fatal(err)
	}
	view, found := restored.Store().View(), ids.ID{}
	view.NewestFeedback(func(f *state.Feedback) bool { found = f.ID; return false })
	if f := view.Feedback(p.ID); f == nil || f.Text != p.Text || found != p.ID ||
		len(view.FeedbackOf("a")) != 1 {
		t.Errorf("restored %+v", f)
	}
}
