// Package model owns the terms that the roles share: scrapers, recipes, tiers, outcomes, and the
// records on the three topics. It holds data and validation bounds, but no behaviour that needs a
// clock, a store or a network.
package model

import "strings"

// ScraperType is how pages become rows.
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

// Detection is the type of previews that detect data: their rows are proposals of scrapers. No
// saved scraper has it.
const Detection ScraperType = "DETECTION"

// Viewing is the type of previews of a page on which fields are picked. The first row is the page,
// and the others are proposals. No saved scraper has it.
const Viewing ScraperType = "VIEWING"

// FieldKind is what is taken from the selected element as the value.
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
// TEXT is the text of the selection, with white space collapsed. ATTR is an attribute of it, or of
// the element to which a selected attribute or text belongs. EXISTS says whether anything is
// selected. An XPath expression may yield a string, a number or a truth value, which then is the
// value. In a JSON body, TEXT is the value as written: numbers as they stand, arrays and objects as
// JSON. A JSON value has no attributes.
type Field struct {
	Name     string    `json:"name" cbor:"1,keyasint" required:"true" min:"1" max:"256" form:"field" doc:"Name of the output field; a leading _ is dropped"`
	Selector string    `json:"selector" cbor:"2,keyasint" required:"true" max:"2048" form:"filled" doc:"CSS or XPath for HTML pages, JSONPath for JSON bodies. A JSONPath under $.embedded reads the JSON that an HTML page embeds for its scripts. XPath sees no comments: node() leaves them out"`
	Kind     FieldKind `json:"kind" cbor:"3,keyasint" required:"true" enum:"TEXT,ATTR,EXISTS" doc:"TEXT, ATTR or EXISTS"`
	Attr     string    `json:"attr,omitempty" cbor:"4,keyasint,omitempty" max:"256" form:"attribute" doc:"Attribute name, for ATTR"`
}

// Column returns the field's name in rows.
func (f *Field) Column() string { return ColumnOf(f.Name) }

// ColumnOf returns the name in rows of what a customer names. It has no leading underscore, since
// those are the server's (decision 20).
func ColumnOf(name string) string { return strings.TrimLeft(name, "_") }

// PaginationType is how a page leads to the next one (decision 14).
type PaginationType string

// The pagination types. The last two happen within one page in a browser; with the others each page
// is a separate request.
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

// PagePlaceholder is the placeholder for the page number in a Template.
const PagePlaceholder = "{page}"

// Pagination is sourceConfig.pagination. Max is the most pages of one chain, or the most loads into
// one page, including the page itself: 1 to 10,000, default 50. The first page is always the
// address as listed.
//
// A Param belongs to the address's query. If the source is a curl command whose body has the Param
// and whose address does not, it belongs to the body. There it is a form field or a top-level
// member of JSON. Written as a JSON pointer with its leading slash, it is a nested member.
type Pagination struct {
	Type       PaginationType `json:"type" cbor:"1,keyasint" required:"true" enum:"NONE,URL_PAGE_PARAM,OFFSET_PARAM,URL_TEMPLATE,NEXT_LINK,JSON_CURSOR,LOAD_MORE,INFINITE_SCROLL" doc:"NONE, URL_PAGE_PARAM, OFFSET_PARAM, URL_TEMPLATE, NEXT_LINK or JSON_CURSOR; LOAD_MORE and INFINITE_SCROLL need the browser tier. A chain ends at a page without rows, at a repeated page and at a page with only known rows. With URL_PAGE_PARAM, OFFSET_PARAM and URL_TEMPLATE, a 404 or 410 after the first page also ends it. Such a page is not an error and costs nothing"`
	Param      string         `json:"param,omitempty" cbor:"2,keyasint,omitempty" max:"256" doc:"For URL_PAGE_PARAM, OFFSET_PARAM and JSON_CURSOR: a query parameter, or a field of a curl command's body. The field is a form field, a JSON member, or a JSON pointer to one"`
	Start      *int           `json:"start,omitempty" cbor:"3,keyasint,omitempty" min:"0" max:"1000000" doc:"For URL_PAGE_PARAM: the first page number; default: the number in the listed address, else 1"`
	Step       *int           `json:"step,omitempty" cbor:"4,keyasint,omitempty" min:"1" max:"1000000" doc:"For URL_PAGE_PARAM: the increment from page to page; default: 1"`
	Selector   string         `json:"selector,omitempty" cbor:"5,keyasint,omitempty" max:"2048" doc:"For NEXT_LINK: selector of the link (in JSON bodies, JSONPath of its address). For LOAD_MORE: CSS of the button"`
	Max        *int           `json:"max,omitempty" cbor:"6,keyasint,omitempty" min:"1" max:"10000" doc:"Most pages of a chain, 1 to 10,000; default: 50. For LOAD_MORE and INFINITE_SCROLL, the most loads, the page's own included"`
	PageSize   *int           `json:"pageSize,omitempty" cbor:"8,keyasint,omitempty" min:"1" max:"1000000" doc:"For OFFSET_PARAM: how much the offset grows per page. It starts at the number in the listed address, else at 0"`
	Template   string         `json:"template,omitempty" cbor:"9,keyasint,omitempty" max:"8192" doc:"For URL_TEMPLATE: the address of the second and later pages, absolute or relative to the listed one, with {page} for the page number"`
	CursorPath string         `json:"cursorPath,omitempty" cbor:"7,keyasint,omitempty" max:"2048" doc:"For JSON_CURSOR: JSONPath (RFC 9535) of the next page's cursor; the chain ends if it is missing, null, false or empty"`
}

