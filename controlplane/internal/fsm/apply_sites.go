package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

func putSite(tx *state.Tx, p command.PutSitePayload) (state.Site, error) {
	known, site := tx.SiteOf(p.Scraper), state.Site{ID: p.ID, CreatedAt: tx.Now}
	if known != nil {
		site = *known
		if known.Version == p.Version {
			return site, nil // done before
		}
	}
	scraper := tx.Scraper(p.Scraper)
	switch {
	case scraper == nil || scraper.Customer != p.Customer:
		return state.Site{}, fault.Invalid(fault.ScraperNotFound, "scraperRef",
			"there is no such scraper")
	case p.Named && (known == nil || known.ID != p.ID),
		!p.Named && known == nil && tx.Site(p.ID) != nil:
		return state.Site{}, fault.Invalid(fault.NotFound, "id",
			"the scraper has no site of this id")
	}
	if err := checkSite(tx, &p, known); err != nil {
		return state.Site{}, err
	}
	site.Customer, site.Scraper, site.Name = p.Customer, p.Scraper, p.Name
	site.Version, site.Links, site.UpdatedAt = p.Version, p.Links, tx.Now
	saved := site
	tx.PutSite(&saved)
	return site, nil
}

// checkSite checks a site against the customer's bounds; known is the site it replaces.
func checkSite(tx *state.Tx, p *command.PutSitePayload, known *state.Site) error {
	sites, links := 0, uint64(p.Links)
	for _, other := range tx.Sites(p.Customer) {
		if known == nil || other.ID != known.ID {
			sites++
			links += uint64(other.Links)
		}
	}
	switch {
	case len(p.Name) > maxSiteName:
		return fault.Invalid(fault.InvalidRequest, "name", "is too long")
	case p.Links > command.MaxSiteLinks:
		return fault.Invalid(fault.ListTooLarge, "links", "a site has at most %d links",
			command.MaxSiteLinks)
	case sites >= command.MaxSites:
		return fault.New(fault.LimitReached, "a customer has at most %d sites", command.MaxSites)
	case links > command.MaxSiteLinksInTotal:
		return fault.New(fault.LimitReached, "the sites of a customer have at most %d links",
			command.MaxSiteLinksInTotal)
	}
	return nil
}

// maxSiteName bounds a site's name, in bytes.
const maxSiteName = 800

func deleteSite(tx *state.Tx, p command.DeleteSitePayload) (command.None, error) {
	if site := tx.Site(p.ID); site != nil && site.Customer == p.Customer {
		tx.RemoveSite(site)
	}
	return command.None{}, nil
}

// removeSiteOf removes the site of a scraper, if it has one.
func removeSiteOf(tx *state.Tx, scraper ids.ID) {
	if site := tx.SiteOf(scraper); site != nil {
		tx.RemoveSite(site)
	}
}
