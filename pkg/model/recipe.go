// Package model owns the words that the roles share: scrapers, recipes, tiers, outcomes, the records on the three
// topics. It holds data and its validation bounds, no behaviour that needs a clock, a store or a network.
package model

// ScraperType says how pages become rows.
type ScraperType string

// The scraper types of the specification (2.1).
const (
	SingleProduct      ScraperType = "SINGLE_PRODUCT"
	MultipleProducts   ScraperType = "MULTIPLE_PRODUCTS"
	ApplicationLDJSON  ScraperType = "APPLICATION_LD_JSON"
	AIConf             ScraperType = "AI_CONF"
	Marketplace        ScraperType = "MARKETPLACE"
	SearchEngineSearch ScraperType = "SEARCH_ENGINE_SEARCH"
	File               ScraperType = "FILE"
)

// FieldKind says what of the selected element becomes the value.
type FieldKind string

// The kinds of the specification (2.1).
const (
	Text   FieldKind = "TEXT"
	Attr   FieldKind = "ATTR"
	Exists FieldKind = "EXISTS"
)

// Field is one entry of itemsConfig.
type Field struct {
	Name     string    `json:"name" cbor:"1,keyasint" doc:"Output field; a leading _ is dropped"`
	Selector string    `json:"selector" cbor:"2,keyasint" doc:"CSS"`
	Kind     FieldKind `json:"kind" cbor:"3,keyasint" doc:"TEXT, ATTR or EXISTS"`
	Attr     string    `json:"attr,omitempty" cbor:"4,keyasint,omitempty" doc:"Attribute name, with ATTR"`
}

// PaginationType says how a page leads to the next one (decision 14).
type PaginationType string

// The pagination types that the loop itself knows; the others of decision 14 join as additions.
const (
	PaginationNone PaginationType = "NONE"
	URLPageParam   PaginationType = "URL_PAGE_PARAM"
	NextLink       PaginationType = "NEXT_LINK"
	LoadMore       PaginationType = "LOAD_MORE"
	InfiniteScroll PaginationType = "INFINITE_SCROLL"
)

// Pagination is sourceConfig.pagination. Max is the most pages of one chain, 1 to 10,000, 50 unless told.
type Pagination struct {
	Type     PaginationType `json:"type" cbor:"1,keyasint" doc:"NONE, URL_PAGE_PARAM, NEXT_LINK; in a browser LOAD_MORE, INFINITE_SCROLL"`
	Param    string         `json:"param,omitempty" cbor:"2,keyasint,omitempty" doc:"Query parameter of URL_PAGE_PARAM"`
	Start    *int           `json:"start,omitempty" cbor:"3,keyasint,omitempty" doc:"First page number of URL_PAGE_PARAM, 1 unless told"`
	Step     *int           `json:"step,omitempty" cbor:"4,keyasint,omitempty" doc:"From page to page, 1 unless told"`
	Selector string         `json:"selector,omitempty" cbor:"5,keyasint,omitempty" doc:"CSS of the link of NEXT_LINK, or of what LOAD_MORE clicks"`
	Max      *int           `json:"max,omitempty" cbor:"6,keyasint,omitempty" doc:"Most pages of a chain, or loads of a page, 1 to 10,000; 50 unless told"`
}

// Bounds of decision 14.
const (
	DefaultMaxPages = 50
	MaxMaxPages     = 10_000
)

// Renders says whether the pagination goes on within a loaded page, which takes a browser.
func (p *Pagination) Renders() bool { return p.Type == LoadMore || p.Type == InfiniteScroll }

// MaxPages is the most pages one chain may have: 1 without pagination, and 1 where a browser loads more into the page,
// which stays one page.
func (p *Pagination) MaxPages() int {
	if p == nil || p.Type == "" || p.Type == PaginationNone || p.Renders() {
		return 1
	}
	return p.MaxLoads()
}

// MaxLoads is Max, or what it is unless told.
func (p *Pagination) MaxLoads() int {
	if p.Max == nil {
		return DefaultMaxPages
	}
	return *p.Max
}

// Recipe is the part of a scraper that a fetcher needs, frozen under (scraper, revision): a revision never changes, so
// whatever is compiled from it may be kept as long as one likes.
type Recipe struct {
	Type       ScraperType `cbor:"1,keyasint"`
	Fields     []Field     `cbor:"2,keyasint,omitempty"`
	Pagination *Pagination `cbor:"3,keyasint,omitempty"`
	Politeness Politeness  `cbor:"4,keyasint,omitempty"`
	// Curl is the request as a curl command, "" for a GET of the address; {{NAME}} stands for tokens of Prelaunch.
	Curl      string     `cbor:"5,keyasint,omitempty"`
	Prelaunch *Prelaunch `cbor:"6,keyasint,omitempty"`
	// Schema is the content of the scraper's extraction schema, a JSON Schema document, as it was when the revision was
	// made; nil but for AI_CONF.
	Schema []byte            `cbor:"7,keyasint,omitempty"`
	Rules  []PostProcessRule `cbor:"8,keyasint,omitempty"`
	// Endpoint is the tag of what reads the pages instead of the type's own extraction: websitecontacts, or a plugin's.
	Endpoint string `cbor:"9,keyasint,omitempty"`
	// HiddenData asks for more than the page states plainly (tryWithHiddenData).
	HiddenData bool `cbor:"10,keyasint,omitempty"`
}

// Politeness is what a scraper asks of its hosts (decision 17). Zero values mean the operator's defaults; the operator's
// ceilings hold whatever is asked.
type Politeness struct {
	RequestsPerSecond float64 `json:"requestsPerSecond,omitempty" cbor:"1,keyasint,omitempty" doc:"Request starts per host and second; 0 is the default of the server"`
	Connections       int     `json:"connections,omitempty" cbor:"2,keyasint,omitempty" doc:"Connections per host; 0 is the default of the server"`
	IgnoreRobots      bool    `json:"ignoreRobots,omitempty" cbor:"3,keyasint,omitempty" doc:"Read pages that robots.txt forbids; recorded in the run"`
}
