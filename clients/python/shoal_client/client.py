from __future__ import annotations

import typing

from clientele import api as clientele_api

from . import config, schemas

client = clientele_api.APIClient(config=config.Config())


@client.get("/api/billing-history")
def svc_list_invoices(
    result: schemas.InvoicePage,
    page: int | None = None,
    size: int | None = None,
    status: str | None = None,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
) -> schemas.InvoicePage:
    """Lists the customer's invoices, newest first

    These are the invoices for subscriptions, as reported by the payment provider. Top-ups and charges are in the wallet's ledger.
    """
    return result


@client.get("/api/customer")
def svc_get_customer(
    result: schemas.Customer,
    with_stat: typing.Annotated[
        bool | None, clientele_api.Query(alias="withStat")
    ] = None,
) -> schemas.Customer:
    """Returns the customer's profile

    Access: read. Rate class: read.
    """
    return result


@client.post("/api/customer")
def svc_sign_up(
    result: schemas.Customer, data: schemas.SignUpInput
) -> schemas.Customer:
    """Signs the customer up

    The identity provider's user id becomes the customer's reference. Reference and e-mail address never change. With a token of an OpenID Connect issuer, the body must have the address that the issuer verified. If the customer's accounts sign in here, it must have the address of one of them.
    """
    return result


@client.put("/api/customer")
def svc_put_customer(
    result: schemas.Customer, data: schemas.CustomerInput
) -> schemas.Customer:
    """Changes the customer's name

    Access: write. Rate class: general.
    """
    return result


@client.get("/api/customer/preferences/additional-info")
def svc_get_additional_info(
    result: schemas.SvcGetAdditionalInfo200Response,
) -> schemas.SvcGetAdditionalInfo200Response:
    """Returns all keys and values that the customer stores

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/customer/preferences/additional-info")
def svc_put_additional_info(
    result: schemas.SvcPutAdditionalInfo200Response,
    data: schemas.SvcPutAdditionalInfoApplicationJson,
) -> schemas.SvcPutAdditionalInfo200Response:
    """Stores values under keys that the customer chooses

    Keys that are not named stay as they are. A customer has at most 100 keys, and 65,536 bytes of keys and values.
    """
    return result


@client.delete("/api/customer/preferences/additional-info/{key}")
def svc_delete_additional_info(
    result: schemas.SvcDeleteAdditionalInfo200Response, key: str
) -> schemas.SvcDeleteAdditionalInfo200Response:
    """Removes a key, and returns what remains

    Removing a key that does not exist changes nothing.
    """
    return result


@client.get("/api/customer/preferences/notifications")
def svc_get_notification_preferences(
    result: schemas.SvcGetNotificationPreferences200Response,
) -> schemas.SvcGetNotificationPreferences200Response:
    """Returns how the customer is notified of each event

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/customer/preferences/notifications")
def svc_put_notification_preferences(
    result: schemas.SvcPutNotificationPreferences200Response,
    data: schemas.SvcPutNotificationPreferencesApplicationJson,
) -> schemas.SvcPutNotificationPreferences200Response:
    """Sets how the customer is notified of each event

    Events that are not named stay as they are. The ways are EMAIL, IN_APP, BOTH and NONE. Notices that cannot be e-mailed appear in the application.
    """
    return result


@client.get("/api/customer/preferences/wallet")
def svc_get_wallet_preferences(
    result: schemas.WalletPreferences,
) -> schemas.WalletPreferences:
    """Returns the threshold below which the balance is low

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/customer/preferences/wallet")
def svc_put_wallet_preferences(
    result: schemas.WalletPreferences, data: schemas.WalletPreferencesInput
) -> schemas.WalletPreferences:
    """Sets the threshold below which the balance is low

    A new wallet's threshold is 5 EUR. If the balance is already below the new threshold, no notice is sent.
    """
    return result


@client.post("/api/events/ticket")
def svc_issue_ticket(result: schemas.StreamTicket) -> schemas.StreamTicket:
    """Makes a ticket that opens one stream of events

    For browser pages, which cannot send a bearer credential with a stream. A ticket is valid for a minute, once, on any server. Its stream ends when the credential that asked for it does. A page signed in by cookie needs none. Beyond 20 tickets of a customer, the oldest one is dropped.
    """
    return result


@client.post("/api/feedback")
def svc_give_feedback(
    result: schemas.Feedback, data: schemas.FeedbackInput
) -> schemas.Feedback:
    """Sends the customer's feedback to the operators of the service

    A customer may send feedback 10 times a day (UTC). It is kept for 400 days; beyond 200, the oldest is removed.
    """
    return result


@client.put("/api/key/generate")
def svc_generate_key(
    result: schemas.GeneratedKey,
    name: str,
    scope: str,
    expires_at: typing.Annotated[
        str | None, clientele_api.Query(alias="expiresAt")
    ] = None,
) -> schemas.GeneratedKey:
    """Makes an API key

    Only this answer holds the whole key. Its secret has 256 random bits. Keys of scope LLM_READ and LLM_FULL cannot make keys. An expired key is refused like an unknown one, and stays in the list until it is deleted.
    """
    return result


@client.get("/api/key/list")
def svc_list_keys(
    result: schemas.KeyList,
    q: str | None = None,
    sort: str | None = None,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
) -> schemas.KeyList:
    """Lists the API keys, oldest first, without their secrets

    Access: read. Rate class: read.
    """
    return result


@client.get("/api/key/whoami")
def svc_whoami(result: schemas.Identity) -> schemas.Identity:
    """Returns who the credential belongs to

    Access: read. Rate class: read.
    """
    return result


@client.delete("/api/key/{id}")
def svc_delete_key(result: None, id: str) -> None:
    """Revokes an API key at once

    A key may revoke any key of its customer, itself included; keys of scope LLM_READ cannot.
    """
    return result


@client.get("/api/notifications")
def svc_list_notifications(
    result: schemas.NotificationPage,
    unread: bool | None = None,
    page: int | None = None,
    size: int | None = None,
) -> schemas.NotificationPage:
    """Lists the customer's notifications, newest first

    Notifications are kept for 90 days. Beyond 1,000, the oldest read one is removed. If none was read, the newest one counts those that found no room.
    """
    return result


@client.post("/api/notifications/read")
def svc_read_notifications(
    result: schemas.UnreadNotifications,
) -> schemas.UnreadNotifications:
    """Marks all notifications as read

    Returns how many are then unread: those that came meanwhile.
    """
    return result


@client.get("/api/notifications/unread")
def svc_count_unread_notifications(
    result: schemas.UnreadNotifications,
) -> schemas.UnreadNotifications:
    """Counts the notifications that the customer has not read

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/notifications/{id}")
def svc_put_notification(
    result: schemas.UnreadNotifications, data: schemas.NotificationInput, id: str
) -> schemas.UnreadNotifications:
    """Marks a notification as read or unread

    Returns how many are then unread.
    """
    return result


@client.get("/api/plan-features")
def svc_list_plans(
    result: schemas.SvcListPlans200Response,
) -> schemas.SvcListPlans200Response:
    """Lists the legacy plans with their features and limits, by level

    A customer without a subscription is on pay-as-you-go. It has every feature and none of these limits.
    """
    return result


