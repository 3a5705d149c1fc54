package customers

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
)

// WalletPreferences are the customer's settings of its wallet (decision 41).
type WalletPreferences struct {
	LowBalanceThresholdMicros int64 `json:"lowBalanceThresholdMicros" doc:"When the balance falls below it, WALLET_LOW_BALANCE is sent; micros, millionths of a euro"`
}

// WalletPreferencesInput is a change of these settings.
type WalletPreferencesInput struct {
	LowBalanceThresholdMicros int64 `json:"lowBalanceThresholdMicros" required:"true" min:"0" max:"1000000000000" doc:"Micros, millionths of a euro"`
}

type putWalletPreferencesRequest struct {
	Body WalletPreferencesInput `body:"json"`
}

// putWalletPreferences is PUT /api/customer/preferences/wallet.
func (r Resource) putWalletPreferences() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_put_wallet_preferences",
		Routes: operation.Routes("PUT /api/customer/preferences/wallet"), Group: group,
		Summary: "Sets the threshold below which the balance is low",
		Description: "A new wallet's threshold is 5 EUR. If the balance is already below the " +
			"new threshold, no notice is sent.",
		Access: auth.Write, Agents: operation.Sets, Rate: limits.General,
	}, func(ctx context.Context, from *operation.Caller,
		in *putWalletPreferencesRequest) (WalletPreferences, error) {
		wallet, err := client.Do(ctx, r.Client, client.PutThreshold{Customer: from.Customer,
			Threshold: in.Body.LowBalanceThresholdMicros}, from.Call)
		return WalletPreferences{LowBalanceThresholdMicros: wallet.Threshold}, err
	})
}

// getWalletPreferences is GET /api/customer/preferences/wallet.
func (Resource) getWalletPreferences() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_get_wallet_preferences",
		Routes: operation.Routes("GET /api/customer/preferences/wallet"), Group: group,
		Summary: "Returns the threshold below which the balance is low",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (WalletPreferences, error) {
		var preferences WalletPreferences
		if wallet := from.View.Wallet(from.Customer); wallet != nil {
			preferences.LowBalanceThresholdMicros = wallet.Threshold
		}
		return preferences, nil
	})
}
