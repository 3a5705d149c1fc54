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

// ResumeWatch goes on with a watch that began when scopes had that many rows up to a place.
func ResumeWatch(store rowstore.Reads, scopes []rowstore.Scope, upto, there int64) Watch {
	return Watch{store, scopes, upto, there}
}

// Gone says whether some of the rows have gone.
func (w Watch) Gone(ctx context.Context) (bool, error) {
	left, err := w.store.CountUpto(ctx, w.scopes, w.upto)
	if err != nil {
		return false, fmt.Errorf("rows that were read: %w", err)
	}
	return left < w.there, nil
}

// Check fails with fault.Unavailable when some of the rows have gone.
func (w Watch) Check(ctx context.Context) error {
	gone, err := w.Gone(ctx)
	if err == nil && gone {
		err = RowsRemoved()
	}
	return err
}

// RowsRemoved is what a read fails with of which some rows went meanwhile.
func RowsRemoved() error {
	return fault.New(fault.Unavailable, "rows were removed while they were read; ask again")
}
