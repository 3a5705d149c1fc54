// Package timekeeper owns a leader's time: the stamps of commands, and whether things may be
// removed by age. It trusts a leader's clock while the clock keeps pace with elapsed time. It
// accepts a jump that a majority of the voters' clocks confirm, and otherwise reports it. Until
// then time continues without the jump. It reads no clock itself.
package timekeeper

import (
	"slices"
	"sync"
	"time"
)

// Bounds on the behaviour of clocks.
const (
	// Tolerance is how far a clock may be off and still be trusted. An unconfirmed clock never
	// moves state time further.
	Tolerance = 2 * time.Minute
	// Steady is how long the clock of an only voter, unconfirmed by others, must keep to a jump.
	Steady = 10 * time.Minute
	// LongPause is the longest pause of an only voter after which removal by age continues at once.
	// After a longer one it waits for Grace.
	LongPause = 7 * 24 * time.Hour
	Grace     = 24 * time.Hour
)

// Reading is one reading of a node's clock.
type Reading struct {
	Wall    time.Time     // wall clock
	Elapsed time.Duration // time since the process began, by the monotonic clock
}

// Witness is another voter's clock, read when this node's process had run for Elapsed.
type Witness struct {
	Wall    time.Time
	Elapsed time.Duration
}

// Verdict is the result of comparing clocks.
type Verdict string

// The verdicts.
const (
	Unheard  Verdict = "unheard"  // too few voters have reported their time
	Agreed   Verdict = "agreed"   // a majority of the voters reports the same time
	Disputed Verdict = "disputed" // no majority agrees
	Alone    Verdict = "alone"    // there is only one voter
)

// Findings are the differences between clocks.
type Findings struct {
	Verdict Verdict
	// this node's clock minus the agreed time, or minus state time if there is none
	Clock time.Duration
	State time.Duration // state time minus the clocks' time
	// Leap is how far state time has just followed the only voter's clock, which nobody confirms.
	Leap time.Duration
}

// Keeper keeps the time of one node's leaderships. It is safe for concurrent use.
type Keeper struct {
	mu      sync.Mutex
	begun   bool
	state   time.Time     // the newest stamp, or state time at the start of a leadership
	at      time.Duration // elapsed at that moment
	offset  time.Duration // agreed time minus this node's clock
	verdict Verdict
	trusted bool          // as the only voter, it has trusted its clock once
	jumped  bool          // as the only voter, its clock is off
	since   time.Duration // elapsed when that was first seen
	by      time.Duration // by how much it is off
	wary    time.Duration // nothing is removed by age before this elapsed time
	leap    time.Duration // Findings.Leap of the next findings
}

// BeginTerm begins a leadership at the state's time; zero: there is no state yet. What the keeper
// remembers of earlier leaderships of this process counts if its clock confirms it. State time that
// was ahead then may have come down since.
func (k *Keeper) BeginTerm(r Reading, state time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch flowing := k.flowing(r); {
	case state.IsZero() && (!k.begun || !within(r.Wall.Sub(flowing))):
		k.state = r.Wall
	case k.begun && flowing.After(state) && within(r.Wall.Sub(flowing)):
		k.state = flowing
	default:
		k.state = state
	}
	k.begun, k.verdict, k.at = true, Unheard, r.Elapsed
}

// Stamp returns the time for a command: this node's clock with the agreed offset, if it keeps pace
// with elapsed time. If state time is ahead of the agreed time, it runs at half speed until the
// clocks catch up.
func (k *Keeper) Stamp(r Reading) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.begun {
		return time.Time{} // the state's own time stands
	}
	flowing, wall := k.flowing(r), r.Wall.Add(k.offset)
	next := flowing
	switch off := wall.Sub(flowing); {
	case within(off):
		next = wall
	case off < 0 && (k.verdict == Agreed || k.verdict == Alone):
		next = k.state.Add((r.Elapsed - k.at) / 2)
	}
	if next.Before(k.state) {
		return k.state // unmoved, so that the half speed counts from here
	}
	k.state, k.at = next, r.Elapsed
	return next
}

