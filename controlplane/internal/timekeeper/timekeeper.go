// Package timekeeper owns what time it is to a leader: with what it stamps commands, and whether
// what is removed by age may go. A leader's clock is believed as long as it moves as time passes. A
// jump is taken over when a majority of the voters' clocks say so, and otherwise told. Meanwhile
// time goes on without it, a second a second. It reads no clock itself.
package timekeeper

import (
	"slices"
	"sync"
	"time"
)

// Bounds of what clocks may do.
const (
	// Tolerance is by how much a clock may be off before it is not believed. State time is never
	// moved further by it.
	Tolerance = 2 * time.Minute
	// Steady is how long the clock of an only voter, which nobody can confirm, must keep to a jump.
	Steady = 10 * time.Minute
	// LongPause is the longest pause of an only voter after which what is removed by age goes at
	// once. After a longer one that takes until Grace has passed.
	LongPause = 7 * 24 * time.Hour
	Grace     = 24 * time.Hour
)

// Reading is one look at a node's clock.
type Reading struct {
	Wall    time.Time     // what it says
	Elapsed time.Duration // since the process began, by a clock that nobody sets
}

// Witness is what another voter's clock said when this node's process had run for Elapsed.
type Witness struct {
	Wall    time.Time
	Elapsed time.Duration
}

// Verdict is what comes of comparing clocks.
type Verdict string

// The verdicts.
const (
	Unheard  Verdict = "unheard"  // too few voters have told their time
	Agreed   Verdict = "agreed"   // a majority of the voters tells the same time
	Disputed Verdict = "disputed" // no majority does
	Alone    Verdict = "alone"    // there is one voter
)

// Findings are how clocks stand to each other.
type Findings struct {
	Verdict Verdict
	// this node's clock less the time agreed on, or less state time without that
	Clock time.Duration
	State time.Duration // state time less the time that clocks tell
}

// Keeper keeps the time of one node's leaderships. It is safe for concurrent use.
type Keeper struct {
	mu      sync.Mutex
	begun   bool
	state   time.Time     // the newest stamp, or state time when a leadership began
	at      time.Duration // elapsed then
	offset  time.Duration // of the agreed time against this node's clock
	verdict Verdict
	trusted bool          // alone, the clock was believed once
	jumped  bool          // and is off,
	since   time.Duration // elapsed when that was seen first,
	by      time.Duration // by so much
	wary    time.Duration // elapsed until which nothing goes by age
}

// BeginTerm begins a leadership with the state's time, zero: there is no state yet. What an earlier
// one of this process knew stays known.
func (k *Keeper) BeginTerm(r Reading, state time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.begun
	switch flowing := k.flowing(r); {
	case state.IsZero() && !known:
		k.state = r.Wall
	case known && flowing.After(state):
		k.state = flowing
	default:
		k.state = state
	}
	k.begun, k.verdict, k.at = true, Unheard, r.Elapsed
}

// Stamp is the time for a command: this node's clock, corrected by the others', while that moves as
// time passes. State time that is ahead of what the clocks agree on goes on at half the pace until
// they have come up.
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
		return k.state // and the pace is counted from where it stood
	}
	k.state, k.at = next, r.Elapsed
	return next
}

// flowing is the newest stamp and the time since; mu is held.
func (k *Keeper) flowing(r Reading) time.Time { return k.state.Add(r.Elapsed - k.at) }

func within(d time.Duration) bool { return d >= -Tolerance && d <= Tolerance }

// Hear compares this node's clock with those of the other voters. voters is how many there are,
// itself included. A time that a majority tells is the time from now on, however far ahead of the
// state it is.
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
		State: flowing.Sub(r.Wall.Add(k.offset))}
	if k.verdict != Agreed {
		found.Clock = r.Wall.Sub(flowing)
	}
	return found
}

// hearOthers is Hear of one of several voters; mu is held.
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

// majority is the time that more than half of the voters tell: the first clock's if it is among
// them.
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

// hearNobody is Hear of the only voter. Its clock is believed when its process has begun, and
// otherwise when it keeps to a jump. mu is held.
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
		k.follow(r, r.Wall)
	}
}

// follow takes a time over that lies ahead; mu is held.
func (k *Keeper) follow(r Reading, told time.Time) {
	if told.After(k.flowing(r)) {
		k.state, k.at = told, r.Elapsed
	}
}

// Safe is the earlier of state time and this node's clock, for what is removed by age. Not ok: the
// two, or the voters' clocks, differ by too much, or it is not known yet whether they do. Then
// nothing is to be removed.
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
