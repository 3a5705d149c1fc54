package groups

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// match is PUT /api/scraper/group/{id}/match.
func (r Resource) match() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_match_group", Routes: operation.Routes("PUT /api/scraper/group/{id}/match"),
		Group: group, Summary: "Matches a group's rows with products of the catalogue",
		Description: "It answers once the match is queued. It reads the latest COMPLETED run " +
			"of each of the group's scrapers. A row is matched by its columns gtin (ean, upc, " +
			"isbn), brand, model (mpn) and title, or their names in several languages. Each " +
			"match becomes a row in a group of the same name with the suffix _matched. It has " +
			"rowId, catalogueId, score (0.5 to 1) and method. The methods are gtin, " +
			"brand_model and title. A new match replaces the rows of the last one. From the " +
			"first match on, files sent to the group's scrapers add to their rows. The group " +
			"must have shouldMatchProducts.",
		Access: auth.Write, Agents: operation.Sets, Feature: plans.TextMatching,
		Rate: limits.Match, Idempotency: operation.Required,
		Errors: []fault.Code{fault.NotFound, fault.IngestCapacity, fault.IngestCapacityGlobal,
			fault.OutOfSpace},
	}, func(ctx context.Context, from *operation.Caller, in *struct {
		ID ids.ID `path:"id"`
	}) (operation.None, error) {
		catalogue, err := catalogueFor(from, in.ID)
		if err != nil && !from.OnlyAnswers() {
			return operation.None{}, err
		}
		begun, err := client.Do(ctx, r.Client, client.BeginResult{Job: r.IDs.New(),
			Customer: from.Customer, Group: in.ID, Made: client.Matched, Kind: work.Match,
			NewGroup: r.IDs.New(), NewScraper: r.IDs.New(), Args: catalogue[:]}, from.Call)
		if fault.CodeOf(err) == fault.AlreadyRunning {
			err = fault.New(fault.InvalidRequest, "a match of the group is under way")
		}
		from.Job = begun.Job
		return operation.None{}, err
	})
}

// catalogueFor is the catalogue with whose products a group can be matched now.
func catalogueFor(from *operation.Caller, group ids.ID) (ids.ID, error) {
	base, err := ownership.Group(from.View, from.Customer, group, "id")
	if err != nil {
		return ids.ID{}, err
	}
	if !base.ShouldMatchProducts {
		return ids.ID{}, fault.Invalid(fault.InvalidRequest, "shouldMatchProducts",
			"must be true of the group")
	}
	catalogue := from.View.CatalogueIn(client.CatalogueReady)
	if catalogue == nil {
		return ids.ID{}, fault.New(fault.InvalidRequest,
			"the operator of the service has sent no catalogue of products yet")
	}
	return catalogue.ID, nil
}
