package model

import (
	"time"
)

// JobState is a run's state in records (specification 3).
type JobState string

// The states. The last three are final.
const (
	Pending   JobState = "PENDING"
	Running   JobState = "RUNNING"
	Completed JobState = "COMPLETED"
	Failed    JobState = "FAILED"
	Stopped   JobState = "STOPPED"
)

// Values returns all states, in the order in which a run may have them.
func (JobState) Values() []string {
	return texts([]JobState{Pending, Running, Completed, Failed, Stopped})
}

// Final reports whether the state never changes again.
func (s JobState) Final() bool { return s == Completed || s == Failed || s == Stopped }

// StopReason is why a run was stopped.
type StopReason string

// The reasons.
const (
	StoppedByCustomer   StopReason = "STOPPED_BY_CUSTOMER"
	InsufficientBalance StopReason = "WALLET_INSUFFICIENT_BALANCE"
	MaxChargeReached    StopReason = "MAX_CHARGE_REACHED"
)

// Source is the call that made a run (specification 2.9).
type Source string

// The sources. All but SourceRun make trials: runs of one address that only their caller and the
// ledger see.
const (
	SourceRun         Source = "RUN"
	SourceSample      Source = "SAMPLE"
	SourcePreviewURL  Source = "PREVIEW_URL"
	SourcePreviewCurl Source = "PREVIEW_CURL"
)

// The caller of a trial waits TrialWait for it. The trial's page may take TrialTime of that. The
// rest is for what comes before and after, so that the caller learns why there is no page.
const (
	TrialWait = 55 * time.Second
	TrialTime = 45 * time.Second
)

// Scope is what an API key may do (specification 5).
type Scope string

// The scopes that a customer may mint.
const (
	ScopeUser    Scope = "USER"
	ScopeLLMRead Scope = "LLM_READ"
	ScopeLLMFull Scope = "LLM_FULL"
)

// Scraper is the part of a scraper that its owner writes: the body of PUT /api/scraper without ids
// and timestamps.
type Scraper struct {
	Name             string            `json:"name" cbor:"1,keyasint"`
	Type             ScraperType       `json:"type" cbor:"2,keyasint"`
	SourceConfig     SourceConfig      `json:"sourceConfig" cbor:"3,keyasint"`
	ItemsConfig      []Field           `json:"itemsConfig,omitempty" cbor:"4,keyasint,omitempty"`
	Schema           *SchemaRef        `json:"schema,omitempty" cbor:"5,keyasint,omitempty"`
	PostProcessRules []PostProcessRule `json:"postProcessRules,omitempty" cbor:"6,keyasint,omitempty"`
	Schedule         string            `json:"schedule,omitempty" cbor:"7,keyasint,omitempty"`
	Config           *ScraperConfig    `json:"config,omitempty" cbor:"8,keyasint,omitempty"`
	// ScheduleTimezone is the time zone of Schedule; "": UTC.
	ScheduleTimezone string `json:"scheduleTimezone,omitempty" cbor:"10,keyasint,omitempty" since:"2"`
	// Search is the engine of the newest launch. Nobody can write it: searches belong to the
	// operator's engines.
	Search *SearchEngine `json:"-" cbor:"9,keyasint,omitempty"`
}

// SourceConfig says where a scraper reads.
type SourceConfig struct {
	URL               string      `json:"url,omitempty" cbor:"1,keyasint,omitempty" max:"8192" doc:"Start address, http or https; give either this or curl"`
	Pagination        *Pagination `json:"pagination,omitempty" cbor:"2,keyasint,omitempty"`
	Curl              string      `json:"curl,omitempty" cbor:"3,keyasint,omitempty" max:"131072" doc:"A request as a curl command copied from a browser, for bash or Windows cmd; options that touch files or send it elsewhere are refused"`
	Prelaunch         *Prelaunch  `json:"prelaunch,omitempty" cbor:"4,keyasint,omitempty" doc:"Where the values of {{NAME}} placeholders in curl come from"`
	TryWithHiddenData bool        `json:"tryWithHiddenData,omitempty" cbor:"10,keyasint,omitempty" doc:"For APPLICATION_LD_JSON: read microdata and RDFa if JSON-LD states nothing. For AI_CONF: also take what a preview would find"`
	Queries           []string    `json:"queries,omitempty" cbor:"11,keyasint,omitempty" max:"1000" unique:"true" each:"max=512 form=filled" doc:"For SEARCH_ENGINE_SEARCH: what to search for, 1 to 1,000 texts of at most 512 characters"`
	Engine            string      `json:"engine,omitempty" cbor:"12,keyasint,omitempty" max:"64" doc:"For SEARCH_ENGINE_SEARCH: name of one of the server's search engines; default: its first one"`
}

