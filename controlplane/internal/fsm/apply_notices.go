package fsm

import (
	"encoding/binary"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of a customer's notices. The fold, which counts notices without room, may be one more than
// maxNotices.
const (
	maxNotices     = 1_000
	maxPreferences = 64
)

// notify tells a customer of an event, by its preferences. It reads the ids of the customer's
// notices and decodes none. Beyond maxNotices it removes the oldest read notice. If none is read,
// the fold counts the new one.
func notify(tx *state.Tx, n state.Notice) {
	if tx.ClusterVersion() < state.NoticesSince || tx.Notice(n.Customer, n.ID) != nil ||
		tx.Customer(n.Customer).Removed() {
		return
	}
	n.At, n.Made = tx.Now, tx.Index
	callWebhooks(tx, n)
	inbox := tx.Inbox(n.Customer)
	how := inbox.Preference(n.Event)
	if how == model.NotAtAll {
		return
	}
	mailed := byEmail(how) && mailable(tx, n.Customer)
	if mailed {
		post(tx, &inbox, n)
	}
	if inApp(how) || !mailed { // an event that cannot be mailed is still listed
		list(tx, &inbox, n)
	}
	tx.PutInbox(inbox)
}

// list adds a notice to those that the application shows.
func list(tx *state.Tx, inbox *state.Inbox, n state.Notice) {
	if inbox.Unread >= maxNotices {
		fold(tx, inbox, n)
		return
	}
	if inbox.Notices >= maxNotices {
		oldest := tx.OldestRead(n.Customer) // exists, since fewer are unread
		tx.RemoveNotice(oldest)
		inbox.Drop(oldest)
	}
	tx.PutNotice(&n)
	inbox.Add(&n)
}

// fold counts a notice that has no room.
func fold(tx *state.Tx, inbox *state.Inbox, n state.Notice) {
	folded := state.Notice{ID: state.NoticeID(model.MoreNotices, n.Customer, n.ID, n.Made),
		Customer: n.Customer, Event: model.MoreNotices, Made: n.Made}
	if inbox.Fold.IsZero() {
		inbox.Fold = folded.ID
		inbox.Add(&folded)
	} else {
		folded = *tx.Notice(n.Customer, inbox.Fold)
	}
	folded.At = n.At
	folded.Count++
	tx.PutNotice(&folded)
}

// NotifyRun notifies of a run that ended on its own. A person who stopped or capped it knows.
func NotifyRun(tx *state.Tx, job *state.Job) {
	if job.Trial() {
		return
	}
	var event model.Event
	switch {
	case job.State == model.Completed:
		event = model.RunCompleted
	case job.State == model.Failed:
		event = model.RunFailed
	case job.Reason == model.InsufficientBalance:
		event = model.RunStoppedBalance
	default:
		return
	}
	result, made := resultEvent(tx, job)
	if result != "" {
		event = result
	}
	n := state.Notice{ID: state.NoticeID(event, job.Customer, job.ID, 0), Customer: job.Customer,
		Event: event, Subject: job.ID, Scraper: job.Scraper, Message: job.Message,
		Pages: job.Pages, Items: job.Items, Errors: job.Errors, Micros: job.Charged}
	if scraper := tx.Scraper(job.Scraper); scraper != nil {
		n.Name = scraper.Spec.Name
	}
	if made != nil {
		n.Name = made.Name
	}
	notify(tx, n)
}

// notifyRefused notifies of a refused start, unless the start before was refused for the same
// reason.
func notifyRefused(tx *state.Tx, s *state.Schedule) {
	start, news := s.Refused()
	if !news {
		return
	}
	n := state.Notice{ID: state.NoticeID(model.StartRefused, s.Customer, s.Target,
		uint64(start.At)), Customer: s.Customer, Event: model.StartRefused, Subject: s.Target,
		Message: start.Reason.String(), Count: uint64(start.Skipped)}
	if scraper := tx.Scraper(s.Target); scraper != nil {
		n.Scraper, n.Name = s.Target, scraper.Spec.Name
	} else if group := tx.Group(s.Target); group != nil {
		n.Name = group.Name
	}
	notify(tx, n)
}

// notifyLow notifies of a balance that falls below the customer's threshold.
func notifyLow(tx *state.Tx, w *state.Wallet) {
	if w.Balance() >= w.Threshold {
		return
	}
	if was := tx.Wallet(w.Customer); was == nil || was.Balance() < was.Threshold {
		return
	}
	notify(tx, state.Notice{
		ID:       state.NoticeID(model.WalletLowBalance, w.Customer, moment(tx), tx.Index),
		Customer: w.Customer, Event: model.WalletLowBalance, Micros: w.Balance()})
}

// moment returns an id made from the state time, for events without a subject.
func moment(tx *state.Tx) (now ids.ID) {
	binary.BigEndian.PutUint32(now[:], uint32(tx.Now/1000))
	return now
}

// notifyPaid notifies of a top-up that was credited, by its ledger entry.
func notifyPaid(tx *state.Tx, entry *state.Entry) {
	notify(tx, state.Notice{
		ID:       state.NoticeID(model.TopUpApplied, entry.Customer, entry.ID, 0),
		Customer: entry.Customer, Event: model.TopUpApplied, Subject: entry.ID,
		Micros: entry.Amount})
}

// notifyUnpaid notifies of a top-up whose payment failed. An expired one causes no notice.
func notifyUnpaid(tx *state.Tx, u *state.TopUp) {
	notify(tx, state.Notice{
		ID:       state.NoticeID(model.TopUpFailed, u.Customer, moment(tx), tx.Index),
		Customer: u.Customer, Event: model.TopUpFailed, Micros: u.Asked})
}

// notifyKey notifies of a new key.
func notifyKey(tx *state.Tx, key *state.Key) {
	notify(tx, state.Notice{ID: state.NoticeID(model.APIKeyCreated, key.Customer, key.ID, 0),
		Customer: key.Customer, Event: model.APIKeyCreated, Subject: key.ID, Name: key.Name})
}

func readNotices(tx *state.Tx, p command.ReadNoticesPayload) (state.Inbox, error) {
	inbox := tx.Inbox(p.Customer)
	if p.ID.IsZero() {
		var unread []*state.Notice
		tx.Notices(p.Customer, func(n *state.Notice) bool {
			if !n.Read {
				unread = append(unread, n)
			}
			return true
		})
		for _, n := range unread {
			mark(tx, &inbox, n, true)
		}
	} else {
		n := tx.Notice(p.Customer, p.ID)
		if n == nil {
			return state.Inbox{}, fault.Invalid(fault.NotFound, "id", "no notice has this id")
		}
		mark(tx, &inbox, n, !p.Unread)
	}
	if inbox.Notices > 0 {
		tx.PutInbox(inbox)
	}
	return inbox, nil
}

// mark marks a notice as read or unread. If it was the fold, the next overflow makes a new one.
func mark(tx *state.Tx, inbox *state.Inbox, known *state.Notice, read bool) {
	if known.Read == read {
		return
	}
	n := *known
	inbox.Drop(&n)
	n.Read = read
	inbox.Add(&n)
	tx.PutNotice(&n)
}

func preferNotices(tx *state.Tx, p command.PreferNoticesPayload) (state.Inbox, error) {
	if tx.Customer(p.Customer) == nil {
		return state.Inbox{}, fault.New(fault.Unauthorized, "the customer does not exist")
	}
	inbox := tx.Inbox(p.Customer)
	for _, preference := range p.Set {
		inbox.Prefer(preference)
	}
	if len(inbox.Preferences) > maxPreferences {
		return state.Inbox{}, fault.New(fault.LimitReached,
			"a customer has preferences for at most %d events", maxPreferences)
	}
	tx.PutInbox(inbox)
	return inbox, nil
}

func putThreshold(tx *state.Tx, p command.PutThresholdPayload) (state.Wallet, error) {
	known := tx.Wallet(p.Customer)
	if known == nil {
		return state.Wallet{}, fault.New(fault.Unauthorized, "the customer does not exist")
	}
	wallet := *known
	wallet.Threshold = p.Threshold
	tx.PutWallet(&wallet)
	return wallet, nil
}

// expireNotices removes old notices, a bounded number at a time.
func expireNotices(tx *state.Tx) {
	for _, n := range tx.NoticesUntil(tx.Now-state.NoticeKeptMillis, maxExpiredPerTick) {
		inbox := tx.Inbox(n.Customer)
		inbox.Drop(n)
		tx.RemoveNotice(n)
		tx.PutInbox(inbox)
	}
}
