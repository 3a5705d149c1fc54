package state

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/wake"
)

// Bounds of the changes remembered for followers. Where there is no room the oldest is forgotten,
// and a follower that has not taken it is told.
const (
	maxTouchedOfOne = 2_048   // things per customer
	maxTouched      = 100_000 // things of all customers
	// recalledMillis is how long, in state time, a trail is kept after its last follower has ended,
	// for a follower that comes back.
	recalledMillis = 60_000
)

// Touched is the kind of a changed thing.
type Touched uint8

// The kinds.
const (
	TouchedJob Touched = iota + 1
	TouchedWallet
	TouchedTopUp
	TouchedNotice
)

// Touch names a changed thing of a customer. A view has its current value.
type Touch struct {
	What    Touched
	ID      ids.ID // of a run or a notice
	Session string // of a top-up
}

// touching is a touch and its customer.
type touching struct {
	customer string
	all      bool // every customer is touched
	touch    Touch
}

// followed makes changes of the table's records known to the followers of a customer.
func (tb *table[R]) followed(touch func(*R) (customer string, what Touch)) *table[R] {
	tb.touch = func(record any) touching {
		customer, what := touch(record.(*R))
		return touching{customer: customer, touch: what}
	}
	return tb
}

// followedByAll makes a change of the table's records a change of one thing of every customer.
func (tb *table[R]) followedByAll(what Touch) *table[R] {
	tb.touch = func(any) touching { return touching{all: true, touch: what} }
	return tb
}

// touched notes that a record was added or replaced. It costs one atomic load while nobody follows
// anybody.
func (t *Tx) touched(k *kind, record any) {
	if k.touch != nil && t.store.followers.any.Load() {
		t.touches = append(t.touches, k.touch(record))
	}
}

// touch notes a change of a customer's thing that is not a record.
func (t *Tx) touch(customer string, what Touch) {
	if t.store.followers.any.Load() {
		t.touches = append(t.touches, touching{customer: customer, touch: what})
	}
}

// followers holds the trails of the followed customers.
type followers struct {
	any atomic.Bool // at least one trail exists

	mu      sync.Mutex
	trails  map[string]*trail
	touched int                   // things in all trails
	idle    *list.List            // trails without a follower, idle the longest first
	ahead   map[*Following]uint64 // followers that wait for an index
	gone    bool                  // the store was replaced
}

func newFollowers() followers {
	return followers{trails: map[string]*trail{}, idle: list.New(), ahead: map[*Following]uint64{}}
}

// trail lists what changed of a customer, each thing once, at its newest change.
type trail struct {
	customer  string
	from      uint64     // changes after this index are complete
	steps     *list.List // the oldest first
	of        map[Touch]*list.Element
	followers []*Following
	idle      *list.Element // nil while it has followers
	left      int64         // state time at the end of its last follower
}

type step struct {
	touch Touch
	index uint64
}

// Following is one follower of a customer. Only one goroutine may use it.
type Following struct {
	store   *Store
	trail   *trail
	woken   wake.Signal   // holds a value when something has changed
	reached chan struct{} // closed when the state has reached the follower's index
	last    uint64        // changes up to this index were taken
}

// Follow begins to follow a customer. If behind is 0 it begins now, else after the index behind, up
// to which the follower knows everything. The caller must call End.
func (s *Store) Follow(customer string, behind uint64) *Following {
	s.mu.RLock() // between two commands
	defer s.mu.RUnlock()
	f := &Following{store: s, woken: wake.NewSignal(), reached: make(chan struct{}),
		last: behind}
	if behind == 0 {
		f.last = s.index
	}
	all := &s.followers
	all.mu.Lock()
	defer all.mu.Unlock()
	f.trail = all.trails[customer]
	if f.trail == nil {
		f.trail = &trail{customer: customer, from: s.index, steps: list.New(),
			of: map[Touch]*list.Element{}}
		all.trails[customer] = f.trail
		all.any.Store(true)
	}
	if f.trail.idle != nil {
		all.idle.Remove(f.trail.idle)
		f.trail.idle = nil
	}
	f.trail.followers = append(f.trail.followers, f)
	f.woken.Raise() // so that it looks right away
	if f.last > s.index && !all.gone {
		all.ahead[f] = f.last
	} else {
		close(f.reached)
	}
	return f
}

// Customer is the followed customer.
func (f *Following) Customer() string { return f.trail.customer }

