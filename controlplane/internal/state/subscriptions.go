package state

import (
	"slices"

	"shoal.dev/shoal/pkg/ids"
)

// SubscriptionsSince is the first cluster version in which there are subscriptions.
const SubscriptionsSince = 2

// StarterPlan is the free plan. It is what is left when a paid one has ended.
const StarterPlan = "STARTER"

// LapseMillis is for how long after a period's end a plan stays while the provider does not tell of
// the next one. A provider tries for weeks to be paid.
const LapseMillis = 30 * 24 * 60 * 60 * 1000

// Standing says how it stands with a contract. A later one wins over an earlier of the same second.
type Standing uint8

// The standings. An ended contract never comes back.
const (
	ContractPending Standing = iota // never paid so far
	ContractLapsed                  // not paid for, or over by our own time
	ContractLive
	ContractEnded
)

// Contract is a subscription at the payment provider, as it is known here.
type Contract struct {
	ID       string   `cbor:"1,keyasint"`
	Plan     string   `cbor:"2,keyasint"`           // of the next period
	Cancel   bool     `cbor:"3,keyasint,omitempty"` // there is no next period
	Revision uint64   `cbor:"4,keyasint,omitempty"` // of our newest change that it has
	Created  int64    `cbor:"5,keyasint"`           // by the provider's clock, Unix seconds
	Standing Standing `cbor:"6,keyasint,omitempty"`
	// PeriodEnd is until when it is paid, in Unix milliseconds. It only grows.
	PeriodEnd int64 `cbor:"7,keyasint"`
	// ToldAt is when the newest event of it was made, in Unix seconds of the provider. The answer
	// to a call has no time of its own: 0.
	ToldAt int64 `cbor:"8,keyasint,omitempty"`
	Cents  int64 `cbor:"9,keyasint,omitempty"` // of Plan; 0: the provider did not say
}

// live says whether the contract's plan may be used.
func (c *Contract) live() bool { return c.Standing == ContractLive }

// Checkout is where a customer can subscribe, until it expires.
type Checkout struct {
	Session string `cbor:"1,keyasint"`
	URL     string `cbor:"2,keyasint"` // at most 4,096 bytes
	Plan    string `cbor:"3,keyasint"`
	Expires int64  `cbor:"4,keyasint"` // Unix milliseconds
}

// Subscription is a customer's legacy plan (decision 39). Who never had one has no record, or one
// that names no plan.
type Subscription struct {
	Customer string   `cbor:"1,keyasint"`
	Contract Contract `cbor:"2,keyasint"`           // the newest one that was paid
	Paid     string   `cbor:"3,keyasint,omitempty"` // plan of the contract's current period
	Free     bool     `cbor:"4,keyasint,omitempty"` // the free plan was chosen since
	// Leaving are older contracts that the provider has still to end; Gone are ended ones, so that
	// what is told late of them changes nothing. Both have a bound.
	Leaving  []string `cbor:"5,keyasint,omitempty"`
	Gone     []string `cbor:"6,keyasint,omitempty"`
	Checkout Checkout `cbor:"7,keyasint"` // the newest, while it was not paid
	// Move is the change that is being brought to the provider, until MoveUntil at most.
	Move      ids.ID `cbor:"8,keyasint,omitempty"`
	MoveUntil int64  `cbor:"9,keyasint,omitempty"`
	Revision  uint64 `cbor:"10,keyasint,omitempty"` // of the newest change
	// Stale are checkouts in which nobody is to pay any more, so that the provider has still to end
	// them. They have a bound.
	Stale []string `cbor:"11,keyasint,omitempty"`
	// PaidCents is what Paid was sold at, whatever it costs others by now; 0: not known.
	PaidCents int64 `cbor:"12,keyasint,omitempty"`
}

// Clone is a copy that may be changed.
func (s *Subscription) Clone() *Subscription {
	c := *s
	c.Leaving, c.Gone = slices.Clone(s.Leaving), slices.Clone(s.Gone)
	c.Stale = slices.Clone(s.Stale)
	return &c
}

// Plan is what gates the customer; "": nothing does.
func (s *Subscription) Plan() string {
	switch {
	case s == nil:
		return ""
	case s.Contract.live():
		return s.Paid
	case s.Free || s.Contract.ID != "":
		return StarterPlan
	}
	return ""
}

