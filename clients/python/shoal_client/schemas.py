from __future__ import annotations

import inspect
import typing
import warnings

import pydantic
from clientele.schemas import ListResponse

warnings.filterwarnings("ignore", 'Field name "schema" in ')


class Category(pydantic.BaseModel):
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    filters: dict[str, typing.Any]
    id: str
    name: str
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class CategoryInput(pydantic.BaseModel):
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    filters: dict[str, typing.Any]
    id: str | None = None
    name: str
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class CommonField(pydantic.BaseModel):
    name: str
    type: str


class CurlPreviewInput(pydantic.BaseModel):
    curl: str
    group_id: str = pydantic.Field(alias="groupId")
    id: str | None = None
    name: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Customer(pydantic.BaseModel):
    agree_with_terms: bool = pydantic.Field(alias="agreeWithTerms")
    customer_unique_ref: str = pydantic.Field(alias="customerUniqueRef")
    email: str
    firstname: str
    lastname: str
    plan: str | None = None
    statistic: CustomerStatistic | None = None
    subscription_status: str | None = pydantic.Field(
        default=None, alias="subscriptionStatus"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class CustomerInput(pydantic.BaseModel):
    agree_with_terms: bool = pydantic.Field(alias="agreeWithTerms")
    customer_unique_ref: str | None = pydantic.Field(
        default=None, alias="customerUniqueRef"
    )
    email: str | None = None
    firstname: str
    lastname: str
    plan: str | None = None
    statistic: CustomerStatisticInput | None = None
    subscription_status: str | None = pydantic.Field(
        default=None, alias="subscriptionStatus"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class CustomerStatistic(pydantic.BaseModel):
    quota_usage: dict[str, typing.Any] = pydantic.Field(alias="quotaUsage")
    run_count_last30d: int = pydantic.Field(alias="runCountLast30d")
    scraper_count: int = pydantic.Field(alias="scraperCount")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class CustomerStatisticInput(pydantic.BaseModel):
    quota_usage: dict[str, typing.Any] | None = pydantic.Field(
        default=None, alias="quotaUsage"
    )
    run_count_last30d: int | None = pydantic.Field(
        default=None, alias="runCountLast30d"
    )
    scraper_count: int | None = pydantic.Field(
        default=None, alias="scraperCount"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class DeletionPreview(pydantic.BaseModel):
    op_name: str = pydantic.Field(alias="opName")
    preview_summary: DeletionSummary = pydantic.Field(alias="previewSummary")
    target_entity_id: str = pydantic.Field(alias="targetEntityId")
    token: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class DeletionSummary(pydantic.BaseModel):
    cascade_counts: dict[str, typing.Any] = pydantic.Field(alias="cascadeCounts")
    entity_name: str = pydantic.Field(alias="entityName")
    entity_type: str = pydantic.Field(alias="entityType")
    warnings: list[str]

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class EnrichedScraper(pydantic.BaseModel):
    config: ScraperConfig | None
    config_valid: bool = pydantic.Field(alias="configValid")
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    effective_retention_count: int | None = pydantic.Field(
        default=None, alias="effectiveRetentionCount"
    )
    group: ScraperGroup | None
    group_ref: str = pydantic.Field(alias="groupRef")
    id: str
    items_config: list[Field] = pydantic.Field(alias="itemsConfig")
    last_run_state: str | None = pydantic.Field(
        default=None, alias="lastRunState"
    )
    name: str
    next_start: str | None = pydantic.Field(default=None, alias="nextStart")
    post_process_rules: list[PostProcessRule] = pydantic.Field(
        alias="postProcessRules"
    )
    run_stats: RunStats = pydantic.Field(alias="runStats")
    schedule: str
    schedule_timezone: str = pydantic.Field(alias="scheduleTimezone")
    schema: SchemaWithContent | None
    source_config: SourceConfig = pydantic.Field(alias="sourceConfig")
    type: str
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class EnrichedScraperInput(pydantic.BaseModel):
    config: ScraperConfigInput | None = None
    config_valid: bool | None = pydantic.Field(
        default=None, alias="configValid"
    )
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    effective_retention_count: int | None = pydantic.Field(
        default=None, alias="effectiveRetentionCount"
    )
    group: ScraperGroupInput | None = None
    group_ref: str = pydantic.Field(alias="groupRef")
    id: str | None = None
    items_config: list[FieldInput] | None = pydantic.Field(
        default=None, alias="itemsConfig"
    )
    last_run_state: str | None = pydantic.Field(
        default=None, alias="lastRunState"
    )
    name: str
    next_start: str | None = pydantic.Field(default=None, alias="nextStart")
    post_process_rules: list[PostProcessRuleInput] | None = pydantic.Field(
        default=None, alias="postProcessRules"
    )
    run_stats: RunStatsInput | None = pydantic.Field(
        default=None, alias="runStats"
    )
    schedule: str | None = None
    schedule_timezone: str | None = pydantic.Field(
        default=None, alias="scheduleTimezone"
    )
    schema: SchemaWithContentInput | None = None
    source_config: SourceConfigInput = pydantic.Field(alias="sourceConfig")
    type: str
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Feedback(pydantic.BaseModel):
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    id: str
    text: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class FeedbackInput(pydantic.BaseModel):
    text: str


class Field(pydantic.BaseModel):
    attr: str | None = None
    kind: str
    name: str
    selector: str


class FieldInput(pydantic.BaseModel):
    attr: str | None = None
    kind: str
    name: str
    selector: str


class FieldProfile(pydantic.BaseModel):
    distinct: int
    distinct_exact: bool = pydantic.Field(alias="distinctExact")
    example_url: str | None = pydantic.Field(default=None, alias="exampleUrl")
    examples: list[typing.Any]
    fill_rate: float = pydantic.Field(alias="fillRate")
    filled: int
    histogram: list[NumberBucket]
    max: float | None = None
    mean: float | None = None
    mean_length: float | None = pydantic.Field(
        default=None, alias="meanLength"
    )
    min: float | None = None
    name: str
    types: dict[str, typing.Any]

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class FieldsPreview(pydantic.BaseModel):
    elapsed_ms: int = pydantic.Field(alias="elapsedMs")
    fields: dict[str, typing.Any]
    url: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class FieldsPreviewInput(pydantic.BaseModel):
    fields: list[str]
    url: str


class GeneratedKey(pydantic.BaseModel):
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    expires_at: str | None = pydantic.Field(default=None, alias="expiresAt")
    id: str
    key: str
    name: str
    prefix: str
    scope: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Group(pydantic.BaseModel):
    change_alerts: list[str] = pydantic.Field(alias="changeAlerts")
    change_alerts_key: list[str] = pydantic.Field(alias="changeAlertsKey")
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    customer_ref: str = pydantic.Field(alias="customerRef")
    data_table: str = pydantic.Field(alias="dataTable")
    enriched_of: str | None = pydantic.Field(default=None, alias="enrichedOf")
    id: str
    matched_of: str | None = pydantic.Field(default=None, alias="matchedOf")
    name: str
    next_start: str | None = pydantic.Field(default=None, alias="nextStart")
    quarantine: bool
    retention_count: int | None = pydantic.Field(
        default=None, alias="retentionCount"
    )
    schedule_timezone: str = pydantic.Field(alias="scheduleTimezone")
    scraper_count: int = pydantic.Field(alias="scraperCount")
    should_match_products: bool = pydantic.Field(alias="shouldMatchProducts")
    start_type: str = pydantic.Field(alias="startType")
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class GroupEstimate(pydantic.BaseModel):
    affordable: bool
    balance_micros: int = pydantic.Field(alias="balanceMicros")
    group_id: str = pydantic.Field(alias="groupId")
    links: int
    max_micros: int = pydantic.Field(alias="maxMicros")
    min_micros: int = pydantic.Field(alias="minMicros")
    pages: int
    scrapers: int
    scrapers_considered: int = pydantic.Field(alias="scrapersConsidered")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class GroupInput(pydantic.BaseModel):
    change_alerts: list[str] | None = pydantic.Field(
        default=None, alias="changeAlerts"
    )
    change_alerts_key: list[str] | None = pydantic.Field(
        default=None, alias="changeAlertsKey"
    )
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    customer_ref: str | None = pydantic.Field(
        default=None, alias="customerRef"
    )
    data_table: str | None = pydantic.Field(default=None, alias="dataTable")
    enriched_of: str | None = pydantic.Field(default=None, alias="enrichedOf")
    id: str | None = None
    matched_of: str | None = pydantic.Field(default=None, alias="matchedOf")
    name: str | None = None
    next_start: str | None = pydantic.Field(default=None, alias="nextStart")
    quarantine: bool | None = None
    retention_count: int | None = pydantic.Field(
        default=None, alias="retentionCount"
    )
    schedule_timezone: str | None = pydantic.Field(
        default=None, alias="scheduleTimezone"
    )
    scraper_count: int | None = pydantic.Field(
        default=None, alias="scraperCount"
    )
    should_match_products: bool | None = pydantic.Field(
        default=None, alias="shouldMatchProducts"
    )
    start_type: str | None = pydantic.Field(default=None, alias="startType")
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Identity(pydantic.BaseModel):
    admin: bool
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    customer_ref: str = pydantic.Field(alias="customerRef")
    expires_at: str | None = pydantic.Field(default=None, alias="expiresAt")
    id: str
    last_used_at: str | None = pydantic.Field(
        default=None, alias="lastUsedAt"
    )
    name: str
    prefix: str
    scope: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Invoice(pydantic.BaseModel):
    amount: float
    currency: str
    hosted_invoice_url: str | None = pydantic.Field(
        default=None, alias="hostedInvoiceUrl"
    )
    id: str
    issued_at: str | None = pydantic.Field(default=None, alias="issuedAt")
    status: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class InvoicePage(pydantic.BaseModel):
    content: list[Invoice]
    number: int
    size: int
    total_elements: int = pydantic.Field(alias="totalElements")
    total_pages: int = pydantic.Field(alias="totalPages")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Job(pydantic.BaseModel):
    charged_micros: int | None = pydantic.Field(
        default=None, alias="chargedMicros"
    )
    delivered_pages: int = pydantic.Field(alias="deliveredPages")
    duration: int | None = None
    error_links: int = pydantic.Field(alias="errorLinks")
    error_message: str | None = pydantic.Field(
        default=None, alias="errorMessage"
    )
    finished: str | None = None
    group_id: str = pydantic.Field(alias="groupId")
    id: str
    ignores_robots: bool = pydantic.Field(alias="ignoresRobots")
    items_quantity: int = pydantic.Field(alias="itemsQuantity")
    launched_by_customer: bool = pydantic.Field(alias="launchedByCustomer")
    max_charge_micros: int | None = pydantic.Field(
        default=None, alias="maxChargeMicros"
    )
    quarantine_reason: str | None = pydantic.Field(
        default=None, alias="quarantineReason"
    )
    queued: str | None = None
    scraper_id: str = pydantic.Field(alias="scraperId")
    started: str | None = None
    state: str
    stop_reason: str | None = pydantic.Field(default=None, alias="stopReason")
    success_links: int = pydantic.Field(alias="successLinks")
    total_links: int = pydantic.Field(alias="totalLinks")
    total_requests: int = pydantic.Field(alias="totalRequests")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class JobCursorPage(pydantic.BaseModel):
    has_more: bool = pydantic.Field(alias="hasMore")
    items: list[Job]
    next_cursor: str | None = pydantic.Field(default=None, alias="nextCursor")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class JobPage(pydantic.BaseModel):
    content: list[Job]
    number: int
    size: int
    total_elements: int = pydantic.Field(alias="totalElements")
    total_pages: int = pydantic.Field(alias="totalPages")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class KeptExport(pydantic.BaseModel):
    bytes: int | None = None
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    ended_at: str | None = pydantic.Field(default=None, alias="endedAt")
    error_code: str | None = pydantic.Field(default=None, alias="errorCode")
    error_message: str | None = pydantic.Field(
        default=None, alias="errorMessage"
    )
    expires_at: str | None = pydantic.Field(default=None, alias="expiresAt")
    format: str
    group_id: str | None = pydantic.Field(default=None, alias="groupId")
    id: str
    job_id: str | None = pydantic.Field(default=None, alias="jobId")
    rows: int | None = None
    scraper_id: str | None = pydantic.Field(default=None, alias="scraperId")
    sha256: str | None = None
    state: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class KeptPage(pydantic.BaseModel):
    kept_until: str | None = pydantic.Field(default=None, alias="keptUntil")
    path: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Key(pydantic.BaseModel):
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    expires_at: str | None = pydantic.Field(default=None, alias="expiresAt")
    id: str
    last_used_address: str | None = pydantic.Field(
        default=None, alias="lastUsedAddress"
    )
    last_used_at: str | None = pydantic.Field(
        default=None, alias="lastUsedAt"
    )
    name: str
    prefix: str
    scope: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class KeyList(pydantic.BaseModel):
    keys: list[Key]


class LaunchedListRun(pydantic.BaseModel):
    duplicates_dropped: int = pydantic.Field(alias="duplicatesDropped")
    job_id: str = pydantic.Field(alias="jobId")
    links_queued: int = pydantic.Field(alias="linksQueued")
    message: str | None = None
    scraper_id: str = pydantic.Field(alias="scraperId")
    status: str
    tag: str | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class LaunchedRun(pydantic.BaseModel):
    job_id: str = pydantic.Field(alias="jobId")
    queued_at: str | None = pydantic.Field(default=None, alias="queuedAt")
    scraper_id: str = pydantic.Field(alias="scraperId")
    status: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class LinkError(pydantic.BaseModel):
    code: str
    error: str
    place: str
    status: int | None = None
    url: str


class ListRunInput(pydantic.BaseModel):
    endpoint_tag: str | None = pydantic.Field(
        default=None, alias="endpointTag"
    )
    force: bool | None = None
    group_id: str | None = pydantic.Field(default=None, alias="groupId")
    items_config: list[FieldInput] | None = pydantic.Field(
        default=None, alias="itemsConfig"
    )
    max_charge_micros: int | None = pydantic.Field(
        default=None, alias="maxChargeMicros"
    )
    name: str | None = None
    rerun: bool | None = None
    scraper_id: str | None = pydantic.Field(default=None, alias="scraperId")
    template_scraper_id: str | None = pydantic.Field(
        default=None, alias="templateScraperId"
    )
    type: str | None = None
    urls: list[str] | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Merged(pydantic.BaseModel):
    job_id: str = pydantic.Field(alias="jobId")
    merged_items: int | None = pydantic.Field(
        default=None, alias="mergedItems"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class MonthlyPrice(pydantic.BaseModel):
    amount: float
    currency: str


class Notification(pydantic.BaseModel):
    count: int
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    event: str
    facts: NotificationFacts
    group_id: str | None = pydantic.Field(default=None, alias="groupId")
    id: str
    job_id: str | None = pydantic.Field(default=None, alias="jobId")
    key_id: str | None = pydantic.Field(default=None, alias="keyId")
    read: bool
    scraper_id: str | None = pydantic.Field(default=None, alias="scraperId")
    text: str
    title: str
    transaction_id: str | None = pydantic.Field(
        default=None, alias="transactionId"
    )
    webhook_id: str | None = pydantic.Field(default=None, alias="webhookId")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class NotificationFacts(pydantic.BaseModel):
    balance_micros: int | None = pydantic.Field(
        default=None, alias="balanceMicros"
    )
    changes: NotifiedChanges | None = None
    group: NotifiedGroup | None = None
    key: NotifiedKey | None = None
    quota: NotifiedQuota | None = None
    run: NotifiedRun | None = None
    start: NotifiedStart | None = None
    top_up: NotifiedTopUp | None = pydantic.Field(
        default=None, alias="topUp"
    )
    webhook: NotifiedWebhook | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class NotificationInput(pydantic.BaseModel):
    read: bool


class NotificationPage(pydantic.BaseModel):
    content: list[Notification]
    number: int
    size: int
    total_elements: int = pydantic.Field(alias="totalElements")
    total_pages: int = pydantic.Field(alias="totalPages")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class NotifiedChanges(pydantic.BaseModel):
    added: int
    changed: int
    diff: str | None = None
    error_message: str | None = pydantic.Field(
        default=None, alias="errorMessage"
    )
    examples: list[str] | None = None
    from_job_id: str | None = pydantic.Field(default=None, alias="fromJobId")
    job_id: str = pydantic.Field(alias="jobId")
    removed: int
    scraper_id: str = pydantic.Field(alias="scraperId")
    scraper_name: str = pydantic.Field(alias="scraperName")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class NotifiedGroup(pydantic.BaseModel):
    id: str
    name: str


class NotifiedKey(pydantic.BaseModel):
    id: str
    name: str


class NotifiedQuota(pydantic.BaseModel):
    limit: str
    most: int
    plan: str
    used: int


class NotifiedRun(pydantic.BaseModel):
    charged_micros: int = pydantic.Field(alias="chargedMicros")
    error_links: int = pydantic.Field(alias="errorLinks")
    error_message: str | None = pydantic.Field(
        default=None, alias="errorMessage"
    )
    job_id: str = pydantic.Field(alias="jobId")
    pages: int
    rows: int
    scraper_id: str = pydantic.Field(alias="scraperId")
    scraper_name: str = pydantic.Field(alias="scraperName")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class NotifiedStart(pydantic.BaseModel):
    group_id: str | None = pydantic.Field(default=None, alias="groupId")
    name: str
    reason: str
    scraper_id: str | None = pydantic.Field(default=None, alias="scraperId")
    skipped: int

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class NotifiedTopUp(pydantic.BaseModel):
    amount_micros: int = pydantic.Field(alias="amountMicros")
    transaction_id: str | None = pydantic.Field(
        default=None, alias="transactionId"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class NotifiedWebhook(pydantic.BaseModel):
    id: str
    reason: str | None = None
    url: str


class NumberBucket(pydantic.BaseModel):
    count: int
    from_: float = pydantic.Field(alias="from")
    to: float

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PageCandidate(pydantic.BaseModel):
    config: ScraperConfig | None
    items_config: list[Field] = pydantic.Field(alias="itemsConfig")
    sample_data: list[Row] = pydantic.Field(alias="sampleData")
    schema: SchemaRef | None
    source_config: SourceConfig = pydantic.Field(alias="sourceConfig")
    type: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PageChoice(pydantic.BaseModel):
    attr: str | None = None
    kind: str
    value: str


class PageNode(pydantic.BaseModel):
    in_: int = pydantic.Field(alias="in")
    name: str | None = None
    text: str | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PagePick(pydantic.BaseModel):
    choices: list[PageChoice]
    items_config: list[Field] = pydantic.Field(alias="itemsConfig")
    matches: list[list[int]]
    row_count: int = pydantic.Field(alias="rowCount")
    rows: list[Row]

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PagePickInput(pydantic.BaseModel):
    element: int | None = None
    items_config: list[FieldInput] | None = pydantic.Field(
        default=None, alias="itemsConfig"
    )
    post_process_rules: list[PostProcessRuleInput] | None = pydantic.Field(
        default=None, alias="postProcessRules"
    )
    type: str
    url: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PagePreview(pydantic.BaseModel):
    candidates: list[PageCandidate]
    charged_micros: int = pydantic.Field(alias="chargedMicros")
    cut: bool
    expires_at: str | None = pydantic.Field(default=None, alias="expiresAt")
    nodes: list[PageNode]
    pagination: Pagination | None
    tier: str
    url: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PagePreviewInput(pydantic.BaseModel):
    url: str


class Pagination(pydantic.BaseModel):
    cursor_path: str | None = pydantic.Field(default=None, alias="cursorPath")
    max: int | None = None
    page_size: int | None = pydantic.Field(default=None, alias="pageSize")
    param: str | None = None
    selector: str | None = None
    start: int | None = None
    step: int | None = None
    template: str | None = None
    type: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PaginationInput(pydantic.BaseModel):
    cursor_path: str | None = pydantic.Field(default=None, alias="cursorPath")
    max: int | None = None
    page_size: int | None = pydantic.Field(default=None, alias="pageSize")
    param: str | None = None
    selector: str | None = None
    start: int | None = None
    step: int | None = None
    template: str | None = None
    type: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Payment(pydantic.BaseModel):
    url: str


class PlanFeatures(pydantic.BaseModel):
    features: list[str]
    level: int
    limits: dict[str, typing.Any]
    monthly_price: float = pydantic.Field(alias="monthlyPrice")
    plan: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PlanInput(pydantic.BaseModel):
    plan: str


class PlanPrice(pydantic.BaseModel):
    monthly: MonthlyPrice
    plan: str


class Politeness(pydantic.BaseModel):
    connections: int | None = None
    ignore_robots: bool | None = pydantic.Field(
        default=None, alias="ignoreRobots"
    )
    requests_per_second: float | None = pydantic.Field(
        default=None, alias="requestsPerSecond"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PolitenessInput(pydantic.BaseModel):
    connections: int | None = None
    ignore_robots: bool | None = pydantic.Field(
        default=None, alias="ignoreRobots"
    )
    requests_per_second: float | None = pydantic.Field(
        default=None, alias="requestsPerSecond"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PostProcessRule(pydantic.BaseModel):
    kind: str
    output_field: str = pydantic.Field(alias="outputField")
    output_type: str | None = pydantic.Field(default=None, alias="outputType")
    params: dict[str, typing.Any] | None = None
    source_field: str = pydantic.Field(alias="sourceField")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PostProcessRuleInput(pydantic.BaseModel):
    kind: str
    output_field: str = pydantic.Field(alias="outputField")
    output_type: str | None = pydantic.Field(default=None, alias="outputType")
    params: dict[str, typing.Any] | None = None
    source_field: str = pydantic.Field(alias="sourceField")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Prelaunch(pydantic.BaseModel):
    discovery_url: str = pydantic.Field(alias="discoveryUrl")
    tokens: list[TokenRule]
    ttl_minutes: int | None = pydantic.Field(default=None, alias="ttlMinutes")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class PrelaunchInput(pydantic.BaseModel):
    discovery_url: str | None = pydantic.Field(
        default=None, alias="discoveryUrl"
    )
    tokens: list[TokenRuleInput] | None = None
    ttl_minutes: int | None = pydantic.Field(default=None, alias="ttlMinutes")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Price(pydantic.BaseModel):
    kind: str
    label: str
    row_key: str = pydantic.Field(alias="rowKey")
    selling_price_micros: int = pydantic.Field(alias="sellingPriceMicros")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Problem(pydantic.BaseModel):
    code: str
    correlation_id: str = pydantic.Field(alias="correlationId")
    detail: str
    errors: list[ProblemItem]
    scraper_id: str | None = pydantic.Field(default=None, alias="scraperId")
    status: int
    title: str
    type: str | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class ProblemItem(pydantic.BaseModel):
    code: str
    field: str | None = None
    message: str


class ReExtractInput(pydantic.BaseModel):
    items_config: list[FieldInput] | None = pydantic.Field(
        default=None, alias="itemsConfig"
    )
    job_id: str = pydantic.Field(alias="jobId")
    post_process_rules: list[PostProcessRuleInput] | None = pydantic.Field(
        default=None, alias="postProcessRules"
    )
    schema: SchemaRefInput | None = None
    type: str | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RetentionInput(pydantic.BaseModel):
    retention_count: int | None = pydantic.Field(
        default=None, alias="retentionCount"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RotationInput(pydantic.BaseModel):
    overlap_hours: int | None = pydantic.Field(
        default=None, alias="overlapHours"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Row(pydantic.BaseModel):
    final_url: str | None = pydantic.Field(default=None, alias="_finalUrl")
    job_id: str | None = pydantic.Field(default=None, alias="_jobId")
    row_id: str | None = pydantic.Field(default=None, alias="_rowId")
    scraped_at: str | None = pydantic.Field(default=None, alias="_scrapedAt")
    scraper_id: str | None = pydantic.Field(default=None, alias="_scraperId")
    source_url: str | None = pydantic.Field(default=None, alias="_sourceUrl")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RowChange(pydantic.BaseModel):
    after: Row | None
    before: Row | None
    change: str
    changed: list[str]


class RowCursorPage(pydantic.BaseModel):
    has_more: bool = pydantic.Field(alias="hasMore")
    items: list[Row]
    next_cursor: str | None = pydantic.Field(default=None, alias="nextCursor")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RowPage(pydantic.BaseModel):
    content: list[Row]
    number: int
    size: int
    total_elements: int = pydantic.Field(alias="totalElements")
    total_pages: int = pydantic.Field(alias="totalPages")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RowPrice(pydantic.BaseModel):
    amount_micros: int = pydantic.Field(alias="amountMicros")
    label: str
    quantity: int
    row_key: str = pydantic.Field(alias="rowKey")
    unit_price_micros: int = pydantic.Field(alias="unitPriceMicros")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RowReceipt(pydantic.BaseModel):
    body: KeptPage | None
    body_sha256: str | None = pydantic.Field(default=None, alias="bodySha256")
    bytes: int
    duration_millis: int = pydantic.Field(alias="durationMillis")
    final_url: str | None = pydantic.Field(default=None, alias="finalUrl")
    group_id: str = pydantic.Field(alias="groupId")
    job_id: str = pydantic.Field(alias="jobId")
    price: RowPrice | None
    row_id: str = pydantic.Field(alias="rowId")
    rows: int
    scraped_at: str | None = pydantic.Field(default=None, alias="scrapedAt")
    scraper_id: str = pydantic.Field(alias="scraperId")
    status: int
    tier: str
    tries: list[RowTry]
    url: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RowTry(pydantic.BaseModel):
    code: str | None = None
    duration_millis: int = pydantic.Field(alias="durationMillis")
    status: int | None = None
    tier: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RulePreview(pydantic.BaseModel):
    output: typing.Any
    rate: typing.Any | None = None
    rate_date: str | None = pydantic.Field(default=None, alias="rateDate")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RunDiff(pydantic.BaseModel):
    from_: str = pydantic.Field(alias="from")
    has_more: bool = pydantic.Field(alias="hasMore")
    items: list[RowChange]
    key: list[str]
    next_cursor: str | None = pydantic.Field(default=None, alias="nextCursor")
    summary: RunDiffSummary | None
    to: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RunDiffSummary(pydantic.BaseModel):
    added: int
    changed: int
    removed: int
    unchanged: int


class RunEstimate(pydantic.BaseModel):
    affordable: bool
    balance_micros: int = pydantic.Field(alias="balanceMicros")
    links: int
    max_micros: int = pydantic.Field(alias="maxMicros")
    min_micros: int = pydantic.Field(alias="minMicros")
    pages: int
    runs_considered: int = pydantic.Field(alias="runsConsidered")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RunOddities(pydantic.BaseModel):
    compared_with: list[str] = pydantic.Field(alias="comparedWith")
    job_id: str = pydantic.Field(alias="jobId")
    oddities: list[RunOddity]

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RunOddity(pydantic.BaseModel):
    aspect: str
    field: str
    text: str


class RunProfile(pydantic.BaseModel):
    fields: list[FieldProfile]
    job_id: str = pydantic.Field(alias="jobId")
    more_fields: bool = pydantic.Field(alias="moreFields")
    rows: int
    scraper_id: str = pydantic.Field(alias="scraperId")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RunStats(pydantic.BaseModel):
    avg_rows: float = pydantic.Field(alias="avgRows")
    failures: int
    last_n_runs: int = pydantic.Field(alias="lastNRuns")
    successes: int

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RunStatsInput(pydantic.BaseModel):
    avg_rows: float | None = pydantic.Field(default=None, alias="avgRows")
    failures: int | None = None
    last_n_runs: int | None = pydantic.Field(default=None, alias="lastNRuns")
    successes: int | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class RunsOfGroup(pydantic.BaseModel):
    group_id: str = pydantic.Field(alias="groupId")
    jobs: list[LaunchedRun]
    skipped: list[SkippedScraper]
    skipped_total: int = pydantic.Field(alias="skippedTotal")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SanitizedRow(pydantic.BaseModel):
    pass


class SanitizedRowPage(pydantic.BaseModel):
    content: list[SanitizedRow]
    number: int
    size: int
    total_elements: int = pydantic.Field(alias="totalElements")
    total_pages: int = pydantic.Field(alias="totalPages")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Schema(pydantic.BaseModel):
    content: dict[str, typing.Any]
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    customer_ref: str | None = pydantic.Field(
        default=None, alias="customerRef"
    )
    description: str
    domain_patterns: list[str] = pydantic.Field(alias="domainPatterns")
    id: str
    name: str
    template_id: str = pydantic.Field(alias="templateId")
    template_name: str = pydantic.Field(alias="templateName")
    type: str
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")
    version: int

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SchemaInput(pydantic.BaseModel):
    content: dict[str, typing.Any]
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    customer_ref: str | None = pydantic.Field(
        default=None, alias="customerRef"
    )
    description: str | None = None
    domain_patterns: list[str] | None = pydantic.Field(
        default=None, alias="domainPatterns"
    )
    id: str | None = None
    name: str | None = None
    template_id: str | None = pydantic.Field(default=None, alias="templateId")
    template_name: str | None = pydantic.Field(
        default=None, alias="templateName"
    )
    type: str
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")
    version: int

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SchemaListEntry(pydantic.BaseModel):
    id: str
    name: str
    type: str
    version: int


class SchemaRef(pydantic.BaseModel):
    id: str


class SchemaRefInput(pydantic.BaseModel):
    id: str


class SchemaWithContent(pydantic.BaseModel):
    content: typing.Any
    id: str


class SchemaWithContentInput(pydantic.BaseModel):
    content: typing.Any | None = None
    id: str


class Scraper(pydantic.BaseModel):
    config: ScraperConfig | None
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    effective_retention_count: int | None = pydantic.Field(
        default=None, alias="effectiveRetentionCount"
    )
    group_ref: str = pydantic.Field(alias="groupRef")
    id: str
    items_config: list[Field] = pydantic.Field(alias="itemsConfig")
    last_run_state: str | None = pydantic.Field(
        default=None, alias="lastRunState"
    )
    name: str
    next_start: str | None = pydantic.Field(default=None, alias="nextStart")
    post_process_rules: list[PostProcessRule] = pydantic.Field(
        alias="postProcessRules"
    )
    schedule: str
    schedule_timezone: str = pydantic.Field(alias="scheduleTimezone")
    schema: SchemaRef | None
    source_config: SourceConfig = pydantic.Field(alias="sourceConfig")
    type: str
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class ScraperConfig(pydantic.BaseModel):
    endpoint_tag: str | None = pydantic.Field(
        default=None, alias="endpointTag"
    )
    keep_body_days: int | None = pydantic.Field(
        default=None, alias="keepBodyDays"
    )
    politeness: Politeness | None = None
    retention_count: int | None = pydantic.Field(
        default=None, alias="retentionCount"
    )
    tiers: list[str] | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class ScraperConfigInput(pydantic.BaseModel):
    endpoint_tag: str | None = pydantic.Field(
        default=None, alias="endpointTag"
    )
    keep_body_days: int | None = pydantic.Field(
        default=None, alias="keepBodyDays"
    )
    politeness: PolitenessInput | None = None
    retention_count: int | None = pydantic.Field(
        default=None, alias="retentionCount"
    )
    tiers: list[str] | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class ScraperCursorPage(pydantic.BaseModel):
    has_more: bool = pydantic.Field(alias="hasMore")
    items: list[Scraper]
    next_cursor: str | None = pydantic.Field(default=None, alias="nextCursor")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class ScraperGroup(pydantic.BaseModel):
    data_table: str = pydantic.Field(alias="dataTable")
    id: str
    name: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class ScraperGroupInput(pydantic.BaseModel):
    data_table: str | None = pydantic.Field(default=None, alias="dataTable")
    id: str | None = None
    name: str | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class ScraperInput(pydantic.BaseModel):
    config: ScraperConfigInput | None = None
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    effective_retention_count: int | None = pydantic.Field(
        default=None, alias="effectiveRetentionCount"
    )
    group_ref: str = pydantic.Field(alias="groupRef")
    id: str | None = None
    items_config: list[FieldInput] | None = pydantic.Field(
        default=None, alias="itemsConfig"
    )
    last_run_state: str | None = pydantic.Field(
        default=None, alias="lastRunState"
    )
    name: str
    next_start: str | None = pydantic.Field(default=None, alias="nextStart")
    post_process_rules: list[PostProcessRuleInput] | None = pydantic.Field(
        default=None, alias="postProcessRules"
    )
    schedule: str | None = None
    schedule_timezone: str | None = pydantic.Field(
        default=None, alias="scheduleTimezone"
    )
    schema: SchemaRefInput | None = None
    source_config: SourceConfigInput = pydantic.Field(alias="sourceConfig")
    type: str
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class ScraperProposal(pydantic.BaseModel):
    execution_time_sec: float = pydantic.Field(alias="executionTimeSec")
    sample_data: list[Row] = pydantic.Field(alias="sampleData")
    scraper_d_t_o: Scraper = pydantic.Field(alias="scraperDTO")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class ShareInput(pydantic.BaseModel):
    email: str
    permission: str | None = None


class SignUpInput(pydantic.BaseModel):
    agree_with_terms: bool = pydantic.Field(alias="agreeWithTerms")
    customer_unique_ref: str | None = pydantic.Field(
        default=None, alias="customerUniqueRef"
    )
    email: str
    firstname: str
    lastname: str
    plan: str | None = None
    statistic: CustomerStatisticInput | None = None
    subscription_status: str | None = pydantic.Field(
        default=None, alias="subscriptionStatus"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Site(pydantic.BaseModel):
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    id: str
    link_count: int = pydantic.Field(alias="linkCount")
    links: list[SiteLink] | None = None
    links_truncated: bool = pydantic.Field(alias="linksTruncated")
    name: str
    scraper_ref: str = pydantic.Field(alias="scraperRef")
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SiteInput(pydantic.BaseModel):
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    id: str | None = None
    link_count: int | None = pydantic.Field(default=None, alias="linkCount")
    links: list[SiteLinkInput]
    links_truncated: bool | None = pydantic.Field(
        default=None, alias="linksTruncated"
    )
    name: str
    scraper_ref: str = pydantic.Field(alias="scraperRef")
    updated_at: str | None = pydantic.Field(default=None, alias="updatedAt")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SiteLink(pydantic.BaseModel):
    curl: str
    state: str
    title: str
    url: str


class SiteLinkInput(pydantic.BaseModel):
    curl: str | None = None
    state: str | None = None
    title: str | None = None
    url: str


class SiteLinkPage(pydantic.BaseModel):
    content: list[SiteLink]
    number: int
    size: int
    total_elements: int = pydantic.Field(alias="totalElements")
    total_pages: int = pydantic.Field(alias="totalPages")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SitemapEntry(pydantic.BaseModel):
    image: str | None = None
    image_title: str | None = pydantic.Field(default=None, alias="imageTitle")
    last_seen: str = pydantic.Field(alias="lastSeen")
    url: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SitemapEntryPage(pydantic.BaseModel):
    content: list[SitemapEntry]
    number: int
    size: int
    total_elements: int = pydantic.Field(alias="totalElements")
    total_pages: int = pydantic.Field(alias="totalPages")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SkippedScraper(pydantic.BaseModel):
    reason: str
    scraper_id: str = pydantic.Field(alias="scraperId")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SourceConfig(pydantic.BaseModel):
    curl: str | None = None
    engine: str | None = None
    pagination: Pagination | None = None
    prelaunch: Prelaunch | None = None
    queries: list[str] | None = None
    try_with_hidden_data: bool | None = pydantic.Field(
        default=None, alias="tryWithHiddenData"
    )
    url: str | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SourceConfigInput(pydantic.BaseModel):
    curl: str | None = None
    engine: str | None = None
    pagination: PaginationInput | None = None
    prelaunch: PrelaunchInput | None = None
    queries: list[str] | None = None
    try_with_hidden_data: bool | None = pydantic.Field(
        default=None, alias="tryWithHiddenData"
    )
    url: str | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Start(pydantic.BaseModel):
    at: str | None = None
    launched: int
    missed: int
    outcome: str
    reason: str | None = None
    skipped: int


class StartTypeForGroup(pydantic.BaseModel):
    next_start: str | None = pydantic.Field(default=None, alias="nextStart")
    schedule: str
    scraper_id: str = pydantic.Field(alias="scraperId")
    start_type: str = pydantic.Field(alias="startType")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class StartedTopUp(pydantic.BaseModel):
    session_id: str = pydantic.Field(alias="sessionId")
    url: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Starts(pydantic.BaseModel):
    group_id: str = pydantic.Field(alias="groupId")
    next_start: str | None = pydantic.Field(default=None, alias="nextStart")
    schedule: str
    schedule_timezone: str = pydantic.Field(alias="scheduleTimezone")
    scraper_id: str | None = pydantic.Field(default=None, alias="scraperId")
    start_type: str = pydantic.Field(alias="startType")
    starts: list[Start]

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class StreamTicket(pydantic.BaseModel):
    expires_at: str | None = pydantic.Field(default=None, alias="expiresAt")
    ticket: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Subscription(pydantic.BaseModel):
    current_period_end: str | None = pydantic.Field(
        default=None, alias="currentPeriodEnd"
    )
    payment: Payment | None
    plan: str | None = None
    scheduled_plan: str | None = pydantic.Field(
        default=None, alias="scheduledPlan"
    )
    status: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class TokenRule(pydantic.BaseModel):
    expression: str
    name: str
    source: str
    validate_pattern: str | None = pydantic.Field(
        default=None, alias="validatePattern"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class TokenRuleInput(pydantic.BaseModel):
    expression: str
    name: str
    source: str
    validate_pattern: str | None = pydantic.Field(
        default=None, alias="validatePattern"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class TopUpInput(pydantic.BaseModel):
    amount_cents: int = pydantic.Field(alias="amountCents")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class TopUpStatus(pydantic.BaseModel):
    status: str


class Transaction(pydantic.BaseModel):
    amount_micros: int = pydantic.Field(alias="amountMicros")
    balance_after_micros: int | None = pydantic.Field(
        default=None, alias="balanceAfterMicros"
    )
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    free_requests_delta: int = pydantic.Field(alias="freeRequestsDelta")
    group_id: str | None = pydantic.Field(default=None, alias="groupId")
    id: str
    job_id: str | None = pydantic.Field(default=None, alias="jobId")
    lines: list[TransactionLine]
    scraper_id: str | None = pydantic.Field(default=None, alias="scraperId")
    settled_at: str | None = pydantic.Field(default=None, alias="settledAt")
    source: str | None = None
    status: str
    type: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class TransactionCursorPage(pydantic.BaseModel):
    has_more: bool = pydantic.Field(alias="hasMore")
    items: list[Transaction]
    next_cursor: str | None = pydantic.Field(default=None, alias="nextCursor")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class TransactionLine(pydantic.BaseModel):
    amount_micros: int = pydantic.Field(alias="amountMicros")
    free_pages: int = pydantic.Field(alias="freePages")
    label: str
    pages: int
    unbilled_pages: int = pydantic.Field(alias="unbilledPages")
    unit_price_micros: int = pydantic.Field(alias="unitPriceMicros")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class TransactionPage(pydantic.BaseModel):
    content: list[Transaction]
    page: int
    size: int
    total_elements: int = pydantic.Field(alias="totalElements")
    total_pages: int = pydantic.Field(alias="totalPages")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class URLPreviewInput(pydantic.BaseModel):
    group_id: str = pydantic.Field(alias="groupId")
    id: str | None = None
    items_config: list[FieldInput] | None = pydantic.Field(
        default=None, alias="itemsConfig"
    )
    name: str
    url: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class UnreadNotifications(pydantic.BaseModel):
    unread: int


class UploadLimits(pydantic.BaseModel):
    max_cell_bytes: int = pydantic.Field(alias="maxCellBytes")
    max_column_name_length: int = pydantic.Field(alias="maxColumnNameLength")
    max_columns: int = pydantic.Field(alias="maxColumns")
    max_heavy_imports: int = pydantic.Field(alias="maxHeavyImports")
    max_json_body_bytes: int = pydantic.Field(alias="maxJsonBodyBytes")
    max_json_uploads: int = pydantic.Field(alias="maxJsonUploads")
    max_name_length: int = pydantic.Field(alias="maxNameLength")
    max_row_bytes: int = pydantic.Field(alias="maxRowBytes")
    max_upload_bytes: UploadSizes = pydantic.Field(alias="maxUploadBytes")
    max_upload_seconds: int = pydantic.Field(alias="maxUploadSeconds")
    min_upload_bits_per_second: int = pydantic.Field(alias="minUploadBitsPerSecond")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class UploadSizes(pydantic.BaseModel):
    csv: int
    jsonl: int
    xlsx: int


class Wallet(pydantic.BaseModel):
    balance_micros: int = pydantic.Field(alias="balanceMicros")
    currency: str
    free_requests_remaining: int = pydantic.Field(alias="freeRequestsRemaining")
    low_balance: bool = pydantic.Field(alias="lowBalance")
    low_balance_threshold_micros: int = pydantic.Field(
        alias="lowBalanceThresholdMicros"
    )
    wallet_billing_enabled: bool = pydantic.Field(alias="walletBillingEnabled")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class WalletPreferences(pydantic.BaseModel):
    low_balance_threshold_micros: int = pydantic.Field(
        alias="lowBalanceThresholdMicros"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class WalletPreferencesInput(pydantic.BaseModel):
    low_balance_threshold_micros: int = pydantic.Field(
        alias="lowBalanceThresholdMicros"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class Webhook(pydantic.BaseModel):
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    disabled_because: str | None = pydantic.Field(
        default=None, alias="disabledBecause"
    )
    dropped_events: int = pydantic.Field(alias="droppedEvents")
    enabled: bool
    events: list[str]
    failing_since: str | None = pydantic.Field(
        default=None, alias="failingSince"
    )
    former_secret_until: str | None = pydantic.Field(
        default=None, alias="formerSecretUntil"
    )
    id: str
    logged_delivery_count: int = pydantic.Field(alias="loggedDeliveryCount")
    url: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class WebhookDelivery(pydantic.BaseModel):
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    error: str | None = None
    event: str
    id: str
    next_try: str | None = pydantic.Field(default=None, alias="nextTry")
    state: str
    status: int | None = None
    tried_at: str | None = pydantic.Field(default=None, alias="triedAt")
    tries: int

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class WebhookDeliveryPage(pydantic.BaseModel):
    content: list[WebhookDelivery]
    number: int
    size: int
    total_elements: int = pydantic.Field(alias="totalElements")
    total_pages: int = pydantic.Field(alias="totalPages")

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class WebhookInput(pydantic.BaseModel):
    enabled: bool | None = None
    events: list[str]
    url: str


class WebhookList(pydantic.BaseModel):
    webhooks: list[Webhook]


class WebhookWithSecret(pydantic.BaseModel):
    created_at: str | None = pydantic.Field(default=None, alias="createdAt")
    disabled_because: str | None = pydantic.Field(
        default=None, alias="disabledBecause"
    )
    dropped_events: int = pydantic.Field(alias="droppedEvents")
    enabled: bool
    events: list[str]
    failing_since: str | None = pydantic.Field(
        default=None, alias="failingSince"
    )
    former_secret_until: str | None = pydantic.Field(
        default=None, alias="formerSecretUntil"
    )
    id: str
    logged_delivery_count: int = pydantic.Field(alias="loggedDeliveryCount")
    secret: str
    url: str

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SvcSignUpHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcGetAdditionalInfo200Response(pydantic.BaseModel):
    pass


class SvcPutAdditionalInfo200Response(pydantic.BaseModel):
    pass


class SvcPutAdditionalInfoApplicationJson(pydantic.BaseModel):
    pass


class SvcDeleteAdditionalInfo200Response(pydantic.BaseModel):
    pass


class SvcGetNotificationPreferences200Response(pydantic.BaseModel):
    pass


class SvcPutNotificationPreferences200Response(pydantic.BaseModel):
    pass


class SvcPutNotificationPreferencesApplicationJson(pydantic.BaseModel):
    pass


class SvcGiveFeedbackHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcListPlans200Response(ListResponse[PlanFeatures]):
    pass


class SvcListCustomerSchemas200Response(ListResponse[SchemaListEntry]):
    pass


class SvcCreateCustomerSchemaHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcDeleteCustomerSchemaHeaders(pydantic.BaseModel):
    x__preview__token: str = pydantic.Field(serialization_alias="X-Preview-Token")
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcListSchemaItems200Response(ListResponse[CommonField]):
    pass


class SvcCreateScraperHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcReleaseScraperJobHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcPreviewScraperFromCurl200Response(ListResponse[ScraperProposal]):
    pass


class SvcPreviewScraperFromUrl200Response(ListResponse[ScraperProposal]):
    pass


class SvcDeleteRunDataHeaders(pydantic.BaseModel):
    x__preview__token: str = pydantic.Field(serialization_alias="X-Preview-Token")
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcListKeptExports200Response(ListResponse[KeptExport]):
    pass


class SvcKeepExportHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcDeleteKeptExportHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcListCategories200Response(ListResponse[Category]):
    pass


class SvcPutCategoryHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcDeleteCategoryHeaders(pydantic.BaseModel):
    x__preview__token: str = pydantic.Field(serialization_alias="X-Preview-Token")
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcMergeRunsHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcPutGroupHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcListGroups200Response(ListResponse[Group]):
    pass


class SvcDeleteGroupHeaders(pydantic.BaseModel):
    x__preview__token: str = pydantic.Field(serialization_alias="X-Preview-Token")
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcMatchGroupHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcRunGroupHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcRunGroupByPostHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcPutGroupStartType200Response(ListResponse[StartTypeForGroup]):
    pass


class SvcPutGroupStartTypeHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcStopGroupHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcStopGroupByPostHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcListScraperJobErrors200Response(ListResponse[LinkError]):
    pass


class SvcPreviewScraperRuleApplicationJson(pydantic.BaseModel):
    rule: PostProcessRuleInput
    sample_value: typing.Any | None = pydantic.Field(
        default=None, alias="sampleValue"
    )

    model_config = pydantic.ConfigDict(populate_by_name=True, serialize_by_alias=True)


class SvcListSharedGroups200Response(ListResponse[Group]):
    pass


class SvcShareGroupApplicationJson(pydantic.BaseModel):
    pass


class SvcShareGroupHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcRevokeGroupShareHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcListGroupShares200Response(ListResponse[str]):
    pass


class SvcCreateScraperSiteHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcDeleteScraperSiteHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcRunScraperUrlListHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcCreateScraperV2Headers(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcDeleteScraperHeaders(pydantic.BaseModel):
    x__preview__token: str = pydantic.Field(serialization_alias="X-Preview-Token")
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcGetScraperSampleData200Response(ListResponse[Row]):
    pass


class SvcReExtractHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcUpdateScraperRetentionHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcRunScraperHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcRunScraperByPostHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


SvcGetScraperSite200Response = Site | None


class SvcStopScraperHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcStopScraperByPostHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcHarvestSitemaps200Response(pydantic.BaseModel):
    pass


class SvcHarvestSitemaps202Response(pydantic.BaseModel):
    pass


class SvcHarvestSitemapsHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcListPlanPrices200Response(ListResponse[PlanPrice]):
    pass


class SvcPaymentNoticeApplicationJson(pydantic.BaseModel):
    pass


class SvcPaymentNoticeHeaders(pydantic.BaseModel):
    stripe__signature: str = pydantic.Field(serialization_alias="Stripe-Signature")


class SvcListPrices200Response(ListResponse[Price]):
    pass


class SvcStartTopUpHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcCreateWebhookHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


class SvcRotateWebhookHeaders(pydantic.BaseModel):
    idempotency__key: str = pydantic.Field(serialization_alias="Idempotency-Key")


def get_subclasses_from_same_file() -> list[type[pydantic.BaseModel]]:
    """
    Due to how Python declares classes in a module,
    we need to update_forward_refs for all the schemas generated
    here in the situation where there are nested classes.
    """
    calling_frame = inspect.currentframe()
    if not calling_frame:
        return []
    else:
        calling_frame = calling_frame.f_back
    module = inspect.getmodule(calling_frame)

    subclasses = []
    for _, c in inspect.getmembers(module):
        if (
            inspect.isclass(c)
            and issubclass(c, pydantic.BaseModel)
            and c != pydantic.BaseModel
        ):
            subclasses.append(c)

    return subclasses


subclasses: list[type[pydantic.BaseModel]] = get_subclasses_from_same_file()
for c in subclasses:
    c.model_rebuild()
