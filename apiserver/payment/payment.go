// Package payment owns how customers' money comes in, as the API sees it. There is a provider with
// a hosted checkout, and it tells by notices what became of one. The package knows no wallet and
// keeps nothing. Each provider has a package of its own.
package payment

import (
	"context"
	"iter"
	"time"
)

// Provider takes money in hosted sessions. It is safe for concurrent use.
type Provider interface {
	// Open makes a session, within ctx. Under the same Key it is the same session. Its faults are
	// payment_provider_failed; whether there is a session then is not known, and nobody has its
	// address.
	Open(ctx context.Context, order Order) (Session, error)
	// Read checks who signed a notice, and when. It says what the notice tells: a Paid, an Ended, a
	// Reversed, a Contract or an Invoice, or nil where that is nothing of ours. Its faults:
	// invalid_signature, invalid_body.
	Read(body []byte, signature string) (any, error)
	// Subscribe makes a session that sells a plan, by the rules of Open.
	Subscribe(ctx context.Context, order PlanOrder) (Session, error)
	// Amend has a contract go on differently from its next period on, and charges nothing now. It
	// answers how the contract stands then. Its faults are payment_provider_failed; whether it was
	// amended then is not known, and a notice will tell.
	Amend(ctx context.Context, change Amendment) (Contract, error)
	// End ends a contract at once, and owes its customer what is paid beyond. One that has ended
	// has. Its faults are payment_provider_failed.
	End(ctx context.Context, contract string) error
	// Expire has nobody pay in a session any more. One that was paid, or has expired, stays so. Its
	// faults are payment_provider_failed.
	Expire(ctx context.Context, session string) error
}

// PlanOrder is which plan is subscribed to.
type PlanOrder struct {
	Key      string // 1 to 255 characters, the same for tries at one session
	Customer string
	Cluster  string
	Plan     string
	Cents    int64  // of a euro, a month
	Revision uint64 // of the change, by our count
	// Replaces is the contract that ends once this one is paid; "": none. What is left of its
	// period counts towards this one.
	Replaces string
}

// Amendment is how a contract goes on.
type Amendment struct {
	Key      string // 1 to 255 characters, the same for tries at one change
	Contract string
	Plan     string
	Cents    int64 // of a euro, a month; 0: as it is
	Cancel   bool  // it does not go on at all
	Revision uint64
}

// Standing says how it stands with a contract.
type Standing int

// The standings. Pending was never paid for, Lapsed is not paid for any more.
const (
	Pending Standing = iota
	Lapsed
	Live
	Over
)

// Contract tells how a subscription stands at the provider.
type Contract struct {
	ID        string // 1 to 255 bytes
	Customer  string // of the PlanOrder
	Cluster   string // of the PlanOrder; "": the subscription is none of ours
	Plan      string // of the next period
	Cents     int64  // of a euro, for the next period; 0: it does not say
	Cancel    bool   // there is no next period
	Revision  uint64 // of the newest change that it has
	Created   time.Time
	Standing  Standing
	PeriodEnd time.Time
	ToldAt    time.Time // when the notice was made; zero: an answer to a call
}

// InvoiceStatus is a state of an invoice.
type InvoiceStatus int

// The states, in an order in which none goes back.
const (
	Draft InvoiceStatus = iota
	Unpaid
	Uncollectible
	Void
	PaidUp
)

// Invoice tells how an invoice of a contract stands.
type Invoice struct {
	ID       string // 1 to 255 bytes
	Customer string // of the PlanOrder
	Cluster  string // of the PlanOrder
	Cents    int64  // of its currency, 0 or above
	Currency string // three small letters
	Status   InvoiceStatus
	Issued   time.Time
	URL      string // an absolute address of at most 2,048 bytes, or ""
	ToldAt   time.Time
}

// Order is what a session is for.
type Order struct {
	Key      string // 1 to 255 characters, the same for tries at one session
	Customer string // whose wallet it is
	Cluster  string // whose notices of it are
	Cents    int64  // of a euro
}

// Session is where a customer pays.
type Session struct {
	ID      string // 1 to 255 bytes
	URL     string // an absolute address
	Expires time.Time
}

// Paid tells that a session was paid.
type Paid struct {
	Session  string
	Payment  string // the provider's id of the payment, by which it tells of reversals
	Customer string // of the Order
	Cluster  string // of the Order; "": the session is none of a top-up
	Micros   int64  // 0: paid in another currency
}

// Ended tells that a session ended without a payment.
type Ended struct {
	Session string
	Failed  bool // the payment was tried, and refused; else the session has expired
}

// Reversed tells that money of a payment went back, and how much of it came back after all.
type Reversed struct {
	ID      string // of the refund or dispute
	Payment string
	Micros  int64 // above 0
	Back    int64 // micros that came back, 0 to Micros
}

// Accounts is a provider that tells what has moved on our account there.
type Accounts interface {
	// Movements are the payments and reversals whose money moved from a time on and before another
	// one. A reversal may be among them several times. An error is the last that is yielded:
	// payment_provider_failed.
	Movements(ctx context.Context, from, to time.Time) iter.Seq2[Movement, error]
}

// Movement is a payment, or what went back of one, as the provider has it now.
type Movement struct {
	Payment  string
	Reversal string // of the refund or dispute; "": it is the payment
	Cluster  string // of the Order, where it is a payment and the provider says so
	Customer string // likewise
	// Micros are what was paid, 0 in another currency, or what is away now.
	Micros int64
}
