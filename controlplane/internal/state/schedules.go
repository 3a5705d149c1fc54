package state

import "shoal.dev/shoal/pkg/ids"

// SchedulesSince is the version of the cluster that has schedules.
const SchedulesSince = 2

// MaxLaunches is how many items of background work a customer may have that launch runs.
const MaxLaunches = 100

// maxStarts is how many of its newest starts a schedule knows.
const maxStarts = 5

// Schedule is when a scraper, or a group, starts by itself. What its expression means is not known
// here: the proposer says which start comes next.
type Schedule struct {
	Target   ids.ID `cbor:"1,keyasint"` // the scraper or group
	Customer string `cbor:"2,keyasint"`
	Group    bool   `cbor:"3,keyasint,omitempty"`
	Cron     string `cbor:"4,keyasint"` // of a group its start type
	Zone     string `cbor:"5,keyasint,omitempty"`
	Set      uint64 `cbor:"6,keyasint"` // index of the command that set Cron and Zone
	// Next is when it starts next, in Unix milliseconds; 0: nobody has said so yet.
	Next int64 `cbor:"7,keyasint,omitempty"`
	// Pending is the background work of its newest start, while that is not done with.
	Pending ids.ID  `cbor:"8,keyasint,omitempty"`
	Starts  []Start `cbor:"9,keyasint,omitempty"` // the newest, the newest last
}

// Start is what became of a start.
type Start struct {
	_        struct{} `cbor:",toarray"`
	At       int64    // Unix milliseconds
	Launched uint32   // scrapers
	Skipped  uint32   // scrapers
	Missed   uint32   // starts from At on that nobody made
	Reason   SkipReason
}

var schedulesTable = define(SchedulesSince, "schedules",
	index("id", true, func(s *Schedule) []any { return []any{s.Target} }),
	index("due", true, func(s *Schedule) []any { return []any{s.Next, s.Target} }),
).untold()

// Schedule is nil for what does not start by itself.
func (v *View) Schedule(target ids.ID) *Schedule { return schedulesTable.first(v, "id", target) }

// StartsItself says whether a scraper starts by a schedule of its own, which its group may pause.
func (v *View) StartsItself(s *Scraper) bool {
	group := v.Group(s.Group)
	return s.Spec.Schedule != "" && group != nil && group.StartType != "NONE"
}

// SchedulesByDue visits all schedules until visit returns false: those first of which nobody has
// said when they start, then the others by when they do.
func (v *View) SchedulesByDue(visit func(*Schedule) bool) {
	schedulesTable.each(v, false, visit, "due_prefix")
}

// PutSchedule adds or replaces.
func (t *Tx) PutSchedule(s *Schedule) { schedulesTable.put(t, s) }

// Arrange has a scraper, or a group, start by an expression from now on; "": not by itself. Of what
// stays the same nothing changes.
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

// disarrange forgets when what is removed starts.
func (t *Tx) disarrange(target ids.ID) {
	if known := t.Schedule(target); known != nil {
		schedulesTable.remove(t, known)
	}
}

// Note adds what became of a start.
func (s *Schedule) Note(start Start) {
	from := max(0, len(s.Starts)-maxStarts+1)
	s.Starts = append(append([]Start{}, s.Starts[from:]...), start)
}

// Launching is the place in Starts of the newest that was made; -1: it is not known any more.
func (s *Schedule) Launching() int { return s.launching(len(s.Starts)) }

// launching is the place of the newest start that was made, of those before a place. Starts that
// were missed, or passed over since the one before was under way, are none.
func (s *Schedule) launching(before int) int {
	for i := before - 1; i >= 0; i-- {
		if s.Starts[i].Missed == 0 && s.Starts[i].Reason != SkipStarting {
			return i
		}
	}
	return -1
}

// Count adds to the newest start that was made. It keeps the newest of its reasons that none
// outranks.
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

// Refused is the newest start that was made, if it was refused for another reason than the one
// before it, or that one was not. A customer is told of it once, however often it comes.
func (s *Schedule) Refused() (start Start, news bool) {
	i := s.launching(len(s.Starts))
	if i < 0 || !s.Starts[i].Reason.Refusal() {
		return start, false
	}
	before := s.launching(i)
	return s.Starts[i], before < 0 || s.Starts[before].Reason != s.Starts[i].Reason
}

// MaxDueScrapers is how many scrapers one item of background work launches by their own schedules.
const MaxDueScrapers = 300

// DueRuns says what an item of background work launches: a group's scrapers that have no schedule
// of their own, or scrapers by theirs.
type DueRuns struct {
	Group    ids.ID
	Scrapers []ids.ID
}

// Room says whether another scraper may join.
func (d DueRuns) Room() bool { return d.Group.IsZero() && len(d.Scrapers) < MaxDueScrapers }

// Args are the arguments of the item: the ids, a group's behind a byte.
func (d DueRuns) Args() (args []byte) {
	if !d.Group.IsZero() {
		return append([]byte{'g'}, d.Group[:]...)
	}
	for _, id := range d.Scrapers {
		args = append(args, id[:]...)
	}
	return args
}

// DueOf is what the arguments of an item say.
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
