package client

import (
	"context"
	"strings"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// WorkItem is an item of background work in the state.
type WorkItem = state.Work

// WorkState says what happens to an item next.
type WorkState = state.WorkState

// The states of an item.
const (
	WorkWaiting = state.WorkWaiting
	WorkReady   = state.WorkReady
	WorkHeld    = state.WorkHeld
	WorkFailed  = state.WorkFailed
)

// EnqueueWork adds an item of background work.
type EnqueueWork = command.EnqueueWorkPayload

// The bounds of commands and workers must be equal.
var _ = [1]struct{}{}[work.MaxProgress-state.MaxWorkProgress]

// Work returns the table of background work for one start of a node.
func Work(c Client, node string, boot ids.ID) work.Table { return workTable{c, node, boot} }

type workTable struct {
	client Client
	node   string
	boot   ids.ID
}

// Held implements work.Table.
func (t workTable) Held() []work.Item {
	var held []work.Item
	for _, w := range t.client.View().WorkHeldBy(t.node) {
		if w.Boot != t.boot {
			continue
		}
		held = append(held, work.Item{ID: w.ID, Kind: w.Kind, Customer: w.Customer, Args: w.Args,
			Progress: w.Progress, Epoch: w.Epoch, Failures: int(w.Failures)})
	}
	return held
}

// Look implements work.Table. It finds nothing before the cluster has the table.
func (t workTable) Look(now time.Time, kinds []string) work.Look {
	view, look := t.client.View(), work.Look{Nodes: 1}
	if view.Cluster() == nil || view.ClusterVersion() < state.WorkSince {
		return look
	}
	millis := now.UnixMilli()
	view.WorkersByLease(func(w *state.Worker) bool {
		if w.Node != t.node {
			look.Nodes++
			look.Claimable = look.Claimable || w.Until <= millis
		}
		return true
	})
	for _, kind := range kinds {
		view.WorkReady(kind, "", func(*state.Work) (skip, more bool) {
			look.Claimable = true
			return false, false
		})
		view.WorkWaiting(kind, func(w *state.Work) bool {
			look.Claimable = look.Claimable || w.At <= millis
			return false
		})
		if !recurs(view, kind) {
			look.Missing = append(look.Missing, kind)
		}
	}
	return look
}

// recurs says whether the service's own item of a kind exists.
func recurs(view *View, kind string) bool {
	for _, w := range view.WorkOf(kind, "") {
		if w.State != state.WorkFailed {
			return true
		}
	}
	return false
}

// Recur implements work.Table.
func (t workTable) Recur(ctx context.Context, id ids.ID, kind string, wake bool) error {
	_, err := Do(ctx, t.client, EnqueueWork{ID: id, Kind: kind, Once: true, Wake: wake}, nil)
	return err
}

// outcomeOf returns the command's outcome for an end.
func outcomeOf(end work.End) command.WorkOutcome {
	switch end {
	case work.Ended:
		return command.WorkEnded
	case work.Rested:
		return command.WorkPaused
	case work.Released:
		return command.WorkReleased
	case work.Failed:
		return command.WorkFailed
	case work.GivenUp:
		return command.WorkGivenUp
	}
	return command.WorkGoesOn
}

// Exchange implements work.Table.
func (t workTable) Exchange(ctx context.Context, turn work.Turn) error {
	p := command.ExchangeWorkPayload{Node: t.node, Boot: t.boot, Lease: turn.Lease.Milliseconds(),
		Leaving: turn.Leaving}
	for _, r := range turn.Reports {
		p.Reports = append(p.Reports, command.WorkReport{ID: r.ID, Epoch: r.Epoch,
			Outcome: outcomeOf(r.End), Advanced: r.Advanced, Progress: r.Progress,
			After: r.After.Milliseconds(),
			Error: strings.ToValidUTF8(r.Error[:min(len(r.Error), state.MaxWorkError)], "")})
	}
	for _, w := range turn.Wants {
		p.Wants = append(p.Wants, command.WorkWant{Kind: w.Kind, Most: uint32(w.Most),
			PerCustomer: uint32(w.PerCustomer), After: w.Behind})
	}
	_, err := Do(ctx, t.client, p, nil)
	return err
}
