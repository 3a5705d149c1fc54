package data

import (
	"context"
	"fmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// target is the target of both calls of a deletion.
type target struct {
	Job ids.ID `query:"scraperJobStatusId" required:"true" doc:"The run: a jobId, or the id of a history record"`
}

// deletion is the requested deletion, with the count of rows that it affects. Rows of a run that is
// not closed may still increase, so they are not counted.
func (in *target) deletion(ctx context.Context, r Resource, from *operation.Caller) (
	client.Deletion, error) {
	d := client.Deletion{Customer: from.Customer, Operation: client.OpDeleteRun, Target: in.Job}
	view, err := r.Client.Fresh(ctx)
	if err != nil {
		return d, err
	}
	job, err := ownership.Job(ctx, r.History, view, from.Customer, in.Job, "scraperJobStatusId")
	if err != nil {
		return d, err
	}
	d.Run = &client.TargetRun{Group: job.Group, Scraper: job.Scraper}
	if job.Closed {
		scope := client.Shown(view, job.Group, job.Scraper)
		scope.Jobs = []ids.ID{job.ID}
		if d.Rows, err = r.Store.Count(ctx, scope, nil); err != nil {
			return d, fmt.Errorf("rows of run %s: %w", job.ID, err)
		}
	}
	return d, r.findNext(ctx, view, job, d.Run)
}

// findNext sets the run that becomes the scraper's last when job is deleted: the newest other one
// that has ended and has rows to show. The state no longer knows it once it has left.
func (r Resource) findNext(ctx context.Context, view *client.View, job *client.Job,
	run *client.TargetRun) error {
	err := r.History.ScraperRuns(ctx, view, job.Scraper, func(j *client.Job) bool {
		if j.ID == job.ID || !j.Closed || !j.Shows() || view.DeletedRun(j.ID) != nil {
			return true
		}
		run.Next, run.NextGroup, run.NextQueued = j.ID, j.Group, j.Queued
		return false
	})
	if err != nil {
		return fmt.Errorf("runs of scraper %s: %w", job.Scraper, err)
	}
	return nil
}

var deleteErrors = []fault.Code{fault.JobNotFound}

// previewDelete is POST /api/scraper/data/preview-delete.
func (r Resource) previewDelete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:      "svc_preview_delete_run_data",
		Routes:  operation.Routes("POST /api/scraper/data/preview-delete"),
		Group:   group,
		Summary: "Shows what deleting a run's rows would do",
		Description: api.PreviewDescription + " rows counts only an ended run's rows; a run " +
			"under way (openRuns) is stopped.",
		Access: auth.Write, Agents: operation.Adds, Rate: limits.General, Errors: deleteErrors,
	}, func(ctx context.Context, from *operation.Caller, in *target) (api.DeletionPreview, error) {
		deletion, err := in.deletion(ctx, r, from)
		if err != nil {
			return api.DeletionPreview{}, err
		}
		return api.PreviewDelete(ctx, r.Client, deletion, warnings)
	})
}

func warnings(p *client.Preview) []string {
	if p.Cascade.Count("openRuns") > 0 {
		return []string{"The run is under way and is stopped.",
			"The rows that it has brought by then are deleted.",
			"The run leaves the history, unless deleted ones are asked for."}
	}
	return []string{api.LostRows(p),
		"The run leaves the history, unless deleted ones are asked for."}
}

type deleteRequest struct {
	target
	api.PreviewToken
}

// delete is DELETE /api/scraper/data.
func (r Resource) delete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: client.OpDeleteRun, Routes: operation.Routes("DELETE /api/scraper/data"),
		Group:    group,
		Summary:  "Deletes a run's rows after a preview",
		ToAgents: api.CommitToAgents + " A run under way is stopped.",
		Description: api.CommitDescription + " A run under way is stopped. Its rows are hidden " +
			"at once and deleted in the background. The run before it becomes the scraper's " +
			"last run. Its record and its charges stay.",
		Access: auth.Write, Agents: operation.Destroys,
		Rate: limits.General, Idempotency: operation.Required,
		Errors: append([]fault.Code{fault.LimitReached, fault.JobNotFound},
			api.CommitErrors()...),
	}, func(ctx context.Context, from *operation.Caller, in *deleteRequest) (operation.None,
		error) {
		deletion, err := in.deletion(ctx, r, from)
		if err != nil {
			return operation.None{}, err
		}
		_, err = client.Do(ctx, r.Client,
			client.DeleteRun{Deletion: deletion, Token: in.Text()}, from.Call)
		return operation.None{}, err
	})
}
