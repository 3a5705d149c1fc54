package runs

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// drainTime is how long a stop waits for the run's out set to empty.
const drainTime = 10 * time.Second

type stopRequest struct {
	ID ids.ID `path:"id"`
}

// stop is GET and POST /api/scraper/{id}/stop.
func (r Resource) stop() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_stop_scraper",
		Routes: operation.Routes("GET /api/scraper/{id}/stop", "POST /api/scraper/{id}/stop"),
		Group:  group, Summary: "Stops a scraper's run",
		Description: "The run's state is final at once. Pages being fetched are still stored " +
			"and charged. The call waits for them, up to 10 s. A scraper that is not running " +
			"stays as it is. Existing rows are kept.",
		Access: auth.Write, Agents: operation.Sets,
		Rate: limits.General, Idempotency: operation.Required, Status: 200,
		Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *stopRequest) (operation.None, error) {
		stopped, err := client.Do(ctx, r.Client,
			client.StopRun{Customer: from.Customer, Scraper: in.ID}, from.Call)
		if err != nil {
			return operation.None{}, err
		}
		deadline := r.Clock.After(drainTime)
		for _, job := range stopped.Jobs {
			if !drained(ctx, r.Client, job, deadline) {
				break
			}
		}
		return operation.None{}, nil
	})
}

// drained waits until nothing of a run is out. It returns false if the deadline or ctx comes first.
func drained(ctx context.Context, c client.Reader, id ids.ID, deadline <-chan time.Time) bool {
	for {
		job, changed := c.View().WatchJob(id)
		if job == nil || job.Closed {
			return true
		}
		select {
		case <-changed:
		case <-deadline:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
