package timekeeper

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_800_000_000, 0)

// machine is a node's true clock: time since the start, and the offset of its wall clock.
type machine struct {
	off  time.Duration
	born time.Duration // start of its process
}

func (m machine) reading(now time.Duration) Reading {
	return Reading{Wall: start.Add(now + m.off), Elapsed: now - m.born}
}

func (m machine) witness(now time.Duration, to machine) Witness {
	return Witness{Wall: start.Add(now + m.off), Elapsed: now - to.born}
}

// wantStamp makes a stamp, and checks its offset from the true time.
func wantStamp(t *testing.T, k *Keeper, m machine, now, off time.Duration) {
	t.Helper()
	if got := k.Stamp(m.reading(now)).Sub(start.Add(now)); got != off {
		t.Fatalf("at %v: the stamp is off by %v, want %v", now, got, off)
	}
}

func TestOneWrongClockMovesNothing(t *testing.T) {
	var k Keeper
	wrong, right := machine{off: 90 * 24 * time.Hour}, machine{}
	k.BeginTerm(wrong.reading(0), start)
	wantStamp(t, &k, wrong, time.Hour, 0)
	found := k.Hear(wrong.reading(time.Hour), 3,
		[]Witness{right.witness(time.Hour, wrong), right.witness(time.Hour, wrong)})
	if found.Verdict != Agreed || found.Clock != wrong.off {
		t.Errorf("found %+v", found)
	}
	wantStamp(t, &k, wrong, 2*time.Hour, 0)
	if _, ok := k.Safe(wrong.reading(2 * time.Hour)); ok {
		t.Error("things may be removed by a clock that is off")
	}
	wrong.off = 0
	k.Hear(wrong.reading(2*time.Hour), 3, []Witness{right.witness(2*time.Hour, wrong)})
	if now, ok := k.Safe(wrong.reading(2 * time.Hour)); !ok || !now.Equal(start.Add(2*time.Hour)) {
		t.Errorf("safe: %v, %v", now, ok)
	}
}

func TestAClockThatStepsIsNotFollowed(t *testing.T) {
	for _, off := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		var k Keeper
		clock, others := machine{}, []Witness{{Wall: start}, {Wall: start}}
		k.BeginTerm(clock.reading(0), start)
		k.Hear(clock.reading(0), 3, others)
		clock.off = off
		wall, elapsed := clock.reading(time.Minute), time.Minute
		if _, ok := k.Safe(wall); ok {
			t.Error("things may be removed right after a step")
		}
		if off > 0 {
			wantStamp(t, &k, clock, elapsed, 0)
		} else {
			wantStamp(t, &k, clock, elapsed, -elapsed/2)
		}
	}
}

func TestALongPauseOfAllIsTime(t *testing.T) {
	var k Keeper
	m := machine{born: 72 * time.Hour}
	k.BeginTerm(m.reading(m.born), start)
	if got := k.Stamp(m.reading(m.born)); !got.Equal(start) {
		t.Errorf("before others are heard the stamp is %v", got)
	}
	if _, ok := k.Safe(m.reading(m.born)); ok {
		t.Error("things may be removed before others are heard")
	}
	found := k.Hear(m.reading(m.born), 3,
		[]Witness{machine{off: 20 * time.Second}.witness(m.born, m)})
	if found != (Findings{Verdict: Agreed}) {
		t.Errorf("found %+v", found)
	}
	wantStamp(t, &k, m, 73*time.Hour, 0)
}

func TestTwoVotersThatDifferDecideNothing(t *testing.T) {
	var k Keeper
	m := machine{off: time.Hour}
	k.BeginTerm(m.reading(0), start)
	found := k.Hear(m.reading(0), 2, []Witness{machine{}.witness(0, m)})
	if found.Verdict != Disputed {
		t.Errorf("found %+v", found)
	}
	wantStamp(t, &k, m, time.Hour, 0)
	if found := k.Hear(m.reading(0), 3, nil); found.Verdict != Unheard {
		t.Errorf("found %+v", found)
	}
}

func TestStateThatIsAheadGoesOnAtHalfThePace(t *testing.T) {
	var k Keeper
	m := machine{}
	k.BeginTerm(m.reading(0), start.Add(10*time.Hour))
	k.Hear(m.reading(0), 1, nil)
	for hours := range 40 {
		now := time.Duration(hours) * time.Hour
		off := max(10*time.Hour-now/2, 0)
		wantStamp(t, &k, m, now, off)
		if _, ok := k.Safe(m.reading(now)); ok != (off == 0) {
			t.Fatalf("after %d hours safe is %v", hours, ok)
		}
	}
}

// State time was ahead when a node led, and has come down under another leader. What the node
// remembers does not count when it leads again, unless a restore has set the state back.
func TestAnEarlierLeadersMemoryMovesNothing(t *testing.T) {
	m, others := machine{}, []Witness{{Wall: start}, {Wall: start}}
	var k Keeper
	k.BeginTerm(m.reading(0), start.Add(10*time.Hour))
	k.Hear(m.reading(0), 3, others)
	wantStamp(t, &k, m, 0, 10*time.Hour)
	k.BeginTerm(m.reading(19*time.Hour), start.Add(19*time.Hour))
	wantStamp(t, &k, m, 19*time.Hour, 0)
	k.BeginTerm(m.reading(20*time.Hour), start)
	wantStamp(t, &k, m, 20*time.Hour, 0)
	m.off = -time.Hour // it agreed on another's time, and its own clock is right now
	k.Hear(m.reading(20*time.Hour), 3, []Witness{machine{off: 2 * time.Hour}.witness(20*time.Hour,
		m), machine{off: 2 * time.Hour}.witness(20*time.Hour, m)})
	m.off = 0
	k.BeginTerm(m.reading(21*time.Hour), start.Add(21*time.Hour))
	wantStamp(t, &k, m, 21*time.Hour, 0)
}

