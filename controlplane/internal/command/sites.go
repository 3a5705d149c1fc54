package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of sites.
const (
	MaxSites            = 1_000      // of a customer
	MaxSiteLinks        = 1_000_000  // of a site
	MaxSiteLinksInTotal = 10_000_000 // of a customer's sites together
)

// PutSitePayload gives a scraper the links that a finished version in the row store has. A scraper
// has one site, which keeps its id: ID is that of a new one, or what the caller named (Named).
// Faults: scraper_not_found, not_found (the site named is none of this scraper), limit_reached.
type PutSitePayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Named    bool   `cbor:"2,keyasint,omitempty"`
	Customer string `cbor:"3,keyasint"`
	Scraper  ids.ID `cbor:"4,keyasint"`
	Name     string `cbor:"5,keyasint"` // at most 800 bytes
	Version  ids.ID `cbor:"6,keyasint"`
	Links    uint32 `cbor:"7,keyasint"`
}

// Declaration implements Payload.
func (PutSitePayload) Declaration() Declaration {
	return Declaration{Number: 210, By: APIServer, Kept: true, Since: state.SitesSince}
}

func (PutSitePayload) yields(state.Site) {}

// DeleteSitePayload removes a site of a customer, if there is one of that id. Its links are
// nobody's from then on.
type DeleteSitePayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (DeleteSitePayload) Declaration() Declaration {
	return Declaration{Number: 211, By: APIServer, Kept: true, Since: state.SitesSince}
}

func (DeleteSitePayload) yields(None) {}