@client.get("/api/schema/customer")
def svc_list_customer_schemas(
    result: schemas.SvcListCustomerSchemas200Response,
    q: str | None = None,
    sort: str | None = None,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
) -> schemas.SvcListCustomerSchemas200Response:
    """Lists the customer's own schemas, oldest first

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/schema/customer")
def svc_create_customer_schema(
    result: schemas.Schema, data: schemas.SchemaInput
) -> schemas.Schema:
    """Creates a schema of the customer, or replaces the one with the given id

    The content is compiled: a schema that cannot check rows is refused, and the error says where. Runs that began before a change continue with the old schema.
    """
    return result


@client.delete("/api/schema/customer/{id}")
def svc_delete_customer_schema(
    result: None, id: str, token: str | None = None
) -> None:
    """Deletes a schema of the customer after a preview

    Needs the token of a preview, as ?token= or X-Preview-Token. Without ?token= or the header, a valid preview of the same deletion by the same customer is enough. AI_CONF scrapers that refer to the schema stay, and fail at their next run.
    """
    return result


@client.post("/api/schema/customer/{id}/preview-delete")
def svc_preview_delete_customer_schema(
    result: schemas.DeletionPreview, id: str
) -> schemas.DeletionPreview:
    """Shows what deleting a schema of the customer would do

    Show the warnings to the user before the deletion. The token is valid once, within 5 minutes, with the same parameters, unless what depends on the target changes meanwhile.
    """
    return result


@client.get("/api/schema/get/{id}")
def svc_get_schema(result: schemas.Schema, id: str) -> schemas.Schema:
    """Reads a schema of the customer, or a global one

    Access: read. Rate class: read.
    """
    return result


@client.get("/api/schema/items/existing")
def svc_list_schema_items(
    result: schemas.SvcListSchemaItems200Response,
) -> schemas.SvcListSchemaItems200Response:
    """Lists common field names with their JSON types

    AI_CONF finds these fields in pages' structured data; other names work, too.
    """
    return result


@client.put("/api/scraper")
def svc_create_scraper(
    result: schemas.Scraper, data: schemas.ScraperInput
) -> schemas.Scraper:
    """Creates a scraper, or replaces the one with the given id

    Always send the whole scraper. An id that is not one of the customer's scrapers is refused. Types that this version cannot run are refused with type_not_runnable. For a FILE scraper, sent with its id, only name, groupRef and config.retentionCount may change; settings that it does not have are refused. Rows stay in the group in which they were stored. MARKETPLACE and SEARCH_ENGINE_SEARCH have fixed fields. Shop rows have position (in a list), title, url, price, priceMax, listPrice, currency, availability, condition and brand. They also have sku, gtin, mpn, productId, category, rating, reviewCount, image, images, description and platform. Search rows have position, title, url, snippet, kind, query and page. APPLICATION_LD_JSON makes a row for each thing in the page's structured data: a Product, each element of an ItemList, each variant of a ProductGroup. Its properties are columns. Names of nested properties are joined with an underscore (offers_price, brand_name). Several values become an array, and references are followed. itemsConfig may select and rename columns, by column or by path (offers.price). AI_CONF has the properties of its schema. A row that does not fit the schema is neither stored nor charged. If a page has only such rows, it ends with the error row_rejected. If the language model was asked for missing values and gave no answer, the error is model_unavailable or model_limit_reached. If the page states nothing and there is no model, it is no_rows.
    """
    return result


@client.post("/api/scraper-job-status/{id}/release")
def svc_release_scraper_job(result: schemas.Job, id: str) -> schemas.Job:
    """Releases a run that is held back, so that it counts as its scraper's last run

    In a group with quarantine, a run that is unlike earlier ones is held back; its quarantineReason says why. Once released, it counts, and later runs are compared with it, too. A run that is not held back stays as it is.
    """
    return result


@client.post("/api/scraper-simple/curl-based")
def svc_preview_scraper_from_curl(
    result: schemas.SvcPreviewScraperFromCurl200Response,
    data: schemas.CurlPreviewInput,
    max_charge_micros: typing.Annotated[
        int | None, clientele_api.Query(alias="maxChargeMicros")
    ] = None,
) -> schemas.SvcPreviewScraperFromCurl200Response:
    """Proposes scrapers for the answer to a request given as a curl command

    Every strategy that fits the page is tried. Those that make rows are proposed, best first, each with its first rows. A run would give the same rows. If nothing was found, the array is empty and the header Shoal-Reason says why. The page is fetched and charged like any other. If nothing was found, it costs nothing. Nothing is saved. The call waits up to 55 s; disconnecting ends it.
    """
    return result


@client.post("/api/scraper-simple/page")
def svc_preview_page(
    result: schemas.PagePreview,
    data: schemas.PagePreviewInput,
    use_cache: typing.Annotated[
        bool | None, clientele_api.Query(alias="useCache")
    ] = None,
    max_charge_micros: typing.Annotated[
        int | None, clientele_api.Query(alias="maxChargeMicros")
    ] = None,
) -> schemas.PagePreview:
    """Shows a page to pick fields on

    The page comes as elements and texts without attributes, so that nothing in it can run, load or send. Scripts, styles and images are left out, and so is everything beyond 480 KiB or 10,000 elements. The page is fetched and charged like any other, and is kept for 10 minutes. Until then, picks on it and calls for the same address are free, unless the cache loses it. Nothing is saved.
    """
    return result


@client.post("/api/scraper-simple/page/pick")
def svc_pick_on_page(
    result: schemas.PagePick, data: schemas.PagePickInput
) -> schemas.PagePick:
    """Makes a field from an element of a page, and rows from all fields

    The page comes from POST /api/scraper-simple/page, and is kept for 10 minutes: a pick fetches nothing and costs nothing. The first field of MULTIPLE_PRODUCTS matches all elements in positions like the picked one. Each is a row, and later fields are found within each row. Rows are made from the kept page. If its end was left out, a run has more rows.
    """
    return result


@client.post("/api/scraper-simple/preview-from-url")
def svc_preview_from_url(
    result: schemas.FieldsPreview,
    data: schemas.FieldsPreviewInput,
    max_charge_micros: typing.Annotated[
        int | None, clientele_api.Query(alias="maxChargeMicros")
    ] = None,
) -> schemas.FieldsPreview:
    """Finds fields on a page by name

    The names are hints. They are looked up in the page's structured data, in its tables and label lists, and in elements with such names. What a proposal for the page would find counts, too. If the server has a language model, it is asked for the rest. If the page is a list, the first item counts. The page is fetched and charged like any other. If none of the fields is found, it costs nothing, and the header Shoal-Reason says why. Nothing is saved.
    """
    return result


@client.post("/api/scraper-simple/url-based")
def svc_preview_scraper_from_url(
    result: schemas.SvcPreviewScraperFromUrl200Response,
    data: schemas.URLPreviewInput,
    try_with_hidden_data: typing.Annotated[
        bool | None, clientele_api.Query(alias="tryWithHiddenData")
    ] = None,
    use_cache: typing.Annotated[
        bool | None, clientele_api.Query(alias="useCache")
    ] = None,
    max_charge_micros: typing.Annotated[
        int | None, clientele_api.Query(alias="maxChargeMicros")
    ] = None,
) -> schemas.SvcPreviewScraperFromUrl200Response:
    """Proposes scrapers for a page

    Every strategy that fits the page is tried. Those that make rows are proposed, best first, each with its first rows. A run would give the same rows. If nothing was found, the array is empty and the header Shoal-Reason says why. The page is fetched and charged like any other. If nothing was found, it costs nothing. Nothing is saved. The call waits up to 55 s; disconnecting ends it.
    """
    return result


@client.get("/api/scraper/config/parameters")
def svc_get_config_parameters(result: schemas.UploadLimits) -> schemas.UploadLimits:
    """Returns the limits of the caller's file uploads

    Access: read. Rate class: read.
    """
    return result


@client.get("/api/scraper/data")
def svc_get_data(
    result: schemas.RowCursorPage,
    scraper_id: typing.Annotated[
        str | None, clientele_api.Query(alias="scraperId")
    ] = None,
    group_id: typing.Annotated[
        str | None, clientele_api.Query(alias="groupId")
    ] = None,
    job_id: typing.Annotated[
        str | None, clientele_api.Query(alias="jobId")
    ] = None,
    is_last_run: typing.Annotated[
        bool | None, clientele_api.Query(alias="isLastRun")
    ] = None,
    categories: list[str] | None = None,
    filters: str | None = None,
    fields: list[str] | None = None,
    without: list[str] | None = None,
    sort: str | None = None,
    limit: int | None = None,
    skip: int | None = None,
    cursor: str | None = None,
) -> schemas.RowCursorPage:
    """Reads all rows, page by page, by cursor

    Rows come in the order in which they were stored, unless sort names a field. A read sees the rows that existed when it began; rows stored later need a new read. A cursor is refused once rows that it reads are deleted. A page of large rows may have fewer than limit although more follow. If a scraper had runs in several groups, its rows come group by group, unless sorted. If nothing matches because text such as 10.50 € is not compared with numbers, the header Shoal-Reason says so. When sorted by a field, numbers and numeric text come first. Other text follows by code point (its first 256 bytes), then booleans, then other values. Rows with null or without the field come last in either direction. Equal rows stay in the order in which they were stored. Sorting scans all rows for each of the first two pages, and then once for each 50,000 rows. Other pages are cheap within two minutes of the previous one. To reach a distant page, use skip.
    """
    return result


@client.delete("/api/scraper/data")
def svc_delete_run_data(
    result: None,
    scraper_job_status_id: typing.Annotated[
        str, clientele_api.Query(alias="scraperJobStatusId")
    ],
    token: str | None = None,
) -> None:
    """Deletes a run's rows after a preview

    Needs the token of a preview, as ?token= or X-Preview-Token. Without ?token= or the header, a valid preview of the same deletion by the same customer is enough. A run under way is stopped. Its rows are hidden at once and deleted in the background. The run before it becomes the scraper's last run. Its record and its charges stay.
    """
    return result


@client.get("/api/scraper/data/diff")
def svc_diff_runs(
    result: schemas.RunDiff,
    from_: typing.Annotated[str, clientele_api.Query(alias="from")],
    to: str,
    key: list[str] | None = None,
    fields: list[str] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    format: str | None = None,
) -> schemas.RunDiff:
    """Compares the rows of two runs of a scraper

    It returns the rows that were added, removed or changed, with their previous values. Both runs must have ended. A null member counts as absent. Added and changed rows come first, in the order of the newer run. Removed rows follow in the order of the older run. Beyond 200,000 rows, this order holds within each part. The next page is cheap within two minutes of the previous one. After that both runs may be compared again, so read a long comparison as jsonl. A key that no row has is refused.
    """
    return result


@client.get("/api/scraper/data/exports")
def svc_list_kept_exports(
    result: schemas.SvcListKeptExports200Response,
) -> schemas.SvcListKeptExports200Response:
    """Lists the customer's kept exports, newest first

    Access: read. Feature of plans: DATA_EXPORT. Rate class: read.
    """
    return result


@client.post("/api/scraper/data/exports")
def svc_keep_export(
    result: schemas.KeptExport,
    scraper_id: typing.Annotated[
        str | None, clientele_api.Query(alias="scraperId")
    ] = None,
    group_id: typing.Annotated[
        str | None, clientele_api.Query(alias="groupId")
    ] = None,
    job_id: typing.Annotated[
        str | None, clientele_api.Query(alias="jobId")
    ] = None,
    is_last_run: typing.Annotated[
        bool | None, clientele_api.Query(alias="isLastRun")
    ] = None,
    categories: list[str] | None = None,
    filters: str | None = None,
    fields: list[str] | None = None,
    without: list[str] | None = None,
    sort: str | None = None,
    format: str | None = None,
    limit: int | None = None,
    bom: bool | None = None,
    guard: bool | None = None,
) -> schemas.KeptExport:
    """Writes rows to a file that is kept for 7 days

    The file has the rows as of the call, in the format of GET /api/scraper/data/export. It is written in the background: its state is WAITING, then READY or FAILED. It fails if rows are removed before it is written. It can neither be written nor read once its creator may no longer read the rows. A customer keeps at most 20 exports and 8 GiB of files. A file has at most 4 GiB.
    """
    return result


@client.get("/api/scraper/data/exports/{id}")
def svc_get_kept_export(result: schemas.KeptExport, id: str) -> schemas.KeptExport:
    """Returns the state of a kept export

    Access: read. Feature of plans: DATA_EXPORT. Rate class: read.
    """
    return result


@client.delete("/api/scraper/data/exports/{id}")
def svc_delete_kept_export(result: None, id: str) -> None:
    """Removes a kept export with its file, or cancels it

    Access: write. Rate class: general.
    """
    return result


@client.get("/api/scraper/data/group/{id}")
def svc_get_group_data(
    result: schemas.RowPage,
    id: str,
    page: int | None = None,
    size: int | None = None,
    sort: list[str] | None = None,
    categories: list[str] | None = None,
    filters: str | None = None,
    is_last_run: typing.Annotated[
        bool | None, clientele_api.Query(alias="isLastRun")
    ] = None,
    scraper_id: typing.Annotated[
        str | None, clientele_api.Query(alias="scraperId")
    ] = None,
) -> schemas.RowPage:
    """Reads a group's rows by page

    If nothing matches because text such as 10.50 € is not compared with numbers, the header Shoal-Reason says so.
    """
    return result


@client.get("/api/scraper/data/group/{id}/categories")
def svc_list_categories(
    result: schemas.SvcListCategories200Response, id: str
) -> schemas.SvcListCategories200Response:
    """Lists the categories of a group, by name

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/scraper/data/group/{id}/category")
def svc_put_category(
    result: schemas.Category, data: schemas.CategoryInput, id: str
) -> schemas.Category:
    """Saves a filter of a group's rows under a name

    Reads and downloads of the group take it in categories. An existing category of that name gets the new filter, and keeps its id. A group has at most 100 categories, a customer's groups together 1,000.
    """
    return result


