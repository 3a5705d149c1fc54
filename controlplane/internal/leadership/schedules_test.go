package leadership

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/pkg/schedule"
	"shoal.dev/shoal/pkg/work"
)

var (
	simulated = flag.Int("schedules", 300, "how many schedules the simulated year has")
	days      = flag.Int("days", 20, "how long the simulated year is")
)

// year is a state with schedules, the leaders that move them, and the result of each start.
type year struct {
	*testing.T
	m      *fsm.FSM
	random *rand.Rand
	ids    ids.Sequence
	index  uint64
	now    int64 // true time, Unix milliseconds
	begun  int64

	targets map[ids.ID]schedule.Schedule
	made    map[ids.ID]map[int64]bool
	old     []*state.View // views of earlier leaders
}

func (y *year) apply(payload command.Payload) any {
	y.Helper()
	data, err := y.m.Encode(y.ids.New(), y.now, payload, nil)
	if err != nil {
		y.Fatal(err)
	}
	y.index++
	result := y.m.Apply(y.index, data)
	if result.Err != nil {
		y.Fatalf("%T: %v", payload, result.Err)
	}
	return result.Value
}

func newYear(t *testing.T, schedules int) *year {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	y := &year{T: t, m: fsm.New(), random: rand.New(rand.NewPCG(1, 2)), now: begun, begun: begun,
		targets: map[ids.ID]schedule.Schedule{}, made: map[ids.ID]map[int64]bool{}}
	y.apply(command.CreateClusterPayload{Version: command.Newest, ID: y.ids.New(), Shards: 1,
		Prices: price.Standard()})
	zones := []string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
		"Asia/Kolkata"}
	group, customer := ids.ID{}, ""
	for n := range schedules {
		if n%100 == 0 {
			customer, group = fmt.Sprint("c", n), y.ids.New()
			y.apply(command.OpenCustomerPayload{Customer: customer, Entry: y.ids.New()})
			y.apply(command.PutGroupPayload{Create: true, ID: group, Customer: customer,
				Name: "g", StartType: "MANUAL"})
		}
		zone, id := zones[y.random.IntN(len(zones))], y.ids.New()
		if n%10 == 0 { // a group that starts by its start type
			y.apply(command.PutGroupPayload{Create: true, ID: id, Customer: customer,
				Name: fmt.Sprint(n), StartType: []string{"DAILY", "WEEKLY"}[n/10%2], Zone: zone})
			y.follow(id, schedule.OfGroup(y.m.Store().View().Group(id).StartType, id), zone)
			continue
		}
		hour, minute := y.random.IntN(24), y.random.IntN(60)
		cron := []string{fmt.Sprintf("%d %d * * *", minute, hour),
			fmt.Sprintf("%d */6 * * *", minute), fmt.Sprintf("%d %d * * 1-5", minute, hour),
			fmt.Sprintf("30 2,%d 1,15 * *", hour)}[y.random.IntN(4)]
		y.apply(command.PutScraperPayload{Create: true, ID: id, Customer: customer, Group: group,
			Spec: model.Scraper{Name: fmt.Sprint("s", n), Type: model.SingleProduct,
				Schedule: cron, ScheduleTimezone: zone,
				ItemsConfig: []model.Field{{Name: "t", Selector: "h1", Kind: model.Text}}}})
		y.follow(id, cron, zone)
	}
	return y
}

func (y *year) follow(target ids.ID, cron, zone string) {
	y.Helper()
	s, err := schedule.Parse(cron, zone)
	if err != nil {
		y.Fatal(err)
	}
	y.targets[target], y.made[target] = s, map[int64]bool{}
}

// lead lets a leader with a clock offset move the schedules due in a present or past view.
func (y *year) lead(view *state.View, off time.Duration) {
	var zones schedule.Zones
	for {
		_, stateTime := y.m.Store().Progress()
		now := time.UnixMilli(max(stateTime, y.now)).Add(off)
		moves := dueMoves(view, now, &zones, &y.ids)
		if len(moves) == 0 {
			return
		}
		y.apply(command.MoveSchedulesPayload{Moves: moves})
		if y.random.IntN(4) == 0 {
			y.apply(command.MoveSchedulesPayload{Moves: moves}) // a repeat: its answer was lost
		}
		y.take()
		if y.isOld(view) {
			return // it has lost leadership since
		}
		view = y.m.Store().View()
	}
}

func (y *year) isOld(view *state.View) bool {
	for _, old := range y.old {
		if old == view {
			return true
		}
	}
	return false
}

