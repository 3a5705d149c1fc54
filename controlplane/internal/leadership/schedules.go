package leadership

import (
	"context"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/schedule"
	"shoal.dev/shoal/pkg/work"
)

const (
	// schedulesEvery is the longest sleep of the routine, since a clock may jump.
	schedulesEvery = 15 * time.Second
	// fullRests is how long the starts of a customer with too many wait.
	fullRests = time.Second
	// groupsAtOnce is how many groups one command arranges.
	groupsAtOnce = 500
	// neverAgain is the next start of a schedule that is over: the year 9999.
	neverAgain = 253_370_764_800_000
)

// startDue sets each schedule's next start, and makes work of the starts that are due. The state
// ignores what an earlier leader has already proposed.
func (l *Leadership) startDue(ctx context.Context) error {
	l.startNow.Raise()
	arranged := false
	for {
		if l.view().ClusterVersion() >= state.SchedulesSince {
			if !arranged {
				if err := l.arrangeGroups(ctx); err != nil {
					return err
				}
				arranged = true
			}
			if err := l.moveSchedules(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.startNow:
		case <-l.config.Clock.After(l.untilStart()):
		}
	}
}

// moveSchedules moves due schedules until none is left that may start.
func (l *Leadership) moveSchedules(ctx context.Context) error {
	var zones schedule.Zones
	for {
		moves := dueMoves(l.view(), l.clocks.Now(), &zones, l.config.IDs)
		if len(moves) == 0 {
			return nil
		}
		l.config.Point("leader.before_schedules")
		if _, err := l.propose(ctx, command.MoveSchedulesPayload{Moves: moves}); err != nil {
			return err
		}
		l.config.Point("leader.after_schedules")
	}
}

// dueMoves returns the moves of schedules due at now, as many as fit into one command. It skips
// customers with too many starts waiting.
func dueMoves(view *state.View, now time.Time, zones *schedule.Zones,
	source ids.Source) (moves []command.ScheduleMove) {
	full := map[string]bool{}
	view.SchedulesByDue(func(s *state.Schedule) bool {
		if s.Next > now.UnixMilli() || len(moves) == command.MaxMoves {
			return false
		}
		known, told := full[s.Customer]
		if !told {
			known = len(view.WorkOf(work.Launch, s.Customer)) >= state.MaxLaunches
			full[s.Customer] = known
		}
		if known && s.Next != 0 { // first, because reading an expression takes longer
			return true
		}
		move := moveOf(s, now, zones)
		if move.Start != 0 {
			move.Item = source.New()
		}
		moves = append(moves, move)
		return true
	})
	return moves
}

// moveOf returns the move of a schedule at now. A schedule that this binary cannot read never
// starts again.
func moveOf(s *state.Schedule, now time.Time, zones *schedule.Zones) command.ScheduleMove {
	move := command.ScheduleMove{Target: s.Target, Set: s.Set, From: s.Next, To: neverAgain}
	parsed, err := zones.Of(s.Target, s.Group, s.Cron, s.Zone)
	if err != nil {
		return move
	}
	var due schedule.Due
	if s.Next == 0 { // newly set: earlier times do not count
		if next, ok := parsed.Next(now); ok {
			due.Next = next.UnixMilli()
		}
	} else {
		due = parsed.Look(time.UnixMilli(s.Next), now)
	}
	move.Start, move.Missed = due.Start, due.Missed
	if due.Next != 0 {
		move.To = due.Next
	}
	return move
}

// untilStart returns the time until the next start is due.
func (l *Leadership) untilStart() time.Duration {
	wait := schedulesEvery
	now := l.clocks.Now()
	l.view().SchedulesByDue(func(s *state.Schedule) bool {
		wait = min(wait, max(time.UnixMilli(s.Next).Sub(now), fullRests))
		return false
	})
	return wait
}

// arrangeGroups schedules the groups that a version without schedules has made.
func (l *Leadership) arrangeGroups(ctx context.Context) error {
	view := l.view()
	var groups []ids.ID
	flush := func() error {
		if len(groups) == 0 {
			return nil
		}
		_, err := l.propose(ctx, command.ArrangeGroupsPayload{Groups: groups})
		groups = nil
		return err
	}
	var err error
	view.EachGroup(func(g *state.Group) bool {
		if (g.StartType == "DAILY" || g.StartType == "WEEKLY") && view.Schedule(g.ID) == nil {
			if groups = append(groups, g.ID); len(groups) == groupsAtOnce {
				err = flush()
			}
		}
		return err == nil && ctx.Err() == nil
	})
	if err != nil {
		return err
	}
	return flush()
}