@client.delete("/api/scraper/data/group/{id}/category/{category_id}")
def svc_delete_category(
    result: None, id: str, category_id: str, token: str | None = None
) -> None:
    """Deletes a category after a preview

    Needs the token of a preview, as ?token= or X-Preview-Token. Without ?token= or the header, a valid preview of the same deletion by the same customer is enough. Rows stay.
    """
    return result


@client.post("/api/scraper/data/group/{id}/category/{category_id}/preview-delete")
def svc_preview_delete_category(
    result: schemas.DeletionPreview, id: str, category_id: str
) -> schemas.DeletionPreview:
    """Shows what deleting a category would do

    Show the warnings to the user before the deletion. The token is valid once, within 5 minutes, with the same parameters, unless what depends on the target changes meanwhile.
    """
    return result


@client.get("/api/scraper/data/group/{id}/client")
def svc_get_group_data_client(
    result: schemas.SanitizedRowPage,
    id: str,
    page: int | None = None,
    size: int | None = None,
    sort: list[str] | None = None,
    categories: list[str] | None = None,
    filters: str | None = None,
    is_last_run: typing.Annotated[
        bool | None, clientele_api.Query(alias="isLastRun")
    ] = None,
    scraper_id: typing.Annotated[
        str | None, clientele_api.Query(alias="scraperId")
    ] = None,
) -> schemas.SanitizedRowPage:
    """Reads a group's rows by page, with every scraped text marked as data

    Each text becomes an object that says where it was scraped. It is cut at 2,000 characters. Control characters except tabs and line breaks are removed, and so are those that override the writing direction. Otherwise texts are unchanged. If nothing matches because text such as 10.50 € is not compared with numbers, the header Shoal-Reason says so. Numbers, booleans, null and members that begin with _ stay as they are.
    """
    return result


