package customers

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
)

// CustomerInput is a change of the customer's profile.
type CustomerInput struct {
	Firstname          string             `json:"firstname" form:"filled-line" required:"true" min:"1" max:"100"`
	Lastname           string             `json:"lastname" form:"filled-line" required:"true" min:"1" max:"100"`
	AgreeWithTerms     bool               `json:"agreeWithTerms" must:"true" required:"true" doc:"Must be true"`
	CustomerUniqueRef  string             `json:"customerUniqueRef" stamped:"true"`
	Email              string             `json:"email" stamped:"true" doc:"Never changes"`
	Plan               *string            `json:"plan" stamped:"true"`
	SubscriptionStatus *string            `json:"subscriptionStatus" stamped:"true"`
	Statistic          *CustomerStatistic `json:"statistic" stamped:"true"`
}

type putRequest struct {
	Body CustomerInput `body:"json"`
}

// put is PUT /api/customer.
func (r Resource) put() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_put_customer", Routes: operation.Routes("PUT /api/customer"), Group: group,
		Summary: "Changes the customer's name",
		Access:  auth.Write, Agents: operation.Sets, Rate: limits.General,
	}, func(ctx context.Context, from *operation.Caller, in *putRequest) (Customer, error) {
		profile, err := client.Do(ctx, r.Client, client.RenameCustomer{Customer: from.Customer,
			Firstname: in.Body.Firstname, Lastname: in.Body.Lastname}, from.Call)
		if err != nil {
			return Customer{}, err
		}
		return newCustomer(from.Customer, &profile, from.View.Subscription(from.Customer)), nil
	})
}
