// Package previews owns the operations that look at a page and propose scrapers for it, or show
// what is on it (specification 4.2). They save nothing. What there is on a page is package
// extract's to say; a preview is a trial of package runs, fetched and paid like any page.
package previews

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/internal/ownership"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/api/runs"
	"shoal.dev/shoal/apiserver/api/scrapers"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const group = "Previews"

// Resource is the operations that look at a page, and what they use.
type Resource struct{ api.Services }

// Operations are all of the resource, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.fromURL(),
		r.fromCurl(),
		r.fields(),
	}
}

// kept is how long a preview may be answered again.
const kept = time.Hour

// Candidate is a scraper that could be saved, and what it makes of the page.
type Candidate struct {
	ScraperDTO       scrapers.Scraper  `json:"scraperDTO" doc:"To be saved through PUT /api/scraper"`
	SampleData       []json.RawMessage `json:"sampleData" doc:"The first rows that it makes of the page, at most 20"`
	ExecutionTimeSec float64           `json:"executionTimeSec" doc:"How long the whole preview took"`
}

// detection is a preview that proposes scrapers.
type detection struct {
	operation string
	id, group ids.ID
	name      string
	useCache  bool
	key       string // of the cache, "" for none
	trial     runs.Trial
	source    model.SourceConfig // of what is proposed
}

// check refuses what the proposals could not be saved under.
func (d *detection) check(from *operation.Caller) error {
	var faults fault.List
	if strings.TrimSpace(d.name) == "" {
		faults = append(faults, fault.Invalid(fault.InvalidRequest, "name", "must not be blank"))
	}
	if _, err := ownership.Group(from.View, from.Customer, d.group, "groupId"); err != nil {
		faults = append(faults, fault.Invalid(fault.NotFound, "groupId", "there is no such group"))
	}
	if !d.id.IsZero() {
		if _, err := ownership.Scraper(from.View, from.Customer, d.id, "id"); err != nil {
			faults = append(faults, fault.Invalid(fault.NotFound, "id", "there is no such scraper"))
		}
	}
	if fields := d.trial.Recipe.Fields; len(fields) > 0 {
		faults = append(faults,
			extract.Validate(model.Recipe{Type: model.MultipleProducts, Fields: fields})...)
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// run answers the proposals, the best first.
func (d *detection) run(ctx context.Context, s api.Services, from *operation.Caller) ([]Candidate,
	error) {
	began := s.Clock.Now()
	if err := d.check(from); err != nil {
		return nil, err
	}
	d.trial.Recipe.Schema = schemasOf(from)
	key := fmt.Sprintf("preview %s %x %x", from.Customer, xxh3.HashString128(d.key).Bytes(),
		xxh3.Hash(d.trial.Recipe.Schema))
	rows, found := []json.RawMessage{}, false
	if d.useCache {
		if old, ok := s.Values.Get(ctx, key); ok {
			found = json.Unmarshal(old, &rows) == nil
		}
	}
	if !found {
		var err error
		if rows, err = runs.Try(ctx, s, from, d.operation, d.trial); err != nil {
			return nil, err
		}
		if data, err := json.Marshal(rows); err == nil && d.key != "" {
			s.Values.Set(ctx, key, data, kept)
		}
	}
	candidates := []Candidate{}
	took := math.Round(s.Clock.Now().Sub(began).Seconds()*1000) / 1000
	for _, row := range rows {
		var p extract.Proposal
		if err := json.Unmarshal(row, &p); err != nil {
			return nil, fmt.Errorf("proposal: %w", err)
		}
		candidates = append(candidates,
			Candidate{ScraperDTO: d.scraper(&p.Scraper), SampleData: p.SampleData,
				ExecutionTimeSec: took})
	}
	return candidates, nil
}

// maxSchemas bounds the schemas that a preview may propose, in bytes together.
const maxSchemas = 128 << 10

// schemasOf are the schemas that AI_CONF may be proposed with, as a detection takes them: the
// customer's own, then the global ones, of each the newest first.
func schemasOf(from *operation.Caller) []byte {
	list, size := []extract.Schema{}, 0
	for _, owner := range []string{from.Customer, ""} {
		schemas := from.View.Schemas(owner)
		slices.Reverse(schemas)
		for _, s := range schemas {
			if size += len(s.Content); size <= maxSchemas {
				list = append(list,
					extract.Schema{ID: s.ID.String(), Type: s.Type, Content: s.Content})
			}
		}
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return []byte("[]") // a content that is no JSON is never saved
	}
	return encoded
}

// scraper is a proposal in the form in which it can be saved.
func (d *detection) scraper(proposed *model.Scraper) scrapers.Scraper {
	source := d.source
	source.Pagination, source.TryWithHiddenData = proposed.SourceConfig.Pagination,
		proposed.SourceConfig.TryWithHiddenData
	dto := scrapers.Scraper{Schema: proposed.Schema,
		Recipe: scrapers.Recipe{ID: d.id, Name: d.name, GroupRef: d.group, Type: proposed.Type,
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