@client.put(
    "/api/scraper/data/group/{id}/merge",
    response_map={200: schemas.Merged, 202: schemas.Merged},
)
def svc_merge_runs(
    result: schemas.Merged,
    id: str,
    scraper_job_status_ids: typing.Annotated[
        list[str], clientele_api.Query(alias="scraperJobStatusIds")
    ],
) -> schemas.Merged:
    """Merges the rows of a group's runs by their title

    A title is a stable identifier, such as a barcode. Titles are compared without surrounding spaces; a number is compared as text. Rows with the same title in two or more runs become one row. It has the fields of the run named first. The other runs fill in fields that are missing, null or empty there. If a run has several rows of a title, the first counts. Only the latest COMPLETED run of each scraper of the group is merged; other runs are ignored. The rows go to a group of the same name with the suffix _enriched. That group counts towards no limit, and has enrichedOf in the list. A new merge replaces the rows of the last one; only one runs at a time. The call waits up to 55 s, then returns the run; the same Idempotency-Key waits again. A merge that makes no row answers 422, and the rows of the last one stay.
    """
    return result


@client.get("/api/scraper/data/oddities")
def svc_find_run_oddities(
    result: schemas.RunOddities,
    job_id: typing.Annotated[str, clientele_api.Query(alias="jobId")],
) -> schemas.RunOddities:
    """Reports what is unusual about a run

    The run is compared with up to 10 earlier COMPLETED runs of its scraper that still have rows. It reports what is far from all of them: row counts, shares of rows with a value, types, values, lengths and varieties. Nothing is changed.
    """
    return result


@client.post("/api/scraper/data/preview-delete")
def svc_preview_delete_run_data(
    result: schemas.DeletionPreview,
    scraper_job_status_id: typing.Annotated[
        str, clientele_api.Query(alias="scraperJobStatusId")
    ],
) -> schemas.DeletionPreview:
    """Shows what deleting a run's rows would do

    Show the warnings to the user before the deletion. The token is valid once, within 5 minutes, with the same parameters, unless what depends on the target changes meanwhile. rows counts only an ended run's rows; a run under way (openRuns) is stopped.
    """
    return result


@client.get("/api/scraper/data/profile")
def svc_profile_run(
    result: schemas.RunProfile,
    job_id: typing.Annotated[str, clientele_api.Query(alias="jobId")],
) -> schemas.RunProfile:
    """Describes the fields of a run's rows

    For each field it returns how many rows have a value, and of which types. It also returns the smallest and greatest number, about how many different values there are, and examples. The sums are stored with each page, so the answer is fast even for long runs.
    """
    return result


@client.get("/api/scraper/data/{row_id}/receipt")
def svc_get_row_receipt(result: schemas.RowReceipt, row_id: str) -> schemas.RowReceipt:
    """Returns the receipt of a row: where it comes from

    A row's id is its _rowId. The receipt is that of the page that the row came from. It exists as long as the row. Added files can keep a row for more than 90 days. Then its receipt has its ids and its time.
    """
    return result


@client.put("/api/scraper/group")
def svc_put_group(result: schemas.Group, data: schemas.GroupInput) -> schemas.Group:
    """Creates a group, or updates the one with the given id

    Members that an update does not name stay as they are. An id that is not one of the customer's groups is refused. With retentionCount, the rows of older runs are deleted in the background when a run ends.
    """
    return result


@client.get("/api/scraper/group/list")
def svc_list_groups(
    result: schemas.SvcListGroups200Response,
    q: str | None = None,
    sort: str | None = None,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
) -> schemas.SvcListGroups200Response:
    """Lists the customer's own groups, oldest first

    Access: read. Rate class: read.
    """
    return result


@client.delete("/api/scraper/group/{id}")
def svc_delete_group(
    result: None,
    id: str,
    with_data: typing.Annotated[
        bool | None, clientele_api.Query(alias="withData")
    ] = None,
    token: str | None = None,
) -> None:
    """Deletes a group with its scrapers after a preview

    Needs the token of a preview, as ?token= or X-Preview-Token. Without ?token= or the header, a valid preview of the same deletion by the same customer is enough. Its runs are stopped. Their records and charges stay. Without withData its rows stay, too, and can be read by run. With withData its rows are hidden at once and deleted in the background. Rows that its scrapers have in other groups stay.
    """
    return result


@client.post("/api/scraper/group/{id}/estimate")
def svc_estimate_group(result: schemas.GroupEstimate, id: str) -> schemas.GroupEstimate:
    """Estimates what a run of a group will cost

    It is the sum of the estimates of the scrapers that a run of the group would launch. With more than 100 scrapers, it samples 100 evenly. Free requests are deducted once. The estimate is not a cap: maxChargeMicros of a launch is.
    """
    return result


@client.put("/api/scraper/group/{id}/match")
def svc_match_group(result: None, id: str) -> None:
    """Matches a group's rows with products of the catalogue

    It answers once the match is queued. It reads the latest COMPLETED run of each of the group's scrapers. A row is matched by its columns gtin (ean, upc, isbn), brand, model (mpn) and title, or their names in several languages. Each match becomes a row in a group of the same name with the suffix _matched. It has rowId, catalogueId, score (0.5 to 1) and method. The methods are gtin, brand_model and title. A new match replaces the rows of the last one. From the first match on, files sent to the group's scrapers add to their rows. The group must have shouldMatchProducts.
    """
    return result


@client.post("/api/scraper/group/{id}/preview-delete")
def svc_preview_delete_group(
    result: schemas.DeletionPreview,
    id: str,
    with_data: typing.Annotated[
        bool | None, clientele_api.Query(alias="withData")
    ] = None,
) -> schemas.DeletionPreview:
    """Shows what deleting a group would do

    Show the warnings to the user before the deletion. The token is valid once, within 5 minutes, with the same parameters, unless what depends on the target changes meanwhile. All scrapers of the group are deleted with it, and so are the groups that merges and matches made from it. rows counts the rows of ended runs; the openRuns are stopped.
    """
    return result


