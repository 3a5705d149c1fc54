// Package diff owns what became of a run's rows in a later run: which are new, gone or changed. Its
// memory is bounded whatever the runs have. It knows no rights and no request, and writes nothing.
//
// Rows are the same one by a key: the values of some members, or else their position. That is the
// address of their page and their place on it, or without an address their place in the run. Of
// rows under one key those that are equal belong together, then the others in the order in which
// they were stored. So the order of pages, which is another one in each run, changes nothing.
//
// A table has the rows of the older run as two hashes and a place each, at most maxTable. The keys
// of a longer run are divided into parts, and both runs are read once for each. Rows that differ
// are read again by their place.
package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	// maxTable rows of the older run are in memory at once, 60 bytes each.
	maxTable = 1 << 18
	// partRows of them are aimed at, so that no chance fills the table.
	partRows = 200_000
	// batchRows and batchBytes are read of the store at once.
	batchRows  = 1_000
	batchBytes = 1 << 20
	// heldBatches of the older run are kept: what changed lies close together in both runs.
	heldBatches = 4
)

// Kind says what became of a row.
type Kind string

// The kinds.
const (
	Added   Kind = "ADDED"
	Removed Kind = "REMOVED"
	Changed Kind = "CHANGED"
)

// Values implements the API's enums.
func (Kind) Values() []string { return []string{string(Added), string(Removed), string(Changed)} }

// Change is a row that the runs do not have alike. Before is what the older run has, nil of one
// that was added. After is what the newer run has, nil of one that was removed. Fields are the
// members that differ, of one that has changed.
type Change struct {
	Kind          Kind
	Before, After json.RawMessage
	Fields        []string
}

// Sums count rows by what became of them.
type Sums struct{ Added, Removed, Changed, Unchanged uint64 }

// Runs are two runs that do not change any more, and how their rows are compared.
type Runs struct {
	Store    rowstore.Reads
	From, To rowstore.Scope // the older run and the newer one
	Upto     int64          // as that of a ScanQuery
	Key      []string       // members that rows are the same one by; none: their position
	Fields   []string       // members that are compared; nil: all but the server's
	Rows     int64          // that the older run has
	// NewerRows are those of the newer run.
	NewerRows int64
	PartRows  int64 // of the older run in a part; 0: as the package has it
}

// Place is behind how many changes of a part of the keys a read goes on.
type Place struct {
	Part int `json:"p"`
	Done int `json:"d"`
}

// parts is into how many the keys are divided.
func (r Runs) parts() int {
	each := r.PartRows
	if each == 0 {
		each = partRows
	}
	return int(max((r.Rows+each-1)/each, 1))
}

// Between are two runs by what may be seen of them, as they are now. They have no key yet.
func Between(ctx context.Context, store rowstore.Reads, from, to rowstore.Scope) (runs Runs,
	err error) {
	runs = Runs{Store: store, From: from, To: to}
	if runs.Upto, err = store.Horizon(ctx); err != nil {
		return runs, fmt.Errorf("rows to compare: %w", err)
	}
	for scope, count := range map[*rowstore.Scope]*int64{&runs.From: &runs.Rows,
		&runs.To: &runs.NewerRows} {
		if *count, err = store.Count(ctx, *scope, nil); err != nil {
			return runs, fmt.Errorf("rows to compare: %w", err)
		}
	}
	return runs, nil
}

// DefaultKey is the key of runs of which nobody has said one.
func (r Runs) DefaultKey(ctx context.Context) ([]string, error) {
	key, err := r.LikelyKey(ctx)
	if err != nil || key == "" {
		return nil, err
	}
	return []string{key}, nil
}

// Parts is into how many parts the keys are divided, each of which Part compares.
func (r Runs) Parts() int { return r.parts() }

// Part counts the rows of one part of the keys, and visits its changes of some kinds until visit
// returns false.
func (r Runs) Part(ctx context.Context, part int, of []Kind, visit func(*Change) bool) (Sums,
	error) {
	reader := r.Read(Place{Part: part})
	if err := reader.openPart(ctx); err != nil {
		return Sums{}, err
	}
	left := reader.sums.of(of)
	for left > 0 {
		change, before, err := reader.look(ctx)
		if err != nil {
			return Sums{}, err
		}
		if change.Kind == "" {
			break
		}
		if !slices.Contains(of, change.Kind) {
			continue
		}
		left--
		found, err := reader.whole(ctx, change, before)
		if err != nil {
			return Sums{}, err
		}
		if !visit(found) {
			break
		}
	}
	return reader.sums, nil
}

