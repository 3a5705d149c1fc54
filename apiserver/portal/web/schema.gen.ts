// Made of the API's description and the error catalogue by go test ./apiserver/portal -update.

export interface Account {
  admin: boolean;
  createdAt: string | null;
  customerRef: string;
  disabledAt: string | null;
  email: string;
  id: string;
  passwordChangedAt: string | null;
}

export interface AccountPage {
  content: (Account)[];
  number: number;
  size: number;
  totalElements: number;
  totalPages: number;
}

export interface AuditActor {
  address: string;
  admin: boolean;
  correlationId: string;
  customerUniqueRef: string;
  keyId: string | null;
  operation: string;
  subject: string;
}

export interface AuditTrailChange {
  after: unknown;
  before: unknown;
  record: string;
}

export interface AuditTrailEntry {
  action: string;
  actor: AuditActor;
  at: string | null;
  changes: (AuditTrailChange)[];
  count: number;
  customerUniqueRef: string;
  failedFrom: string | null;
  generation: string;
  hash: string;
  index: number;
  leftBehind: AuditTrailMark | null;
  moreChanges: number;
  number: number;
  previousHash: string;
}

export interface AuditTrailEntryCursorPage {
  hasMore: boolean;
  items: (AuditTrailEntry)[];
  nextCursor: string | null;
}

export interface AuditTrailMark {
  generation: string;
  hash: string;
  number: number;
}

export interface Category {
  createdAt: string | null;
  filters: Record<string, unknown>;
  id: string;
  name: string;
  updatedAt: string | null;
}

export interface ClusterNode {
  boot: string;
  capacity: number;
  draining: boolean;
  goneMillis: number | null;
  lag: number | null;
  leaseAgeMillis: number | null;
  moving: number;
  name: string;
  open: number;
  pagesPerSecond: number;
  roles: (string)[];
  shards: number;
  state: "ALIVE" | "DRAINING" | "DRAINED" | "LEFT" | "FAILED" | "UNKNOWN";
  suffrage: "" | "LEADER" | "VOTER" | "NONVOTER";
  tiers: (string)[];
  version: string;
}

export interface ClusterStatus {
  applied: number;
  commands: number;
  lag: Record<string, unknown>;
  leader: string;
  node: string;
  openJobs: number;
  out: number;
  owned: number;
  pageErrors: number;
  pages: number;
  roles: (string)[];
  shards: number;
  term: number;
}

export interface CommonField {
  name: string;
  type: string;
}

export interface Customer {
  agreeWithTerms: boolean;
  customerUniqueRef: string;
  email: string;
  firstname: string;
  lastname: string;
  plan: string | null;
  statistic?: CustomerStatistic | null;
  subscriptionStatus: string | null;
}

export interface CustomerAccount {
  blockedBy: string | null;
  counts: CustomerCounts;
  customer: CustomerListEntry;
  wallet: Wallet;
}

export interface CustomerCounts {
  groups: number;
  keys: number;
  openRuns: number;
  runsLast30d: number;
  scrapers: number;
}

export interface CustomerListEntry {
  blockedAt: string | null;
  createdAt: string | null;
  customerUniqueRef: string;
  email: string;
  erasedAt: string | null;
  firstname: string;
  lastname: string;
  removedAt: string | null;
}

export interface CustomerListEntryPage {
  content: (CustomerListEntry)[];
  number: number;
  size: number;
  totalElements: number;
  totalPages: number;
}

export interface CustomerStatistic {
  quotaUsage: Record<string, unknown>;
  runCountLast30d: number;
  scraperCount: number;
}

export interface DeletionPreview {
  opName: string;
  previewSummary: DeletionSummary;
  targetEntityId: string;
  token: string;
}

export interface DeletionSummary {
  cascadeCounts: Record<string, unknown>;
  entityName: string;
  entityType: string;
  warnings: (string)[];
}

export interface Field {
  attr?: string;
  kind: "TEXT" | "ATTR" | "EXISTS";
  name: string;
  selector: string;
}

