// Package model owns the words that the roles share: scrapers, recipes, tiers, outcomes, the
// records on the three topics. It holds data and its validation bounds, no behaviour that needs a
// clock, a store or a network.
package model

import "strings"

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

// Detection is the type of what previews run: its rows are proposals of scrapers. No scraper that
// is saved has it.
const Detection ScraperType = "DETECTION"

// Viewing is the type of what looks at a page to pick fields on it. Its first row is the page, and
// the others are proposals. No scraper that is saved has it.
const Viewing ScraperType = "VIEWING"

// FieldKind says what of the selected element becomes the value.
type FieldKind string

// The kinds of the specification (2.1).
const (
	Text   FieldKind = "TEXT"
	Attr   FieldKind = "ATTR"
	Exists FieldKind = "EXISTS"
)

// Field is one entry of itemsConfig.
//
// A selector that begins with $ is JSONPath (RFC 9535). It is XPath 1.0 if it begins with /, ./,
// ../, ( or @, with an axis, such as descendant::li, or with the call of a function, such as
// count(//li). Otherwise it is CSS. A prefix, css:, xpath: or jsonpath:, names the language as
// well. JSONPaths read JSON bodies, CSS selectors and XPath HTML pages: the fields of one scraper
// are of one kind.
//
// TEXT is the text of what is selected, white space collapsed. ATTR is an attribute of it, or of
// the element that a selected attribute or text belongs to. EXISTS says whether there is anything.
// An XPath expression may give a string, a number or a truth value, which then is the value. Of a
// JSON body, TEXT is the value as it stands there: numbers as they are written, arrays and objects
// as JSON. A JSON value has no attributes.
type Field struct {
	Name     string    `json:"name" cbor:"1,keyasint" required:"true" min:"1" max:"256" form:"field" doc:"Output field; a leading _ is dropped"`
	Selector string    `json:"selector" cbor:"2,keyasint" required:"true" max:"2048" form:"filled" doc:"CSS or XPath for HTML pages, JSONPath for JSON bodies. A JSONPath under $.embedded reads the JSON that an HTML page embeds for its scripts"`
	Kind     FieldKind `json:"kind" cbor:"3,keyasint" required:"true" enum:"TEXT,ATTR,EXISTS" doc:"TEXT, ATTR or EXISTS"`
	Attr     string    `json:"attr,omitempty" cbor:"4,keyasint,omitempty" max:"256" form:"attribute" doc:"Attribute name, with ATTR"`
}

// Column is the field's name in rows.
func (f *Field) Column() string { return strings.TrimLeft(f.Name, "_") }

// PaginationType says how a page leads to the next one (decision 14).
type PaginationType string

// The pagination types. The last two happen on one page in a browser; with the others each page is
// a request of its own.
const (
	PaginationNone PaginationType = "NONE"
	URLPageParam   PaginationType = "URL_PAGE_PARAM"
	OffsetParam    PaginationType = "OFFSET_PARAM"
	URLTemplate    PaginationType = "URL_TEMPLATE"
	NextLink       PaginationType = "NEXT_LINK"
	JSONCursor     PaginationType = "JSON_CURSOR"
	LoadMore       PaginationType = "LOAD_MORE"
	InfiniteScroll PaginationType = "INFINITE_SCROLL"
)

// PagePlaceholder stands for the page number in a Template.
const PagePlaceholder = "{page}"

