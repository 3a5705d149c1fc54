package controlplane

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/timekeeper"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/testkit/skew"
)

// wrong is a clock with an offset.
type wrong struct {
	clock.System
	by time.Duration
}

func (w wrong) Now() time.Time { return time.Now().Add(w.by) }

// stateTime returns a node's state time minus the true time.
func stateTime(r *running) time.Duration {
	_, now := r.node.Store().Progress()
	return time.Until(time.UnixMilli(now))
}

// until waits for a condition that a node brings about on its own.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ctx := patient(t); !ok(); {
		select {
		case <-ctx.Done():
			t.Fatalf("%s is waited for in vain", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestALeaderWithAWrongClockStampsByTheOthers(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 0)
	const by = 30 * time.Minute
	c.kill(1)
	c.configs[1].Clock = wrong{by: by}
	c.start(1)
	c.ready(1)
	c.handOver(1)
	until(t, "the wrong clock's leadership", func() bool { return c.leader() == 1 })
	leader := c.at(1)
	until(t, "a comparison of the clocks", func() bool {
		found, trouble := leader.holder.Clocks().Findings()
		return found.Verdict == timekeeper.Agreed && found.Clock > by-time.Minute &&
			found.Clock < by+time.Minute &&
			trouble != ""
	})
	openCustomer(t, c.at(0), "ann")
	if off := stateTime(leader); off > time.Minute || off < -time.Minute {
		t.Errorf("state time is off by %v", off)
	}
	if _, ok := leader.holder.Clocks().Safe(); ok {
		t.Error("a leader whose clock is off removes things by it")
	}
	var err error
	until(t, "an answer of this leader", func() bool {
		c.handOver(1) // others want another role to answer
		_, err = leader.SafeTime(patient(t))
		return fault.CodeOf(err) != fault.ScopeRejected
	})
	if fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a leader whose clock is off says by what time things may go: %v", err)
	}
}

// TestOnlyVotersSayWhatTimeItIs: the clocks of non-voters are compared, but never move time, even
// if they are the majority.
func TestOnlyVotersSayWhatTimeItIs(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 2)
	const by = 30 * time.Minute
	for n := 1; n <= 2; n++ {
		c.kill(n)
		c.configs[n].Clock = wrong{by: by}
		c.start(n)
		c.ready(n)
	}
	for n := range c.configs { // this tells the leader their addresses
		openCustomer(t, c.at(n), c.configs[n].Node)
	}
	until(t, "a look at both clocks", func() bool {
		off := gauges(t, c.at(0), "shoal_controlplane_clock_offset_seconds")
		return off["node-1"] > (by-time.Minute).Seconds() &&
			off["node-2"] > (by-time.Minute).Seconds()
	})
	found, trouble := c.at(0).holder.Clocks().Findings()
	if found.Verdict == timekeeper.Agreed && found.Clock != 0 || trouble != "" {
		t.Errorf("the leader finds %+v, %q", found, trouble)
	}
	openCustomer(t, c.at(1), "ann")
	if off := stateTime(c.at(0)); off > time.Minute || off < -time.Minute {
		t.Errorf("state time is off by %v", off)
	}
	if _, ok := c.at(0).holder.Clocks().Safe(); !ok {
		t.Error("the leader does not believe its own clock")
	}
}

// gauges returns a metric's values by node.
func gauges(t *testing.T, r *running, name string) map[string]float64 {
	t.Helper()
	families, err := r.config.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name {
				found[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
			}
		}
	}
	return found
}

func TestTheClockOfALoneNodeThatJumps(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	offset := filepath.Join(t.TempDir(), "offset")
	config.Clock = skew.FromEnv(func(string) string { return offset })
	s := serve(t, config)
	openCustomer(t, s, "ann")
	if _, ok := s.holder.Clocks().Safe(); !ok {
		t.Error("a node that is alone does not believe its clock")
	}
	if err := skew.Set(offset, 90*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	until(t, "the jump", func() bool { return time.Until(config.Clock.Now().Round(0)) > time.Hour })
	openCustomer(t, s, "bob")
	if off := stateTime(s); off > time.Minute {
		t.Errorf("state time went %v ahead", off)
	}
	if _, ok := s.holder.Clocks().Safe(); ok {
		t.Error("things are removed by a clock that has jumped")
	}
	s.holder.Clocks().CompareAlone()
	if _, trouble := s.holder.Clocks().Findings(); trouble == "" {
		t.Error("nobody is told")
	}
}

// A node that stood still for days continues at its clock's time: there is nobody to ask.
func TestTimeAfterALongPause(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	config.Clock = wrong{by: -48 * time.Hour}
	serve(t, config).stop()
	config.Clock = clock.System{}
	j := &journal{}
	config.Logger = slog.New(slog.NewTextHandler(j, nil))
	s := serve(t, config)
	openCustomer(t, s, "ann")
	if !j.holds("state time has followed this node's clock") {
		t.Error("nobody is told that state time has leapt")
	}
	if off := stateTime(s); off < -time.Minute {
		t.Errorf("state time is %v behind", -off)
	}
	if _, ok := s.holder.Clocks().Safe(); !ok {
		t.Error("nothing is removed after a pause of two days")
	}
}

func TestIdleStateTimeFollowsTheClock(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	manual := clock.NewManual(time.Now())
	config.Clock = manual
	s := serve(t, config)
	_, before := s.node.Store().Progress()
	until(t, "a stamp", func() bool {
		manual.Advance(10 * time.Second)
		_, now := s.node.Store().Progress()
		return now-before >= 2*time.Minute.Milliseconds()
	})
}

// TestNothingIsStampedBeforeTheLogIsRead: Raft makes a node the leader before its leadership has
// begun. An empty state has no time: what is created in 1970 would expire a moment later. And the
// clock of a node that has not applied its log may be wrong.
func TestNothingIsStampedBeforeTheLogIsRead(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	config.Clock = wrong{by: 30 * time.Minute}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	if stamp, known := s.holder.Clocks().Stamp(); known {
		t.Fatalf("the first stamp is %d", stamp)
	}
	then := time.Now().Add(-time.Hour).UnixMilli() // time in the log
	data, err := s.node.FSM().Encode(config.IDs.New(), then, command.TickPayload{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.node.FSM().Apply(1, data)
	if stamp, known := s.holder.Clocks().Stamp(); stamp != 0 || !known {
		t.Errorf("the next stamp is %d: the state's own time stands until leadership begins", stamp)
	}
}
