package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// Import is what is replicated of an upload.
type Import = state.Import

// The commands on uploads.
type (
	BeginImport   = command.BeginImportPayload
	BegunImport   = command.BegunImport
	AdvanceImport = command.AdvanceImportPayload
	EndImport     = command.EndImportPayload
	ForgetImports = command.ForgetImportsPayload
	// PutUploadLimits sets how long files of a customer may be.
	PutUploadLimits = command.PutUploadLimitsPayload
	UploadFigures   = state.UploadFigures
	// BeginReExtract makes a run of the kept bodies of another one.
	BeginReExtract   = command.BeginReExtractPayload
	ReExtracted      = command.ReExtracted
	AdvanceReExtract = command.AdvanceReExtractPayload
	EndReExtract     = command.EndReExtractPayload
)

// Bounds of uploads.
const (
	MaxOpenImports = command.MaxOpenImports
	MaxImports     = command.MaxImports
	MaxAllImports  = command.MaxAllImports
	MaxHidden      = command.MaxHidden
)

// RoomForImport is by what an upload is refused as one too many. The command decides again.
func RoomForImport(v *View, customer string) error { return command.RoomForImport(v, customer) }

// RoomForScraper is by what one more scraper is refused. The command decides again.
func RoomForScraper(v *View, customer string, by *PlanCap) error {
	return command.RoomForScraper(v, customer, by)
}
