package runs

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/trial"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const sampleID = "svc_get_scraper_sample_data"

type sampleRequest struct {
	ID        ids.ID `path:"id"`
	UseCache  bool   `query:"useCache" default:"false" doc:"Return the sample from the last hour, if the scraper has not changed since"`
	MaxCharge *int64 `query:"maxChargeMicros" agent:"required" min:"0" doc:"The call is refused if it could cost more than this, in micros, millionths of a euro"`
}

// sample is GET /api/scraper/{id}/get-sample-data.
func (r Resource) sample() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: sampleID, Routes: operation.Routes("GET /api/scraper/{id}/get-sample-data"),
		Group:   group,
		Summary: "Runs a scraper on its first page and returns the rows",
		Description: "It fetches the page that a run would read first. That is the next link " +
			"of the scraper's site, else the start address, else the first address of the " +
			"newest list. The page is charged like any other. A sample from the cache costs " +
			"nothing. The rows are returned but not stored. If there are none, the header " +
			"Shoal-Reason says why. At most 1,000 rows and about 768 KiB are returned. The " +
			"call waits up to 55 s; disconnecting ends the run.",
		Access: auth.Read, Agents: operation.Spends, Rate: limits.Sample, Timeout: trial.Timeout,
		Errors: append([]fault.Code{fault.NotFound, fault.TypeNotRunnable, fault.SchemaGone,
			fault.SearchNotConfigured, fault.StartURLsUnreachable}, trial.Errors()...),
	}, func(ctx context.Context, from *operation.Caller, in *sampleRequest) ([]api.Row, error) {
		by := api.Trying(from, sampleID)
		rows, err := r.Trials.Sample(ctx, by, in.ID, in.UseCache, in.MaxCharge)
		api.Tried(from, by)
		return api.Rows(rows), err
	})
}
