package data

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
)

// Limits of how far back a comparison looks.
const (
	// runsBack is how many runs of a scraper are looked at, most of which may be failed or held
	// back. The rows of comparedBack are looked for.
	runsBack     = 2_000
	comparedBack = 200
	// pagesBack bounds the pages that are read beyond the fewest runs needed.
	pagesBack = 200_000
)

// RunOddities lists how a run differs from the runs before it.
type RunOddities struct {
	JobID        ids.ID      `json:"jobId"`
	ComparedWith []ids.ID    `json:"comparedWith" doc:"Earlier runs, newest first; with fewer than 3, nothing is reported as odd"`
	Oddities     []RunOddity `json:"oddities"`
}

// RunOddity is one way in which a run differs from the runs before it.
type RunOddity struct {
	Aspect profile.Aspect `json:"aspect" doc:"ROW_COUNT, FILL_RATE, TYPES, VALUES, TEXT_LENGTH or VARIETY"`
	Field  string         `json:"field" scraped:"-" doc:"Empty for ROW_COUNT"`
	Text   string         `json:"text" doc:"Why, in words"`
}

type odditiesRequest struct {
	JobID ids.ID `query:"jobId" required:"true" doc:"A run that has ended"`
}

// oddities is GET /api/scraper/data/oddities.
func (r Resource) oddities() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_find_run_oddities", Routes: operation.Routes("GET /api/scraper/data/oddities"),
		Group: group, Summary: "Reports what is unusual about a run",
		Description: "The run is compared with up to 10 earlier COMPLETED runs of its scraper " +
			"that still have rows. It reports what is far from all of them: row counts, shares " +
			"of rows with a value, types, values, lengths and varieties. Nothing is changed.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read, Timeout: 5 * time.Minute,
		Long:   true,
		Errors: []fault.Code{fault.JobNotFound, fault.JobNotEnded, fault.RowsGone},
	}, func(ctx context.Context, from *operation.Caller, in *odditiesRequest) (RunOddities,
		error) {
		answer := RunOddities{JobID: in.JobID, ComparedWith: []ids.ID{}, Oddities: []RunOddity{}}
		job, err := r.ended(ctx, from, in.JobID, "jobId")
		if err != nil {
			return answer, err
		}
		run, err := r.sumsThere(ctx, from.View, job)
		if err != nil {
			return answer, err
		}
		if run == nil {
			return answer, rowsGone("jobId")
		}
		jobs, err := r.runsBefore(ctx, from, job)
		if err != nil {
			return answer, err
		}
		var before []*profile.Sums
		for pages := uint64(0); len(jobs) > 0 && len(before) < profile.MostBefore; jobs = jobs[1:] {
			if pages += jobs[0].Pages; pages > pagesBack && len(before) >= profile.FewestBefore {
				break
			}
			sums, err := r.sumsThere(ctx, from.View, jobs[0])
			if err != nil {
				return answer, err
			}
			if sums != nil {
				before = append(before, sums)
				answer.ComparedWith = append(answer.ComparedWith, jobs[0].ID)
			}
		}
		for _, odd := range profile.Judge(run, before) {
			answer.Oddities = append(answer.Oddities, RunOddity(odd))
		}
		return answer, nil
	})
}

// runsBefore returns the earlier runs of a scraper that can be compared with job, newest first.
func (r Resource) runsBefore(ctx context.Context, from *operation.Caller,
	job *client.Job) (jobs []*client.Job, err error) {
	seen := 0
	err = r.History.ScraperRuns(ctx, from.View, job.Scraper, func(j *client.Job) bool {
		if !client.Newer(job, j) {
			return true
		}
		seen++
		if j.Closed && j.State == model.Completed && from.View.DeletedRun(j.ID) == nil &&
			from.View.HeldRun(j.ID) == nil &&
			ownership.Reads(from.View, from.Customer, j.Customer, j.Group) {
			jobs = append(jobs, j)
		}
		return seen < runsBack && len(jobs) < comparedBack
	})
	if err != nil {
		return nil, fmt.Errorf("runs before %s: %w", job.ID, err)
	}
	return jobs, nil
}

// sumsThere returns the sums of an ended run; nil: its rows are gone.
func (r Resource) sumsThere(ctx context.Context, v *client.View, job *client.Job) (*profile.Sums,
	error) {
	if job.Items == 0 {
		return &profile.Sums{}, nil
	}
	there, err := r.hasRows(ctx, v, job)
	if err != nil {
		return nil, fmt.Errorf("rows of run %s: %w", job.ID, err)
	}
	if !there {
		return nil, nil
	}
	return r.sums(ctx, job, client.ShownOf(v, job))
}
