package wallet

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

type allRequest struct {
	From   api.Time `query:"from" agent:"hidden" doc:"Created at this time or later"`
	To     api.Time `query:"to" agent:"hidden" doc:"Created before this time"`
	Limit  int      `query:"limit" default:"100" min:"1" clamp:"1000"`
	Cursor string   `query:"cursor" max:"1024" doc:"nextCursor of the previous page"`
	Format string   `query:"format" agent:"hidden" default:"json" enum:"json,csv,jsonl" doc:"json returns one page; csv and jsonl return everything that follows, and ignore limit"`
}

// Validate implements operation.Validator.
func (in *allRequest) Validate() fault.List { return api.CheckSpan(in.From, in.To) }

// read is what a cursor of this call is bound to.
func (in *allRequest) read(customer string) []string {
	return api.ReadWithin(in.From, in.To, "ledger", customer)
}

// exportedAtOnce is how many entries are read from the ledger at once.
const exportedAtOnce = 1_000

// allPlace is where a read of the ledger continues: before entry ID of the command at index Before.
type allPlace struct {
	Before uint64 `json:"b"`
	ID     ids.ID `json:"i"`
}

// place is nil at the newest entry.
func (p allPlace) place() *rowstore.PastPlace {
	if p.Before == 0 {
		return nil
	}
	return &rowstore.PastPlace{Value: int64(p.Before), ID: p.ID}
}

// all is GET /api/wallet/transactions/all.
func (r Resource) all() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_all_wallet_transactions",
		Routes: operation.Routes("GET /api/wallet/transactions/all"), Group: group,
		Summary: "Reads all the wallet's transactions, newest first, by cursor",
		Description: "There is no page limit: the cursor leads to the first transaction of the " +
			"wallet. Transactions entered meanwhile are not included.",
		Media:  api.ExportTypes(),
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read, Timeout: 10 * time.Minute,
		Errors: []fault.Code{fault.InvalidCursor},
	}, func(ctx context.Context, from *operation.Caller,
		in *allRequest) (operation.Streamed[api.CursorPage[Transaction]], error) {
		var answer operation.Streamed[api.CursorPage[Transaction]]
		var at allPlace
		if in.Cursor != "" {
			if err := api.ReadCursor(in.Cursor, &at, in.read(from.Customer)...); err != nil {
				return answer, err
			}
		}
		if api.Exported(in.Format) {
			next := r.before(from.View, from.Customer, api.Span(in.From, in.To),
				at.place())
			return api.Export[Transaction, api.CursorPage[Transaction]](in.Format, next), nil
		}
		page := api.CursorPage[Transaction]{Items: []Transaction{}}
		found, err := r.History.EntriesWithin(ctx, from.View, from.Customer,
			api.Span(in.From, in.To), at.place(), in.Limit+1)
		if err != nil {
			return answer, fmt.Errorf("ledger: %w", err)
		}
		page.HasMore = len(found) > in.Limit
		for _, e := range found[:min(in.Limit, len(found))] {
			page.Items = append(page.Items, NewTransaction(e))
		}
		if page.HasMore {
			last := found[in.Limit-1]
			next := api.NewCursor(allPlace{last.Created, last.ID}, in.read(from.Customer)...)
			page.NextCursor = &next
		}
		answer.Whole = page
		return answer, nil
	})
}

// before reads a customer's transactions of a span before a place in parts, and nil at the end.
func (r Resource) before(v *client.View, customer string, made rowstore.PastSpan,
	place *rowstore.PastPlace) func(ctx context.Context) ([]Transaction, error) {
	return func(ctx context.Context) (part []Transaction, err error) {
		found, err := r.History.EntriesWithin(ctx, v, customer, made, place, exportedAtOnce)
		if err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
		for _, e := range found {
			part, place = append(part, NewTransaction(e)), client.PlaceOf(e)
		}
		return part, nil
	}
}
