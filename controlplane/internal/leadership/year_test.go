package leadership

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/controlplane/internal/timekeeper"
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

const (
	// unsure is how far state time may be off the time that most clocks show. An unconfirmed clock
	// moves it by its tolerance, and clocks that differ by a minute agree.
	unsure     = timekeeper.Tolerance + time.Minute
	rightClock = 20 * time.Second // how far a clock that is right may be off
	// settled is how long after a disturbance state time may still leap to the clocks' time.
	settled = 45 * time.Minute
	// inTime is the age below which a missed start is made up for (decision 65).
	inTime = time.Hour
)

// voter is a node that may lead, with its clocks.
type voter struct {
	keeper *timekeeper.Keeper
	off    time.Duration // its clock minus the true time
	born   int64         // when its monotonic clock began; sleep moves that
}

// proposed is a command of a leader, and the time by which it computed the moves.
type proposed struct {
	moves []command.ScheduleMove
	now   time.Time
}

// year is a state with schedules, the voters that lead in turn, and what came of each due time.
type year struct {
	*testing.T
	m      *fsm.FSM
	random *rand.Rand
	ids    ids.Sequence
	index  uint64

	now       int64 // true time, Unix milliseconds
	most      int64 // the latest time that most clocks have shown, and the time since
	disturbed int64 // true time when nobody led last, or when most clocks were not right
	all       [3]voter
	voters    []*voter // all three, or one
	leads     *voter

	scrapers []ids.ID
	targets  map[ids.ID]schedule.Schedule
	last     map[ids.ID]int64 // the newest start made
	late     []proposed       // by earlier leaders
	zones    schedule.Zones

	made, missed, skipped int
}

var yearZones = []string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
	"Asia/Kolkata"}

func newYear(t *testing.T, schedules int) *year {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	y := &year{T: t, m: fsm.New(), random: rand.New(rand.NewPCG(1, 2)), now: begun, most: begun,
		disturbed: begun, targets: map[ids.ID]schedule.Schedule{}, last: map[ids.ID]int64{}}
	for i := range y.all {
		y.all[i] = voter{keeper: &timekeeper.Keeper{}, born: begun}
		y.voters = append(y.voters, &y.all[i])
	}
	y.begin(y.voters[0])
	y.apply(command.CreateClusterPayload{Version: command.Newest, ID: y.ids.New(), Shards: 1,
		Prices: price.Standard()})
	group, customer := ids.ID{}, ""
	for n := range schedules {
		if n%100 == 0 {
			customer, group = fmt.Sprint("c", n), y.ids.New()
			y.apply(command.OpenCustomerPayload{Customer: customer, Entry: y.ids.New()})
			y.apply(command.PutGroupPayload{Create: true, ID: group, Customer: customer,
				Name: "g", StartType: "MANUAL"})
		}
		zone, id := yearZones[y.random.IntN(len(yearZones))], y.ids.New()
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
		y.scrapers = append(y.scrapers, id)
	}
	return y
}

func (y *year) follow(target ids.ID, cron, zone string) {
	y.Helper()
	s, err := schedule.Parse(cron, zone)
	if err != nil {
		y.Fatal(err)
	}
	y.targets[target] = s
}

// changeZone moves a scraper's schedule to another zone. Its earlier times no longer count.
func (y *year) changeZone() {
	known := y.m.Store().View().Scraper(y.scrapers[y.random.IntN(len(y.scrapers))])
	spec := known.Spec
	spec.ScheduleTimezone = yearZones[y.random.IntN(len(yearZones))]
	y.apply(command.PutScraperPayload{ID: known.ID, Customer: known.Customer, Group: known.Group,
		Spec: spec})
	y.follow(known.ID, spec.Schedule, spec.ScheduleTimezone)
}

// apply applies a command that the leader stamps.
func (y *year) apply(payload command.Payload) {
	y.Helper()
	y.applyAt(payload, y.leads.keeper.Stamp(y.reading(y.leads)).UnixMilli())
}

func (y *year) applyAt(payload command.Payload, stamp int64) {
	y.Helper()
	data, err := y.m.Encode(y.ids.New(), stamp, payload, nil)
	if err != nil {
		y.Fatal(err)
	}
	before := y.stateTime()
	y.index++
	if result := y.m.Apply(y.index, data); result.Err != nil {
		y.Fatalf("%T: %v", payload, result.Err)
	}
	if after := y.stateTime(); after < before ||
		after > max(y.most, y.now)+unsure.Milliseconds() {
		y.Fatalf("at %v state time goes from %v to %v, most clocks showed %v", utc(y.now),
			utc(before), utc(after), utc(y.most))
	}
}

func utc(milli int64) time.Time { return time.UnixMilli(milli).UTC() }

func (y *year) stateTime() int64 {
	_, now := y.m.Store().Progress()
	return now
}

