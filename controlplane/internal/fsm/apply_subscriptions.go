package fsm

import (
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const (
	moveHeldMillis = 2 * 60 * 1000
	maxContracts   = 10    // of each list: leaving, gone and stale
	maxInvoices    = 1_000 // per customer; the oldest is removed
)

// notifyNear notifies a customer that has just reached four fifths of its plan's cap, rounded up.
// After falling below, it is notified again.
func notifyNear(tx *state.Tx, customer string, by *command.PlanCap, before, now int) {
	if by == nil {
		return
	}
	if near := (by.Most*4 + 4) / 5; before >= near || now < near {
		return
	}
	notify(tx, state.Notice{
		ID:       state.NoticeID(model.QuotaNearLimit, customer, moment(tx), tx.Index),
		Customer: customer, Event: model.QuotaNearLimit, Name: by.Name, Message: by.Plan,
		Count: uint64(now), Most: uint64(by.Most)})
}

// changedSubscription returns a copy of a customer's subscription as of now, to be changed.
func changedSubscription(tx *state.Tx, customer string) (*state.Subscription, error) {
	known := tx.Subscription(customer)
	if known == nil {
		if tx.Customer(customer) == nil {
			return nil, fault.New(fault.Unauthorized, "the customer does not exist")
		}
		known = &state.Subscription{Customer: customer}
	}
	next := known.Clone()
	turn(next, tx.Now)
	return next, nil
}

// turn applies the passing of time. When a period is over, the scheduled plan follows. When the
// provider reports no next period for long, the contract lapses.
func turn(s *state.Subscription, now int64) {
	c := &s.Contract
	if c.Standing != state.ContractLive || now < c.PeriodEnd {
		return
	}
	s.Paid, s.PaidCents = c.Plan, c.Cents
	if c.Cancel || now >= c.PeriodEnd+state.LapseMillis {
		c.Standing = state.ContractLapsed
	}
}

// saveSubscription writes a subscription and returns it.
func saveSubscription(tx *state.Tx, s *state.Subscription) state.Subscription {
	turn(s, tx.Now)
	if c := &s.Checkout; c.Session != "" && c.Expires <= tx.Now {
		*c = state.Checkout{}
	}
	tx.PutSubscription(s)
	return *s
}

func beginMove(tx *state.Tx, p command.BeginMovePayload) (state.Subscription, error) {
	next, err := changedSubscription(tx, p.Customer)
	if err != nil {
		return state.Subscription{}, err
	}
	if next.Move == p.Move {
		return *next, nil
	}
	if !next.Move.IsZero() && tx.Now < next.MoveUntil {
		return state.Subscription{}, errMoving()
	}
	next.Move, next.MoveUntil = p.Move, tx.Now+moveHeldMillis
	next.Revision++
	return saveSubscription(tx, next), nil
}

func errMoving() *fault.Error {
	return fault.New(fault.SubscriptionInFlight, "another change of the subscription is under way")
}

// endMoveOf ends the subscription's move, if it is move.
func endMoveOf(s *state.Subscription, move ids.ID) {
	if !move.IsZero() && s.Move == move {
		s.Move, s.MoveUntil = ids.ID{}, 0
	}
}

func openCheckout(tx *state.Tx, p command.OpenCheckoutPayload) (state.Subscription, error) {
	next, err := changedSubscription(tx, p.Customer)
	if err != nil {
		return state.Subscription{}, err
	}
	switch {
	case next.Checkout.Session == p.Checkout.Session:
		return *next, nil
	case next.Move != p.Move:
		return state.Subscription{}, errMoving()
	}
	leaveCheckout(next)
	next.Checkout = p.Checkout
	endMoveOf(next, p.Move)
	return saveSubscription(tx, next), nil
}

// leaveCheckout adds the current checkout, if any, to those the provider must end. A paid checkout
// has ended.
func leaveCheckout(s *state.Subscription) {
	if s.Checkout.Session != "" {
		s.Stale = pushBounded(s.Stale, s.Checkout.Session)
		s.Checkout = state.Checkout{}
	}
}

// leaveOneCheckout leaves a checkout that the customer no longer wants.
func leaveOneCheckout(tx *state.Tx, p command.LeaveCheckoutPayload) (command.None, error) {
	if known := tx.Subscription(p.Customer); known != nil && known.Checkout.Session == p.Session {
		next := known.Clone()
		leaveCheckout(next)
		saveSubscription(tx, next)
	}
	return command.None{}, nil
}

func endCheckout(tx *state.Tx, p command.EndCheckoutPayload) (command.None, error) {
	known := tx.Subscription(p.Customer)
	if known == nil || known.Checkout.Session != p.Session &&
		!slices.Contains(known.Stale, p.Session) {
		return command.None{}, nil
	}
	next := known.Clone()
	if next.Checkout.Session == p.Session {
		next.Checkout = state.Checkout{}
	}
	next.Stale = slices.DeleteFunc(next.Stale, func(s string) bool { return s == p.Session })
	saveSubscription(tx, next)
	return command.None{}, nil
}

// endSubscription collects everything the provider must end for a removed customer.
func endSubscription(tx *state.Tx, customer string) {
	known := tx.Subscription(customer)
	if known == nil {
		return
	}
	next := known.Clone()
	leaveCheckout(next)
	if c := &next.Contract; c.ID != "" && c.Standing != state.ContractEnded {
		leaveContract(next, c.ID)
	}
	next.Move, next.MoveUntil = ids.ID{}, 0
	saveSubscription(tx, next)
}

func endMove(tx *state.Tx, p command.EndMovePayload) (command.None, error) {
	if known := tx.Subscription(p.Customer); known != nil && known.Move == p.Move {
		next := known.Clone()
		endMoveOf(next, p.Move)
		saveSubscription(tx, next)
	}
	return command.None{}, nil
}

func chooseFree(tx *state.Tx, p command.ChooseFreePayload) (state.Subscription, error) {
	next, err := changedSubscription(tx, p.Customer)
	if err != nil {
		return state.Subscription{}, err
	}
	leaveCheckout(next)
	if !next.Active() {
		next.Free = true
		if next.Contract.Standing == state.ContractLapsed && next.Contract.ID != "" {
			leaveContract(next, next.Contract.ID) // otherwise a late payment would restore its plan
		}
	}
	return saveSubscription(tx, next), nil
}

// tellContract applies the provider's report on a contract. The newest paid contract counts, and
// older ones must be ended. An ended contract stays ended, whatever is reported later.
func tellContract(tx *state.Tx, p command.TellContractPayload) (state.Subscription, error) {
	next, err := changedSubscription(tx, p.Customer)
	if err != nil {
		return state.Subscription{}, err
	}
	told := p.Contract
	endMoveOf(next, p.Move)
	next.Revision = max(next.Revision, told.Revision)
	switch current := &next.Contract; {
	case told.ID == current.ID:
		if told.Revision > current.Revision && told.Revision == next.Revision {
			leaveCheckout(next) // the customer's newest choice needs no payment
		}
		follow(next, &told, tx.Now)
	case told.Standing == state.ContractEnded:
		forgetContract(next, told.ID)
	case slices.Contains(next.Gone, told.ID):
	case told.Standing != state.ContractPending && isOlder(&told, current):
		leaveContract(next, told.ID)
	case told.Standing == state.ContractLive:
		switch {
		case current.Standing == state.ContractEnded:
			forgetContract(next, current.ID)
		case current.ID != "":
			leaveContract(next, current.ID)
		}
		next.Contract, next.Paid, next.PaidCents, next.Free = told, told.Plan, told.Cents, false
		leaveCheckout(next)
	}
	switch {
	case told.Standing == state.ContractEnded:
		next.Leaving = slices.DeleteFunc(next.Leaving, func(l string) bool { return l == told.ID })
	case tx.Customer(p.Customer).Removed() && !hasEnded(next, told.ID):
		leaveContract(next, told.ID)
	}
	return saveSubscription(tx, next), nil
}

// hasEnded reports whether a contract is known to have ended.
func hasEnded(s *state.Subscription, id string) bool {
	return slices.Contains(s.Gone, id) ||
		s.Contract.ID == id && s.Contract.Standing == state.ContractEnded
}

// isOlder reports whether a contract was made before another one.
func isOlder(c, than *state.Contract) bool {
	if c.Created != than.Created {
		return c.Created < than.Created
	}
	return c.ID < than.ID
}

// follow updates the current contract with a report on it.
func follow(s *state.Subscription, told *state.Contract, now int64) {
	c := &s.Contract
	if c.Standing == state.ContractEnded || told.Standing == state.ContractEnded {
		c.Standing = state.ContractEnded
		return
	}
	if isLater(told, c) {
		c.Plan, c.Cents = told.Plan, told.Cents
		c.Cancel, c.Revision = told.Cancel, told.Revision
	}
	if told.ToldAt > c.ToldAt || told.ToldAt == c.ToldAt && told.Standing > c.Standing {
		c.Standing, c.ToldAt = told.Standing, told.ToldAt
	}
	if told.PeriodEnd > c.PeriodEnd {
		if now < c.PeriodEnd { // over by the provider's clock: turn has not run yet
			s.Paid, s.PaidCents = c.Plan, c.Cents
		}
		c.PeriodEnd = told.PeriodEnd
	}
}

// isLater reports whether a report on a plan is newer than the known one. It compares our own count
// of changes, then the provider's clock. In the same second a cancellation wins.
func isLater(told, known *state.Contract) bool {
	switch {
	case told.Revision != known.Revision:
		return told.Revision > known.Revision
	case told.ToldAt != known.ToldAt:
		return told.ToldAt > known.ToldAt
	}
	return told.Cancel && !known.Cancel
}

// leaveContract adds a contract to those the provider must end.
func leaveContract(s *state.Subscription, id string) {
	if !slices.Contains(s.Leaving, id) {
		s.Leaving = pushBounded(s.Leaving, id)
	}
}

// forgetContract records that a contract has ended.
func forgetContract(s *state.Subscription, id string) {
	s.Leaving = slices.DeleteFunc(s.Leaving, func(l string) bool { return l == id })
	if !slices.Contains(s.Gone, id) {
		s.Gone = pushBounded(s.Gone, id)
	}
}

// pushBounded adds a contract or a checkout to a list, and drops the oldest if it is full.
func pushBounded(list []string, id string) []string {
	if len(list) >= maxContracts {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, id)
}

// putInvoice applies the provider's report on an invoice. Its states are ordered, so the order of
// reports does not matter.
func putInvoice(tx *state.Tx, p command.PutInvoicePayload) (command.None, error) {
	told := p.Invoice
	if tx.Customer(told.Customer) == nil {
		return command.None{}, fault.New(fault.Unauthorized, "the customer does not exist")
	}
	known := tx.Invoice(told.ID)
	switch {
	case known == nil:
		all := tx.Invoices(told.Customer)
		if len(all) >= maxInvoices {
			if told.IssuedAt <= all[0].IssuedAt {
				return command.None{}, nil // it is the oldest itself
			}
			tx.RemoveInvoice(all[0])
		}
	case known.Customer != told.Customer || told.Status < known.Status ||
		told.Status == known.Status && told.ToldAt <= known.ToldAt:
		return command.None{}, nil
	default:
		told.IssuedAt = known.IssuedAt
	}
	tx.PutInvoice(&told)
	return command.None{}, nil
}

// expireSubscriptions ends periods, a bounded number at a time.
func expireSubscriptions(tx *state.Tx) {
	var due []*state.Subscription
	tx.DueSubscriptions(tx.Now, func(s *state.Subscription) bool {
		due = append(due, s)
		return len(due) < maxExpiredPerTick
	})
	for _, s := range due {
		saveSubscription(tx, s.Clone())
	}
}
