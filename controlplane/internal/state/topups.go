package state

// States of a top-up (specification 3).
const (
	TopUpOpen      = "OPEN"
	TopUpApplied   = EntryApplied
	TopUpExpired   = "EXPIRED"
	TopUpFailed    = "FAILED"
	TopUpUnmatched = "UNMATCHED"
)

// TopUpKeptMillis is how long a top-up without a payment is kept after its end. It is also how long
// after a session's end the provider may report its outcome.
const TopUpKeptMillis = 30 * 24 * 60 * 60 * 1000

// TopUp is a session at a payment provider in which a customer pays money in. Its record is made
// when the session is opened here, or when the provider reports its payment.
type TopUp struct {
	Session  string `cbor:"1,keyasint"` // the provider's id of the session
	Customer string `cbor:"2,keyasint"` // may not exist when UNMATCHED
	Status   string `cbor:"3,keyasint"`
	Asked    int64  `cbor:"4,keyasint,omitempty"` // micros it was opened for; 0: not opened here
	// Paid is the amount credited, or held while UNMATCHED, in micros.
	Paid      int64  `cbor:"5,keyasint,omitempty"`
	Payment   string `cbor:"6,keyasint,omitempty"` // the provider's id of the payment
	CreatedAt int64  `cbor:"7,keyasint"`
	Expires   int64  `cbor:"8,keyasint,omitempty"` // when the session expires at the provider
	EndedAt   int64  `cbor:"9,keyasint,omitempty"`
}

var topUpsTable = define(2, "topups",
	index("id", true, func(u *TopUp) []any { return []any{u.Session} }),
	index("payment", false, func(u *TopUp) []any {
		if u.Payment == "" {
			return nil
		}
		return []any{u.Payment}
	}),
	index("open", false, func(u *TopUp) []any {
		if u.Status != TopUpOpen {
			return nil
		}
		return []any{u.Customer}
	}),
	index("applied", false, func(u *TopUp) []any {
		if u.Status != TopUpApplied {
			return nil
		}
		return []any{u.Customer}
	}),
	index("due", false, func(u *TopUp) []any {
		switch u.Status {
		case TopUpOpen:
			return []any{u.Expires + TopUpKeptMillis}
		case TopUpExpired, TopUpFailed:
			return []any{u.EndedAt + TopUpKeptMillis}
		}
		return nil // money has moved
	}),
).told((*TopUp).telling).followed(func(u *TopUp) (string, Touch) {
	return u.Customer, Touch{What: TouchedTopUp, Session: u.Session}
})

// TopUp returns the top-up with a session, or nil.
func (v *View) TopUp(session string) *TopUp { return topUpsTable.first(v, "id", session) }

// TopUpOf returns the top-up of a payment, nil when none is known.
func (v *View) TopUpOf(payment string) *TopUp {
	return topUpsTable.first(v, "payment", payment)
}

// OpenTopUps counts a customer's open top-ups.
func (v *View) OpenTopUps(customer string) int {
	return len(topUpsTable.all(v, "open", customer))
}

// DueTopUps visits the unpaid top-ups that are due by a time, the earliest first, until visit
// returns false.
func (v *View) DueTopUps(by int64, visit func(*TopUp) bool) {
	topUpsTable.each(v, false, func(u *TopUp) bool {
		due := u.EndedAt + TopUpKeptMillis
		if u.Status == TopUpOpen {
			due = u.Expires + TopUpKeptMillis
		}
		return due <= by && visit(u)
	}, "due_prefix")
}

// PutTopUp adds or replaces a top-up.
func (t *Tx) PutTopUp(u *TopUp) { topUpsTable.put(t, u) }

// RemoveTopUp removes a top-up that moved no money.
func (t *Tx) RemoveTopUp(u *TopUp) { topUpsTable.remove(t, u) }

// Reversal is a payment's money going back: a refund or a dispute. If the provider reports it
// before the payment, the reversal waits.
type Reversal struct {
	ID      string `cbor:"1,keyasint"` // the provider's
	Payment string `cbor:"2,keyasint"`
	Amount  int64  `cbor:"3,keyasint"` // micros, above 0
	// Back is how much of it returned, in micros, because a refund failed or a dispute was won,
	// perhaps in part. It never decreases.
	Back    int64 `cbor:"4,keyasint,omitempty"`
	Booked  int64 `cbor:"5,keyasint,omitempty"` // micros taken off the top-up now
	Matched bool  `cbor:"6,keyasint,omitempty"` // the payment is known
	ToldAt  int64 `cbor:"7,keyasint"`           // when it was first reported
}

var reversalsTable = define(2, "reversals",
	index("id", true, func(r *Reversal) []any { return []any{r.ID} }),
	index("payment", false, func(r *Reversal) []any { return []any{r.Payment} }),
	index("waiting", false, func(r *Reversal) []any {
		if r.Matched {
			return nil
		}
		return []any{r.ToldAt}
	}),
)

// Reversal returns the reversal with an id, or nil.
func (v *View) Reversal(id string) *Reversal { return reversalsTable.first(v, "id", id) }

// ReversalsOf lists the reversals of a payment, by id.
func (v *View) ReversalsOf(payment string) []*Reversal {
	return reversalsTable.all(v, "payment", payment)
}

// WaitingReversals visits the reversals without a known payment, oldest first, until visit returns
// false.
func (v *View) WaitingReversals(visit func(*Reversal) bool) {
	reversalsTable.each(v, false, visit, "waiting_prefix")
}

// PutReversal adds or replaces a reversal.
func (t *Tx) PutReversal(r *Reversal) { reversalsTable.put(t, r) }

// RemoveReversal removes a reversal whose payment never became known.
func (t *Tx) RemoveReversal(r *Reversal) { reversalsTable.remove(t, r) }

// EachTopUp visits all top-ups, by session, until visit returns false.
func (v *View) EachTopUp(visit func(*TopUp) bool) {
	topUpsTable.each(v, false, visit, "id_prefix")
}

// EachReversal visits all reversals, by id, until visit returns false.
func (v *View) EachReversal(visit func(*Reversal) bool) {
	reversalsTable.each(v, false, visit, "id_prefix")
}
