// Made of the API's description and the error catalogue by go test ./apiserver/portal -update.

export interface Category {
  createdAt: string | null;
  filters: Record<string, unknown>;
  id: string;
  name: string;
  updatedAt: string | null;
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

export interface Group {
  createdAt: string | null;
  customerRef: string;
  dataTable: string;
  id: string;
  name: string;
  nextStart: string | null;
  retentionCount: number | null;
  scheduleTimezone: string;
  scraperCount: number;
  shouldMatchProducts: boolean;
  startType: "MANUAL" | "DAILY" | "WEEKLY" | "NONE";
  updatedAt: string | null;
}

export interface GroupInput {
  createdAt?: string | null;
  customerRef?: string | null;
  dataTable?: string | null;
  id?: string | null;
  name?: string | null;
  nextStart?: string | null;
  retentionCount?: number | null;
  scheduleTimezone?: string | null;
  scraperCount?: number | null;
  shouldMatchProducts?: boolean | null;
  startType?: "MANUAL" | "DAILY" | "WEEKLY" | "NONE" | null;
  updatedAt?: string | null;
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

export interface KeptPage {
  keptUntil: string | null;
  path: string;
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

export interface RowCursorPage {
  hasMore: boolean;
  items: (Row)[];
  nextCursor: string | null;
}

export interface RowPage {
  content: (Row)[];
  number: number;
  size: number;
  totalElements: number;
  totalPages: number;
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

export interface RunEstimate {
  affordable: boolean;
  balanceMicros: number;
  links: number;
  maxMicros: number;
  minMicros: number;
  pages: number;
  runsConsidered: number;
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

export interface SourceConfig {
  curl?: string;
  engine?: string;
  pagination?: Pagination | null;
  prelaunch?: Prelaunch | null;
  queries?: (string)[];
  tryWithHiddenData?: boolean;
  url?: string;
}

export interface TokenRule {
  expression: string;
  name: string;
  source: "FRAMEWORK_DATA" | "META" | "REGEX";
  validatePattern?: string;
}

export interface URLPreviewInput {
  groupId: string;
  id?: string | null;
  itemsConfig?: (FieldInput)[] | null;
  name: string;
  url: string;
}

export interface Wallet {
  balanceMicros: number;
  currency: string;
  freeRequestsRemaining: number;
  lowBalance: boolean;
  lowBalanceThresholdMicros: number;
  walletBillingEnabled: boolean;
}

/** Why links fail, by the code, and what to do about it. */
export const failures: Record<string, { title: string; advice: string }> = {
  address_forbidden: {
    title: "The address is private, reserved or otherwise forbidden",
    advice: "Only public addresses are read. An operator allows ranges of their own network with --egress-allow.",
  },
  attempts_exhausted: {
    title: "Given up after repeated losses",
    advice: "The service lost the page again and again. Run the failed links again; tell the operator if that fails, too.",
  },
  blocked: {
    title: "The site showed a bot or login wall",
    advice: "The site shows a wall instead of the page. A lower pace may pass, and so may the tiers render and super.",
  },
  body_too_large: {
    title: "The page is too large",
    advice: "The page is longer than pages may be. Look for a shorter one of the same data.",
  },
  connect_failed: {
    title: "No connection",
    advice: "The site may be down, or refuse this address. Run the failed links again later.",
  },
  daily_limit_reached: {
    title: "A daily limit is reached",
    advice: "What a day allows is used up. Run the failed links again tomorrow.",
  },
  decompression_failed: {
    title: "The body does not decompress",
    advice: "The site sends a broken answer. Run the failed links again later.",
  },
  dns_failed: {
    title: "The host name does not resolve",
    advice: "Check the spelling of the host, and whether the site still exists.",
  },
  http_status: {
    title: "The site answered with an error status",
    advice: "404 and 410: the page is gone, leave it out. 403 and 429: the site wants fewer requests or a browser. 5xx: run it again later.",
  },
  invalid_url: {
    title: "The address is invalid",
    advice: "The address cannot be read. Mend it in the list.",
  },
  model_limit_reached: {
    title: "The language model's cap is reached",
    advice: "The operator's cap for the language model is reached. It is new each day.",
  },
  model_unavailable: {
    title: "The language model gave no answer",
    advice: "The language model did not answer. Run the failed links again later.",
  },
  no_rows: {
    title: "No row on the page",
    advice: "No field matched. Look at the page with `shoal preview`: it may have another layout, or be made by scripts, which needs the tier render.",
  },
  not_html: {
    title: "The answer is not a page",
    advice: "The address is of a file, such as an image or a PDF, and not of a page. Leave it out.",
  },
  not_json: {
    title: "The answer is not JSON",
    advice: "The address does not answer with JSON. Check it, or read it as a page.",
  },
  prelaunch_refresh_failed: {
    title: "The values of placeholders could not be found",
    advice: "The page that placeholders are read from has changed. Check the prelaunch rules.",
  },
  protocol_error: {
    title: "The answer is not HTTP, or broke off",
    advice: "The site broke off its answer. Run the failed links again later, at a lower pace.",
  },
  recipe_missing: {
    title: "The run's recipe is gone",
    advice: "The scraper was deleted or undone while it ran. Launch the run anew.",
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
    advice: "An operator has to give all fetchers the tier; `shoal cluster nodes` shows them.",
  },
  timeout: {
    title: "Time ran out",
    advice: "The site is slow. Run the failed links again later, at a lower pace.",
  },
  tls_failed: {
    title: "TLS failed",
    advice: "The site's certificate is not valid. Open it in a browser to see why.",
  },
  too_costly: {
    title: "The scraper's selectors or patterns take too long on the page",
    advice: "Simplify the scraper's selectors and patterns: fewer of :has, :nth-child and of .* in patterns.",
  },
  too_many_redirects: {
    title: "Too many redirects",
    advice: "The address leads in circles, often for want of a cookie. Open it in a browser, and list the address where that ends.",
  },
  unparsable: {
    title: "The page cannot be parsed",
    advice: "The page cannot be read as HTML. Open it in a browser; leave it out if it is broken there, too.",
  },
};
