package groups

import (
	"context"
	"errors"
	"fmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// target is the target of both calls of a deletion.
type target struct {
	ID       ids.ID `path:"id"`
	WithData bool   `query:"withData" default:"false" doc:"Also delete all rows of the group"`
}

// deletion is the requested deletion, with the count of the group's rows. Rows of runs that are not
// closed may still increase, so they are not counted.
func (in *target) deletion(ctx context.Context, r Resource, from *operation.Caller) (
	client.Deletion, error) {
	d := client.Deletion{Customer: from.Customer, Operation: client.OpDeleteGroup, Target: in.ID}
	if !in.WithData {
		return d, nil
	}
	d.Query = client.WithData
	view, err := r.Client.Fresh(ctx)
	if err != nil {
		return d, err
	}
	if _, err := ownership.Group(view, from.Customer, in.ID, "id"); err != nil {
		return d, err
	}
	for _, group := range append(view.Siblings(in.ID), view.Group(in.ID)) {
		scope := client.Shown(view, group.ID, ids.ID{})
		for _, job := range view.OpenJobsOfCustomer(from.Customer) {
			if job.Group == group.ID {
				scope.Without = append(scope.Without, job.ID)
			}
		}
		rows, err := r.Store.Count(ctx, scope, nil)
		if err != nil {
			return d, fmt.Errorf("rows of group %s: %w", group.ID, err)
		}
		d.Rows += rows
	}
	return d, nil
}

var deleteErrors = []fault.Code{fault.NotFound}

// previewDelete is POST /api/scraper/group/{id}/preview-delete.
func (r Resource) previewDelete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:      "svc_preview_delete_group",
		Routes:  operation.Routes("POST /api/scraper/group/{id}/preview-delete"),
		Group:   group,
		Summary: "Shows what deleting a group would do",
		Description: api.PreviewDescription + " All scrapers of the group are deleted with it, " +
			"and so are the groups that merges and matches made from it. rows counts the rows " +
			"of ended runs; the openRuns are stopped.",
		Access: auth.Write, Agents: operation.Adds, Rate: limits.General, Errors: deleteErrors,
	}, func(ctx context.Context, from *operation.Caller, in *target) (api.DeletionPreview, error) {
		deletion, err := in.deletion(ctx, r, from)
		if err != nil {
			return api.DeletionPreview{}, err
		}
		return api.PreviewDelete(ctx, r.Client, deletion, func(p *client.Preview) []string {
			return in.warnings(p, from.View)
		})
	})
}

func (in *target) warnings(p *client.Preview, view *client.View) []string {
	scrapers := api.Counted(p.Cascade.Count("scrapers"), "scraper", "scrapers")
	said := []string{"This deletes " + scrapers + ".",
		"Their runs leave the history, unless deleted ones are asked for."}
	for _, sibling := range view.Siblings(in.ID) {
		said = append(said, "This deletes the group "+sibling.Name+", too, which was made of it.")
	}
	said = append(said, api.LostSites(p)...)
	if n := p.Cascade.Count("categories"); n > 0 {
		said = append(said, "This deletes "+api.Counted(n, "category", "categories")+".")
	}
	if n := p.Cascade.Count("shares"); n > 0 {
		said = append(said, "This ends the sharing with "+api.Counted(n, "reader", "readers")+".")
	}
	if in.WithData {
		said = append(said, api.LostRows(p))
	} else {
		said = append(said, "Its rows are read by run alone from then on.")
	}
	return append(said, api.StoppedRuns(p, in.WithData)...)
}

type deleteRequest struct {
	target
	api.PreviewToken
}

// delete is DELETE /api/scraper/group/{id}.
func (r Resource) delete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: client.OpDeleteGroup, Routes: operation.Routes("DELETE /api/scraper/group/{id}"),
		Group:    group,
		Summary:  "Deletes a group with its scrapers after a preview",
		ToAgents: api.CommitToAgents + " Its runs are stopped.",
		Description: api.CommitDescription + " Its runs are stopped. Their records and charges " +
			"stay. Without withData its rows stay, too, and can be read by run. With withData " +
			"its rows are hidden at once and deleted in the background. Rows that its scrapers " +
			"have in other groups stay.",
		Access: auth.Write, Agents: operation.Destroys,
		Rate: limits.General, Idempotency: operation.Required,
		Errors: append([]fault.Code{fault.LimitReached, fault.NotFound}, api.CommitErrors()...),
	}, func(ctx context.Context, from *operation.Caller, in *deleteRequest) (operation.None,
		error) {
		deletion, err := in.deletion(ctx, r, from)
		if errors.Is(err, fault.New(fault.NotFound, "")) {
			deletion.Rows, err = 0, nil // a repeated call gets the result of the first
		}
		if err != nil {
			return operation.None{}, err
		}
		_, err = client.Do(ctx, r.Client,
			client.DeleteGroup{Deletion: deletion, Token: in.Text()}, from.Call)
		return operation.None{}, err
	})
}
