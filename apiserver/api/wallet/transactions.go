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

// TransactionPage is envelope B of the specification.
type TransactionPage struct {
	Content       []Transaction `json:"content"`
	Page          int           `json:"page"`
	Size          int           `json:"size"`
	TotalElements int64         `json:"totalElements"`
	TotalPages    int64         `json:"totalPages"`
}

type transactionsRequest struct {
	Page int      `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size int      `query:"size" default:"20" min:"1" max:"100" code:"invalid_page"`
	From api.Time `query:"from" doc:"Created at this time or later"`
	To   api.Time `query:"to" doc:"Created before this time"`
}

// Validate implements operation.Validator.
func (r *transactionsRequest) Validate() fault.List { return api.CheckSpan(r.From, r.To) }

// transactions is GET /api/wallet/transactions.
func (r Resource) transactions() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_wallet_transactions",
		Routes: operation.Routes("GET /api/wallet/transactions"), Group: group,
		Summary: "Lists the wallet's transactions, newest first",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(ctx context.Context, from *operation.Caller, in *transactionsRequest) (TransactionPage,
		error) {
		if err := api.Reach(in.Page, in.Size, "GET /api/wallet/transactions/all reads on by cursor"); err != nil {
			return TransactionPage{}, err
		}
		entries, total, err := r.History.Entries(ctx, from.View, from.Customer,
			api.Span(in.From, in.To), in.Page*in.Size, in.Size)
		if err != nil {
			return TransactionPage{}, fmt.Errorf("ledger: %w", err)
		}
		page := TransactionPage{Content: []Transaction{}, Page: in.Page, Size: in.Size,
			TotalElements: total}
		for _, e := range entries {
			page.Content = append(page.Content, NewTransaction(e))
		}
		page.TotalPages = api.Pages(page.TotalElements, in.Size)
		return page, nil
	})
}
