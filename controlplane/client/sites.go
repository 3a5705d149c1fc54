package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// Site is what is replicated of a scraper's fixed list of links.
type Site = state.Site

// The commands on sites.
type (
	PutSite    = command.PutSitePayload
	DeleteSite = command.DeleteSitePayload
)

// SitesSince is the first cluster version in which scrapers have sites.
const SitesSince = state.SitesSince

// MaxSiteLinks is how many links a site has at most.
const MaxSiteLinks = command.MaxSiteLinks
