package state

import "shoal.dev/shoal/pkg/ids"

// WorkSince is the first cluster version with background work.
const WorkSince = 2

// Bounds of an item, in bytes.
const (
	MaxWorkProgress = 64 << 10
	MaxWorkError    = 500
)

// WorkState is the state of an item.
type WorkState uint8

// The states of an item. They are stored, so their numbers must stay.
const (
	WorkWaiting WorkState = 1 // until At
	WorkReady   WorkState = 2 // for a node
	WorkHeld    WorkState = 3 // by a node
	WorkFailed  WorkState = 4 // given up; it stays a while, for operators
)

// String is the state's name in metrics and lists.
func (s WorkState) String() string {
	switch s {
	case WorkWaiting:
		return "waiting"
	case WorkReady:
		return "ready"
	case WorkHeld:
		return "held"
	case WorkFailed:
		return "failed"
	}
	return "unknown"
}

// WorkStates lists all states, in the order in which an item may pass through them.
func WorkStates() []WorkState {
	return []WorkState{WorkWaiting, WorkReady, WorkHeld, WorkFailed}
}

// Work is an item of background work. Only its kind interprets Args and Progress.
type Work struct {
	ID       ids.ID    `cbor:"1,keyasint"`
	Kind     string    `cbor:"2,keyasint"`
	Customer string    `cbor:"3,keyasint,omitempty"` // "": the service's own
	Args     []byte    `cbor:"4,keyasint,omitempty"`
	Progress []byte    `cbor:"5,keyasint,omitempty"`
	State    WorkState `cbor:"6,keyasint"`
	At       int64     `cbor:"7,keyasint,omitempty"` // when it may be done
	Created  int64     `cbor:"8,keyasint"`
	// Advanced is when it last advanced: made progress, or came due after a pause it asked for.
	// Failures do not count.
	Advanced int64  `cbor:"9,keyasint"`
	Node     string `cbor:"10,keyasint,omitempty"` // its owner while it is held
	Boot     ids.ID `cbor:"11,keyasint,omitempty"` // and the start of that node
	// Epoch is the number of its holding. Reports under another number are ignored.
	Epoch    uint64 `cbor:"12,keyasint,omitempty"`
	Failures uint32 `cbor:"13,keyasint,omitempty"` // in a row, without progress
	Error    string `cbor:"14,keyasint,omitempty"` // of the newest failure
	// Cursor is the progress of the commands about the item. Unlike Progress, nodes' reports do not
	// change it.
	Cursor []byte `cbor:"15,keyasint,omitempty"`
}

var workTable = define(WorkSince, "work",
	index("id", true, func(w *Work) []any { return []any{w.ID} }),
	index("kind", true, func(w *Work) []any { return []any{w.Kind, w.Customer, w.ID} }),
	index("customer", true, func(w *Work) []any {
		if w.Customer == "" {
			return nil
		}
		return []any{w.Customer, w.ID}
	}),
	index("waiting", true, func(w *Work) []any {
		return inState(w, WorkWaiting, w.Kind, w.At, w.ID)
	}),
	index("ready", true, func(w *Work) []any {
		return inState(w, WorkReady, w.Kind, w.Customer, w.ID)
	}),
	index("held", true, func(w *Work) []any {
		return inState(w, WorkHeld, w.Kind, w.Customer, w.ID)
	}),
	index("owner", true, func(w *Work) []any { return inState(w, WorkHeld, w.Node, w.ID) }),
	index("failed", true, func(w *Work) []any { return inState(w, WorkFailed, w.At, w.ID) }),
)

func inState(w *Work, state WorkState, parts ...any) []any {
	if w.State != state {
		return nil
	}
	return parts
}

// WorkItem returns the item with an id, nil when there is none (any more).
func (v *View) WorkItem(id ids.ID) *Work { return workTable.first(v, "id", id) }

// EachWork visits all items, by id, until visit returns false.
func (v *View) EachWork(visit func(*Work) bool) { workTable.each(v, false, visit, "id_prefix") }

// WorkOf lists the items of one kind and customer.
func (v *View) WorkOf(kind, customer string) []*Work {
	return workTable.all(v, "kind_prefix", kind, customer)
}

// WorkHeldFor counts the items of one kind and customer that are held.
func (v *View) WorkHeldFor(kind, customer string) int {
	return len(workTable.all(v, "held_prefix", kind, customer))
}

// WorkHeldBy lists the items that a node holds.
func (v *View) WorkHeldBy(node string) []*Work {
	return workTable.all(v, "owner_prefix", node)
}

// WorkWaiting visits the waiting items of a kind, the next to come due first, until visit returns
// false.
func (v *View) WorkWaiting(kind string, visit func(*Work) bool) {
	workTable.each(v, false, visit, "waiting_prefix", kind)
}

// WorkFailed visits the items that were given up, the earliest first, until visit returns false.
func (v *View) WorkFailed(visit func(*Work) bool) {
	workTable.each(v, false, visit, "failed_prefix")
}

