package state

import "shoal.dev/shoal/pkg/ids"

// SitesSince is the first cluster version in which scrapers have sites.
const SitesSince = 2

// Site is a fixed list of links that a scraper's runs read (specification 2.7). The row store has
// the links and their results. Times are in Unix milliseconds.
type Site struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Scraper  ids.ID `cbor:"3,keyasint"`
	Name     string `cbor:"4,keyasint"`
	// Version names the links in the row store. New links come with a new version.
	Version   ids.ID `cbor:"5,keyasint"`
	Links     uint32 `cbor:"6,keyasint"` // how many there are
	CreatedAt int64  `cbor:"7,keyasint"`
	UpdatedAt int64  `cbor:"8,keyasint"`
}

var sitesTable = define(SitesSince, "sites",
	index("id", true, func(s *Site) []any { return []any{s.ID} }),
	index("scraper", true, func(s *Site) []any { return []any{s.Scraper} }),
	index("customer", true, func(s *Site) []any { return []any{s.Customer, s.ID} }),
	index("version", true, func(s *Site) []any { return []any{s.Version} }),
).told((*Site).telling)

// Site returns the site with an id, or nil.
func (v *View) Site(id ids.ID) *Site { return sitesTable.first(v, "id", id) }

// SiteOf returns the site of a scraper, nil when it has none.
func (v *View) SiteOf(scraper ids.ID) *Site { return sitesTable.first(v, "scraper", scraper) }

// SiteOfVersion returns the site with a version, nil when none has it any more.
func (v *View) SiteOfVersion(version ids.ID) *Site {
	return sitesTable.first(v, "version", version)
}

// Sites lists a customer's sites, the oldest first.
func (v *View) Sites(customer string) []*Site {
	return sitesTable.all(v, "customer_prefix", customer)
}

// HasSites reports whether any customer has a site.
func (v *View) HasSites() bool { return sitesTable.count(v, "id") > 0 }

// PutSite adds or replaces a site.
func (t *Tx) PutSite(s *Site) { sitesTable.put(t, s) }

// RemoveSite removes a site.
func (t *Tx) RemoveSite(s *Site) { sitesTable.remove(t, s) }
