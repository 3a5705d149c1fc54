// Package wallet owns what customers see of their money, and top-ups (specification 4.11). Commands
// of the control plane move the money; a payment provider receives it.
package wallet

import (
	"log/slog"

	"shoal.dev/shoal/apiserver/api/subscriptions"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

const group = "Wallet"

// Resource has the operations on wallets and their dependencies.
type Resource struct {
	Client  client.Client
	IDs     ids.Source
	Clock   clock.Clock
	History *client.History
	// Payments takes customers' money; nil: nobody does.
	Payments payment.Provider
	// Subscriptions handles the notices about subscriptions.
	Subscriptions subscriptions.Resource
	Node          string // of this process; claims of calls name it
	Boot          ids.ID
	Logger        *slog.Logger
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.get(),
		r.transactions(),
		r.all(),
		r.statement(),
		r.prices(),
		r.startTopUp(),
		r.topUpStatus(),
		r.takeNotice(),
	}
}

// Wallet is a customer's balance. Money is in micros.
type Wallet struct {
	BalanceMicros             int64  `json:"balanceMicros" doc:"Micros, millionths of a euro; includes charges of runs under way"`
	Currency                  string `json:"currency" doc:"EUR"`
	FreeRequestsRemaining     int64  `json:"freeRequestsRemaining"`
	LowBalance                bool   `json:"lowBalance" doc:"The balance is below the threshold"`
	LowBalanceThresholdMicros int64  `json:"lowBalanceThresholdMicros" doc:"Micros, millionths of a euro"`
	WalletBillingEnabled      bool   `json:"walletBillingEnabled" doc:"False: the wallet is only informational, and nothing is charged"`
}

// New returns a customer's wallet in a view. Every customer has one from its creation.
func New(view *client.View, customer string) Wallet {
	w := view.Wallet(customer)
	if w == nil {
		w = &client.Wallet{}
	}
	return Wallet{BalanceMicros: w.Balance(), Currency: "EUR",
		FreeRequestsRemaining: w.Free + w.FreeHeld,
		LowBalance:            w.Balance() < w.Threshold, LowBalanceThresholdMicros: w.Threshold,
		WalletBillingEnabled: !view.Settings().BillingOff}
}