// Woken receives a value when there may be changes to take.
func (f *Following) Woken() <-chan struct{} { return f.woken }

// Reached is closed once the state has reached the index at which the following began, or is
// replaced.
func (f *Following) Reached() <-chan struct{} { return f.reached }

// Taken is what a follower has not taken before.
type Taken struct {
	Index   uint64  // changes up to it are included
	Touches []Touch // in the order of their newest changes
	View    *View   // at Index or later
	// Missed: some changes were forgotten, or the follower is ahead of this state.
	Missed bool
	// Over: another state has replaced this one. The follower must Follow there.
	Over bool
}

// TakeChanges returns what changed since the last call.
func (f *Following) TakeChanges() Taken {
	index, _ := f.store.Progress() // the trails are complete up to it
	all := &f.store.followers
	all.mu.Lock()
	defer all.mu.Unlock()
	t := Taken{Index: index, View: f.store.View(), Over: all.gone,
		Missed: f.last > index || f.last < f.trail.from}
	if !t.Missed && !t.Over {
		for e := f.trail.steps.Back(); e != nil && e.Value.(step).index > f.last; e = e.Prev() {
			if s := e.Value.(step); s.index <= index {
				t.Touches = append(t.Touches, s.touch)
			}
		}
		slices.Reverse(t.Touches)
	}
	f.last = index
	return t
}

// End ends the following.
func (f *Following) End() {
	_, now := f.store.Progress()
	all := &f.store.followers
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.ahead, f)
	at := slices.Index(f.trail.followers, f)
	if at < 0 {
		return // it has ended already
	}
	f.trail.followers = slices.Delete(f.trail.followers, at, at+1)
	if len(f.trail.followers) == 0 {
		f.trail.left, f.trail.idle = now, all.idle.PushBack(f.trail)
	}
}

// tell records what a command has touched, and wakes the followers.
func (all *followers) tell(touches []touching, index uint64) {
	if len(touches) == 0 {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, t := range touches {
		if t.all {
			for _, trail := range slices.Collect(maps.Values(all.trails)) {
				if all.trails[trail.customer] == trail { // making room may have dropped it
					all.note(trail, t.touch, index)
				}
			}
		} else if trail := all.trails[t.customer]; trail != nil {
			all.note(trail, t.touch, index)
		}
	}
}

// note records in a trail what a command has touched.
func (all *followers) note(trail *trail, touch Touch, index uint64) {
	if known := trail.of[touch]; known != nil {
		known.Value = step{touch, index}
		trail.steps.MoveToBack(known)
	} else {
		trail.of[touch] = trail.steps.PushBack(step{touch, index})
		all.touched++
		all.makeRoom(trail)
	}
	for _, f := range trail.followers {
		f.woken.Raise()
	}
}

// makeRoom keeps the bounds after a trail has grown. It drops trails without a follower first, then
// the oldest changes of the grown trail.
func (all *followers) makeRoom(grown *trail) {
	for all.touched > maxTouched && all.idle.Len() > 0 {
		all.drop(all.idle.Front().Value.(*trail))
	}
	for len(grown.of) > maxTouchedOfOne || all.touched > maxTouched && len(grown.of) > 0 {
		oldest := grown.steps.Remove(grown.steps.Front()).(step)
		delete(grown.of, oldest.touch)
		grown.from = oldest.index
		all.touched--
	}
}

// drop forgets a trail that nobody follows.
func (all *followers) drop(t *trail) {
	all.idle.Remove(t.idle)
	all.touched -= len(t.of)
	clear(t.of) // it may be the trail that has just grown
	t.steps.Init()
	delete(all.trails, t.customer)
	all.any.Store(len(all.trails) > 0)
}

// passed is called when the state has reached an index and a time. It wakes followers that wait for
// the index, and drops trails that were idle too long.
func (all *followers) passed(index uint64, now int64) {
	if !all.any.Load() {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for f, awaited := range all.ahead {
		if awaited <= index {
			delete(all.ahead, f)
			close(f.reached)
		}
	}
	for all.idle.Len() > 0 {
		longest := all.idle.Front().Value.(*trail)
		if longest.left+recalledMillis > now {
			return
		}
		all.drop(longest)
	}
}

// abandon tells all followers that another state has replaced this one.
func (all *followers) abandon() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.gone = true
	for f := range all.ahead {
		delete(all.ahead, f)
		close(f.reached)
	}
	for _, t := range all.trails {
		for _, f := range t.followers {
			f.woken.Raise()
		}
	}
}
