package groups

import (
	"context"
	"io"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// StartTypeForGroup is the specification's StartTypeForGroupDTO: how a scraper of a group starts.
type StartTypeForGroup struct {
	ScraperID ids.ID   `json:"scraperId"`
	StartType string   `json:"startType" enum:"MANUAL,DAILY,WEEKLY,NONE" doc:"Start type of the group"`
	Schedule  string   `json:"schedule" doc:"The scraper's own cron expression, which takes precedence; empty: it starts with its group"`
	NextStart api.Time `json:"nextStart" doc:"Null if it does not start automatically"`
}

type startTypeRequest struct {
	ID        ids.ID `path:"id"`
	StartType string `path:"startType" enum:"MANUAL,DAILY,WEEKLY,NONE"`
}

// putStartType is PUT /api/scraper/group/{id}/start-type/{startType}.
func (r Resource) putStartType() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:      "svc_put_group_start_type",
		Routes:  operation.Routes("PUT /api/scraper/group/{id}/start-type/{startType}"),
		Group:   group,
		Summary: "Sets how the scrapers of a group start",
		Description: "DAILY starts between 00:00 and 06:00 in the group's time zone, WEEKLY " +
			"does so on Mondays. The minute is fixed for each group. A scraper's own schedule " +
			"takes precedence. NONE pauses both schedules, MANUAL only the group's. If starts " +
			"were missed, the newest is made up for if it is under an hour old. A running " +
			"scraper is skipped.",
		Access: auth.Write, Agents: operation.Sets,
		Rate: limits.General, Idempotency: operation.Required,
		Errors: []fault.Code{fault.NotFound, fault.FeatureNotInPlan},
	}, func(ctx context.Context, from *operation.Caller, in *startTypeRequest) (
		operation.Streamed[[]StartTypeForGroup], error) {
		var answer operation.Streamed[[]StartTypeForGroup]
		if needs := featureOf(in.StartType); needs != "" {
			err := r.Plans.Check(from.View, from.Customer, needs)
			if err != nil && !from.OnlyAnswers() {
				return answer, err
			}
		}
		put := client.PutStartType{Customer: from.Customer, Group: in.ID, StartType: in.StartType}
		if _, err := client.Do(ctx, r.Client, put, from.Call); err != nil {
			return answer, err
		}
		next := startTypes(r.Client.View(), in)
		first, err := next()
		if len(first) < listedAtOnce {
			answer.Whole = append([]StartTypeForGroup{}, first...)
			return answer, err
		}
		answer.Write = func(_ context.Context, w io.Writer) error {
			return api.WriteArray(w, func() (part []StartTypeForGroup, err error) {
				if part, first = first, nil; part == nil {
					part, err = next()
				}
				return part, err
			})
		}
		return answer, nil
	})
}

// featureOf returns the plan feature that a start type needs; "": none.
func featureOf(startType string) plans.Feature {
	switch startType {
	case "MANUAL":
		return plans.ManualRun
	case "DAILY":
		return plans.DailyScheduler
	case "WEEKLY":
		return plans.WeeklyScheduler
	}
	return ""
}

// startTypes returns the scrapers of a group in parts, oldest first, and nil at the end.
func startTypes(v *client.View, in *startTypeRequest) func() ([]StartTypeForGroup, error) {
	var last client.Scraper
	var withGroup api.Time
	if g := v.Group(in.ID); g != nil {
		withGroup = api.NextGroupStart(v, g)
	}
	return func() (part []StartTypeForGroup, err error) {
		v.GroupScrapersFrom(in.ID, last.CreatedAt, last.ID, func(s *client.Scraper) bool {
			last.CreatedAt, last.ID = s.CreatedAt, s.ID
			how := StartTypeForGroup{ScraperID: s.ID, StartType: in.StartType,
				Schedule: s.Spec.Schedule, NextStart: withGroup}
			if s.Spec.Schedule != "" || s.Spec.Type == model.File || s.ListRun {
				how.NextStart = api.NextStart(v, s)
			}
			part = append(part, how)
			return len(part) < listedAtOnce
		})
		return part, nil
	}
}
