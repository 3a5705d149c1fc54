// Package sitemaps owns the operations on sitemaps: to have those of a scraper's site read, and to
// read what they name. It uses launch for where a scraper begins, and harvest for how entries are
// stored.
package sitemaps

import (
	"context"
	"encoding/json"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const group = "Sitemaps"

// Store is where entries are.
type Store interface {
	Entries(ctx context.Context, q rowstore.EntriesQuery) ([]json.RawMessage, error)
	CountEntries(ctx context.Context, harvest ids.ID, f filter.Node) (int64, error)
}

// Resource is what the operations use.
type Resource struct {
	Client interface {
		client.Proposer
		client.Reader
	}
	Store Store
	Clock clock.Clock
	IDs   ids.Source
}

// Operations are those of the specification, 4.7.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{r.harvest(), r.list()}
}
