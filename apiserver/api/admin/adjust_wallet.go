package admin

import (
	"context"

	"shoal.dev/shoal/apiserver/api/wallet"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

type adjustRequest struct {
	Ref  string           `path:"ref" min:"1" max:"128" doc:"The customer's customerUniqueRef"`
	Body walletAdjustment `body:"json"`
}

type walletAdjustment struct {
	AmountMicros int64  `json:"amountMicros" required:"true" not:"0" min:"-1000000000000000" max:"1000000000000000" doc:"Micros, millionths of a euro; not 0; a negative amount is deducted"`
	Note         string `json:"note" max:"500" doc:"Why; shown to operators"`
}

// adjustWallet is POST /api/admin/customers/{ref}/wallet/adjustments.
func (r Resource) adjustWallet() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:      "svc_adjust_wallet",
		Routes:  operation.Routes("POST /api/admin/customers/{ref}/wallet/adjustments"),
		Group:   group,
		Summary: "Books an adjustment into a customer's wallet",
		Access:  auth.Admin, Rate: limits.General, Idempotency: operation.Required,
		Errors: []fault.Code{fault.NotFound, fault.AmountOverflow},
	}, func(ctx context.Context, from *operation.Caller, in *adjustRequest) (wallet.Transaction,
		error) {
		entry, err := client.Do(ctx, r.Client,
			client.AdjustWallet{Customer: in.Ref, Entry: r.IDs.New(),
				Amount: in.Body.AmountMicros, Note: in.Body.Note}, from.Call)
		if err != nil {
			return wallet.Transaction{}, err
		}
		return wallet.NewTransaction(&entry), nil
	})
}
