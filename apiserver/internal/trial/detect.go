package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Detection is a look at a page that proposes scrapers for it.
type Detection struct {
	Name    string // under which a proposal will be saved
	Group   ids.ID // in which it will be saved
	Scraper ids.ID // that it will replace; zero: none
	Trial   launch.Trial
	// Key identifies all that decides the proposals, except the customer's schemas. They are kept
	// for an hour under it. "": they are not kept.
	Key      string
	UseCache bool // kept proposals may be returned
}

// check checks where the proposals would be saved.
func (d *Detection) check(from *Caller) error {
	var faults fault.List
	if strings.TrimSpace(d.Name) == "" {
		faults = append(faults, fault.Invalid(fault.InvalidRequest, "name", "must not be blank"))
	}
	if _, err := ownership.Group(from.View, from.Customer, d.Group, "groupId"); err != nil {
		faults = append(faults, fault.Invalid(fault.NotFound, "groupId", "there is no such group"))
	}
	if !d.Scraper.IsZero() {
		if _, err := ownership.Scraper(from.View, from.Customer, d.Scraper, "id"); err != nil {
			faults = append(faults, fault.Invalid(fault.NotFound, "id", "there is no such scraper"))
		}
	}
	if fields := d.Trial.Recipe.Fields; len(fields) > 0 {
		faults = append(faults,
			extract.Validate(model.Recipe{Type: model.MultipleProducts, Fields: fields})...)
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// Detect returns the proposals, the best first. Faults: Errors, not_found.
func (t *Trials) Detect(ctx context.Context, from *Caller, d *Detection) ([]extract.Proposal,
	error) {
	if err := d.check(from); err != nil {
		return nil, err
	}
	trial := d.Trial
	trial.Recipe.Schema = schemasOf(from)
	key := fmt.Sprintf("preview %s %x %x", from.Customer, xxh3.HashString128(d.Key).Bytes(),
		xxh3.Hash(trial.Recipe.Schema))
	var rows []json.RawMessage
	found := false
	if d.UseCache {
		rows, found = t.recall(ctx, from, key)
	}
	if !found {
		trial.Shared, trial.Joins = d.Key != "", d.UseCache
		var err error
		if rows, err = t.try(ctx, from, &trial); err != nil {
			return nil, err
		}
		if d.Key != "" {
			t.keep(ctx, from, key, rows)
		}
	}
	proposals := make([]extract.Proposal, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row, &proposals[i]); err != nil {
			return nil, fmt.Errorf("proposal: %w", err)
		}
	}
	return proposals, nil
}

// maxSchemas bounds the schemas that a preview may propose, in bytes together.
const maxSchemas = 128 << 10

// schemasOf are the schemas that AI_CONF may be proposed with, encoded for a detection: the
// customer's own, then the global ones, each newest first.
func schemasOf(from *Caller) []byte {
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
		return []byte("[]") // cannot happen: content that is not JSON is never saved
	}
	return encoded
}