export interface FieldInput {
  attr?: string | null;
  kind: "TEXT" | "ATTR" | "EXISTS";
  name: string;
  selector: string;
}

export interface FieldProfile {
  distinct: number;
  distinctExact: boolean;
  exampleUrl: string | null;
  examples: (unknown)[];
  fillRate: number;
  filled: number;
  histogram: (NumberBucket)[];
  max: number | null;
  mean: number | null;
  meanLength: number | null;
  min: number | null;
  name: string;
  types: Record<string, unknown>;
}

export interface FileParts {
  partBytes: number;
  receivedBytes: number;
}

export interface GeneratedKey {
  createdAt: string | null;
  expiresAt: string | null;
  id: string;
  key: string;
  name: string;
  prefix: string;
  scope: "USER" | "LLM_READ" | "LLM_FULL";
}

export interface Group {
  changeAlerts: (string)[];
  changeAlertsKey: (string)[];
  createdAt: string | null;
  customerRef: string;
  dataTable: string;
  enrichedOf: string | null;
  id: string;
  matchedOf: string | null;
  name: string;
  nextStart: string | null;
  quarantine: boolean;
  retentionCount: number | null;
  scheduleTimezone: string;
  scraperCount: number;
  shouldMatchProducts: boolean;
  startType: "MANUAL" | "DAILY" | "WEEKLY" | "NONE";
  updatedAt: string | null;
}

export interface GroupEstimate {
  affordable: boolean;
  balanceMicros: number;
  groupId: string;
  links: number;
  maxMicros: number;
  minMicros: number;
  pages: number;
  scrapers: number;
  scrapersConsidered: number;
}

export interface GroupInput {
  changeAlerts?: ("ADDED" | "REMOVED" | "CHANGED")[] | null;
  changeAlertsKey?: (string)[] | null;
  createdAt?: string | null;
  customerRef?: string | null;
  dataTable?: string | null;
  enrichedOf?: string | null;
  id?: string | null;
  matchedOf?: string | null;
  name?: string | null;
  nextStart?: string | null;
  quarantine?: boolean | null;
  retentionCount?: number | null;
  scheduleTimezone?: string | null;
  scraperCount?: number | null;
  shouldMatchProducts?: boolean | null;
  startType?: "MANUAL" | "DAILY" | "WEEKLY" | "NONE" | null;
  updatedAt?: string | null;
}

export interface Identity {
  admin: boolean;
  createdAt: string | null;
  customerRef: string;
  expiresAt: string | null;
  id: string;
  lastUsedAt: string | null;
  name: string;
  prefix: string;
  scope: "USER" | "LLM_READ" | "LLM_FULL";
}

export interface Invoice {
  amount: number;
  currency: string;
  hostedInvoiceUrl: string | null;
  id: string;
  issuedAt: string | null;
  status: "PAID" | "OPEN" | "UNCOLLECTIBLE" | "VOID" | "DRAFT";
}

export interface InvoicePage {
  content: (Invoice)[];
  number: number;
  size: number;
  totalElements: number;
  totalPages: number;
}

export interface Job {
  chargedMicros: number | null;
  deliveredPages: number;
  duration: number | null;
  errorLinks: number;
  errorMessage: string | null;
  finished: string | null;
  groupId: string;
  id: string;
  ignoresRobots: boolean;
  itemsQuantity: number;
  launchedByCustomer: boolean;
  maxChargeMicros: number | null;
  quarantineReason: string | null;
  queued: string | null;
  scraperId: string;
  started: string | null;
  state: string;
  stopReason: string | null;
  successLinks: number;
  totalLinks: number;
  totalRequests: number;
}

export interface JobCursorPage {
  hasMore: boolean;
  items: (Job)[];
  nextCursor: string | null;
}

export interface JobPage {
  content: (Job)[];
  number: number;
  size: number;
  totalElements: number;
  totalPages: number;
}

