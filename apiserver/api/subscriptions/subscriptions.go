// Package subscriptions owns the operations on legacy plans (specification 4.11): what there is to
// choose, what a customer has, and its invoices. What plans gate is declared by the operations that
// they gate; how a contract stands is the payment provider's to tell.
package subscriptions

import (
	"log/slog"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

const group = "Subscriptions"

// Resource is the operations on subscriptions, and what they use.
type Resource struct {
	Client client.Client
	IDs    ids.Source
	Clock  clock.Clock
	Plans  *plans.Source
	// Payments is who takes customers' money; nil: nobody does, and nothing is subscribed to.
	Payments payment.Provider
	Logger   *slog.Logger
}

// Subscription is a customer's legacy plan.
type Subscription struct {
	Plan             *string   `json:"plan" doc:"What gates the customer; null: nothing does"`
	Status           string    `json:"status" enum:"ACTIVE,INACTIVE"`
	CurrentPeriodEnd *api.Time `json:"currentPeriodEnd" doc:"Null without a paid plan"`
	ScheduledPlan    *string   `json:"scheduledPlan" doc:"The plan after currentPeriodEnd, where that is another one"`
	Payment          *Payment  `json:"payment" doc:"A checkout that is open; null: none"`
}

// Payment is where to pay.
type Payment struct {
	URL string `json:"url" doc:"The checkout, at the payment provider"`
}

// newSubscription is what a record says, nil for none, with the checkout that is open.
func (r Resource) newSubscription(s *client.Subscription) Subscription {
	made := NewSubscription(s)
	if r.isOpen(s) {
		made.Payment = &Payment{URL: s.Checkout.URL}
	}
	return made
}

// NewSubscription is what a record says, nil for none, without a checkout.
func NewSubscription(s *client.Subscription) Subscription {
	made := Subscription{Status: Status(s)}
	if plan := s.Plan(); plan != "" {
		made.Plan = &plan
	}
	if scheduled := s.Scheduled(); scheduled != "" {
		made.ScheduledPlan = &scheduled
	}
	if s.Active() && !s.Free {
		end := api.Time(s.Contract.PeriodEnd)
		made.CurrentPeriodEnd = &end
	}
	return made
}

// isOpen says whether there is a checkout that can be paid.
func (r Resource) isOpen(s *client.Subscription) bool {
	return s != nil && s.Checkout.Session != "" &&
		r.Clock.Now().UnixMilli() < s.Checkout.Expires
}

// Status is a subscription's status: ACTIVE or INACTIVE.
func Status(s *client.Subscription) string {
	if s.Active() {
		return "ACTIVE"
	}
	return "INACTIVE"
}

// Operations are all of the resource, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.history(),
		r.planFeatures(),
		r.get(),
		r.create(),
		r.change(),
		r.cancel(),
		r.cancelDowngrade(),
		r.prices(),
	}
}
