package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// Site is the replicated record of a scraper's fixed list of links.
type Site = state.Site

// The commands on sites.
type (
	PutSite    = command.PutSitePayload
	DeleteSite = command.DeleteSitePayload
)

// SitesSince is the first cluster version in which scrapers have sites.
const SitesSince = state.SitesSince

// MaxSiteLinks is the largest number of links of a site.
const MaxSiteLinks = command.MaxSiteLinks