export interface JobStatusEvent {
  chargedMicros: number | null;
  deliveredPages: number;
  duration?: number | null;
  errorLinks: number;
  errorMessage?: string | null;
  groupId: string;
  itemsQuantity: number;
  jobId: string;
  scraperId: string;
  state: string;
  stopReason?: string | null;
  successLinks: number;
  totalLinks: number;
  totalRequests: number;
}

export interface KeptBackup {
  bytes: number;
  clusterId: string;
  name: string;
  rowsBytes: number;
  takenAt: string | null;
}

export interface KeptPage {
  keptUntil: string | null;
  path: string;
}

export interface Key {
  createdAt: string | null;
  expiresAt: string | null;
  id: string;
  lastUsedAddress: string | null;
  lastUsedAt: string | null;
  name: string;
  prefix: string;
  scope: "USER" | "LLM_READ" | "LLM_FULL";
}

export interface KeyList {
  keys: (Key)[];
}

export interface LaunchedListRun {
  duplicatesDropped: number;
  jobId: string;
  linksQueued: number;
  message?: string;
  scraperId: string;
  status: string;
  tag: string | null;
}

export interface LaunchedRun {
  jobId: string;
  queuedAt: string | null;
  scraperId: string;
  status: string;
}

export interface LinkError {
  code: string;
  error: string;
  place: string;
  status: number | null;
  url: string;
}

export interface ListRunInput {
  endpointTag?: string | null;
  force?: boolean | null;
  groupId?: string | null;
  itemsConfig?: (FieldInput)[] | null;
  maxChargeMicros?: number | null;
  name?: string | null;
  rerun?: boolean | null;
  scraperId?: string | null;
  templateScraperId?: string | null;
  type?: "SINGLE_PRODUCT" | "MULTIPLE_PRODUCTS" | "APPLICATION_LD_JSON" | null;
  urls?: (string)[] | null;
}

export interface MonthlyPrice {
  amount: number;
  currency: string;
}

export interface NewFileScraper {
  jobId: string;
  scraper: Scraper;
}

export interface Notification {
  count: number;
  createdAt: string | null;
  event: string;
  facts: NotificationFacts;
  groupId: string | null;
  id: string;
  jobId: string | null;
  keyId: string | null;
  read: boolean;
  scraperId: string | null;
  text: string;
  title: string;
  transactionId: string | null;
  webhookId: string | null;
}

export interface NotificationEvent {
  count: number;
  createdAt: string | null;
  event: string;
  facts: NotificationFacts;
  groupId: string | null;
  id: string;
  jobId: string | null;
  keyId: string | null;
  read: boolean;
  scraperId: string | null;
  text: string;
  title: string;
  transactionId: string | null;
  unread: number;
  webhookId: string | null;
}

export interface NotificationFacts {
  balanceMicros?: number | null;
  changes?: NotifiedChanges | null;
  group?: NotifiedGroup | null;
  key?: NotifiedKey | null;
  quota?: NotifiedQuota | null;
  run?: NotifiedRun | null;
  start?: NotifiedStart | null;
  topUp?: NotifiedTopUp | null;
  webhook?: NotifiedWebhook | null;
}

export interface NotificationPage {
  content: (Notification)[];
  number: number;
  size: number;
  totalElements: number;
  totalPages: number;
}

export interface NotifiedChanges {
  added: number;
  changed: number;
  diff?: string;
  errorMessage?: string;
  examples?: (string)[];
  fromJobId?: string | null;
  jobId: string;
  removed: number;
  scraperId: string;
  scraperName: string;
}

export interface NotifiedGroup {
  id: string;
  name: string;
}

export interface NotifiedKey {
  id: string;
  name: string;
}

export interface NotifiedQuota {
  limit: string;
  most: number;
  plan: string;
  used: number;
}

export interface NotifiedRun {
  chargedMicros: number;
  errorLinks: number;
  errorMessage?: string;
  jobId: string;
  pages: number;
  rows: number;
  scraperId: string;
  scraperName: string;
}

export interface NotifiedStart {
  groupId?: string | null;
  name: string;
  reason: string;
  scraperId?: string | null;
  skipped: number;
}

