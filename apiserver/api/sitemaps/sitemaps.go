// Package sitemaps owns the operations that read the sitemaps of a scraper's site, and list their
// addresses. Package launch tells where a scraper begins; package harvest defines how entries are
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

// Store reads entries.
type Store interface {
	Entries(ctx context.Context, q rowstore.EntriesQuery) ([]json.RawMessage, error)
	CountEntries(ctx context.Context, harvest ids.ID, f filter.Node) (int64, error)
}

// Resource has the operations on sitemaps and their dependencies.
type Resource struct {
	Client interface {
		client.Proposer
		client.Reader
	}
	Store Store
	Clock clock.Clock
	IDs   ids.Source
}

// Operations lists the operations of specification 4.7.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{r.harvest(), r.list()}
}
