package model

import "strings"

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

// Final says whether the state never changes any more.
func (s JobState) Final() bool { return s == Completed || s == Failed || s == Stopped }

// StopReason says why a run was stopped by something other than its owner.
type StopReason string

// The reasons.
const (
	StoppedByCustomer   StopReason = "STOPPED_BY_CUSTOMER"
	InsufficientBalance StopReason = "WALLET_INSUFFICIENT_BALANCE"
	MaxChargeReached    StopReason = "MAX_CHARGE_REACHED"
)

// Scope is what an API key may do (specification 5).
type Scope string

// The scopes that a customer may mint.
const (
	ScopeUser    Scope = "USER"
	ScopeLLMRead Scope = "LLM_READ"
	ScopeLLMFull Scope = "LLM_FULL"
)

// Scraper is the part of a scraper that its owner writes: the body of PUT /api/scraper without ids and stamps.
type Scraper struct {
	Name             string            `json:"name" cbor:"1,keyasint"`
	Type             ScraperType       `json:"type" cbor:"2,keyasint"`
	SourceConfig     SourceConfig      `json:"sourceConfig" cbor:"3,keyasint"`
	ItemsConfig      []Field           `json:"itemsConfig,omitempty" cbor:"4,keyasint,omitempty"`
	Schema           *SchemaRef        `json:"schema,omitempty" cbor:"5,keyasint,omitempty"`
	PostProcessRules []PostProcessRule `json:"postProcessRules,omitempty" cbor:"6,keyasint,omitempty"`
	Schedule         string            `json:"schedule,omitempty" cbor:"7,keyasint,omitempty"`
	Config           *ScraperConfig    `json:"config,omitempty" cbor:"8,keyasint,omitempty"`
}

// SourceConfig says where a scraper reads.
type SourceConfig struct {
	URL        string      `json:"url,omitempty" cbor:"1,keyasint,omitempty" doc:"Start address, http or https; either this or curl"`
	Pagination *Pagination `json:"pagination,omitempty" cbor:"2,keyasint,omitempty"`
	Curl       string      `json:"curl,omitempty" cbor:"3,keyasint,omitempty" doc:"A request as browsers copy it as a curl command, for bash or Windows cmd; what would touch files or send it elsewhere is refused"`
	Prelaunch  *Prelaunch  `json:"prelaunch,omitempty" cbor:"4,keyasint,omitempty" doc:"Not in this version"`
}

// SchemaRef names an extraction schema.
type SchemaRef struct {
	ID string `json:"id" cbor:"1,keyasint"`
}

// ScraperConfig holds a scraper's settings beside what it extracts.
type ScraperConfig struct {
	RetentionCount *int        `json:"retentionCount,omitempty" cbor:"1,keyasint,omitempty" doc:"Keep only the newest runs, at least 1; not in this version"`
	Politeness     *Politeness `json:"politeness,omitempty" cbor:"2,keyasint,omitempty"`
	Tiers          []string    `json:"tiers,omitempty" cbor:"3,keyasint,omitempty" doc:"Ways of fetching that may be used and paid for: plain, render, super, render+super; the cheapest that works is tried first. All that the server has when left out"`
}

// PostProcessRule derives a column from another one (specification 2.2). It is stored as written.
type PostProcessRule struct {
	Kind        string         `json:"kind" cbor:"1,keyasint" doc:"CURRENCY_CONVERT, ENUM_MAP or REGEX_CLEAN"`
	SourceField string         `json:"sourceField" cbor:"2,keyasint" doc:"Field to read; one that a row does not have is null"`
	OutputField string         `json:"outputField" cbor:"3,keyasint" doc:"Column to write, over one of that name if there is one; not sourceField, and no system field"`
	OutputType  string         `json:"outputType,omitempty" cbor:"4,keyasint,omitempty" doc:"NUMBER, TEXT or BOOLEAN: a hint, values are not coerced"`
	Params      map[string]any `json:"params,omitempty" cbor:"5,keyasint,omitempty" doc:"CURRENCY_CONVERT: from, to (ISO 4217). ENUM_MAP: mapping, default. REGEX_CLEAN: pattern (RE2), replacement or group, onNoMatch (KEEP, NULL, EMPTY)"`
}

// Prelaunch is stored as written (specification 2.3).
type Prelaunch struct {
	DiscoveryURL string      `json:"discoveryUrl" cbor:"1,keyasint"`
	TTLMinutes   *int        `json:"ttlMinutes,omitempty" cbor:"2,keyasint,omitempty"`
	Tokens       []TokenRule `json:"tokens" cbor:"3,keyasint"`
}

// TokenRule finds one placeholder's value.
type TokenRule struct {
	Name            string `json:"name" cbor:"1,keyasint"`
	Source          string `json:"source" cbor:"2,keyasint"`
	Expression      string `json:"expression" cbor:"3,keyasint"`
	ValidatePattern string `json:"validatePattern,omitempty" cbor:"4,keyasint,omitempty"`
}

// Recipe is what a fetcher needs of the scraper.
func (s *Scraper) Recipe() Recipe {
	r := Recipe{Type: s.Type, Fields: s.ItemsConfig, Pagination: s.SourceConfig.Pagination, Curl: s.SourceConfig.Curl,
		Rules: s.PostProcessRules}
	if s.Config != nil && s.Config.Politeness != nil {
		r.Politeness = *s.Config.Politeness
	}
	return r
}

// Tiers are what the scraper allows, and what its pagination needs, of all tiers that there are.
func (s *Scraper) Tiers() TierSet {
	allowed := AllTiers
	if s.Config != nil && len(s.Config.Tiers) > 0 {
		allowed = 0
		for _, name := range s.Config.Tiers {
			if t, ok := ParseTier(name); ok {
				allowed |= TiersOf(t)
			}
		}
	}
	if p := s.SourceConfig.Pagination; p != nil && p.Renders() {
		allowed &= Rendering
	}
	if s.SourceConfig.Curl != "" {
		allowed &^= Rendering // a browser asks as browsers do, not as a command says
	}
	return allowed
}

// HostOf is the authority of a canonical http(s) address: host and, when it is not the scheme's own, port.
func HostOf(canonical string) string {
	_, rest, _ := strings.Cut(canonical, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// Price is a row of a price table: micro-cents per page delivered, 0 or more.
type Price struct {
	RowKey string `cbor:"1,keyasint"` // stable key: tier:plain, plugin:/plugin/…
	Kind   string `cbor:"2,keyasint"` // TIER, PLUGIN or DOMAIN
	Label  string `cbor:"3,keyasint"`
	Micros int64  `cbor:"4,keyasint"`
}