export interface NotifiedTopUp {
  amountMicros: number;
  transactionId?: string | null;
}

export interface NotifiedWebhook {
  id: string;
  reason?: string;
  url: string;
}

export interface NumberBucket {
  count: number;
  from: number;
  to: number;
}

export interface PageCandidate {
  config: ScraperConfig | null;
  itemsConfig: (Field)[];
  sampleData: (Row)[];
  schema: SchemaRef | null;
  sourceConfig: SourceConfig;
  type: string;
}

export interface PageChoice {
  attr?: string;
  kind: string;
  value: string;
}

export interface PageNode {
  in: number;
  name?: string;
  text?: string;
}

export interface PagePick {
  choices: (PageChoice)[];
  itemsConfig: (Field)[];
  matches: ((number)[])[];
  rowCount: number;
  rows: (Row)[];
}

export interface PagePickInput {
  element?: number | null;
  itemsConfig?: (FieldInput)[] | null;
  postProcessRules?: (PostProcessRuleInput)[] | null;
  type: "SINGLE_PRODUCT" | "MULTIPLE_PRODUCTS";
  url: string;
}

export interface PagePreview {
  candidates: (PageCandidate)[];
  chargedMicros: number;
  cut: boolean;
  expiresAt: string | null;
  nodes: (PageNode)[];
  pagination: Pagination | null;
  tier: string;
  url: string;
}

export interface Pagination {
  cursorPath?: string;
  max?: number | null;
  pageSize?: number | null;
  param?: string;
  selector?: string;
  start?: number | null;
  step?: number | null;
  template?: string;
  type: "NONE" | "URL_PAGE_PARAM" | "OFFSET_PARAM" | "URL_TEMPLATE" | "NEXT_LINK" | "JSON_CURSOR" | "LOAD_MORE" | "INFINITE_SCROLL";
}

export interface Payment {
  url: string;
}

export interface PlanFeatures {
  features: (string)[];
  level: number;
  limits: Record<string, unknown>;
  monthlyPrice: number;
  plan: "STARTER" | "BASIC" | "PRO" | "BUSINESS" | "TEAM";
}

export interface PlanOffer {
  features: (string)[];
  level: number;
  limits: Record<string, unknown>;
  monthlyPrice: number;
  offered: boolean;
  plan: "STARTER" | "BASIC" | "PRO" | "BUSINESS" | "TEAM";
}

export interface PlanPrice {
  monthly: MonthlyPrice;
  plan: "STARTER" | "BASIC" | "PRO" | "BUSINESS" | "TEAM";
}

export interface Politeness {
  connections?: number;
  ignoreRobots?: boolean;
  requestsPerSecond?: number;
}

export interface PostProcessRule {
  kind: "CURRENCY_CONVERT" | "ENUM_MAP" | "REGEX_CLEAN";
  outputField: string;
  outputType?: "" | "NUMBER" | "TEXT" | "BOOLEAN";
  params?: Record<string, unknown>;
  sourceField: string;
}

export interface PostProcessRuleInput {
  kind: "CURRENCY_CONVERT" | "ENUM_MAP" | "REGEX_CLEAN";
  outputField: string;
  outputType?: "" | "NUMBER" | "TEXT" | "BOOLEAN" | null;
  params?: Record<string, unknown> | null;
  sourceField: string;
}

export interface Prelaunch {
  discoveryUrl: string;
  tokens: (TokenRule)[];
  ttlMinutes?: number | null;
}

export interface Price {
  kind: "TIER" | "PLUGIN" | "DOMAIN";
  label: string;
  rowKey: string;
  sellingPriceMicros: number;
}

export interface PriceTable {
  changedAt: string | null;
  changedBy: string;
  rows: (PriceTableRow)[];
  version: number;
}

export interface PriceTableRow {
  enabled: boolean;
  kind: "TIER" | "PLUGIN" | "DOMAIN";
  label: string;
  rowKey: string;
  sellingPriceMicros: number;
}

export interface Problem {
  code: string;
  correlationId: string;
  detail: string;
  errors: (ProblemItem)[];
  scraperId?: string | null;
  status: number;
  title: string;
  type?: string;
}

