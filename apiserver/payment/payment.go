// Package payment owns how customers' money comes in, as the API sees it. There is a provider with
// a hosted checkout, and it tells by notices what became of one. The package knows no wallet and
// keeps nothing. Each provider has a package of its own.
package payment

import (
	"context"
	"time"
)

// Provider takes money in hosted sessions. It is safe for concurrent use.
type Provider interface {
	// Open makes a session, within ctx. Under the same Key it is the same session. Its faults are
	// payment_provider_failed; whether there is a session then is not known, and nobody has its
	// address.
	Open(ctx context.Context, order Order) (Session, error)
	// Read checks who signed a notice, and when. It says what the notice tells: a Paid, an Ended or
	// a Reversed, or nil where that is no top-up's. Its faults: invalid_signature, invalid_body.
	Read(body []byte, signature string) (any, error)
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

// Reversed tells that money of a payment went back, or came back after all.
type Reversed struct {
	ID       string // of the refund or dispute
	Payment  string
	Micros   int64 // above 0
	Returned bool
}
