package subscriptions

import (
	"context"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// Invoice is an invoice of a subscription.
type Invoice struct {
	ID               string   `json:"id"`
	Amount           float64  `json:"amount"`
	Currency         string   `json:"currency" doc:"EUR"`
	Status           string   `json:"status" enum:"PAID,OPEN,UNCOLLECTIBLE,VOID,DRAFT"`
	IssuedAt         api.Time `json:"issuedAt"`
	HostedInvoiceURL *string  `json:"hostedInvoiceUrl" doc:"Page of the invoice at the payment provider; null: none"`
}

type historyRequest struct {
	Page   int    `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size   int    `query:"size" default:"20" min:"1" clamp:"200" code:"invalid_page"`
	Status string `query:"status" enum:"PAID,OPEN,UNCOLLECTIBLE,VOID,DRAFT" doc:"All when empty"`
	From   string `query:"from" form:"day" doc:"The first day (UTC), 2026-01-31"`
	To     string `query:"to" form:"day" doc:"The last day (UTC)"`

	from, until time.Time // zero: open on that side
}

// Validate implements operation.Validator.
func (r *historyRequest) Validate() (list fault.List) {
	for _, day := range []struct {
		name, text string
		to         *time.Time
		more       int
	}{{"from", r.From, &r.from, 0}, {"to", r.To, &r.until, 1}} {
		if day.text == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, day.text)
		if err != nil {
			list = append(list, fault.Invalid(fault.InvalidRequest, day.name, "is no day"))
			continue
		}
		*day.to = at.AddDate(0, 0, day.more)
	}
	if len(list) == 0 && !r.until.IsZero() && !r.from.Before(r.until) {
		list = append(list, fault.Invalid(fault.InvalidRequest, "from",
			"must not be later than to"))
	}
	return list
}

// history is GET /api/billing-history.
func (r Resource) history() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_invoices", Routes: operation.Routes("GET /api/billing-history"),
		Group: group, Summary: "Lists the customer's invoices, newest first",
		Description: "These are the invoices for subscriptions, as reported by the payment " +
			"provider. Top-ups and charges are in the wallet's ledger.",
		Access: auth.Read, Agents: operation.Reads,
		Rate: limits.Read, Errors: []fault.Code{fault.InvalidPage},
	}, func(_ context.Context, from *operation.Caller,
		in *historyRequest) (api.Page[Invoice], error) {
		if err := api.Reach(in.Page, in.Size, "narrow the days"); err != nil {
			return api.Page[Invoice]{}, err
		}
		matching := slices.DeleteFunc(from.View.Invoices(from.Customer),
			func(i *client.Invoice) bool { return !in.wants(i) })
		slices.Reverse(matching)
		first := min(in.Page*in.Size, len(matching))
		var content []Invoice
		for _, i := range matching[first:min(first+in.Size, len(matching))] {
			content = append(content, NewInvoice(i))
		}
		return api.NewPage(content, int64(len(matching)), in.Page, in.Size), nil
	})
}

func (r *historyRequest) wants(i *client.Invoice) bool {
	issued := time.UnixMilli(i.IssuedAt)
	return (r.Status == "" || r.Status == statusOf(i.Status)) && !issued.Before(r.from) &&
		(r.until.IsZero() || issued.Before(r.until))
}

// NewInvoice converts an invoice to the API's form.
func NewInvoice(i *client.Invoice) Invoice {
	invoice := Invoice{ID: i.ID, Amount: float64(i.Cents) / 100,
		Currency: strings.ToUpper(i.Currency), Status: statusOf(i.Status),
		IssuedAt: api.Time(i.IssuedAt)}
	if i.URL != "" {
		invoice.HostedInvoiceURL = &i.URL
	}
	return invoice
}

func statusOf(status client.InvoiceStatus) string {
	switch status {
	case client.InvoiceOpen:
		return "OPEN"
	case client.InvoiceUncollectible:
		return "UNCOLLECTIBLE"
	case client.InvoiceVoid:
		return "VOID"
	case client.InvoicePaid:
		return "PAID"
	}
	return "DRAFT"
}
