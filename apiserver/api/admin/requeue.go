package admin

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const requeueID = "svc_admin_requeue_job"

type requeueRequest struct {
	ID        ids.ID `path:"id"`
	MaxCharge *int64 `query:"maxChargeMicros" min:"0" doc:"The run stops before it costs more than this, in micros, millionths of a euro"`
}

// RequeuedRun is a run of the failed links of another run.
type RequeuedRun struct {
	JobID       ids.ID         `json:"jobId"`
	ScraperID   ids.ID         `json:"scraperId"`
	LinksQueued uint32         `json:"linksQueued"`
	Status      model.JobState `json:"status" doc:"PENDING"`
	QueuedAt    api.Time       `json:"queuedAt"`
}

// requeue is POST /api/admin/jobs/{id}/requeue.
func (r Resource) requeue() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: requeueID, Routes: operation.Routes("POST /api/admin/jobs/{id}/requeue"), Group: group,
		Summary: "Launches a run of the failed links of an ended run",
		Description: "The run belongs to the customer, who pays for it. An admin can refund it " +
			"by adjusting the wallet. The scraper's current recipe is used. If a page of a " +
			"chain failed, the whole chain runs again. The call is refused while the scraper " +
			"runs. The same Idempotency-Key within 24 hours returns the original run.",
		Access: auth.Admin, Idempotency: operation.Optional, Rate: limits.General,
		Timeout: 10 * time.Minute,
		Errors: append([]fault.Code{fault.JobNotFound, fault.ScraperNotFound, fault.ListAlreadyRun,
			fault.SearchNotConfigured, fault.TypeNotRunnable, fault.CustomerBlocked},
			launch.Errors()...),
	}, func(ctx context.Context, from *operation.Caller, in *requeueRequest) (RequeuedRun, error) {
		by := api.Launching(from, requeueID)
		launched, err := r.Launcher.Requeue(ctx, by, in.ID, in.MaxCharge)
		from.Job = by.Job
		if err != nil {
			return RequeuedRun{}, err
		}
		return RequeuedRun{JobID: launched.Job, ScraperID: launched.Scraper,
			LinksQueued: launched.Links, Status: launched.State,
			QueuedAt: api.Time(launched.Queued)}, nil
	})
}
