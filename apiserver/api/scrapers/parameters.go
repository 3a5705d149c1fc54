package scrapers

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/upload"
)

// UploadLimits are the limits of file uploads (specification 8).
type UploadLimits struct {
	MaxUploadBytes      UploadSizes `json:"maxUploadBytes" doc:"Largest file, by format; the operator may lower it for a customer"`
	MaxJSONBodyBytes    int64       `json:"maxJsonBodyBytes" doc:"Largest body of a JSON upload"`
	MaxJSONUploads      int         `json:"maxJsonUploads" doc:"How many JSON uploads are taken at a time"`
	MaxColumns          int         `json:"maxColumns"`
	MaxColumnNameLength int         `json:"maxColumnNameLength" doc:"Most characters of a column's name"`
	MaxCellBytes        int64       `json:"maxCellBytes"`
	MaxRowBytes         int64       `json:"maxRowBytes"`
	MaxNameLength       int         `json:"maxNameLength" doc:"Most characters of an upload's name"`
	MaxHeavyImports     int         `json:"maxHeavyImports" doc:"How many xlsx and appending uploads are imported at a time"`
	MaxUploadSeconds    int         `json:"maxUploadSeconds"`
	MinUploadBitsPerSec int64       `json:"minUploadBitsPerSecond"`
}

// UploadSizes are size limits of files, bytes by format.
type UploadSizes struct {
	CSV   int64 `json:"csv"`
	JSONL int64 `json:"jsonl"`
	XLSX  int64 `json:"xlsx"`
}

// SizesOf returns the size limits of a customer.
func SizesOf(v *client.View, customer string) UploadSizes {
	return UploadSizes{CSV: limits.UploadBytes(v, customer, upload.CSV),
		JSONL: limits.UploadBytes(v, customer, upload.JSONL),
		XLSX:  limits.UploadBytes(v, customer, upload.XLSX)}
}

// parameters is GET /api/scraper/config/parameters.
func (Resource) parameters() *operation.Operation {
	limit := UploadLimits{
		MaxJSONBodyBytes: upload.MaxJSONBytes, MaxJSONUploads: upload.MaxJSONBodies,
		MaxColumns: upload.MaxColumns, MaxColumnNameLength: upload.MaxName,
		MaxCellBytes: upload.MaxCell, MaxRowBytes: upload.MaxRow,
		MaxNameLength:       upload.MaxScraper,
		MinUploadBitsPerSec: upload.LeastPace,
	}
	return operation.Define(operation.Declaration{
		ID:     "svc_get_config_parameters",
		Routes: operation.Routes("GET /api/scraper/config/parameters"), Group: group,
		Summary: "Returns the limits of the caller's file uploads",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (UploadLimits, error) {
		own := limit
		own.MaxUploadBytes = SizesOf(from.View, from.Customer)
		own.MaxHeavyImports = int(from.View.Settings().Uploads.Whole().Heavy)
		own.MaxUploadSeconds = int(limits.UploadTime(from.View) / time.Second)
		return own, nil
	})
}
