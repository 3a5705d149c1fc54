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

// target is what both calls of a deletion name.
type target struct {
	ID       ids.ID `path:"id"`
	WithData bool   `query:"withData" default:"false" doc:"All rows of the group, too"`
}

// deletion is what is asked for, with the rows counted that the group has. Those of runs that are
// not closed may become more: they are not counted.
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
		Summary: "Shows what the deletion of a group would do",
		Description: api.PreviewDescription + " All scrapers of the group go with it, and so " +
			"do the groups that merges and matches made of it. rows are those of runs that have " +
			"ended; openRuns are stopped.",
		Access: auth.Write, Agents: operation.Adds, Rate: limits.General, Errors: deleteErrors,
	}, func(ctx context.Context, from *operation.Caller, in *target) (api.DeletionPreview, error) {
		deletion, err := in.deletion(ctx, r, from)
		if err != nil {
			return api.DeletionPreview{}, err
		}
		return api.PreviewDelete(ctx, r.Client, deletion, func(p *client.Preview) []string {
			return in.warnings(p, sitesOf(r.Client.View(), from.Customer, in.ID))
		})
	})
}

// sitesOf lists the sites of a group's scrapers.
func sitesOf(v *client.View, customer string, group ids.ID) []*client.Site {
	var of []*client.Site
	for _, site := range v.Sites(customer) {
		if scraper := v.Scraper(site.Scraper); scraper != nil && scraper.Group == group {
			of = append(of, site)
		}
	}
	return of
}

// warnings are of the cascade's counts, where openRuns comes first, then scrapers, categories,
// shares and rows; and of sites.
func (in *target) warnings(p *client.Preview, sites []*client.Site) []string {
	counts := p.Cascade.Counts
	said := []string{fmt.Sprintf("%d scrapers are deleted.", counts[1].N),
		"Their runs leave the history, unless deleted ones are asked for."}
	said = append(said, api.LostSites(sites...)...)
	if categories := counts[2].N; categories > 0 {
		said = append(said, fmt.Sprintf("%d categories are deleted.", categories))
	}
	if shares := counts[3].N; shares > 0 {
		said = append(said, fmt.Sprintf("%d others can read the group no longer.", shares))
	}
	if in.WithData {
		said = append(said, fmt.Sprintf("All %d rows of the group are deleted.", counts[4].N))
	} else {
		said = append(said, "Its rows are read by run alone from then on.")
	}
	return append(said, api.StoppedRuns(counts[0].N, in.WithData)...)
}

type deleteRequest struct {
	target
	api.PreviewToken
}

// delete is DELETE /api/scraper/group/{id}.
func (r Resource) delete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: client.OpDeleteGroup, Routes: operation.Routes("DELETE /api/scraper/group/{id}"),
		Group:   group,
		Summary: "Deletes a group with its scrapers after a preview",
		Description: api.CommitDescription + " Its runs are stopped. Their records stay, and so " +
			"does what was charged. Without withData its rows stay, too, and are read by run. " +
			"With it nobody sees them from then on, and they go in the background. Rows that " +
			"its scrapers have in other groups stay.",
		Access: auth.Write, Agents: operation.Destroys,
		Rate: limits.General, Idempotency: operation.Required,
		Errors: append([]fault.Code{fault.LimitReached, fault.NotFound}, api.CommitErrors()...),
	}, func(ctx context.Context, from *operation.Caller, in *deleteRequest) (operation.None,
		error) {
		deletion, err := in.deletion(ctx, r, from)
		if errors.Is(err, fault.New(fault.NotFound, "")) {
			deletion.Rows, err = 0, nil // a repeated call hears what became of the first
		}
		if err != nil {
			return operation.None{}, err
		}
		_, err = client.Do(ctx, r.Client,
			client.DeleteGroup{Deletion: deletion, Token: in.Text()}, from.Call)
		return operation.None{}, err
	})
}
