package runs

import (
	"context"
	"errors"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// reachTime is how long the check of a start address may take.
const reachTime = 10 * time.Second

type runRequest struct {
	ID        ids.ID `path:"id"`
	MaxCharge *int64 `query:"maxChargeMicros" min:"0" doc:"The run stops rather than cost more, in micros, millionths of a euro"`
}

const runID = "svc_run_scraper"

// start is GET and POST /api/scraper/{id}/run.
func (r Resource) start() *operation.Operation {
	s := r.Services
	return operation.Define(operation.Declaration{
		ID: runID, Routes: operation.Routes("GET /api/scraper/{id}/run",
			"POST /api/scraper/{id}/run"), Group: group,
		Summary: "Launches a run of a scraper",
		Description: "The start address is checked (it resolves and may be reached), not " +
			"fetched. Scrapers of the type " +
			"SEARCH_ENGINE_SEARCH ask one of the server's search engines for each query. The " +
			"same Idempotency-Key " +
			"within 24 hours answers the original run. Scrapers of list runs run through POST " +
			"/api/scraper/url-list-run.",
		Access: auth.Write, Rate: limits.Run, Idempotency: operation.Optional, Timeout: time.Minute,
		Errors: append([]fault.Code{fault.ScraperNotFound, fault.TypeNotRunnable,
			fault.StartURLsUnreachable, fault.SearchNotConfigured}, launchErrors...),
	}, func(ctx context.Context, from *operation.Caller, in *runRequest) (Run, error) {
		l, replay, err := begin(ctx, s, from, runID)
		if err != nil {
			return Run{}, err
		}
		if replay != nil {
			return newRun(replay), nil
		}
		defer l.end(ctx)
		scraper, err := runnable(from, in.ID)
		if err != nil {
			return Run{}, err
		}
		tiers, err := tiersOf(from.View, &scraper.Spec)
		if err != nil {
			return Run{}, err
		}
		begin, engine, err := start(s, scraper)
		if err != nil {
			return Run{}, err
		}
		if err := reachable(ctx, s.Guard, begin.urls[0]); err != nil {
			return Run{}, err
		}
		t, err := l.take(ctx, begin, nil)
		if err != nil {
			return Run{}, err
		}
		recipe := scraper.Spec.Recipe() // no list run's: it has no tag
		endpoint, _ := model.EndpointOf(recipe.Endpoint)
		launched, err := l.commit(ctx,
			client.LaunchRun{Scraper: scraper.ID, Links: t.links, MaxCharge: in.MaxCharge,
				Charge: endpoint.Charge, Search: engine, Tiers: tiers,
				IgnoresRobots: recipe.Politeness.IgnoreRobots || engine != nil &&
					engine.IgnoreRobots})
		if err != nil {
			return Run{}, err
		}
		return newRun(&launched), nil
	})
}

func newRun(l *client.Launched) Run {
	return Run{JobID: l.Job, ScraperID: l.Scraper, Status: l.State, QueuedAt: api.Time(l.Queued)}
}

// runnable is the customer's scraper, when it can be launched by itself.
func runnable(from *operation.Caller, id ids.ID) (*client.Scraper, error) {
	scraper, err := ownership.Scraper(from.View, from.Customer, id, "id")
	if err != nil {
		return nil, err
	}
	if scraper.ListRun {
		return nil, fault.Invalid(fault.TypeNotRunnable, "sourceConfig.url",
			"the scraper of a list run has no start address; run its list through POST "+
				"/api/scraper/url-list-run")
	}
	if _, ok := from.View.RecipeOf(from.Customer, &scraper.Spec, scraper.Tag); !ok {
		return nil, fault.Invalid(fault.SchemaGone, "schema.id",
			"the scraper's schema is not there any more")
	}
	return scraper, errors.Join(idle(from.View, id), affordable(from.View, from.Customer))
}

// reachable is the check at launch: the address guard and DNS, never a fetch.
func reachable(ctx context.Context, guard api.Guard, url string) error {
	canonical, err := address.Canonical(url)
	if err == nil {
		err = guard.CheckURL(url)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, reachTime)
		defer cancel()
		err = guard.CheckHost(ctx, address.HostOf(canonical))
	}
	if err == nil {
		return nil
	}
	reason := "the host cannot be checked"
	if coded := (*fault.Error)(nil); errors.As(err, &coded) {
		reason = coded.Detail
		if reason == "" {
			reason = fault.Lookup(coded.Code).Title
		}
	}
	return &fault.Error{Code: fault.StartURLsUnreachable, Field: "sourceConfig.url", Detail: reason,
		Cause: err}
}
