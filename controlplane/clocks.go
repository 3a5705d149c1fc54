package controlplane

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/timekeeper"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/telemetry"
)

const (
	compareEvery = 30 * time.Second
	safeEvery    = time.Second // how often it is looked whether things may be removed by age
)

// clocks is what this node knows of the cluster's clocks.
type clocks struct {
	keeper timekeeper.Keeper
	began  time.Time // of the process, with its monotonic reading

	mu     sync.Mutex
	found  timekeeper.Findings
	others map[string]time.Duration // clocks of other nodes less this one's, as the leader heard them last
	told   string                   // what the log says of the clocks
}

// reading looks at this node's clock.
func (s *Server) reading() timekeeper.Reading {
	now := s.config.Clock.Now()
	return timekeeper.Reading{Wall: now.Round(0), Elapsed: now.Sub(s.clocks.began)}
}

// stamp is the time for a command, Unix milliseconds; 0: the state's own time stands. Not known:
// no leadership of this process has begun, and nothing is applied yet. That may be since there is
// nothing, or since a node that has just started leads before it has read its log.
func (s *Server) stamp() (stamp int64, known bool) {
	if stamp := s.clocks.keeper.Stamp(s.reading()); !stamp.IsZero() {
		return stamp.UnixMilli(), true
	}
	_, now := s.node.Store().Progress()
	return 0, now > 0
}

// beginTime begins a leadership's time where that of the state is. All that earlier leaders
// committed has to be applied.
func (s *Server) beginTime() {
	var at time.Time
	if _, now := s.node.Store().Progress(); now > 0 {
		at = time.UnixMilli(now)
	}
	s.clocks.keeper.Begin(s.reading(), at)
}

// safeTime is the time by which things may be removed, when it is certain what time it is.
func (s *Server) safeTime() (now time.Time, ok bool) { return s.clocks.keeper.Safe(s.reading()) }

// awaitSafeTime waits until things may be removed by a time; not ok: ctx ended.
func (l *leadership) awaitSafeTime(ctx context.Context) (now time.Time, ok bool) {
	for {
		if now, ok := l.s.safeTime(); ok {
			return now, true
		}
		if !clock.Pause(ctx, l.s.config.Clock, safeEvery) {
			return time.Time{}, false
		}
	}
}

// compareAlone compares the clocks where there is nobody to ask.
func (s *Server) compareAlone() {
	if n, err := s.node.Enter(); err == nil {
		alone := n.Alone()
		s.node.Leave()
		if alone {
			s.noteClocks(s.clocks.keeper.Hear(s.reading(), 1, nil), nil)
		}
	}
}

// compareClocks compares this node's clock with those of all that answer, every so often. Only voters decide what time it
// is: whoever has a fetcher's certificate must not.
func (l *leadership) compareClocks(ctx context.Context) error {
	for {
		servers, _, err := l.s.node.Servers(ctx)
		if err != nil {
			return err
		}
		ask, votes := map[string]string{}, map[string]bool{}
		for _, node := range l.view().Nodes() {
			ask[node.Name] = node.Address
		}
		for _, server := range servers {
			if server.Suffrage == raft.Voter {
				votes[string(server.ID)] = true
				ask[string(server.ID)] = string(server.Address)
			}
		}
		delete(ask, l.s.config.Node)
		l.compare(ctx, ask, votes)
		if !clock.Pause(ctx, l.s.config.Clock, compareEvery) {
			return nil
		}
	}
}

// compare asks nodes for their time, all at once, and settles what time it is.
func (l *leadership) compare(ctx context.Context, ask map[string]string, votes map[string]bool) {
	asked := l.s.reading()
	answers := l.s.node.Statuses(ctx, ask)
	var witnesses []timekeeper.Witness
	now := l.s.reading()
	// An answer is of some time in between, which is a few seconds at most.
	middle := asked.Elapsed + (now.Elapsed-asked.Elapsed)/2
	others := map[string]time.Duration{}
	for name, answer := range answers {
		if answer.Clock == 0 {
			continue
		}
		told := timekeeper.Witness{Wall: time.UnixMilli(answer.Clock), Elapsed: middle}
		if votes[name] {
			witnesses = append(witnesses, told)
		}
		others[name] = told.Wall.Add(now.Elapsed - middle).Sub(now.Wall)
	}
	if ctx.Err() == nil {
		l.s.noteClocks(l.s.clocks.keeper.Hear(now, len(votes), witnesses), others)
	}
}

// noteClocks keeps what was found for who asks, and tells what has changed.
func (s *Server) noteClocks(found timekeeper.Findings, others map[string]time.Duration) {
	c := &s.clocks
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found, c.others = found, others
	text := clockTrouble(found)
	if text == c.told {
		return
	}
	c.told = text
	if text == "" {
		s.config.Logger.Info("the clocks agree again")
		return
	}
	s.config.Logger.Warn(text, "verdict", found.Verdict, "clock", found.Clock.Round(time.Second),
		"state", found.State.Round(time.Second))
}

// clockTrouble is what is wrong with the clocks, "" for nothing.
func clockTrouble(found timekeeper.Findings) string {
	off := func(d time.Duration) bool { return d > timekeeper.Tolerance || d < -timekeeper.Tolerance }
	switch {
	case found.Verdict == timekeeper.Agreed && found.Clock != 0:
		return "this node's clock is off: commands are stamped by the other voters' clocks, and nothing is removed by age"
	case found.Verdict != timekeeper.Agreed && off(found.Clock):
		return "this node's clock has jumped and nobody confirms it: time goes on without it, and nothing is removed by age"
	case off(found.State):
		return "state time is ahead of the clocks: it goes at half the pace until they have come up"
	case found.Verdict == timekeeper.Disputed:
		return "the voters' clocks differ: nothing is removed by age"
	}
	return ""
}

// measureClocks shows the clocks as the leader compares them.
func (s *Server) measureClocks(to *telemetry.Metrics) {
	type compared struct {
		found timekeeper.Findings
		nodes map[string]time.Duration
	}
	telemetry.NewSamples(func() (seen compared, ok bool) {
		if s.leading.Load() == nil {
			return seen, false
		}
		c := &s.clocks
		c.mu.Lock()
		defer c.mu.Unlock()
		seen = compared{found: c.found, nodes: map[string]time.Duration{s.config.Node: c.found.Clock}}
		for name, off := range c.others {
			seen.nodes[name] = off + c.found.Clock
		}
		return seen, true
	}).
		Gauges("shoal_controlplane_clock_offset_seconds", "Each node's clock less the time that a majority of the voters tells, on the leader.",
			[]string{"node"}, func(seen compared, emit func(float64, ...string)) {
				for name, off := range seen.nodes {
					emit(off.Seconds(), name)
				}
			}).
		Gauge("shoal_controlplane_state_time_offset_seconds", "State time less the time that the clocks tell, on the leader.",
			func(seen compared) float64 { return seen.found.State.Seconds() }).
		Declare(to)
}