func (y *year) reading(v *voter) timekeeper.Reading {
	return timekeeper.Reading{Wall: time.UnixMilli(y.now).Add(v.off),
		Elapsed: time.Duration(y.now-v.born) * time.Millisecond}
}

// shown returns the time that most voters' clocks show.
func (y *year) shown() int64 {
	var clocks []int64
	for _, v := range y.voters {
		clocks = append(clocks, y.now+v.off.Milliseconds())
	}
	slices.Sort(clocks)
	return clocks[len(clocks)/2]
}

// pass lets time pass.
func (y *year) pass(d int64) {
	y.now += d
	y.most += d
	y.settle()
}

// settle remembers the latest time that most clocks have shown, until state time is not later.
func (y *year) settle() {
	shown := y.shown()
	if y.most = max(y.most, shown); y.stateTime() <= shown {
		y.most = shown
	}
	right := 0
	for _, v := range y.voters {
		if v.off.Abs() <= rightClock {
			right++
		}
	}
	if 2*right <= len(y.voters) {
		y.disturbed = y.now
	}
}

// begin makes a voter the leader. Like each leader, it compares the clocks before anything is due.
func (y *year) begin(v *voter) {
	y.leads = v
	at := time.Time{}
	if now := y.stateTime(); now > 0 {
		at = time.UnixMilli(now)
	}
	v.keeper.BeginTerm(y.reading(v), at)
	y.compare()
}

// compare compares the leader's clock with those of the voters that answer.
func (y *year) compare() {
	now, witnesses := y.reading(y.leads), []timekeeper.Witness(nil)
	for _, v := range y.voters {
		if v != y.leads && y.random.IntN(4) > 0 {
			witnesses = append(witnesses, timekeeper.Witness{Wall: y.reading(v).Wall,
				Elapsed: now.Elapsed})
		}
	}
	found := y.leads.keeper.Hear(now, len(y.voters), witnesses)
	if behind := y.shown() - y.clock().UnixMilli(); found.Verdict == timekeeper.Agreed &&
		behind > unsure.Milliseconds() {
		y.Fatalf("the voters agree, and the leader's time is %d ms behind", behind)
	}
}

// clock is the leader's time, as Clocks.Now has it.
func (y *year) clock() time.Time {
	return time.UnixMilli(max(y.leads.keeper.Stamp(y.reading(y.leads)).UnixMilli(), y.stateTime()))
}

// look lets the leader move what is due, unless it loses leadership. Nothing moves twice.
func (y *year) look() {
	y.apply(command.TickPayload{})
	moved := map[ids.ID]bool{}
	for {
		now := y.clock()
		moves := dueMoves(y.m.Store().View(), now, &y.zones, &y.ids)
		if len(moves) == 0 {
			return
		}
		for _, m := range moves {
			if moved[m.Target] {
				y.Fatalf("%v moves twice at once: %+v", now, m)
			}
			moved[m.Target] = true
		}
		if y.random.IntN(50) == 0 { // its command comes late, maybe for the second time
			y.late = append(y.late[max(0, len(y.late)-3):], proposed{moves, now})
			if y.random.IntN(2) == 0 {
				return
			}
		}
		y.move(proposed{moves, now})
		if y.random.IntN(4) == 0 {
			y.move(proposed{moves, now}) // its answer was lost
		}
	}
}

// move applies a leader's moves, and judges each of them.
func (y *year) move(p proposed) {
	before := y.m.Store().View()
	y.applyAt(command.MoveSchedulesPayload{Moves: p.moves}, p.now.UnixMilli())
	after := y.m.Store().View()
	for _, m := range p.moves {
		y.judge(&m, before, after.Schedule(m.Target), p.now.UnixMilli())
	}
	if y.random.IntN(10) == 0 { // else the starts are still under way when the next come
		y.launch()
	}
}

// judge compares what a move did with the rule. Of the times due at now, the newest starts if it is
// under an hour old. It is skipped if the previous start is still under way. All others are
// recorded as missed. Each due time is judged once: the next one is the first after now.
func (y *year) judge(m *command.ScheduleMove, before *state.View, after *state.Schedule,
	now int64) {
	known := before.Schedule(m.Target)
	if after.Next == known.Next {
		if known.Set == m.Set && known.Next == m.From || len(after.Starts) != len(known.Starts) {
			y.Fatalf("%v: %+v made %+v of %+v", utc(now), m, after, known)
		}
		return
	}
	var due []int64
	s := y.targets[m.Target]
	next, ok := s.Next(utc(now))
	for at := known.Next; at != 0 && at <= now; {
		due = append(due, at)
		following, _ := s.Next(utc(at))
		at = following.UnixMilli()
	}
	want, missed := state.Schedule{Starts: known.Starts}, uint32(len(due))
	starts := len(due) > 0 && now-due[len(due)-1] < inTime.Milliseconds()
	if starts {
		missed--
	}
	if missed > 0 {
		want.Note(state.Start{At: due[0], Missed: min(missed, schedule.MaxMissed)})
		if y.missed += int(missed); y.now-y.disturbed > settled.Milliseconds() {
			y.Fatalf("%v: %d starts are missed, of %+v, by %v after %v", utc(y.now), missed,
				known, utc(now), utc(y.disturbed))
		}
	}
	if starts {
		start := state.Start{At: due[len(due)-1]}
		if before.WorkItem(known.Pending) != nil {
			start.Skipped, start.Reason = 1, state.SkipStarting
			y.skipped++
		} else {
			if start.At <= y.last[m.Target] {
				y.Errorf("%v starts after %v", utc(start.At), utc(y.last[m.Target]))
			}
			y.last[m.Target] = start.At
			y.made++
		}
		want.Note(start)
	}
	if !ok || after.Next != next.UnixMilli() || !slices.Equal(after.Starts, want.Starts) {
		y.Fatalf("at %v, due %v: %+v became %+v, want %v and %+v", utc(now), due, known, after,
			next, want.Starts)
	}
}

