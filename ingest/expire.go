package ingest

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

const expireEvery = 24 * time.Hour

// Expiring removes the rows of runs that started before a time. It is the row store's.
type Expiring interface {
	Expire(ctx context.Context, before time.Time) error
}

// Expiry is the removal of the rows of runs that started long ago, once a day. safe is the time by
// which things may be removed for their age; it fails while that is not certain.
func Expiry(store Expiring, safe func(ctx context.Context) (time.Time, error)) work.Kind {
	return work.Kind{Name: work.Expire, Recurring: true,
		Step: func(ctx context.Context, _ work.Item) (work.Outcome, error) {
			now, err := safe(ctx)
			if err != nil {
				return work.Outcome{}, fmt.Errorf("ingest: expire rows: %w", err)
			}
			if err := store.Expire(ctx, now.Add(-rowstore.Expiry)); err != nil {
				return work.Outcome{}, fmt.Errorf("ingest: expire rows: %w", err)
			}
			return work.Rest(nil, expireEvery), nil
		}}
}