export interface ProblemItem {
  code: string;
  field?: string;
  message: string;
}

export interface Row {
  _finalUrl?: string;
  _jobId?: string;
  _rowId?: string;
  _scrapedAt?: string;
  _scraperId?: string;
  _sourceUrl?: string;
  [member: string]: unknown;
}

export interface RowChange {
  after: Row | null;
  before: Row | null;
  change: string;
  changed: (string)[];
}

export interface RowCursorPage {
  hasMore: boolean;
  items: (Row)[];
  nextCursor: string | null;
}

export interface RowPrice {
  amountMicros: number;
  label: string;
  quantity: number;
  rowKey: string;
  unitPriceMicros: number;
}

export interface RowReceipt {
  body: KeptPage | null;
  bodySha256: string | null;
  bytes: number;
  durationMillis: number;
  finalUrl: string | null;
  groupId: string;
  jobId: string;
  price: RowPrice | null;
  rowId: string;
  rows: number;
  scrapedAt: string | null;
  scraperId: string;
  status: number;
  tier: string;
  tries: (RowTry)[];
  url: string;
}

export interface RowTry {
  code: string | null;
  durationMillis: number;
  status: number | null;
  tier: string;
}

export interface RunDiff {
  from: string;
  hasMore: boolean;
  items: (RowChange)[];
  key: (string)[];
  nextCursor: string | null;
  summary: RunDiffSummary | null;
  to: string;
}

export interface RunDiffSummary {
  added: number;
  changed: number;
  removed: number;
  unchanged: number;
}

export interface RunEstimate {
  affordable: boolean;
  balanceMicros: number;
  links: number;
  maxMicros: number;
  minMicros: number;
  pages: number;
  runsConsidered: number;
}

export interface RunProfile {
  fields: (FieldProfile)[];
  jobId: string;
  moreFields: boolean;
  rows: number;
  scraperId: string;
}

export interface RunsOfGroup {
  groupId: string;
  jobs: (LaunchedRun)[];
  skipped: (SkippedScraper)[];
  skippedTotal: number;
}

export interface Schema {
  content: Record<string, unknown>;
  createdAt: string | null;
  customerRef: string | null;
  description: string;
  domainPatterns: (string)[];
  id: string;
  name: string;
  templateId: string;
  templateName: string;
  type: "PRODUCT" | "REVIEW" | "ARTICLE" | "JOB_POSTING" | "REAL_ESTATE" | "EVENT" | "ORGANIZATION" | "SERP" | "CUSTOM";
  updatedAt: string | null;
  version: number;
}

export interface SchemaInput {
  content: Record<string, unknown>;
  createdAt?: string | null;
  customerRef?: string | null;
  description?: string | null;
  domainPatterns?: (string)[] | null;
  id?: string | null;
  name?: string | null;
  templateId?: string | null;
  templateName?: string | null;
  type: "PRODUCT" | "REVIEW" | "ARTICLE" | "JOB_POSTING" | "REAL_ESTATE" | "EVENT" | "ORGANIZATION" | "SERP" | "CUSTOM";
  updatedAt?: string | null;
  version: number;
}

export interface SchemaListEntry {
  id: string;
  name: string;
  type: string;
  version: number;
}

export interface SchemaRef {
  id: string;
}

export interface Scraper {
  config: ScraperConfig | null;
  createdAt: string | null;
  effectiveRetentionCount: number | null;
  groupRef: string;
  id: string;
  itemsConfig: (Field)[];
  lastRunState: string | null;
  name: string;
  nextStart: string | null;
  postProcessRules: (PostProcessRule)[];
  schedule: string;
  scheduleTimezone: string;
  schema: SchemaRef | null;
  sourceConfig: SourceConfig;
  type: "SINGLE_PRODUCT" | "MULTIPLE_PRODUCTS" | "APPLICATION_LD_JSON" | "AI_CONF" | "MARKETPLACE" | "SEARCH_ENGINE_SEARCH" | "FILE";
  updatedAt: string | null;
}

