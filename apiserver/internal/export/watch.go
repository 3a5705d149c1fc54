package export

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// Watch finds out whether rows were removed while they were being read. A run, a scraper or a file
// may go meanwhile, with rows not read yet. The result would look complete without being so.
type Watch struct {
	store  rowstore.Reads
	scopes []rowstore.Scope
	upto   int64
	there  int64
}

// StartWatch records how many rows scopes have up to a place, which Horizon has reached.
func StartWatch(ctx context.Context, store rowstore.Reads, scopes []rowstore.Scope,
	upto int64) (Watch, error) {
	there, err := store.CountUpto(ctx, scopes, upto)
	if err != nil {
		return Watch{}, fmt.Errorf("rows to read: %w", err)
	}
	return Watch{store, scopes, upto, there}, nil
}

// ResumeWatch resumes a watch that began when scopes had there rows up to a place.
func ResumeWatch(store rowstore.Reads, scopes []rowstore.Scope, upto, there int64) Watch {
	return Watch{store, scopes, upto, there}
}

// Gone says whether some of the rows were removed.
func (w Watch) Gone(ctx context.Context) (bool, error) {
	left, err := w.store.CountUpto(ctx, w.scopes, w.upto)
	if err != nil {
		return false, fmt.Errorf("rows that were read: %w", err)
	}
	return left < w.there, nil
}

// Check fails with fault.Unavailable if some of the rows were removed.
func (w Watch) Check(ctx context.Context) error {
	gone, err := w.Gone(ctx)
	if err == nil && gone {
		err = RowsRemoved()
	}
	return err
}

// RowsRemoved is the error of a read during which rows were removed.
func RowsRemoved() error {
	return fault.New(fault.Unavailable, "rows were removed while they were read; ask again")
}
