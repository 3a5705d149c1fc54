package fsm

import (
	"reflect"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// groupLaunch returns a command that launches scrapers of a group of the customer a.
func (b *bench) groupLaunch(group ids.ID, scrapers ...ids.ID) command.LaunchRunsPayload {
	p := command.LaunchRunsPayload{Customer: "a", Group: group}
	for _, s := range scrapers {
		p.Runs = append(p.Runs, command.GroupRun{Job: b.ids.New(), Entry: b.ids.New(),
			List: b.ids.New(), Scraper: s, Links: 1, Tiers: model.TiersOf(model.Plain)})
	}
	return p
}

// under applies a command under an idempotency key.
func (b *bench) under(key string, id ids.ID, payload command.Payload) Result {
	b.t.Helper()
	data, err := b.m.Encode(id, b.now, payload,
		&command.Call{Customer: "a", Operation: "run", Key: key})
	if err != nil {
		b.t.Fatal(err)
	}
	b.index++
	return b.m.Apply(b.index, data)
}

// A group is launched once, however often the command is repeated and whatever its runs did. The
// answer lists what the state refused.
func TestGroupIsLaunchedOnce(t *testing.T) {
	b := newBench(t)
	group, members := b.members("g", 3)
	_, elsewhere := b.members("h", 1)
	if _, err := b.launch(members[2]); err != nil {
		t.Fatal(err)
	}
	p := b.groupLaunch(group, members[0], members[1], members[2], elsewhere[0], ids.ID{9})
	p.Skipped = []command.SkippedScraper{{Scraper: ids.ID{8}, Reason: state.SkipFile}}
	first := b.under("k", ids.ID{1, 1}, p)
	answer, ok := first.Value.(command.LaunchedRuns)
	if !ok || len(answer.Jobs) != 2 || answer.Jobs[0].Job != p.Runs[0].Job {
		t.Fatalf("%+v", first)
	}
	want := []command.SkippedScraper{{Scraper: ids.ID{8}, Reason: state.SkipFile},
		{Scraper: members[2], Reason: state.SkipRunning},
		{Scraper: elsewhere[0], Reason: state.SkipNoSource},
		{Scraper: ids.ID{9}, Reason: state.SkipNoSource}}
	if !reflect.DeepEqual(answer.Skipped, want) {
		t.Errorf("skipped %+v", answer.Skipped)
	}
	b.must(command.StopGroupPayload{Customer: "a", Group: group})
	for _, job := range answer.Jobs {
		b.must(command.CloseRunPayload{Job: job.Job})
	}
	count := func() (n int) {
		b.view().CustomerJobs("a", func(*state.Job) bool { n++; return true })
		return n
	}
	before := count()
	for _, id := range []ids.ID{{1, 1}, {1, 2}} { // the same command, and a repeat of the call
		again := b.under("k", id, p)
		if !reflect.DeepEqual(again.Value, first.Value) || count() != before {
			t.Errorf("again: %+v, %d runs", again, count())
		}
	}
	p = b.groupLaunch(group, members[0]) // without a key, only the command's id identifies a repeat
	first = b.by(nil, ids.ID{1, 3}, p)
	if again := b.by(nil, ids.ID{1, 3}, p); !reflect.DeepEqual(again, first) ||
		count() != before+1 {
		t.Errorf("%+v, then %+v, %d runs", first, again, count())
	}
	b.refused(command.LaunchRunsPayload{Customer: "b", Group: group}, fault.NotFound)
	b.refused(command.StopGroupPayload{Customer: "b", Group: group}, fault.NotFound)
	b.refused(command.LaunchRunsPayload{Customer: "a", Group: group,
		Runs: make([]command.GroupRun, command.MaxRunsAtOnce+1)}, fault.InvalidRequest)
	b.must(command.BlockCustomerPayload{Customer: "a", By: "root"})
	b.refused(p, fault.CustomerBlocked)
}

// The largest launch fits into the log, and keeps the state machine busy for a bounded time.
func TestLargestLaunch(t *testing.T) {
	b := newBench(t)
	group, members := b.members("g", command.MaxRunsAtOnce+1)
	p := b.groupLaunch(group, members[:command.MaxRunsAtOnce]...)
	for range command.MaxSkips {
		p.Skipped = append(p.Skipped, command.SkippedScraper{Scraper: b.ids.New(),
			Reason: state.SkipLimit})
	}
	body, err := b.m.EncodePayload(p)
	if err != nil || len(body) > 512<<10 {
		t.Errorf("%d bytes: %v", len(body), err)
	}
	began := time.Now()
	answer := b.under("k", ids.ID{1, 1}, p).Value.(command.LaunchedRuns)
	if claim := b.view().Claim("a", "run", "k"); claim.Bytes() > 45<<10 {
		t.Errorf("its record has %d bytes", claim.Bytes())
	}
	t.Logf("%d bytes, applied in %v", len(body), time.Since(began))
	if len(answer.Jobs) != command.MaxRunsAtOnce || len(answer.Skipped) != command.MaxSkips {
		t.Errorf("%d jobs, %d skipped", len(answer.Jobs), len(answer.Skipped))
	}
	rest := b.under("l", ids.ID{1, 2}, b.groupLaunch(group, members[command.MaxRunsAtOnce]))
	if got := rest.Value.(command.LaunchedRuns); len(got.Jobs) != 0 || len(got.Skipped) != 1 ||
		got.Skipped[0].Reason != state.SkipLimit {
		t.Errorf("beyond the bound: %+v", got)
	}
}

// TestRecordsOfLaunchesAreBrief: of each run of a group a call's record keeps two ids alone, and
// the answer stays the same. The record of a launch of which only some runs were paid keeps more.
func TestRecordsOfLaunchesAreBrief(t *testing.T) {
	for name, c := range map[string]struct {
		unpaid func(n int) bool
		bytes  int // of a run
	}{
		"paid":      {func(int) bool { return false }, 27},
		"unpaid":    {func(int) bool { return true }, 27},
		"some paid": {func(n int) bool { return n%2 == 0 }, 44},
	} {
		b := newBench(t)
		b.now = 1_700_000_000_000
		group, members := b.members("g", 100)
		p := b.groupLaunch(group, members...)
		for n := range p.Runs {
			p.Runs[n].Charge.PaidOnly = c.unpaid(n)
		}
		first := b.under("k", b.ids.New(), p)
		if answer, ok := first.Value.(command.LaunchedRuns); !ok || len(answer.Jobs) != 100 {
			t.Fatalf("%s: %+v", name, first)
		}
		if n := b.view().Claim("a", "run", "k").Bytes(); n > 100*c.bytes+mostKept {
			t.Errorf("%s: its record has %d bytes", name, n)
		}
		b.now += claimKeptMillis - 1
		for _, again := range []command.Payload{p, command.ClaimCallPayload{}} {
			if got := b.under("k", b.ids.New(), again); !got.Replayed ||
				!reflect.DeepEqual(got.Value, first.Value) {
				t.Errorf("%s: %T again: %+v", name, again, got)
			}
		}
	}
}
