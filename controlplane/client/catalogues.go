package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// Catalogue is the replicated record of a file of products.
type Catalogue = state.Catalogue

// CatalogueState is the state of a catalogue.
type CatalogueState = state.CatalogueState

// The states of a catalogue.
const (
	CatalogueReading = state.CatalogueReading
	CatalogueReady   = state.CatalogueReady
	CatalogueFailed  = state.CatalogueFailed
)

// The commands on catalogues.
type (
	BeginCatalogue = command.BeginCataloguePayload
	EndCatalogue   = command.EndCataloguePayload
)
