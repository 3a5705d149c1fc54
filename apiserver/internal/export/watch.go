package export

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// Watch tells whether rows stayed where they were while they were read. A run, a scraper or a file
// may be removed meanwhile, with rows that had not been read. What was read then looks whole and is
// not.
type Watch struct {
	store  rowstore.Reads
	scopes []rowstore.Scope
	upto   int64
	there  int64
}

// StartWatch notes how many rows scopes have up to a place, which Horizon has reached.
func StartWatch(ctx context.Context, store rowstore.Reads, scopes []rowstore.Scope,
	upto int64) (Watch, error) {
	there, err := store.CountUpto(ctx, scopes, upto)
	if err != nil {
		return Watch{}, fmt.Errorf("rows to read: %w", err)
	}
	return Watch{store, scopes, upto, there}, nil
}

// Check fails with fault.Unavailable when some of the rows have gone.
func (w Watch) Check(ctx context.Context) error {
	left, err := w.store.CountUpto(ctx, w.scopes, w.upto)
	switch {
	case err != nil:
		return fmt.Errorf("rows that were read: %w", err)
	case left < w.there:
		return RowsRemoved()
	}
	return nil
}

// RowsRemoved is what a read fails with of which some rows went meanwhile.
func RowsRemoved() error {
	return fault.New(fault.Unavailable, "rows were removed while they were read; ask again")
}
