// Package state owns the replicated state: one table per kind of record in a go-memdb database, and
// the sets of units of open runs (runs.go). The sets are too large and change too often for copies.
// It reads no clock, no random source and no network, and decides nothing: commands (fsm) do.
//
// All times in state are Unix milliseconds of state time: the leader's stamps, never a node's own
// clock. Money is in micros. Records that a read returned must be copied before they are changed.
package state

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/ids"
)

// Store is one node's copy of the state. Writes come from one goroutine, the state machine's; reads
// from any.
type Store struct {
	db      *memdb.MemDB
	version atomic.Uint32 // the cluster's; 0: there is no cluster yet

	// guards what follows; the state machine holds it while it applies a command
	mu         sync.RWMutex
	runs       map[ids.ID]*Run
	dispatched uint64 // number of the newest dispatch
	now        int64  // state time, Unix milliseconds
	index      uint64 // Raft index of the newest command
	sum        uint64 // over all records
	digests    []Digest
	summer     summer // the state machine's
}

// NewStore makes an empty state.
func NewStore() *Store {
	schema := &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{}}
	for _, t := range tables() {
		schema.Tables[t.name] = t.schema
	}
	db, err := memdb.NewMemDB(schema)
	if err != nil {
		// a constant schema: a programmer's slip
		panic(fmt.Sprintf("state: the schema is wrong: %v", err))
	}
	return &Store{db: db, runs: map[ids.ID]*Run{}, summer: summer{codec: codec.New()}}
}

// ReadRun shows a run's sets, which must not be changed or kept; nil when the run is closed or
// unknown.
func (s *Store) ReadRun(job ids.ID, read func(*Run)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	read(s.runs[job])
}

// Progress is the newest command's index and the state's time in Unix milliseconds.
func (s *Store) Progress() (index uint64, now int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.index, s.now
}

// OutTotal counts the seqs that are out, over all runs.
func (s *Store) OutTotal() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	total := 0
	for _, run := range s.runs {
		total += len(run.Out)
	}
	return total
}

// View is a consistent snapshot of the tables. It never changes.
type View struct{ txn *memdb.Txn }

// View takes a snapshot.
func (s *Store) View() *View { return &View{txn: s.db.Txn(false)} }

// Tx is one command's write. Tables change all at once when it is committed, or not at all. The
// sets of runs change in place, so a command refuses what it must refuse before it touches them.
type Tx struct {
	View
	store   *Store
	cluster *Cluster // as the command puts it; nil: it does not
	sum     uint64   // what the command adds to the sum over all records
	Index   uint64   // Raft index of the command
	Now     int64    // state time, Unix milliseconds
}

// Update applies one command under the store's lock: state time becomes the larger of its last
// value and stamp. When apply fails the tables stay as they were.
func (s *Store) Update(index uint64, stamp int64, apply func(*Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.now
	s.now, s.index = max(s.now, stamp), index
	if s.now/digestMillis != before/digestMillis {
		defer s.digest()
	}
	t := &Tx{View: View{txn: s.db.Txn(true)}, store: s, Index: index, Now: s.now}
	if err := apply(t); err != nil {
		t.txn.Abort()
		return err
	}
	t.txn.Commit()
	s.sum += t.sum
	if t.cluster != nil {
		s.version.Store(max(t.cluster.Version, 1))
	}
	return nil
}

// ClusterVersion is the version that all members can apply, 1 or more. Before the cluster's first
// command there is none: whoever founds it decides.
func (s *Store) ClusterVersion() (version uint32, founded bool) {
	version = s.version.Load()
	return max(version, 1), version > 0
}

// LastDispatch is the number of the newest dispatch.
func (s *Store) LastDispatch() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.dispatched
}

// Abandon tells all who watch a job that the store is replaced by another one: they look again.
// Views stay as they are.
func (s *Store) Abandon() {
	txn := s.db.Txn(true)
	defer txn.Abort()
	if _, err := txn.DeleteAll(jobsTable.name, "id_prefix"); err != nil {
		panic(fmt.Sprintf("state: abandon: %v", err)) // a programmer's slip
	}
	txn.Commit()
}