// SchemaRef names an extraction schema.
type SchemaRef struct {
	ID string `json:"id" cbor:"1,keyasint" required:"true" max:"64"`
}

// ScraperConfig holds a scraper's settings besides what it extracts.
type ScraperConfig struct {
	RetentionCount *int        `json:"retentionCount,omitempty" cbor:"1,keyasint,omitempty" min:"1" doc:"How many of the newest runs keep their rows, at least 1; null: all. The group's count takes precedence"`
	Politeness     *Politeness `json:"politeness,omitempty" cbor:"2,keyasint,omitempty"`
	EndpointTag    string      `json:"endpointTag,omitempty" cbor:"3,keyasint,omitempty" max:"200" doc:"For MARKETPLACE: the tag of a plugin; default: /plugin/marketplace/pdp. For a list run of website contacts: websitecontacts, which cannot change"`
	Tiers          []string    `json:"tiers,omitempty" cbor:"4,keyasint,omitempty" max:"4" unique:"true" each:"enum=plain,render,super,render+super" doc:"Tiers that may be used and charged: plain, render, super, render+super; the cheapest that works is tried first. If left out: all that the server has"`
	// KeepBodyDays is nil if the scraper's bodies are not kept.
	KeepBodyDays *int `json:"keepBodyDays,omitempty" cbor:"5,keyasint,omitempty" since:"2" min:"1" max:"30" doc:"For how many days to keep the pages' bodies, 1 to 30. Row receipts then link to them, and a run can be extracted again without asking its sites. Null: not kept"`
}

// MaxKeepDays is the most days for which bodies are kept.
const MaxKeepDays = 30

// PostProcessRule derives a column from another one (specification 2.2). It is stored as written.
type PostProcessRule struct {
	Kind        string         `json:"kind" cbor:"1,keyasint" required:"true" enum:"CURRENCY_CONVERT,ENUM_MAP,REGEX_CLEAN" doc:"CURRENCY_CONVERT, ENUM_MAP or REGEX_CLEAN"`
	SourceField string         `json:"sourceField" cbor:"2,keyasint" required:"true" min:"1" max:"256" form:"named" doc:"Field to read; a leading _ is dropped, as in itemsConfig. Null if the row does not have it"`
	OutputField string         `json:"outputField" cbor:"3,keyasint" required:"true" max:"256" form:"column" not:"date,group,groupId,groupRef,scraperId,scraperRef,scraperJobStatusId,jobId,customerRef,sourceUrl,finalUrl,scrapedAt" doc:"Column to write; replaces one of that name. Neither sourceField nor a system field"`
	OutputType  string         `json:"outputType,omitempty" cbor:"4,keyasint,omitempty" enum:",NUMBER,TEXT,BOOLEAN" doc:"NUMBER, TEXT or BOOLEAN: a hint, values are not coerced"`
	Params      map[string]any `json:"params,omitempty" cbor:"5,keyasint,omitempty" doc:"CURRENCY_CONVERT: from, to (ISO 4217). ENUM_MAP: mapping, default. REGEX_CLEAN: pattern (RE2), replacement or group, onNoMatch (KEEP, NULL, EMPTY)"`
}

// Prelaunch is the source of the values for a curl command's placeholders (specification 2.3). It
// is stored as written.
type Prelaunch struct {
	DiscoveryURL string      `json:"discoveryUrl" cbor:"1,keyasint" max:"8192" doc:"Page from which the values are read"`
	TTLMinutes   *int        `json:"ttlMinutes,omitempty" cbor:"2,keyasint,omitempty" min:"1" max:"43200" doc:"How long values are used, 1 to 43,200; default: 360"`
	Tokens       []TokenRule `json:"tokens" cbor:"3,keyasint" max:"50" doc:"One token for each placeholder; an empty list turns this off"`
}

