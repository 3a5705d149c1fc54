// Package payment defines how the API sees incoming money of customers. A provider has a hosted
// checkout and reports its outcome by notices. The package knows no wallets and keeps no state.
// Each provider has its own package.
package payment

import (
	"context"
	"iter"
	"time"
)

// Provider takes money in hosted sessions. It is safe for concurrent use.
type Provider interface {
	// Open makes a session, within ctx. The same Key gives the same session. It fails with
	// payment_provider_failed. There may be a session nevertheless, but nobody has its address.
	Open(ctx context.Context, order Order) (Session, error)
	// Read checks the signature and the age of a notice. It returns a Paid, an Ended, a Reversed, a
	// Contract or an Invoice, or nil if the notice does not concern us. It fails with
	// invalid_signature or invalid_body.
	Read(body []byte, signature string) (any, error)
	// Subscribe makes a session that sells a plan. It behaves like Open.
	Subscribe(ctx context.Context, order PlanOrder) (Session, error)
	// Amend changes a contract from its next period on, and charges nothing now. It returns the
	// contract after the change. It fails with payment_provider_failed. The change may have
	// happened nevertheless; then a notice will tell.
	Amend(ctx context.Context, change Amendment) (Contract, error)
	// End ends a contract at once and credits the unused rest to the customer. Ending an ended
	// contract succeeds. It fails with payment_provider_failed.
	End(ctx context.Context, contract string) error
	// Expire closes a session to payment. A session that was paid or has expired stays so. It fails
	// with payment_provider_failed.
	Expire(ctx context.Context, session string) error
}

// PlanOrder orders a subscription to a plan.
type PlanOrder struct {
	Key      string // 1 to 255 characters, the same for all attempts at one session
	Customer string
	Cluster  string
	Plan     string
	Cents    int64  // cents of a euro per month
	Revision uint64 // of the change, by our numbering
	// Replaces is the contract that ends once this one is paid; "": none. The rest of its period is
	// credited to this one.
	Replaces string
}

// Amendment changes how a contract continues.
type Amendment struct {
	Key      string // 1 to 255 characters, the same for all attempts at one change
	Contract string
	Plan     string
	Cents    int64 // cents of a euro per month; 0: unchanged
	Cancel   bool  // the contract ends with its period
	Revision uint64
}

// Standing is the state of a contract.
type Standing int

// The standings. Pending was never paid for, Lapsed is no longer paid for.
const (
	Pending Standing = iota
	Lapsed
	Live
	Over
)

// Contract is the state of a subscription at the provider.
type Contract struct {
	ID        string // 1 to 255 bytes
	Customer  string // of the PlanOrder
	Cluster   string // of the PlanOrder; "": the subscription is not ours
	Plan      string // of the next period
	Cents     int64  // cents of a euro for the next period; 0: unknown
	Cancel    bool   // there is no next period
	Revision  uint64 // of the newest change that it includes
	Created   time.Time
	Standing  Standing
	PeriodEnd time.Time
	ToldAt    time.Time // when the notice was made; zero: from an answer to a call
}

// InvoiceStatus is a state of an invoice.
type InvoiceStatus int

// The states, in order: none ever goes back.
const (
	Draft InvoiceStatus = iota
	Unpaid
	Uncollectible
	Void
	PaidUp
)

// Invoice is the state of an invoice of a contract.
type Invoice struct {
	ID       string // 1 to 255 bytes
	Customer string // of the PlanOrder
	Cluster  string // of the PlanOrder
	Cents    int64  // of its currency, 0 or above
	Currency string // three lower-case letters
	Status   InvoiceStatus
	Issued   time.Time
	URL      string // an absolute address of at most 2,048 bytes, or ""
	ToldAt   time.Time
}

// Order orders a top-up.
type Order struct {
	Key      string // 1 to 255 characters, the same for all attempts at one session
	Customer string // owner of the wallet
	Cluster  string // receives the notices
	Cents    int64  // of a euro
}

// Session is a hosted checkout where a customer pays.
type Session struct {
	ID      string // 1 to 255 bytes
	URL     string // an absolute address
	Expires time.Time
}

// Paid reports that a session was paid.
type Paid struct {
	Session  string
	Payment  string // the provider's id of the payment; reversals refer to it
	Customer string // of the Order
	Cluster  string // of the Order; "": the session is not a top-up
	Micros   int64  // 0: paid in another currency
}

// Ended reports that a session ended without a payment.
type Ended struct {
	Session string
	Failed  bool // the payment was refused; otherwise the session has expired
}

// Reversed reports that money of a payment was returned, and how much of that came back.
type Reversed struct {
	ID      string // of the refund or dispute
	Payment string
	Micros  int64 // above 0
	Back    int64 // micros that came back, 0 to Micros
}

// Accounts is a provider that reports movements on our account.
type Accounts interface {
	// Movements yields the payments and reversals whose money moved from from on and before to. A
	// reversal may occur several times. An error, payment_provider_failed, ends the sequence.
	Movements(ctx context.Context, from, to time.Time) iter.Seq2[Movement, error]
}

// Movement is the current state of a payment or of one of its reversals.
type Movement struct {
	Payment  string
	Reversal string // id of the refund or dispute; "": this is the payment
	Cluster  string // of the Order, if this is a payment and the provider reports it
	Customer string // likewise
	// Micros is the amount paid, 0 in another currency, or the amount now returned.
	Micros int64
}
