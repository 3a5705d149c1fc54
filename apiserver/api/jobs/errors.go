package jobs

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/internal/ownership"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// errorsAtOnce is how many errors are read at once. Longer lists are streamed.
const errorsAtOnce = 1_000

// LinkError is a link of a run that failed.
type LinkError struct {
	URL    string     `json:"url"`
	Status *uint16    `json:"status" doc:"HTTP status of the last answer; null without one"`
	Error  string     `json:"error" scraped:"url" doc:"What went wrong, as text"`
	Code   fault.Code `json:"code" doc:"What went wrong, as a code for programs"`
	Place  string     `json:"place" doc:"Position of this error; pass it as after to continue behind it"`
}

type errorsRequest struct {
	GroupID ids.ID `path:"groupId"`
	JobID   ids.ID `path:"jobId"`
	Limit   int    `query:"limit" default:"100000" min:"1" clamp:"100000" doc:"The most errors to return"`
	After   string `query:"after" pattern:"^[0-9]{1,10}\\.[0-9]{1,10}$" doc:"place of the last error that you have"`
}

// errors is GET /api/scraper/load-history/group/{groupId}/job/{jobId}/errors.
func (r Resource) errors() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_scraper_job_errors",
		Routes: operation.Routes("GET /api/scraper/load-history/group/{groupId}/job/{jobId}/errors"), Group: group,
		Summary: "Lists the errors of a run's links, in list order",
		Description: "At most 100,000 errors are listed. If there are as many as limit, use " +
			"after to get the next ones.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read, Timeout: 2 * time.Minute,
		Errors: []fault.Code{fault.JobNotFound},
	}, func(ctx context.Context, from *operation.Caller,
		in *errorsRequest) (operation.Streamed[[]LinkError], error) {
		var answer operation.Streamed[[]LinkError]
		job, err := ownership.ReadableJob(ctx, r.History, from.View, from.Customer, in.JobID,
			"jobId")
		if err != nil {
			return answer, err
		}
		if job.Group != in.GroupID {
			return answer, fault.Invalid(fault.JobNotFound, "jobId", "there is no such job")
		}
		from.Reads = ownership.StillReads(r.Client, from.Customer, job.Customer, job.Group)
		after, err := parsePlace(in.After)
		if err != nil {
			return answer, err
		}
		next := errorsBehind(from.View, r.Store, job, after, in.Limit)
		first, err := next(ctx)
		if err != nil {
			return answer, err
		}
		if len(first) < errorsAtOnce {
			answer.Whole = append([]LinkError{}, first...)
			return answer, nil
		}
		answer.Write = func(ctx context.Context, w io.Writer) error {
			return api.WriteArray(w, func() (part []LinkError, err error) {
				if part, first = first, nil; part == nil {
					part, err = next(ctx)
				}
				return part, err
			})
		}
		return answer, nil
	})
}

// ErrorsOf reads the stored errors of a run in parts, in the order of its list, and nil at the end.
func ErrorsOf(v *client.View, store rowstore.Reads,
	job *client.Job) func(context.Context) ([]LinkError, error) {
	return errorsBehind(v, store, job, nil, math.MaxInt)
}

// errorsBehind is ErrorsOf after a place, with at most left errors.
func errorsBehind(v *client.View, store rowstore.Reads, job *client.Job, after *model.Unit,
	left int) func(context.Context) ([]LinkError, error) {
	if job.Started*1000 < client.RowsSince(v) {
		left = 0 // they have expired
	}
	return func(ctx context.Context) (part []LinkError, err error) {
		most := min(errorsAtOnce, left)
		if most == 0 {
			return nil, nil
		}
		found, err := store.LinkErrors(ctx, job.ID, after, most)
		if err != nil {
			return nil, fmt.Errorf("errors of job %s: %w", job.ID, err)
		}
		for i := range found {
			part = append(part, newLinkError(&found[i]))
		}
		if left -= len(found); len(found) < most {
			left = 0
		} else {
			after = &found[len(found)-1].Unit
		}
		return part, nil
	}
}

func newLinkError(e *rowstore.LinkError) LinkError {
	l := LinkError{URL: e.URL, Code: fault.Code(e.Code),
		Error: fault.Lookup(fault.Code(e.Code)).Title,
		Place: fmt.Sprintf("%d.%d", e.Unit.Seq, e.Unit.Page)}
	if e.Detail != "" {
		l.Error += ": " + e.Detail
	}
	if e.Status != 0 {
		status := e.Status
		l.Status = &status
	}
	return l
}

// parsePlace parses the place that newLinkError writes; nil for "".
func parsePlace(text string) (*model.Unit, error) {
	if text == "" {
		return nil, nil
	}
	left, right, _ := strings.Cut(text, ".")
	// lists are shorter, and stores keep places as signed numbers
	seq, err := strconv.ParseUint(left, 10, 31)
	page, pageErr := strconv.ParseUint(right, 10, 32)
	if err != nil || pageErr != nil {
		return nil, fault.Invalid(fault.InvalidRequest, "after", "is not the place of an error")
	}
	return &model.Unit{Seq: uint32(seq), Page: uint32(page)}, nil
}
