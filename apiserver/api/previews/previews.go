// Package previews owns the operations that propose scrapers for a page, or show what is on it
// (specification 4.2). They save nothing. Package extract analyzes pages; package trial handles the
// cost and the cache of a preview.
package previews

import (
	"context"
	"math"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/api/scrapers"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/trial"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/turns"
)

const group = "Previews"

// Resource has the operations on previews and their dependencies.
type Resource struct {
	Trials *trial.Trials
	Clock  clock.Clock
	// ExchangeRates are the rates of currency rules.
	ExchangeRates ecb.Rates
	// Places bounds how many pages are parsed at once; each may take about 20 MB.
	Places *turns.Places
	Reader *reading.Guard // guards the reading of kept pages
}

// MostPages is a suitable number of Places for a server.
const MostPages = 4

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.fromURL(),
		r.fromCurl(),
		r.fields(),
		r.page(),
		r.pick(),
	}
}

// ScraperProposal is a scraper that could be saved, and its rows for the page.
type ScraperProposal struct {
	ScraperDTO       scrapers.Scraper `json:"scraperDTO" doc:"The scraper, to be saved with PUT /api/scraper"`
	SampleData       []api.Row        `json:"sampleData" doc:"The first rows that it makes from the page, at most 20"`
	ExecutionTimeSec float64          `json:"executionTimeSec" doc:"How long the whole preview took"`
}

// propose returns the proposals of a detection, best first. They use source, except for what a
// proposal overrides.
func (r Resource) propose(ctx context.Context, from *operation.Caller, id string,
	d *trial.Detection, source model.SourceConfig) ([]ScraperProposal, error) {
	began := r.Clock.Now()
	by := api.Trying(from, id)
	found, err := r.Trials.Detect(ctx, by, d)
	api.Tried(from, by)
	if err != nil {
		return nil, err
	}
	took := math.Round(r.Clock.Now().Sub(began).Seconds()*1000) / 1000
	candidates := []ScraperProposal{}
	for i := range found {
		candidates = append(candidates, ScraperProposal{
			ScraperDTO: proposal(d, source, &found[i].Scraper),
			SampleData: api.Rows(found[i].SampleData), ExecutionTimeSec: took})
	}
	return candidates, nil
}

// proposal converts a proposal to the form in which it can be saved.
func proposal(d *trial.Detection, source model.SourceConfig,
	proposed *model.Scraper) scrapers.Scraper {
	source.Pagination, source.TryWithHiddenData = proposed.SourceConfig.Pagination,
		proposed.SourceConfig.TryWithHiddenData
	dto := scrapers.Scraper{Schema: proposed.Schema,
		Recipe: scrapers.Recipe{ID: d.Scraper, Name: d.Name, GroupRef: d.Group, Type: proposed.Type,
			SourceConfig: source, ItemsConfig: proposed.ItemsConfig,
			PostProcessRules: []model.PostProcessRule{}, Config: proposed.Config}}
	if dto.ItemsConfig == nil {
		dto.ItemsConfig = []model.Field{}
	}
	if dto.Config == nil {
		dto.Config = &model.ScraperConfig{}
	}
	return dto
}
