package state

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"shoal.dev/shoal/pkg/ids"
)

// Bounds of what is remembered of the customers that are followed. Where there is no room the
// oldest is forgotten, and who has not taken it is told so.
const (
	maxTouchedOfOne = 2_048   // things of a customer
	maxTouched      = 100_000 // of all customers together
	// recalledMillis of state time is what happens to a customer remembered behind its last
	// follower's end, for one that comes again.
	recalledMillis = 60_000
)

// Touched says of what kind the thing is that was changed.
type Touched uint8

// The kinds.
const (
	TouchedJob Touched = iota + 1
	TouchedWallet
	TouchedTopUp
	TouchedNotice
)

// Touch names a thing of a customer that was changed. What it is like now, a view tells.
type Touch struct {
	What    Touched
	ID      ids.ID // of a run or a notice
	Session string // of a top-up
}

// touching is whose thing it is, and what.
type touching struct {
	customer string
	all      bool // of every customer alike
	touch    Touch
}

// followed says what changes of the table's records those are told of who follow a customer.
func (tb *table[R]) followed(touch func(*R) (customer string, what Touch)) *table[R] {
	tb.touch = func(record any) touching {
		customer, what := touch(record.(*R))
		return touching{customer: customer, touch: what}
	}
	return tb
}

// followedByAll says that a change of the table's records changes a thing of every customer.
func (tb *table[R]) followedByAll(what Touch) *table[R] {
	tb.touch = func(any) touching { return touching{all: true, touch: what} }
	return tb
}

// touched notes that a record is there, or another one than before. While nobody follows anybody
// that costs one look.
func (t *Tx) touched(k *kind, record any) {
	if k.touch != nil && t.store.followers.any.Load() {
		t.touches = append(t.touches, k.touch(record))
	}
}

// followers are those who want to know what changes of their customers.
type followers struct {
	any atomic.Bool // there is a trail

	mu      sync.Mutex
	trails  map[string]*trail
	touched int                   // things in all trails
	idle    *list.List            // trails without a follower, the one that is so longest first
	ahead   map[*Following]uint64 // those that wait for an index
	gone    bool                  // the store was replaced
}

func newFollowers() followers {
	return followers{trails: map[string]*trail{}, idle: list.New(), ahead: map[*Following]uint64{}}
}

// trail is what was changed of a customer, each thing by its newest change.
type trail struct {
	customer  string
	from      uint64     // what was changed behind this index is all there
	steps     *list.List // the oldest first
	of        map[Touch]*list.Element
	followers []*Following
	idle      *list.Element // nil while it has followers
	left      int64         // state time when it had the last one
}

type step struct {
	touch Touch
	index uint64
}

// Following is one follower of a customer. It is for one goroutine.
type Following struct {
	store   *Store
	trail   *trail
	woken   chan struct{} // holds one when something was changed
	reached chan struct{} // closed when the state has come to where the follower was
	last    uint64        // what was changed up to this index has been taken
}

// Follow begins to follow a customer: from now on, or behind an index up to which its follower
// knows everything. Its End must be called.
func (s *Store) Follow(customer string, behind uint64) *Following {
	s.mu.RLock() // between two commands
	defer s.mu.RUnlock()
	f := &Following{store: s, woken: make(chan struct{}, 1), reached: make(chan struct{}),
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
	f.wake() // it looks first
	if f.last > s.index && !all.gone {
		all.ahead[f] = f.last
	} else {
		close(f.reached)
	}
	return f
}

// Customer is who is followed.
func (f *Following) Customer() string { return f.trail.customer }

// Woken sends when there may be something to take.
func (f *Following) Woken() <-chan struct{} { return f.woken }

// Reached is closed once the state has come to the index behind which the following began, or is
// replaced.
func (f *Following) Reached() <-chan struct{} { return f.reached }

func (f *Following) wake() {
	select {
	case f.woken <- struct{}{}:
	default: // it is
	}
}

// Taken is what a follower has not heard before.
type Taken struct {
	Index   uint64  // everything up to it is told now
	Touches []Touch // in the order of their newest changes
	View    *View   // at Index or later
	// Missed: more than is known was changed, or the follower has seen what is not there yet.
	Missed bool
	// Over: the state was replaced by another one. The follower goes on there, with a Follow.
	Over bool
}

// TakeChanges takes what was changed since the last one.
func (f *Following) TakeChanges() Taken {
	index, _ := f.store.Progress() // what was changed up to it stands in the trails
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
		return // it has ended
	}
	f.trail.followers = slices.Delete(f.trail.followers, at, at+1)
	if len(f.trail.followers) == 0 {
		f.trail.left, f.trail.idle = now, all.idle.PushBack(f.trail)
	}
}

// tell takes down what a command has touched, and wakes who follows.
func (all *followers) tell(touches []touching, index uint64) {
	if len(touches) == 0 {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, t := range touches {
		if t.all {
			for _, trail := range slices.Collect(maps.Values(all.trails)) {
				if all.trails[trail.customer] == trail { // the room for others took none of it
					all.note(trail, t.touch, index)
				}
			}
		} else if trail := all.trails[t.customer]; trail != nil {
			all.note(trail, t.touch, index)
		}
	}
}

// note takes down for a trail what a command has touched.
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
		f.wake()
	}
}

// makeRoom keeps the bounds after a trail has grown: those that nobody follows go first, then what
// is oldest of the trail itself.
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
	clear(t.of) // it may be the one that has just grown
	t.steps.Init()
	delete(all.trails, t.customer)
	all.any.Store(len(all.trails) > 0)
}

// passed is called when the state has come to an index at a time. It tells who waits for that, and
// forgets what nobody has come back for.
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

// abandon tells all followers that the state is another one now.
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
			f.wake()
		}
	}
}