// TokenRule finds one placeholder's value.
type TokenRule struct {
	Name            string `json:"name" cbor:"1,keyasint" required:"true" max:"64" pattern:"^[A-Za-z0-9_]+$" doc:"Name of the placeholder, case-sensitive: letters, digits and underscores"`
	Source          string `json:"source" cbor:"2,keyasint" required:"true" enum:"FRAMEWORK_DATA,META,REGEX" doc:"FRAMEWORK_DATA, META or REGEX"`
	Expression      string `json:"expression" cbor:"3,keyasint" required:"true" min:"1" max:"2048" doc:"FRAMEWORK_DATA: JSON pointer (RFC 6901) into the page's embedded framework data. META: name of a meta element. REGEX: regular expression (RE2); its first group is the value"`
	ValidatePattern string `json:"validatePattern,omitempty" cbor:"4,keyasint,omitempty" max:"512" doc:"Pattern (RE2) that a value must match; default: ^[A-Za-z0-9._=+/~-]{1,4096}$"`
}

// Recipe returns the part of the scraper that a fetcher needs.
func (s *Scraper) Recipe() Recipe {
	r := Recipe{Type: s.Type, Fields: s.ItemsConfig, Pagination: s.SourceConfig.Pagination,
		Curl:      s.SourceConfig.Curl,
		Prelaunch: s.SourceConfig.Prelaunch, Rules: s.PostProcessRules,
		HiddenData: s.SourceConfig.TryWithHiddenData}
	if s.Config != nil && s.Config.Politeness != nil {
		r.Politeness = *s.Config.Politeness
	}
	if s.Config != nil {
		r.Endpoint = s.Config.EndpointTag
	}
	if s.Config != nil && s.Config.KeepBodyDays != nil {
		r.KeepDays = uint8(min(max(*s.Config.KeepBodyDays, 0), MaxKeepDays))
	}
	switch {
	case s.Type == SearchEngineSearch:
		s.search(&r)
	case s.Type == Marketplace && r.Endpoint == "":
		r.Endpoint = ProductPageTag
	}
	return r
}

// Tiers returns the tiers that the scraper allows and its pagination works with.
func (s *Scraper) Tiers() TierSet {
	allowed := AllTiers
	if s.Config != nil && len(s.Config.Tiers) > 0 {
		allowed = 0
		for _, name := range s.Config.Tiers {
			if t, ok := parseTier(name); ok {
				allowed |= TiersOf(t)
			}
		}
	}
	if p := s.SourceConfig.Pagination; p != nil && p.Renders() {
		allowed &= Rendering
	}
	if s.SourceConfig.Curl != "" {
		allowed &^= Rendering // a browser sends its own requests, not a command's
	}
	return allowed
}

// Charge is how the pages of a run are charged, frozen with the run. The zero value charges each
// page by its tier.
type Charge struct {
	// Row is the price row of a page by tier plain, instead of the tier's own; "": the tier's own.
	// Dearer tiers cost their own.
	Row string `cbor:"1,keyasint,omitempty"`
	// Quantity is how many times its price row a page costs; 0 means 1. More than 1 requires
	// PaidOnly, since a free request pays for one.
	Quantity uint32 `cbor:"2,keyasint,omitempty"`
	// PaidOnly says that free requests cannot pay.
	PaidOnly bool `cbor:"3,keyasint,omitempty"`
}

// Of returns the price row of a page by a tier, and how many times it is charged. The page's domain
// has no price of its own.
func (c Charge) Of(tier Tier) (row string, quantity uint32) { return c.At("").Of(tier) }

// At returns how a page is charged if its domain has that price row; "": none.
func (c Charge) At(domain string) PageCharge { return PageCharge{Charge: c, Domain: domain} }

// PageCharge is how a page is charged. Domain is the price row of its domain; "": none.
type PageCharge struct {
	Charge
	Domain string
}

// Of returns the price row of the page by a tier, and how many times it is charged. A domain's row
// replaces those of tiers, but not that of an endpoint.
func (c PageCharge) Of(tier Tier) (row string, quantity uint32) {
	row, quantity = tier.PriceRow(), max(c.Quantity, 1)
	switch {
	case tier == Plain && c.Row != "":
		row = c.Row
	case c.Domain != "":
		row = c.Domain
	}
	return row, quantity
}

// DailyLimits limit what a customer may read per day (UTC), over all runs of an endpoint. Zero
// values mean no limit.
type DailyLimits struct {
	Reads     uint32 `cbor:"1,keyasint,omitempty"` // reads begun
	Uncharged uint32 `cbor:"2,keyasint,omitempty"` // reads that ended uncharged
	PerDomain uint32 `cbor:"3,keyasint,omitempty"` // reads of one registrable domain
}
