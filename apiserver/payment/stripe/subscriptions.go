package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stripe/stripe-go/v85"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/pkg/fault"
)

// Keys of a subscription's metadata, in addition to those of top-ups. Its invoices carry them, too.
const (
	planMember     = "shoal_plan"
	revisionMember = "shoal_revision"
)

const (
	planProduct = "Subscription"
	maxPlan     = 50    // bytes; ours are shorter
	maxPage     = 2_048 // bytes of an invoice's address
	monthly     = "month"
)

// Subscribe implements payment.Provider.
func (p *Provider) Subscribe(ctx context.Context, order payment.PlanOrder) (payment.Session,
	error) {
	params := &stripe.CheckoutSessionCreateParams{
		Mode: stripe.String(string(stripe.CheckoutSessionModeSubscription)),
		LineItems: []*stripe.CheckoutSessionCreateLineItemParams{{
			Quantity: stripe.Int64(1),
			PriceData: &stripe.CheckoutSessionCreateLineItemPriceDataParams{
				Currency:   stripe.String(string(currency)),
				UnitAmount: stripe.Int64(order.Cents),
				Recurring: &stripe.CheckoutSessionCreateLineItemPriceDataRecurringParams{
					Interval: stripe.String(monthly)},
				ProductData: &stripe.CheckoutSessionCreateLineItemPriceDataProductDataParams{
					Name: stripe.String(planProduct)},
			}}},
		SuccessURL: stripe.String(p.back + paidPath),
		CancelURL:  stripe.String(p.back + canceledPath),
		SubscriptionData: &stripe.CheckoutSessionCreateSubscriptionDataParams{
			Metadata: map[string]string{customerMember: order.Customer,
				clusterMember: order.Cluster, planMember: order.Plan,
				revisionMember: strconv.FormatUint(order.Revision, 10)}},
	}
	if order.Replaces != "" {
		// Stripe credits the unused rest to its own customer record. Without the same record, no
		// later invoice would deduct it.
		known, err := p.client.V1Subscriptions.Retrieve(ctx, order.Replaces, nil)
		if err != nil {
			return payment.Session{}, failed(err)
		}
		if known.Customer != nil {
			params.Customer = stripe.String(known.Customer.ID)
		}
	}
	params.SetIdempotencyKey(order.Key)
	made, err := p.client.V1CheckoutSessions.Create(ctx, params)
	if err != nil {
		return payment.Session{}, failed(err)
	}
	return readOpened(made)
}

// readOpened reads a newly made session.
func readOpened(made *stripe.CheckoutSession) (payment.Session, error) {
	to, err := url.Parse(made.URL)
	if err != nil || !isWeb(to) || len(made.URL) > maxURL || made.ID == "" ||
		len(made.ID) > maxID {
		return payment.Session{}, fault.New(fault.ProviderFailed,
			"the payment provider made a session that nobody can pay")
	}
	return payment.Session{ID: made.ID, URL: made.URL, Expires: time.Unix(made.ExpiresAt, 0)}, nil
}

// Amend implements payment.Provider. The next period's price changes without proration: the paid
// period stays as it is. A price needs a product, and keeps its current one.
func (p *Provider) Amend(ctx context.Context, change payment.Amendment) (payment.Contract, error) {
	known, err := p.client.V1Subscriptions.Retrieve(ctx, change.Contract, nil)
	if err != nil {
		return payment.Contract{}, failed(err)
	}
	if known.Items == nil || len(known.Items.Data) != 1 || known.Items.Data[0].Price == nil ||
		known.Items.Data[0].Price.Product == nil {
		return payment.Contract{}, fault.New(fault.ProviderFailed,
			"the payment provider has the subscription otherwise than it was made")
	}
	item := known.Items.Data[0]
	// After a restore Stripe may have seen more changes than the state knows.
	told, _ := strconv.ParseUint(known.Metadata[revisionMember], 10, 64)
	params := &stripe.SubscriptionUpdateParams{
		CancelAtPeriodEnd: stripe.Bool(change.Cancel),
		ProrationBehavior: stripe.String("none"),
	}
	if change.Cents > 0 {
		params.Items = []*stripe.SubscriptionUpdateItemParams{{ID: stripe.String(item.ID),
			PriceData: &stripe.SubscriptionUpdateItemPriceDataParams{
				Currency:   stripe.String(string(currency)),
				Product:    stripe.String(item.Price.Product.ID),
				UnitAmount: stripe.Int64(change.Cents),
				Recurring: &stripe.SubscriptionUpdateItemPriceDataRecurringParams{
					Interval: stripe.String(monthly)}}}}
	}
	params.AddMetadata(planMember, change.Plan)
	params.AddMetadata(revisionMember, strconv.FormatUint(max(told+1, change.Revision), 10))
	params.SetIdempotencyKey(change.Key)
	made, err := p.client.V1Subscriptions.Update(ctx, change.Contract, params)
	if err != nil {
		return payment.Contract{}, failed(err)
	}
	if made.LastResponse == nil {
		return payment.Contract{}, fault.New(fault.ProviderFailed,
			"the payment provider did not say what became of the subscription")
	}
	contract, err := readContract(made.LastResponse.RawJSON)
	if err != nil || contract == nil {
		return payment.Contract{}, fault.Wrap(fault.ProviderFailed, err,
			"the payment provider answered what is no subscription of ours")
	}
	return *contract, nil
}