export interface ScraperConfig {
  endpointTag?: string;
  keepBodyDays?: number | null;
  politeness?: Politeness | null;
  retentionCount?: number | null;
  tiers?: ("plain" | "render" | "super" | "render+super")[];
}

export interface ScraperCursorPage {
  hasMore: boolean;
  items: (Scraper)[];
  nextCursor: string | null;
}

export interface ScraperProposal {
  executionTimeSec: number;
  sampleData: (Row)[];
  scraperDTO: Scraper;
}

export interface SentFile {
  jobId: string;
  keyColumnUsed: string | null;
}

export interface ServiceSettings {
  changedAt: string | null;
  changedBy: string;
  customerRates: Record<string, unknown>;
  historyDays: number | null;
  lowBalanceThresholdMicros: number;
  plans: (PlanOffer)[];
  rates: Record<string, unknown>;
  revision: number;
  signUpEnabled: boolean;
  uploads: UploadFigures;
  walletBillingEnabled: boolean;
}

export interface Site {
  createdAt: string | null;
  id: string;
  linkCount: number;
  links?: (SiteLink)[];
  linksTruncated: boolean;
  name: string;
  scraperRef: string;
  updatedAt: string | null;
}

export interface SiteLink {
  curl: string;
  state: string;
  title: string;
  url: string;
}

export interface SiteLinkPage {
  content: (SiteLink)[];
  number: number;
  size: number;
  totalElements: number;
  totalPages: number;
}

export interface SitemapEntry {
  image: string | null;
  imageTitle: string | null;
  lastSeen: string;
  url: string;
}

export interface SitemapEntryPage {
  content: (SitemapEntry)[];
  number: number;
  size: number;
  totalElements: number;
  totalPages: number;
}

export interface SkippedScraper {
  reason: "FILE" | "ALREADY_RUNNING" | "NO_SOURCE" | "CONFIG_INVALID" | "NOT_AFFORDABLE" | "TIER_UNAVAILABLE" | "LIMIT_REACHED" | "SCHEMA_GONE" | "START_UNREACHABLE";
  scraperId: string;
}

export interface SourceConfig {
  curl?: string;
  engine?: string;
  pagination?: Pagination | null;
  prelaunch?: Prelaunch | null;
  queries?: (string)[];
  tryWithHiddenData?: boolean;
  url?: string;
}

export interface Start {
  at: string | null;
  launched: number;
  missed: number;
  outcome: "STARTING" | "LAUNCHED" | "SKIPPED" | "MISSED" | "NOTHING";
  reason: string | null;
  skipped: number;
}

export interface StartTypeForGroup {
  nextStart: string | null;
  schedule: string;
  scraperId: string;
  startType: "MANUAL" | "DAILY" | "WEEKLY" | "NONE";
}

export interface StartedTopUp {
  sessionId: string;
  url: string;
}

export interface Starts {
  groupId: string;
  nextStart: string | null;
  schedule: string;
  scheduleTimezone: string;
  scraperId: string | null;
  startType: "MANUAL" | "DAILY" | "WEEKLY" | "NONE";
  starts: (Start)[];
}

export interface Subscription {
  currentPeriodEnd: string | null;
  payment: Payment | null;
  plan: string | null;
  scheduledPlan: string | null;
  status: "ACTIVE" | "INACTIVE";
}

export interface TokenRule {
  expression: string;
  name: string;
  source: "FRAMEWORK_DATA" | "META" | "REGEX";
  validatePattern?: string;
}

export interface TopUpEvent {
  sessionId: string;
  status: "OPEN" | "APPLIED" | "EXPIRED" | "FAILED" | "UNMATCHED";
}

export interface TopUpStatus {
  status: "OPEN" | "APPLIED" | "EXPIRED" | "FAILED" | "UNMATCHED";
}

