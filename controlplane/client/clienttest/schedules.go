package clienttest

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// StartDue makes schedules of a customer due now, and returns the item of work for their starts.
func (c *Client) StartDue(t testing.TB, targets ...ids.ID) ids.ID {
	t.Helper()
	now := c.clock.Now().UnixMilli()
	move := command.MoveSchedulesPayload{}
	customer := ""
	for _, target := range targets {
		known := c.View().Schedule(target)
		if known == nil {
			t.Fatalf("%s does not start by itself", target)
		}
		customer = known.Customer
		move.Moves = append(move.Moves, command.ScheduleMove{Target: target, Set: known.Set,
			From: known.Next,
			To:   max(now, known.Next) + 1, Start: now, Item: ids.ID{0xEE, byte(len(move.Moves))}})
	}
	c.Must(t, move)
	items := c.View().WorkOf(work.Launch, customer)
	if len(items) != 1 {
		t.Fatalf("%d items of work", len(items))
	}
	return items[0].ID
}
