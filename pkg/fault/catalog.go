package fault

import "maps"

// Code names a kind of error. Clients switch on API codes; page codes are in a link's error.
type Code string

// Entry describes a code. Status 0 marks a page code: it appears on a link or a job, never as the
// code of an API response.
type Entry struct {
	Status int
	Title  string
}

// Codes of API responses.
const (
	Internal              Code = "internal_error"
	Unavailable           Code = "unavailable"
	InvalidRequest        Code = "invalid_request"
	InvalidBody           Code = "invalid_body"
	InvalidID             Code = "invalid_id"
	InvalidFilter         Code = "invalid_filter"
	InvalidSort           Code = "invalid_sort"
	InvalidCursor         Code = "invalid_cursor"
	InvalidPage           Code = "invalid_page"
	InvalidURL            Code = "INVALID_URL"
	InvalidScope          Code = "invalid_scope"
	UnknownField          Code = "unknown_field"
	UnknownParameter      Code = "unknown_parameter"
	SchemaValidation      Code = "schema_validation_failed"
	TypeNotRunnable       Code = "type_not_runnable"
	NotSupported          Code = "not_supported"
	ListAlreadyRun        Code = "list_already_run"
	IdempotencyRequired   Code = "idempotency_key_required"
	IdempotencyReused     Code = "idempotency_key_reused"
	IdempotencyInFlight   Code = "idempotency_in_flight"
	IdempotencyOverflow   Code = "idempotency_keys_exhausted"
	Unauthorized          Code = "unauthorized"
	ScopeRejected         Code = "scope_rejected"
	SignInOnly            Code = "sign_in_required"
	CustomerBlocked       Code = "customer_blocked"
	AccountDisabled       Code = "account_disabled"
	CrossSite             Code = "cross_site_refused"
	Declined              Code = "declined"
	NotFound              Code = "not_found"
	RouteNotFound         Code = "route_not_found"
	MethodNotAllowed      Code = "method_not_allowed"
	ScraperNotFound       Code = "scraper_not_found"
	GroupNotFound         Code = "GROUP_NOT_FOUND"
	JobNotFound           Code = "job_not_found"
	KeyNotFound           Code = "key_not_found"
	SessionNotFound       Code = "session_not_found"
	ScraperAlreadyRunning Code = "scraper_already_running"
	StartURLsUnreachable  Code = "start_urls_unreachable"
	TierUnavailable       Code = "tier_unavailable"
	NameTaken             Code = "NAME_TAKEN"
	ListTooLarge          Code = "LIST_TOO_LARGE"
	TagNotResolved        Code = "TAG_NOT_RESOLVED"
	WalletInsufficient    Code = "WALLET_INSUFFICIENT_BALANCE"
	MaxChargeReached      Code = "MAX_CHARGE_REACHED"
	LimitReached          Code = "limit_reached"
	RateLimited           Code = "rate_limited"
	TrialLimitReached     Code = "trial_limit_reached"
	FeedbackLimit         Code = "feedback_limit_reached"
	ExportTooLarge        Code = "export_too_large"
	TooManyStreams        Code = "too_many_streams"
	PayloadTooLarge       Code = "payload_too_large"
	LengthRequired        Code = "length_required"
	HeaderTooLarge        Code = "header_too_large"
	UnsupportedMediaType  Code = "unsupported_media_type"
	UploadTooSlow         Code = "request_timeout"
	AmountOverflow        Code = "amount_overflow"
	NodeAlive             Code = "node_alive"
	QuorumAtRisk          Code = "quorum_at_risk"
	InvalidBackup         Code = "invalid_backup"
	OtherCluster          Code = "other_cluster"
	SourceUnreachable     Code = "source_unreachable"
	SearchNotConfigured   Code = "search_engine_not_configured"
	SchemaNotFound        Code = "schema_not_found"
	SchemaGone            Code = "schema_missing"
	PreviewRequired       Code = "PREVIEW_REQUIRED"
	CascadeDrift          Code = "CASCADE_COUNT_DRIFT"
	OtherServices         Code = "other_services"
	ScraperChanged        Code = "scraper_changed"
	PricesChanged         Code = "prices_changed"
	SettingsChanged       Code = "settings_changed"
	CustomerExists        Code = "customer_exists"
	EmailTaken            Code = "email_taken"
	PasskeyTaken          Code = "passkey_taken"
	TopUpNotConfigured    Code = "top_up_not_configured"
	TopUpNotFound         Code = "top_up_not_found"
	ProviderFailed        Code = "payment_provider_failed"
	InvalidSignature      Code = "invalid_signature"
	CustomerRequired      Code = "customer_required"
	EmailUnverified       Code = "email_not_verified"
	FeatureNotInPlan      Code = "feature_not_in_plan"
	PlanLimitReached      Code = "plan_limit_reached"
	SubscriptionInFlight  Code = "subscription_change_in_flight"
	InvalidPlan           Code = "invalid_plan"
	NoSubscription        Code = "no_active_subscription"
	NoDowngrade           Code = "no_downgrade_scheduled"
	OutOfSpace            Code = "out_of_space"
	ExportsNotKept        Code = "exports_not_kept"
	ExportNotReady        Code = "export_not_ready"
	RangeNotSatisfiable   Code = "range_not_satisfiable"
	HarvestRunning        Code = "harvest_running"
	SitemapMalformed      Code = "sitemap_malformed"
	UploadsNotTaken       Code = "uploads_not_taken"
	BadFormat             Code = "BAD_FORMAT"
	AlreadyRunning        Code = "ALREADY_RUNNING"
	IngestCapacity        Code = "INGEST_CAPACITY"
	IngestCapacityGlobal  Code = "INGEST_CAPACITY_GLOBAL"
	BodyNotKept           Code = "body_not_kept"
	BodyNotShared         Code = "body_not_shared"
	BodyExpired           Code = "body_expired"
	NothingMerged         Code = "nothing_merged"
	KeyColumnRequired     Code = "KEY_COLUMN_REQUIRED"
	KeyColumnInvalid      Code = "KEY_COLUMN_INVALID"
	JobNotEnded           Code = "job_not_ended"
	RowsGone              Code = "rows_gone"

	SubscriptionsNotConfigured Code = "subscriptions_not_configured"
)