// Pagination is sourceConfig.pagination. Max is the most pages of one chain, or the most loads into
// one page, the page's own included, 1 to 10,000, 50 unless told. The first page is the address as
// it is listed, always.
//
// A Param stands in the address's query. Where the source is a curl command whose address does not
// have it and whose body does, it stands in the body instead. It is a field of a form or a
// top-level member of JSON. Written as a JSON pointer with its leading slash, it is a member
// further down.
type Pagination struct {
	Type       PaginationType `json:"type" cbor:"1,keyasint" required:"true" enum:"NONE,URL_PAGE_PARAM,OFFSET_PARAM,URL_TEMPLATE,NEXT_LINK,JSON_CURSOR,LOAD_MORE,INFINITE_SCROLL" doc:"NONE, URL_PAGE_PARAM, OFFSET_PARAM, URL_TEMPLATE, NEXT_LINK or JSON_CURSOR; LOAD_MORE and INFINITE_SCROLL need the browser tier. A chain ends at a page without rows, at one that was there before and at one with known rows only. With URL_PAGE_PARAM, OFFSET_PARAM and URL_TEMPLATE it also ends where a page behind the first is answered with 404 or 410. Such a page is no error and costs nothing"`
	Param      string         `json:"param,omitempty" cbor:"2,keyasint,omitempty" max:"256" doc:"Of URL_PAGE_PARAM, OFFSET_PARAM and JSON_CURSOR: a query parameter, or a field of a curl command's body. The field is a form's, a JSON member, or a JSON pointer to one"`
	Start      *int           `json:"start,omitempty" cbor:"3,keyasint,omitempty" min:"0" max:"1000000" doc:"First page number of URL_PAGE_PARAM; unless told the number in the listed address, else 1"`
	Step       *int           `json:"step,omitempty" cbor:"4,keyasint,omitempty" min:"1" max:"1000000" doc:"Of URL_PAGE_PARAM, from page to page, 1 unless told"`
	Selector   string         `json:"selector,omitempty" cbor:"5,keyasint,omitempty" max:"2048" doc:"Selector of the link of NEXT_LINK (of JSON bodies, JSONPath of its address), or CSS of the button of LOAD_MORE"`
	Max        *int           `json:"max,omitempty" cbor:"6,keyasint,omitempty" min:"1" max:"10000" doc:"Most pages of a chain, or loads of LOAD_MORE and INFINITE_SCROLL, the page's own included, 1 to 10,000; 50 unless told"`
	PageSize   *int           `json:"pageSize,omitempty" cbor:"8,keyasint,omitempty" min:"1" max:"1000000" doc:"Of OFFSET_PARAM: what the offset grows by from page to page, from the number in the listed address, else from 0"`
	Template   string         `json:"template,omitempty" cbor:"9,keyasint,omitempty" max:"8192" doc:"Of URL_TEMPLATE: the address of the second and later pages, absolute or relative to the listed one, with {page} for the page's number"`
	CursorPath string         `json:"cursorPath,omitempty" cbor:"7,keyasint,omitempty" max:"2048" doc:"Of JSON_CURSOR: JSONPath (RFC 9535) of the next page's cursor; the chain ends where there is none, or it is null, false or empty"`
}

// DefaultMaxPages is what decision 14 says.
const DefaultMaxPages = 50

// Renders says whether the pagination goes on within a loaded page, which takes a browser.
func (p *Pagination) Renders() bool { return p.Type == LoadMore || p.Type == InfiniteScroll }

// Counts says whether the addresses of further pages are made by counting: whoever counts does not
// know where the pages end.
func (p *Pagination) Counts() bool {
	return p != nil && (p.Type == URLPageParam || p.Type == OffsetParam || p.Type == URLTemplate)
}

// MaxPages is the most pages one chain may have: 1 without pagination. Where a browser loads more
// into the page it is 1, too, for that stays one page.
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

// Recipe is the part of a scraper that a fetcher needs, frozen under (scraper, revision). A
// revision never changes, so whatever is compiled from it may be kept as long as one likes.
type Recipe struct {
	Type       ScraperType `cbor:"1,keyasint"`
	Fields     []Field     `cbor:"2,keyasint,omitempty"`
	Pagination *Pagination `cbor:"3,keyasint,omitempty"`
	Politeness Politeness  `cbor:"4,keyasint,omitempty"`
	// Curl is the request as a curl command, "" for a GET of the address; {{NAME}} stands for
	// tokens of Prelaunch.
	Curl      string     `cbor:"5,keyasint,omitempty"`
	Prelaunch *Prelaunch `cbor:"6,keyasint,omitempty"`
	// Schema is the content of the scraper's extraction schema, a JSON Schema document, as it was
	// when the revision was made; nil but for AI_CONF.
	Schema []byte            `cbor:"7,keyasint,omitempty"`
	Rules  []PostProcessRule `cbor:"8,keyasint,omitempty"`
	// Endpoint is the tag of what reads the pages instead of the type's own extraction:
	// websitecontacts, or a plugin's.
	Endpoint string `cbor:"9,keyasint,omitempty"`
	// HiddenData asks for more than the page states plainly (tryWithHiddenData).
	HiddenData bool `cbor:"10,keyasint,omitempty"`
	// Search is the engine of SEARCH_ENGINE_SEARCH; nil until the first launch.
	Search *SearchEngine `cbor:"20,keyasint,omitempty"`
	// KeepDays are for how many days the bodies of its pages are kept; 0: they are not.
	KeepDays uint8 `cbor:"21,keyasint,omitempty" since:"2"`
}

// MinRequestsPerSecond is the slowest pace that a scraper may ask for: what a Crawl-delay may
// (decision 17).
const MinRequestsPerSecond = 1. / 30

// Politeness is what a scraper asks of its hosts (decision 17). Zero values mean the operator's
// defaults; the operator's ceilings hold whatever is asked.
type Politeness struct {
	RequestsPerSecond float64 `json:"requestsPerSecond,omitempty" cbor:"1,keyasint,omitempty" min:"0" doc:"Request starts per host and second, one in 30 seconds at least; 0 is the default of the server"`
	Connections       int     `json:"connections,omitempty" cbor:"2,keyasint,omitempty" min:"0" doc:"Connections per host; 0 is the default of the server"`
	IgnoreRobots      bool    `json:"ignoreRobots,omitempty" cbor:"3,keyasint,omitempty" doc:"Read pages that robots.txt forbids; recorded in the run"`
}
