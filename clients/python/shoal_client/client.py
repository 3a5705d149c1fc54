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

    They are those of subscriptions, as the payment provider has told of them. Top-ups and charges are in the wallet's ledger.
    """
    return result


@client.get("/api/customer")
def svc_get_customer(
    result: schemas.Customer,
    with_stat: typing.Annotated[
        bool | None, clientele_api.Query(alias="withStat")
    ] = None,
) -> schemas.Customer:
    """Answers the customer's profile

    Access: read. Rate class: read.
    """
    return result


@client.post("/api/customer")
def svc_sign_up(
    result: schemas.Customer, data: schemas.SignUpInput
) -> schemas.Customer:
    """Signs the customer up

    The identity provider's user id becomes the customer's reference. Reference and e-mail address never change. A token of an OpenID Connect issuer says which address is verified; the body's is the same. Of a customer with accounts that sign in here it is the address of one of them.
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
    """Answers all that the customer keeps

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/customer/preferences/additional-info")
def svc_put_additional_info(
    result: schemas.SvcPutAdditionalInfo200Response,
    data: schemas.SvcPutAdditionalInfoApplicationJson,
) -> schemas.SvcPutAdditionalInfo200Response:
    """Keeps values under keys of the customer's own

    Keys that are not named stay as they are. A customer has at most 100 keys, and 65,536 bytes of keys and values.
    """
    return result


@client.delete("/api/customer/preferences/additional-info/{key}")
def svc_delete_additional_info(
    result: schemas.SvcDeleteAdditionalInfo200Response, key: str
) -> schemas.SvcDeleteAdditionalInfo200Response:
    """Removes a key, and answers what remains

    A key that is not there is removed already.
    """
    return result


@client.get("/api/customer/preferences/notifications")
def svc_get_notification_preferences(
    result: schemas.SvcGetNotificationPreferences200Response,
) -> schemas.SvcGetNotificationPreferences200Response:
    """Answers by which ways the customer is told of each event

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/customer/preferences/notifications")
def svc_put_notification_preferences(
    result: schemas.SvcPutNotificationPreferences200Response,
    data: schemas.SvcPutNotificationPreferencesApplicationJson,
) -> schemas.SvcPutNotificationPreferences200Response:
    """Sets by which ways the customer is told of events

    Events that are not named stay as they are. The ways are EMAIL, IN_APP, BOTH and NONE. What cannot be sent by e-mail stands in the application.
    """
    return result


@client.get("/api/customer/preferences/wallet")
def svc_get_wallet_preferences(
    result: schemas.WalletPreferences,
) -> schemas.WalletPreferences:
    """Answers below which balance the wallet is low

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/customer/preferences/wallet")
def svc_put_wallet_preferences(
    result: schemas.WalletPreferences, data: schemas.WalletPreferencesInput
) -> schemas.WalletPreferences:
    """Sets below which balance the wallet is low

    A new wallet's threshold is 5 EUR. A balance that is below the new one already is not told.
    """
    return result


@client.post("/api/events/ticket")
def svc_issue_ticket(result: schemas.StreamTicket) -> schemas.StreamTicket:
    """Makes a ticket that opens one stream of events

    For pages of browsers, which cannot send a bearer credential with a stream. It is good for a minute, once, at any server, and its stream ends with the credential that asked for it. A page that is signed in by cookie needs none. Beyond 20 of a customer the oldest one goes.
    """
    return result


@client.post("/api/feedback")
def svc_give_feedback(
    result: schemas.Feedback, data: schemas.FeedbackInput
) -> schemas.Feedback:
    """Tells the operators of the service what the customer thinks of it

    A customer does so 10 times a day (UTC) at most. It is kept for 400 days; the oldest makes room beyond 200.
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

    The answer holds the whole key, once. Its secret has 256 random bits. Keys of scope LLM_READ and LLM_FULL cannot make keys. A key that has expired is refused like an unknown one, and stays in the list until it is deleted.
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
    """Says who the credential belongs to

    Access: read. Rate class: read.
    """
    return result


@client.delete("/api/key/{id}")
def svc_delete_key(result: None, id: str) -> None:
    """Revokes an API key at once

    A key may revoke any key of its customer, itself included; keys of scope LLM_READ may not.
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

    They stay for 90 days. Beyond 1,000 the oldest one that was read goes. While none was read, the newest one counts those that find no room.
    """
    return result