// Codes of a link's error or a job's error message.
const (
	PageRobots            Code = "robots_forbidden"
	PageAddressForbidden  Code = "address_forbidden"
	PageDNS               Code = "dns_failed"
	PageConnect           Code = "connect_failed"
	PageTLS               Code = "tls_failed"
	PageTimeout           Code = "timeout"
	PageProtocol          Code = "protocol_error"
	PageTooLarge          Code = "body_too_large"
	PageDecompression     Code = "decompression_failed"
	PageRedirects         Code = "too_many_redirects"
	PageStatus            Code = "http_status"
	PageBlocked           Code = "blocked"
	PageNotHTML           Code = "not_html"
	PageNotJSON           Code = "not_json"
	PageUnparsable        Code = "unparsable"
	PageTooCostly         Code = "too_costly"
	PageNoRows            Code = "no_rows"
	PageRowTooLarge       Code = "row_too_large"
	PageInvalidURL        Code = "invalid_url"
	PageAttemptsExhausted Code = "attempts_exhausted"
	PageRecipeMissing     Code = "recipe_missing"
	PagePrelaunch         Code = "prelaunch_refresh_failed"
	PageTierMissing       Code = "tier_missing"
	PageRowRejected       Code = "row_rejected"
	PageModel             Code = "model_unavailable"
	PageModelLimit        Code = "model_limit_reached"
	PageDailyLimit        Code = "daily_limit_reached"
	PageBodyGone          Code = "body_gone"
)

