package leadership

import (
	"context"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/schedule"
	"shoal.dev/shoal/pkg/wake"
)

// A new leader does not know how long nobody led. Until it has compared the clocks, it looks at no
// schedule: this leadership has no state to look at.
func TestNothingIsDueBeforeTheClocksAreCompared(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	l := &Leadership{startNow: wake.NewSignal(), compared: make(chan struct{})}
	if err := l.startDue(ctx); err != nil {
		t.Error(err)
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
