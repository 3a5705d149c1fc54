// Package wallet owns the reads of a customer's money (specification 4.11). What moves it are commands of the control
// plane.
package wallet

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
)

const group = "Wallet"

// Wallet is a customer's balance. Money is in micro-cents.
type Wallet struct {
	BalanceMicros             int64  `json:"balanceMicros" doc:"Charges of runs under way included"`
	Currency                  string `json:"currency" doc:"EUR"`
	FreeRequestsRemaining     int64  `json:"freeRequestsRemaining"`
	LowBalance                bool   `json:"lowBalance" doc:"The balance is below the threshold"`
	LowBalanceThresholdMicros int64  `json:"lowBalanceThresholdMicros"`
	WalletBillingEnabled      bool   `json:"walletBillingEnabled"`
}

func newWallet(w *client.Wallet) Wallet {
	return Wallet{BalanceMicros: w.Balance(), Currency: "EUR", FreeRequestsRemaining: w.Free + w.FreeHeld,
		LowBalance: w.Balance() < w.Threshold, LowBalanceThresholdMicros: w.Threshold, WalletBillingEnabled: true}
}

// Get is GET /api/wallet. Every customer has a wallet: it comes into being with the customer.
func Get(api.Services) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_wallet", Routes: operation.Routes("GET /api/wallet"), Group: group,
		Summary: "Answers the balance, charges of runs under way included",
		Access:  auth.Read, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (Wallet, error) {
		wallet := from.View.Wallet(from.Customer)
		if wallet == nil {
			wallet = &client.Wallet{}
		}
		return newWallet(wallet), nil
	})
}
