package stripe

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/price"
)

const (
	// tolerance is how far the time of a signature may differ from ours.
	tolerance = 5 * time.Minute
	// maxCents is the highest amount that Stripe accepts.
	maxCents    = 99_999_999
	maxCustomer = 500 // bytes, the limit of a metadata value
)

var errUnreadable = fault.New(fault.InvalidBody, "the event cannot be read")

// Read implements payment.Provider. It accepts events of any version of Stripe's API, because the
// parts that it reads are the same in all.
func (p *Provider) Read(body []byte, signature string) (any, error) {
	// The library uses the system clock for the age of a signature, and accepts future ones.
	event, err := webhook.ConstructEventWithOptions(body, signature, p.secret,
		webhook.ConstructEventOptions{IgnoreTolerance: true, IgnoreAPIVersionMismatch: true})
	switch {
	case errors.Is(err, webhook.ErrNotSigned), errors.Is(err, webhook.ErrInvalidHeader),
		errors.Is(err, webhook.ErrNoValidSignature):
		return nil, fault.Wrap(fault.InvalidSignature, err,
			"the payment provider has not signed this body")
	case err != nil:
		return nil, fault.Wrap(fault.InvalidBody, err, "the body is no event")
	}
	if off := p.clock.Now().Sub(signedAt(signature)); off > tolerance || off < -tolerance {
		return nil, fault.New(fault.InvalidSignature, "the signature is %v off this server's "+
			"time, and may be %v", off.Round(time.Second), tolerance)
	}
	if event.Data == nil || event.Account != "" {
		return nil, nil // it belongs to a connected account
	}
	switch event.Type {
	case stripe.EventTypeCheckoutSessionCompleted,
		stripe.EventTypeCheckoutSessionAsyncPaymentSucceeded,
		stripe.EventTypeCheckoutSessionAsyncPaymentFailed,
		stripe.EventTypeCheckoutSessionExpired:
		return readSession(event.Type, event.Data.Raw)
	case stripe.EventTypeRefundCreated, stripe.EventTypeRefundUpdated,
		stripe.EventTypeRefundFailed:
		return readRefund(event.Data.Raw)
	case stripe.EventTypeChargeDisputeFundsWithdrawn,
		stripe.EventTypeChargeDisputeFundsReinstated:
		return readDispute(event.Type, event.Data.Raw)
	case stripe.EventTypeCustomerSubscriptionCreated, stripe.EventTypeCustomerSubscriptionUpdated,
		stripe.EventTypeCustomerSubscriptionDeleted, stripe.EventTypeCustomerSubscriptionPaused,
		stripe.EventTypeCustomerSubscriptionResumed:
		return toldContract(&event)
	case stripe.EventTypeInvoiceCreated, stripe.EventTypeInvoiceFinalized,
		stripe.EventTypeInvoiceUpdated, stripe.EventTypeInvoicePaid,
		stripe.EventTypeInvoiceVoided, stripe.EventTypeInvoiceMarkedUncollectible,
		stripe.EventTypeInvoiceDeleted:
		return toldInvoice(&event)
	}
	return nil, nil
}

// toldContract reads a contract as of the time of its event.
func toldContract(event *stripe.Event) (any, error) {
	contract, err := readContract(event.Data.Raw)
	if err != nil || contract == nil {
		return nil, err
	}
	if !isTime(event.Created) {
		return nil, errUnreadable
	}
	contract.ToldAt = time.Unix(event.Created, 0)
	return *contract, nil
}

// toldInvoice reads an invoice as of the time of its event.
func toldInvoice(event *stripe.Event) (any, error) {
	told, err := readInvoice(event.Data.Raw, event.Type == stripe.EventTypeInvoiceDeleted)
	if err != nil || told == nil {
		return nil, err
	}
	if !isTime(event.Created) {
		return nil, errUnreadable
	}
	told.ToldAt = time.Unix(event.Created, 0)
	return *told, nil
}