@client.post("/api/notifications/read")
def svc_read_notifications(
    result: schemas.UnreadNotifications,
) -> schemas.UnreadNotifications:
    """Notes that all notifications were read

    Answers how many are unread then: those that came meanwhile.
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
    """Notes that a notification was read, or that it was not

    Answers how many are unread then.
    """
    return result


@client.get("/api/plan-features")
def svc_list_plans(
    result: schemas.SvcListPlans200Response,
) -> schemas.SvcListPlans200Response:
    """Lists the legacy plans with their features and limits, by level

    A customer without a subscription pays as it goes. It has every feature, and none of these limits.
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

    The content is compiled: what cannot check a row is refused, with its place. Runs that began before a change go on with the schema as it was.
    """
    return result


@client.delete("/api/schema/customer/{id}")
def svc_delete_customer_schema(
    result: None, id: str, token: str | None = None
) -> None:
    """Deletes a schema of the customer after a preview

    Needs the token of a preview, as ?token= or X-Preview-Token; without one, a preview of the same deletion by the same customer that still holds. AI_CONF scrapers that refer to the schema stay and fail at their next run.
    """
    return result


@client.post("/api/schema/customer/{id}/preview-delete")
def svc_preview_delete_customer_schema(
    result: schemas.DeletionPreview, id: str
) -> schemas.DeletionPreview:
    """Shows what the deletion of a schema of the customer would do

    Show its warnings before the deletion. The token lets that through once, within 5 minutes, with the same parameters, unless what hangs on the target changes meanwhile.
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

    AI_CONF finds these in what pages state; other names work too.
    """
    return result


@client.put("/api/scraper")
def svc_create_scraper(
    result: schemas.Scraper, data: schemas.ScraperInput
) -> schemas.Scraper:
    """Creates a scraper, or replaces the one with the given id

    All of it is sent always. An id that is not one of the customer's scrapers is refused. What this version cannot run (other types) is refused with type_not_runnable rather than kept and ignored. Of a FILE scraper, sent with its id, name, groupRef and config.retentionCount may change; what it has none of is refused. Rows stay in the group that they were stored in. MARKETPLACE and SEARCH_ENGINE_SEARCH have fields of their own. Rows of a shop have position (in a list), title, url, price, priceMax, listPrice, currency, availability, condition and brand. They have sku, gtin, mpn, productId, category, rating, reviewCount, image, images, description and platform, too. Rows of a search have position, title, url, snippet, kind, query and page. APPLICATION_LD_JSON has a row for each thing that a page states (a Product, each element of an ItemList, each variant of a ProductGroup). Its properties are columns. Those of items within it are joined with an underscore (offers_price, brand_name). Several values are an array, and references are followed. itemsConfig may choose and name some, by column or by path (offers.price). AI_CONF has the properties of its schema. A row that does not fit the schema is dropped, not stored and not charged. A page that has no other ends with the error row_rejected. It is model_unavailable or model_limit_reached where the language model, asked for what the page does not state, gave no answer. It is no_rows where the page states nothing and there is no model.
    """
    return result


@client.post("/api/scraper-job-status/{id}/release")
def svc_release_scraper_job(result: schemas.Job, id: str) -> schemas.Job:
    """Has a run that is held back count as its scraper's last one

    A run of a group with quarantine that is unlike the runs before it is held back; its quarantineReason says why. Released, it counts, and later runs are compared with it, too. A run that is not held back stays as it is.
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
    """Proposes scrapers for the answer to a request, given as a curl command

    Every strategy that fits the page is tried. What makes rows is proposed, the best first, each with its first rows. A run would give the same ones. An empty array says that nothing was found, and the header Shoal-Reason why. The page is fetched and paid like any other. One on which nothing was found costs nothing. Nothing is saved. The call waits up to 55 s; who hangs up ends it.
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

    The page comes as elements and texts without attributes, so that it can be shown without anything of it running, loading or sending. Scripts, styles and images are left out, and so is what is beyond 480 KiB or 10,000 elements. The page is fetched and paid like any other, and is kept for 10 minutes. Picks on it, and calls for the same address, are free until then, as far as the cache does not lose it. Nothing is saved.
    """
    return result


@client.post("/api/scraper-simple/page/pick")
def svc_pick_on_page(
    result: schemas.PagePick, data: schemas.PagePickInput
) -> schemas.PagePick:
    """Makes a field of an element of a page, and rows of all fields

    The page was asked for by POST /api/scraper-simple/page, and is kept for 10 minutes: a pick fetches nothing and costs nothing. The first field of MULTIPLE_PRODUCTS is found in all elements that stand like the picked one. Each is a row, and later fields are found in each row. Rows are of the page as it is kept. Where its end is left out, a run has more of them.
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
    """Looks for fields on a page by their names

    The names are hints. They are looked up in what the page states for machines, in its tables and lists of labels, and in elements that are called so. What a proposal for the page would find counts, too. Where the server has one, a language model is asked for the rest. Of a list the first item counts. The page is fetched and paid like any other. One that says nothing of what is asked costs nothing, and the header Shoal-Reason says why. Nothing is saved.
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

    Every strategy that fits the page is tried. What makes rows is proposed, the best first, each with its first rows. A run would give the same ones. An empty array says that nothing was found, and the header Shoal-Reason why. The page is fetched and paid like any other. One on which nothing was found costs nothing. Nothing is saved. The call waits up to 55 s; who hangs up ends it.
    """
    return result


@client.get("/api/scraper/config/parameters")
def svc_get_config_parameters(result: schemas.UploadLimits) -> schemas.UploadLimits:
    """Answers the limits of the caller's file uploads

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
    sort: str | None = None,
    limit: int | None = None,
    skip: int | None = None,
    cursor: str | None = None,
) -> schemas.RowCursorPage:
    """Reads rows to their end, page by page, by cursor

    Rows come in the order in which they were stored, unless sort names a field. A read sees what was there when it began: rows stored later need a new read. A cursor is refused once rows that it reads are deleted. A page may have fewer rows than limit although more follow, when they are large. The rows of a scraper that had runs in several groups come group by group, unless they are sorted. In the order of a field numbers, and text that is a number, come first. Other text follows by code point (its first 256 bytes), then booleans, then other values. Rows without the field or with null are last, whatever the direction. Equal ones come as they were stored. The first two pages look at all rows each, and then one of 50,000 rows does. Others cost their own share if they are asked for within two minutes of the one before. Skip to pages far behind.
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

    Needs the token of a preview, as ?token= or X-Preview-Token; without one, a preview of the same deletion by the same customer that still holds. A run that is under way is stopped. Nobody sees its rows from then on, and they go in the background. The scraper's last run is the one before it. Its record stays, and so does what was charged.
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

    It answers the rows that were added, removed or changed, with what they were before. Both runs have ended. null counts as a member that is not there. What was added or changed comes in the order of the newer run, then what was removed in that of the older one. Beyond 200,000 rows it comes so part by part. A page costs its own share if it is asked for within two minutes of the one before. Later it may compare both runs anew, so a long comparison is best read as jsonl. A key that no row has is refused.
    """
    return result


