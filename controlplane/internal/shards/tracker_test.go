package shards

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

func TestNeverTwoFetchersOnOneShard(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		w.faults = true
		const tick = 10
		for range rapid.IntRange(100, 4000).Draw(rt, "ticks") {
			w.tick(tick)
			if w.r.IntN(100) == 0 {
				w.fault()
			}
		}
		w.calm(tick)
	})
}

// Without faults, no shard is ever taken from an owner that has not released it. That holds
// whatever is planned, in any order and under any number of leaders. So no move waits for the end
// of a lease. Soon every shard is where it belongs.
func TestPlannedMovesWaitForNobody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		const tick = 10
		run := func(ms float64) {
			for end := w.now + ms; w.now < end; {
				w.tick(tick)
			}
		}
		run(2 * lease)
		for range rapid.IntRange(1, 12).Draw(rt, "events") {
			p := w.procs[w.r.IntN(len(w.procs))]
			switch k := w.r.IntN(6); {
			case k == 0:
				w.lead()
			case k == 1:
				w.record(p, func(n *state.Node) { n.Draining = !n.Draining })
			case k == 2:
				w.record(p, func(n *state.Node) { n.Capacity = 1 + w.r.Uint32N(3) })
			case k == 3 && p.up:
				w.stop(p)
			case !p.up:
				w.boot(p)
			}
			run(w.r.Float64() * 2 * lease)
		}
		// One shard after the other: a heartbeat, a fetch, and two short heartbeats each, plus time
		// for a new leader.
		run(2*lease + shardsN*(lease/3+3*fetch+4*lease/30))
		w.settled()
		if w.taken > 0 {
			rt.Fatalf("%d shards were taken from owners that had not let go", w.taken)
		}
	})
}