@client.get("/api/scraper/group/{id}/run")
def svc_run_group(
    result: schemas.RunsOfGroup,
    id: str,
    max_charge_micros: typing.Annotated[
        int | None, clientele_api.Query(alias="maxChargeMicros")
    ] = None,
) -> schemas.RunsOfGroup:
    """Launches a run of each scraper of a group

    Scrapers that cannot run are skipped, each with a reason. All runs are created in one step: all or none. A customer may have up to 1,000 open runs; scrapers beyond that are skipped as LIMIT_REACHED. Scrapers that could not be made ready within 45 s are, too. Scrapers of list runs are skipped as NO_SOURCE. The same Idempotency-Key within 24 hours returns the original runs.
    """
    return result


@client.post("/api/scraper/group/{id}/run")
def svc_run_group_by_post(
    result: schemas.RunsOfGroup,
    id: str,
    max_charge_micros: typing.Annotated[
        int | None, clientele_api.Query(alias="maxChargeMicros")
    ] = None,
) -> schemas.RunsOfGroup:
    """Launches a run of each scraper of a group

    Scrapers that cannot run are skipped, each with a reason. All runs are created in one step: all or none. A customer may have up to 1,000 open runs; scrapers beyond that are skipped as LIMIT_REACHED. Scrapers that could not be made ready within 45 s are, too. Scrapers of list runs are skipped as NO_SOURCE. The same Idempotency-Key within 24 hours returns the original runs.
    """
    return result


@client.put("/api/scraper/group/{id}/start-type/{start_type}")
def svc_put_group_start_type(
    result: schemas.SvcPutGroupStartType200Response, id: str, start_type: str
) -> schemas.SvcPutGroupStartType200Response:
    """Sets how the scrapers of a group start

    DAILY starts between 00:00 and 06:00 in the group's time zone, WEEKLY does so on Mondays. The minute is fixed for each group. A scraper's own schedule takes precedence. NONE pauses both schedules, MANUAL only the group's. If starts were missed, the newest is made up for if it is under an hour old. A running scraper is skipped.
    """
    return result


@client.get("/api/scraper/group/{id}/starts")
def svc_list_group_starts(result: schemas.Starts, id: str) -> schemas.Starts:
    """Returns when a group next starts automatically, and the outcome of its newest starts

    Scrapers with a schedule of their own have starts of their own. SCHEDULED_START_REFUSED is sent for the first start in which the balance, the plan or a recipe refuses scrapers. Later starts refused for the same reason send nothing.
    """
    return result


@client.get("/api/scraper/group/{id}/stop")
def svc_stop_group(result: schemas.RunsOfGroup, id: str) -> schemas.RunsOfGroup:
    """Stops all runs of a group

    The state of each run is final at once. Pages being fetched are still stored and charged; the call does not wait for them. Existing rows are kept. Scrapers that are not running stay as they are.
    """
    return result


@client.post("/api/scraper/group/{id}/stop")
def svc_stop_group_by_post(result: schemas.RunsOfGroup, id: str) -> schemas.RunsOfGroup:
    """Stops all runs of a group

    The state of each run is final at once. Pages being fetched are still stored and charged; the call does not wait for them. Existing rows are kept. Scrapers that are not running stay as they are.
    """
    return result


