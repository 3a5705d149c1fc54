package model

import "strings"

// Tags of endpoints, which read pages instead of fields, and have a price row "plugin:" + tag.
const (
	ProductPageTag  = "/plugin/marketplace/pdp" // of MARKETPLACE by default
	ProductListTag  = "/plugin/marketplace/search"
	SearchTag       = "/plugin/search"  // of SEARCH_ENGINE_SEARCH
	WebsiteContacts = "websitecontacts" // specification 4.14, only for list runs
)

// pluginTags is the prefix of the plugins' tags.
const pluginTags = "/plugin/"

// Endpoint reads pages under its own tag.
type Endpoint struct {
	Tag    string
	Charge Charge
	Daily  DailyLimits
	// Tiers are the tiers for its pages; none: those that the scraper allows.
	Tiers TierSet
	// Restricted says that only keys with the scope LLM_FULL may run it.
	Restricted bool
	// MaxLinks is the most addresses of a list; 0: no special limit.
	MaxLinks int
}

// EndpointRow returns the price row of a tag, "" for none.
func EndpointRow(tag string) string {
	if tag == "" {
		return ""
	}
	return "plugin:" + tag
}

// EndpointOf returns the endpoint of a tag.
func EndpointOf(tag string) (Endpoint, bool) {
	e := Endpoint{Tag: tag, Charge: Charge{Row: EndpointRow(tag)}}
	switch {
	case strings.HasPrefix(tag, pluginTags):
	case tag == WebsiteContacts:
		e.Charge.Quantity, e.Charge.PaidOnly = 2, true
		e.Daily = DailyLimits{Reads: 2000, Uncharged: 800, PerDomain: 3}
		e.Tiers, e.Restricted, e.MaxLinks = TiersOf(Plain), true, 5000
	default:
		return Endpoint{}, false
	}
	return e, true
}

// SearchEngine is a search engine that the operator has configured.
type SearchEngine struct {
	Name string `json:"name" cbor:"1,keyasint"`
	// URL is the address of a search; {query} in one parameter's value stands for the query.
	URL string `json:"url" cbor:"2,keyasint"`
	// PageParam is the query parameter for further pages, "" if there are none. PageStart is its
	// value for the first page, and PageStep the increment per page. Both default to 1.
	PageParam string `json:"pageParam,omitempty" cbor:"3,keyasint,omitempty"`
	PageStart *int   `json:"pageStart,omitempty" cbor:"4,keyasint,omitempty"`
	PageStep  *int   `json:"pageStep,omitempty" cbor:"5,keyasint,omitempty"`
	// Results are the fields of HTML result pages: title first, then url, and optionally snippet or
	// kind. Without them, responses are JSON like SearXNG's.
	Results []Field `json:"results,omitempty" cbor:"6,keyasint,omitempty"`
	// IgnoreRobots reads the engine whatever its robots.txt says: for the operator's own engine.
	IgnoreRobots bool `json:"ignoreRobots,omitempty" cbor:"7,keyasint,omitempty"`
}

// search completes the recipe of a SEARCH_ENGINE_SEARCH scraper. The engine defines how to page;
// the scraper defines how far.
func (s *Scraper) search(r *Recipe) {
	r.Endpoint, r.Search, r.Pagination = SearchTag, s.Search, nil
	if s.Search == nil {
		return
	}
	r.Politeness.IgnoreRobots = r.Politeness.IgnoreRobots || s.Search.IgnoreRobots
	if given := s.SourceConfig.Pagination; given.MaxPages() > 1 && s.Search.PageParam != "" {
		r.Pagination = &Pagination{Type: URLPageParam, Param: s.Search.PageParam,
			Start: s.Search.PageStart,
			Step:  s.Search.PageStep, Max: given.Max}
	}
}
