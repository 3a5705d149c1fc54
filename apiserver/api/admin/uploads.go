package admin

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/api/scrapers"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/upload"
)

// UploadFigures are the operators' settings for all uploads (decision 42).
type UploadFigures struct {
	MaxHeavyImports  uint32 `json:"maxHeavyImports" min:"1" max:"16" default:"1" doc:"How many spreadsheets and appending files are imported at a time"`
	MaxUploadSeconds uint32 `json:"maxUploadSeconds" min:"60" max:"3600" default:"3600" doc:"How long the upload of a file may take"`
	HoldMinutes      uint32 `json:"holdMinutes" min:"1" max:"1440" default:"30" doc:"How long a stalled upload blocks other files for its scraper"`
}

func newUploadFigures(s *client.Settings) UploadFigures {
	whole := s.Uploads.Whole()
	figures := UploadFigures{MaxHeavyImports: whole.Heavy, MaxUploadSeconds: whole.Seconds,
		HoldMinutes: whole.HoldMinutes}
	if figures.MaxUploadSeconds == 0 {
		figures.MaxUploadSeconds = uint32(upload.MaxTime / time.Second)
	}
	return figures
}

// UploadLimitsOfCustomer are the size limits of a customer's files.
type UploadLimitsOfCustomer struct {
	MaxBytes      *int64 `json:"maxBytes" min:"1" max:"200000000" doc:"For csv and jsonl; null: the general limit"`
	MaxSheetBytes *int64 `json:"maxSheetBytes" min:"1" max:"36000000" doc:"For xlsx; null: the general limit"`
}

// limitUploads is PUT /api/admin/customers/{ref}/upload-limits.
func (r Resource) limitUploads() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_admin_limit_uploads",
		Routes: operation.Routes("PUT /api/admin/customers/{ref}/upload-limits"), Group: group,
		Summary: "Lowers the size limits of a customer's files",
		Access:  auth.Admin, Rate: limits.General, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, _ *operation.Caller, in *struct {
		Ref  string                 `path:"ref" min:"1" max:"128" doc:"The customer's customerUniqueRef"`
		Body UploadLimitsOfCustomer `body:"json"`
	}) (scrapers.UploadSizes, error) {
		put := client.PutUploadLimits{Customer: in.Ref}
		if most := in.Body.MaxBytes; most != nil {
			put.Bytes = *most
		}
		if most := in.Body.MaxSheetBytes; most != nil {
			put.Sheet = *most
		}
		if _, err := client.Do(ctx, r.Client, put, nil); err != nil {
			return scrapers.UploadSizes{}, err
		}
		view, err := r.Client.Fresh(ctx)
		if err != nil {
			return scrapers.UploadSizes{}, err
		}
		return scrapers.SizesOf(view, in.Ref), nil
	})
}
