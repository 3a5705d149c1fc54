package jobs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// frameEvery is the least time between two frames. Changes within it share a frame.
const frameEvery = 200 * time.Millisecond

// JobProgress is the data of a frame.
type JobProgress struct {
	State          string            `json:"state" doc:"RUNNING, then SUCCESS, FAILED or CANCELLED once nothing of the run is under way"`
	ItemsQuantity  uint64            `json:"itemsQuantity" doc:"Rows stored"`
	TotalRequests  uint64            `json:"totalRequests" doc:"Pages finished, delivered or errored"`
	Duration       *int64            `json:"duration,omitempty" doc:"Milliseconds; only in the last frame"`
	ErrorMessage   *string           `json:"errorMessage,omitempty" scraped:"-"`
	StopReason     *model.StopReason `json:"stopReason,omitempty"`
	SuccessLinks   uint32            `json:"successLinks"`
	ErrorLinks     uint32            `json:"errorLinks"`
	TotalLinks     uint32            `json:"totalLinks"`
	DeliveredPages uint64            `json:"deliveredPages"`
	ChargedMicros  *int64            `json:"chargedMicros" doc:"Charged so far, in micros, millionths of a euro; null for people with whom the group is shared"`
}

// NewProgress is the progress of a run, for its owner or a reader.
func NewProgress(j *client.Job, reader string) JobProgress {
	return JobProgress{State: streamState(j), ItemsQuantity: j.Items, TotalRequests: j.Pages,
		Duration:     duration(j),
		ErrorMessage: given(j.Message), StopReason: given(j.Reason), SuccessLinks: j.Success,
		ErrorLinks: j.Errors,
		TotalLinks: j.Links, DeliveredPages: j.Delivered, ChargedMicros: charged(j, reader)}
}

// streamState is a job's state in the stream (decision 13). A run that still drains is RUNNING
// here, so that the last frame has the final counters.
func streamState(j *client.Job) string {
	switch {
	case !j.Closed:
		return "RUNNING"
	case j.State == model.Completed:
		return "SUCCESS"
	case j.State == model.Stopped:
		return "CANCELLED"
	}
	return string(j.State)
}

type streamRequest struct {
	ID ids.ID `path:"id" doc:"Id of a job. In svc_stream_scraper it may be the id of a scraper: its active run, or else its newest one."`
}

const streamDescription = "Events named status, each with the whole progress. The first event " +
	"comes at once. The last one has the final state, and then the stream ends. Ids are the " +
	"job's index in the change log. A client that reconnects gets the newest state first, so " +
	"nothing is replayed from Last-Event-ID."

const streamToAgents = "Returns how the run ended, or how far it is."

// stream is GET /api/scraper-job-status/{id}/stream.
func (r Resource) stream() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_stream_scraper_job",
		Routes: operation.Routes("GET /api/scraper-job-status/{id}/stream"), Group: group,
		Summary: "Streams the progress of a run", Description: streamDescription,
		ToAgents: streamToAgents,
		Access:   auth.Read, Agents: operation.Reads, Rate: limits.Read, Event: JobProgress{},
		Errors: []fault.Code{fault.JobNotFound},
	}, func(ctx context.Context, from *operation.Caller, in *streamRequest) (operation.Events,
		error) {
		job, err := ownership.ReadableJob(ctx, r.History, from.View, from.Customer, in.ID, "id")
		if err != nil {
			return nil, err
		}
		return r.follow(job, from.Customer), nil
	})
}

// streamOfScraper is GET /api/scraper/{id}/stream-job-status.
func (r Resource) streamOfScraper() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_stream_scraper",
		Routes: operation.Routes("GET /api/scraper/{id}/stream-job-status"), Group: group,
		Summary: "Streams the progress of a scraper's run", Description: streamDescription,
		ToAgents: streamToAgents,
		Access:   auth.Read, Agents: operation.Reads, Rate: limits.Read, Event: JobProgress{},
		Errors: []fault.Code{fault.JobNotFound},
	}, func(ctx context.Context, from *operation.Caller, in *streamRequest) (operation.Events,
		error) {
		id := in.ID
		// A scraper has at most one active run, and that is the newest.
		if read, err := ownership.ReadableScraper(from.View, from.Customer, id,
			"id"); err == nil {
			id = read.LastJob
		}
		job, err := ownership.ReadableJob(ctx, r.History, from.View, from.Customer, id, "id")
		if err != nil {
			return nil, err
		}
		return r.follow(job, from.Customer), nil
	})
}

// follow streams a job to a customer until it is closed or no longer shared with the customer.
func (r Resource) follow(job *client.Job, customer string) operation.Events {
	return func(ctx context.Context, to *operation.EventWriter) error {
		for {
			if err := to.Send("status", strconv.FormatUint(job.Index, 10),
				NewProgress(job, customer)); err != nil {
				return err
			}
			if job.Closed {
				return nil
			}
			if err := to.Wait(ctx, nil, r.Clock.After(frameEvery)); err != nil {
				return err
			}
			var err error
			if job, err = r.newer(ctx, to, job, customer); err != nil || job == nil {
				return err
			}
		}
	}
}

// newer waits for a change of a job. It returns nil if the customer may no longer read it, or if a
// restore undid it. This node's state may be older than job. After a restore, a job that ended may
// be older, too.
func (r Resource) newer(ctx context.Context, to *operation.EventWriter, job *client.Job,
	customer string) (*client.Job, error) {
	for {
		view := r.Client.View()
		next, changed, err := r.watch(ctx, view, job.ID)
		if err == nil && next == nil { // it is not known here yet, or not any more
			if view, err = r.Client.Fresh(ctx); err == nil {
				next, changed, err = r.watch(ctx, view, job.ID)
			}
		}
		switch {
		case err != nil || next == nil:
			return nil, err
		case !next.Closed && next.Index <= job.Index: // wait
		case !ownership.Reads(view, customer, next.Customer, next.Group):
			return nil, nil
		default:
			return next, nil
		}
		if err := to.Wait(ctx, changed, nil); err != nil {
			return nil, err
		}
	}
}

// watch returns a job of the state or the history, and what is closed when it changes. nil: neither
// has it.
func (r Resource) watch(ctx context.Context, view *client.View, id ids.ID) (*client.Job,
	<-chan struct{}, error) {
	job, changed := view.WatchJob(id)
	if job == nil {
		var err error
		if job, err = r.History.Run(ctx, view, id); err != nil {
			return nil, nil, fmt.Errorf("run %s: %w", id, err)
		}
	}
	return job, changed, nil
}
