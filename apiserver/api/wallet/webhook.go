package wallet

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

type noticeRequest struct {
	Signature string `header:"Stripe-Signature" max:"4096" doc:"Signature of the payment provider"`
	Body      []byte `body:"raw" limit:"262144"`
}

// takeNotice is POST /api/subscription/webhook. It answers once everything in the notice is done.
// The provider repeats unanswered notices, and a repetition changes nothing.
func (r Resource) takeNotice() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_payment_notice",
		Routes: operation.Routes("POST /api/subscription/webhook"), Group: group,
		Summary: "Takes signed notices from the payment provider",
		Description: "Only the payment provider calls this. The bytes of the body are signed; " +
			"a signature is valid for five minutes. Notices may come twice and in any order.",
		Access: auth.Public, Rate: limits.Unlimited,
		Errors: []fault.Code{fault.TopUpNotConfigured, fault.InvalidSignature,
			fault.AmountOverflow, fault.ProviderFailed},
	}, func(ctx context.Context, from *operation.Caller, in *noticeRequest) (operation.None,
		error) {
		if r.Payments == nil {
			return operation.None{}, errNoProvider
		}
		notice, err := r.Payments.Read(in.Body, in.Signature)
		if err != nil {
			return operation.None{}, err
		}
		switch told := notice.(type) {
		case payment.Paid:
			err = r.pay(ctx, &told, from.RequestID)
		case payment.Ended:
			_, err = client.Do(ctx, r.Client,
				client.EndTopUp{Session: told.Session, Failed: told.Failed}, nil)
		case payment.Reversed:
			err = r.reverse(ctx, told)
		case payment.Contract:
			err = r.Subscriptions.TakeContract(ctx, told, from.RequestID)
		case payment.Invoice:
			err = r.Subscriptions.TakeInvoice(ctx, told, from.RequestID)
		}
		return operation.None{}, err
	})
}

// pay credits a session, then books reversals that were reported before it. If the process dies in
// between, it has not answered, so the notice is repeated.
func (r Resource) pay(ctx context.Context, told *payment.Paid, correlation string) error {
	view, err := r.Client.Fresh(ctx) // a new node does not know the cluster yet
	if err != nil {
		return err
	}
	if !view.IsOurs(told.Cluster) {
		return nil // another cluster's checkout at the same provider
	}
	paid, err := client.Do(ctx, r.Client, client.PayTopUp{Session: told.Session,
		Payment: told.Payment, Customer: told.Customer, Amount: told.Micros,
		Entry: r.IDs.New()}, nil)
	if err != nil {
		return err
	}
	log := r.Logger.With("session", told.Session, "payment", told.Payment, "customer",
		paid.TopUp.Customer, "correlationId", correlation)
	switch asked := paid.TopUp.Asked; {
	case paid.TopUp.Status == client.TopUpUnmatched:
		log.Warn("a payment is nobody's: refund it, or adjust the wallet that it was meant for")
	case asked != 0 && asked != paid.TopUp.Paid:
		log.Warn("another amount was paid than was asked for, and credited", "askedMicros", asked,
			"paidMicros", paid.TopUp.Paid)
	}
	for _, waiting := range paid.Waiting {
		if err := r.reverse(ctx, payment.Reversed{ID: waiting.ID, Payment: waiting.Payment,
			Micros: waiting.Amount, Back: waiting.Back}); err != nil {
			return err
		}
	}
	return nil
}

func (r Resource) reverse(ctx context.Context, told payment.Reversed) error {
	_, err := client.Do(ctx, r.Client, client.ReverseTopUp{ID: told.ID, Payment: told.Payment,
		Amount: told.Micros, Back: told.Back, Entry: r.IDs.New()}, nil)
	return err
}
