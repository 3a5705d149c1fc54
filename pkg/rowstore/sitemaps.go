package rowstore

import (
	"context"
	"encoding/json"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
)

// MaxBatchRows bounds the rows of one batch.
const MaxBatchRows = 1 << 16

// Batch is a part of what a harvest knows. Number counts from 0. Rows are JSON objects, at least
// one and at most MaxBatchRows.
type Batch struct {
	Harvest ids.ID
	Number  uint32
	Fetch   ids.ID // names this attempt to write it
	Rows    [][]byte
}

// EntriesQuery reads a page of a harvest's rows by number.
type EntriesQuery struct {
	Harvest ids.ID
	Filter  filter.Node // nil: all
	Sort    []Sort      // ties, and all rows if there is no Sort, are in stored order
	Offset  int
	Limit   int // 1 to 1,000
}

// Sitemaps keeps what harvests know: what sitemaps name, and how far they have been read.
type Sitemaps interface {
	// PutBatch stores a whole batch, unless the harvest has one with that number. It returns the
	// Fetch of the batch that stands, also after a race. Zero: the harvest was dropped.
	PutBatch(ctx context.Context, batch Batch) (stands ids.ID, err error)
	// Batches returns at most most rows after a place (0: from the first), in the order of their
	// batches. last is the place of the last row. No rows: the end.
	Batches(ctx context.Context, harvest ids.ID, after int64, most int) (docs []json.RawMessage,
		last int64, err error)
	// Entries returns a page of rows, each as it was stored.
	Entries(ctx context.Context, q EntriesQuery) ([]json.RawMessage, error)
	// CountEntries counts the rows that Entries would return without a limit.
	CountEntries(ctx context.Context, harvest ids.ID, f filter.Node) (int64, error)
	// AllHarvests returns every harvest that has rows, in no order.
	AllHarvests(ctx context.Context) ([]ids.ID, error)
	// DropHarvest removes the rows of a harvest. Idempotent.
	DropHarvest(ctx context.Context, harvest ids.ID) error
}

// PlaceOf returns the place of a batch's row. No row has place 0.
func PlaceOf(batch uint32, row int) int64 { return (int64(batch)+1)<<16 | int64(row) }

// BatchAt returns the number of the batch at a place.
func BatchAt(place int64) uint32 { return uint32(place>>16 - 1) }
