package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// Catalogue is what is replicated of a file of products.
type Catalogue = state.Catalogue

// CatalogueState says how it stands with one.
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
