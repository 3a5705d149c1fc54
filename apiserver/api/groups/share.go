package groups

import (
	"cmp"
	"context"
	"fmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const shared = "Shared groups"

// listShared is GET /api/scraper/shared/group/list.
func (Resource) listShared() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_shared_groups", Routes: operation.Routes(
			"GET /api/scraper/shared/group/list"), Group: shared,
		Summary: "Lists the groups that others have shared with the customer, oldest first",
		Description: "These groups are shared with the e-mail address in the customer's " +
			"profile. Their rows, categories, runs and link errors are read with the same " +
			"operations as the customer's own.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidSort},
	}, func(_ context.Context, from *operation.Caller, in *listRequest) ([]Group, error) {
		var shared []*client.Group
		if profile := from.View.Profile(from.Customer); profile != nil && profile.Email != "" {
			for _, share := range from.View.SharesTo(profile.Email) {
				shared = append(shared, from.View.Group(share.Group))
			}
		}
		in.Sort = cmp.Or(in.Sort, "createdAt") // shares are by id
		wanted, err := in.of(shared)
		list := make([]Group, 0, len(wanted))
		for _, g := range wanted {
			list = append(list, NewGroup(from.View, g))
		}
		return list, err
	})
}

// ShareInput is one recipient of a share.
type ShareInput struct {
	Email      string `json:"email" max:"254" required:"true" format:"email" doc:"Address in a customer's profile; no customer needs to have it yet"`
	Permission string `json:"permission" enum:"READ" default:"READ"`
}

type shareRequest struct {
	ID   ids.ID       `path:"id"`
	Body []ShareInput `body:"json" min:"1" max:"100"`
}

// Validate implements operation.Validator.
func (r *shareRequest) Validate() (faults fault.List) {
	for i, share := range r.Body {
		for _, found := range api.CheckEmail(share.Email) {
			found.Field = fmt.Sprintf("[%d].email", i)
			faults = append(faults, found)
		}
	}
	return faults
}

// share is PUT /api/scraper/shared/group/{id}.
func (r Resource) share() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_share_group", Routes: operation.Routes("PUT /api/scraper/shared/group/{id}"),
		Group:   shared,
		Summary: "Shares a group with others, by e-mail address, for reading",
		Description: "Either all addresses are added or none; existing shares stay. The answer " +
			"does not reveal whether an address is a customer's. A group can have 100 shares, " +
			"a customer's groups together 2,000.",
		Access: auth.Write, Agents: operation.Sets,
		Feature: plans.DataSharing, Rate: limits.General,
		Idempotency: operation.Required,
		Errors:      []fault.Code{fault.NotFound, fault.LimitReached, fault.PlanLimitReached},
	}, func(ctx context.Context, from *operation.Caller, in *shareRequest) (operation.None,
		error) {
		share := client.ShareGroup{Customer: from.Customer, Group: in.ID,
			Cap: r.Plans.CapOf(from.View, from.Customer, plans.DataSharingLimits)}
		for _, with := range in.Body {
			share.Emails = append(share.Emails, with.Email)
		}
		_, err := client.Do(ctx, r.Client, share, from.Call)
		return operation.None{}, err
	})
}

type revokeRequest struct {
	ID    ids.ID `path:"id"`
	Email string `query:"email" max:"254" required:"true" doc:"Case does not matter"`
}

// revoke is DELETE /api/scraper/shared/group/{id}.
func (r Resource) revoke() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_revoke_group_share",
		Routes: operation.Routes("DELETE /api/scraper/shared/group/{id}"), Group: shared,
		Summary: "Ends the sharing of a group with an e-mail address",
		Access:  auth.Write, Agents: operation.Destroys, Revocable: true,
		Rate: limits.General, Idempotency: operation.Required,
		Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *revokeRequest) (operation.None,
		error) {
		_, err := client.Do(ctx, r.Client, client.RevokeShare{Customer: from.Customer,
			Group: in.ID, Email: in.Email}, from.Call)
		return operation.None{}, err
	})
}

type recipientsRequest struct {
	ID ids.ID `path:"id"`
}

// recipients is GET /api/scraper/shared/group/{id}/list.
func (Resource) recipients() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_group_shares",
		Routes: operation.Routes("GET /api/scraper/shared/group/{id}/list"), Group: shared,
		Summary: "Lists, for the owner, the e-mail addresses that a group is shared with",
		Access:  auth.Read, Agents: operation.Reads,
		Rate: limits.Read, Errors: []fault.Code{fault.NotFound},
	}, func(_ context.Context, from *operation.Caller, in *recipientsRequest) ([]string, error) {
		if _, err := ownership.Group(from.View, from.Customer, in.ID, "id"); err != nil {
			return nil, err
		}
		list := []string{}
		for _, share := range from.View.Shares(in.ID) {
			list = append(list, share.Email)
		}
		return list, nil
	})
}
