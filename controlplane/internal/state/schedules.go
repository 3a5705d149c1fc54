package state

import "shoal.dev/shoal/pkg/ids"

// SchedulesSince is the first cluster version with schedules.
const SchedulesSince = 2

// MaxLaunches bounds a customer's items of background work that launch runs.
const MaxLaunches = 100

// maxStarts is the number of newest starts that a schedule keeps.
const maxStarts = 5

// Schedule says when a scraper or a group starts on its own. The state does not interpret the
// expression: the proposer computes the next start.
type Schedule struct {
	Target   ids.ID `cbor:"1,keyasint"` // the scraper or group
	Customer string `cbor:"2,keyasint"`
	Group    bool   `cbor:"3,keyasint,omitempty"`
	Cron     string `cbor:"4,keyasint"` // for a group, its start type
	Zone     string `cbor:"5,keyasint,omitempty"`
	Set      uint64 `cbor:"6,keyasint"` // index of the command that set Cron and Zone
	// Next is the time of the next start, in Unix milliseconds; 0: not computed yet.
	Next int64 `cbor:"7,keyasint,omitempty"`
	// Pending is the background work of its newest start, until that is done.
	Pending ids.ID  `cbor:"8,keyasint,omitempty"`
	Starts  []Start `cbor:"9,keyasint,omitempty"` // the newest ones, in order
}

// Start is the outcome of a start.
type Start struct {
	_        struct{} `cbor:",toarray"`
	At       int64    // Unix milliseconds
	Launched uint32   // scrapers
	Skipped  uint32   // scrapers
	Missed   uint32   // starts from At on that were not made
	Reason   SkipReason
}

var schedulesTable = define(SchedulesSince, "schedules",
	index("id", true, func(s *Schedule) []any { return []any{s.Target} }),
	index("due", true, func(s *Schedule) []any { return []any{s.Next, s.Target} }),
).untold()

// Schedule returns a target's schedule, nil if it does not start on its own.
func (v *View) Schedule(target ids.ID) *Schedule { return schedulesTable.first(v, "id", target) }

// StartsItself reports whether a scraper has a schedule of its own, not paused by its group.
func (v *View) StartsItself(s *Scraper) bool {
	group := v.Group(s.Group)
	return s.Spec.Schedule != "" && group != nil && group.StartType != "NONE"
}

// SchedulesByDue visits all schedules until visit returns false. Those whose next start is not
// computed come first, then the others by their next start.
func (v *View) SchedulesByDue(visit func(*Schedule) bool) {
	schedulesTable.each(v, false, visit, "due_prefix")
}

// PutSchedule adds or replaces a schedule.
func (t *Tx) PutSchedule(s *Schedule) { schedulesTable.put(t, s) }

// Arrange sets the expression by which a scraper or a group starts; "" ends its schedule. It
// changes nothing if the expression and the zone stay the same.
func (t *Tx) Arrange(s Schedule) {
	known := t.Schedule(s.Target)
	switch {
	case t.ClusterVersion() < SchedulesSince:
	case s.Cron == "" && known != nil:
		schedulesTable.remove(t, known)
	case s.Cron == "":
	case known != nil && known.Cron == s.Cron && known.Zone == s.Zone:
	default:
		s.Set = t.Index
		if known != nil {
			s.Pending, s.Starts = known.Pending, known.Starts
		}
		schedulesTable.put(t, &s)
	}
}

// disarrange removes the schedule of a removed target.
func (t *Tx) disarrange(target ids.ID) {
	if known := t.Schedule(target); known != nil {
		schedulesTable.remove(t, known)
	}
}

// Note adds the outcome of a start.
func (s *Schedule) Note(start Start) {
	from := max(0, len(s.Starts)-maxStarts+1)
	s.Starts = append(append([]Start{}, s.Starts[from:]...), start)
}

// Launching returns the place in Starts of the newest start that was made; -1: it is not kept.
func (s *Schedule) Launching() int { return s.launching(len(s.Starts)) }

// launching returns the place of the newest start made, among the starts before a place. It ignores
// missed starts, and those skipped since the previous one was under way.
func (s *Schedule) launching(before int) int {
	for i := before - 1; i >= 0; i-- {
		if s.Starts[i].Missed == 0 && s.Starts[i].Reason != SkipStarting {
			return i
		}
	}
	return -1
}

// Count adds to the newest start that was made. It keeps the newest reason that none outranks.
func (s *Schedule) Count(launched, skipped uint32, reason SkipReason) {
	i := s.launching(len(s.Starts))
	if i < 0 {
		return
	}
	s.Starts = append([]Start{}, s.Starts...)
	start := &s.Starts[i]
	start.Launched += launched
	if start.Skipped += skipped; skipped > 0 && !start.Reason.Outranks(reason) {
		start.Reason = reason
	}
}

// Refused returns the newest start that was made. news says that it was refused, for a reason that
// the start before did not have. So a customer hears of each reason once.
func (s *Schedule) Refused() (start Start, news bool) {
	i := s.launching(len(s.Starts))
	if i < 0 || !s.Starts[i].Reason.Refusal() {
		return start, false
	}
	before := s.launching(i)
	return s.Starts[i], before < 0 || s.Starts[before].Reason != s.Starts[i].Reason
}

// MaxDueScrapers bounds the scrapers that one item launches by their own schedules.
const MaxDueScrapers = 300

// DueRuns says what an item of background work launches: scrapers by their own schedules, or the
// scrapers of a group that have none.
type DueRuns struct {
	Group    ids.ID
	Scrapers []ids.ID
}

// Room reports whether another scraper may join.
func (d DueRuns) Room() bool { return d.Group.IsZero() && len(d.Scrapers) < MaxDueScrapers }

// Args encodes the item's arguments: the scrapers' ids, or a byte and the group's id.
func (d DueRuns) Args() (args []byte) {
	if !d.Group.IsZero() {
		return append([]byte{'g'}, d.Group[:]...)
	}
	for _, id := range d.Scrapers {
		args = append(args, id[:]...)
	}
	return args
}

// DueOf decodes an item's arguments.
func DueOf(args []byte) (d DueRuns) {
	const size = len(ids.ID{})
	if len(args)%size == 1 {
		copy(d.Group[:], args[1:])
		return d
	}
	for ; len(args) >= size; args = args[size:] {
		d.Scrapers = append(d.Scrapers, ids.ID(args[:size]))
	}
	return d
}
