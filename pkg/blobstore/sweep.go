package blobstore

import (
	"context"
	"fmt"
	"time"
)

// Sweeping says what a sweep of a kind removes.
type Sweeping struct {
	Now time.Time // zero: the time is unknown, so nothing is removed
	// Grace is the minimum age of an orphan. It exceeds the time from a Put to the command that
	// refers to the blob, and the error of the store's clock.
	Grace time.Duration
	// Named returns a function that reports whether a blob is referred to. It is called once per
	// page of blobs, after the page was read, and so knows all references until then. Nil: all are.
	Named func(ctx context.Context) (func(Key) bool, error)
	// Lifetime returns how long a blob is kept, if that is less than for its kind. 0: the kind's
	// lifetime. Nil: always 0.
	Lifetime func(key Key) time.Duration
}

// lifetime returns how long a blob is kept; 0: for as long as it is referred to.
func (s *Sweeping) lifetime(key Key) time.Duration {
	if s.Lifetime != nil {
		if own := s.Lifetime(key); own > 0 {
			return own
		}
	}
	return key.Kind.Lifetime
}

// Tally is the result of a sweep of a kind.
type Tally struct {
	Blobs  int // remaining
	Bytes  int64
	Owners map[string]int64 // remaining bytes by owner
	// Expired and Orphans count the removed blobs: those older than their lifetime, and those
	// without a reference.
	Expired, Orphans int
}

// Largest returns the most bytes of one owner.
func (t *Tally) Largest() (bytes int64) {
	for _, held := range t.Owners {
		bytes = max(bytes, held)
	}
	return bytes
}

// Sweep removes the expired and orphaned blobs of a kind. It may be interrupted anywhere and
// repeated. After an error the tally covers what was inspected.
func (s *Store) Sweep(ctx context.Context, kind Kind, how Sweeping) (Tally, error) {
	tally := Tally{Owners: map[string]int64{}}
	var next []byte
	for {
		page, err := s.List(ctx, kind, "", next)
		if err != nil {
			return tally, err
		}
		if err := s.sweepPage(ctx, page, how, &tally); err != nil {
			return tally, fmt.Errorf("blobstore: sweep %s: %w", kind.Name, err)
		}
		if next = page.Next; next == nil {
			return tally, nil
		}
	}
}

func (s *Store) sweepPage(ctx context.Context, page Page, how Sweeping, tally *Tally) error {
	named := func(Key) bool { return true }
	if how.Named != nil {
		var err error
		if named, err = how.Named(ctx); err != nil {
			return err
		}
	}
	for _, info := range page.Blobs {
		age, count := how.Now.Sub(info.Written), (*int)(nil)
		switch lifetime := how.lifetime(info.Key); {
		case lifetime > 0 && age > lifetime:
			count = &tally.Expired
		case age > how.Grace && !named(info.Key):
			count = &tally.Orphans
		}
		if count == nil {
			tally.Blobs++
			tally.Bytes += info.Bytes
			tally.Owners[info.Key.Owner] += info.Bytes
			continue
		}
		if err := s.Delete(ctx, info.Key); err != nil {
			return err
		}
		*count++
	}
	return nil
}
