package fsm

import (
	"slices"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// scheduled makes a scraper of the customer a with a schedule.
func (b *bench) scheduled(group ids.ID, name string) ids.ID {
	b.t.Helper()
	return b.must(command.PutScraperPayload{Create: true, ID: b.ids.New(), Customer: "a",
		Group: group, Spec: model.Scraper{Name: name, Type: model.SingleProduct,
			Schedule:    "* * * * *",
			ItemsConfig: []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}},
	}).(state.Scraper).ID
}

// move returns a move of a schedule from its current state.
func (b *bench) move(target ids.ID, to, start int64) command.ScheduleMove {
	b.t.Helper()
	s := b.view().Schedule(target)
	if s == nil {
		b.t.Fatal("there is no schedule")
	}
	return command.ScheduleMove{Target: target, Set: s.Set, From: s.Next, To: to, Start: start,
		Item: b.ids.New()}
}

func (b *bench) moves(moves ...command.ScheduleMove) {
	b.t.Helper()
	b.must(command.MoveSchedulesPayload{Moves: moves})
}

// A due start does not launch a scraper whose schedule has ended since.
func TestItemPassesOverPaused(t *testing.T) {
	for name, pause := range map[string]func(b *bench, group, scraper ids.ID){
		"group": func(b *bench, group, _ ids.ID) {
			b.must(command.PutStartTypePayload{Customer: "a", Group: group, StartType: "NONE"})
		},
		"scraper": func(b *bench, group, scraper ids.ID) {
			spec := b.view().Scraper(scraper).Spec
			spec.Schedule = ""
			b.must(command.PutScraperPayload{ID: scraper, Customer: "a", Group: group, Spec: spec})
		},
		"neither": func(*bench, ids.ID, ids.ID) {},
	} {
		b := newBench(t)
		group, _ := b.members("g", 0)
		scraper := b.scheduled(group, "s")
		b.moves(b.move(scraper, 60, 0))
		b.moves(b.move(scraper, 120, 60))
		item := b.view().WorkOf(work.Launch, "a")[0]
		launch := b.groupLaunch(ids.ID{}, scraper)
		launch.Item = &command.LaunchItem{ID: item.ID, Done: true}
		pause(b, group, scraper)
		got := b.must(launch).(command.LaunchedRuns)
		if paused := len(got.Skipped) == 1 && got.Skipped[0].Reason == state.SkipPaused; paused !=
			(name != "neither") || len(got.Jobs) == len(got.Skipped) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A start becomes work once, however often and late its move comes. A changed schedule wins.
func TestScheduleMovesOnce(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	one, two := b.scheduled(group, "one"), b.scheduled(group, "two")
	first := []command.ScheduleMove{b.move(one, 60, 0), b.move(two, 60, 0)}
	b.moves(first...)
	if n := len(b.view().WorkOf(work.Launch, "a")); n != 0 {
		t.Fatalf("%d items before anything is due", n)
	}
	due := []command.ScheduleMove{b.move(one, 120, 60), b.move(two, 120, 60)}
	for range 3 {
		b.moves(due...)
		b.moves(first...)
		items := b.view().WorkOf(work.Launch, "a")
		if len(items) != 1 || !slices.Equal(state.DueOf(items[0].Args).Scrapers,
			[]ids.ID{one, two}) {
			t.Fatalf("%d items", len(items))
		}
	}
	again := b.move(one, 180, 120)
	b.moves(again) // while its last start is under way
	s := b.view().Schedule(one)
	if last := s.Starts[len(s.Starts)-1]; s.Next != 180 || last.Skipped != 1 ||
		last.Reason != state.SkipStarting || len(b.view().WorkOf(work.Launch, "a")) != 1 {
		t.Errorf("%+v", s)
	}
	stale := b.move(two, 180, 120)
	known := b.view().Scraper(two)
	spec := known.Spec
	spec.Schedule = "5 * * * *"
	b.must(command.PutScraperPayload{ID: two, Customer: "a", Group: group, Spec: spec})
	b.moves(stale)
	if s := b.view().Schedule(two); s.Next != 0 || s.Cron != "5 * * * *" {
		t.Errorf("of another expression: %+v", s)
	}
	missed := b.move(one, 1_000, 0)
	missed.Missed = 7
	b.moves(missed)
	if s := b.view().Schedule(one); s.Starts[len(s.Starts)-1] != (state.Start{At: 180, Missed: 7}) {
		t.Errorf("%+v", s.Starts)
	}
	b.must(command.PutStartTypePayload{Customer: "a", Group: group, StartType: "NONE"})
	before := len(b.view().Schedule(one).Starts)
	b.moves(b.move(one, 2_000, 1_000))
	if s := b.view().Schedule(one); s.Next != 2_000 || len(s.Starts) != before {
		t.Errorf("while it is paused: %+v", s)
	}
	spec.Schedule = ""
	b.must(command.PutScraperPayload{ID: two, Customer: "a", Group: group, Spec: spec})
	b.deleteGroup(group, "")
	if b.view().Schedule(one) != nil || b.view().Schedule(two) != nil {
		t.Error("a schedule is left")
	}
}

// A customer's due starts make a bounded number of items; the rest waits.
func TestStartsAreBounded(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	var all []command.ScheduleMove
	for range state.MaxDueScrapers + 1 {
		all = append(all, b.move(b.scheduled(group, b.ids.New().String()), 60, 1))
	}
	b.moves(all...)
	if items := b.view().WorkOf(work.Launch, "a"); len(items) != 2 {
		t.Fatalf("%d items", len(items))
	}
	for _, item := range b.view().WorkOf(work.Launch, "a") {
		if n := len(item.Args); n > maxWorkArgs {
			t.Errorf("arguments of %d bytes", n)
		}
	}
	for range state.MaxLaunches + 5 {
		b.moves(b.move(b.scheduled(group, b.ids.New().String()), 60, 1))
	}
	waiting := 0
	b.view().SchedulesByDue(func(s *state.Schedule) bool {
		if s.Next == 0 {
			waiting++
		}
		return true
	})
	if n := len(b.view().WorkOf(work.Launch, "a")); n != state.MaxLaunches || waiting != 7 {
		t.Errorf("%d items, %d starts wait", n, waiting)
	}
}

// Groups start by their type. The command for older groups does not change the others.
func TestGroupsAreArranged(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	kind := func() string {
		if s := b.view().Schedule(group); s != nil {
			return s.Cron
		}
		return ""
	}
	for _, startType := range []string{"DAILY", "WEEKLY", "MANUAL", "DAILY", "NONE"} {
		b.must(command.PutStartTypePayload{Customer: "a", Group: group, StartType: startType})
		b.must(command.ArrangeGroupsPayload{Groups: []ids.ID{group, {9}}})
		want := startType
		if startType == "MANUAL" || startType == "NONE" {
			want = ""
		}
		if kind() != want {
			t.Errorf("%s: it starts %q", startType, kind())
		}
	}
	b.must(command.PutStartTypePayload{Customer: "a", Group: group, StartType: "DAILY"})
	b.moves(b.move(group, 60, 0))
	set := *b.view().Schedule(group)
	b.must(command.ArrangeGroupsPayload{Groups: []ids.ID{group}})
	if got := b.view().Schedule(group); got.Next != 60 || got.Set != set.Set {
		t.Errorf("%+v", got)
	}
	b.moves(b.move(group, 120, 60))
	b.must(command.StopGroupPayload{Customer: "a", Group: group})
	if n := len(b.view().WorkOf(work.Launch, "a")); n != 0 || !b.view().Schedule(group).Pending.
		IsZero() {
		t.Errorf("%d items after the group was stopped", n)
	}
	b.must(command.PutGroupPayload{ID: group, Customer: "a", Name: "g", StartType: "DAILY",
		Zone: "Europe/Berlin"})
	if got := b.view().Schedule(group); got.Next != 0 || got.Zone != "Europe/Berlin" {
		t.Errorf("in another zone: %+v", got)
	}
}

// An item makes its runs once. A repeated command, or another owner's, changes nothing, and what
// does not fit waits.
func TestItemLaunchesOnce(t *testing.T) {
	b := newBench(t)
	group, members := b.members("g", 2)
	b.must(command.PutStartTypePayload{Customer: "a", Group: group, StartType: "DAILY"})
	b.moves(b.move(group, 60, 0))
	b.moves(b.move(group, 120, 60))
	item := b.view().WorkOf(work.Launch, "a")[0]
	first := b.groupLaunch(group, members[0])
	first.Item = &command.LaunchItem{ID: item.ID, Upto: []byte{1}}
	second := b.groupLaunch(group, members[1])
	second.Skipped = []command.SkippedScraper{{Scraper: ids.ID{8}, Reason: state.SkipTiers}}
	second.Item = &command.LaunchItem{ID: item.ID, From: []byte{1}, Done: true}
	other := b.groupLaunch(group, members...)
	other.Item = &command.LaunchItem{ID: item.ID, Done: true}
	for _, c := range []struct {
		p    command.LaunchRunsPayload
		want int
	}{{second, 0}, {first, 1}, {first, 0}, {other, 0}, {second, 1}, {second, 0}, {other, 0}} {
		if got := b.must(c.p).(command.LaunchedRuns); len(got.Jobs) != c.want {
			t.Fatalf("%d jobs, want %d", len(got.Jobs), c.want)
		}
	}
	s := b.view().Schedule(group)
	if want := (state.Start{At: 60, Launched: 2, Skipped: 1, Reason: state.SkipTiers}); len(
		s.Starts) != 1 || s.Starts[0] != want || !s.Pending.IsZero() ||
		b.view().WorkItem(item.ID) != nil {
		t.Errorf("%+v", s)
	}
}

// Starts refused for the same reason are reported once. Another reason is reported, and so is a
// refusal after a start that was made.
func TestRefusedStartsAreTold(t *testing.T) {
	b := newBench(t)
	group, _ := b.members("g", 0)
	scraper := b.scheduled(group, "one")
	b.moves(b.move(scraper, 60, 0))
	at := int64(60)
	start := func(reason state.SkipReason, notices int) {
		t.Helper()
		b.moves(b.move(scraper, at+60, at))
		item := b.view().WorkOf(work.Launch, "a")[0]
		b.moves(b.move(scraper, at+90, at+60)) // while the previous start is under way
		p := command.LaunchRunsPayload{Customer: "a", Item: &command.LaunchItem{ID: item.ID,
			Done: true}}
		if p.Skipped = []command.SkippedScraper{{Scraper: scraper, Reason: reason}}; reason == 0 {
			p.Skipped, p.Runs = nil, b.groupLaunch(group, scraper).Runs
		}
		b.must(p)
		b.must(p)
		s := b.view().Schedule(scraper)
		made := s.Starts[s.Launching()]
		if made.At != at || made.Reason != reason || made.Launched+made.Skipped != 1 {
			t.Errorf("of the start at %d: %+v", at, s.Starts)
		}
		all := told(b.view(), "a")
		if len(all) != notices {
			t.Fatalf("%d notices, want %d", len(all), notices)
		}
		if news := all; reason.Refusal() && (news[0].Event != model.StartRefused ||
			news[0].Scraper != scraper || news[0].Message != reason.String()) {
			t.Errorf("%+v", news[0])
		}
		at += 90
	}
	start(state.SkipUnaffordable, 1)
	start(state.SkipUnaffordable, 1)
	start(state.SkipPlan, 2)
	start(state.SkipRunning, 2)
	start(state.SkipPlan, 3)
	start(0, 3)
	start(state.SkipBlocked, 4)
}

// If a start skips scrapers for several reasons, lack of money is reported first, then what else
// must be fixed. Their order and the number of commands do not matter.
func TestWantOfMoneyIsToldFirst(t *testing.T) {
	reasons := []state.SkipReason{state.SkipRunning, state.SkipInvalid, state.SkipUnaffordable,
		state.SkipSchema, state.SkipFile}
	for from := range reasons {
		for _, together := range []bool{true, false} {
			b := newBench(t)
			group, scrapers := b.members("g", len(reasons))
			b.must(command.PutStartTypePayload{Customer: "a", Group: group, StartType: "DAILY"})
			b.moves(b.move(group, 60, 0))
			b.moves(b.move(group, 120, 60))
			item := b.view().WorkOf(work.Launch, "a")[0]
			var skipped []command.SkippedScraper
			for n, scraper := range scrapers {
				skipped = append(skipped, command.SkippedScraper{Scraper: scraper,
					Reason: reasons[(from+n)%len(reasons)]})
			}
			p := command.LaunchRunsPayload{Customer: "a", Group: group,
				Item: &command.LaunchItem{ID: item.ID}}
			for at := range skipped {
				p.Item.From, p.Item.Upto = p.Item.Upto, []byte{byte(at + 1)}
				p.Skipped, p.Item.Done = skipped[at:at+1], at+1 == len(skipped)
				if together {
					p.Skipped, p.Item.Done = skipped, true
				}
				b.must(p)
				if together {
					break
				}
			}
			start := b.view().Schedule(group).Starts[0]
			news := told(b.view(), "a")
			if start.Reason != state.SkipUnaffordable || int(start.Skipped) != len(skipped) ||
				len(news) != 1 || news[0].Message != "NOT_AFFORDABLE" {
				t.Errorf("from %d, together %v: %+v, %+v", from, together, start, news)
			}
		}
	}
}
