package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of sites.
const (
	MaxSites            = 1_000      // per customer
	MaxSiteLinks        = 1_000_000  // per site
	MaxSiteLinksInTotal = 10_000_000 // of all sites of a customer
)

// PutSitePayload gives a scraper the links of a finished version in the row store. A scraper has
// one site, which keeps its id. ID is for a new site, or is the one that the caller named (Named).
// Faults: scraper_not_found, not_found (the site named is not this scraper's), limit_reached.
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

// DeleteSitePayload removes a customer's site, if the id exists. Nobody owns its links from then
// on.
type DeleteSitePayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (DeleteSitePayload) Declaration() Declaration {
	return Declaration{Number: 211, By: APIServer, Kept: true, Since: state.SitesSince}
}

func (DeleteSitePayload) yields(None) {}