@client.get("/api/scraper/data/exports")
def svc_list_kept_exports(
    result: schemas.SvcListKeptExports200Response,
) -> schemas.SvcListKeptExports200Response:
    """Lists the customer's kept exports, the newest first

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
    sort: str | None = None,
    format: str | None = None,
    limit: int | None = None,
    bom: bool | None = None,
    guard: bool | None = None,
) -> schemas.KeptExport:
    """Has rows written to a file that is kept for 7 days

    The file has the rows as they are when the call comes, in the form of GET /api/scraper/data/export. It is written in the background: its state is WAITING, then READY or FAILED. It fails when rows were removed before it was written. It is not written, or read, once whoever asked for it may not read the rows any more. A customer keeps 20 exports at most, and 8 GiB of files. One file has at most 4 GiB.
    """
    return result


@client.get("/api/scraper/data/exports/{id}")
def svc_get_kept_export(result: schemas.KeptExport, id: str) -> schemas.KeptExport:
    """Says how it stands with a kept export

    Access: read. Feature of plans: DATA_EXPORT. Rate class: read.
    """
    return result


@client.delete("/api/scraper/data/exports/{id}")
def svc_delete_kept_export(result: None, id: str) -> None:
    """Removes a kept export with its file, or gives it up

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

    Access: read. Rate class: read.
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

    Reads and downloads of the group take it as categories. A category that has the name gets the filter, and keeps its id. A group has at most 100, the groups of a customer 1,000.
    """
    return result


@client.delete("/api/scraper/data/group/{id}/category/{category_id}")
def svc_delete_category(
    result: None, id: str, category_id: str, token: str | None = None
) -> None:
    """Deletes a category after a preview

    Needs the token of a preview, as ?token= or X-Preview-Token; without one, a preview of the same deletion by the same customer that still holds. Rows stay.
    """
    return result


@client.post("/api/scraper/data/group/{id}/category/{category_id}/preview-delete")
def svc_preview_delete_category(
    result: schemas.DeletionPreview, id: str, category_id: str
) -> schemas.DeletionPreview:
    """Shows what the deletion of a category would do

    Show its warnings before the deletion. The token lets that through once, within 5 minutes, with the same parameters, unless what hangs on the target changes meanwhile.
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

    Each text becomes an object that says where it was scraped. It is cut at 2,000 characters. Control characters but tabs and line breaks go, and so do those that override the direction of writing. Nothing else of a text is rewritten. Numbers, booleans, null and members that begin with _ stay as they are.
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

    A title is a stable identifier, such as a barcode. Titles are compared without the spaces around them; a number is the text that it is. Rows of one title in two runs or more become one row. It has the fields of the run that was named first, and from the others those that are missing, null or empty there. Of several rows of a title in one run the first counts. Taken is the latest COMPLETED run of each scraper of the group; others are passed over. The rows are those of a group of the same name with _enriched behind it. That group counts towards no limit, and has enrichedOf in the list. A new merge replaces the rows of the last one; while one goes on there is no other. The call waits for 55 s, then answers with the run; the same Idempotency-Key waits again. A merge that makes no row is 422, and the rows of the last one stay.
    """
    return result


@client.get("/api/scraper/data/oddities")
def svc_find_run_oddities(
    result: schemas.RunOddities,
    job_id: typing.Annotated[str, clientele_api.Query(alias="jobId")],
) -> schemas.RunOddities:
    """Says what is odd about a run

    The run is compared with up to 10 runs of its scraper before it that were COMPLETED and whose rows are there. Told is what all of those did not have, nor nearly: numbers of rows, shares of rows with a value, types, values, lengths and varieties. It changes nothing.
    """
    return result


@client.post("/api/scraper/data/preview-delete")
def svc_preview_delete_run_data(
    result: schemas.DeletionPreview,
    scraper_job_status_id: typing.Annotated[
        str, clientele_api.Query(alias="scraperJobStatusId")
    ],
) -> schemas.DeletionPreview:
    """Shows what the deletion of a run's rows would do

    Show its warnings before the deletion. The token lets that through once, within 5 minutes, with the same parameters, unless what hangs on the target changes meanwhile. rows are counted of a run that has ended; one that is under way (openRuns) is stopped.
    """
    return result


@client.get("/api/scraper/data/profile")
def svc_profile_run(
    result: schemas.RunProfile,
    job_id: typing.Annotated[str, clientele_api.Query(alias="jobId")],
) -> schemas.RunProfile:
    """Says what the fields of a run's rows are like

    It answers of each field how many rows have a value and of which types. With that come the least and the greatest number, about how many different values there are, and some of them. The sums are kept with each page as it is stored, so that long runs are answered soon.
    """
    return result


@client.get("/api/scraper/data/{row_id}/receipt")
def svc_get_row_receipt(result: schemas.RowReceipt, row_id: str) -> schemas.RowReceipt:
    """Says where a row comes from

    A row's id is its _rowId. The receipt is that of the page which brought the row, and is there as long as the row is.
    """
    return result


@client.put("/api/scraper/group")
def svc_put_group(result: schemas.Group, data: schemas.GroupInput) -> schemas.Group:
    """Creates a group, or changes the one with the given id

    What an update does not name stays as it is. An id that is not one of the customer's groups is refused. With retentionCount, rows of older runs are deleted in the background when a run has ended.
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

    Needs the token of a preview, as ?token= or X-Preview-Token; without one, a preview of the same deletion by the same customer that still holds. Its runs are stopped. Their records stay, and so does what was charged. Without withData its rows stay, too, and are read by run. With it nobody sees them from then on, and they go in the background. Rows that its scrapers have in other groups stay.
    """
    return result


@client.post("/api/scraper/group/{id}/estimate")
def svc_estimate_group(result: schemas.GroupEstimate, id: str) -> schemas.GroupEstimate:
    """Says what a run of a group will probably cost

    It is the sum of the estimates of the scrapers that a run of the group would launch. Of more than 100 it looks at 100, spread over all. Free requests are taken off once. It is no cap: maxChargeMicros of a launch is.
    """
    return result


@client.put("/api/scraper/group/{id}/match")
def svc_match_group(result: None, id: str) -> None:
    """Looks for the products of a group's rows in the catalogue

    It answers once the match is queued. Read are the latest COMPLETED runs of the group's scrapers. What a row is stands in its columns: gtin (ean, upc, isbn), brand, model (mpn) and title, or the like in several languages. What is found of a row is one in a group of the same name with _matched behind it. It has rowId, catalogueId, score (0.5 to 1) and method. The methods are gtin, brand_model and title. A new match replaces the rows of the last one. From the first match on, files that are sent to the group's scrapers add to their rows. The group has to have shouldMatchProducts.
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
    """Shows what the deletion of a group would do

    Show its warnings before the deletion. The token lets that through once, within 5 minutes, with the same parameters, unless what hangs on the target changes meanwhile. All scrapers of the group go with it, and so do the groups that merges and matches made of it. rows are those of runs that have ended; openRuns are stopped.
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

    Scrapers that cannot run are skipped, each with the reason. All runs are made in one step: there are all or none. Up to 1,000 runs of a customer are open at a time, and scrapers beyond are skipped as LIMIT_REACHED. So are those that could not be made ready within 45 s. Scrapers of list runs have NO_SOURCE. The same Idempotency-Key within 24 hours answers the original runs.
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

    Scrapers that cannot run are skipped, each with the reason. All runs are made in one step: there are all or none. Up to 1,000 runs of a customer are open at a time, and scrapers beyond are skipped as LIMIT_REACHED. So are those that could not be made ready within 45 s. Scrapers of list runs have NO_SOURCE. The same Idempotency-Key within 24 hours answers the original runs.
    """
    return result


