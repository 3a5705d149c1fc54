package controlplane

import (
	"context"
	"errors"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/model"
)

// caller implements client.Client for roles in the server's own process.
type caller struct{ s *Server }

var _ client.Client = caller{}

// Propose implements client.Client.
func (c caller) Propose(ctx context.Context, payload command.Payload, call *client.Call) (any,
	error) {
	id := c.s.config.IDs.New()
	_, claims := payload.(command.ClaimCallPayload)
	var under *command.Call
	if call != nil {
		under = &command.Call{Customer: call.Customer, Operation: call.Operation, Key: call.Key,
			Request: call.Request, Ticket: call.Ticket, Body: call.Body,
			AnswerOnly: call.AnswerOnly}
	}
	ctx, cancel := context.WithTimeout(ctx, c.s.config.patience)
	defer cancel()
	result, err := c.s.proposer.propose(ctx, id, payload, under)
	if err != nil {
		return nil, err
	}
	if call != nil {
		call.Replayed, call.FirstBody = result.Replayed, result.Body
	}
	if result.Err != nil {
		return nil, result.Err
	}
	if claims && call != nil && !result.Replayed {
		call.Ticket = id
	}
	return result.Value, nil
}

// View implements client.Client.
func (c caller) View() *client.View { return c.s.node.View() }

// Fresh implements client.Client.
func (c caller) Fresh(ctx context.Context) (*client.View, error) { return c.s.proposer.Fresh(ctx) }

// Follow implements client.Client.
func (c caller) Follow(customer string, behind uint64) *client.Following {
	return c.s.node.Store().Follow(customer, behind)
}

// Settle implements client.Client.
func (c caller) Settle(ctx context.Context, receipts []model.Receipt,
	markers []model.Marker) error {
	err := settleReceipts(receipts, func(payload command.Payload) (fsm.Result, error) {
		return c.s.proposer.propose(ctx, c.s.config.IDs.New(), payload, nil)
	})
	if err != nil || len(markers) == 0 {
		return err
	}
	if l := c.s.holder.Current(); l != nil {
		l.TakeBack(markers)
		return nil
	}
	// One attempt is enough: a marker belongs to one leadership, and the next marker replaces a
	// lost one.
	if err := c.s.proposer.forward(ctx, methodMarkers, returned{Markers: markers},
		&node.Nothing{}); err != nil {
		c.s.config.Logger.Debug("markers did not reach the leader", "markers", len(markers),
			"error", err)
	}
	return nil
}

// settleReceipts applies receipts in order. It halves a batch that is too large for one command.
func settleReceipts(receipts []model.Receipt,
	propose func(command.Payload) (fsm.Result, error)) error {
	if len(receipts) == 0 {
		return nil
	}
	result, err := propose(command.SettlePayload{Receipts: receipts})
	if errors.Is(err, errTooLarge) && len(receipts) > 1 {
		half := len(receipts) / 2
		if err := settleReceipts(receipts[:half], propose); err != nil {
			return err
		}
		return settleReceipts(receipts[half:], propose)
	}
	if err != nil {
		return err
	}
	return result.Err
}

// Heartbeat implements client.Client.
func (c caller) Heartbeat(ctx context.Context, heartbeat client.Heartbeat) (client.Leases, error) {
	return c.s.heartbeat(ctx, heartbeat)
}

// Status implements client.Client.
func (c caller) Status(context.Context) (client.Status, error) { return c.s.node.Status() }
