package customers

import (
	"context"
	"strings"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// SignUpInput is the initial profile of a customer.
type SignUpInput struct {
	Firstname          string             `json:"firstname" form:"filled-line" required:"true" min:"1" max:"100"`
	Lastname           string             `json:"lastname" form:"filled-line" required:"true" min:"1" max:"100"`
	Email              string             `json:"email" max:"254" required:"true" format:"email" doc:"Never changes"`
	AgreeWithTerms     bool               `json:"agreeWithTerms" must:"true" required:"true" doc:"Must be true"`
	CustomerUniqueRef  string             `json:"customerUniqueRef" stamped:"true"`
	Plan               *string            `json:"plan" stamped:"true"`
	SubscriptionStatus *string            `json:"subscriptionStatus" stamped:"true"`
	Statistic          *CustomerStatistic `json:"statistic" stamped:"true"`
}

type signUpRequest struct {
	Body SignUpInput `body:"json"`
}

// Validate implements operation.Validator.
func (r *signUpRequest) Validate() fault.List {
	return api.CheckEmail(r.Body.Email)
}

// signUp is POST /api/customer.
func (r Resource) signUp() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_sign_up", Routes: operation.Routes("POST /api/customer"), Group: group,
		Summary: "Signs the customer up",
		Description: "The identity provider's user id becomes the customer's reference. " +
			"Reference and e-mail address never change. With a token of an OpenID Connect " +
			"issuer, the body must have the address that the issuer verified. If the " +
			"customer's accounts sign in here, it must have the address of one of them.",
		Access: auth.SignUp, Rate: limits.General, Idempotency: operation.Optional,
		Errors: []fault.Code{fault.CustomerExists, fault.EmailTaken, fault.EmailUnverified},
	}, func(ctx context.Context, from *operation.Caller, in *signUpRequest) (Customer, error) {
		email, err := verifiedEmail(from, in.Body.Email)
		if err != nil {
			return Customer{}, err
		}
		entered := client.SignUp{Customer: from.Customer, Email: email,
			Firstname: in.Body.Firstname, Lastname: in.Body.Lastname}
		if from.Stranger {
			entered.Entry = r.IDs.New()
		}
		profile, err := client.Do(ctx, r.Client, entered, from.Call)
		if err != nil {
			return Customer{}, err
		}
		return newCustomer(from.Customer, &profile, from.View.Subscription(from.Customer)), nil
	})
}

// verifiedEmail returns the address for a customer's profile. If an OpenID Connect issuer has
// verified one, that is it, and told must be the same. Otherwise, if the customer has accounts,
// told must be the address of one of them, because groups are shared by address.
func verifiedEmail(from *operation.Caller, told string) (string, error) {
	if !from.Foreign {
		return ofAccount(from.View.AccountsOf(from.Customer), told)
	}
	if api.CheckEmail(from.Email) != nil {
		return "", fault.New(fault.EmailUnverified, "the token has no verified e-mail address: "+
			"verify yours at the identity provider, and ask for a token with the scope email")
	}
	if !strings.EqualFold(from.Email, told) {
		return "", fault.Invalid(fault.InvalidRequest, "email",
			"must be the address that the identity provider has verified")
	}
	return from.Email, nil
}

// ofAccount returns the address of the account that equals told. Customers without accounts use
// tokens signed by the operator, and may choose any address.
func ofAccount(accounts []*client.Account, told string) (string, error) {
	if len(accounts) == 0 {
		return told, nil
	}
	for _, account := range accounts {
		if strings.EqualFold(account.Email, told) {
			return account.Email, nil
		}
	}
	return "", fault.Invalid(fault.InvalidRequest, "email",
		"must be the address that somebody of this customer signs in with")
}
