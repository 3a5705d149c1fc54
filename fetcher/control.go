package fetcher

import (
	"context"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/hold"
	"shoal.dev/shoal/fetcher/internal/unit"
)

// View is the part of the control plane's state that a fetcher reads.
type View interface {
	unit.View
	hold.State
}

// Control is the part of the control plane that a fetcher calls.
type Control interface {
	// View returns this node's copy of the state.
	View() View
	// Fresh returns a view that holds everything applied anywhere before the call.
	Fresh(ctx context.Context) (View, error)
	Heartbeat(ctx context.Context, beat client.Heartbeat) (client.Leases, error)
}

// FromClient narrows a client to what a fetcher calls.
func FromClient(c client.Client) Control { return control{c} }

type control struct{ client.Client }

func (c control) View() View { return c.Client.View() }

func (c control) Fresh(ctx context.Context) (View, error) {
	view, err := c.Client.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	return view, nil
}
