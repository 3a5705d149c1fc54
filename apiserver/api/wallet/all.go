package wallet

import (
	"context"
	"fmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

type allRequest struct {
	Limit  int    `query:"limit" default:"100" min:"1" clamp:"1000"`
	Cursor string `query:"cursor" doc:"nextCursor of the page before"`
}

// allPlace is where a read of the ledger goes on: before what one command has made.
type allPlace struct {
	Before uint64 `json:"b"`
}

// all is GET /api/wallet/transactions/all.
func (r Resource) all() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_all_wallet_transactions",
		Routes: operation.Routes("GET /api/wallet/transactions/all"), Group: group,
		Summary: "Reads all of the wallet's transactions, newest first, by cursor",
		Description: "There is no last page: the cursor leads to the first transaction of the " +
			"wallet. What is entered meanwhile is not among those that follow.",
		Access: auth.Read, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidCursor},
	}, func(ctx context.Context, from *operation.Caller,
		in *allRequest) (api.CursorPage[Transaction], error) {
		page := api.CursorPage[Transaction]{Items: []Transaction{}}
		var at allPlace
		if in.Cursor != "" {
			if err := api.ReadCursor(in.Cursor, &at, "ledger", from.Customer); err != nil {
				return page, err
			}
		}
		found, err := r.History.EntriesBefore(ctx, from.View, from.Customer, at.Before, in.Limit+1)
		if err != nil {
			return page, fmt.Errorf("ledger: %w", err)
		}
		page.HasMore = len(found) > in.Limit
		for _, e := range found[:min(in.Limit, len(found))] {
			page.Items = append(page.Items, NewTransaction(e))
		}
		if page.HasMore {
			next := api.NewCursor(allPlace{found[in.Limit-1].Created}, "ledger", from.Customer)
			page.NextCursor = &next
		}
		return page, nil
	})
}
