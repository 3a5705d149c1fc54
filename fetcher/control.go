package fetcher

import (
	"context"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// View is what a fetcher reads of one state of the control plane.
type View interface {
	Cluster() *client.Cluster
	Job(id ids.ID) *client.Job
	Entry(id ids.ID) *client.Entry
	Recipe(scraper ids.ID, revision uint32) *client.Recipe
	Shards() []*client.Shard
}

// Control is what a fetcher asks of the control plane.
type Control interface {
	// View is this node's copy of the state.
	View() View
	// Fresh holds everything that was applied anywhere before the call.
	Fresh(ctx context.Context) (View, error)
	Heartbeat(ctx context.Context, beat client.Heartbeat) (client.Leases, error)
}

// FromClient narrows a client to what a fetcher asks.
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
