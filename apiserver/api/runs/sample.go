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
	UseCache  bool   `query:"useCache" default:"false" doc:"Answer the sample of the last hour, if there is one of the scraper as it is now"`
	MaxCharge *int64 `query:"maxChargeMicros" agent:"required" min:"0" doc:"The call is refused rather than cost more, in micros, millionths of a euro"`
}

// sample is GET /api/scraper/{id}/get-sample-data.
func (r Resource) sample() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: sampleID, Routes: operation.Routes("GET /api/scraper/{id}/get-sample-data"),
		Group:   group,
		Summary: "Runs a scraper on its first page and answers the rows",
		Description: "The first page of the start address, or of the first address of the newest " +
			"list, is fetched and paid like any other. A sample from the cache costs nothing. " +
			"The rows are answered and not kept. Where there are none the header Shoal-Reason " +
			"says why. At most 1,000 rows and about 768 KiB are answered. The call waits up to " +
			"55 s; who hangs up ends the run.",
		Access: auth.Read, Agents: operation.Spends, Rate: limits.Sample, Timeout: trial.Timeout,
		Errors: append([]fault.Code{fault.NotFound, fault.TypeNotRunnable, fault.SchemaGone,
			fault.SearchNotConfigured}, trial.Errors()...),
	}, func(ctx context.Context, from *operation.Caller, in *sampleRequest) ([]api.Row, error) {
		by := api.Trying(from, sampleID)
		rows, err := r.Trials.Sample(ctx, by, in.ID, in.UseCache, in.MaxCharge)
		api.Tried(from, by)
		return api.Rows(rows), err
	})
}
