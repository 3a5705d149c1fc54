package fsm

import (
	"strings"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/work"
)

// maxFormat bounds the name of a file's format.
const maxFormat = 16

func beginCatalogue(tx *state.Tx, p command.BeginCataloguePayload) (state.Catalogue, error) {
	if known := tx.Catalogue(p.ID); known != nil {
		return *known, nil
	}
	switch {
	case p.ID.IsZero() || len(p.Format) > maxFormat || p.Bytes < 0:
		return state.Catalogue{}, fault.New(fault.InvalidRequest, "this is no file of products")
	case tx.IsShort():
		return state.Catalogue{}, errShort()
	}
	if before := tx.CatalogueIn(state.CatalogueReading); before != nil {
		removeCatalogue(tx, before)
	}
	c := state.Catalogue{ID: p.ID, Format: p.Format, Bytes: p.Bytes,
		By:    strings.ToValidUTF8(command.AdminOf(p.By), ""),
		State: state.CatalogueReading, Begun: tx.Now}
	begun := c
	tx.PutCatalogue(&begun)
	tx.PutWork(&state.Work{ID: p.ID, Kind: work.Catalogue, State: state.WorkReady, At: tx.Now,
		Created: tx.Now, Advanced: tx.Now})
	return c, nil
}

// endCatalogue records the first reported outcome of a catalogue.
func endCatalogue(tx *state.Tx, p command.EndCataloguePayload) (command.None, error) {
	known := tx.Catalogue(p.ID)
	if known == nil || known.State != state.CatalogueReading {
		return command.None{}, nil
	}
	removeCatalogue(tx, known)
	ended := *known
	ended.State, ended.Ended, ended.Products = state.CatalogueReady, tx.Now, p.Products
	if p.Message != "" {
		ended.State, ended.Products = state.CatalogueFailed, 0
		ended.Message = strings.ToValidUTF8(command.MessageOfImport(p.Message), "")
	}
	for _, of := range []state.CatalogueState{ended.State, state.CatalogueFailed} {
		if before := tx.CatalogueIn(of); before != nil {
			removeCatalogue(tx, before)
		}
	}
	tx.PutCatalogue(&ended)
	return command.None{}, nil
}

// removeCatalogue removes a catalogue with its background work. Nobody owns its file from then on.
func removeCatalogue(tx *state.Tx, c *state.Catalogue) {
	if item := tx.WorkItem(c.ID); item != nil {
		tx.RemoveWork(item)
	}
	tx.RemoveCatalogue(c)
}
