package state

import (
	"slices"

	"shoal.dev/shoal/pkg/ids"
)

// SubscriptionsSince is the first cluster version in which there are subscriptions.
const SubscriptionsSince = 2

// StarterPlan is the free plan. It takes effect when a paid plan ends.
const StarterPlan = "STARTER"

// LapseMillis is how long a plan stays after its period while the provider does not report the next
// one. Providers try for weeks to collect a payment.
const LapseMillis = 30 * 24 * 60 * 60 * 1000

// Standing is the state of a contract. Of two told for one second, the later wins.
type Standing uint8

// The standings. An ended contract never comes back.
const (
	ContractPending Standing = iota // never paid
	ContractLapsed                  // unpaid, or lapsed by our own time
	ContractLive
	ContractEnded
)

// Contract is a subscription at the payment provider, as far as it is known here.
type Contract struct {
	ID       string   `cbor:"1,keyasint"`
	Plan     string   `cbor:"2,keyasint"`           // of the next period
	Cancel   bool     `cbor:"3,keyasint,omitempty"` // it ends with this period
	Revision uint64   `cbor:"4,keyasint,omitempty"` // our newest change that it includes
	Created  int64    `cbor:"5,keyasint"`           // by the provider's clock, Unix seconds
	Standing Standing `cbor:"6,keyasint,omitempty"`
	// PeriodEnd is the end of the paid period, in Unix milliseconds. It only grows.
	PeriodEnd int64 `cbor:"7,keyasint"`
	// ToldAt is when its newest event was made, in the provider's Unix seconds. The answer to a
	// call has no time of its own: 0.
	ToldAt int64 `cbor:"8,keyasint,omitempty"`
	Cents  int64 `cbor:"9,keyasint,omitempty"` // of Plan; 0: the provider did not say
}

// live reports whether the contract's plan may be used.
func (c *Contract) live() bool { return c.Standing == ContractLive }

// Checkout is a page where a customer can subscribe, until it expires.
type Checkout struct {
	Session string `cbor:"1,keyasint"`
	URL     string `cbor:"2,keyasint"` // at most 4,096 bytes
	Plan    string `cbor:"3,keyasint"`
	Expires int64  `cbor:"4,keyasint"` // Unix milliseconds
}

// Subscription is a customer's legacy plan (decision 39). A customer who never had one has no
// record, or a record without a plan.
type Subscription struct {
	Customer string   `cbor:"1,keyasint"`
	Contract Contract `cbor:"2,keyasint"`           // the newest one paid
	Paid     string   `cbor:"3,keyasint,omitempty"` // plan of the contract's current period
	Free     bool     `cbor:"4,keyasint,omitempty"` // the free plan was chosen since
	// Leaving lists older contracts that the provider must still end. Gone lists ended ones, so
	// that late events about them change nothing. Both are bounded.
	Leaving  []string `cbor:"5,keyasint,omitempty"`
	Gone     []string `cbor:"6,keyasint,omitempty"`
	Checkout Checkout `cbor:"7,keyasint"` // the newest, while it is unpaid
	// Move is the change being made at the provider, until MoveUntil at most.
	Move      ids.ID `cbor:"8,keyasint,omitempty"`
	MoveUntil int64  `cbor:"9,keyasint,omitempty"`
	Revision  uint64 `cbor:"10,keyasint,omitempty"` // of the newest change
	// Stale lists checkouts that must no longer be paid, so that the provider must still end them.
	// It is bounded.
	Stale []string `cbor:"11,keyasint,omitempty"`
	// PaidCents is the price at which Paid was sold; 0: not known.
	PaidCents int64 `cbor:"12,keyasint,omitempty"`
}

// Clone returns a copy that may be changed.
func (s *Subscription) Clone() *Subscription {
	c := *s
	c.Leaving, c.Gone = slices.Clone(s.Leaving), slices.Clone(s.Gone)
	c.Stale = slices.Clone(s.Stale)
	return &c
}

// Plan is the plan that limits the customer; "": none does.
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

// Active reports whether there is a plan that has not ended.
func (s *Subscription) Active() bool { return s != nil && (s.Contract.live() || s.Free) }

// Scheduled returns the next period's plan if it is another one, else "".
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

// due returns when the passing of time changes the subscription, 0: never.
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

// Subscription returns a customer's subscription, nil when it never had one.
func (v *View) Subscription(customer string) *Subscription {
	return subscriptionsTable.first(v, "id", customer)
}

// DueSubscriptions visits the subscriptions that are due by a time, the earliest first, until visit
// returns false.
func (v *View) DueSubscriptions(by int64, visit func(*Subscription) bool) {
	subscriptionsTable.each(v, false, func(s *Subscription) bool {
		return s.due() <= by && visit(s)
	}, "due_prefix")
}

// EndingSubscriptions visits those with contracts or checkouts that the provider must end. It goes
// by customer, after a given one ("": from the first), until visit returns false.
func (v *View) EndingSubscriptions(after string, visit func(*Subscription) bool) {
	subscriptionsTable.from(v, func(s *Subscription) bool {
		return s.Customer == after || visit(s)
	}, "ending", after)
}

// PutSubscription adds or replaces a subscription.
func (t *Tx) PutSubscription(s *Subscription) { subscriptionsTable.put(t, s) }

// InvoiceStatus is the state of an invoice. It only moves forward.
type InvoiceStatus uint8

// The states.
const (
	InvoiceDraft InvoiceStatus = iota
	InvoiceOpen
	InvoiceUncollectible
	InvoiceVoid
	InvoicePaid
)

// Invoice is an invoice of a subscription, as the payment provider reported it.
type Invoice struct {
	ID       string        `cbor:"1,keyasint"`
	Customer string        `cbor:"2,keyasint"`
	Cents    int64         `cbor:"3,keyasint"` // of its currency
	Currency string        `cbor:"4,keyasint"` // three lower-case letters
	Status   InvoiceStatus `cbor:"5,keyasint,omitempty"`
	IssuedAt int64         `cbor:"6,keyasint"`           // Unix milliseconds
	URL      string        `cbor:"7,keyasint,omitempty"` // page for people, at most 2,048 bytes
	ToldAt   int64         `cbor:"8,keyasint"`           // Unix seconds of the provider
}

var invoicesTable = define(SubscriptionsSince, "invoices",
	index("id", true, func(i *Invoice) []any { return []any{i.ID} }),
	index("customer", true, func(i *Invoice) []any {
		return []any{i.Customer, i.IssuedAt, i.ID}
	}),
).untold()

// Invoice returns the invoice with an id, or nil.
func (v *View) Invoice(id string) *Invoice { return invoicesTable.first(v, "id", id) }

// Invoices lists a customer's invoices, the oldest first.
func (v *View) Invoices(customer string) []*Invoice {
	return invoicesTable.all(v, "customer_prefix", customer)
}

// PutInvoice adds or replaces an invoice.
func (t *Tx) PutInvoice(i *Invoice) { invoicesTable.put(t, i) }

// RemoveInvoice removes an invoice to make room.
func (t *Tx) RemoveInvoice(i *Invoice) { invoicesTable.remove(t, i) }