func within(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// A drain moves everything at once; a newcomer gets its share bit by bit.
func TestJoinMovesAnEighthAtATime(t *testing.T) {
	now := time.Unix(100, 0)
	tracker := New(Config{Lease: time.Second, EndWithin: within(time.Second),
		Now: func() time.Time { return now }})
	old, young := &state.Node{Name: "old", Boot: ids.ID{1}, Capacity: 1},
		&state.Node{Name: "young", Boot: ids.ID{2}, Capacity: 1}
	beat := client.Heartbeat{Node: "old", Boot: old.Boot}
	var list []*state.Shard
	for n := range uint16(64) {
		list = append(list, &state.Shard{Number: n, Owner: "old", Epoch: 1})
		beat.Holding = append(beat.Holding, client.ShardEpoch{Shard: n, Epoch: 1})
	}
	tracker.Heard(beat)
	tracker.Heard(client.Heartbeat{Node: "young", Boot: young.Boot})
	changes := tracker.Plan([]*state.Node{old, young}, list)
	if len(changes) != 64/movingShare {
		t.Errorf("%d shards move when a node joins", len(changes))
	}
	for _, change := range changes {
		s := *list[change.Number]
		s.Next = change.Next
		list[change.Number] = &s
	}
	if more := tracker.Plan([]*state.Node{old, young}, list); len(more) != 0 {
		t.Errorf("%d more while these are on the move", len(more))
	}
	if !tracker.Answer(young, list).Soon || tracker.Answer(old, list).Soon {
		t.Error("who is next should come back soon")
	}
	drained := *old
	drained.Draining = true
	if changes := tracker.Plan([]*state.Node{&drained, young},
		list); len(changes) != 64-64/movingShare {
		t.Errorf("%d shards more move when the old one drains", len(changes))
	}
}

// The publisher to a shard learns of each beat with which its owner resumes taking tasks, even if
// the owner held the shard all along.
func TestBeatsTellWhatIsTakenAgain(t *testing.T) {
	now := time.Unix(100, 0)
	tracker := New(Config{Lease: time.Second, EndWithin: within(time.Second),
		Now: func() time.Time { return now }})
	node := &state.Node{Name: "one", Boot: ids.ID{1}}
	shard := &state.Shard{Number: 5, Owner: "one", Epoch: 3}
	beat := client.Heartbeat{Node: "one", Boot: node.Boot,
		Holding: []client.ShardEpoch{{Shard: 5, Epoch: 3}}}
	for _, step := range []struct {
		name    string
		after   time.Duration
		leaving bool
	}{
		{"the first beat", 0, false}, {"the next", 500 * time.Millisecond, false},
		{"after a lease", time.Second, false}, {"in time", 999 * time.Millisecond, false},
		{"about to leave", 0, true}, {"it stays", 0, false},
	} {
		now = now.Add(step.after)
		before := tracker.Held(node, shard)
		beat.Leaving = step.leaving
		taken := tracker.Heard(beat)
		if held := tracker.Held(node, shard); held == step.leaving {
			t.Fatalf("%s: held is %v", step.name, held)
		} else if turned := held && !before; turned != (len(taken) > 0) {
			t.Errorf("%s: held is %v, was %v, and taken are %v", step.name, held, before, taken)
		}
	}
}

func TestFreshNodeHasItsShardsWithTheFirstAnswer(t *testing.T) {
	now := time.Unix(100, 0)
	tracker := New(Config{Lease: time.Second, EndWithin: within(time.Second),
		Now: func() time.Time { return now }})
	node := &state.Node{Name: "one", Boot: ids.ID{2}, Capacity: 1}
	for _, owner := range []string{"", "one"} { // a new cluster, and a restart
		shard := &state.Shard{Owner: owner, Epoch: 3}
		tracker.Heard(client.Heartbeat{Node: "one", Boot: node.Boot})
		for _, change := range tracker.Plan([]*state.Node{node}, []*state.Shard{shard}) {
			shard = &state.Shard{Owner: change.Owner, Epoch: shard.Epoch + 1}
		}
		if hold := tracker.Answer(node, []*state.Shard{shard}).Hold; len(hold) != 1 ||
			hold[0].Epoch != shard.Epoch {
			t.Fatalf("owner %q before: told to hold %v", owner, hold)
		}
	}
}

// Others plan while a crashed node restarts. Its shards wait for its first heartbeat.
func TestRestartedNodeKeepsItsShards(t *testing.T) {
	now := time.Unix(100, 0)
	tracker := New(Config{Lease: time.Second, EndWithin: within(time.Second),
		Now: func() time.Time { return now }})
	one := &state.Node{Name: "one", Boot: ids.ID{1}, Capacity: 1}
	two := &state.Node{Name: "two", Boot: ids.ID{2}, Capacity: 1}
	list := []*state.Shard{{Number: 0, Owner: "one", Epoch: 1}, {Number: 1, Owner: "two", Epoch: 1}}
	hear := func(n *state.Node, shard uint16) {
		tracker.Heard(client.Heartbeat{Node: n.Name, Boot: n.Boot,
			Holding: []client.ShardEpoch{{Shard: shard, Epoch: 1}}})
	}
	for range 100 { // longer than a node may be silent
		hear(one, 0)
		hear(two, 1)
		tracker.Plan([]*state.Node{one, two}, list)
		now = now.Add(100 * time.Millisecond)
	}
	anew := *one
	anew.Boot = ids.ID{3}
	hear(two, 1)
	if changes := tracker.Plan([]*state.Node{&anew, two}, list); len(changes) > 0 {
		t.Errorf("while it starts: %+v", changes)
	}
	for range 100 { // it never comes
		hear(two, 1)
		tracker.Plan([]*state.Node{&anew, two}, list)
		now = now.Add(100 * time.Millisecond)
	}
	if changes := tracker.Plan([]*state.Node{&anew, two}, list); len(changes) != 1 ||
		changes[0].Owner != "two" {
		t.Errorf("it was silent for too long: %+v", changes)
	}
}

// A node short of disk hands shards over bit by bit to nodes that are not, and keeps all if there
// are none.
func TestNodesWithoutRoomHandOver(t *testing.T) {
	now := time.Unix(100, 0)
	tracker := New(Config{Lease: time.Second, EndWithin: within(time.Second),
		Now: func() time.Time { return now }})
	nodes := []*state.Node{{Name: "full", Boot: ids.ID{1}, Capacity: 1},
		{Name: "roomy", Boot: ids.ID{2}, Capacity: 1}}
	beat := client.Heartbeat{Node: "full", Boot: ids.ID{1}, Short: true}
	var list []*state.Shard
	for n := range uint16(64) {
		list = append(list, &state.Shard{Number: n, Owner: "full", Epoch: 1})
		beat.Holding = append(beat.Holding, client.ShardEpoch{Shard: n, Epoch: 1})
	}
	tracker.Heard(beat)
	if changes := tracker.Plan(nodes[:1], list); len(changes) != 0 {
		t.Errorf("%d shards of the only node move", len(changes))
	}
	if short := tracker.Short(); !slices.Equal(short, []string{"full"}) {
		t.Errorf("short are %v", short)
	}
	tracker.Heard(client.Heartbeat{Node: "roomy", Boot: ids.ID{2}})
	if changes := tracker.Plan(nodes, list); len(changes) != 64/movingShare ||
		changes[0].Owner != "full" || changes[0].Next != "roomy" {
		t.Errorf("%d shards move: %+v", len(changes), changes)
	}
	if short := tracker.Short(); short != nil {
		t.Errorf("one has room, and short are %v", short)
	}
	tracker.Heard(client.Heartbeat{Node: "roomy", Boot: ids.ID{2}, Leaving: true, Short: true})
	if short := tracker.Short(); !slices.Equal(short, []string{"full"}) {
		t.Errorf("without the one that leaves, short are %v", short)
	}
	if now = now.Add(time.Second); tracker.Short() != nil {
		t.Error("who is silent is short")
	}
}

func TestNewLeaderWaits(t *testing.T) {
	now := time.Unix(100, 0)
	tracker := New(Config{Lease: time.Second, EndWithin: within(time.Second),
		Now: func() time.Time { return now }})
	nodes := []*state.Node{{Name: "gone", Boot: ids.ID{1}, Capacity: 1},
		{Name: "here", Boot: ids.ID{2}, Capacity: 1}}
	shard := []*state.Shard{{Owner: "gone", Epoch: 1}}
	beat := client.Heartbeat{Node: "here", Boot: ids.ID{2}}
	tracker.Heard(beat)
	for _, change := range tracker.Plan(nodes, shard) {
		if change.Owner != "gone" {
			t.Fatal("the shard was given away at once")
		}
	}
	for end := now.Add(2*time.Second +
		2*time.Second/driftShare); now.Before(end); now = now.Add(tracker.config.Lease / 4) {
		tracker.Heard(beat)
		if changes := tracker.Plan(nodes, shard); len(changes) > 0 && changes[0].Owner != "gone" {
			t.Fatalf("%v too early: %+v", end.Sub(now), changes)
		}
	}
	if !tracker.Answer(nodes[1], shard).Soon {
		t.Error("who may take over should come back soon")
	}
	tracker.Heard(beat)
	if changes := tracker.Plan(nodes, shard); len(changes) != 1 || changes[0].Owner != "here" {
		t.Fatalf("after the wait: %+v", changes)
	}
}

// Planning at the due time replaces a gone owner exactly at the end of the wait, even if the wait
// has changed.
func TestDueIsTheEndOfTheWait(t *testing.T) {
	began := time.Unix(100, 0)
	now, ending := began, 5*time.Second
	tracker := New(Config{Lease: time.Second, EndWithin: func() time.Duration { return ending },
		Now: func() time.Time { return now }})
	nodes := []*state.Node{{Name: "gone", Boot: ids.ID{1}, Capacity: 1},
		{Name: "here", Boot: ids.ID{2}, Capacity: 1}}
	shard := []*state.Shard{{Owner: "gone", Epoch: 1}, {Owner: "here", Epoch: 1}}
	end := began.Add(time.Second + 300*time.Millisecond)
	end = end.Add(end.Sub(began) / driftShare)
	for {
		tracker.Heard(client.Heartbeat{Node: "here", Boot: ids.ID{2},
			Holding: []client.ShardEpoch{{Epoch: 1}}})
		if len(tracker.Plan(nodes, shard)) > 0 {
			break
		}
		if now.After(began.Add(time.Second)) {
			ending = 300 * time.Millisecond // by now all fetchers end their requests
		}
		due := tracker.Due(nodes, shard)
		if due <= 0 || due > tracker.config.Lease/4 {
			t.Fatalf("due after %v", due)
		}
		now = now.Add(due)
	}
	if !now.Equal(end) {
		t.Errorf("replaced after %v, want %v", now.Sub(began), end.Sub(began))
	}
}

// A leader that was away gives its fetchers time to return, whichever comes first.
func TestLeaderThatWasAwayWaits(t *testing.T) {
	now := time.Unix(100, 0)
	tracker := New(Config{Lease: time.Second, EndWithin: within(time.Second),
		Now: func() time.Time { return now }})
	nodes := []*state.Node{{Name: "slow", Boot: ids.ID{1}, Capacity: 1},
		{Name: "quick", Boot: ids.ID{2}, Capacity: 1}}
	list := []*state.Shard{{Owner: "slow", Epoch: 1}, {Number: 1, Owner: "quick", Epoch: 1}}
	for shard, node := range nodes {
		tracker.Heard(client.Heartbeat{Node: node.Name, Boot: node.Boot,
			Holding: []client.ShardEpoch{{Shard: uint16(shard), Epoch: 1}}})
	}
	now = now.Add(15 * time.Second)
	for _, node := range []*state.Node{nodes[1], nodes[0]} { // they have dropped their shards
		tracker.Heard(client.Heartbeat{Node: node.Name, Boot: node.Boot})
		if changes := tracker.Plan(nodes, list); len(changes) > 0 {
			t.Errorf("after %s came: %+v", node.Name, changes)
		}
		now = now.Add(time.Second / 3)
	}
}

func TestWaitCoversClocksThatDrift(t *testing.T) {
	tracker := New(Config{Lease: lease * time.Millisecond,
		EndWithin: within(ending * time.Millisecond), Now: time.Now})
	// true time, by a fast leader clock
	given := float64(tracker.wait().Milliseconds()) / (1 + maxDrift)
	if works := (lease + ending) / (1 - maxDrift); given < works { // by a slow fetcher clock
		t.Fatalf("a shard is given away after %.0f ms while its holder may work for %.0f ms", given,
			works)
	}
}
