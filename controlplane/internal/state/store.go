// Package state owns the replicated state: one table per kind of record in a go-memdb database, and the sets of units of
// runs that are not closed (runs.go), which are too large and change too often for copies. It reads no clock, no random
// source and no network, and decides nothing: commands (fsm) do.
package state

import (
	"fmt"
	"sync"

	"github.com/hashicorp/go-memdb"

	"shoal.dev/shoal/pkg/ids"
)

// Store is one node's copy of the state. Writes come from one goroutine, the state machine's; reads from any.
type Store struct {
	db   *memdb.MemDB
	mu   sync.RWMutex // guards runs and the sets behind them
	runs map[ids.ID]*Run
}

// NewStore makes an empty state.
func NewStore() *Store {
	tables := map[string]*memdb.TableSchema{}
	for _, t := range tableList() {
		tables[t.Name] = t
	}
	db, err := memdb.NewMemDB(&memdb.DBSchema{Tables: tables})
	if err != nil {
		panic(fmt.Sprintf("state: the schema is wrong: %v", err)) // a constant schema: a programmer's slip
	}
	return &Store{db: db, runs: map[ids.ID]*Run{}}
}

// View is a consistent snapshot of the tables. It never changes.
type View struct{ txn *memdb.Txn }

// View takes a snapshot.
func (s *Store) View() *View { return &View{txn: s.db.Txn(false)} }

// Tx is a write to the tables: all of it or nothing is seen.
type Tx struct {
	View
	store *Store
}

// Begin starts a write. The caller ends it with Commit or Abort.
func (s *Store) Begin() *Tx { return &Tx{View: View{txn: s.db.Txn(true)}, store: s} }

// Commit makes the write visible.
func (t *Tx) Commit() { t.txn.Commit() }

// Abort drops the write.
func (t *Tx) Abort() { t.txn.Abort() }

// put and remove panic on a record that does not fit its table: only a programmer's slip does that.
func put[R any](t *Tx, table string, record *R) {
	if err := t.txn.Insert(table, record); err != nil {
		panic(fmt.Sprintf("state: insert into %s: %v", table, err))
	}
}

func remove[R any](t *Tx, table string, record *R) {
	if err := t.txn.Delete(table, record); err != nil {
		panic(fmt.Sprintf("state: delete from %s: %v", table, err))
	}
}

// first is the record under an index, nil when there is none.
func first[R any](v *View, table, index string, args ...any) *R {
	raw, err := v.txn.First(table, index, args...)
	if err != nil {
		panic(fmt.Sprintf("state: read %s by %s: %v", table, index, err))
	}
	if raw == nil {
		return nil
	}
	return raw.(*R)
}

// watch is first with a channel that is closed when the answer may have changed.
func watch[R any](v *View, table, index string, args ...any) (*R, <-chan struct{}) {
	ch, raw, err := v.txn.FirstWatch(table, index, args...)
	if err != nil {
		panic(fmt.Sprintf("state: watch %s by %s: %v", table, index, err))
	}
	if raw == nil {
		return nil, ch
	}
	return raw.(*R), ch
}

// each calls visit for the records under an index, in its order, until visit returns false.
func each[R any](v *View, reverse bool, visit func(*R) bool, table, index string, args ...any) {
	get := v.txn.Get
	if reverse {
		get = v.txn.GetReverse
	}
	rows, err := get(table, index, args...)
	if err != nil {
		panic(fmt.Sprintf("state: read %s by %s: %v", table, index, err))
	}
	for raw := rows.Next(); raw != nil; raw = rows.Next() {
		if !visit(raw.(*R)) {
			return
		}
	}
}

// all collects the records under an index.
func all[R any](v *View, table, index string, args ...any) []*R {
	var list []*R
	each(v, false, func(r *R) bool { list = append(list, r); return true }, table, index, args...)
	return list
}
