// Package diff compares a run's rows with those of a later run: which are new, gone or changed. Its
// memory is bounded whatever the runs have. It knows no rights and no requests, and writes nothing.
//
// Rows are matched by a key: the values of some members, or else their position. The position is
// the address of the page with the place on it, or without an address the place in the run. Among
// rows with the same key, equal ones are matched first. The rest are matched in storage order. So
// the order of pages, which differs from run to run, changes nothing.
//
// A table holds rows of the older run, at most maxTable, each as two hashes and a place. For a
// longer run, the keys are divided into parts, and both runs are read once per part. Rows that
// differ are read again by their place.
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
	// maxTable is how many rows of the older run are in memory at once, 60 bytes each.
	maxTable = 1 << 18
	// partRows is how many rows a part should have, so that an uneven split cannot fill the table.
	partRows = 200_000
	// batchRows and batchBytes bound one read from the store.
	batchRows  = 1_000
	batchBytes = 1 << 20
	// heldBatches of the older run are cached: changes lie close together in both runs.
	heldBatches = 4
)

// Kind says what happened to a row.
type Kind string

// The kinds of changes.
const (
	Added   Kind = "ADDED"
	Removed Kind = "REMOVED"
	Changed Kind = "CHANGED"
)

// Values implements the API's enums.
func (Kind) Values() []string { return []string{string(Added), string(Removed), string(Changed)} }

// Change is a row that differs between the runs. Before is the older run's row, nil if it was
// added. After is the newer run's row, nil if it was removed. Fields are the members that differ in
// a changed row.
type Change struct {
	Kind          Kind
	Before, After json.RawMessage
	Fields        []string
}

// Sums count rows by what happened to them.
type Sums struct{ Added, Removed, Changed, Unchanged uint64 }

// Runs are two runs that no longer change, and how their rows are compared.
type Runs struct {
	Store    rowstore.Reads
	From, To rowstore.Scope // the older run and the newer one
	Upto     int64          // like Upto of a ScanQuery
	Key      []string       // members that identify a row; none: its position
	Fields   []string       // members that are compared; nil: all except the server's
	Rows     int64          // of the older run
	// NewerRows is how many rows the newer run has.
	NewerRows int64
	PartRows  int64 // rows of the older run per part; 0: partRows
}

// Place is where reading resumes: after Done changes of a part of the keys.
type Place struct {
	Part int `json:"p"`
	Done int `json:"d"`
}

// parts is how many parts the keys are divided into.
func (r Runs) parts() int {
	each := r.PartRows
	if each == 0 {
		each = partRows
	}
	return int(max((r.Rows+each-1)/each, 1))
}

// Between makes Runs of two scopes as they are now. They have no key yet.
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

// DefaultKey is the key of runs for which nobody has named one.
func (r Runs) DefaultKey(ctx context.Context) ([]string, error) {
	key, err := r.LikelyKey(ctx)
	if err != nil || key == "" {
		return nil, err
	}
	return []string{key}, nil
}

// Parts is how many parts the keys are divided into. Part compares one of them.
func (r Runs) Parts() int { return r.parts() }

// Part counts the rows of one part of the keys. It visits the changes of these kinds until visit
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

// of counts the changes of these kinds.
func (s Sums) of(kinds []Kind) (count uint64) {
	for kind, n := range map[Kind]uint64{Added: s.Added, Removed: s.Removed, Changed: s.Changed} {
		if slices.Contains(kinds, kind) {
			count += n
		}
	}
	return count
}

// Of says whether there are changes of these kinds.
func (s Sums) Of(kinds []Kind) bool { return s.of(kinds) > 0 }

// Add adds the counts of another part.
func (s *Sums) Add(other Sums) {
	s.Added += other.Added
	s.Removed += other.Removed
	s.Changed += other.Changed
	s.Unchanged += other.Unchanged
}

// Begin counts all rows, and returns a reader before the first change.
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

// batch is the result of one read of a run.
type batch struct {
	after int64 // the place after which it was read
	docs  []json.RawMessage
}

// read reads the rows after a place of a run, and returns the last place read.
func (r Runs) read(ctx context.Context, scope rowstore.Scope, after int64) (batch, int64, error) {
	docs, last, err := r.Store.Scan(ctx, rowstore.ScanQuery{Scope: scope, After: after,
		Upto: r.Upto, Limit: batchRows, Bytes: batchBytes})
	if err != nil {
		return batch{}, 0, fmt.Errorf("rows to compare: %w", err)
	}
	return batch{after, docs}, last, nil
}

// each visits the rows of a run in storage order.
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

// known refuses a key's member that no row has: all rows would silently match by position.
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