@client.get("/api/scraper/list")
def svc_list_scrapers(
    result: schemas.ScraperCursorPage,
    q: str | None = None,
    group_id: typing.Annotated[
        str | None, clientele_api.Query(alias="groupId")
    ] = None,
    has_run_within: typing.Annotated[
        str | None, clientele_api.Query(alias="hasRunWithin")
    ] = None,
    sort: str | None = None,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> schemas.ScraperCursorPage:
    """Lists the customer's scrapers, newest first by default

    A page of large scrapers may have fewer than limit although more follow.
    """
    return result


@client.get("/api/scraper/load-history")
def svc_list_scraper_jobs(
    result: schemas.JobPage,
    filters: str | None = None,
    with_deleted: typing.Annotated[
        bool | None, clientele_api.Query(alias="withDeleted")
    ] = None,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
    page: int | None = None,
    size: int | None = None,
    sort: str | None = None,
) -> schemas.JobPage:
    """Lists the customer's runs, newest first by default

    If groupId in filters names one group that is shared with the customer, the list has the runs in that group.
    """
    return result


@client.get("/api/scraper/load-history/all")
def svc_list_all_scraper_jobs(
    result: schemas.JobCursorPage,
    group_id: typing.Annotated[
        str | None, clientele_api.Query(alias="groupId")
    ] = None,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    format: str | None = None,
) -> schemas.JobCursorPage:
    """Reads all the customer's runs, newest first, by cursor

    There is no page limit: the cursor leads to the oldest run still kept. Deleted runs are included; runs launched meanwhile are not. groupId may be a group that is shared with the customer. An answer under way breaks off when the sharing ends.
    """
    return result


@client.get("/api/scraper/load-history/group/{group_id}/job/{job_id}/errors")
def svc_list_scraper_job_errors(
    result: schemas.SvcListScraperJobErrors200Response,
    group_id: str,
    job_id: str,
    limit: int | None = None,
    after: str | None = None,
) -> schemas.SvcListScraperJobErrors200Response:
    """Lists the errors of a run's links, in list order

    At most 100,000 errors are listed. If there are as many as limit, use after to get the next ones.
    """
    return result


@client.post("/api/scraper/preview-rule")
def svc_preview_scraper_rule(
    result: schemas.RulePreview, data: schemas.SvcPreviewScraperRuleApplicationJson
) -> schemas.RulePreview:
    """Applies a post-process rule to one value, without saving anything

    The source of CURRENCY_CONVERT may be a price as sites write it, such as 1.234,50 EUR. Signs, letters and symbols around its one number are ignored. The output is the source times the rate, without rounding. A rate between two currencies other than the euro has 10 significant digits. On weekends and bank holidays, the European Central Bank's previous rate applies. Rates apply from 16:00 UTC of their day. If the source is null or not a number, nothing is written. REGEX_CLEAN takes pattern (RE2, up to 512 characters), and either replacement or group. In replacement, $1 and ${name} stand for groups; with group, the output is that group's text in the first match. onNoMatch is KEEP (the unchanged source), NULL or EMPTY. ENUM_MAP looks up numbers and booleans as written in JSON. Without a match and a default it writes nothing.
    """
    return result


@client.get("/api/scraper/shared/group/list")
def svc_list_shared_groups(
    result: schemas.SvcListSharedGroups200Response,
    q: str | None = None,
    sort: str | None = None,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
) -> schemas.SvcListSharedGroups200Response:
    """Lists the groups that others have shared with the customer, oldest first

    These groups are shared with the e-mail address in the customer's profile. Their rows, categories, runs and link errors are read with the same operations as the customer's own.
    """
    return result


@client.put("/api/scraper/shared/group/{id}")
def svc_share_group(
    result: None, data: schemas.SvcShareGroupApplicationJson, id: str
) -> None:
    """Shares a group with others, by e-mail address, for reading

    Either all addresses are added or none; existing shares stay. The answer does not reveal whether an address is a customer's. A group can have 100 shares, a customer's groups together 2,000.
    """
    return result


@client.delete("/api/scraper/shared/group/{id}")
def svc_revoke_group_share(result: None, id: str, email: str) -> None:
    """Ends the sharing of a group with an e-mail address

    Access: write. Rate class: general.
    """
    return result


@client.get("/api/scraper/shared/group/{id}/list")
def svc_list_group_shares(
    result: schemas.SvcListGroupShares200Response, id: str
) -> schemas.SvcListGroupShares200Response:
    """Lists, for the owner, the e-mail addresses that a group is shared with

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/scraper/site")
def svc_create_scraper_site(
    result: schemas.Site,
    data: schemas.SiteInput,
    id: str | None = None,
    name: str | None = None,
    scraper_ref: typing.Annotated[
        str | None, clientele_api.Query(alias="scraperRef")
    ] = None,
) -> schemas.Site:
    """Sets the links that a scraper's runs read

    A scraper has one site. To add links, send all of them again. The old links stay until all the new ones have arrived, and one invalid link refuses all. Links with the same canonical form are taken once, with the title of the first. The state of a link stays when the site is sent again. Runs read unvisited links first, then the others; without a site they begin at the scraper's own address. The links come as links of a JSON body, or as the body itself. The body is text/uri-list (one address per line, # begins a comment) or application/x-ndjson ({"url": …, "title": …} per line). The other members are then query parameters. A link has at most 8,192 bytes of text, a site 1,000,000 links, and a customer 1,000 sites with 10,000,000 links. Scrapers of lists, searches and files cannot have a site.
    """
    return result


@client.delete("/api/scraper/site/{site_id}")
def svc_delete_scraper_site(result: None, site_id: str) -> None:
    """Deletes a site with all its links, but not its scraper

    From then on, the scraper's runs begin at its own address. Deleting a site that does not exist, or is not the customer's, changes nothing.
    """
    return result


@client.get("/api/scraper/site/{site_id}/links")
def svc_list_scraper_site_links(
    result: schemas.SiteLinkPage,
    site_id: str,
    page: int | None = None,
    size: int | None = None,
    sort_field: typing.Annotated[
        str | None, clientele_api.Query(alias="sortField")
    ] = None,
    sort_direction: typing.Annotated[
        str | None, clientele_api.Query(alias="sortDirection")
    ] = None,
    sort: str | None = None,
    filters: str | None = None,
    q: str | None = None,
) -> schemas.SiteLinkPage:
    """Lists the links of a site

    Text is sorted by bytes, and equal links by the order in which they were given. A descending sort reverses both.
    """
    return result


@client.post("/api/scraper/url-list-run")
def svc_run_scraper_url_list(
    result: schemas.LaunchedListRun,
    data: schemas.ListRunInput,
    group_id: typing.Annotated[
        str | None, clientele_api.Query(alias="groupId")
    ] = None,
    name: str | None = None,
    endpoint_tag: typing.Annotated[
        str | None, clientele_api.Query(alias="endpointTag")
    ] = None,
    scraper_id: typing.Annotated[
        str | None, clientele_api.Query(alias="scraperId")
    ] = None,
    template_scraper_id: typing.Annotated[
        str | None, clientele_api.Query(alias="templateScraperId")
    ] = None,
    type: str | None = None,
    items_config: typing.Annotated[
        list[schemas.FieldInput] | None,
        clientele_api.Query(alias="itemsConfig"),
    ] = None,
    rerun: bool | None = None,
    force: bool | None = None,
    max_charge_micros: typing.Annotated[
        int | None, clientele_api.Query(alias="maxChargeMicros")
    ] = None,
) -> schemas.LaunchedListRun:
    """Launches a run over a list of addresses

    The list comes as urls of a JSON body (at most 100,000), or as the body itself (at most 5,000,000). The body is text/uri-list (one address per line, # begins a comment) or application/x-ndjson ({"url": …} per line). The other members are then query parameters. If one address is invalid, the whole list is refused and the address named; nothing is saved or charged. Addresses with the same canonical form are taken once. The first run of a list creates its scraper. With scraperId the list runs again: rerun takes addresses never charged, force takes all. Both take them from urls or, without urls, from the newest list. urls without either are all run. With endpointTag websitecontacts each website has one row: website, email, emails_all, email_source_url, domain_match (yes, no, unknown or empty), status, checked_at. EMAIL_FOUND and NO_EMAIL_PUBLISHED cost two credits. EMAIL_NOT_EXTRACTABLE, PAGE_NOT_READABLE, SITE_UNREACHABLE, SOCIAL_PROFILE_ONLY and DAILY_LIMIT_REACHED cost nothing. The daily limits (UTC) are 2,000 websites, 800 that end uncharged, and 3 reads of a domain. If the customer has never topped up, the run fails at once with a message. With the tag of a plugin, rows are those of MARKETPLACE, described at PUT /api/scraper.
    """
    return result


@client.put("/api/scraper/v2")
def svc_create_scraper_v2(
    result: schemas.EnrichedScraper, data: schemas.EnrichedScraperInput
) -> schemas.EnrichedScraper:
    """Creates a scraper, or replaces the one with the given id; returns the enriched form

    Always send the whole scraper. An id that is not one of the customer's scrapers is refused. Types that this version cannot run are refused with type_not_runnable. For a FILE scraper, sent with its id, only name, groupRef and config.retentionCount may change; settings that it does not have are refused. Rows stay in the group in which they were stored. MARKETPLACE and SEARCH_ENGINE_SEARCH have fixed fields. Shop rows have position (in a list), title, url, price, priceMax, listPrice, currency, availability, condition and brand. They also have sku, gtin, mpn, productId, category, rating, reviewCount, image, images, description and platform. Search rows have position, title, url, snippet, kind, query and page. APPLICATION_LD_JSON makes a row for each thing in the page's structured data: a Product, each element of an ItemList, each variant of a ProductGroup. Its properties are columns. Names of nested properties are joined with an underscore (offers_price, brand_name). Several values become an array, and references are followed. itemsConfig may select and rename columns, by column or by path (offers.price). AI_CONF has the properties of its schema. A row that does not fit the schema is neither stored nor charged. If a page has only such rows, it ends with the error row_rejected. If the language model was asked for missing values and gave no answer, the error is model_unavailable or model_limit_reached. If the page states nothing and there is no model, it is no_rows. Members that only the enriched form has are ignored.
    """
    return result


@client.get("/api/scraper/v2/{id}")
def svc_get_scraper_v2(
    result: schemas.EnrichedScraper, id: str
) -> schemas.EnrichedScraper:
    """Returns a scraper in the enriched form

    Access: read. Rate class: read.
    """
    return result


@client.get("/api/scraper/{id}")
def svc_get_scraper(result: schemas.Scraper, id: str) -> schemas.Scraper:
    """Returns a scraper

    Access: read. Rate class: read.
    """
    return result


@client.delete("/api/scraper/{id}")
def svc_delete_scraper(
    result: None,
    id: str,
    with_data: typing.Annotated[
        bool | None, clientele_api.Query(alias="withData")
    ] = None,
    token: str | None = None,
) -> None:
    """Deletes a scraper after a preview

    Needs the token of a preview, as ?token= or X-Preview-Token. Without ?token= or the header, a valid preview of the same deletion by the same customer is enough. Its runs are stopped. Their records and charges stay. Without withData its rows stay, too, and can be read by group or run. With withData its rows are hidden at once and deleted in the background.
    """
    return result


@client.post("/api/scraper/{id}/estimate")
def svc_estimate_scraper(
    result: schemas.RunEstimate, id: str, links: int | None = None
) -> schemas.RunEstimate:
    """Estimates what a run of a scraper will cost

    It is based on up to 20 of the newest completed runs with the current recipe. It takes their pages and tiers per link at today's prices, with a margin of 11 to 30%. Without such runs it is the whole possible range. That is from one page per link by the cheapest tier to the longest chains by the most expensive. A sample narrows the tiers to those that it needed. If domains have their own prices, those of the scraper's addresses count. Free requests are deducted. For a new list, estimate its template scraper and give links. The estimate is not a cap: maxChargeMicros of a launch is.
    """
    return result


@client.get("/api/scraper/{id}/get-sample-data")
def svc_get_scraper_sample_data(
    result: schemas.SvcGetScraperSampleData200Response,
    id: str,
    use_cache: typing.Annotated[
        bool | None, clientele_api.Query(alias="useCache")
    ] = None,
    max_charge_micros: typing.Annotated[
        int | None, clientele_api.Query(alias="maxChargeMicros")
    ] = None,
) -> schemas.SvcGetScraperSampleData200Response:
    """Runs a scraper on its first page and returns the rows

    It fetches the page that a run would read first. That is the next link of the scraper's site, else the start address, else the first address of the newest list. The page is charged like any other. A sample from the cache costs nothing. The rows are returned but not stored. If there are none, the header Shoal-Reason says why. At most 1,000 rows and about 768 KiB are returned. The call waits up to 55 s; disconnecting ends the run.
    """
    return result


@client.post("/api/scraper/{id}/preview-delete")
def svc_preview_delete_scraper(
    result: schemas.DeletionPreview,
    id: str,
    with_data: typing.Annotated[
        bool | None, clientele_api.Query(alias="withData")
    ] = None,
) -> schemas.DeletionPreview:
    """Shows what deleting a scraper would do

    Show the warnings to the user before the deletion. The token is valid once, within 5 minutes, with the same parameters, unless what depends on the target changes meanwhile. rows counts the rows of ended runs; the openRuns are stopped.
    """
    return result


@client.post("/api/scraper/{id}/re-extract")
def svc_re_extract(
    result: schemas.LaunchedRun, data: schemas.ReExtractInput, id: str
) -> schemas.LaunchedRun:
    """Extracts an earlier run again, from its kept bodies

    A new run reads the pages of the run jobId again from their kept bodies (config.keepBodyDays). It uses the current scraper, or what the call names in its place. The scraper does not change. No site is asked and nothing is charged. The run appears in the history like any other. Its rows appear once it is complete; if it is stopped, it leaves none. A page whose body is no longer kept ends with the error body_gone. A page that had no rows keeps its error, since it was not paid for. Currencies are converted at the rates that applied when the page was fetched. No language model is asked.
    """
    return result


@client.put("/api/scraper/{id}/retention")
def svc_update_scraper_retention(
    result: schemas.Scraper, data: schemas.RetentionInput, id: str
) -> schemas.Scraper:
    """Sets how many of a scraper's runs keep their rows

    When a run ends, the rows of older runs are deleted in the background. Runs without rows do not count. Run records and charges stay. The group's count takes precedence over the scraper's.
    """
    return result


@client.get("/api/scraper/{id}/run")
def svc_run_scraper(
    result: schemas.LaunchedRun,
    id: str,
    max_charge_micros: typing.Annotated[
        int | None, clientele_api.Query(alias="maxChargeMicros")
    ] = None,
) -> schemas.LaunchedRun:
    """Launches a run of a scraper

    A scraper with a site reads the site's links, unvisited ones first. Otherwise the launch checks that the start address resolves and is allowed, but does not fetch it. SEARCH_ENGINE_SEARCH scrapers ask one of the server's search engines for each query. The same Idempotency-Key within 24 hours returns the original run. Scrapers of list runs are run with POST /api/scraper/url-list-run.
    """
    return result


@client.post("/api/scraper/{id}/run")
def svc_run_scraper_by_post(
    result: schemas.LaunchedRun,
    id: str,
    max_charge_micros: typing.Annotated[
        int | None, clientele_api.Query(alias="maxChargeMicros")
    ] = None,
) -> schemas.LaunchedRun:
    """Launches a run of a scraper

    A scraper with a site reads the site's links, unvisited ones first. Otherwise the launch checks that the start address resolves and is allowed, but does not fetch it. SEARCH_ENGINE_SEARCH scrapers ask one of the server's search engines for each query. The same Idempotency-Key within 24 hours returns the original run. Scrapers of list runs are run with POST /api/scraper/url-list-run.
    """
    return result


@client.get("/api/scraper/{id}/site")
def svc_get_scraper_site(
    result: schemas.SvcGetScraperSite200Response, id: str
) -> schemas.SvcGetScraperSite200Response:
    """Returns the site of a scraper, or null

    Links are left out if there are more than 1,000, or more than 4 MiB of them.
    """
    return result


@client.get("/api/scraper/{id}/starts")
def svc_list_scraper_starts(result: schemas.Starts, id: str) -> schemas.Starts:
    """Returns when a scraper next starts automatically, and the outcome of its newest starts

    A scraper without its own schedule starts with its group, and the starts are the group's. SCHEDULED_START_REFUSED is sent for the first start that the balance, the plan or the recipe refuses. Later starts refused for the same reason send nothing.
    """
    return result


@client.get("/api/scraper/{id}/stop")
def svc_stop_scraper(result: None, id: str) -> None:
    """Stops a scraper's run

    The run's state is final at once. Pages being fetched are still stored and charged. The call waits for them, up to 10 s. A scraper that is not running stays as it is. Existing rows are kept.
    """
    return result


@client.post("/api/scraper/{id}/stop")
def svc_stop_scraper_by_post(result: None, id: str) -> None:
    """Stops a scraper's run

    The run's state is final at once. Pages being fetched are still stored and charged. The call waits for them, up to 10 s. A scraper that is not running stays as it is. Existing rows are kept.
    """
    return result


@client.get("/api/scraper/{scraper_id}/sitemaps")
def svc_list_sitemaps(
    result: schemas.SitemapEntryPage,
    scraper_id: str,
    page: int | None = None,
    size: int | None = None,
    sort: list[str] | None = None,
    filters: str | None = None,
    search: str | None = None,
    q: str | None = None,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
    restriction: str | None = None,
) -> schemas.SitemapEntryPage:
    """Lists the addresses in the sitemaps of a scraper's site

    The entries are those of the scraper's newest harvest, also while it is under way. They are deleted each night at 02:00 UTC. If the harvest is under way then, its entries are deleted a night later.
    """
    return result


@client.post(
    "/api/scraper/{scraper_id}/sitemaps/harvest",
    response_map={
        200: schemas.SvcHarvestSitemaps200Response,
        202: schemas.SvcHarvestSitemaps202Response,
    },
)
def svc_harvest_sitemaps(
    result: schemas.SvcHarvestSitemaps200Response
    | schemas.SvcHarvestSitemaps202Response,
    scraper_id: str,
    cap: int | None = None,
) -> schemas.SvcHarvestSitemaps200Response | schemas.SvcHarvestSitemaps202Response:
    """Reads the sitemaps of a scraper's site, and counts the addresses that they list

    If the scraper's own address is a sitemap, it is read. Otherwise the sitemaps named in robots.txt are read, or those at the usual places. Sitemaps, RSS, Atom and text are read, compressed or not, and indexes up to 4 levels deep. Addresses on another host are taken if that host's robots.txt names the sitemap. robots.txt is obeyed, one request a second is sent, and nothing is charged. Addresses with the same canonical form count once. A harvest replaces the previous one, and goes on in the background. The call waits up to 55 s, then returns the count so far; the same Idempotency-Key waits again. Without a sitemap, or with an empty one, the count is 0. At most one harvest of a scraper is under way at a time, and 10 of a customer.
    """
    return result


@client.get("/api/subscription")
def svc_get_subscription(result: schemas.Subscription) -> schemas.Subscription:
    """Returns the customer's legacy plan

    INACTIVE with plan null: the customer is on pay-as-you-go, without a plan.
    """
    return result


@client.post("/api/subscription/cancel")
def svc_cancel_subscription(result: schemas.Subscription) -> schemas.Subscription:
    """Ends the subscription at the end of its period

    The plan stays until currentPeriodEnd, then becomes STARTER. Until then, cancel-downgrade undoes this.
    """
    return result


@client.post("/api/subscription/cancel-downgrade")
def svc_cancel_downgrade(result: schemas.Subscription) -> schemas.Subscription:
    """Keeps the current plan, and cancels the scheduled change

    Access: write. Rate class: top-up.
    """
    return result


@client.post("/api/subscription/change")
def svc_change_subscription(
    result: schemas.Subscription, data: schemas.PlanInput
) -> schemas.Subscription:
    """Changes the plan

    A more expensive plan opens a checkout, and replaces the old plan once paid. A cheaper plan is scheduled for the end of the period, and nothing is charged now. The same plan changes nothing. A change that needs no payment ends an open checkout. Without an active subscription only STARTER can be chosen; create opens the checkout of another plan.
    """
    return result


@client.post("/api/subscription/create")
def svc_create_subscription(
    result: schemas.Subscription, data: schemas.PlanInput
) -> schemas.Subscription:
    """Opens a checkout to subscribe to a plan

    An ACTIVE subscription is returned unchanged. The plan begins when the payment provider confirms the payment. The free plan begins at once.
    """
    return result


@client.get("/api/subscription/prices")
def svc_list_plan_prices(
    result: schemas.SvcListPlanPrices200Response,
) -> schemas.SvcListPlanPrices200Response:
    """Lists the prices of the plans that customers may choose, by level

    Access: public. Rate class: anonymous.
    """
    return result


@client.post("/api/subscription/webhook")
def svc_payment_notice(
    result: None, data: schemas.SvcPaymentNoticeApplicationJson
) -> None:
    """Takes signed notices from the payment provider

    Only the payment provider calls this. The bytes of the body are signed; a signature is valid for five minutes. Notices may come twice and in any order.
    """
    return result


@client.get("/api/wallet")
def svc_get_wallet(result: schemas.Wallet) -> schemas.Wallet:
    """Returns the balance, including charges of runs under way

    Access: read. Rate class: read.
    """
    return result


@client.get("/api/wallet/prices")
def svc_list_prices(
    result: schemas.SvcListPrices200Response,
) -> schemas.SvcListPrices200Response:
    """Lists the prices for runs launched now

    Access: read. Rate class: read.
    """
    return result


@client.post("/api/wallet/topup")
def svc_start_top_up(
    result: schemas.StartedTopUp, data: schemas.TopUpInput
) -> schemas.StartedTopUp:
    """Opens a checkout to top up the wallet

    The balance grows when the payment provider confirms the payment, usually within seconds. A customer has at most 100 open top-ups.
    """
    return result


@client.get("/api/wallet/topup/{session_id}")
def svc_get_top_up(result: schemas.TopUpStatus, session_id: str) -> schemas.TopUpStatus:
    """Returns the state of a top-up

    OPEN: not paid yet, or pending. APPLIED: paid and credited. EXPIRED and FAILED: no money moved; these are deleted 30 days later. UNMATCHED: paid, but it cannot be credited, for example because of another currency; the operator sees it.
    """
    return result


@client.get("/api/wallet/transactions")
def svc_list_wallet_transactions(
    result: schemas.TransactionPage,
    page: int | None = None,
    size: int | None = None,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
) -> schemas.TransactionPage:
    """Lists the wallet's transactions, newest first

    Access: read. Rate class: read.
    """
    return result


@client.get("/api/wallet/transactions/all")
def svc_list_all_wallet_transactions(
    result: schemas.TransactionCursorPage,
    from_: typing.Annotated[
        str | None, clientele_api.Query(alias="from")
    ] = None,
    to: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    format: str | None = None,
) -> schemas.TransactionCursorPage:
    """Reads all the wallet's transactions, newest first, by cursor

    There is no page limit: the cursor leads to the first transaction of the wallet. Transactions entered meanwhile are not included.
    """
    return result


@client.get("/api/webhooks")
def svc_list_webhooks(result: schemas.WebhookList) -> schemas.WebhookList:
    """Lists the customer's webhooks

    Access: read. Rate class: read.
    """
    return result


@client.post("/api/webhooks")
def svc_create_webhook(
    result: schemas.WebhookWithSecret, data: schemas.WebhookInput
) -> schemas.WebhookWithSecret:
    """Creates a webhook; a customer has at most 10

    Events are sent as signed requests (Standard Webhooks) with the headers webhook-id, webhook-timestamp and webhook-signature. An answer of 2xx within 15 seconds confirms one. Otherwise it is tried 8 times over 24 hours, always under the same webhook-id; an event may arrive twice. Only this answer holds the secret.
    """
    return result


@client.get("/api/webhooks/{id}")
def svc_get_webhook(result: schemas.Webhook, id: str) -> schemas.Webhook:
    """Returns a webhook

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/webhooks/{id}")
def svc_put_webhook(
    result: schemas.Webhook, data: schemas.WebhookInput, id: str
) -> schemas.Webhook:
    """Changes a webhook's address and events

    It can also switch the webhook on again. The secret stays.
    """
    return result


@client.delete("/api/webhooks/{id}")
def svc_delete_webhook(result: None, id: str) -> None:
    """Deletes a webhook and its log

    Pending deliveries are no longer sent, except for calls under way.
    """
    return result


@client.get("/api/webhooks/{id}/deliveries")
def svc_list_webhook_deliveries(
    result: schemas.WebhookDeliveryPage,
    id: str,
    page: int | None = None,
    size: int | None = None,
) -> schemas.WebhookDeliveryPage:
    """Lists a webhook's sent and pending deliveries, newest first

    Each delivery is kept for 30 days. Beyond 500, the oldest finished one is removed; while 500 are pending, new events are only counted as droppedEvents.
    """
    return result


@client.post("/api/webhooks/{id}/deliveries/{delivery_id}/redeliver")
def svc_redeliver_webhook(
    result: schemas.WebhookDelivery, id: str, delivery_id: str
) -> schemas.WebhookDelivery:
    """Sends a delivery again at once, under its webhook-id

    A finished delivery gets 8 tries again. A pending one is tried now.
    """
    return result


@client.post("/api/webhooks/{id}/rotate")
def svc_rotate_webhook(
    result: schemas.WebhookWithSecret, data: schemas.RotationInput, id: str
) -> schemas.WebhookWithSecret:
    """Gives a webhook a new secret

    Only this answer holds the new secret. During the overlap requests have two signatures, and either one is enough. With 0 the old secret ends at once.
    """
    return result


@client.post("/api/webhooks/{id}/test")
def svc_test_webhook(
    result: schemas.WebhookDelivery, id: str
) -> schemas.WebhookDelivery:
    """Sends a WEBHOOK_TEST to a webhook, even if it is off

    The result is in the webhook's log.
    """
    return result
