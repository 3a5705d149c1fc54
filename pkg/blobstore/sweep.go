package blobstore

import (
	"context"
	"fmt"
	"time"
)

// Sweeping says what a sweep removes of a kind.
type Sweeping struct {
	Now time.Time // zero: it is not known what time it is, so nothing goes
	// Grace is how old a blob is at least before it is taken for an orphan. It is longer than from
	// a Put to the command that names the blob, and than the store's clock may be off.
	Grace time.Duration
	// Named says which blobs are named. It is asked for once for each page of blobs, after that was
	// read, so that it knows of whatever was named until then. Nil: all are.
	Named func(ctx context.Context) (func(Key) bool, error)
	// Lifetime is for how long a blob is kept, where that is less than for its kind. 0: as its kind
	// says. Nil: all are.
	Lifetime func(key Key) time.Duration
}

// lifetime is for how long a blob is kept; 0: for as long as it is named.
func (s *Sweeping) lifetime(key Key) time.Duration {
	if s.Lifetime != nil {
		if own := s.Lifetime(key); own > 0 {
			return own
		}
	}
	return key.Kind.Lifetime
}

// Tally is what a sweep has found of a kind.
type Tally struct {
	Blobs  int // left
	Bytes  int64
	Owners map[string]int64 // bytes left, by owner
	// Expired and Orphans are what was removed: older than the kind's lifetime, and named by
	// nobody.
	Expired, Orphans int
}

// Largest is the most bytes that one owner has.
func (t *Tally) Largest() (bytes int64) {
	for _, held := range t.Owners {
		bytes = max(bytes, held)
	}
	return bytes
}

// Sweep removes what has expired of a kind, and the orphans. It may be cut off anywhere and made
// again. After an error the tally is of what was looked at.
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