// Run is the sets of a run, to be changed in place; nil when the run is closed or unknown.
func (t *Tx) Run(job ids.ID) *Run { return t.store.runs[job] }

// AddRun keeps the sets of a new run.
func (t *Tx) AddRun(r *Run) { t.store.runs[r.Job] = r }

// DropRun forgets the sets of a closed run.
func (t *Tx) DropRun(job ids.ID) { delete(t.store.runs, job) }

// NextDispatch numbers a dispatch.
func (t *Tx) NextDispatch() uint64 {
	t.store.dispatched++
	return t.store.dispatched
}

// LastDispatch is the number of the newest dispatch.
func (t *Tx) LastDispatch() uint64 { return t.store.dispatched }

// put and remove panic on a record that does not fit its table: only a programmer's slip does that.
func (tb *table[R]) put(t *Tx, record *R) { t.insert(&tb.kind, record) }

func (tb *table[R]) remove(t *Tx, record *R) {
	t.sum -= t.stored(&tb.kind, record)
	if err := t.txn.Delete(tb.name, record); err != nil {
		panic(fmt.Sprintf("state: delete from %s: %v", tb.name, err))
	}
}

func (t *Tx) insert(k *kind, record any) {
	t.sum += t.store.summer.record(k, record) - t.stored(k, record)
	if err := t.txn.Insert(k.name, record); err != nil {
		panic(fmt.Sprintf("state: insert into %s: %v", k.name, err))
	}
}

// stored is what the record that a table has under the key of another one adds to the sum; 0: there
// is none.
func (t *Tx) stored(k *kind, record any) uint64 {
	_, key, err := k.id.FromObject(record)
	if err != nil {
		panic(fmt.Sprintf("state: key of %s: %v", k.name, err))
	}
	old, err := t.txn.First(k.name, "id", key)
	if err != nil {
		panic(fmt.Sprintf("state: read %s: %v", k.name, err))
	}
	if old == nil {
		return 0
	}
	return t.store.summer.record(k, old)
}

// first is the record under an index, nil when there is none.
func (tb *table[R]) first(v *View, index string, args ...any) *R {
	raw, err := v.txn.First(tb.name, index, args...)
	if err != nil {
		panic(fmt.Sprintf("state: read %s by %s: %v", tb.name, index, err))
	}
	if raw == nil {
		return nil
	}
	return raw.(*R)
}

// watch is first with a channel that is closed when the answer may have changed.
func (tb *table[R]) watch(v *View, index string, args ...any) (*R, <-chan struct{}) {
	ch, raw, err := v.txn.FirstWatch(tb.name, index, args...)
	if err != nil {
		panic(fmt.Sprintf("state: watch %s by %s: %v", tb.name, index, err))
	}
	if raw == nil {
		return nil, ch
	}
	return raw.(*R), ch
}

// each calls visit for the records under an index, in its order, until visit returns false.
func (tb *table[R]) each(v *View, reverse bool, visit func(*R) bool, index string, args ...any) {
	rows := tb.rows(v, reverse, index, args...)
	for raw := rows.Next(); raw != nil; raw = rows.Next() {
		if !visit(raw.(*R)) {
			return
		}
	}
}

// rows are the records under an index, in its order.
func (tb *table[R]) rows(v *View, reverse bool, index string, args ...any) memdb.ResultIterator {
	get := v.txn.Get
	if reverse {
		get = v.txn.GetReverse
	}
	rows, err := get(tb.name, index, args...)
	if err != nil {
		panic(fmt.Sprintf("state: read %s by %s: %v", tb.name, index, err))
	}
	return rows
}

// from is each for the records at and behind a key of an index.
func (tb *table[R]) from(v *View, visit func(*R) bool, index string, args ...any) {
	rows, err := v.txn.LowerBound(tb.name, index, args...)
	if err != nil {
		panic(fmt.Sprintf("state: read %s by %s: %v", tb.name, index, err))
	}
	for raw := rows.Next(); raw != nil && visit(raw.(*R)); raw = rows.Next() {
	}
}

// all collects the records under an index.
func (tb *table[R]) all(v *View, index string, args ...any) []*R {
	var list []*R
	tb.each(v, false, func(r *R) bool { list = append(list, r); return true }, index, args...)
	return list
}
