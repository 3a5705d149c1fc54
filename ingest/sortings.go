package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

const (
	keptSortings = 2                // per kind, besides those of running steps
	keptFor      = 30 * time.Minute // without a turn of the item
)

// sorting is what one turn leaves for the next: sorted rows, how far they are stored, and the state
// between two rows.
type sorting struct {
	rows   *sorter
	merged *merging // of a merge
	from   []source // of the rows
	seq    uint32   // of the next batch
	stored uint64   // rows
}

// source is a run whose rows were read.
type source struct{ group, scraper, run ids.ID }

// sortings keeps sorted rows between the turns of their items, so that a node sorts them once per
// item. It bounds how many it keeps. Their files are unlinked, so a process that dies leaves
// nothing. An item whose rows are not kept sorts them again, with the same result.
type sortings struct {
	clock clock.Clock

	mu   sync.Mutex
	kept map[ids.ID]keptSorting
}

type keptSorting struct {
	*sorting
	until time.Time
}

func newSortings(c clock.Clock) *sortings {
	return &sortings{clock: c, kept: map[ids.ID]keptSorting{}}
}

// keep keeps what an item's turn leaves, and says whether it did. When it is full, the old ones
// stay: if the newest evicted another, items that take turns would keep nothing.
func (s *sortings) keep(item ids.ID, left *sorting) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.kept[item]; has || len(s.kept) >= keptSortings {
		return false
	}
	s.kept[item] = keptSorting{left, s.clock.Now().Add(keptFor)}
	return true
}

// takeOut returns what the last turn left, nil: nothing. The caller owns it.
func (s *sortings) takeOut(item ids.ID) *sorting {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.kept[item].sorting
	delete(s.kept, item)
	return left
}

// sweep releases the disk space of items without a turn for keptFor: they moved to another node or
// are gone.
func (s *sortings) sweep() {
	now := s.clock.Now()
	s.drop(func(k keptSorting) bool { return !now.Before(k.until) })
}

// dropAll releases the disk space of all.
func (s *sortings) dropAll() { s.drop(func(keptSorting) bool { return true }) }

func (s *sortings) drop(whether func(keptSorting) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for item, k := range s.kept {
		if whether(k) {
			delete(s.kept, item)
			k.close()
		}
	}
}

// close releases the disk space.
func (s *sorting) close() { _ = s.rows.Close() } // read-only

// inTurns stores sorted rows with store. If the turn ends, it leaves them to the next one, which
// continues there. sort makes them if none are left; nil: there is nothing to store.
func (i *importing) inTurns(ctx context.Context, sort func() (*sorting, error),
	store func(*sorting) error) error {
	s, err := i.left(ctx)
	if err == nil && s == nil {
		s, err = sort()
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
		s.rows.Pause()
		s.seq, s.stored = i.seq, i.rows
		kept = i.sortings.keep(i.item.ID, s)
	}
	return err
}

// left returns what the last turn left; nil: nothing, or rows of runs that were deleted since.
func (i *importing) left(ctx context.Context) (*sorting, error) {
	s := i.sortings.takeOut(i.item.ID)
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
