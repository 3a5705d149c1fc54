package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds of records that wait for the payment provider.
const (
	maxOpenTopUps       = 100    // per customer
	maxWaitingReversals = 10_000 // of all payments; the oldest is removed
)

func openTopUp(tx *state.Tx, p command.OpenTopUpPayload) (command.OpenedTopUp, error) {
	opened := command.OpenedTopUp{Session: p.Session, URL: p.URL}
	if tx.Customer(p.Customer) == nil {
		return opened, fault.New(fault.Unauthorized, "the customer does not exist")
	}
	if known := tx.TopUp(p.Session); known != nil {
		if known.Customer != p.Customer {
			return opened, fault.New(fault.Internal, "the session %.60q is another customer's",
				p.Session)
		}
		return opened, nil
	}
	if tx.Settings().BillingOff {
		return opened, fault.New(fault.TopUpNotConfigured, "nothing is charged here: the operator "+
			"has switched billing off")
	}
	if tx.OpenTopUps(p.Customer) >= maxOpenTopUps {
		return opened, fault.New(fault.LimitReached, "a customer has at most %d open top-ups; "+
			"pay one, or wait until they expire", maxOpenTopUps)
	}
	tx.PutTopUp(&state.TopUp{Session: p.Session, Customer: p.Customer, Status: state.TopUpOpen,
		Asked: p.Amount, CreatedAt: tx.Now, Expires: p.Expires})
	return opened, nil
}

// payTopUp credits a session. A payment counts whatever was reported before or comes later, since
// the provider's events come in any order.
func payTopUp(tx *state.Tx, p command.PayTopUpPayload) (command.PaidTopUp, error) {
	paid := state.TopUp{Session: p.Session, Customer: p.Customer, CreatedAt: tx.Now}
	if known := tx.TopUp(p.Session); known != nil {
		paid = *known
	}
	if paid.Status == state.TopUpApplied || paid.Status == state.TopUpUnmatched {
		return command.PaidTopUp{TopUp: paid, Waiting: waiting(tx, paid.Payment)}, nil
	}
	books := openBooks(tx)
	wallet := books.wallet(paid.Customer)
	paid.Status, paid.Paid, paid.Payment, paid.EndedAt = state.TopUpApplied, p.Amount, p.Payment,
		tx.Now
	if wallet == nil || p.Amount == 0 || tx.Customer(paid.Customer).Removed() {
		wallet, paid.Status = nil, state.TopUpUnmatched
	}
	if err := books.clear(wallet, p.Amount); err != nil {
		return command.PaidTopUp{}, err
	}
	if wallet != nil {
		wallet.ToppedUp = true
		entry := &state.Entry{ID: p.Entry, Customer: paid.Customer, Type: state.EntryTopUp,
			Amount: p.Amount, Note: p.Session, CreatedAt: tx.Now, Created: tx.Index}
		books.seal(wallet, entry, state.EntryApplied)
		tx.PutEntry(entry)
		notifyPaid(tx, entry)
	}
	books.save()
	tx.PutTopUp(&paid)
	return command.PaidTopUp{TopUp: paid, Waiting: waiting(tx, paid.Payment)}, nil
}

// waiting returns a payment's reversals that were reported before it. A command makes at most one
// entry per customer, so other commands book them.
func waiting(tx *state.Tx, payment string) (list []state.Reversal) {
	if payment == "" {
		return nil
	}
	for _, r := range tx.ReversalsOf(payment) {
		if !r.Matched {
			list = append(list, *r)
		}
	}
	return list
}

func endTopUp(tx *state.Tx, p command.EndTopUpPayload) (command.None, error) {
	if known := tx.TopUp(p.Session); known != nil && known.Status == state.TopUpOpen {
		status := state.TopUpExpired
		if p.Failed {
			status = state.TopUpFailed
			notifyUnpaid(tx, known)
		}
		end(tx, known, status)
	}
	return command.None{}, nil
}

func end(tx *state.Tx, open *state.TopUp, status string) {
	ended := *open
	ended.Status, ended.EndedAt = status, tx.Now
	tx.PutTopUp(&ended)
}

// reverseTopUp updates a reversal's booking to what is known of it. Order and repetition of reports
// do not matter. The amount counts as gone until it is reported as returned.
func reverseTopUp(tx *state.Tx, p command.ReverseTopUpPayload) (state.Reversal, error) {
	next := state.Reversal{ID: p.ID, Payment: p.Payment, Amount: p.Amount, ToldAt: tx.Now}
	if known := tx.Reversal(p.ID); known != nil {
		next = *known
	}
	next.Back = max(next.Back, min(p.Back, next.Amount))
	paid := tx.TopUpOf(next.Payment)
	away := int64(0)
	if next.Matched = paid != nil; next.Matched {
		away = next.Amount - next.Back
	}
	if away != next.Booked {
		if err := bookReversal(tx, p, paid, next.Booked-away); err != nil {
			return state.Reversal{}, err
		}
		next.Booked = away
	}
	if !next.Matched {
		makeRoomForReversal(tx, p.ID)
	}
	tx.PutReversal(&next)
	return next, nil
}

// bookReversal moves money between the provider and the owner of the top-up's money. A payment in
// another currency was never booked.
func bookReversal(tx *state.Tx, p command.ReverseTopUpPayload, paid *state.TopUp,
	amount int64) error {
	if paid.Paid == 0 {
		return nil
	}
	books := openBooks(tx)
	var wallet *state.Wallet
	if paid.Status == state.TopUpApplied {
		wallet = books.wallet(paid.Customer)
	}
	if err := books.clear(wallet, amount); err != nil {
		return err
	}
	if wallet != nil {
		entry := &state.Entry{ID: p.Entry, Customer: paid.Customer, Type: state.EntryAdjustment,
			Amount: amount, Note: p.ID, CreatedAt: tx.Now, Created: tx.Index}
		books.seal(wallet, entry, state.EntryApplied)
		tx.PutEntry(entry)
	}
	books.save()
	return nil
}

// makeRoomForReversal drops the oldest waiting reversal if a new one would be too many. Refunds of
// payments that are not ours wait, too.
func makeRoomForReversal(tx *state.Tx, id string) {
	if tx.Reversal(id) != nil {
		return
	}
	var oldest *state.Reversal
	count := 0
	tx.WaitingReversals(func(r *state.Reversal) bool {
		if count++; oldest == nil {
			oldest = r
		}
		return count < maxWaitingReversals
	})
	if count >= maxWaitingReversals {
		tx.RemoveReversal(oldest)
	}
}

// expireTopUps ends sessions whose outcome the provider never reported. It also removes those that
// moved no money. Both go a bounded number at a time.
func expireTopUps(tx *state.Tx) {
	var due []*state.TopUp
	tx.DueTopUps(tx.Now, func(u *state.TopUp) bool {
		due = append(due, u)
		return len(due) < maxExpiredPerTick
	})
	for _, u := range due {
		if u.Status == state.TopUpOpen {
			end(tx, u, state.TopUpExpired)
		} else {
			tx.RemoveTopUp(u)
		}
	}
	var old []*state.Reversal
	tx.WaitingReversals(func(r *state.Reversal) bool {
		if r.ToldAt+state.TopUpKeptMillis > tx.Now || len(old) == maxExpiredPerTick {
			return false
		}
		old = append(old, r)
		return true
	})
	for _, r := range old {
		tx.RemoveReversal(r)
	}
}