func TestAnOnlyVoterMustKeepToAJump(t *testing.T) {
	var k Keeper
	m := machine{}
	k.BeginTerm(m.reading(0), start.Add(-3*time.Hour)) // its clock was off for a while
	k.Hear(m.reading(0), 1, nil)
	wantStamp(t, &k, m, 0, 0)
	if _, ok := k.Safe(m.reading(0)); !ok {
		t.Error("after a short pause nothing may be removed")
	}
	m.off = 90 * 24 * time.Hour
	for now := time.Duration(0); now < Steady; now += time.Minute {
		if found := k.Hear(m.reading(now), 1, nil); found.Clock != m.off {
			t.Fatalf("found %+v", found)
		}
		wantStamp(t, &k, m, now, 0)
		k.BeginTerm(m.reading(now), start.Add(now)) // leadership was lost and won
	}
	k.Hear(m.reading(Steady), 1, nil)
	wantStamp(t, &k, m, Steady, m.off)
	if _, ok := k.Safe(m.reading(Steady)); ok {
		t.Error("things may be removed at once after a jump of 90 days")
	}
	if _, ok := k.Safe(m.reading(Steady + Grace)); !ok {
		t.Error("nothing may be removed a day after it")
	}
}

func TestTheFirstTimeOfAClusterIsItsFoundersClock(t *testing.T) {
	var k Keeper
	m := machine{}
	if got := k.Stamp(m.reading(0)); !got.IsZero() {
		t.Errorf("before a leadership the stamp is %v", got)
	}
	k.BeginTerm(m.reading(0), time.Time{})
	wantStamp(t, &k, m, time.Second, 0)
	m.off = time.Hour // it was set right before there was a state
	k.BeginTerm(m.reading(time.Minute), time.Time{})
	wantStamp(t, &k, m, time.Minute, time.Hour)
}

// TestNoMinorityOfClocksMovesTime: leaders with right and wrong clocks follow each other. They are
// cut off and restarted after any pause. Most clocks are right at any time.
func TestNoMinorityOfClocksMovesTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		voters := rapid.SampledFrom([]int{3, 5}).Draw(t, "voters")
		machines, keepers := make([]machine, voters), make([]*Keeper, voters)
		for i := range keepers {
			keepers[i] = &Keeper{}
			machines[i].off = time.Duration(rapid.IntRange(-20, 20).Draw(t, "off")) * time.Second
		}
		now, state, leader := time.Duration(0), start, 0
		keepers[0].BeginTerm(machines[0].reading(0), state)
		stamp := func() {
			next := keepers[leader].Stamp(machines[leader].reading(now))
			if next.After(state) {
				state = next
			}
			if ahead := state.Sub(start.Add(now)); ahead > Tolerance+time.Minute {
				t.Fatalf("state time is %v ahead", ahead)
			}
		}
		for range 60 {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				now += time.Duration(rapid.IntRange(1, 7200).Draw(t, "seconds")) * time.Second
			case 1: // one clock goes wrong, most stay right
				for i := range machines {
					machines[i].off = time.Duration(rapid.IntRange(-20, 20).Draw(t,
						"off")) * time.Second
				}
				for range rapid.IntRange(0, (voters-1)/2).Draw(t, "wrong") {
					off := rapid.SampledFrom([]time.Duration{10 * time.Minute, 90 * 24 * time.Hour,
						-time.Hour, -1000 * time.Hour}).Draw(t, "by")
					machines[rapid.IntRange(0, voters-1).Draw(t, "which")].off = off
				}
			case 2:
				leader = rapid.IntRange(0, voters-1).Draw(t, "leader")
				keepers[leader].BeginTerm(machines[leader].reading(now), state)
			case 3: // all are stopped for a while
				now += time.Duration(rapid.IntRange(0, 1000).Draw(t, "hours")) * time.Hour
				for i := range keepers {
					keepers[i], machines[i].born = &Keeper{}, now
				}
				keepers[leader].BeginTerm(machines[leader].reading(now), state)
			case 4, 5:
				var witnesses []Witness
				for i, m := range machines {
					if i != leader && rapid.IntRange(0, 3).Draw(t, "answers") > 0 {
						witnesses = append(witnesses, m.witness(now, machines[leader]))
					}
				}
				found := keepers[leader].Hear(machines[leader].reading(now), voters, witnesses)
				stamp()
				if behind := start.Add(now).Sub(state); found.Verdict == Agreed &&
					behind > Tolerance+time.Minute {
					t.Fatalf("voters agree, and state time is %v behind", behind)
				}
				if safe, ok := keepers[leader].Safe(machines[leader].reading(now)); ok &&
					safe.Sub(start.Add(now)) > Tolerance {
					t.Fatalf("things may be removed by %v", safe)
				}
			}
			stamp()
		}
	})
}
