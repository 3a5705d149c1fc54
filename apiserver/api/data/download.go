package data

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

type downloadRequest struct {
	ID         ids.ID        `path:"id"`
	Categories []string      `query:"categories" max:"20" each:"max=4096" doc:"Only rows in any of these categories, by id or name. Repeated, or separated by commas as in csv; at most 20. With filters, rows must match both."`
	Filters    string        `query:"filters" max:"30000" code:"invalid_filter" doc:"JSON: {\"price\":{\"$gt\":10}}"`
	Format     export.Format `query:"format" default:"xlsx" enum:"xlsx,csv,jsonl,parquet"`
	resumption
}

// download is GET /api/scraper/data/group/{id}/download.
func (r Resource) download() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_download_group_data",
		Routes: operation.Routes("GET /api/scraper/data/group/{id}/download"), Group: group,
		Summary: "Returns the rows of a group's newest runs as one file, data.xlsx",
		Description: "It has the rows of each scraper's newest run as of the call, with the " +
			"columns of GET /api/scraper/data/export. " + resuming + formats,
		Access: auth.Read, Feature: plans.DataExport, Rate: limits.Read,
		Timeout: exportTime, Media: export.MediaTypes(),
		Errors: []fault.Code{fault.NotFound, fault.InvalidFilter, fault.InvalidCursor,
			fault.ExportTooLarge},
	}, func(ctx context.Context, from *operation.Caller,
		in *downloadRequest) (operation.Download, error) {
		if _, err := ownership.ReadableGroup(from.View, from.Customer, in.ID, "id"); err != nil {
			return operation.Download{}, err
		}
		all := streamRequest{exportRequest{selection: selection{GroupID: in.ID, IsLastRun: true,
			Categories: in.Categories, Filters: in.Filters}, Format: in.Format, Guard: true},
			in.resumption}
		return all.file(ctx, r, from, "data")
	})
}
