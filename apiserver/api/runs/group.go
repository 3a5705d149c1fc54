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

// RunsOfGroup is the outcome for each scraper of a group.
type RunsOfGroup struct {
	GroupID      ids.ID           `json:"groupId"`
	Jobs         []LaunchedRun    `json:"jobs" doc:"Runs that were launched or stopped"`
	Skipped      []SkippedScraper `json:"skipped" doc:"Scrapers that were skipped, at most 1,000"`
	SkippedTotal int              `json:"skippedTotal" doc:"How many were skipped in all"`
}

// SkippedScraper is a scraper that was not launched with its group.
type SkippedScraper struct {
	ScraperID ids.ID `json:"scraperId"`
	Reason    string `json:"reason" enum:"FILE,ALREADY_RUNNING,NO_SOURCE,CONFIG_INVALID,NOT_AFFORDABLE,TIER_UNAVAILABLE,LIMIT_REACHED,SCHEMA_GONE,START_UNREACHABLE"`
}

func newGroupRuns(group ids.ID, l *client.LaunchedRuns) RunsOfGroup {
	answer := RunsOfGroup{GroupID: group, Jobs: []LaunchedRun{}, Skipped: []SkippedScraper{},
		SkippedTotal: len(l.Skipped) + int(l.Unnamed)}
	for _, job := range l.Jobs {
		answer.Jobs = append(answer.Jobs, LaunchedRun{JobID: job.Job, ScraperID: job.Scraper,
			Status: job.State, QueuedAt: api.Time(job.Queued)})
	}
	for _, s := range l.Skipped {
		answer.Skipped = append(answer.Skipped, SkippedScraper{ScraperID: s.Scraper,
			Reason: s.Reason.String()})
	}
	return answer
}

type groupRunRequest struct {
	ID        ids.ID `path:"id"`
	MaxCharge *int64 `query:"maxChargeMicros" agent:"required" min:"0" doc:"The runs stop before they together cost more than this. Each gets its cheapest page; the rest is shared by the cost of each last run, or by links. A scraper left without a page is skipped as NOT_AFFORDABLE. In micros, millionths of a euro"`
}

const groupRunID = "svc_run_group"

// startGroup is GET and POST /api/scraper/group/{id}/run.
func (r Resource) startGroup() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: groupRunID, Routes: operation.Routes("GET /api/scraper/group/{id}/run",
			"POST /api/scraper/group/{id}/run"), Group: group,
		Summary: "Launches a run of each scraper of a group",
		Description: "Scrapers that cannot run are skipped, each with a reason. All runs are " +
			"created in one step: all or none. A customer may have up to 1,000 open runs; " +
			"scrapers beyond that are skipped as LIMIT_REACHED. Scrapers that could not be " +
			"made ready within 45 s are, too. Scrapers of list runs are skipped as NO_SOURCE. " +
			"The same Idempotency-Key within 24 hours returns the original runs.",
		Access: auth.Write, Agents: operation.Spends,
		Feature: plans.ManualRun, Rate: limits.GroupRun,
		Idempotency: operation.Optional, Timeout: 2 * time.Minute,
		Errors: []fault.Code{fault.NotFound, fault.IdempotencyInFlight,
			fault.IdempotencyOverflow, fault.OutOfSpace},
	}, func(ctx context.Context, from *operation.Caller, in *groupRunRequest) (RunsOfGroup,
		error) {
		launched, err := r.Launcher.StartGroup(ctx, api.Launching(from, groupRunID), in.ID,
			in.MaxCharge)
		if err != nil {
			return RunsOfGroup{}, err
		}
		return newGroupRuns(in.ID, &launched), nil
	})
}

type groupRequest struct {
	ID ids.ID `path:"id"`
}

// stopGroup is GET and POST /api/scraper/group/{id}/stop.
func (r Resource) stopGroup() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_stop_group", Routes: operation.Routes("GET /api/scraper/group/{id}/stop",
			"POST /api/scraper/group/{id}/stop"), Group: group,
		Summary: "Stops all runs of a group",
		Description: "The state of each run is final at once. Pages being fetched are still " +
			"stored and charged; the call does not wait for them. Existing rows are kept. " +
			"Scrapers that are not running stay as they are.",
		Access: auth.Write, Agents: operation.Sets,
		Rate: limits.General, Idempotency: operation.Optional,
		Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *groupRequest) (RunsOfGroup, error) {
		stopped, err := client.Do(ctx, r.Client,
			client.StopGroup{Customer: from.Customer, Group: in.ID}, from.Call)
		if err != nil {
			return RunsOfGroup{}, err
		}
		return newGroupRuns(in.ID, &stopped), nil
	})
}

const groupEstimateID = "svc_estimate_group"

// GroupEstimate is the probable cost of a run of a group launched now. Money is in micros.
type GroupEstimate struct {
	GroupID            ids.ID `json:"groupId"`
	Scrapers           int    `json:"scrapers" doc:"Scrapers that would be launched"`
	Links              int64  `json:"links"`
	Pages              int64  `json:"pages" doc:"Pages delivered"`
	MinMicros          int64  `json:"minMicros" doc:"Micros, millionths of a euro"`
	MaxMicros          int64  `json:"maxMicros" doc:"Micros, millionths of a euro"`
	BalanceMicros      int64  `json:"balanceMicros" doc:"Micros, millionths of a euro"`
	Affordable         bool   `json:"affordable" doc:"The balance covers maxMicros, or nothing is charged"`
	ScrapersConsidered int    `json:"scrapersConsidered" doc:"Scrapers that the estimate is based on, at most 100; the others are assumed to be similar"`
}

// estimateGroup is POST /api/scraper/group/{id}/estimate.
func (r Resource) estimateGroup() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     groupEstimateID,
		Routes: operation.Routes("POST /api/scraper/group/{id}/estimate"), Group: group,
		Summary: "Estimates what a run of a group will cost",
		Description: "It is the sum of the estimates of the scrapers that a run of the group " +
			"would launch. With more than 100 scrapers, it samples 100 evenly. Free requests " +
			"are deducted once. The estimate is not a cap: maxChargeMicros of a launch is.",
		Access: auth.Read, Agents: operation.Reads,
		Rate: limits.Read, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *groupRequest) (GroupEstimate,
		error) {
		e, err := r.Launcher.EstimateGroup(ctx, api.Launching(from, groupEstimateID), in.ID)
		if err != nil {
			return GroupEstimate{}, err
		}
		return newGroupEstimate(from, in.ID, &e), nil
	})
}

func newGroupEstimate(from *operation.Caller, group ids.ID,
	e *launch.GroupEstimate) GroupEstimate {
	balance := balanceOf(from)
	return GroupEstimate{GroupID: group, Scrapers: e.Scrapers, Links: e.Links, Pages: e.Pages,
		MinMicros: e.Min, MaxMicros: e.Max, BalanceMicros: balance,
		Affordable: e.Max == 0 || balance >= e.Max, ScrapersConsidered: e.Considered}
}
