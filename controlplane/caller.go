package controlplane

import (
	"context"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// caller is the server as the client of its own process.
type caller struct{ s *Server }

var _ client.Client = caller{}

// Do implements client.Client.
func (c caller) Do(ctx context.Context, payload command.Payload, call *client.Call) (any, error) {
	id := c.s.cfg.IDs.New()
	_, claims := payload.(command.ClaimCallPayload)
	var under *command.Call
	if call != nil {
		under = &command.Call{Customer: call.Customer, Operation: call.Operation, Key: call.Key, Request: call.Request,
			Ticket: call.Ticket}
	}
	result, err := c.s.propose(ctx, id, payload, under)
	if err != nil {
		return nil, err
	}
	if call != nil {
		call.Replayed = result.Replayed
	}
	if result.Err != nil {
		return nil, result.Err
	}
	if claims && !result.Replayed {
		if call != nil {
			call.Ticket = id
		}
		return nil, nil
	}
	if _, none := result.Value.(fsm.None); none {
		return nil, nil
	}
	return result.Value, nil
}

// View implements client.Client.
func (c caller) View() *client.View { return c.s.machine.fsm.Store().View() }

// Fresh implements client.Client.
func (c caller) Fresh(ctx context.Context) (*client.View, error) { return c.s.fresh(ctx) }

// Settle implements client.Client.
func (c caller) Settle(ctx context.Context, receipts []model.Receipt, markers []model.Marker) error {
	if err := c.s.settle(ctx, receipts); err != nil {
		return err
	}
	if l := c.s.leading.Load(); l != nil {
		l.takeBack(markers)
	}
	return nil
}

// Heartbeat implements client.Client.
func (c caller) Heartbeat(ctx context.Context, beat client.Heartbeat) (client.Leases, error) {
	if beat.Applied == 0 { // on the fetcher's own node, not where the heartbeat was forwarded to
		beat.Applied, _ = c.s.machine.fsm.Store().Progress()
	}
	view, err := c.s.fresh(ctx) // after the beat arrived: a leader deposed meanwhile must not lend what it lost
	if err != nil {
		return client.Leases{}, err
	}
	l := c.s.leading.Load()
	if l == nil {
		return c.s.forward.heartbeat(ctx, beat)
	}
	if node := view.Node(beat.Node); node == nil || node.Boot != beat.Boot {
		return client.Leases{}, fault.New(fault.Unavailable, "this start of node %q is not registered", beat.Node)
	}
	return l.heartbeat(ctx, beat)
}

// Status implements client.Client.
func (c caller) Status(context.Context) (client.Status, error) {
	store := c.s.machine.fsm.Store()
	view := store.View()
	index, _ := store.Progress()
	status := client.Status{Node: c.s.cfg.Node, Roles: c.s.cfg.Roles, Applied: index,
		Commands: c.s.machine.fsm.Applied(), OpenJobs: len(view.OpenJobs()), Out: store.OutTotal()}
	status.Pages, status.PageErrors = c.s.metrics.settled()
	for _, shard := range view.Shards() {
		status.Shards++
		if shard.Owner != "" {
			status.Owned++
		}
	}
	err := c.s.askRaft(func(n *node) error {
		_, leader := n.LeaderWithID()
		status.Leader, status.Term = string(leader), n.CurrentTerm()
		return nil
	})
	return status, err
}
