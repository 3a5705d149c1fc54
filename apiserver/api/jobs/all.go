package jobs

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

type allRequest struct {
	GroupID ids.ID   `query:"groupId" doc:"Only runs in this group, which is the customer's own or shared with it"`
	From    api.Time `query:"from" agent:"hidden" doc:"Queued at this time or later"`
	To      api.Time `query:"to" agent:"hidden" doc:"Queued before this time"`
	Limit   int      `query:"limit" default:"100" min:"1" clamp:"1000"`
	Cursor  string   `query:"cursor" max:"1024" doc:"nextCursor of the previous page"`
	Format  string   `query:"format" agent:"hidden" default:"json" enum:"json,csv,jsonl" doc:"json returns one page; csv and jsonl return everything that follows, and ignore limit"`
}

// Validate implements operation.Validator.
func (in *allRequest) Validate() fault.List { return api.CheckSpan(in.From, in.To) }

// exportedAtOnce is how many runs are read from the history at once.
const exportedAtOnce = 1_000

// all is GET /api/scraper/load-history/all.
func (r Resource) all() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_all_scraper_jobs",
		Routes: operation.Routes("GET /api/scraper/load-history/all"), Group: group,
		Summary: "Reads all the customer's runs, newest first, by cursor",
		Description: "There is no page limit: the cursor leads to the oldest run still kept. " +
			"Deleted runs are included; runs launched meanwhile are not. groupId may be a " +
			"group that is shared with the customer. An answer under way breaks off when the " +
			"sharing ends.",
		Media:  api.ExportTypes(),
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read, Timeout: 10 * time.Minute,
		Errors: []fault.Code{fault.InvalidCursor},
	}, func(ctx context.Context, from *operation.Caller,
		in *allRequest) (operation.Streamed[api.CursorPage[Job]], error) {
		var answer operation.Streamed[api.CursorPage[Job]]
		var behind *rowstore.PastPlace
		if in.Cursor != "" {
			behind = &rowstore.PastPlace{}
			if err := api.ReadCursor(in.Cursor, behind, in.read(from.Customer)...); err != nil {
				return answer, err
			}
		}
		of := runsOf(from.View, from.Customer, in.GroupID)
		of.Queued = api.Span(in.From, in.To)
		if api.Exported(in.Format) {
			next := r.behind(from, of, behind)
			return api.Export[Job, api.CursorPage[Job]](in.Format, next), nil
		}
		page := api.CursorPage[Job]{Items: []Job{}}
		found, err := r.History.RunsBefore(ctx, from.View, of, behind, in.Limit+1)
		if err != nil {
			return answer, fmt.Errorf("history: %w", err)
		}
		page.HasMore = len(found) > in.Limit
		for _, j := range found[:min(in.Limit, len(found))] {
			page.Items = append(page.Items, NewJob(from.View, j, from.Customer))
		}
		if page.HasMore {
			last := found[in.Limit-1]
			next := api.NewCursor(rowstore.PastPlace{Value: last.Queued, ID: last.ID},
				in.read(from.Customer)...)
			page.NextCursor = &next
		}
		answer.Whole = page
		return answer, nil
	})
}

// read is what a cursor of this call is bound to.
func (in *allRequest) read(customer string) []string {
	if in.GroupID.IsZero() {
		return api.ReadWithin(in.From, in.To, "jobs", customer)
	}
	return api.ReadWithin(in.From, in.To, "jobs", customer, in.GroupID.String())
}

// runsOf selects the customer's own runs, in one group unless group is zero, or the runs of a group
// that is shared with the customer.
func runsOf(v *client.View, customer string, group ids.ID) client.RunsOf {
	of := client.RunsOf{Customer: customer, Group: group}
	if g := v.Group(group); g != nil && ownership.Reads(v, customer, g.Customer, group) {
		of.Customer = g.Customer
	}
	return of
}

// behind reads the runs after a place in parts, and nil at the end. It fails once they are no
// longer shared with the caller.
func (r Resource) behind(from *operation.Caller, of client.RunsOf,
	place *rowstore.PastPlace) func(ctx context.Context) ([]Job, error) {
	view, customer := from.View, from.Customer
	return func(ctx context.Context) (part []Job, err error) {
		if !ownership.Reads(r.Client.View(), customer, of.Customer, of.Group) {
			return nil, fault.New(fault.NotFound, "the group is not shared any more")
		}
		found, err := r.History.RunsBefore(ctx, view, of, place, exportedAtOnce)
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		for _, j := range found {
			part = append(part, NewJob(view, j, customer))
			place = &rowstore.PastPlace{Value: j.Queued, ID: j.ID}
		}
		return part, nil
	}
}