@client.put("/api/scraper/group/{id}/start-type/{start_type}")
def svc_put_group_start_type(
    result: schemas.SvcPutGroupStartType200Response, id: str, start_type: str
) -> schemas.SvcPutGroupStartType200Response:
    """Says how the scrapers of a group start

    DAILY and WEEKLY start between 00:00 and 06:00 (of Monday) in the group's time zone, at a minute that is the group's own. A scraper's own schedule wins. NONE pauses both, MANUAL the group's alone. Of starts that were missed the newest is made up for if it is under an hour old. A scraper that runs is skipped.
    """
    return result


@client.get("/api/scraper/group/{id}/starts")
def svc_list_group_starts(result: schemas.Starts, id: str) -> schemas.Starts:
    """Answers when a group starts by itself, and what became of its newest starts

    Scrapers with a schedule of their own have starts of their own. The first start of which the balance, the plan or a recipe refuses scrapers is told as SCHEDULED_START_REFUSED. Those behind it are not, for the same reason.
    """
    return result


@client.get("/api/scraper/group/{id}/stop")
def svc_stop_group(result: schemas.RunsOfGroup, id: str) -> schemas.RunsOfGroup:
    """Stops all runs of a group

    The state of each run is final at once. Pages that are being fetched are still stored and charged; the call does not wait for them. Rows already there are kept. Scrapers that are not running are left as they are.
    """
    return result


