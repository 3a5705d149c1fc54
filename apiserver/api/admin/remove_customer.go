package admin

import (
	"context"
	"errors"
	"fmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// removal is the requested removal, with the count of the customer's rows. Rows of runs that are
// not closed may still increase, so they are not counted.
func (r Resource) removal(ctx context.Context, ref string) (client.Deletion, error) {
	d := client.Deletion{Customer: ref, Operation: client.OpRemoveCustomer}
	view, err := r.Client.Fresh(ctx)
	if err != nil {
		return d, err
	}
	if known := view.Customer(ref); known == nil || known.Removed() {
		return d, fault.Invalid(fault.NotFound, "ref", "no customer has this reference")
	}
	groups, err := r.History.Groups(ctx, view, ref)
	if err != nil {
		return d, fmt.Errorf("groups of a customer: %w", err)
	}
	var open []ids.ID
	for _, job := range view.OpenJobsOfCustomer(ref) {
		open = append(open, job.ID)
	}
	for _, group := range groups {
		scope := client.Shown(view, group, ids.ID{})
		scope.Without = append(scope.Without, open...)
		rows, err := r.Store.Count(ctx, scope, nil)
		if err != nil {
			return d, fmt.Errorf("rows of group %s: %w", group, err)
		}
		d.Rows += rows
	}
	return d, nil
}

// previewRemoveCustomer is POST /api/admin/customers/{ref}/preview-delete.
func (r Resource) previewRemoveCustomer() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_admin_preview_remove_customer",
		Routes: operation.Routes("POST /api/admin/customers/{ref}/preview-delete"),
		Group:  group, Summary: "Shows what removing a customer would do",
		Description: api.PreviewDescription + " rows counts the rows of ended runs; the " +
			"openRuns are stopped.",
		Access: auth.Admin, Rate: limits.General, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller,
		in *customerRequest) (api.DeletionPreview, error) {
		if in.Ref == from.Subject {
			return api.DeletionPreview{}, errSelf
		}
		removal, err := r.removal(ctx, in.Ref)
		if err != nil {
			return api.DeletionPreview{}, err
		}
		return api.PreviewDelete(ctx, r.Client, removal, func(*client.Preview) []string {
			warnings := []string{"Its credentials are refused for good.",
				"Its profile, accounts, keys, groups, scrapers, sites, schemas, webhooks, " +
					"notifications, feedback, rows and page records are deleted.",
				"Its wallet, ledger, run records and audit trail stay, under its reference.",
				"Backups that were made before have it all."}
			if r.Client.View().Subscription(in.Ref).Active() {
				warnings = append(warnings, "Its subscription is ended at the payment provider.")
			}
			return warnings
		})
	})
}

var errSelf = fault.Invalid(fault.InvalidRequest, "ref",
	"an admin cannot remove itself: nobody might be left")

type removeCustomerRequest struct {
	customerRequest
	api.PreviewToken
}

// removeCustomer is DELETE /api/admin/customers/{ref}.
func (r Resource) removeCustomer() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     client.OpRemoveCustomer,
		Routes: operation.Routes("DELETE /api/admin/customers/{ref}"),
		Group:  group, Summary: "Removes a customer after a preview",
		Description: api.CommitDescription + " Its credentials are refused for good and its " +
			"runs are stopped. Its profile, accounts, keys and schemas are deleted at once. " +
			"Groups, scrapers, webhooks, notifications, rows, page records and link lists are " +
			"deleted in the background; erasedAt says when all are gone. Wallet, ledger, run " +
			"records and audit trail stay for the books. Only the trail has names of keys, " +
			"origins of webhooks, addresses that groups were shared with, and addresses of " +
			"callers. Earlier backups still hold everything. Admins cannot remove themselves.",
		Access: auth.Admin, Rate: limits.General, Idempotency: operation.Required,
		Errors: append([]fault.Code{fault.NotFound}, api.CommitErrors()...),
	}, func(ctx context.Context, from *operation.Caller,
		in *removeCustomerRequest) (operation.None, error) {
		if in.Ref == from.Subject {
			return operation.None{}, errSelf
		}
		removal, err := r.removal(ctx, in.Ref)
		if errors.Is(err, fault.New(fault.NotFound, "")) {
			err = nil // a repeated call gets the result of the first
		}
		if err != nil {
			return operation.None{}, err
		}
		_, err = client.Do(ctx, r.Client, client.RemoveCustomer{Deletion: removal,
			Token: in.Text(), By: from.Subject}, from.Call)
		return operation.None{}, err
	})
}
