package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/match"
)

const (
	keptRemainders = 2                // per kind, besides those of running steps
	keptFor        = 30 * time.Minute // without a turn of the item
)

// remainder is what one turn leaves for the next: what rows are made of, and the state between two
// of them. It also says how far they are stored.
type remainder struct {
	rows    *sorter   // sorted, of a merge and of a protected file; nil: of a match
	merged  *merging  // of a merge
	matched *matching // of a match
	from    []source  // of the sorted rows
	seq     uint32    // of the next batch
	stored  uint64    // rows
}

// source is a run whose rows were read.
type source struct{ group, scraper, run ids.ID }

// remainders keeps what the turns of items leave, so that a node makes it once per item. It bounds
// how many it keeps. Files are unlinked, so a process that dies leaves nothing. An item without its
// remainder begins anew, with the same result.
type remainders struct {
	clock clock.Clock

	mu   sync.Mutex
	kept map[ids.ID]keptRemainder
}

type keptRemainder struct {
	*remainder
	until time.Time
}

func newRemainders(c clock.Clock) *remainders {
	return &remainders{clock: c, kept: map[ids.ID]keptRemainder{}}
}

// keep keeps what an item's turn leaves, and says whether it did. When it is full, the old ones
// stay: if the newest evicted another, items that take turns would keep nothing.
func (s *remainders) keep(item ids.ID, left *remainder) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.kept[item]; has || len(s.kept) >= keptRemainders {
		return false
	}
	s.kept[item] = keptRemainder{left, s.clock.Now().Add(keptFor)}
	return true
}

// takeOut returns what the last turn left, nil: nothing. The caller owns it.
func (s *remainders) takeOut(item ids.ID) *remainder {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.kept[item].remainder
	delete(s.kept, item)
	return left
}

// shareIndex returns the index of a catalogue that another item keeps; nil: none does. Remainders
// with the index of another catalogue go, since it was replaced. So there is one index at a time.
func (s *remainders) shareIndex(catalogue ids.ID) (index *match.Index) {
	s.drop(func(k keptRemainder) bool {
		if k.matched == nil {
			return false
		}
		if k.matched.catalogue != catalogue {
			return true
		}
		index = k.matched.index
		return false
	})
	return index
}

// sweep releases what is kept of items without a turn for keptFor: they moved to another node or
// are gone.
func (s *remainders) sweep() {
	now := s.clock.Now()
	s.drop(func(k keptRemainder) bool { return !now.Before(k.until) })
}

// dropAll releases all.
func (s *remainders) dropAll() { s.drop(func(keptRemainder) bool { return true }) }

func (s *remainders) drop(whether func(keptRemainder) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for item, k := range s.kept {
		if whether(k) {
			delete(s.kept, item)
			k.close()
		}
	}
}

// close releases the disk space of sorted rows. A match has none.
func (r *remainder) close() {
	if r.rows != nil {
		_ = r.rows.Close() // read-only
	}
}

// pause releases the memory of sorted rows until the next turn.
func (r *remainder) pause() {
	if r.rows != nil {
		r.rows.Pause()
	}
}

// inTurns stores rows with store. If the turn ends, it leaves the others to the next one, which
// continues there. begin makes what the first turn needs; nil: there is nothing to store.
func (i *importing) inTurns(ctx context.Context, begin func() (*remainder, error),
	store func(*remainder) error) error {
	s, err := i.left(ctx)
	if err == nil && s == nil {
		s, err = begin()
	}
	if err != nil || s == nil {
		return err
	}
	kept := false
	defer func() {
		if !kept {
			s.close()
		}
	}()
	i.seq, i.rows = s.seq, s.stored
	err = store(s)
	if errors.Is(err, errTurn) {
		s.pause()
		s.seq, s.stored = i.seq, i.rows
		kept = i.remainders.keep(i.item.ID, s)
	}
	return err
}

// left returns what the last turn left; nil: nothing, or rows of runs that were deleted since.
func (i *importing) left(ctx context.Context) (*remainder, error) {
	s := i.remainders.takeOut(i.item.ID)
	if s == nil {
		return nil, nil
	}
	view := i.Client.View()
	for _, from := range s.from {
		scope := client.Shown(view, from.group, from.scraper)
		scope.Jobs = []ids.ID{from.run}
		held, err := i.Store.Holding(ctx, scope, 1)
		if err != nil || len(held) == 0 {
			s.close()
			return nil, err
		}
	}
	return s, nil
}
