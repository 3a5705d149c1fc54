package admin

import (
	"context"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/api/wallet"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// CustomerListEntry is a customer in the directory.
type CustomerListEntry struct {
	CustomerUniqueRef string   `json:"customerUniqueRef"`
	Email             string   `json:"email" doc:"Empty until the customer has signed up"`
	Firstname         string   `json:"firstname"`
	Lastname          string   `json:"lastname"`
	CreatedAt         api.Time `json:"createdAt"`
	BlockedAt         api.Time `json:"blockedAt" doc:"When the customer was blocked; null: it is not"`
	RemovedAt         api.Time `json:"removedAt" doc:"When the customer was removed for good; null: it was not"`
	ErasedAt          api.Time `json:"erasedAt" doc:"When only the books of a removed customer were left; null: more is left"`
}

func newCustomerListEntry(view *client.View, c *client.Customer) CustomerListEntry {
	entry := CustomerListEntry{CustomerUniqueRef: c.Ref, CreatedAt: api.Time(c.CreatedAt),
		BlockedAt: api.Time(c.BlockedAt), RemovedAt: api.Time(c.RemovedAt),
		ErasedAt: api.Time(c.ErasedAt)}
	if profile := view.Profile(c.Ref); profile != nil {
		entry.Email, entry.Firstname, entry.Lastname = profile.Email, profile.Firstname,
			profile.Lastname
	}
	return entry
}

// CustomerAccount is one customer with its money and counts.
type CustomerAccount struct {
	Customer  CustomerListEntry `json:"customer"`
	BlockedBy *string           `json:"blockedBy" doc:"Subject of the admin who blocked the customer; null: it is not blocked"`
	Wallet    wallet.Wallet     `json:"wallet"`
	Counts    CustomerCounts    `json:"counts"`
}

// CustomerCounts counts what a customer has and does.
type CustomerCounts struct {
	Scrapers    int `json:"scrapers"`
	Groups      int `json:"groups"`
	Keys        int `json:"keys" doc:"API keys not revoked"`
	OpenRuns    int `json:"openRuns" doc:"Runs, samples and previews under way"`
	RunsLast30d int `json:"runsLast30d" doc:"Runs launched today and in the 29 days before, by UTC"`
}

// day is a UTC day in milliseconds.
const day = int64(24 * time.Hour / time.Millisecond)

func newCounts(view *client.View, ref string, now time.Time) CustomerCounts {
	return CustomerCounts{Scrapers: view.OwnScrapers(ref), Groups: view.OwnGroups(ref),
		Keys: len(view.Keys(ref)), OpenRuns: len(view.OpenJobsOfCustomer(ref)),
		RunsLast30d: view.Launches(ref, now.UnixMilli()/day)}
}

type customersRequest struct {
	Q       string `query:"q" max:"254" doc:"Only customers with this text in their reference or e-mail address; case does not matter. A customer's whole e-mail address finds only that customer"`
	Blocked bool   `query:"blocked" default:"false" doc:"Only customers that are blocked"`
	Page    int    `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size    int    `query:"size" default:"50" min:"1" clamp:"200" code:"invalid_page"`
}

// wants looks up the profile only of customers whose reference does not match.
func (r *customersRequest) wants(view *client.View, c *client.Customer) bool {
	if r.Blocked && !c.Blocked() {
		return false
	}
	if r.Q == "" || contains(c.Ref, r.Q) {
		return true
	}
	profile := view.Profile(c.Ref)
	return profile != nil && contains(profile.Email, r.Q)
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// each visits the customers that may be wanted, by reference. An index finds a whole e-mail address
// without a walk over all customers.
func (r *customersRequest) each(view *client.View, visit func(*client.Customer) bool) {
	profile := view.ProfileByEmail(r.Q)
	if profile == nil || view.Customer(r.Q) != nil { // a reference may look like an address
		view.EachCustomer(visit)
		return
	}
	visit(view.Customer(profile.Customer))
}

func (r *customersRequest) list(view *client.View) api.Page[CustomerListEntry] {
	var content []CustomerListEntry
	found, first := 0, r.Page*r.Size
	r.each(view, func(c *client.Customer) bool {
		if r.wants(view, c) {
			if found >= first && found < first+r.Size {
				content = append(content, newCustomerListEntry(view, c))
			}
			found++
		}
		return true
	})
	return api.NewPage(content, int64(found), r.Page, r.Size)
}

// customers is GET /api/admin/customers.
func (r Resource) customers() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_customers", Routes: operation.Routes("GET /api/admin/customers"),
		Group: group, Summary: "Lists the customers by reference",
		Description: "A customer that has not signed up has no e-mail address, and is found " +
			"only by its reference.",
		Access: auth.Admin, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller,
		in *customersRequest) (api.Page[CustomerListEntry], error) {
		if err := api.Reach(in.Page, in.Size, "narrow the list with q"); err != nil {
			return api.Page[CustomerListEntry]{}, err
		}
		return in.list(from.View), nil
	})
}

// customer is GET /api/admin/customers/{ref}.
func (r Resource) customer() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_customer", Routes: operation.Routes("GET /api/admin/customers/{ref}"),
		Group: group, Summary: "Returns a customer with its wallet and the counts of what it " +
			"has",
		Access: auth.Admin, Rate: limits.Read, Errors: []fault.Code{fault.NotFound},
	}, func(_ context.Context, from *operation.Caller, in *customerRequest) (CustomerAccount,
		error) {
		known := from.View.Customer(in.Ref)
		if known == nil {
			return CustomerAccount{}, fault.Invalid(fault.NotFound, "ref",
				"no customer has this reference")
		}
		account := CustomerAccount{Customer: newCustomerListEntry(from.View, known),
			Wallet: wallet.New(from.View, in.Ref),
			Counts: newCounts(from.View, in.Ref, r.Clock.Now())}
		if known.Blocked() {
			account.BlockedBy = &known.BlockedBy
		}
		return account, nil
	})
}
