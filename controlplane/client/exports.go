package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// The replicated records of kept exports.
type (
	Export      = state.Export
	ExportState = state.ExportState
)

// The states of a kept export.
const (
	ExportWaiting = state.ExportWaiting
	ExportReady   = state.ExportReady
	ExportFailed  = state.ExportFailed
)

// The commands on kept exports.
type (
	AskExport  = command.AskExportPayload
	EndExport  = command.EndExportPayload
	DropExport = command.DropExportPayload
)

// Bounds of kept exports.
const (
	MaxExports       = command.MaxExports
	MaxExportBytes   = command.MaxExportBytes
	MaxExportRequest = command.MaxExportRequest
)