@client.post("/api/scraper/group/{id}/stop")
def svc_stop_group_by_post(result: schemas.RunsOfGroup, id: str) -> schemas.RunsOfGroup:
    """Stops all runs of a group

    The state of each run is final at once. Pages that are being fetched are still stored and charged; the call does not wait for them. Rows already there are kept. Scrapers that are not running are left as they are.
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
    """Lists the customer's scrapers, newest first unless sorted

    A page may have fewer scrapers than limit although more follow, when they are large.
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
    """Lists the customer's runs, newest first unless told otherwise

    With a groupId in filters that names one group which is shared with the customer, the runs in that group.
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
    """Reads all of the customer's runs, newest first, by cursor

    There is no last page: the cursor leads to the first run that is still kept. Deleted ones are among them, runs that are launched meanwhile are not. With groupId it reads a group, also one that is shared with the customer; an answer under way breaks off when that ends.
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
    """Lists the errors of a run's links, in the order of its list

    At most 100,000; when there are as many as limit, those behind them come with after.
    """
    return result


@client.post("/api/scraper/preview-rule")
def svc_preview_scraper_rule(
    result: schemas.RulePreview, data: schemas.SvcPreviewScraperRuleApplicationJson
) -> schemas.RulePreview:
    """Applies a post-process rule to one value; persists nothing

    A text source of CURRENCY_CONVERT may be a price as sites write it, such as 1.234,50 EUR. Signs, letters and symbols around its one number do not count. The output is the source times the rate, without rounding. A rate between two currencies other than the euro has 10 significant digits. Weekends and bank holidays take the European Central Bank's rate of the day before. Rates count from 16:00 UTC of their day. A source that is null, or no number, writes nothing. REGEX_CLEAN takes pattern (RE2, up to 512 characters). With it goes replacement ($1 and ${name} stand for groups), or group, whose text in the first match is the output. onNoMatch is KEEP (the source as it is), NULL or EMPTY. ENUM_MAP looks up numbers and booleans as JSON writes them; without a match and a default it writes nothing.
    """
    return result


@client.get("/api/scraper/shared/group/list")
def svc_list_shared_groups(
    result: schemas.SvcListSharedGroups200Response,
) -> schemas.SvcListSharedGroups200Response:
    """Lists the groups that others share with the customer

    They are shared with the e-mail address of its profile. Their rows, categories, runs and link errors are read by the operations of one's own groups.
    """
    return result


@client.put("/api/scraper/shared/group/{id}")
def svc_share_group(
    result: None, data: schemas.SvcShareGroupApplicationJson, id: str
) -> None:
    """Shares a group with others for reading, by their e-mail addresses

    All addresses are added or none; who has the group already keeps it. The answer does not tell whether an address is a customer's. A group is shared with 100 addresses at most, the groups of a customer 2,000 times.
    """
    return result


@client.delete("/api/scraper/shared/group/{id}")
def svc_revoke_group_share(result: None, id: str, email: str) -> None:
    """Ends the share of a group with an e-mail address

    Access: write. Rate class: general.
    """
    return result