// End implements payment.Provider. An invoice credits the unused rest to the customer.
func (p *Provider) End(ctx context.Context, contract string) error {
	_, err := p.client.V1Subscriptions.Cancel(ctx, contract, &stripe.SubscriptionCancelParams{
		Prorate: stripe.Bool(true), InvoiceNow: stripe.Bool(true)})
	if refused := (*stripe.Error)(nil); errors.As(err, &refused) &&
		refused.HTTPStatusCode == http.StatusNotFound {
		return nil // it has ended already
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

// Expire implements payment.Provider. Stripe refuses to expire a session that is not open.
func (p *Provider) Expire(ctx context.Context, session string) error {
	_, err := p.client.V1CheckoutSessions.Expire(ctx, session, nil)
	refused := (*stripe.Error)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && (refused.HTTPStatusCode == http.StatusNotFound ||
		refused.HTTPStatusCode == http.StatusBadRequest &&
			refused.Type == stripe.ErrorTypeInvalidRequest):
		return nil
	}
	return failed(err)
}

// subscription has the fields that we read. Since API version 2025-03-31 the period is on the item.
type subscription struct {
	ID                string            `json:"id"`
	Status            string            `json:"status"`
	Created           int64             `json:"created"`
	CancelAtPeriodEnd bool              `json:"cancel_at_period_end"`
	CurrentPeriodEnd  int64             `json:"current_period_end"`
	Metadata          map[string]string `json:"metadata"`
	Items             struct {
		Data []struct {
			CurrentPeriodEnd int64 `json:"current_period_end"`
			Price            struct {
				UnitAmount int64  `json:"unit_amount"`
				Currency   string `json:"currency"`
			} `json:"price"`
		} `json:"data"`
	} `json:"items"`
}

// readContract reads a subscription; nil: it is not ours.
func readContract(raw []byte) (*payment.Contract, error) {
	var s subscription
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, errUnreadable
	}
	if s.Metadata[clusterMember] == "" || s.Metadata[planMember] == "" {
		return nil, nil // it sells something else
	}
	end := s.CurrentPeriodEnd
	for _, item := range s.Items.Data {
		end = max(end, item.CurrentPeriodEnd)
	}
	cents := int64(0)
	if of := s.Items.Data; len(of) == 1 && isAmount(of[0].Price.UnitAmount) &&
		of[0].Price.Currency == string(currency) {
		cents = of[0].Price.UnitAmount
	}
	revision, err := strconv.ParseUint(s.Metadata[revisionMember], 10, 63)
	if err != nil || !isID(s.ID) || !isTime(s.Created) || !isTime(end) ||
		len(s.Metadata[customerMember]) > maxCustomer || len(s.Metadata[planMember]) > maxPlan {
		return nil, errUnreadable
	}
	return &payment.Contract{ID: s.ID, Customer: s.Metadata[customerMember],
		Cluster: s.Metadata[clusterMember], Plan: s.Metadata[planMember], Cents: cents,
		Cancel: s.CancelAtPeriodEnd, Revision: revision, Created: time.Unix(s.Created, 0),
		Standing: standingOf(s.Status), PeriodEnd: time.Unix(end, 0)}, nil
}

// isTime reports whether Unix seconds are plausible.
func isTime(seconds int64) bool { return seconds > 0 && seconds < 1<<36 }

// standingOf converts a status. While a payment is late, the plan stays in effect.
func standingOf(status string) payment.Standing {
	switch stripe.SubscriptionStatus(status) {
	case stripe.SubscriptionStatusActive, stripe.SubscriptionStatusTrialing,
		stripe.SubscriptionStatusPastDue:
		return payment.Live
	case stripe.SubscriptionStatusCanceled, stripe.SubscriptionStatusIncompleteExpired:
		return payment.Over
	case stripe.SubscriptionStatusUnpaid, stripe.SubscriptionStatusPaused:
		return payment.Lapsed
	}
	return payment.Pending
}

// invoice has the fields that we read. Since API version 2025-03-31 the details of its subscription
// are in its parent.
type invoice struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	Currency   string `json:"currency"`
	Total      int64  `json:"total"`
	Created    int64  `json:"created"`
	HostedPage string `json:"hosted_invoice_url"`
	details
	Parent struct{ details } `json:"parent"`
}

type details struct {
	Subscription struct {
		Metadata map[string]string `json:"metadata"`
	} `json:"subscription_details"`
}

// readInvoice reads an invoice; nil: it is not ours.
func readInvoice(raw []byte, deleted bool) (*payment.Invoice, error) {
	var in invoice
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errUnreadable
	}
	known := in.Parent.Subscription.Metadata
	if known == nil {
		known = in.Subscription.Metadata
	}
	if known[clusterMember] == "" || known[planMember] == "" {
		return nil, nil
	}
	if !isID(in.ID) || !isTime(in.Created) || len(known[customerMember]) > maxCustomer ||
		in.Total > maxCents || in.Total < -maxCents || len(in.Currency) != 3 {
		return nil, errUnreadable
	}
	told := &payment.Invoice{ID: in.ID, Customer: known[customerMember],
		Cluster: known[clusterMember], Cents: in.Total, Currency: in.Currency,
		Issued: time.Unix(in.Created, 0)}
	if to, err := url.Parse(in.HostedPage); err == nil && isWeb(to) &&
		len(in.HostedPage) <= maxPage {
		told.URL = in.HostedPage
	}
	switch stripe.InvoiceStatus(in.Status) {
	case stripe.InvoiceStatusOpen:
		told.Status = payment.Unpaid
	case stripe.InvoiceStatusPaid:
		told.Status = payment.PaidUp
	case stripe.InvoiceStatusUncollectible:
		told.Status = payment.Uncollectible
	case stripe.InvoiceStatusVoid:
		told.Status = payment.Void
	}
	if deleted { // a deleted draft was never sent
		told.Status = payment.Void
	}
	return told, nil
}
