package simulation

import (
	"fmt"
	"time"

	"shoal.dev/shoal/controlplane/internal/timekeeper"
)

// voter is a node that may lead, with its clock.
type voter struct {
	keeper timekeeper.Keeper
	off    time.Duration // of its clock
}

// changeClocks makes another voter the leader. At most one of the three has a wrong clock, often
// the leader.
func (w *world) changeClocks() {
	wrong := []time.Duration{0, 0, time.Hour, 100 * 24 * time.Hour,
		-30 * time.Hour}[w.ticks.IntN(5)]
	for i := range w.voters {
		w.voters[i].off = time.Duration(w.ticks.IntN(40)-20) * time.Second
	}
	w.voters[w.ticks.IntN(len(w.voters))].off += wrong
	w.leads = w.ticks.IntN(len(w.voters))
	_, now := w.machine.Store().Progress()
	at := time.UnixMilli(now)
	if now == 0 {
		w.voters[w.leads].off = 0 // the founder's clock sets the first time
		at = time.Time{}
	}
	w.voters[w.leads].keeper.BeginTerm(w.reading(w.leads), at)
}

func (w *world) reading(node int) timekeeper.Reading {
	return timekeeper.Reading{Wall: time.UnixMilli(w.now).Add(w.voters[node].off),
		Elapsed: time.Duration(w.now) * time.Millisecond}
}

// stamp returns the leader's time for a command. Now and then the leader compares the clocks.
func (w *world) stamp() int64 {
	if w.ticks.IntN(8) == 0 {
		var witnesses []timekeeper.Witness
		for i := range w.voters {
			if i != w.leads && w.ticks.IntN(4) > 0 {
				seen := w.reading(i)
				witnesses = append(witnesses, timekeeper.Witness(seen))
			}
		}
		w.voters[w.leads].keeper.Hear(w.reading(w.leads), len(w.voters), witnesses)
	}
	return w.voters[w.leads].keeper.Stamp(w.reading(w.leads)).UnixMilli()
}

// checkTime: state time is never far ahead of the true time, whoever leads.
func (w *world) checkTime() error {
	if _, now := w.machine.Store().Progress(); now > w.now+
		(timekeeper.Tolerance+time.Minute).Milliseconds() {
		return fmt.Errorf("state time is %v ahead", time.Duration(now-w.now)*time.Millisecond)
	}
	return nil
}