@client.get("/api/scraper/shared/group/{id}/list")
def svc_list_group_shares(
    result: schemas.SvcListGroupShares200Response, id: str
) -> schemas.SvcListGroupShares200Response:
    """Lists the e-mail addresses that a group is shared with, for its owner

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
    """Gives a scraper the links that its runs read

    A scraper has one site. Who adds links sends all of them again. Those that it had stand until all of the new ones have come, and one invalid link refuses all. Links that are equal in canonical form are taken once, the first with its title. The state of a link stays when the site is sent again. Runs read links that no run has visited first, then the others; without a site they begin at the scraper's own address. The links come as links of a JSON body, or as the body itself. That is text/uri-list (an address a line, # begins a comment) or application/x-ndjson ({"url": …, "title": …} a line). The other members are query parameters then. A link has at most 8,192 bytes of text, a site 1,000,000 links, and a customer 1,000 sites with 10,000,000 links. Scrapers of lists, searches and files have none.
    """
    return result


@client.delete("/api/scraper/site/{site_id}")
def svc_delete_scraper_site(result: None, site_id: str) -> None:
    """Deletes a site with all its links; the scraper stays

    Its runs begin at its own address from then on. A site that is gone, or is none of the customer's, is deleted already.
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

    Text is sorted by its bytes; what is equal in it by the order in which it was given. A descending order turns both around.
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

    The list comes as urls (at most 100,000) of a JSON body, or as the body itself (at most 5,000,000). The body is text/uri-list (an address a line, # begins a comment) or application/x-ndjson ({"url": …} a line). The other members are query parameters then. One invalid address refuses the whole list and is named; nothing is saved or charged then. Addresses that are equal in canonical form are taken once. The first run of a list makes its scraper. With scraperId it runs again: rerun takes what was never charged, and force takes all. They take it from urls or, without urls, from the list last given. urls without either are all taken. With endpointTag websitecontacts each website has one row: website, email, emails_all, email_source_url, domain_match (yes, no, unknown or empty), status, checked_at. EMAIL_FOUND and NO_EMAIL_PUBLISHED cost two credits. EMAIL_NOT_EXTRACTABLE, PAGE_NOT_READABLE, SITE_UNREACHABLE, SOCIAL_PROFILE_ONLY and DAILY_LIMIT_REACHED cost nothing. The daily limits (UTC) are 2,000 websites, 800 that end uncharged, and 3 reads of a domain. A customer who has never topped up gets a run that has failed with a message. With the tag of a plugin the rows are those of MARKETPLACE, described at PUT /api/scraper.
    """
    return result


@client.put("/api/scraper/v2")
def svc_create_scraper_v2(
    result: schemas.EnrichedScraper, data: schemas.EnrichedScraperInput
) -> schemas.EnrichedScraper:
    """Creates a scraper, or replaces the one with the given id; answers the enriched form

    All of it is sent always. An id that is not one of the customer's scrapers is refused. What this version cannot run (other types) is refused with type_not_runnable rather than kept and ignored. Of a FILE scraper, sent with its id, name, groupRef and config.retentionCount may change; what it has none of is refused. Rows stay in the group that they were stored in. MARKETPLACE and SEARCH_ENGINE_SEARCH have fields of their own. Rows of a shop have position (in a list), title, url, price, priceMax, listPrice, currency, availability, condition and brand. They have sku, gtin, mpn, productId, category, rating, reviewCount, image, images, description and platform, too. Rows of a search have position, title, url, snippet, kind, query and page. APPLICATION_LD_JSON has a row for each thing that a page states (a Product, each element of an ItemList, each variant of a ProductGroup). Its properties are columns. Those of items within it are joined with an underscore (offers_price, brand_name). Several values are an array, and references are followed. itemsConfig may choose and name some, by column or by path (offers.price). AI_CONF has the properties of its schema. A row that does not fit the schema is dropped, not stored and not charged. A page that has no other ends with the error row_rejected. It is model_unavailable or model_limit_reached where the language model, asked for what the page does not state, gave no answer. It is no_rows where the page states nothing and there is no model. What the enriched form has beside the plain one is ignored.
    """
    return result


@client.get("/api/scraper/v2/{id}")
def svc_get_scraper_v2(
    result: schemas.EnrichedScraper, id: str
) -> schemas.EnrichedScraper:
    """Answers a scraper in the enriched form

    Access: read. Rate class: read.
    """
    return result


@client.get("/api/scraper/{id}")
def svc_get_scraper(result: schemas.Scraper, id: str) -> schemas.Scraper:
    """Answers a scraper

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

    Needs the token of a preview, as ?token= or X-Preview-Token; without one, a preview of the same deletion by the same customer that still holds. Its runs are stopped. Their records stay, and so does what was charged. Without withData its rows stay, too, and are read by group or run. With it nobody sees them from then on, and they go in the background.
    """
    return result


@client.post("/api/scraper/{id}/estimate")
def svc_estimate_scraper(
    result: schemas.RunEstimate, id: str, links: int | None = None
) -> schemas.RunEstimate:
    """Says what a run of a scraper will probably cost

    It goes by the newest 20 completed runs with the recipe as it is now. Their pages and tiers a link count, at today's prices, and a margin of 11 to 30%. Without one it is all that may be. That is from one page a link by the cheapest tier to the longest chains by the dearest. A sample narrows the tiers to those it needed. Where domains have prices of their own, those of the scraper's addresses count. Free requests are taken off. A new list is estimated by the scraper that is to be its template, with links. It is no cap: maxChargeMicros of a launch is.
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
    """Runs a scraper on its first page and answers the rows

    The first page of the start address, or of the first address of the newest list, is fetched and paid like any other. A sample from the cache costs nothing. The rows are answered and not kept. Where there are none the header Shoal-Reason says why. At most 1,000 rows and about 768 KiB are answered. The call waits up to 55 s; who hangs up ends the run.
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
    """Shows what the deletion of a scraper would do

    Show its warnings before the deletion. The token lets that through once, within 5 minutes, with the same parameters, unless what hangs on the target changes meanwhile. rows are those of runs that have ended; openRuns are stopped.
    """
    return result


@client.post("/api/scraper/{id}/re-extract")
def svc_re_extract(
    result: schemas.LaunchedRun, data: schemas.ReExtractInput, id: str
) -> schemas.LaunchedRun:
    """Makes a run of the kept bodies of an earlier run

    The pages that the run of jobId has read are read again as they were kept (config.keepBodyDays). They are read by the scraper as it is now, or with what the call names in its place. The scraper stays as it is. No site is asked and nothing is charged. The run stands in the history as any other. Its rows are seen once all of it is there, and a run that is stopped leaves nothing. A page whose body is not kept any more ends with the error body_gone. One that brought no rows keeps its error: it was not paid for. Currencies are converted by the rates that counted when the page was fetched. No language model is asked.
    """
    return result


@client.put("/api/scraper/{id}/retention")
def svc_update_scraper_retention(
    result: schemas.Scraper, data: schemas.RetentionInput, id: str
) -> schemas.Scraper:
    """Sets how many of a scraper's runs keep their rows

    When a run has ended, the rows of those before the newest ones are deleted in the background. Runs that brought no rows do not count. Run records, and what was charged, stay. The group's count wins over the scraper's.
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

    A scraper with a site reads its links, those first that no run has visited. Otherwise the start address is checked (it resolves and may be reached), not fetched. Scrapers of the type SEARCH_ENGINE_SEARCH ask one of the server's search engines for each query. The same Idempotency-Key within 24 hours answers the original run. Scrapers of list runs run through POST /api/scraper/url-list-run.
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

    A scraper with a site reads its links, those first that no run has visited. Otherwise the start address is checked (it resolves and may be reached), not fetched. Scrapers of the type SEARCH_ENGINE_SEARCH ask one of the server's search engines for each query. The same Idempotency-Key within 24 hours answers the original run. Scrapers of list runs run through POST /api/scraper/url-list-run.
    """
    return result


@client.get("/api/scraper/{id}/site")
def svc_get_scraper_site(
    result: schemas.SvcGetScraperSite200Response, id: str
) -> schemas.SvcGetScraperSite200Response:
    """Answers the site of a scraper, or null

    Its links are left out when they are more than 1,000.
    """
    return result


@client.get("/api/scraper/{id}/starts")
def svc_list_scraper_starts(result: schemas.Starts, id: str) -> schemas.Starts:
    """Answers when a scraper starts by itself, and what became of its newest starts

    A scraper without a schedule of its own starts with its group, and the starts are the group's. The first start that the balance, the plan or the recipe refuses is told as SCHEDULED_START_REFUSED. Those behind it are not, for the same reason.
    """
    return result


@client.get("/api/scraper/{id}/stop")
def svc_stop_scraper(result: None, id: str) -> None:
    """Stops a scraper's run

    The run's state is final at once. Pages that are being fetched are still stored and charged. The call waits for them, up to 10 s. A scraper that is not running is left as it is. Rows already there are kept.
    """
    return result


@client.post("/api/scraper/{id}/stop")
def svc_stop_scraper_by_post(result: None, id: str) -> None:
    """Stops a scraper's run

    The run's state is final at once. Pages that are being fetched are still stored and charged. The call waits for them, up to 10 s. A scraper that is not running is left as it is. Rows already there are kept.
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
    """Lists what the sitemaps of a scraper's site name

    The entries are those of the scraper's newest harvest, also while it is under way. They go each night at 02:00 UTC. One that goes on then goes a night later.
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
    """Reads the sitemaps of a scraper's site, and counts what they name

    The scraper's own address is read if it is a sitemap. Else those are that robots.txt names, or that are where sitemaps are. Sitemaps, RSS, Atom and text are read, packed or not, and indexes up to 4 levels deep. Addresses of other hosts are taken where the robots.txt of those names the sitemap. robots.txt is obeyed, one request a second is sent, and none is charged. Addresses are told apart by their canonical form. A harvest takes the place of the one before, and goes on in the background. The call waits for 55 s, then answers with the count so far; the same Idempotency-Key waits again. No sitemap, or an empty one, counts 0. A scraper has one harvest under way, a customer 10.
    """
    return result


@client.get("/api/subscription")
def svc_get_subscription(result: schemas.Subscription) -> schemas.Subscription:
    """Answers the customer's legacy plan

    INACTIVE with plan null: the customer pays as it goes, without a plan.
    """
    return result


@client.post("/api/subscription/cancel")
def svc_cancel_subscription(result: schemas.Subscription) -> schemas.Subscription:
    """Ends the subscription at the end of its period

    The plan stays until currentPeriodEnd, then it is STARTER. Until then cancel-downgrade takes it back.
    """
    return result


@client.post("/api/subscription/cancel-downgrade")
def svc_cancel_downgrade(result: schemas.Subscription) -> schemas.Subscription:
    """Keeps the plan, in place of what was scheduled

    Access: write. Rate class: top-up.
    """
    return result


@client.post("/api/subscription/change")
def svc_change_subscription(
    result: schemas.Subscription, data: schemas.PlanInput
) -> schemas.Subscription:
    """Changes the plan

    A dearer plan opens a checkout, and takes the place of the old one when it is paid. A cheaper one is scheduled for the end of the period, and charges nothing now. The same plan changes nothing.
    """
    return result


@client.post("/api/subscription/create")
def svc_create_subscription(
    result: schemas.Subscription, data: schemas.PlanInput
) -> schemas.Subscription:
    """Opens a checkout in which a plan is subscribed to

    An ACTIVE subscription is answered as it is. The plan begins when the payment provider has told of the payment. The free plan begins at once.
    """
    return result


@client.get("/api/subscription/prices")
def svc_list_plan_prices(
    result: schemas.SvcListPlanPrices200Response,
) -> schemas.SvcListPlanPrices200Response:
    """Lists what the plans cost that customers may choose, by level

    Access: public. Rate class: anonymous.
    """
    return result


@client.post("/api/subscription/webhook")
def svc_payment_notice(
    result: None, data: schemas.SvcPaymentNoticeApplicationJson
) -> None:
    """Takes signed notices of the payment provider

    Only the payment provider calls this. The bytes of the body are signed; a signature holds for five minutes. Notices may come twice and in any order.
    """
    return result


@client.get("/api/wallet")
def svc_get_wallet(result: schemas.Wallet) -> schemas.Wallet:
    """Answers the balance, charges of runs under way included

    Access: read. Rate class: read.
    """
    return result


@client.get("/api/wallet/prices")
def svc_list_prices(
    result: schemas.SvcListPrices200Response,
) -> schemas.SvcListPrices200Response:
    """Lists the prices that runs launched now will have

    Access: read. Rate class: read.
    """
    return result


@client.post("/api/wallet/topup")
def svc_start_top_up(
    result: schemas.StartedTopUp, data: schemas.TopUpInput
) -> schemas.StartedTopUp:
    """Opens a checkout in which the wallet is topped up

    The balance grows when the payment provider has told of the payment, which is seconds after it as a rule. A customer has at most 100 open top-ups.
    """
    return result


@client.get("/api/wallet/topup/{session_id}")
def svc_get_top_up(result: schemas.TopUpStatus, session_id: str) -> schemas.TopUpStatus:
    """Says what became of a top-up

    OPEN: not paid yet, or pending. APPLIED: paid and credited. EXPIRED and FAILED: no money moved; these are forgotten 30 days later. UNMATCHED: paid, but not to be credited as it stands, in another currency for example; the operator sees it.
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
    """Reads all of the wallet's transactions, newest first, by cursor

    There is no last page: the cursor leads to the first transaction of the wallet. What is entered meanwhile is not among those that follow.
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
    """Makes a webhook, at most 10 a customer

    Events are told by signed requests (Standard Webhooks): the headers webhook-id, webhook-timestamp and webhook-signature. A 2xx within 15 seconds takes one. Otherwise it is tried 8 times over 24 hours, each time under the same webhook-id; one that came may come again. The answer holds the secret, once.
    """
    return result


@client.get("/api/webhooks/{id}")
def svc_get_webhook(result: schemas.Webhook, id: str) -> schemas.Webhook:
    """Answers a webhook

    Access: read. Rate class: read.
    """
    return result


@client.put("/api/webhooks/{id}")
def svc_put_webhook(
    result: schemas.Webhook, data: schemas.WebhookInput, id: str
) -> schemas.Webhook:
    """Changes where a webhook goes, and of what it tells

    It switches one on again, too. Its secret stays.
    """
    return result


@client.delete("/api/webhooks/{id}")
def svc_delete_webhook(result: None, id: str) -> None:
    """Deletes a webhook and its log

    What is pending is not sent any more, but for calls under way.
    """
    return result


@client.get("/api/webhooks/{id}/deliveries")
def svc_list_webhook_deliveries(
    result: schemas.WebhookDeliveryPage,
    id: str,
    page: int | None = None,
    size: int | None = None,
) -> schemas.WebhookDeliveryPage:
    """Lists what was sent to a webhook and what is pending, newest first

    Each stays for 30 days. Beyond 500 the oldest one that has ended goes; while 500 are pending, new events are counted as droppedEvents.
    """
    return result


@client.post("/api/webhooks/{id}/deliveries/{delivery_id}/redeliver")
def svc_redeliver_webhook(
    result: schemas.WebhookDelivery, id: str, delivery_id: str
) -> schemas.WebhookDelivery:
    """Sends a delivery again at once, under its webhook-id

    One that has ended has 8 tries again. One that is pending is tried now.
    """
    return result


@client.post("/api/webhooks/{id}/rotate")
def svc_rotate_webhook(
    result: schemas.WebhookWithSecret, data: schemas.RotationInput, id: str
) -> schemas.WebhookWithSecret:
    """Gives a webhook another secret

    The answer holds it, once. Meanwhile requests have two signatures, and either one will do. With 0 the former secret ends at once.
    """
    return result


@client.post("/api/webhooks/{id}/test")
def svc_test_webhook(
    result: schemas.WebhookDelivery, id: str
) -> schemas.WebhookDelivery:
    """Sends a WEBHOOK_TEST to a webhook, also to one that is off

    What came of it stands in the log.
    """
    return result
