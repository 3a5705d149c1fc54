package fsm

import (
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// How notices are gathered in e-mails. For each event a customer gets the first one after a minute.
// Then it gets at most one an hour, with everything since.
const (
	gatherMillis = 60 * 1000
	mailedMillis = 60 * 60 * 1000
	maxTaken     = 100
	// senderGoneMillis is how long e-mails may stand still before the sender counts as gone.
	senderGoneMillis = 7 * 24 * 60 * 60 * 1000
)

// mailable reports whether a customer can get e-mails: it has an address, and a sender works.
func mailable(tx *state.Tx, customer string) bool {
	if profile := tx.Profile(customer); profile == nil || profile.Email == "" {
		return false
	}
	return slices.ContainsFunc(tx.WorkOf(work.Email, ""), func(w *state.Work) bool {
		return w.State != state.WorkFailed && w.StoodStill(tx.Now) < senderGoneMillis
	})
}

// post adds a notice to the customer's e-mail of its event. It joins an e-mail that is not taken
// yet, however old, so that there are at most two.
func post(tx *state.Tx, inbox *state.Inbox, n state.Notice) {
	mail := state.Mail{ID: n.ID, Customer: n.Customer, Event: n.Event}
	if known := tx.MailOf(n.Customer, n.Event, false); known != nil {
		mail = *known
	} else {
		mail.At = max(tx.Now+gatherMillis, inbox.MailedAt(n.Event)+mailedMillis)
		inbox.Mailed(n.Event, mail.At)
	}
	if mail.Count++; len(mail.Notices) < state.MailedNotices {
		mail.Notices = append(slices.Clip(mail.Notices), n)
	}
	tx.PutMail(&mail)
}

func takeMails(tx *state.Tx, p command.TakeMailsPayload) ([]state.Mail, error) {
	var due []*state.Mail
	tx.MailsDue(func(m *state.Mail) bool {
		if m.At > tx.Now || len(due) >= min(int(p.Most), maxTaken) {
			return false
		}
		due = append(due, m)
		return true
	})
	taken := []state.Mail{}
	for _, m := range due {
		mail := *m
		if before := tx.MailOf(m.Customer, m.Event, true); !m.Taken && before != nil {
			mail.At = max(before.At, tx.Now) + 1 // it keeps gathering while the taken one is tried
			tx.PutMail(&mail)
			continue
		}
		mail.Taken = true
		tx.PutMail(&mail)
		taken = append(taken, mail)
	}
	return taken, nil
}

func recordMails(tx *state.Tx, p command.RecordMailsPayload) (command.None, error) {
	for _, id := range p.Done {
		if mail := tx.Mail(id); mail != nil && mail.Taken {
			tx.RemoveMail(mail)
		}
		if letter := tx.Letter(id); letter != nil {
			recordLetter(tx, letter, 0, false)
		}
	}
	for _, later := range p.Later {
		if known := tx.Mail(later.ID); known != nil && known.Taken {
			mail := *known
			if !later.Untried {
				mail.Tries++
			}
			mail.At = tx.Now + max(later.After, gatherMillis)
			tx.PutMail(&mail)
		}
		if letter := tx.Letter(later.ID); letter != nil {
			recordLetter(tx, letter, max(later.After, 1), !later.Untried)
		}
	}
	return command.None{}, nil
}

// byEmail and inApp report whether a preference includes that way.
func byEmail(how model.NoticePreference) bool {
	return how == model.ByEmail || how == model.BothWays
}

func inApp(how model.NoticePreference) bool {
	return how == model.InApp || how == model.BothWays
}