// of counts the changes of some kinds.
func (s Sums) of(kinds []Kind) (count uint64) {
	for kind, n := range map[Kind]uint64{Added: s.Added, Removed: s.Removed, Changed: s.Changed} {
		if slices.Contains(kinds, kind) {
			count += n
		}
	}
	return count
}

// Of says whether there are changes of some kinds.
func (s Sums) Of(kinds []Kind) bool { return s.of(kinds) > 0 }

// Add adds what another part counted.
func (s *Sums) Add(other Sums) {
	s.Added += other.Added
	s.Removed += other.Removed
	s.Changed += other.Changed
	s.Unchanged += other.Unchanged
}

// Begin counts all rows, and is before the first change.
func (r Runs) Begin(ctx context.Context) (*Reader, Sums, error) {
	reader := r.Read(Place{})
	if r.parts() > 1 {
		sums, err := r.Sum(ctx)
		return reader, sums, err
	}
	err := reader.openPart(ctx)
	return reader, reader.sums, err
}

// Sum counts all rows.
func (r Runs) Sum(ctx context.Context) (all Sums, err error) {
	for part := range r.parts() {
		_, sums, err := r.fill(ctx, part)
		if err != nil {
			return all, err
		}
		all.Add(sums)
	}
	return all, nil
}

// batch is what one look at a run has read.
type batch struct {
	after int64 // the place before it
	docs  []json.RawMessage
}

// read reads what stands behind a place of a run, and the place behind that.
func (r Runs) read(ctx context.Context, scope rowstore.Scope, after int64) (batch, int64, error) {
	docs, last, err := r.Store.Scan(ctx, rowstore.ScanQuery{Scope: scope, After: after,
		Upto: r.Upto, Limit: batchRows, Bytes: batchBytes})
	if err != nil {
		return batch{}, 0, fmt.Errorf("rows to compare: %w", err)
	}
	return batch{after, docs}, last, nil
}

// each visits the rows of a run in the order in which they were stored.
func (r Runs) each(ctx context.Context, scope rowstore.Scope,
	visit func(b batch, n int) error) error {
	for after := int64(0); after < r.Upto; {
		b, last, err := r.read(ctx, scope, after)
		if err != nil {
			return err
		}
		for n := range b.docs {
			if err := visit(b, n); err != nil {
				return err
			}
		}
		after = last
	}
	return nil
}

// known refuses a member of the key that no row has: all rows would silently go by their position.
func (r Runs) known(older, newer *hasher) error {
	for i, member := range r.Key {
		if !older.has[i] && !newer.has[i] && older.number+newer.number > 0 {
			return fault.Invalid(fault.InvalidRequest, "key", "no row of the runs has the field %q",
				member)
		}
	}
	return nil
}

// fill makes the table of a part, and compares the newer run with it.
func (r Runs) fill(ctx context.Context, part int) (*table, Sums, error) {
	t, h := &table{}, r.hasher(part)
	err := r.each(ctx, r.From, func(b batch, n int) error {
		row, of := h.row(b.docs[n])
		if !of {
			return nil
		}
		return t.add(row, b.after, n)
	})
	if err != nil {
		return nil, Sums{}, err
	}
	t.sort()
	added, newer := uint64(0), r.hasher(part)
	err = r.each(ctx, r.To, func(b batch, n int) error {
		if row, of := newer.row(b.docs[n]); of && !t.match(row) {
			added++
		}
		return nil
	})
	if err == nil && (int64(h.number) < r.Rows || int64(newer.number) < r.NewerRows) {
		err = export.RowsRemoved()
	}
	if err == nil {
		err = r.known(h, newer)
	}
	if err != nil {
		return nil, Sums{}, err
	}
	sums := t.countRows()
	sums.Added += added
	return t, sums, nil
}