export interface Transaction {
  amountMicros: number;
  balanceAfterMicros: number | null;
  createdAt: string | null;
  freeRequestsDelta: number;
  groupId: string | null;
  id: string;
  jobId: string | null;
  lines: (TransactionLine)[];
  scraperId: string | null;
  settledAt: string | null;
  source: string | null;
  status: "OPEN" | "SETTLED" | "APPLIED" | "EXPIRED" | "FAILED" | "UNMATCHED";
  type: "TOPUP" | "CHARGE" | "ADJUSTMENT" | "FREE_GRANT";
}

export interface TransactionCursorPage {
  hasMore: boolean;
  items: (Transaction)[];
  nextCursor: string | null;
}

export interface TransactionLine {
  amountMicros: number;
  freePages: number;
  label: string;
  pages: number;
  unbilledPages: number;
  unitPriceMicros: number;
}

export interface URLPreviewInput {
  groupId: string;
  id?: string | null;
  itemsConfig?: (FieldInput)[] | null;
  name: string;
  url: string;
}

export interface UnreadNotifications {
  unread: number;
}

export interface UploadFigures {
  holdMinutes: number;
  maxHeavyImports: number;
  maxUploadSeconds: number;
}

export interface Wallet {
  balanceMicros: number;
  currency: string;
  freeRequestsRemaining: number;
  lowBalance: boolean;
  lowBalanceThresholdMicros: number;
  walletBillingEnabled: boolean;
}

export interface WalletPreferences {
  lowBalanceThresholdMicros: number;
}

export interface Webhook {
  createdAt: string | null;
  disabledBecause: "STOPPED" | "FAILING" | "GONE" | null;
  droppedEvents: number;
  enabled: boolean;
  events: (string)[];
  failingSince: string | null;
  formerSecretUntil: string | null;
  id: string;
  loggedDeliveryCount: number;
  url: string;
}

export interface WebhookDelivery {
  createdAt: string | null;
  error: string | null;
  event: string;
  id: string;
  nextTry: string | null;
  state: "PENDING" | "DELIVERED" | "FAILED";
  status: number | null;
  triedAt: string | null;
  tries: number;
}

export interface WebhookDeliveryPage {
  content: (WebhookDelivery)[];
  number: number;
  size: number;
  totalElements: number;
  totalPages: number;
}

export interface WebhookList {
  webhooks: (Webhook)[];
}

export interface WebhookWithSecret {
  createdAt: string | null;
  disabledBecause: "STOPPED" | "FAILING" | "GONE" | null;
  droppedEvents: number;
  enabled: boolean;
  events: (string)[];
  failingSince: string | null;
  formerSecretUntil: string | null;
  id: string;
  loggedDeliveryCount: number;
  secret: string;
  url: string;
}

export interface WorkItem {
  advancedAt: string | null;
  createdAt: string | null;
  customerRef: string | null;
  dueAt: string | null;
  error: string | null;
  failures: number;
  id: string;
  kind: string;
  node: string | null;
  state: "WAITING" | "READY" | "HELD" | "FAILED";
  stoodStillMillis: number;
}

export interface WorkItemPage {
  content: (WorkItem)[];
  number: number;
  size: number;
  totalElements: number;
  totalPages: number;
}

