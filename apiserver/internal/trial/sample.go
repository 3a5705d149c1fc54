package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Sample runs a scraper on its first page and returns the rows. With useCache it returns a sample
// of the last hour, if there is one of the scraper as it is now. maxCharge, in micros, caps the
// cost; nil: no cap. Faults: Errors, not_found, type_not_runnable, schema_missing,
// search_engine_not_configured, start_urls_unreachable, tier_unavailable.
func (t *Trials) Sample(ctx context.Context, from *Caller, id ids.ID, useCache bool,
	maxCharge *int64) ([]json.RawMessage, error) {
	scraper, err := ownership.Scraper(from.View, from.Customer, id, "id")
	if err != nil { // 400 here, though other operations answer 404 (specification 7)
		return nil, fault.Invalid(fault.NotFound, "id", "there is no such scraper")
	}
	if scraper.Tag == model.WebsiteContacts {
		return nil, fault.Invalid(fault.TypeNotRunnable, "id",
			"website contacts are read by list runs only")
	}
	spec := scraper.Spec
	if spec.Type == model.SearchEngineSearch {
		if spec.Search, err = t.Launcher.Engine(&spec.SourceConfig); err != nil {
			return nil, err
		}
	}
	recipe, ok := from.View.RecipeOf(from.Customer, &spec, scraper.Tag)
	if !ok {
		return nil, fault.Invalid(fault.SchemaGone, "schema.id",
			"the scraper's schema is not there")
	}
	trial, err := t.sampleOf(ctx, from.View, scraper)
	if err != nil {
		return nil, err
	}
	from.Origin = trial.URL
	key := sampleKey(scraper, recipe, trial.URL)
	if useCache {
		if rows, found := t.recall(ctx, from, key); found {
			return rows, nil
		}
	}
	trial.Recipe, trial.MaxCharge, trial.Shared, trial.Joins = recipe, maxCharge, true, useCache
	if trial.Tiers, err = launch.Tiers(from.View, &spec); err != nil {
		return nil, err
	}
	rows, err := t.try(ctx, from, trial)
	if err != nil {
		return nil, err
	}
	t.keep(ctx, from, key, rows)
	return rows, nil
}

// sampleKey identifies the cached sample of a scraper as it is now, by all that decides its rows. A
// list, a start address, an engine or the tiers may change without a new revision.
func sampleKey(scraper *client.Scraper, recipe model.Recipe, url string) string {
	return fmt.Sprintf("sample %s %d %d %x %x", scraper.ID, scraper.Revision, scraper.Spec.Tiers(),
		xxh3.Hash(recipe.Schema), xxh3.HashString(url))
}

// sampleOf is the trial of a scraper's first page, without the recipe.
func (t *Trials) sampleOf(ctx context.Context, v *client.View,
	scraper *client.Scraper) (*launch.Trial, error) {
	trial := &launch.Trial{Source: model.SourceSample, Scraper: scraper.ID, Group: scraper.Group}
	var err error
	trial.URL, trial.Field, err = t.Launcher.Beginning(ctx, v, scraper)
	if err != nil || trial.URL != "" {
		return trial, err
	}
	var job *client.Job
	err = t.History.ScraperRuns(ctx, v, scraper.ID, func(j *client.Job) bool {
		if !j.File { // a file has no list
			job = j
		}
		return j.File
	})
	if err != nil {
		return nil, fmt.Errorf("runs of scraper %s: %w", scraper.ID, err)
	}
	if job == nil {
		return nil, fault.Invalid(fault.TypeNotRunnable, "sourceConfig.url",
			"the scraper has no start address and no list yet")
	}
	links, err := t.Store.Links(ctx, job.List, 0, 1)
	if err != nil && !errors.Is(err, rowstore.ErrListUnknown) {
		return nil, fmt.Errorf("list of job %s: %w", job.ID, err)
	}
	if len(links) == 0 {
		return nil, fault.Invalid(fault.TypeNotRunnable, "sourceConfig.url",
			"the list of the newest run is no longer kept")
	}
	trial.URL = links[0].URL
	return trial, nil
}
