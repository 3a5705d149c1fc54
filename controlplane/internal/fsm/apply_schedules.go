package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// arrangeGroup schedules a group by its start type. A paused group has no schedule, and pauses its
// scrapers' schedules.
func arrangeGroup(tx *state.Tx, g *state.Group) {
	cron := ""
	if g.StartType == "DAILY" || g.StartType == "WEEKLY" {
		cron = g.StartType
	} else {
		stopStart(tx, g.ID)
	}
	tx.Arrange(state.Schedule{Target: g.ID, Customer: g.Customer, Group: true, Cron: cron,
		Zone: g.Zone})
}

func arrangeGroups(tx *state.Tx, p command.ArrangeGroupsPayload) (command.None, error) {
	for _, id := range p.Groups {
		if group := tx.Group(id); group != nil {
			arrangeGroup(tx, group)
		}
	}
	return command.None{}, nil
}

func putStartType(tx *state.Tx, p command.PutStartTypePayload) (command.None, error) {
	known := tx.Group(p.Group)
	if known == nil || known.Customer != p.Customer {
		return command.None{}, fault.Invalid(fault.NotFound, "id", "there is no such group")
	}
	if !known.Of.IsZero() {
		return command.None{}, errInternal("id")
	}
	group := *known
	group.StartType, group.UpdatedAt = p.StartType, tx.Now
	tx.PutGroup(&group)
	arrangeGroup(tx, &group)
	return command.None{}, nil
}

// starting makes background work from the due starts of one command.
type starting struct {
	*state.Tx
	open map[string]int         // items per customer
	last map[string]*state.Work // each customer's item that scrapers may still join
}

func moveSchedules(tx *state.Tx, p command.MoveSchedulesPayload) (command.None, error) {
	s := starting{Tx: tx, open: map[string]int{}, last: map[string]*state.Work{}}
	for i := range p.Moves[:min(len(p.Moves), command.MaxMoves)] {
		s.move(&p.Moves[i])
	}
	return command.None{}, nil
}

// move advances one schedule, unless it has changed or advanced since.
func (s *starting) move(m *command.ScheduleMove) {
	known := s.Schedule(m.Target)
	if known == nil || known.Set != m.Set || known.Next != m.From || m.To <= m.From {
		return
	}
	moved := *known
	moved.Next = m.To
	if paused, gone := s.paused(known); gone {
		s.Arrange(state.Schedule{Target: known.Target})
		return
	} else if paused {
		s.PutSchedule(&moved)
		return
	}
	if m.Missed > 0 {
		moved.Note(state.Start{At: m.From, Missed: m.Missed})
	}
	if m.Start != 0 && !s.start(&moved, m) {
		return
	}
	s.PutSchedule(&moved)
}

// paused reports whether a schedule's starts are skipped, and whether its target is gone.
func (s *starting) paused(known *state.Schedule) (paused, gone bool) {
	if !known.Group {
		scraper := s.Scraper(known.Target)
		return scraper == nil || !s.StartsItself(scraper),
			scraper == nil || s.Group(scraper.Group) == nil
	}
	group := s.Group(known.Target)
	return group == nil || group.StartType == "NONE", group == nil
}

// start makes background work from a due start; false: the customer has too much of it, so the
// start waits. It skips a start while the work of the previous one is under way.
func (s *starting) start(moved *state.Schedule, m *command.ScheduleMove) bool {
	if w := s.WorkItem(moved.Pending); w != nil && w.State != state.WorkFailed {
		moved.Note(state.Start{At: m.Start, Skipped: 1, Reason: state.SkipStarting})
		return true
	}
	item := s.last[moved.Customer]
	if moved.Group || item == nil || !state.DueOf(item.Args).Room() {
		count, known := s.open[moved.Customer]
		if !known {
			count = len(s.WorkOf(work.Launch, moved.Customer))
		}
		if count >= state.MaxLaunches || s.WorkItem(m.Item) != nil {
			return false
		}
		s.open[moved.Customer] = count + 1
		item = &state.Work{ID: m.Item, Kind: work.Launch, Customer: moved.Customer,
			State: state.WorkReady, At: s.Now, Created: s.Now, Advanced: s.Now}
	}
	grown := *item
	due := state.DueOf(item.Args)
	if moved.Group {
		due.Group = moved.Target
	} else {
		due.Scrapers = append(due.Scrapers, moved.Target)
		s.last[moved.Customer] = &grown
	}
	grown.Args = due.Args()
	s.PutWork(&grown)
	moved.Pending = grown.ID
	moved.Note(state.Start{At: m.Start})
	return true
}

// stopStart drops what a group's current start has not launched yet.
func stopStart(tx *state.Tx, group ids.ID) {
	known := tx.Schedule(group)
	if known == nil || known.Pending.IsZero() {
		return
	}
	if item := tx.WorkItem(known.Pending); item != nil {
		tx.RemoveWork(item)
	}
	stopped := *known
	stopped.Pending = ids.ID{}
	tx.PutSchedule(&stopped)
}