// WorkReady visits the ready items of a kind until more is false. Customers whose names follow
// after come first, by name, and each customer's items by id. If visit returns skip, the customer's
// other items are skipped.
func (v *View) WorkReady(kind, after string, visit func(*Work) (skip, more bool)) {
	if !v.readyBehind(kind, key(kind, after), true, after, visit) {
		return
	}
	v.readyBehind(kind, key(kind), false, after, visit)
}

// readyBehind visits ready items from a key on: those of the customers after name, or those up to
// it. It reports whether visit wants more.
func (v *View) readyBehind(kind string, from []byte, behind bool, name string,
	visit func(*Work) (skip, more bool)) bool {
	if behind {
		from = past(from)
	}
	for {
		var last *Work
		more, again := true, false
		workTable.from(v, func(w *Work) bool {
			if w.Kind != kind || (!behind && w.Customer > name) {
				return false
			}
			last = w
			var skip bool
			skip, more = visit(w)
			again = skip && more
			return more && !skip
		}, "ready", from)
		if !again {
			return more
		}
		from = past(key(kind, last.Customer))
	}
}

// past returns a key after all keys made of a prefix and an id.
func past(prefix []byte) []byte {
	for range len(ids.ID{}) + 1 {
		prefix = append(prefix, 0xFF)
	}
	return prefix
}

// PutWork adds or replaces an item.
func (t *Tx) PutWork(w *Work) { workTable.put(t, w) }

// RemoveWork removes an item.
func (t *Tx) RemoveWork(w *Work) { workTable.remove(t, w) }

// Worker is the lease of a node that holds work. It covers all the node's items.
type Worker struct {
	Node  string `cbor:"1,keyasint"`
	Boot  ids.ID `cbor:"2,keyasint"` // the start of the node that has the lease
	Until int64  `cbor:"3,keyasint"` // end of the lease, unless it is renewed
}

var workersTable = define(WorkSince, "workers",
	index("id", true, func(w *Worker) []any { return []any{w.Node} }),
	index("until", true, func(w *Worker) []any { return []any{w.Until, w.Node} }),
).untold()

// Worker returns a node's lease, nil when it holds no work.
func (v *View) Worker(node string) *Worker { return workersTable.first(v, "id", node) }

// WorkersByLease visits the nodes that hold work, the first lease to end first, until visit returns
// false.
func (v *View) WorkersByLease(visit func(*Worker) bool) {
	workersTable.each(v, false, visit, "until_prefix")
}

// PutWorker adds or replaces a lease.
func (t *Tx) PutWorker(w *Worker) { workersTable.put(t, w) }

// RemoveWorker removes a lease.
func (t *Tx) RemoveWorker(w *Worker) { workersTable.remove(t, w) }

// succeedWork prepares a restored table to replace the current one. Nobody holds an item, and
// epochs continue above today's.
func (f *follower) succeedWork(tx *Tx) {
	f.mine.EachWork(func(w *Work) bool {
		free := *w
		if was := f.old.WorkItem(w.ID); was != nil {
			free.Epoch = max(free.Epoch, was.Epoch)
		}
		free.Release()
		tx.PutWork(&free)
		return true
	})
	f.mine.WorkersByLease(func(w *Worker) bool { tx.RemoveWorker(w); return true })
}

// StoodStill returns for how many milliseconds, at a state time, the item has been due without
// progress. An item that rests on purpose, or was given up, returns 0.
func (w *Work) StoodStill(now int64) int64 {
	if w.State == WorkFailed || w.State == WorkWaiting && w.Failures == 0 && w.At > now {
		return 0
	}
	since := w.Advanced
	if w.Failures == 0 {
		since = max(since, w.At)
	}
	return max(now-since, 0)
}

// WorkStoodStill returns, by kind, the longest StoodStill of the kind's items. An item that waits
// for its turn, and has never failed, counts no longer than since the kind's newest progress.
func (v *View) WorkStoodStill(now int64) map[string]int64 {
	moved := map[string]int64{} // newest progress of an item that was ever held
	waits, longest := map[string]int64{}, map[string]int64{}
	v.EachWork(func(w *Work) bool {
		if w.Epoch > 0 && w.State != WorkFailed {
			moved[w.Kind] = max(moved[w.Kind], w.Advanced)
		}
		of := longest
		if w.State == WorkReady && w.Failures == 0 {
			of = waits
		}
		of[w.Kind] = max(of[w.Kind], w.StoodStill(now))
		return true
	})
	for kind, stood := range waits {
		if at := moved[kind]; at > 0 {
			stood = min(stood, max(now-at, 0))
		}
		longest[kind] = max(longest[kind], stood)
	}
	return longest
}

// Release takes the item from its owner, if any, so that any node may hold it next.
func (w *Work) Release() {
	if w.State == WorkHeld {
		w.State = WorkReady
	}
	w.Node, w.Boot = "", ids.ID{}
}
