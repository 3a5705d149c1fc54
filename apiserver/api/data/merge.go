package data

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

const (
	mergePatience  = 55 * time.Second // wait for the end of a merge (decision 68)
	mergeTimeout   = 70 * time.Second
	mergeGoneEvery = time.Second // interval of checks that the caller still waits
)

type mergeRequest struct {
	Group ids.ID   `path:"id"`
	Runs  []string `query:"scraperJobStatusIds" required:"true" min:"1" max:"100" each:"pattern=^[0-9a-fA-F]{24}$ code=invalid_id" doc:"The runs, each of a different scraper of the group; repeated. The first run's values win."`
}

// Merged is the answer to a merge.
type Merged struct {
	MergedItems *uint64 `json:"mergedItems" doc:"Rows made; null while the merge goes on"`
	JobID       ids.ID  `json:"jobId" doc:"Run of the merge; RUNNING while it goes on"`
}

// merge is PUT /api/scraper/data/group/{id}/merge.
func (r Resource) merge() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_merge_runs", Routes: operation.Routes("PUT /api/scraper/data/group/{id}/merge"),
		Group: group, Summary: "Merges the rows of a group's runs by their title",
		Description: "A title is a stable identifier, such as a barcode. Titles are compared " +
			"without surrounding spaces; a number is compared as text. Rows with the same " +
			"title in two or more runs become one row. It has the fields of the run named " +
			"first. The other runs fill in fields that are missing, null or empty there. If a " +
			"run has several rows of a title, the first counts. Only the latest COMPLETED run " +
			"of each scraper of the group is merged; other runs are ignored. The rows go to a " +
			"group of the same name with the suffix _enriched. That group counts towards no " +
			"limit, and has enrichedOf in the list. A new merge replaces the rows of the last " +
			"one; only one runs at a time. The call waits up to 55 s, then returns the run; " +
			"the same Idempotency-Key waits again. A merge that makes no row answers 422, and " +
			"the rows of the last one stay.",
		Access: auth.Write, Agents: operation.Sets, Feature: plans.DataEnrichment,
		Rate: limits.Merge, Idempotency: operation.Required, Later: true, Timeout: mergeTimeout,
		Errors: []fault.Code{fault.NotFound, fault.NothingMerged, fault.AlreadyRunning,
			fault.IngestCapacity, fault.IngestCapacityGlobal, fault.OutOfSpace},
	}, func(ctx context.Context, from *operation.Caller, in *mergeRequest) (Merged, error) {
		runs, err := r.mergeable(ctx, from, in)
		if err != nil && !from.OnlyAnswers() { // a repeated call waits for its merge
			return Merged{}, err
		}
		begun, err := client.Do(ctx, r.Client, client.BeginResult{Job: r.IDs.New(),
			Customer: from.Customer, Group: in.Group, Made: client.Enriched, Kind: work.Merge,
			NewGroup: r.IDs.New(), NewScraper: r.IDs.New(),
			Args: client.AppendMerge(nil, runs)}, from.Call)
		if fault.CodeOf(err) == fault.AlreadyRunning {
			err = fault.New(fault.AlreadyRunning, "a merge of the group is under way")
		}
		if err != nil {
			return Merged{}, err
		}
		from.Job = begun.Job
		return r.awaitMerge(ctx, from, begun.Job)
	})
}

// mergeable returns the runs to merge: at least two.
func (r Resource) mergeable(ctx context.Context, from *operation.Caller,
	in *mergeRequest) ([]ids.ID, error) {
	base, err := ownership.Group(from.View, from.Customer, in.Group, "id")
	if err != nil {
		return nil, err
	}
	runs, err := r.latest(ctx, from.View, base, in.Runs)
	if err == nil && len(runs) < 2 {
		err = fault.New(fault.NothingMerged, "two runs are needed that are the latest COMPLETED "+
			"ones of scrapers of the group; of those that are named, %d of %d are", len(runs),
			len(in.Runs))
	}
	return runs, err
}

// latest filters the named runs to the latest COMPLETED ones of the group's scrapers.
func (r Resource) latest(ctx context.Context, view *client.View, base *client.Group,
	named []string) (taken []ids.ID, err error) {
	seen := map[ids.ID]bool{}
	for _, text := range named {
		id, err := ids.Parse(text)
		if err != nil { // the declaration's pattern prevents this
			return nil, fault.Invalid(fault.InvalidID, "scraperJobStatusIds", "%v", err)
		}
		job, err := r.History.Run(ctx, view, id)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", id, err)
		}
		if job == nil || job.Customer != base.Customer || job.Group != base.ID || job.Trial() ||
			job.State != model.Completed || seen[job.Scraper] {
			continue
		}
		newest, err := r.latestCompleted(ctx, view, job.Scraper)
		if err != nil {
			return nil, err
		}
		if newest == id && view.Scraper(job.Scraper) != nil {
			seen[job.Scraper] = true
			taken = append(taken, id)
		}
	}
	return taken, nil
}

// latestCompleted returns a scraper's newest run that is COMPLETED, has its rows and is not held
// back; zero: none.
func (r Resource) latestCompleted(ctx context.Context, view *client.View, scraper ids.ID) (
	newest ids.ID, err error) {
	err = r.History.ScraperRuns(ctx, view, scraper, func(job *client.Job) bool {
		if job.State == model.Completed && view.DeletedRun(job.ID) == nil &&
			view.HeldRun(job.ID) == nil {
			newest = job.ID
		}
		return newest.IsZero()
	})
	if err != nil {
		return newest, fmt.Errorf("runs of scraper %s: %w", scraper, err)
	}
	return newest, nil
}

// awaitMerge waits for the end of a merge and returns how many rows it made.
func (r Resource) awaitMerge(ctx context.Context, from *operation.Caller, id ids.ID) (Merged,
	error) {
	enough := r.Clock.After(mergePatience)
	for {
		view := r.Client.View()
		job, changed := view.WatchJob(id)
		if job == nil { // it has left the state, or is not known here yet
			var err error
			if job, err = r.History.Run(ctx, view, id); err != nil {
				return Merged{}, fmt.Errorf("run %s: %w", id, err)
			}
		}
		switch {
		case job == nil:
			return Merged{}, fault.New(fault.Unavailable, "the merge is not known here yet")
		case job.State == model.Completed:
			return Merged{MergedItems: &job.Items, JobID: id}, nil
		case job.State == model.Failed:
			return Merged{}, fault.New(fault.NothingMerged, "%s", job.Message)
		case job.State.Final():
			return Merged{}, fault.New(fault.NothingMerged, "the merge was stopped")
		}
		select {
		case <-changed:
		case <-r.Clock.After(mergeGoneEvery):
			if from.Gone() {
				return Merged{}, operation.ErrGone
			}
		case <-enough:
			from.Later = true
			return Merged{JobID: id}, nil
		case <-ctx.Done():
			return Merged{}, ctx.Err()
		}
	}
}