// launch carries out the starts made.
func (y *year) launch() {
	view := y.m.Store().View()
	view.EachWork(func(w *state.Work) bool {
		if w.Kind != work.Launch {
			return true
		}
		due := state.DueOf(w.Args)
		p := command.LaunchRunsPayload{Customer: w.Customer, Group: due.Group,
			Item: &command.LaunchItem{ID: w.ID, Done: true}}
		for _, target := range due.Scrapers {
			p.Skipped = append(p.Skipped, command.SkippedScraper{Scraper: target,
				Reason: state.SkipTiers})
		}
		y.apply(p)
		return true
	})
}

// setRight sets all clocks right.
func (y *year) setRight() {
	for i := range y.all {
		y.all[i].off = time.Duration(y.random.Int64N(int64(2*rightClock))) - rightClock
	}
}

// disturb lets leaders change, clocks jump, machines sleep, and voters come and go.
func (y *year) disturb() {
	any := func() *voter { return y.voters[y.random.IntN(len(y.voters))] }
	jump := []time.Duration{5 * time.Minute, 20 * time.Minute, time.Hour, 5 * time.Hour,
		50 * time.Hour}[y.random.IntN(5)]
	if y.random.IntN(2) == 0 {
		jump = -jump
	}
	again := func() { // another leads, maybe a process that has just begun
		v := any()
		if y.random.IntN(2) == 0 {
			v.keeper, v.born = &timekeeper.Keeper{}, y.now
		}
		y.begin(v)
	}
	away := func() {
		y.pass(y.random.Int64N(5 * time.Hour.Milliseconds()))
		y.disturbed = y.now
	}
	switch y.random.IntN(2_000) {
	case 0: // nobody leads
		away()
		again()
	case 1: // the leader's machine sleeps, its monotonic clock too
		slept := y.now
		away()
		y.leads.born += y.now - slept
		if len(y.voters) > 1 {
			again()
		}
	case 2: // most clocks jump, and are set right later
		for i := range y.all {
			y.all[i].off += jump / 7
		}
	case 3: // voters come or go, whose clocks are right
		y.setRight()
		if y.voters = []*voter{&y.all[0]}; y.random.IntN(2) == 0 {
			y.voters = []*voter{&y.all[0], &y.all[1], &y.all[2]}
		}
		again()
	case 4, 5, 6, 7: // one clock jumps, maybe the leader's
		any().off += jump
	case 8, 9, 10, 11, 12, 13:
		y.setRight()
	case 14, 15, 16, 17, 18, 19, 20, 21:
		again()
	case 22:
		y.changeZone()
	}
	y.settle()
}

// During a year of schedules, leaders change, and their last commands arrive late or twice. Their
// clocks jump by minutes, hours and days, and machines sleep. At times nobody leads, most clocks
// are wrong, or the only voter's is. Schedules go by state time alone, which never goes back. It is
// never ahead of the latest time that most clocks have shown. By it decision 65 holds to the letter
// (judge), so no time starts twice or is lost. A jump starts each schedule once at most. A start is
// missed only if nobody led, or most clocks were wrong, shortly before.
func TestYearOfSchedules(t *testing.T) {
	schedules, length := *simulated, *days
	if testing.Short() {
		schedules, length = min(schedules, 100), min(length, 10)
	}
	y := newYear(t, schedules)
	for end := y.now + int64(length)*24*time.Hour.Milliseconds(); y.now < end && !t.Failed(); {
		y.pass(y.random.Int64N(2 * time.Minute.Milliseconds()))
		y.disturb()
		if len(y.late) > 0 && y.random.IntN(10) == 0 {
			y.move(y.late[y.random.IntN(len(y.late))])
		}
		y.compare()
		y.look()
	}
	t.Logf("%d starts made, %d missed, %d skipped while the last was under way", y.made, y.missed,
		y.skipped)
	if y.made < schedules*length/3 || y.missed == 0 || y.skipped == 0 {
		t.Error("these are too few to tell")
	}
}
