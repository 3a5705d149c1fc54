package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// Import is the replicated record of an upload.
type Import = state.Import

// The commands on uploads.
type (
	BeginImport   = command.BeginImportPayload
	BegunImport   = command.BegunImport
	AdvanceImport = command.AdvanceImportPayload
	EndImport     = command.EndImportPayload
	ForgetImports = command.ForgetImportsPayload
	// PutUploadLimits sets how long a customer's files may be.
	PutUploadLimits = command.PutUploadLimitsPayload
	UploadFigures   = state.UploadFigures
	// BeginReExtract makes a run from the kept bodies of another run.
	BeginReExtract   = command.BeginReExtractPayload
	ReExtracted      = command.ReExtracted
	AdvanceReExtract = command.AdvanceReExtractPayload
	EndReExtract     = command.EndReExtractPayload
	Verdict          = command.Verdict
)

// Bounds of uploads.
const (
	MaxOpenImports = command.MaxOpenImports
	MaxImports     = command.MaxImports
	MaxAllImports  = command.MaxAllImports
	MaxHidden      = command.MaxHidden
)

// RoomForImport returns why a customer may not have one more upload. The command checks again.
func RoomForImport(v *View, customer string) error { return command.RoomForImport(v, customer) }

// RoomForScraper returns why a customer may not have one more scraper. The command checks again.
func RoomForScraper(v *View, customer string, by *PlanCap) error {
	return command.RoomForScraper(v, customer, by)
}