// Active says whether there is a plan that has not ended.
func (s *Subscription) Active() bool { return s != nil && (s.Contract.live() || s.Free) }

// Scheduled is the plan of the next period where that is another one, else "".
func (s *Subscription) Scheduled() string {
	switch {
	case s == nil || !s.Contract.live():
		return ""
	case s.Contract.Cancel:
		return StarterPlan
	case s.Contract.Plan != s.Paid:
		return s.Contract.Plan
	}
	return ""
}

// due is when the passing of time changes it, 0: never.
func (s *Subscription) due() int64 {
	switch {
	case !s.Contract.live():
		return 0
	case s.Scheduled() != "":
		return s.Contract.PeriodEnd
	}
	return s.Contract.PeriodEnd + LapseMillis
}

var subscriptionsTable = define(SubscriptionsSince, "subscriptions",
	index("id", true, func(s *Subscription) []any { return []any{s.Customer} }),
	index("due", false, func(s *Subscription) []any {
		if due := s.due(); due != 0 {
			return []any{due}
		}
		return nil
	}),
	index("ending", false, func(s *Subscription) []any {
		if len(s.Leaving)+len(s.Stale) == 0 {
			return nil
		}
		return []any{s.Customer}
	}),
).told((*Subscription).telling)

// Subscription is nil when the customer never had one.
func (v *View) Subscription(customer string) *Subscription {
	return subscriptionsTable.first(v, "id", customer)
}

// DueSubscriptions visits those that time has changed by now, the oldest first, until visit returns
// false.
func (v *View) DueSubscriptions(by int64, visit func(*Subscription) bool) {
	subscriptionsTable.each(v, false, func(s *Subscription) bool {
		return s.due() <= by && visit(s)
	}, "due_prefix")
}

// EndingSubscriptions visits those of which the provider has something to end, by customer, behind
// one customer ("": from the first), until visit returns false.
func (v *View) EndingSubscriptions(after string, visit func(*Subscription) bool) {
	subscriptionsTable.from(v, func(s *Subscription) bool {
		return s.Customer == after || visit(s)
	}, "ending", after)
}

// PutSubscription adds or replaces.
func (t *Tx) PutSubscription(s *Subscription) { subscriptionsTable.put(t, s) }

// InvoiceStatus is a state of an invoice. A later one wins: none goes back.
type InvoiceStatus uint8

// The states.
const (
	InvoiceDraft InvoiceStatus = iota
	InvoiceOpen
	InvoiceUncollectible
	InvoiceVoid
	InvoicePaid
)

// Invoice is one of a subscription, as the payment provider told of it.
type Invoice struct {
	ID       string        `cbor:"1,keyasint"`
	Customer string        `cbor:"2,keyasint"`
	Cents    int64         `cbor:"3,keyasint"` // of its currency
	Currency string        `cbor:"4,keyasint"` // three small letters
	Status   InvoiceStatus `cbor:"5,keyasint,omitempty"`
	IssuedAt int64         `cbor:"6,keyasint"`           // Unix milliseconds
	URL      string        `cbor:"7,keyasint,omitempty"` // where people see it, ≤ 2,048 bytes
	ToldAt   int64         `cbor:"8,keyasint"`           // Unix seconds of the provider
}

var invoicesTable = define(SubscriptionsSince, "invoices",
	index("id", true, func(i *Invoice) []any { return []any{i.ID} }),
	index("customer", true, func(i *Invoice) []any {
		return []any{i.Customer, i.IssuedAt, i.ID}
	}),
).untold()

// Invoice is nil when there is none of that id.
func (v *View) Invoice(id string) *Invoice { return invoicesTable.first(v, "id", id) }

// Invoices lists a customer's, the oldest first.
func (v *View) Invoices(customer string) []*Invoice {
	return invoicesTable.all(v, "customer_prefix", customer)
}

// PutInvoice adds or replaces.
func (t *Tx) PutInvoice(i *Invoice) { invoicesTable.put(t, i) }

// RemoveInvoice removes one that makes room.
func (t *Tx) RemoveInvoice(i *Invoice) { invoicesTable.remove(t, i) }
