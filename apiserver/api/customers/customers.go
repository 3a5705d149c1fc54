// Package customers owns the operations on a customer's own data, and the public pages
// (specification 4.12). Wallets and keys have their own packages.
package customers

import (
	"context"

	"shoal.dev/shoal/apiserver/api/sites"
	"shoal.dev/shoal/apiserver/api/subscriptions"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const group = "Customer"

// Resource has the operations on customers and their dependencies.
type Resource struct {
	Client client.Proposer
	Clock  clock.Clock
	IDs    ids.Source
	// Store, History and Touches are for exports, in addition to the state.
	Store interface {
		rowstore.Reads
		Links(ctx context.Context, list ids.ID, from uint32, most int) ([]rowstore.Link, error)
		sites.Links
	}
	History *client.History
	Touches *auth.Touches
	// Agreement is the operator's user agreement, an HTML document; nil: none.
	Agreement []byte
	// Portal is the path of the web portal, to which a checkout leads back; "": there is none.
	Portal string
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.get(),
		r.signUp(),
		r.put(),
		r.export(),
		r.userAgreement(),
		r.putInfo(),
		r.getInfo(),
		r.deleteInfo(),
		r.putPreferences(),
		r.getPreferences(),
		r.putWalletPreferences(),
		r.getWalletPreferences(),
		r.subscribed(),
		r.paymentCanceled(),
		r.giveFeedback(),
	}
}

// Customer is a customer's profile. Members are empty until the customer has set them.
type Customer struct {
	CustomerUniqueRef  string  `json:"customerUniqueRef" doc:"The identity provider's user id"`
	Email              string  `json:"email" doc:"Empty until the customer has signed up"`
	Firstname          string  `json:"firstname"`
	Lastname           string  `json:"lastname"`
	AgreeWithTerms     bool    `json:"agreeWithTerms"`
	Plan               *string `json:"plan" doc:"Null: the customer is on pay-as-you-go and has every feature"`
	SubscriptionStatus *string `json:"subscriptionStatus" doc:"Null without a subscription"`
	// Statistic is nil unless the request asks for it.
	Statistic *CustomerStatistic `json:"statistic,omitempty" doc:"Only with withStat=true"`
}

// CustomerStatistic counts what a customer has and does.
type CustomerStatistic struct {
	ScraperCount    int            `json:"scraperCount"`
	RunCountLast30d int            `json:"runCountLast30d" doc:"Runs launched today and in the 29 days before, by UTC"`
	QuotaUsage      map[string]int `json:"quotaUsage" doc:"How much of each plan limit is used, by the limit's name"`
}

// newCustomer combines a profile and a subscription, each nil if there is none yet.
func newCustomer(ref string, profile *client.Profile, subscription *client.Subscription) Customer {
	c := Customer{CustomerUniqueRef: ref}
	if profile != nil {
		c.Email, c.Firstname, c.Lastname = profile.Email, profile.Firstname, profile.Lastname
		c.AgreeWithTerms = profile.AgreedAt > 0
	}
	if plan := subscription.Plan(); plan != "" {
		status := subscriptions.Status(subscription)
		c.Plan, c.SubscriptionStatus = &plan, &status
	}
	return c
}
