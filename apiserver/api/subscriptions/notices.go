package subscriptions

import (
	"context"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// newContract converts a contract for the state. Both kinds of Standing have the same order.
func newContract(told *payment.Contract) client.Contract {
	c := client.Contract{ID: told.ID, Plan: told.Plan, Cents: told.Cents, Cancel: told.Cancel,
		Revision: told.Revision, Created: told.Created.Unix(),
		Standing: client.Standing(told.Standing), PeriodEnd: told.PeriodEnd.UnixMilli()}
	if !told.ToldAt.IsZero() {
		c.ToldAt = told.ToldAt.Unix()
	}
	return c
}

// isOurs reports whether a notice is about a subscription of this cluster.
func (r Resource) isOurs(ctx context.Context, cluster string) (bool, error) {
	view, err := r.Client.Fresh(ctx) // a new node does not know the cluster yet
	if err != nil {
		return false, err
	}
	return view.IsOurs(cluster), nil
}

// TakeContract applies a notice of a contract, and ends contracts that it has replaced. If the
// process dies in between, it has not answered, so the notice is repeated.
func (r Resource) TakeContract(ctx context.Context, told payment.Contract,
	correlation string) error {
	if ours, err := r.isOurs(ctx, told.Cluster); err != nil || !ours {
		return err
	}
	log := r.Logger.With("contract", told.ID, "customer", told.Customer, "correlationId",
		correlation)
	now, err := client.Do(ctx, r.Client, client.TellContract{Customer: told.Customer,
		Contract: newContract(&told)}, nil)
	if fault.CodeOf(err) == fault.Unauthorized {
		log.Warn("a subscription is nobody's: end it at the payment provider")
		return nil
	}
	if err != nil {
		return err
	}
	for _, leaving := range now.Leaving {
		if err := r.Payments.End(ctx, leaving); err != nil {
			return err
		}
		if _, err := client.Do(ctx, r.Client, client.TellContract{Customer: told.Customer,
			Contract: client.Contract{ID: leaving, Standing: client.ContractEnded}},
			nil); err != nil {
			return err
		}
		log.Info("a contract that another one has replaced is ended", "ended", leaving)
	}
	return nil
}

// TakeInvoice applies a notice of an invoice.
func (r Resource) TakeInvoice(ctx context.Context, told payment.Invoice,
	correlation string) error {
	if ours, err := r.isOurs(ctx, told.Cluster); err != nil || !ours {
		return err
	}
	_, err := client.Do(ctx, r.Client, client.PutInvoice{Invoice: client.Invoice{ID: told.ID,
		Customer: told.Customer, Cents: told.Cents, Currency: told.Currency,
		Status: client.InvoiceStatus(told.Status), IssuedAt: told.Issued.UnixMilli(),
		URL: told.URL, ToldAt: told.ToldAt.Unix()}}, nil)
	if fault.CodeOf(err) == fault.Unauthorized {
		r.Logger.Warn("an invoice is nobody's", "invoice", told.ID, "customer", told.Customer,
			"correlationId", correlation)
		return nil
	}
	return err
}