/** Why links fail, by the code, and what to do about it. */
export const failures: Record<string, { title: string; advice: string }> = {
  address_forbidden: {
    title: "The address is private, reserved or otherwise forbidden",
    advice: "Only public addresses are read. An operator can allow ranges of their own network with --egress-allow.",
  },
  attempts_exhausted: {
    title: "Given up after repeated attempts",
    advice: "The service lost the page again and again. Run the failed links again; if that fails too, tell the operator.",
  },
  blocked: {
    title: "The site showed a bot or login wall",
    advice: "The site shows a wall instead of the page. A lower pace may get past it, and so may the tiers render and super.",
  },
  body_gone: {
    title: "The page's body is no longer kept",
    advice: "The body's retention has ended, or newer bodies displaced it. Run the scraper to read the page again.",
  },
  body_too_large: {
    title: "The page is too large",
    advice: "The page exceeds the size limit. Look for a shorter page with the same data.",
  },
  connect_failed: {
    title: "Connection failed",
    advice: "The site may be down, or refuse the connection. Run the failed links again later.",
  },
  daily_limit_reached: {
    title: "A daily limit is reached",
    advice: "The daily limit is used up. Run the failed links again tomorrow.",
  },
  decompression_failed: {
    title: "The body cannot be decompressed",
    advice: "The site sent a broken response. Run the failed links again later.",
  },
  dns_failed: {
    title: "The host name does not resolve",
    advice: "Check the spelling of the host, and whether the site still exists.",
  },
  http_status: {
    title: "The site answered with an error status",
    advice: "The site refuses the request. Open the address in a browser to see why.",
  },
  invalid_url: {
    title: "The address is invalid",
    advice: "The address cannot be parsed. Correct it in the list.",
  },
  model_limit_reached: {
    title: "The language model's cap is reached",
    advice: "The operator's cap for the language model is reached. It resets every day.",
  },
  model_unavailable: {
    title: "The language model did not answer",
    advice: "The language model did not answer. Run the failed links again later.",
  },
  no_rows: {
    title: "No rows on the page",
    advice: "No field matched. Look at the page with `shoal preview`: it may have another layout, or be built by scripts, which needs the tier render.",
  },
  not_html: {
    title: "The response is not an HTML page",
    advice: "The address leads to a file, such as an image or a PDF, not to a page. Leave it out.",
  },
  not_json: {
    title: "The response is not JSON",
    advice: "The address does not answer with JSON. Check it, or read it as a page.",
  },
  prelaunch_refresh_failed: {
    title: "The placeholder values could not be found",
    advice: "The page that placeholders are read from has changed. Check the prelaunch rules.",
  },
  protocol_error: {
    title: "The response is not HTTP, or was cut off",
    advice: "The site cut off its response. Run the failed links again later, at a lower pace.",
  },
  recipe_missing: {
    title: "The run's recipe no longer exists",
    advice: "The scraper was deleted while it ran, or undone by a restore. Launch the run again.",
  },
  robots_forbidden: {
    title: "robots.txt forbids the page",
    advice: "The site asks robots to stay away from these pages. Leave them out, or ask its owner.",
  },
  row_rejected: {
    title: "No row of the page fits the schema",
    advice: "The page's data does not fit the schema. Loosen its required properties, or choose another one.",
  },
  row_too_large: {
    title: "A row is too large",
    advice: "A field takes in too much of the page. Give it a narrower selector.",
  },
  tier_missing: {
    title: "The fetcher has none of the run's tiers",
    advice: "An operator must give all fetchers the tier; `shoal cluster nodes` shows their tiers.",
  },
  timeout: {
    title: "Timed out",
    advice: "The site is slow. Run the failed links again later, at a lower pace.",
  },
  tls_failed: {
    title: "TLS connection failed",
    advice: "The site's certificate is not valid. Open it in a browser to see why.",
  },
  too_costly: {
    title: "The scraper's selectors or patterns take too long on the page",
    advice: "Simplify the scraper's selectors and patterns: use fewer :has and :nth-child, and fewer .* in patterns.",
  },
  too_many_redirects: {
    title: "Too many redirects",
    advice: "The address redirects in circles, often because a cookie is missing. Open it in a browser, and list the address where it ends.",
  },
  unparsable: {
    title: "The page cannot be parsed",
    advice: "The page cannot be read as HTML. Open it in a browser; leave it out if it is broken there, too.",
  },
};

/** What to do about http_status, by the status or its first digit. */
export const byStatus: Record<number, string> = {
  5: "The site has a problem of its own. Run the failed links again later.",
  401: "The site wants fewer requests, or a browser. A lower pace may get past it, and so may the tiers render and super.",
  403: "The site wants fewer requests, or a browser. A lower pace may get past it, and so may the tiers render and super.",
  404: "The page is gone. Leave it out.",
  410: "The page is gone. Leave it out.",
  429: "The site wants fewer requests, or a browser. A lower pace may get past it, and so may the tiers render and super.",
};
