package leadership

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/timekeeper"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/telemetry"
)

const (
	compareEvery = 30 * time.Second
	safeEvery    = time.Second // how often to check whether things may be removed by age
	leapTold     = time.Hour   // shorter leaps of an only voter are no news after a restart
)

// Clocks holds what this node knows of the cluster's clocks.
type Clocks struct {
	node   *node.Node
	clock  clock.Clock
	logger *slog.Logger

	keeper timekeeper.Keeper
	began  time.Time // start of the process, with its monotonic reading

	mu    sync.Mutex
	found timekeeper.Findings
	// other nodes' clocks minus this one's, as the leader last heard them
	others map[string]time.Duration
	told   string // trouble that was last logged
}

func newClocks(n *node.Node, clock clock.Clock, logger *slog.Logger) *Clocks {
	return &Clocks{node: n, clock: clock, logger: logger, began: clock.Now()}
}

// reading reads this node's clock.
func (c *Clocks) reading() timekeeper.Reading {
	now := c.clock.Now()
	return timekeeper.Reading{Wall: now.Round(0), Elapsed: now.Sub(c.began)}
}

// Stamp returns the time for a command, Unix milliseconds; 0: the state's own time stands. known is
// false if no leadership of this process has begun and nothing is applied yet. Then the cluster is
// new, or the node leads before it has read its log.
func (c *Clocks) Stamp() (stamp int64, known bool) {
	if stamp := c.keeper.Stamp(c.reading()); !stamp.IsZero() {
		return stamp.UnixMilli(), true
	}
	_, now := c.node.Store().Progress()
	return 0, now > 0
}

// Now returns the time with which a command would be stamped. It never goes back, and a wrong clock
// does not move it.
func (c *Clocks) Now() time.Time {
	stamp, _ := c.Stamp()
	_, now := c.node.Store().Progress()
	return time.UnixMilli(max(stamp, now))
}

// BeginTerm begins a leadership's time at state time. Everything that earlier leaders committed
// must be applied.
func (c *Clocks) BeginTerm() {
	var at time.Time
	if _, now := c.node.Store().Progress(); now > 0 {
		at = time.UnixMilli(now)
	}
	c.keeper.BeginTerm(c.reading(), at)
}

// Safe returns the time for removal by age; ok only while the time is certain.
func (c *Clocks) Safe() (now time.Time, ok bool) { return c.keeper.Safe(c.reading()) }

// awaitSafeTime waits until the safe time is known; not ok: ctx ended.
func (l *Leadership) awaitSafeTime(ctx context.Context) (now time.Time, ok bool) {
	for {
		if now, ok := l.clocks.Safe(); ok {
			return now, true
		}
		if !clock.Pause(ctx, l.config.Clock, safeEvery) {
			return time.Time{}, false
		}
	}
}

// CompareAlone runs the comparison of a node that is the only voter.
func (c *Clocks) CompareAlone() {
	if n, err := c.node.Enter(); err == nil {
		alone := n.Alone()
		c.node.Leave()
		if alone {
			c.note(c.keeper.Hear(c.reading(), 1, nil), nil)
		}
	}
}

// compareClocks compares this node's clock with those of all nodes that answer, at intervals. Only
// voters decide on the time: a fetcher's certificate must not be enough.
func (l *Leadership) compareClocks(ctx context.Context) error {
	for {
		servers, _, err := l.node.Servers(ctx)
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
		delete(ask, l.node.Name())
		l.compare(ctx, ask, votes)
		select {
		case <-l.compared:
		default:
			close(l.compared)
		}
		if !clock.Pause(ctx, l.config.Clock, compareEvery) {
			return nil
		}
	}
}

// compare asks all nodes for their time at once and compares the clocks.
func (l *Leadership) compare(ctx context.Context, ask map[string]string, votes map[string]bool) {
	asked := l.clocks.reading()
	answers := l.node.Statuses(ctx, ask)
	var witnesses []timekeeper.Witness
	now := l.clocks.reading()
	// An answer was given somewhere in this span, which is a few seconds at most.
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
		l.clocks.note(l.clocks.keeper.Hear(now, len(votes), witnesses), others)
	}
}

// note keeps the findings and logs a change of trouble.
func (c *Clocks) note(found timekeeper.Findings, others map[string]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found, c.others = found, others
	if found.Leap > leapTold {
		c.logger.Warn("state time has followed this node's clock, which no other voter confirms: "+
			"what is kept for a time ages by as much", "ahead", found.Leap.Round(time.Second))
	}
	text := clockTrouble(found)
	if text == c.told {
		return
	}
	c.told = text
	if text == "" {
		c.logger.Info("the clocks agree again")
		return
	}
	c.logger.Warn(text, "verdict", found.Verdict, "clock", found.Clock.Round(time.Second),
		"state", found.State.Round(time.Second))
}

// Findings returns the result of the last comparison, and what is wrong with the clocks, or "".
func (c *Clocks) Findings() (found timekeeper.Findings, trouble string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found, c.told
}

// clockTrouble returns what is wrong with the clocks, or "".
func clockTrouble(found timekeeper.Findings) string {
	off := func(d time.Duration) bool {
		return d > timekeeper.Tolerance ||
			d < -timekeeper.Tolerance
	}
	switch {
	case found.Verdict == timekeeper.Agreed && found.Clock != 0:
		return "this node's clock is off: commands are stamped by the other voters' clocks, and " +
			"nothing is removed by age"
	case found.Verdict != timekeeper.Agreed && off(found.Clock):
		return "this node's clock has jumped and nobody confirms it: time goes on without it, " +
			"and nothing is removed by age"
	case off(found.State):
		return "state time is ahead of the clocks: it goes at half the pace until they have come up"
	case found.Verdict == timekeeper.Disputed:
		return "the voters' clocks differ: nothing is removed by age"
	}
	return ""
}

// measure exports the clocks as the leader compares them.
func (c *Clocks) measure(to *telemetry.Metrics, leads func() bool) {
	type compared struct {
		found timekeeper.Findings
		nodes map[string]time.Duration
	}
	telemetry.NewSamples(func() (seen compared, ok bool) {
		if !leads() {
			return seen, false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		seen = compared{found: c.found,
			nodes: map[string]time.Duration{c.node.Name(): c.found.Clock}}
		for name, off := range c.others {
			seen.nodes[name] = off + c.found.Clock
		}
		return seen, true
	}).
		Gauges("shoal_controlplane_clock_offset_seconds",
			"Each node's clock minus the time on which most voters' clocks agree, on the leader.",
			[]string{"node"}, func(seen compared, emit func(float64, ...string)) {
				for name, off := range seen.nodes {
					emit(off.Seconds(), name)
				}
			}).
		Gauge("shoal_controlplane_state_time_offset_seconds",
			"State time minus the time on which most voters' clocks agree, on the leader.",
			func(seen compared) float64 { return seen.found.State.Seconds() }).
		Declare(to)
}
