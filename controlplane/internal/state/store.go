// Package state owns the replicated state. Each kind of record has a table, in B-trees. A view
// keeps the tables as they were at its moment. Beside the tables are the sets of units of open runs
// (runs.go), which are too large and change too often for copies. The package reads no clock, no
// random source and no network. It makes no decisions: commands (fsm) do.
//
// All times in state are Unix milliseconds of state time: the leader's stamps, never a node's own
// clock. Money is in micros. Copy a record that a read returned before you change it.
package state

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"shoal.dev/shoal/pkg/ids"
)

// Store is one node's copy of the state. Only the state machine's goroutine writes it; any
// goroutine may read it.
type Store struct {
	tables  atomic.Pointer[[]*content]
	version atomic.Uint32 // the cluster's; 0: there is no cluster yet

	// mu guards what follows; the state machine holds it while it applies a command
	mu         sync.RWMutex
	runs       map[ids.ID]*Run
	dispatched uint64 // number of the newest dispatch
	now        int64  // state time, Unix milliseconds
	index      uint64 // Raft index of the newest command
	sum        uint64 // over all records
	digests    []Digest
	summer     summer // used only by the state machine

	followers followers
}

// NewStore makes an empty state.
func NewStore() *Store {
	s := &Store{runs: map[ids.ID]*Run{}, summer: newSummer(),
		followers: newFollowers()}
	var all []*content
	for _, k := range tables() {
		all = append(all, newContent(k))
	}
	s.tables.Store(&all)
	return s
}

// ReadRun passes a run's sets to read, which must not change or keep them. They are nil when the
// run is closed or unknown.
func (s *Store) ReadRun(job ids.ID, read func(*Run)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	read(s.runs[job])
}

// Progress returns the newest command's index and the state time in Unix milliseconds.
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
type View struct{ tables []*content }

// View takes a snapshot.
func (s *Store) View() *View { return &View{*s.tables.Load()} }

// Tx is one command's write. Its changes to tables are committed together or not at all. The sets
// of runs change in place, so a command must not touch them before all checks have passed.
type Tx struct {
	View
	store   *Store
	changed []*watcher // to be fired once the command is visible
	touches []touching // what followers are told then
	cluster *Cluster   // set by the command; nil: unchanged
	sum     uint64     // what the command adds to the sum over all records
	ended   []ids.ID   // runs that the command ends
	// for the audit trail
	actor   *Actor
	byAdmin bool
	notes   notes

	Index uint64 // Raft index of the command
	Now   int64  // state time, Unix milliseconds
}

