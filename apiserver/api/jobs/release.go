package jobs

import (
	"context"
	"fmt"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

type releaseRequest struct {
	ID ids.ID `path:"id" doc:"The run"`
}

// release is POST /api/scraper-job-status/{id}/release.
func (r Resource) release() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_release_scraper_job",
		Routes: operation.Routes("POST /api/scraper-job-status/{id}/release"), Group: group,
		Summary: "Releases a run that is held back, so that it counts as its scraper's last run",
		Description: "In a group with quarantine, a run that is unlike earlier ones is held " +
			"back; its quarantineReason says why. Once released, it counts, and later runs are " +
			"compared with it, too. A run that is not held back stays as it is.",
		Access: auth.Write, Agents: operation.Sets, Rate: limits.General,
		Idempotency: operation.Optional, Errors: []fault.Code{fault.JobNotFound},
	}, func(ctx context.Context, from *operation.Caller, in *releaseRequest) (Job, error) {
		job, err := ownership.Job(ctx, r.History, from.View, from.Customer, in.ID, "id")
		if err != nil {
			return Job{}, err
		}
		if _, err := client.Do(ctx, r.Client, client.ReleaseRun{Customer: from.Customer,
			Job: job.ID}, from.Call); err != nil {
			return Job{}, fmt.Errorf("release run %s: %w", job.ID, err)
		}
		return NewJob(r.Client.View(), job, from.Customer), nil
	})
}
