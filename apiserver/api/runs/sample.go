package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/api/scrapers"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// sampleKept is how long a sample may be answered again.
const sampleKept = time.Hour

const sampleID = "svc_get_scraper_sample_data"

type sampleRequest struct {
	ID       ids.ID `path:"id"`
	UseCache bool   `query:"useCache" default:"false" doc:"Answer the sample of the last hour, if there is one of the scraper as it is now"`
}

// sample is GET /api/scraper/{id}/get-sample-data.
func (r Resource) sample() *operation.Operation {
	s := r.Services
	return operation.Define(operation.Declaration{
		ID: sampleID, Routes: operation.Routes("GET /api/scraper/{id}/get-sample-data"),
		Group:   group,
		Summary: "Runs a scraper on its first page and answers the rows",
		Description: "The first page of the start address, or of the first address of the " +
			"newest list, is fetched and paid " +
			"like any other, unless the sample comes from the cache; the rows are answered and " +
			"not kept. At most 1,000 rows " +
			"and about 768 KiB are answered. The call waits up to 55 s; who hangs up ends the run.",
		Access: auth.Read, Rate: limits.Sample, Timeout: TrialTimeout,
		Errors: append([]fault.Code{fault.NotFound, fault.TypeNotRunnable, fault.SchemaGone,
			fault.SearchNotConfigured}, TrialErrors...),
	}, func(ctx context.Context, from *operation.Caller, in *sampleRequest) ([]json.RawMessage,
		error) {
		scraper, err := ownership.Scraper(from.View, from.Customer, in.ID, "id")
		if err != nil { // 400 here, where other operations have 404 (specification 7)
			return nil, fault.Invalid(fault.NotFound, "id", "there is no such scraper")
		}
		if scraper.Tag == model.WebsiteContacts {
			return nil, fault.Invalid(fault.TypeNotRunnable, "id",
				"website contacts are read by list runs only")
		}
		spec := scraper.Spec
		if spec.Type == model.SearchEngineSearch {
			if spec.Search, err = engineOf(s, &spec.SourceConfig); err != nil {
				return nil, err
			}
		}
		recipe, ok := from.View.RecipeOf(from.Customer, &spec, scraper.Tag)
		if !ok {
			return nil, fault.Invalid(fault.SchemaGone, "schema.id",
				"the scraper's schema is not there")
		}
		trial, err := sampleOf(ctx, s, from, scraper)
		if err != nil {
			return nil, err
		}
		key := sampleKey(scraper, recipe, trial.URL)
		if in.UseCache {
			if kept, found := s.Values.Get(ctx, key); found {
				var rows []json.RawMessage
				if err := json.Unmarshal(kept, &rows); err == nil {
					return rows, nil
				}
			}
		}
		trial.Recipe = recipe
		if trial.Tiers, err = tiersOf(from.View, &spec); err != nil {
			return nil, err
		}
		rows, err := Try(ctx, s, from, sampleID, trial)
		if err != nil {
			return nil, err
		}
		if kept, err := json.Marshal(rows); err == nil {
			s.Values.Set(ctx, key, kept, sampleKept)
		}
		return rows, nil
	})
}

// sampleKey names the cached sample of a scraper as it is now, with all that decides its rows: a
// list, a start address or an engine may be another one without a new revision.
func sampleKey(scraper *client.Scraper, recipe model.Recipe, url string) string {
	return fmt.Sprintf("sample %s %d %x %x", scraper.ID, scraper.Revision, xxh3.Hash(recipe.Schema),
		xxh3.HashString(url))
}

// sampleOf is the trial of a scraper's first page, without the recipe.
func sampleOf(ctx context.Context, s api.Services, from *operation.Caller,
	scraper *client.Scraper) (Trial, error) {
	none := Trial{}
	trial := Trial{Source: model.SourceSample, URL: scrapers.StartURL(&scraper.Spec),
		Field:   "sourceConfig.url",
		Scraper: scraper.ID, Group: scraper.Group}
	if trial.URL != "" {
		return trial, nil
	}
	if scraper.Spec.Type == model.SearchEngineSearch {
		begin, _, err := start(s, scraper)
		if err != nil {
			return none, err
		}
		trial.URL, trial.Field = begin.urls[0], begin.field
		return trial, nil
	}
	job := from.View.Job(scraper.LastJob)
	if job == nil {
		return none, fault.Invalid(fault.TypeNotRunnable, "sourceConfig.url",
			"the scraper has no start address and no list yet")
	}
	links, err := s.Store.Links(ctx, job.List, 0, 1)
	if err != nil && !errors.Is(err, rowstore.ErrListUnknown) {
		return none, fmt.Errorf("list of job %s: %w", job.ID, err)
	}
	if len(links) == 0 {
		return none, fault.Invalid(fault.TypeNotRunnable, "sourceConfig.url",
			"the list of the newest run is no longer kept")
	}
	trial.URL = links[0].URL
	return trial, nil
}
