package runs

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

type runRequest struct {
	ID        ids.ID `path:"id"`
	MaxCharge *int64 `query:"maxChargeMicros" agent:"required" min:"0" doc:"The run stops before it costs more than this, in micros, millionths of a euro"`
}

const runID = "svc_run_scraper"

// runTime is how long launching a run may take. A site of a million links takes longest.
const runTime = 5 * time.Minute

// start is GET and POST /api/scraper/{id}/run.
func (r Resource) start() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: runID, Routes: operation.Routes("GET /api/scraper/{id}/run",
			"POST /api/scraper/{id}/run"), Group: group,
		Summary: "Launches a run of a scraper",
		Description: "A scraper with a site reads the site's links, unvisited ones first. " +
			"Otherwise the launch checks that the start address resolves and is allowed, but " +
			"does not fetch it. SEARCH_ENGINE_SEARCH scrapers ask one of the server's search " +
			"engines for each query. The same Idempotency-Key within 24 hours returns the " +
			"original run. Scrapers of list runs are run with POST /api/scraper/url-list-run.",
		Access: auth.Write, Agents: operation.Spends, Feature: plans.ManualRun, Rate: limits.Run,
		Idempotency: operation.Optional, Timeout: runTime,
		Errors: append([]fault.Code{fault.ScraperNotFound, fault.TypeNotRunnable,
			fault.StartURLsUnreachable, fault.SearchNotConfigured}, launch.Errors()...),
	}, func(ctx context.Context, from *operation.Caller, in *runRequest) (LaunchedRun, error) {
		by := api.Launching(from, runID)
		launched, err := r.Launcher.Start(ctx, by, in.ID, in.MaxCharge)
		from.Job = by.Job
		if err != nil {
			return LaunchedRun{}, err
		}
		return newRun(&launched), nil
	})
}

func newRun(l *client.Launched) LaunchedRun {
	return LaunchedRun{JobID: l.Job, ScraperID: l.Scraper, Status: l.State,
		QueuedAt: api.Time(l.Queued)}
}
