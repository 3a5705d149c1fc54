package data

import (
	"context"
	"slices"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/diff"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const (
	// diffTime is how long a comparison may take, including its transfer.
	diffTime = 30 * time.Minute
	// changesAtOnce is how many changes are in memory when all are sent.
	changesAtOnce = 500
	maxKeyFields  = 5
)

// RowChange is a row that differs between two runs.
type RowChange struct {
	Change  diff.Kind `json:"change" doc:"ADDED, REMOVED or CHANGED"`
	Changed []string  `json:"changed" doc:"For CHANGED: the members whose values differ"`
	Before  *api.Row  `json:"before" doc:"The row in the older run; null for ADDED"`
	After   *api.Row  `json:"after" doc:"The row in the newer run; null for REMOVED"`
}

// RunDiffSummary counts the rows of two runs by kind of change.
type RunDiffSummary struct {
	Added     uint64 `json:"added"`
	Removed   uint64 `json:"removed"`
	Changed   uint64 `json:"changed"`
	Unchanged uint64 `json:"unchanged"`
}

// RunDiff is a page of the differences between two runs.
type RunDiff struct {
	From       ids.ID          `json:"from" doc:"The older run"`
	To         ids.ID          `json:"to" doc:"The newer run"`
	Key        []string        `json:"key" doc:"The members that identify a row; empty: rows were compared by page address and place on the page"`
	Summary    *RunDiffSummary `json:"summary" doc:"Summary of all rows, on the first page only; null on later pages"`
	Items      []RowChange     `json:"items"`
	NextCursor *string         `json:"nextCursor" doc:"Null on the last page"`
	HasMore    bool            `json:"hasMore"`
}

type diffRequest struct {
	From   ids.ID   `query:"from" required:"true" doc:"The older run"`
	To     ids.ID   `query:"to" required:"true" doc:"The newer run, of the same scraper"`
	Key    []string `query:"key" max:"5" each:"max=4096" doc:"Members that identify a row, such as sku: rows with the same values are the same row. Repeated, or separated by commas as in csv. Rows that lack one are compared by position: the page's address and the place on it. In an uploaded file, position is the place in the file. The default is position if each page has one row. Otherwise it is a member such as sku, ean, id or url that is different in each row, if there is one."`
	Fields []string `query:"fields" max:"500" each:"max=4096" doc:"Compare only these members, listed like those of key. Default: all except the server's, which begin with _"`
	Limit  int      `query:"limit" default:"100" min:"1" clamp:"1000"`
	Cursor string   `query:"cursor" max:"1024" doc:"nextCursor of the previous page, with all other parameters but limit unchanged"`
	Format string   `query:"format" agent:"hidden" default:"json" enum:"json,csv,jsonl" doc:"json returns one page; csv and jsonl return everything that follows, and ignore limit"`
}

// diff is GET /api/scraper/data/diff.
func (r Resource) diff() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_diff_runs", Routes: operation.Routes("GET /api/scraper/data/diff"), Group: group,
		Summary: "Compares the rows of two runs of a scraper",
		Description: "It returns the rows that were added, removed or changed, with their " +
			"previous values. Both runs must have ended. A null member counts as absent. Added " +
			"and changed rows come first, in the order of the newer run. Removed rows follow " +
			"in the order of the older run. Beyond 200,000 rows, this order holds within each " +
			"part. The next page is cheap within two minutes of the previous one. After that " +
			"both runs may be compared again, so read a long comparison as jsonl. A key that " +
			"no row has is refused.",
		Media:  api.ExportTypes(),
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read, Timeout: diffTime,
		Long: true,
		Errors: []fault.Code{fault.JobNotFound, fault.JobNotEnded, fault.RowsGone,
			fault.InvalidCursor},
	}, func(ctx context.Context, from *operation.Caller,
		in *diffRequest) (operation.Streamed[RunDiff], error) {
		var answer operation.Streamed[RunDiff]
		runs, err := in.runs(ctx, r, from)
		if err != nil {
			return answer, err
		}
		var at diff.Place
		identity := in.identity(from.Customer)
		if in.Cursor != "" {
			err := api.ReadCursor(in.Cursor, &at, identity...)
			if err == nil && (at.Part < 0 || at.Done < 0) {
				err = api.RefuseCursor()
			}
			if err != nil {
				return answer, err
			}
		}
		if api.Exported(in.Format) {
			return api.Export[RowChange, RunDiff](in.Format, changesBehind(runs, at)), nil
		}
		page := RunDiff{From: in.From, To: in.To, Key: append([]string{}, runs.Key...),
			Items: []RowChange{}}
		var reader *diff.Reader
		if in.Cursor == "" {
			first, sums, err := runs.Begin(ctx)
			if err != nil {
				return answer, err
			}
			reader, page.Summary = first, (*RunDiffSummary)(&sums)
		} else {
			reader = r.Diffs.Read(identity, runs, at)
		}
		found, at, more, err := reader.Next(ctx, in.Limit, api.PageBytes)
		if err != nil {
			return answer, err
		}
		for i := range found {
			page.Items = append(page.Items, newRowChange(&found[i]))
		}
		if page.HasMore = more; more {
			next := api.NewCursor(at, identity...)
			page.NextCursor = &next
			r.Diffs.Keep(identity, at, reader)
		}
		answer.Whole = page
		return answer, nil
	})
}