// flowing returns the newest stamp plus the time elapsed since; mu is held.
func (k *Keeper) flowing(r Reading) time.Time { return k.state.Add(r.Elapsed - k.at) }

func within(d time.Duration) bool { return d >= -Tolerance && d <= Tolerance }

// Hear compares this node's clock with those of the other voters. voters counts them and this node.
// A time that a majority reports is accepted, however far ahead of the state it is.
func (k *Keeper) Hear(r Reading, voters int, witnesses []Witness) Findings {
	k.mu.Lock()
	defer k.mu.Unlock()
	if voters <= 1 {
		k.hearNobody(r)
	} else {
		k.hearOthers(r, voters, witnesses)
	}
	flowing := k.flowing(r)
	found := Findings{Verdict: k.verdict, Clock: -k.offset,
		State: flowing.Sub(r.Wall.Add(k.offset)), Leap: k.leap}
	k.leap = 0
	if k.verdict != Agreed {
		found.Clock = r.Wall.Sub(flowing)
	}
	return found
}

// hearOthers is Hear for one of several voters; mu is held.
func (k *Keeper) hearOthers(r Reading, voters int, witnesses []Witness) {
	k.jumped = false
	clocks := []time.Time{r.Wall}
	for _, w := range witnesses {
		clocks = append(clocks, w.Wall.Add(r.Elapsed-w.Elapsed))
	}
	agreed, ok := majority(clocks, voters)
	switch {
	case ok:
		k.verdict, k.offset = Agreed, agreed.Sub(r.Wall)
		k.follow(r, agreed)
	case len(clocks) <= voters/2:
		k.verdict = Unheard
	default:
		k.verdict = Disputed
	}
}

// majority returns the time that more than half of the voters report. It prefers the first clock.
func majority(clocks []time.Time, voters int) (agreed time.Time, ok bool) {
	for _, candidate := range clocks {
		var near []time.Time
		for _, clock := range clocks {
			if within(2 * clock.Sub(candidate)) {
				near = append(near, clock)
			}
		}
		if 2*len(near) <= voters {
			continue
		}
		if candidate.Equal(clocks[0]) {
			return candidate, true
		}
		slices.SortFunc(near, time.Time.Compare)
		return near[len(near)/2], true
	}
	return time.Time{}, false
}

// hearNobody is Hear for the only voter. It trusts the clock at the start of the process, and later
// a jump that the clock keeps to. mu is held.
func (k *Keeper) hearNobody(r Reading) {
	off := r.Wall.Sub(k.flowing(r))
	first := !k.trusted
	k.verdict, k.offset, k.trusted = Alone, 0, true
	switch {
	case within(off):
		k.jumped = false
		return
	case !k.jumped || !within(off-k.by):
		k.jumped, k.since, k.by = true, r.Elapsed, off
	}
	if first || r.Elapsed-k.since >= Steady {
		k.jumped = false
		if off > LongPause {
			k.wary = r.Elapsed + Grace
		}
		k.leap = max(off, 0)
		k.follow(r, r.Wall)
	}
}

// follow moves state time forward to told, never back; mu is held.
func (k *Keeper) follow(r Reading, told time.Time) {
	if told.After(k.flowing(r)) {
		k.state, k.at = told, r.Elapsed
	}
}

// Safe returns the earlier of state time and this node's clock, for removal by age. It is not ok
// when the two, or the voters' clocks, differ too much, or when that is unknown. Then nothing may
// be removed.
func (k *Keeper) Safe(r Reading) (now time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	flowing := k.flowing(r)
	now = flowing
	if r.Wall.Before(now) {
		now = r.Wall
	}
	believed := (k.verdict == Agreed || k.verdict == Alone) && within(k.offset)
	return now, believed && within(r.Wall.Sub(flowing)) && r.Elapsed >= k.wary
}