// DefaultMaxPages is what decision 14 says.
const DefaultMaxPages = 50

// Renders reports whether the pagination continues within a loaded page, which takes a browser.
func (p *Pagination) Renders() bool { return p.Type == LoadMore || p.Type == InfiniteScroll }

// Counts reports whether the addresses of further pages are made by counting. Counting does not
// reveal where the pages end.
func (p *Pagination) Counts() bool {
	return p != nil && (p.Type == URLPageParam || p.Type == OffsetParam || p.Type == URLTemplate)
}

// MaxPages returns the most pages of one chain: 1 without pagination. It is also 1 if a browser
// loads more into the page, since that remains one page.
func (p *Pagination) MaxPages() int {
	if p == nil || p.Type == "" || p.Type == PaginationNone || p.Renders() {
		return 1
	}
	return p.MaxLoads()
}

// MaxLoads returns Max or its default.
func (p *Pagination) MaxLoads() int {
	if p.Max == nil {
		return DefaultMaxPages
	}
	return *p.Max
}

// Recipe is the part of a scraper that a fetcher needs, frozen under (scraper, revision). A
// revision never changes, so anything compiled from it may be cached indefinitely.
type Recipe struct {
	Type       ScraperType `cbor:"1,keyasint"`
	Fields     []Field     `cbor:"2,keyasint,omitempty"`
	Pagination *Pagination `cbor:"3,keyasint,omitempty"`
	Politeness Politeness  `cbor:"4,keyasint,omitempty"`
	// Curl is the request as a curl command, "" for a GET of the address; {{NAME}} stands for a
	// token of Prelaunch.
	Curl      string     `cbor:"5,keyasint,omitempty"`
	Prelaunch *Prelaunch `cbor:"6,keyasint,omitempty"`
	// Schema is the content of the scraper's extraction schema, a JSON Schema document, at the time
	// of the revision; nil except for AI_CONF.
	Schema []byte            `cbor:"7,keyasint,omitempty"`
	Rules  []PostProcessRule `cbor:"8,keyasint,omitempty"`
	// Endpoint is the tag of the endpoint that reads the pages instead of the type's own
	// extraction: websitecontacts, or a plugin's.
	Endpoint string `cbor:"9,keyasint,omitempty"`
	// HiddenData asks for more than the page plainly states (tryWithHiddenData).
	HiddenData bool `cbor:"10,keyasint,omitempty"`
	// Search is the engine of SEARCH_ENGINE_SEARCH; nil until the first launch.
	Search *SearchEngine `cbor:"20,keyasint,omitempty"`
	// KeepDays is for how many days the bodies of its pages are kept; 0: not at all.
	KeepDays uint8 `cbor:"21,keyasint,omitempty" since:"2"`
}

// MinRequestsPerSecond is the slowest pace that a scraper may request: the same as for a
// Crawl-delay (decision 17).
const MinRequestsPerSecond = 1. / 30

// Politeness is how a scraper treats its hosts (decision 17). Zero values mean the operator's
// defaults. The operator's ceilings always apply.
type Politeness struct {
	RequestsPerSecond float64 `json:"requestsPerSecond,omitempty" cbor:"1,keyasint,omitempty" min:"0" doc:"Requests started per host and second, at least one in 30 seconds; 0: the server's default"`
	Connections       int     `json:"connections,omitempty" cbor:"2,keyasint,omitempty" min:"0" doc:"Connections per host; 0: the server's default"`
	IgnoreRobots      bool    `json:"ignoreRobots,omitempty" cbor:"3,keyasint,omitempty" doc:"Also read pages that robots.txt forbids; recorded in the run"`
}
