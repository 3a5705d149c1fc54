package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// newMailBench makes a bench with a sender of e-mails, where the customer a has an address.
func newMailBench(t *testing.T) *bench {
	b := newBench(t)
	b.must(command.SignUpPayload{Customer: "a", Email: "a@x.test", Firstname: "A", Lastname: "B"})
	b.must(command.EnqueueWorkPayload{ID: b.ids.New(), Kind: work.Email, Once: true})
	return b
}

func (b *bench) take(want int) []state.Mail {
	b.t.Helper()
	got := b.must(command.TakeMailsPayload{Most: 10}).([]state.Mail)
	if len(got) != want {
		b.t.Fatalf("%d e-mails are taken, want %d", len(got), want)
	}
	return got
}

func (b *bench) mails() (all []*state.Mail) {
	b.view().MailsDue(func(m *state.Mail) bool { all = append(all, m); return true })
	return all
}

// TestWhoIsMailed: customers are mailed by preference, with an address, while a sender works.
func TestWhoIsMailed(t *testing.T) {
	b := newMailBench(t)
	holds := func(mails, listed int) {
		t.Helper()
		if len(b.mails()) != mails || len(told(b.view(), "a")) != listed {
			t.Fatalf("%d e-mails, %d are listed", len(b.mails()), len(told(b.view(), "a")))
		}
	}
	prefer := func(how model.NoticePreference) {
		b.must(command.PreferNoticesPayload{Customer: "a", Set: []state.Preference{
			{Event: model.APIKeyCreated, How: how}}})
	}
	prefer(model.NotAtAll)
	b.mint("none")
	holds(0, 0)
	prefer(model.InApp)
	b.mint("in the application")
	holds(0, 1)
	prefer(model.ByEmail)
	b.mint("by e-mail")
	holds(1, 1)
	prefer(model.BothWays)
	b.mint("both ways")
	holds(1, 2)
	if m := b.mails()[0]; m.Count != 2 || m.Notices[0].Name != "by e-mail" ||
		m.ID != m.Notices[0].ID {
		t.Errorf("%+v", m)
	}
	b.now += senderGoneMillis
	prefer(model.ByEmail)
	b.mint("while nobody sends")
	holds(1, 3)
	none := newBench(t)
	none.must(command.SignUpPayload{Customer: "a", Email: "a@x.test"})
	none.mint("without a sender")
	if len(none.mails()) != 0 || len(told(none.view(), "a")) != 1 {
		t.Error("e-mails gather, and nobody sends them")
	}
}

// TestMailsGather: for a minute first, then for an hour. A taken e-mail does not change. Later
// notices wait behind it, however long it takes.
func TestMailsGather(t *testing.T) {
	b := newMailBench(t)
	b.now = 100_000_000
	b.mint("first")
	b.now += gatherMillis - 1
	b.take(0)
	b.mint("second")
	b.now++
	if m := b.take(1)[0]; m.Count != 2 || !m.Taken {
		t.Fatalf("%+v", m)
	}
	b.mint("third")
	if m := b.take(1)[0]; m.Count != 2 {
		t.Fatalf("taken again: %+v", m)
	}
	b.now += mailedMillis
	first := b.take(1)[0]
	if first.Count != 2 || len(b.mails()) != 2 {
		t.Fatalf("beside the one that was not sent: %+v", first)
	}
	b.mint("fourth")
	b.must(command.RecordMailsPayload{Done: []ids.ID{first.ID, {9}}})
	b.must(command.RecordMailsPayload{Done: []ids.ID{first.ID, b.mails()[0].ID}}) // not taken yet
	b.now++
	if m := b.take(1)[0]; m.Count != 2 || m.Notices[0].Name != "third" || len(b.mails()) != 1 {
		t.Fatalf("behind it: %+v", m)
	}
	for n := range 2 * state.MailedNotices {
		b.mint(string(rune('a' + n)))
	}
	for _, m := range b.mails() {
		if !m.Taken && (m.Count != 2*state.MailedNotices ||
			len(m.Notices) != state.MailedNotices || m.Notices[0].Name != "a") {
			t.Errorf("of many: %d, and %d of them whole", m.Count, len(m.Notices))
		}
	}
}

// A hundred failed runs within an hour make one e-mail in it, and one after it.
func TestFloodsAreOneMail(t *testing.T) {
	b := newMailBench(t)
	b.now = 100_000_000
	scraper := b.product("Shop")
	const runs = 100
	began, sent, told := b.now, map[int64]uint64{}, uint64(0)
	for hour := int64(0); hour < 2; {
		if n := (b.now - began) * runs / mailedMillis; n < runs && b.now%36_000 == 0 {
			job := b.run(scraper, 1, model.Errored)
			b.must(command.CloseRunPayload{Job: job})
		}
		for _, m := range b.must(command.TakeMailsPayload{Most: 10}).([]state.Mail) {
			if m.Event != model.RunFailed {
				t.Errorf("an e-mail of %s", m.Event)
			}
			sent[hour]++
			told += m.Count
			b.must(command.RecordMailsPayload{Done: []ids.ID{m.ID}})
		}
		b.now += 4_000
		hour = (b.now - began) / (mailedMillis + gatherMillis)
	}
	if sent[0] != 1 || sent[1] != 1 || told != runs {
		t.Errorf("e-mails by hour %v, which tell of %d runs", sent, told)
	}
}

func TestMailsThatArePutOff(t *testing.T) {
	b := newMailBench(t)
	b.now = 100_000_000
	b.mint("key")
	b.now += gatherMillis
	mail := b.take(1)[0]
	b.must(command.RecordMailsPayload{Later: []command.MailLater{{ID: ids.ID{9}, After: 1},
		{ID: mail.ID, After: 5 * gatherMillis}}})
	b.now += 5*gatherMillis - 1
	b.take(0)
	b.now++
	if again := b.take(1)[0]; again.Tries != 1 || again.ID != mail.ID {
		t.Errorf("%+v", again)
	}
	b.must(command.RecordMailsPayload{Later: []command.MailLater{{ID: mail.ID, After: -1,
		Untried: true}}})
	b.take(0)
	if stays := b.view().Mail(mail.ID); stays.Tries != 1 {
		t.Errorf("%d tries", stays.Tries)
	}
	if taken := b.must(command.TakeMailsPayload{}).([]state.Mail); len(taken) != 0 {
		t.Errorf("none is asked for, %d come", len(taken))
	}
}