// catalog is the closed list of codes: no others exist.
var catalog = map[Code]Entry{
	Internal:              {500, "Unexpected error"},
	Unavailable:           {503, "Temporarily unavailable"},
	InvalidRequest:        {400, "Invalid request"},
	InvalidBody:           {400, "Invalid body"},
	InvalidID:             {400, "Malformed id"},
	InvalidFilter:         {400, "Invalid filter"},
	InvalidSort:           {400, "Invalid sort"},
	InvalidCursor:         {400, "Invalid cursor"},
	InvalidPage:           {400, "Invalid page"},
	InvalidURL:            {400, "Invalid address"},
	InvalidScope:          {422, "Invalid scope"},
	UnknownField:          {400, "Unknown field"},
	UnknownParameter:      {400, "Unknown parameter"},
	SchemaValidation:      {400, "Validation failed"},
	TypeNotRunnable:       {400, "This scraper type cannot run"},
	NotSupported:          {400, "Not supported by this version"},
	ListAlreadyRun:        {409, "List already run"},
	IdempotencyRequired:   {400, "Idempotency-Key required"},
	IdempotencyReused:     {422, "Idempotency-Key used for another request"},
	IdempotencyInFlight:   {409, "The first request is still running"},
	IdempotencyOverflow:   {429, "Too many idempotency keys"},
	Unauthorized:          {401, "Not authenticated"},
	ScopeRejected:         {403, "Scope not allowed"},
	SignInOnly:            {403, "Sign-in required"},
	CustomerBlocked:       {403, "The customer is blocked"},
	AccountDisabled:       {403, "The account is disabled"},
	CrossSite:             {403, "Request from another site refused"},
	Declined:              {403, "Declined by a person"},
	NotFound:              {400, "Not found"},
	RouteNotFound:         {404, "Route not found"},
	MethodNotAllowed:      {405, "Method not allowed"},
	ScraperNotFound:       {404, "Scraper not found"},
	GroupNotFound:         {404, "Group not found"},
	JobNotFound:           {400, "Job not found"},
	KeyNotFound:           {404, "Key not found"},
	SessionNotFound:       {404, "Session not found"},
	ScraperAlreadyRunning: {400, "Scraper already running"},
	StartURLsUnreachable:  {400, "Start addresses unreachable"},
	TierUnavailable:       {400, "No suitable tier available"},
	NameTaken:             {409, "Name taken"},
	ListTooLarge:          {400, "List too large"},
	TagNotResolved:        {400, "Unknown endpoint tag"},
	WalletInsufficient:    {402, "Wallet balance insufficient"},
	MaxChargeReached:      {402, "Charge cap reached"},
	LimitReached:          {402, "Limit reached"},
	RateLimited:           {429, "Too many requests"},
	TrialLimitReached:     {429, "Daily limit reached"},
	FeedbackLimit:         {429, "Daily limit reached"},
	ExportTooLarge:        {400, "Export too large"},
	TooManyStreams:        {429, "Too many open streams"},
	PayloadTooLarge:       {413, "Payload too large"},
	LengthRequired:        {413, "Content-Length required"},
	HeaderTooLarge:        {431, "Request header too large"},
	UnsupportedMediaType:  {415, "Unsupported Content-Type"},
	UploadTooSlow:         {408, "Request too slow"},
	AmountOverflow:        {400, "Amount out of range"},
	NodeAlive:             {409, "The node is still alive"},
	QuorumAtRisk:          {409, "The majority would be lost"},
	InvalidBackup:         {400, "Invalid backup"},
	OtherCluster:          {409, "The backup is of another cluster"},
	SourceUnreachable:     {502, "Source unreachable"},
	SearchNotConfigured:   {400, "Search engine not configured"},
	SchemaNotFound:        {404, "Schema not found"},
	SchemaGone:            {400, "The scraper's schema does not exist"},
	PreviewRequired:       {409, "A preview is required"},
	CascadeDrift:          {409, "The data has changed since the preview"},
	OtherServices:         {409, "The log or row store is not the cluster's"},
	ScraperChanged:        {409, "The scraper has changed in the meantime"},
	PricesChanged:         {409, "The prices have changed in the meantime"},
	SettingsChanged:       {409, "The settings have changed in the meantime"},
	CustomerExists:        {409, "Already signed up"},
	EmailTaken:            {409, "E-mail address taken"},
	PasskeyTaken:          {409, "Passkey taken"},
	TopUpNotConfigured:    {404, "Top-ups not configured"},
	TopUpNotFound:         {404, "Top-up not found"},
	ProviderFailed:        {502, "Payment provider failed"},
	InvalidSignature:      {400, "Invalid signature"},
	CustomerRequired:      {403, "Sign up first"},
	EmailUnverified:       {403, "E-mail address not verified"},
	FeatureNotInPlan:      {402, "The plan does not include the feature"},
	PlanLimitReached:      {402, "Limit of the plan reached"},
	SubscriptionInFlight:  {409, "A subscription change is under way"},
	InvalidPlan:           {400, "Invalid plan"},
	NoSubscription:        {400, "No active subscription"},
	NoDowngrade:           {400, "No downgrade scheduled"},
	OutOfSpace:            {503, "Not enough disk space"},
	ExportsNotKept:        {404, "Exports are not kept"},
	ExportNotReady:        {409, "The export is not ready"},
	RangeNotSatisfiable:   {416, "Range not satisfiable"},
	HarvestRunning:        {409, "A harvest is under way"},
	SitemapMalformed:      {502, "No readable sitemap"},
	UploadsNotTaken:       {404, "Uploads not accepted"},
	BadFormat:             {400, "Wrong format"},
	AlreadyRunning:        {409, "An import or a merge is under way"},
	IngestCapacity:        {429, "Too many uploads by the customer"},
	IngestCapacityGlobal:  {429, "Too many uploads"},
	BodyNotKept:           {404, "Page body not kept"},
	BodyNotShared:         {403, "Bodies are not shared"},
	BodyExpired:           {410, "The body is no longer kept"},
	NothingMerged:         {422, "No rows to merge"},
	KeyColumnRequired:     {400, "Key column required"},
	KeyColumnInvalid:      {400, "Invalid key column"},
	JobNotEnded:           {409, "The run has not ended"},
	RowsGone:              {400, "The run's rows are no longer available"},

	SubscriptionsNotConfigured: {404, "Subscriptions not configured"},

	PageRobots:            {0, "robots.txt forbids the page"},
	PageAddressForbidden:  {0, "The address is private, reserved or otherwise forbidden"},
	PageDNS:               {0, "The host name does not resolve"},
	PageConnect:           {0, "Connection failed"},
	PageTLS:               {0, "TLS connection failed"},
	PageTimeout:           {0, "Timed out"},
	PageProtocol:          {0, "The response is not HTTP, or was cut off"},
	PageTooLarge:          {0, "The page is too large"},
	PageDecompression:     {0, "The body cannot be decompressed"},
	PageRedirects:         {0, "Too many redirects"},
	PageStatus:            {0, "The site answered with an error status"},
	PageBlocked:           {0, "The site showed a bot or login wall"},
	PageNotHTML:           {0, "The response is not an HTML page"},
	PageNotJSON:           {0, "The response is not JSON"},
	PageUnparsable:        {0, "The page cannot be parsed"},
	PageTooCostly:         {0, "The scraper's selectors or patterns take too long on the page"},
	PageNoRows:            {0, "No rows on the page"},
	PageRowTooLarge:       {0, "A row is too large"},
	PageInvalidURL:        {0, "The address is invalid"},
	PageAttemptsExhausted: {0, "Given up after repeated attempts"},
	PageRecipeMissing:     {0, "The run's recipe no longer exists"},
	PagePrelaunch:         {0, "The placeholder values could not be found"},
	PageTierMissing:       {0, "The fetcher has none of the run's tiers"},
	PageRowRejected:       {0, "No row of the page fits the schema"},
	PageModel:             {0, "The language model did not answer"},
	PageModelLimit:        {0, "The language model's cap is reached"},
	PageDailyLimit:        {0, "A daily limit is reached"},
	PageBodyGone:          {0, "The page's body is no longer kept"},
}

// Catalog returns a copy of the closed list, for documentation and tests.
func Catalog() map[Code]Entry { return maps.Clone(catalog) }

// Known reports whether a code is in the list.
func Known(code Code) bool {
	_, known := catalog[code]
	return known
}

// Lookup returns the entry of a code. It returns Internal's for an unknown code, so that a mistake
// never invents one.
func Lookup(code Code) Entry {
	if entry, ok := catalog[code]; ok {
		return entry
	}
	return catalog[Internal]
}