// take records the due starts and carries them out.
func (y *year) take() {
	view := y.m.Store().View()
	view.EachWork(func(w *state.Work) bool {
		if w.Kind != work.Launch {
			return true
		}
		due := state.DueOf(w.Args)
		targets := due.Scrapers
		if !due.Group.IsZero() {
			targets = []ids.ID{due.Group}
		}
		p := command.LaunchRunsPayload{Customer: w.Customer, Group: due.Group,
			Item: &command.LaunchItem{ID: w.ID, Done: true}}
		for _, target := range targets {
			starts := view.Schedule(target).Starts
			at := starts[len(starts)-1].At
			if y.made[target][at] {
				y.Fatalf("the start %v is made twice", time.UnixMilli(at).UTC())
			}
			y.made[target][at] = true
			if due.Group.IsZero() {
				p.Skipped = append(p.Skipped, command.SkippedScraper{Scraper: target,
					Reason: state.SkipTiers})
			}
		}
		y.apply(p)
		return true
	})
}

// During a year of schedules, leaders change, old leaders' moves arrive late, and clocks are off.
// At times nobody leads for hours. No start happens twice or without being due. A start is skipped
// only if nobody led when it was due and it was an hour late or overtaken by a newer one.
func TestYearOfSchedules(t *testing.T) {
	schedules, length := *simulated, *days
	if testing.Short() {
		schedules, length = min(schedules, 100), min(length, 10)
	}
	y := newYear(t, schedules)
	type away struct{ from, to int64 }
	var nobody []away
	end := y.begun + int64(length)*24*time.Hour.Milliseconds()
	const off = 2 * time.Second
	for y.now < end {
		from := y.now
		y.now += y.random.Int64N(2 * time.Minute.Milliseconds())
		if y.random.IntN(2_000) == 0 { // nobody leads
			y.now += y.random.Int64N(5 * time.Hour.Milliseconds())
			nobody = append(nobody, away{from, y.now})
		}
		jump := time.Duration(0)
		if y.random.IntN(500) == 0 {
			jump = time.Duration(y.random.Int64N(int64(2*off))) - off
		}
		if y.random.IntN(300) == 0 { // a leader whose moves will arrive late
			y.old = append(y.old[max(0, len(y.old)-3):], y.m.Store().View())
		}
		if len(y.old) > 0 && y.random.IntN(100) == 0 {
			y.lead(y.old[y.random.IntN(len(y.old))], jump)
		}
		y.lead(y.m.Store().View(), jump)
	}
	made, left := 0, 0
	for target, s := range y.targets {
		for at := time.UnixMilli(y.begun).Add(10 * time.Minute); ; {
			next, ok := s.Next(at)
			if !ok || next.UnixMilli() >= end-time.Hour.Milliseconds() {
				break
			}
			at = next
			if y.made[target][at.UnixMilli()] {
				made++
				delete(y.made[target], at.UnixMilli())
				continue
			}
			left++
			excused := false
			for _, a := range nobody {
				excused = excused || at.UnixMilli() >= a.from-off.Milliseconds() &&
					at.UnixMilli() <= a.to
			}
			if !excused {
				t.Fatalf("the start %v is left out: %+v", at, y.m.Store().View().Schedule(target))
			}
		}
		for extra := range y.made[target] {
			if extra > y.begun+10*time.Minute.Milliseconds() &&
				extra < end-time.Hour.Milliseconds() {
				t.Fatalf("a start is made that is none: %v", time.UnixMilli(extra).UTC())
			}
		}
	}
	t.Logf("%d starts made, %d missed while nobody led", made, left)
	if made < *simulated {
		t.Errorf("%d starts are too few to tell", made)
	}
}

// Due schedules are found by an index, however many schedules there are.
func TestDueAreFoundByIndex(t *testing.T) {
	store := state.NewStore()
	const all = 100_000
	if err := store.Update(1, 1, func(tx *state.Tx) error {
		for n := range all {
			tx.PutSchedule(&state.Schedule{Target: ids.ID{1, byte(n >> 16), byte(n >> 8), byte(n)},
				Customer: "c", Cron: "0 0 * * *", Set: 1, Next: int64(1_000_000 + n)})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	visited := 0
	store.View().SchedulesByDue(func(s *state.Schedule) bool {
		visited++
		return s.Next <= 1_000_004
	})
	var source ids.Sequence
	moves := dueMoves(store.View(), time.UnixMilli(1_000_004), &schedule.Zones{}, &source)
	if len(moves) != 5 || visited != 6 {
		t.Errorf("%d moves, %d visited", len(moves), visited)
	}
	most := dueMoves(store.View(), time.UnixMilli(1<<40), &schedule.Zones{}, &source)
	if len(most) != command.MaxMoves {
		t.Errorf("%d moves at once", len(most))
	}
}
