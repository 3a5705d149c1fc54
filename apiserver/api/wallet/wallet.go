// Package wallet owns the reads of a customer's money (specification 4.11). What moves it are
// commands of the control plane.
package wallet

import (
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
)

const group = "Wallet"

// Resource is the operations on wallets, and what they use.
type Resource struct {
	History *client.History
}

// Operations are all of the resource, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.get(),
		r.transactions(),
		r.all(),
		r.prices(),
	}
}

// Wallet is a customer's balance. Money is in micros.
type Wallet struct {
	BalanceMicros             int64  `json:"balanceMicros" doc:"Charges of runs under way included"`
	Currency                  string `json:"currency" doc:"EUR"`
	FreeRequestsRemaining     int64  `json:"freeRequestsRemaining"`
	LowBalance                bool   `json:"lowBalance" doc:"The balance is below the threshold"`
	LowBalanceThresholdMicros int64  `json:"lowBalanceThresholdMicros"`
	WalletBillingEnabled      bool   `json:"walletBillingEnabled"`
}

// New is a customer's wallet in a view. Every customer has one: it comes into being with the
// customer.
func New(view *client.View, customer string) Wallet {
	w := view.Wallet(customer)
	if w == nil {
		w = &client.Wallet{}
	}
	return Wallet{BalanceMicros: w.Balance(), Currency: "EUR",
		FreeRequestsRemaining: w.Free + w.FreeHeld,
		LowBalance:            w.Balance() < w.Threshold, LowBalanceThresholdMicros: w.Threshold,
		WalletBillingEnabled: true}
}