// changesBehind reads the changes after a place in parts, and returns nil at the end.
func changesBehind(runs diff.Runs, at diff.Place) func(ctx context.Context) ([]RowChange, error) {
	reader, more := runs.Read(at), true
	return func(ctx context.Context) (part []RowChange, err error) {
		if !more {
			return nil, nil
		}
		var found []diff.Change
		if found, _, more, err = reader.Next(ctx, changesAtOnce, exportBytes); err != nil {
			return nil, err
		}
		for i := range found {
			part = append(part, newRowChange(&found[i]))
		}
		return part, nil
	}
}

func newRowChange(c *diff.Change) RowChange {
	made := RowChange{Change: c.Kind, Changed: append([]string{}, c.Fields...)}
	if c.Before != nil {
		before := api.Row(c.Before)
		made.Before = &before
	}
	if c.After != nil {
		after := api.Row(c.After)
		made.After = &after
	}
	return made
}

// identity is what a cursor of this call is bound to.
func (in *diffRequest) identity(customer string) []string {
	return slices.Concat([]string{"diff", customer, in.From.String(), in.To.String()},
		in.Key, []string{""}, in.Fields)
}

// runs returns the two runs to compare. The caller may read both, both have ended, and their rows
// still exist.
func (in *diffRequest) runs(ctx context.Context, r Resource, from *operation.Caller) (diff.Runs,
	error) {
	var runs diff.Runs
	older, err := r.ended(ctx, from, in.From, "from")
	if err != nil {
		return runs, err
	}
	newer, err := r.ended(ctx, from, in.To, "to")
	switch {
	case err != nil:
		return runs, err
	case older.ID == newer.ID:
		return runs, fault.Invalid(fault.InvalidRequest, "to", "is the same run as from")
	case older.Scraper != newer.Scraper:
		return runs, fault.Invalid(fault.InvalidRequest, "to", "is a run of another scraper")
	}
	from.Reads = ownership.StillReads(r.Client, from.Customer, older.Customer, older.Group,
		newer.Group)
	if runs.Key, err = api.ReadMembers(in.Key, "key", maxKeyFields); err != nil {
		return runs, err
	}
	if runs.Fields, err = api.ReadMembers(in.Fields, "fields", maxFields); err != nil {
		return runs, err
	}
	key, fields := runs.Key, runs.Fields
	runs, err = diff.Between(ctx, r.Store, client.ShownOf(from.View, older),
		client.ShownOf(from.View, newer))
	switch runs.Key, runs.Fields = key, fields; {
	case err != nil:
		return runs, err
	case runs.Rows == 0 && older.Items > 0: // else all rows would look ADDED
		return runs, rowsGone("from")
	case runs.NewerRows == 0 && newer.Items > 0:
		return runs, rowsGone("to")
	}
	if runs.Key == nil {
		if runs.Key, err = runs.DefaultKey(ctx); err != nil {
			return runs, err
		}
	}
	return runs, nil
}

func rowsGone(field string) error {
	return fault.Invalid(fault.RowsGone, field,
		"the rows of the run were deleted, replaced or are too old")
}

// ended returns a run that the caller may read and that has ended.
func (r Resource) ended(ctx context.Context, from *operation.Caller, id ids.ID,
	field string) (*client.Job, error) {
	job, err := ownership.ReadableJob(ctx, r.History, from.View, from.Customer, id, field)
	if err == nil && !job.Closed {
		err = fault.Invalid(fault.JobNotEnded, field, "the run goes on: compare it when it has ended")
	}
	return job, err
}
