package stripe

import (
	"context"
	"iter"
	"time"

	"github.com/stripe/stripe-go/v85"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/pkg/price"
)

// movementsAtOnce is the page size of movements, each with its source.
const movementsAtOnce = 100

// Movements implements payment.Accounts. It reads the balance transactions of the account.
func (p *Provider) Movements(ctx context.Context, from, to time.Time) iter.Seq2[payment.Movement,
	error] {
	return func(yield func(payment.Movement, error) bool) {
		params := &stripe.BalanceTransactionListParams{CreatedRange: &stripe.RangeQueryParams{
			GreaterThanOrEqual: from.Unix(), LesserThan: to.Unix()}}
		params.AddExpand("data.source")
		params.Limit = stripe.Int64(movementsAtOnce)
		for moved, err := range p.client.V1BalanceTransactions.List(ctx, params).All(ctx) {
			if err != nil {
				yield(payment.Movement{}, failed(err))
				return
			}
			if told, ours := readMovement(moved); ours && !yield(told, nil) {
				return
			}
		}
	}
}

// readMovement reads a balance transaction; false: it does not concern wallets.
func readMovement(moved *stripe.BalanceTransaction) (payment.Movement, bool) {
	source := moved.Source
	switch {
	case source == nil:
	case source.Charge != nil && (moved.Type == stripe.BalanceTransactionTypeCharge ||
		moved.Type == stripe.BalanceTransactionTypePayment):
		c := source.Charge
		if c.PaymentIntent == nil {
			break
		}
		told := payment.Movement{Payment: c.PaymentIntent.ID, Cluster: c.Metadata[clusterMember],
			Customer: c.Metadata[customerMember]}
		if c.Currency == currency {
			told.Micros = c.Amount * price.MicrosPerCent
		}
		return told, c.Metadata[planMember] == ""
	case source.Refund != nil:
		r := source.Refund
		if r.Status == stripe.RefundStatusSucceeded {
			return away(r.ID, r.PaymentIntent, r.Currency, r.Amount)
		}
		if r.Status == stripe.RefundStatusFailed || r.Status == stripe.RefundStatusCanceled {
			return away(r.ID, r.PaymentIntent, r.Currency, 0)
		}
	case source.Dispute != nil:
		d := source.Dispute
		return away(d.ID, d.PaymentIntent, d.Currency, d.Amount-reinstatedSoFar(d))
	}
	return payment.Movement{}, false
}

func away(id string, of *stripe.PaymentIntent, in stripe.Currency, cents int64) (payment.Movement,
	bool) {
	if of == nil || in != currency {
		return payment.Movement{}, false
	}
	return payment.Movement{Payment: of.ID, Reversal: id, Micros: cents * price.MicrosPerCent}, true
}

// reinstatedSoFar returns how much of a dispute has come back, in cents; 0: nothing yet.
func reinstatedSoFar(d *stripe.Dispute) int64 {
	for _, moved := range d.BalanceTransactions {
		if moved != nil && moved.Amount > 0 {
			return reinstated(d)
		}
	}
	return 0
}
