package wallet

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// get is GET /api/wallet.
func (Resource) get() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_wallet", Routes: operation.Routes("GET /api/wallet"), Group: group,
		Summary: "Returns the balance, including charges of runs under way",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (Wallet, error) {
		return New(from.View, from.Customer), nil
	})
}