// signedAt returns the time in a valid signature. The signature covers it.
func signedAt(signature string) time.Time {
	seconds := int64(0)
	for part := range strings.SplitSeq(signature, ",") {
		if text, is := strings.CutPrefix(part, "t="); is {
			seconds, _ = strconv.ParseInt(text, 10, 64) // the library uses the last one, too
		}
	}
	return time.Unix(seconds, 0)
}

func readSession(kind stripe.EventType, raw []byte) (any, error) {
	var s stripe.CheckoutSession
	if err := json.Unmarshal(raw, &s); err != nil || !isID(s.ID) ||
		s.PaymentIntent != nil && !isID(s.PaymentIntent.ID) {
		return nil, errUnreadable
	}
	switch {
	case s.Mode != stripe.CheckoutSessionModePayment || s.Metadata[clusterMember] == "":
		return nil, nil // it sells something else
	case kind == stripe.EventTypeCheckoutSessionExpired:
		return payment.Ended{Session: s.ID}, nil
	case kind == stripe.EventTypeCheckoutSessionAsyncPaymentFailed:
		return payment.Ended{Session: s.ID, Failed: true}, nil
	case s.PaymentStatus == stripe.CheckoutSessionPaymentStatusUnpaid:
		return nil, nil // the bank takes days; another event reports the outcome
	case s.PaymentStatus != stripe.CheckoutSessionPaymentStatusPaid || s.AmountTotal == 0:
		return payment.Ended{Session: s.ID, Failed: true}, nil // there was nothing to pay
	}
	paid := payment.Paid{Session: s.ID, Customer: s.Metadata[customerMember],
		Cluster: s.Metadata[clusterMember]}
	if s.PaymentIntent != nil {
		paid.Payment = s.PaymentIntent.ID
	}
	if !isAmount(s.AmountTotal) || len(paid.Customer) > maxCustomer {
		return nil, errUnreadable
	}
	if s.Currency == currency {
		paid.Micros = s.AmountTotal * price.MicrosPerCent
	}
	return paid, nil
}

func readRefund(raw []byte) (any, error) {
	var r stripe.Refund
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, errUnreadable
	}
	back := int64(0)
	switch r.Status {
	case stripe.RefundStatusSucceeded:
	case stripe.RefundStatusFailed, stripe.RefundStatusCanceled:
		back = r.Amount
	default:
		return nil, nil // not returned yet
	}
	return readReversal(r.ID, r.PaymentIntent, r.Currency, r.Amount, back)
}

func readDispute(kind stripe.EventType, raw []byte) (any, error) {
	var d stripe.Dispute
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, errUnreadable
	}
	back := int64(0)
	if kind == stripe.EventTypeChargeDisputeFundsReinstated {
		back = reinstated(&d)
	}
	return readReversal(d.ID, d.PaymentIntent, d.Currency, d.Amount, back)
}

// reinstated returns how much of a dispute came back, in cents. The balance movements tell, unless
// they are in another currency: then all of it came back.
func reinstated(d *stripe.Dispute) int64 {
	sum := int64(0)
	for _, moved := range d.BalanceTransactions {
		switch {
		case moved == nil:
		case moved.Currency != d.Currency:
			return d.Amount
		case moved.Amount > 0:
			sum += min(moved.Amount, d.Amount-sum)
		}
	}
	if sum == 0 {
		return d.Amount
	}
	return sum
}

func readReversal(id string, of *stripe.PaymentIntent, in stripe.Currency, cents int64,
	back int64) (any, error) {
	if of == nil || in != currency {
		return nil, nil // not one of our checkouts
	}
	if !isID(id) || !isID(of.ID) || !isAmount(cents) {
		return nil, errUnreadable
	}
	return payment.Reversed{ID: id, Payment: of.ID, Micros: cents * price.MicrosPerCent,
		Back: back * price.MicrosPerCent}, nil
}

func isID(id string) bool { return id != "" && len(id) <= maxID }

func isAmount(cents int64) bool { return cents > 0 && cents <= maxCents }
