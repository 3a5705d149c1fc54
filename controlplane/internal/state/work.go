package state

import "shoal.dev/shoal/pkg/ids"

// WorkSince is the version of the cluster that has the table of work.
const WorkSince = 2

// Bounds of an item, in bytes.
const (
	MaxWorkProgress = 64 << 10
	MaxWorkError    = 500
)

// WorkState says what becomes of an item next.
type WorkState uint8

// The states of an item. They are stored, so their numbers stay.
const (
	WorkWaiting WorkState = 1 // until At
	WorkReady   WorkState = 2 // for a node
	WorkHeld    WorkState = 3 // by a node
	WorkFailed  WorkState = 4 // given up; it stays a while, for people
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

// WorkStates are all states, in the order in which an item may pass them.
func WorkStates() []WorkState {
	return []WorkState{WorkWaiting, WorkReady, WorkHeld, WorkFailed}
}

// Work is an item of background work. What Args and Progress mean is its kind's alone.
type Work struct {
	ID       ids.ID    `cbor:"1,keyasint"`
	Kind     string    `cbor:"2,keyasint"`
	Customer string    `cbor:"3,keyasint,omitempty"` // "": the service's own
	Args     []byte    `cbor:"4,keyasint,omitempty"`
	Progress []byte    `cbor:"5,keyasint,omitempty"`
	State    WorkState `cbor:"6,keyasint"`
	At       int64     `cbor:"7,keyasint,omitempty"` // since when it may be done
	Created  int64     `cbor:"8,keyasint"`
	// Advanced is when it last came on: by progress, or by coming due after a pause that it asked
	// for. Failures do not move it.
	Advanced int64  `cbor:"9,keyasint"`
	Node     string `cbor:"10,keyasint,omitempty"` // its owner while it is held
	Boot     ids.ID `cbor:"11,keyasint,omitempty"` // and the start of that node
	// Epoch is the number of its holding. What is reported under another one changes nothing.
	Epoch    uint64 `cbor:"12,keyasint,omitempty"`
	Failures uint32 `cbor:"13,keyasint,omitempty"` // in a row, without progress
	Error    string `cbor:"14,keyasint,omitempty"` // of the newest failure
	// Cursor is how far the commands have come that name the item. Unlike Progress no node's report
	// changes it.
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

// WorkItem is nil for an item that there is not, or not any more.
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

// WorkFailed visits the items that were given up, those of long ago first, until visit returns
// false.
func (v *View) WorkFailed(visit func(*Work) bool) {
	workTable.each(v, false, visit, "failed_prefix")
}

// WorkReady visits the ready items of a kind until visit returns false: the customers behind after
// first, by name, and each customer's items by id. What visit returns as skip passes over the rest
// of that customer's.
func (v *View) WorkReady(kind, after string, visit func(*Work) (skip, more bool)) {
	if !v.readyBehind(kind, key(kind, after), true, after, visit) {
		return
	}
	v.readyBehind(kind, key(kind), false, after, visit)
}

// readyBehind visits ready items from a key on: those of the customers behind a name, or those up
// to it. It says whether visit wants more.
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

// past is a key behind all that a prefix and an id make.
func past(prefix []byte) []byte {
	for range len(ids.ID{}) + 1 {
		prefix = append(prefix, 0xFF)
	}
	return prefix
}

// PutWork adds or replaces.
func (t *Tx) PutWork(w *Work) { workTable.put(t, w) }

// RemoveWork removes.
func (t *Tx) RemoveWork(w *Work) { workTable.remove(t, w) }

// Worker is the lease of a node that holds work: one for all its items.
type Worker struct {
	Node  string `cbor:"1,keyasint"`
	Boot  ids.ID `cbor:"2,keyasint"` // the start of it whose lease it is
	Until int64  `cbor:"3,keyasint"` // then the lease ends, unless it is renewed
}

var workersTable = define(WorkSince, "workers",
	index("id", true, func(w *Worker) []any { return []any{w.Node} }),
	index("until", true, func(w *Worker) []any { return []any{w.Until, w.Node} }),
).untold()

// Worker is nil for a node that holds no work.
func (v *View) Worker(node string) *Worker { return workersTable.first(v, "id", node) }

// WorkersByLease visits the nodes that hold work, those whose leases end first before others, until
// visit returns false.
func (v *View) WorkersByLease(visit func(*Worker) bool) {
	workersTable.each(v, false, visit, "until_prefix")
}

// PutWorker adds or replaces.
func (t *Tx) PutWorker(w *Worker) { workersTable.put(t, w) }

// RemoveWorker removes.
func (t *Tx) RemoveWorker(w *Worker) { workersTable.remove(t, w) }

// succeedWork makes a restored table fit to follow another one: nobody holds anything, and no
// holding of before has the number of one to come.
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

// StoodStill is for how many milliseconds, at a state time, the item has been due and made no
// progress. One that rests by its own wish, or was given up, stands still for none.
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

// WorkStoodStill is for how many milliseconds, at a state time, the item of each kind has stood
// still that has done so longest. One that waits for its turn, and has never failed, stands still
// no longer than those of its kind that were held before.
func (v *View) WorkStoodStill(now int64) map[string]int64 {
	moved := map[string]int64{} // when an item that was held got on last
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

// Release takes the item from its owner, if it has one: any node may hold it next.
func (w *Work) Release() {
	if w.State == WorkHeld {
		w.State = WorkReady
	}
	w.Node, w.Boot = "", ids.ID{}
}
