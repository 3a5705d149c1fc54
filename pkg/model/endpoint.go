package model

import "strings"

// Tags of endpoints: what reads pages instead of fields, and has a price row "plugin:" + tag.
const (
	ProductPageTag  = "/plugin/marketplace/pdp" // of MARKETPLACE, unless told otherwise
	ProductListTag  = "/plugin/marketplace/search"
	SearchTag       = "/plugin/search"  // of SEARCH_ENGINE_SEARCH
	WebsiteContacts = "websitecontacts" // specification 4.14, for list runs alone
)

// pluginTags begin so.
const pluginTags = "/plugin/"

// Endpoint is what reads pages under a tag of its own.
type Endpoint struct {
	Tag    string
	Charge Charge
	Daily  DailyLimits
	// Tiers are those that its pages are fetched by, none: those that the scraper allows.
	Tiers TierSet
	// Restricted says that only keys of the scope LLM_FULL may run it.
	Restricted bool
	// MaxLinks bounds a list in addresses, 0: as any list.
	MaxLinks int
}

// EndpointRow is the price row of a tag, "" for none.
func EndpointRow(tag string) string {
	if tag == "" {
		return ""
	}
	return "plugin:" + tag
}

// EndpointOf is the endpoint of a tag.
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
	// URL is the address of a search; {query} stands for the query in the value of one parameter.
	URL string `json:"url" cbor:"2,keyasint"`
	// PageParam is the query parameter of further pages, "" when there are none. PageStart is its
	// value for the first page and PageStep the difference from page to page, each 1 unless told.
	PageParam string `json:"pageParam,omitempty" cbor:"3,keyasint,omitempty"`
	PageStart *int   `json:"pageStart,omitempty" cbor:"4,keyasint,omitempty"`
	PageStep  *int   `json:"pageStep,omitempty" cbor:"5,keyasint,omitempty"`
	// Results are the fields of result pages that are HTML: title first, url, and snippet or kind
	// if there are. Without them answers are JSON as SearXNG gives it.
	Results []Field `json:"results,omitempty" cbor:"6,keyasint,omitempty"`
	// IgnoreRobots reads the engine whatever its robots.txt says: for the operator's own.
	IgnoreRobots bool `json:"ignoreRobots,omitempty" cbor:"7,keyasint,omitempty"`
}

// search completes the recipe of a scraper of the type SEARCH_ENGINE_SEARCH: what it pages through
// is the engine's to say, how far is the scraper's.
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
