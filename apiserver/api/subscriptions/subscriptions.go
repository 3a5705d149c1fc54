// Package subscriptions owns the operations on legacy plans (specification 4.11): the catalogue, a
// customer's plan, and its invoices. Operations declare themselves which feature they need. The
// payment provider reports the state of a contract.
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

// Resource has the operations on subscriptions and their dependencies.
type Resource struct {
	Client client.Client
	IDs    ids.Source
	Clock  clock.Clock
	Plans  *plans.Source
	// Payments takes customers' money; nil: there are no subscriptions.
	Payments payment.Provider
	Logger   *slog.Logger
}

// Subscription is a customer's legacy plan.
type Subscription struct {
	Plan             *string   `json:"plan" doc:"The plan that limits the customer; null: none"`
	Status           string    `json:"status" enum:"ACTIVE,INACTIVE"`
	CurrentPeriodEnd *api.Time `json:"currentPeriodEnd" doc:"Null without a paid plan"`
	ScheduledPlan    *string   `json:"scheduledPlan" doc:"The plan after currentPeriodEnd, if it will change"`
	Payment          *Payment  `json:"payment" doc:"The open checkout; null: none, or it follows a change that needs no payment"`
}

// Payment is the address at which to pay.
type Payment struct {
	URL string `json:"url" doc:"The checkout, at the payment provider"`
}

// newSubscription converts a record (nil: none) to the API's form, with an open checkout.
func (r Resource) newSubscription(s *client.Subscription) Subscription {
	made := NewSubscription(s)
	if r.isOpen(s) {
		made.Payment = &Payment{URL: s.Checkout.URL}
	}
	return made
}

// NewSubscription converts a record (nil: none) to the API's form, without a checkout.
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

// isOpen reports whether there is a checkout that can be paid.
func (r Resource) isOpen(s *client.Subscription) bool {
	return s != nil && s.Checkout.Session != "" &&
		r.Clock.Now().UnixMilli() < s.Checkout.Expires
}

// Status returns a subscription's status: ACTIVE or INACTIVE.
func Status(s *client.Subscription) string {
	if s.Active() {
		return "ACTIVE"
	}
	return "INACTIVE"
}

// Operations lists all operations, in the order of the specification.
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