// Update applies one command under the store's lock. State time becomes the larger of its old value
// and stamp. If apply fails, the tables stay as they were.
func (s *Store) Update(index uint64, stamp int64, apply func(*Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.now
	s.now, s.index = max(s.now, stamp), index
	defer s.followers.passed(index, s.now)
	if s.now/digestMillis != before/digestMillis {
		defer s.digest()
	}
	t := s.beginTx(index)
	if err := apply(t); err != nil {
		return err
	}
	t.commit()
	if t.cluster != nil {
		s.version.Store(max(t.cluster.Version, 1))
	}
	return nil
}

// beginTx starts a command's write. Nothing of it is visible before commit.
func (s *Store) beginTx(index uint64) *Tx {
	return &Tx{View: View{slices.Clone(*s.tables.Load())}, store: s, Index: index, Now: s.now}
}

// commit makes the command's changes visible.
func (t *Tx) commit() {
	for _, c := range t.tables {
		if c.mine != nil { // else others read c: even writing nil is a race
			c.mine = nil
		}
	}
	seen := t.tables // a copy, so that nothing keeps the rest of the Tx in memory
	t.store.tables.Store(&seen)
	t.store.sum += t.sum
	for _, w := range t.changed {
		w.fire()
	}
	t.store.followers.tell(t.touches, t.Index)
}

// own returns a table's content, which the command may change.
func (t *Tx) own(k *kind) *content {
	c := contentOf(t.tables, k)
	if c.mine == nil {
		mine := *c
		mine.trees, mine.mine = slices.Clone(c.trees), make([]bool, len(c.trees))
		t.tables[slices.Index(t.tables, c)] = &mine
		c = &mine
	}
	return c
}

// ClusterVersion returns the version that all members can apply, 1 or more. founded is false before
// the cluster's first command, whose proposer chooses the version.
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

// Abandon wakes all who watch a record or follow a customer, since another store replaces this one.
// Views stay as they are.
func (s *Store) Abandon() {
	s.followers.abandon()
	for _, c := range *s.tables.Load() {
		if c.kind.watched {
			c.added.fire()
			scan(c.trees[len(c.kind.indexes)], "", false,
				func(w any) bool { w.(*watcher).fire(); return true })
		}
	}
}

// Run returns a run's sets, to be changed in place; nil when the run is closed or unknown.
func (t *Tx) Run(job ids.ID) *Run { return t.store.runs[job] }

// AddRun adds the sets of a new run.
func (t *Tx) AddRun(r *Run) { t.store.runs[r.Job] = r }

// DropRun removes the sets of a closed run.
func (t *Tx) DropRun(job ids.ID) { delete(t.store.runs, job) }

// NextDispatch returns the next dispatch number.
func (t *Tx) NextDispatch() uint64 {
	t.store.dispatched++
	return t.store.dispatched
}

// LastDispatch is the number of the newest dispatch.
func (t *Tx) LastDispatch() uint64 { return t.store.dispatched }

func (tb *table[R]) put(t *Tx, record *R) { t.insert(&tb.kind, record) }

// remove panics when there is no such record, which only a programmer's slip can cause.
func (tb *table[R]) remove(t *Tx, record *R) {
	c := t.own(&tb.kind)
	old := c.remove(record)
	if old == nil {
		panic(fmt.Sprintf("state: %s has no such record to remove", tb.name))
	}
	t.sum -= t.store.summer.record(&tb.kind, old)
	t.note(c, tb.key(tb.id, record), false)
	t.noteChange(&tb.kind, old, nil)
}

func (t *Tx) insert(k *kind, record any) {
	c, keys := t.own(k), k.keys(record)
	old := c.put(record, keys)
	if old != nil {
		t.sum -= t.store.summer.record(k, old)
	}
	t.sum += t.store.summer.record(k, record)
	t.noteChange(k, old, record)
	t.touched(k, record)
	t.note(c, keys[k.id], true)
}

// note collects the watchers of a changed record.
func (t *Tx) note(c *content, id string, there bool) {
	if c.kind.watched {
		t.changed = append(t.changed, c.rewatch(id, there))
	}
}

// first returns the first record under an index, nil when there is none.
func (tb *table[R]) first(v *View, index string, args ...any) *R {
	c := contentOf(v.tables, &tb.kind)
	at, whole := tb.find(index)
	wanted := string(key(args...))
	if whole {
		if found, is := c.trees[at].Get(item{key: wanted}); is {
			return found.record.(*R)
		}
		return nil
	}
	var found *R
	scan(c.trees[at], wanted, false,
		func(record any) bool { found = record.(*R); return false })
	return found
}

// has reports whether the view has a record with the id of this one.
func (v *View) has(k *kind, record any) bool {
	_, is := contentOf(v.tables, k).trees[k.id].Get(item{key: k.key(k.id, record)})
	return is
}

// watch returns the record with an id, and a channel that is closed when it may have changed.
func (tb *table[R]) watch(v *View, id any) (*R, <-chan struct{}) {
	return tb.first(v, "id", id),
		contentOf(v.tables, &tb.kind).watcherOf(string(key(id))).watch()
}

// each visits the records under an index, in its order, until visit returns false.
func (tb *table[R]) each(v *View, reverse bool, visit func(*R) bool, index string, args ...any) {
	at, whole := tb.find(index)
	if whole {
		if found := tb.first(v, index, args...); found != nil {
			visit(found)
		}
		return
	}
	scan(contentOf(v.tables, &tb.kind).read(at), string(key(args...)), reverse,
		func(record any) bool { return visit(record.(*R)) })
}

// count returns the number of records in an index.
func (tb *table[R]) count(v *View, index string) int {
	at, _ := tb.find(index)
	return contentOf(v.tables, &tb.kind).trees[at].Len()
}

// backwards reads the records whose keys in an index begin with args, the last one first.
func (tb *table[R]) backwards(v *View, index string, args ...any) *cursor {
	at, _ := tb.find(index)
	return &cursor{from: contentOf(v.tables, &tb.kind).read(at), prefix: string(key(args...))}
}

// from visits the records from a key of an index on, until visit returns false.
func (tb *table[R]) from(v *View, visit func(*R) bool, index string, args ...any) {
	at, _ := tb.find(index)
	contentOf(v.tables, &tb.kind).read(at).AscendGreaterOrEqual(
		item{key: string(key(args...))}, func(i item) bool { return visit(i.record.(*R)) })
}

// all collects the records under an index.
func (tb *table[R]) all(v *View, index string, args ...any) []*R {
	var list []*R
	tb.each(v, false, func(r *R) bool { list = append(list, r); return true }, index, args...)
	return list
}
