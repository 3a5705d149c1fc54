package customers

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
)

type getRequest struct {
	WithStat bool `query:"withStat" default:"false" doc:"Adds statistics on what the customer has and does"`
}

// get is GET /api/customer.
func (r Resource) get() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_customer", Routes: operation.Routes("GET /api/customer"), Group: group,
		Summary: "Returns the customer's profile",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, in *getRequest) (Customer, error) {
		customer := newCustomer(from.Customer, from.View.Profile(from.Customer),
			from.View.Subscription(from.Customer))
		if in.WithStat {
			customer.Statistic = newStatistic(from.View, from.Customer, r.Clock.Now())
		}
		return customer, nil
	})
}

// day is a UTC day in milliseconds.
const day = int64(24 * time.Hour / time.Millisecond)

// newStatistic uses the counts that the state keeps, so it takes as long for every customer.
func newStatistic(view *client.View, customer string, now time.Time) *CustomerStatistic {
	return &CustomerStatistic{ScraperCount: view.OwnScrapers(customer),
		RunCountLast30d: view.Launches(customer, now.UnixMilli()/day),
		QuotaUsage:      plans.Usage(view, customer)}
}
