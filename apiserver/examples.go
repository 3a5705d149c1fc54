package apiserver

import (
	"maps"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// exampleTables are the examples of members and parameters in the description (operation.Examples),
// by topic. All show one shop's scraper, its run and the results. A name is in only one table.
func exampleTables() []operation.Examples {
	return []operation.Examples{memberExamples(),
		signInExamples(), passkeyExamples(), grantExamples(), agentExamples(), customerExamples(),
		scraperExamples(), uploadExamples(),
		runExamples(), groupExamples(), moneyExamples(), noticeExamples(), operatorExamples()}
}

// examples merges all tables.
func examples() operation.Examples {
	all := operation.Examples{}
	for _, table := range exampleTables() {
		maps.Copy(all, table)
	}
	return all
}

// rowIDExample is the id of a row of the run.
const rowIDExample = `"aOWxwtPktbbHyNnwBQAC"`

const (
	fieldsExample = `[{"name": "title", "selector": "h2 a", "kind": "TEXT"},
		{"name": "price", "selector": ".price", "kind": "TEXT"}]`
	sourceExample = `{"url": "https://shop.example/books?page=1",
		"pagination": {"type": "URL_PAGE_PARAM", "param": "page", "max": 10}}`
	schemaExample = `{"type": "object", "properties": {"name": {"type": "string"}},
		"required": ["name"]}`
)

// memberExamples are of members and parameters that look the same everywhere.
func memberExamples() operation.Examples {
	return operation.Examples{
		"agreeWithTerms":     `true`,
		"blockedBy":          `null`,
		"cascadeCounts":      `{"rows": 120, "openRuns": 0}`,
		"code":               `"no_rows"`,
		"content":            schemaExample,
		"curl":               `"curl 'https://shop.example/api/books?page=1'"`,
		"currency":           `"EUR"`,
		"customerRef":        `"auth0|5f7c8ec7"`,
		"customerUniqueRef":  `"auth0|5f7c8ec7"`,
		"dataTable":          `"shops"`,
		"description":        `"A book in a shop"`,
		"domainPatterns":     `[]`,
		"email":              `"ada@example.com"`,
		"entityName":         `"books"`,
		"entityType":         `"scraper"`,
		"error":              `null`,
		"errorMessage":       `null`,
		"event":              `"SCRAPER_RUN_FAILED"`,
		"firstname":          `"Ada"`,
		"key":                `"svc_live_a1b2c3d.0123456789abcdef"`,
		"kind":               `"recount"`,
		"lastRunState":       `"COMPLETED"`,
		"lastUsedAddress":    `"203.0.113.7"`,
		"lastname":           `"Lovelace"`,
		"leader":             `"node-1"`,
		"name":               `"books"`,
		"nextCursor":         `null`,
		"node":               `"node-1"`,
		"number":             `0`,
		"opName":             `"svc_delete_scraper"`,
		"place":              `"price"`,
		"plan":               `null`,
		"prefix":             `"a1b2c3d"`,
		"ref":                `"auth0|5f7c8ec7"`,
		"roles":              `["all"]`,
		"rowId":              rowIDExample,
		"rowKey":             `"tier:plain"`,
		"schedule":           `"0 6 * * mon-fri"`,
		"scheduleTimezone":   `"Europe/Paris"`,
		"sessionId":          `"cs_test_a1b2c3"`,
		"source":             `"RUN"`,
		"state":              `"COMPLETED"`,
		"status":             `"PENDING"`,
		"stopReason":         `null`,
		"subscriptionStatus": `null`,
		"templateId":         `""`,
		"templateName":       `""`,
		"text":               `"A run of the scraper books has failed."`,
		"tiers":              `["plain"]`,
		"title":              `"A run has failed"`,
		"token":              `"c2hvcnQtbGl2ZWQ"`,
		"url":                `"https://shop.example/books"`,
		"warnings":           `["The rows stay."]`,
	}
}

// signInExamples are of sign-ins and the accounts behind them.
func signInExamples() operation.Examples {
	return operation.Examples{
		"AccountInput.password": `"correct horse battery"`,
		"svc_sign_up_form":      `{"token": "QEJ3F7", "email": "ada@example.com"}`,
		"svc_recover_form":      `{"token": "QEJ3F7", "email": "ada@example.com"}`,
		"svc_new_password_form": `{"token": "QEJ3F7",
			"link": "68e5b1c2d3f4a5b6c7d8e9f0.r2N0", "next": "staple battery horse",
			"again": "staple battery horse"}`,
		"PasswordLink.link":             `"https://shoal.example/sign-in/new-password?link=68e5.r2N0"`,
		"NewPasswordInput.password":     `"staple battery horse"`,
		"PasswordInput.currentPassword": `"correct horse battery"`,
		"PasswordInput.newPassword":     `"staple battery horse"`,
		"SignInInput.password":          `"correct horse battery"`,
		"svc_password_form": `{"token": "QEJ3F7", "current": "correct horse battery",
			"next": "staple battery horse", "again": "staple battery horse"}`,
		"svc_sign_up_form text/html":      `"<!doctype html><title>Make an account</title>"`,
		"svc_sign_up_page text/html":      `"<!doctype html><title>Make an account</title>"`,
		"svc_recover_form text/html":      `"<!doctype html><title>Set a new password</title>"`,
		"svc_recover_page text/html":      `"<!doctype html><title>Set a new password</title>"`,
		"svc_new_password_form text/html": `"<!doctype html><title>Set a new password</title>"`,
		"svc_new_password_page text/html": `"<!doctype html><title>Set a new password</title>"`,
		"svc_password_form text/html":     `"<!doctype html><title>Change the password</title>"`,
		"svc_password_page text/html":     `"<!doctype html><title>Change the password</title>"`,
		"svc_sign_in_form": `{"token": "QEJ3F7", "email": "ada@example.com",
			"password": "correct horse battery"}`,
		"svc_sign_in_form text/html":  `"<!doctype html><title>Signed in</title>"`,
		"svc_sign_in_page text/html":  `"<!doctype html><title>Sign in</title>"`,
		"svc_sign_out_form":           `{"token": "QEJ3F7", "everywhere": "yes"}`,
		"svc_sign_out_form text/html": `"<!doctype html><title>Sign in</title>"`,
	}
}

// passkeyExamples are of authenticators and what they answer.
func passkeyExamples() operation.Examples {
	return operation.Examples{
		"NewPasskeyChallenge.algorithms":         `[-7, -8, -257]`,
		"NewPasskeyChallenge.challenge":          `"AAABmx2Yh0F2m3cZq1h0v0c5t9Qm1k3D"`,
		"NewPasskeyChallenge.excludeCredentials": `[]`,
		"NewPasskeyChallenge.userId":             `"aOWxwtPktbbHyNnw"`,
		"NewPasskeyChallenge.userName":           `"ada@example.com"`,
		"NewPasskeyInput.id":                     `"pTUqZ8b1mXk"`,
		"NewPasskeyInput.name":                   `"My phone"`,
		"Passkey.name":                           `"My phone"`,
		"attestationObject":                      `"o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVg"`,
		"authenticatorData":                      `"SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAQ"`,
		"clientDataJSON":                         `"eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0"`,
		"rpId":                                   `"shoal.example"`,
		"signature":                              `"MEUCIQDx0u5wq8V4"`,
		"timeoutSeconds":                         `240`,
		"PasskeyChallenge.challenge":             `"AAABmx2Yh0F2m3cZq1h0v0c5t9Qm1k3D"`,
		"PasskeySignInInput.id":                  `"pTUqZ8b1mXk"`,
		"PasskeySignInInput.userHandle":          `"aOWxwtPktbbHyNnw"`,
		"svc_new_passkey_challenge":              `{"currentPassword": "correct horse battery"}`,
		"svc_passkeys_form":                      `{"token": "QEJ3F7", "passkey": "68e5b1c2d3f4a5b6c7d8e9f0"}`,
		"svc_passkeys_form text/html":            `"<!doctype html><title>Passkeys</title>"`,
		"svc_passkeys_page text/html":            `"<!doctype html><title>Passkeys</title>"`,
		"svc_passkeys_script text/javascript":    `"\"use strict\";"`,
	}
}

// grantExamples are of programs that people authorize.
func grantExamples() operation.Examples {
	return operation.Examples{
		"svc_authorize_form": `{"token": "QEJ3F7", "decision": "LLM_READ",
			"response_type": "code", "client_id": "svc_client_eyJuIjoiYSJ9.c2ln",
			"redirect_uri": "http://127.0.0.1/back", "scope": "LLM_READ", "state": "af0ifjsldkj",
			"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
			"code_challenge_method": "S256", "resource": "https://shoal.example"}`,
		"svc_authorize_form text/html":              `"<!doctype html><title>Let a program in</title>"`,
		"svc_authorize_page text/html":              `"<!doctype html><title>Let a program in</title>"`,
		"svc_oauth_metadata application/json":       `{"issuer": "https://shoal.example"}`,
		"svc_oauth_resource application/json":       `{"resource": "https://shoal.example"}`,
		"svc_oauth_agent_resource application/json": `{"resource": "https://shoal.example/mcp"}`,
		"svc_programs_form":                         `{"token": "QEJ3F7", "grant": "68e5b1c2d3f4a5b6c7d8e9f0"}`,
		"svc_programs_form text/html":               `"<!doctype html><title>Programs</title>"`,
		"svc_programs_page text/html":               `"<!doctype html><title>Programs</title>"`,
		"svc_register_program application/json":     `{"client_id": "svc_client_eyJuIjoiYSJ9.c2ln"}`,
		"svc_revoke_token": `{"token": "svc_refresh_QEJ3F7",
			"client_id": "svc_client_eyJuIjoiYSJ9.c2ln"}`,
		"svc_revoke_token application/json": `{}`,
		"svc_token": `{"grant_type": "authorization_code",
			"client_id": "svc_client_eyJuIjoiYSJ9.c2ln", "code": "svc_code_QEJ3F7",
			"redirect_uri": "http://127.0.0.1/back",
			"code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}`,
		"svc_token application/json": `{"access_token": "svc_access_QEJ3F7", "token_type": "Bearer"}`,
	}
}

// customerExamples are of customers: their profile and their keys.
func customerExamples() operation.Examples {
	return operation.Examples{
		"CustomerInput.agreeWithTerms":             `true`,
		"Feedback.text":                            `"Please read PDF files, too."`,
		"FeedbackInput.text":                       `"Please read PDF files, too."`,
		"GeneratedKey.name":                        `"nightly import"`,
		"Identity.name":                            `"nightly import"`,
		"SitemapEntry.imageTitle":                  `"A red ball"`,
		"SitemapEntry.image":                       `"https://shop.example/balls/red.jpg"`,
		"SitemapEntry.url":                         `"https://shop.example/balls/red.html"`,
		"SitemapEntry.lastSeen":                    `"2026-01-02T03:04:05.000Z"`,
		"svc_harvest_sitemaps.cap":                 `10000`,
		"svc_merge_runs.scraperJobStatusIds":       `["665f1c2e8b3e4d0012a4c101","665f1c2e8b3e4d0012a4c102"]`,
		"svc_list_sitemaps.filters":                `"{\"url\":{\"$contains\":\"/balls/\"}}"`,
		"svc_list_sitemaps.search":                 `"ball"`,
		"svc_list_sitemaps.q":                      `"red"`,
		"svc_list_sitemaps.sort":                   `["lastSeen,desc"]`,
		"KeptExport.state":                         `"READY"`,
		"KeptExport.format":                        `"csv"`,
		"KeptExport.bytes":                         `20971520`,
		"KeptPage.path":                            `"/api/scraper/data/68e5b1c2d3f4a5b6c7d8e9f0AAAAAAAAAAA/receipt/body"`,
		"KeptExport.rows":                          `42000`,
		"KeptExport.errorCode":                     `null`,
		"KeptExport.sha256":                        `"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`,
		"Key.name":                                 `"nightly import"`,
		"SignUpInput.agreeWithTerms":               `true`,
		"svc_delete_additional_info":               `{"shoeSize": "42"}`,
		"svc_export_customer application/x-ndjson": `"{\"kind\":\"customer\"}\n"`,
		"svc_get_additional_info":                  `{"shoeSize": "42"}`,
		"svc_put_additional_info":                  `{"shoeSize": "42"}`,
		"svc_user_agreement text/html":             `"<!doctype html><title>Agreement</title>"`,
	}
}

const uploadIDExample = `"6f9619ff-8b86-4d01-b42d-00cf4fc964ff"`

// uploadExamples are of uploaded files.
func uploadExamples() operation.Examples {
	return operation.Examples{
		"svc_create_file_scraper text/csv":                                                          `"sku,price\n0042,19.90\n"`,
		"svc_create_file_scraper application/x-ndjson":                                              `"{\"sku\":\"0042\",\"price\":19.90}\n"`,
		"svc_create_file_scraper application/jsonl":                                                 `"{\"sku\":\"0042\",\"price\":19.90}\n"`,
		"svc_create_file_scraper application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": `"(the bytes of a spreadsheet)"`,
		"svc_send_file text/csv":                                                                    `"sku,price\n0042,19.90\n"`,
		"svc_send_file application/x-ndjson":                                                        `"{\"sku\":\"0042\",\"price\":19.90}\n"`,
		"svc_send_file application/jsonl":                                                           `"{\"sku\":\"0042\",\"price\":19.90}\n"`,
		"svc_send_file application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":           `"(the bytes of a spreadsheet)"`,
		"FileScraperInput.content":                                                                  `"sku,price\n0042,19.90\n"`,
		"NextFileInput.content":                                                                     `"sku,price\n0042,19.90\n"`,
		"FileScraperInput.format":                                                                   `"csv"`,
		"NextFileInput.format":                                                                      `"csv"`,
		"NextFileInput.keyColumn":                                                                   `"sku"`,
		"SentFile.keyColumnUsed":                                                                    `null`,
		"svc_create_file_scraper.check":                                                             `false`,
		"svc_send_file.check":                                                                       `false`,

		"svc_create_file_scraper.uploadId":           uploadIDExample,
		"svc_send_file.uploadId":                     uploadIDExample,
		"svc_put_file_part.uploadId":                 uploadIDExample,
		"svc_get_file_parts.uploadId":                uploadIDExample,
		"svc_put_file_part.offset":                   `4000000`,
		"svc_put_file_part.length":                   `9000000`,
		"svc_put_file_part application/octet-stream": `"(the bytes of a part)"`,

		"FileParts.receivedBytes": `8000000`,
		"FileParts.partBytes":     `4000000`,
	}
}

// scraperExamples are of scrapers: what they read, by which rules, and into which schema.
func scraperExamples() operation.Examples {
	return operation.Examples{
		"CommonField.name":                 `"price"`,
		"CommonField.type":                 `"number"`,
		"EnrichedScraper.itemsConfig":      fieldsExample,
		"EnrichedScraper.schema":           `null`,
		"EnrichedScraper.type":             `"MULTIPLE_PRODUCTS"`,
		"EnrichedScraperInput.itemsConfig": fieldsExample,
		"EnrichedScraperInput.type":        `"MULTIPLE_PRODUCTS"`,
		"FieldsPreview.fields":             `{"price": "12.50", "brand": null}`,
		"FieldsPreviewInput.fields":        `["price", "brand"]`,
		"PageCandidate.itemsConfig":        fieldsExample,
		"PageCandidate.schema":             `null`,
		"PageCandidate.type":               `"MULTIPLE_PRODUCTS"`,
		"PageChoice.attr":                  `"href"`,
		"PageChoice.kind":                  `"ATTR"`,
		"PageChoice.value":                 `"https://shop.example/books/1"`,
		"PagePick.itemsConfig":             fieldsExample,
		"PagePickInput.itemsConfig":        fieldsExample,
		"PagePreview.tier":                 `"plain"`,
		"PostProcessRule": `{"kind": "CURRENCY_CONVERT", "sourceField": "price",
			"outputField": "price_usd", "params": {"from": "EUR", "to": "USD"}}`,
		"RulePreview.output":       `13.6`,
		"Schema.type":              `"PRODUCT"`,
		"SchemaInput.type":         `"PRODUCT"`,
		"SchemaListEntry.type":     `"PRODUCT"`,
		"Scraper.itemsConfig":      fieldsExample,
		"Scraper.schema":           `null`,
		"Scraper.type":             `"MULTIPLE_PRODUCTS"`,
		"ScraperConfig":            `{"retentionCount": 10}`,
		"ScraperInput.itemsConfig": fieldsExample,
		"ScraperInput.type":        `"MULTIPLE_PRODUCTS"`,
		"SourceConfig":             sourceExample,
		"SourceConfigInput":        sourceExample,
		"Start.reason":             `null`,
		"svc_preview_scraper_rule": `{"sampleValue": 12.5, "rule": {"kind": "CURRENCY_CONVERT",
			"sourceField": "price", "outputField": "price_usd",
			"params": {"from": "EUR", "to": "USD"}}}`,
	}
}

// runExamples are of runs and their rows.
func runExamples() operation.Examples {
	return operation.Examples{
		"LaunchedListRun.tag":             `null`,
		"LinkError.error":                 `"the page was not found"`,
		"LinkError.status":                `404`,
		"LinkError.url":                   `"https://shop.example/book/7"`,
		"ListRunInput.groupId":            `"68e5b1c2d3f4a5b6c7d8e9f0"`,
		"ListRunInput.itemsConfig":        `[{"name": "title", "selector": "h1", "kind": "TEXT"}]`,
		"ListRunInput.name":               `"books of January"`,
		"ListRunInput.urls":               `["https://shop.example/book/1"]`,
		"ReExtractInput.itemsConfig":      `[{"name": "title", "selector": "h1", "kind": "TEXT"}]`,
		"ReExtractInput.jobId":            `"68e5b1c2d3f4a5b6c7d8e9f0"`,
		"ReExtractInput.postProcessRules": `null`,
		"ReExtractInput.schema":           `null`,
		"ReExtractInput.type":             `"SINGLE_PRODUCT"`,
		"Row": `{"title": "A book", "price": 12.5, "_sourceUrl": "https://shop.example/books",
			"_scrapedAt": "2026-01-02T03:04:05.678Z"}`,
		"Job.quarantineReason":     `null`,
		"FieldProfile.exampleUrl":  `"https://shop.example/books"`,
		"FieldProfile.examples":    `[12.5, 9]`,
		"FieldProfile.name":        `"price"`,
		"FieldProfile.types":       `{"number": 20}`,
		"RowChange.change":         `"CHANGED"`,
		"RowChange.changed":        `["price"]`,
		"RunOddity.aspect":         `"FILL_RATE"`,
		"RunOddity.field":          `"price"`,
		"RunOddity.text":           `"50% of the rows have a value, where it was 98% to 100%"`,
		"RowPrice.label":           `"Plain"`,
		"RowPrice.rowKey":          `"tier:plain"`,
		"RowReceipt.bodySha256":    `"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`,
		"RowReceipt.finalUrl":      `null`,
		"RowReceipt.rowId":         rowIDExample,
		"RowReceipt.status":        `200`,
		"RowReceipt.tier":          `"plain"`,
		"RowReceipt.url":           `"https://shop.example/books"`,
		"RowTry.code":              `null`,
		"RowTry.status":            `200`,
		"RowTry.tier":              `"plain"`,
		"SanitizedRowPage.content": `[]`,
		"svc_download_group_data application/x-ndjson":      `"{\"title\":\"A book\",\"price\":12.5}\n"`,
		"svc_download_group_data text/csv; charset=utf-8":   `"title,price\r\nA book,12.5\r\n"`,
		"svc_export_data application/x-ndjson":              `"{\"title\":\"A book\",\"price\":12.5}\n"`,
		"svc_export_data text/csv; charset=utf-8":           `"title,price\r\nA book,12.5\r\n"`,
		"svc_export_data.jobId":                             `"68e5b1c2d3f4a5b6c7d8e9f0"`,
		"svc_get_data.jobId":                                `"68e5b1c2d3f4a5b6c7d8e9f0"`,
		"RunDiff.key":                                       `["sku"]`,
		"svc_diff_runs application/x-ndjson":                `"{\"change\":\"ADDED\",\"changed\":[],\"before\":null,\"after\":{\"sku\":\"d\"}}\n"`,
		"svc_diff_runs text/csv; charset=utf-8":             `"change,changed,before,after\nADDED,[],,\n"`,
		"svc_diff_runs.key":                                 `["sku"]`,
		"svc_diff_runs.from":                                `"68e5b1c2d3f4a5b6c7d8e9f0"`,
		"svc_diff_runs.to":                                  `"68e5b1c2d3f4a5b6c7d8e9f1"`,
		"RunDiff.from":                                      `"68e5b1c2d3f4a5b6c7d8e9f0"`,
		"RunDiff.to":                                        `"68e5b1c2d3f4a5b6c7d8e9f1"`,
		"svc_list_all_scraper_jobs application/x-ndjson":    `"{\"state\":\"COMPLETED\"}\n"`,
		"svc_list_all_scraper_jobs text/csv; charset=utf-8": `"id,state\r\n68e5,COMPLETED\r\n"`,
		"svc_create_scraper_site application/x-ndjson":      `"{\"url\":\"https://shop.example/book/1\",\"title\":\"A book\"}\n"`,
		"svc_create_scraper_site text/uri-list":             `"https://shop.example/book/1\n"`,
		"svc_run_scraper_url_list application/x-ndjson":     `"{\"url\":\"https://shop.example/book/1\"}\n"`,
		"svc_run_scraper_url_list text/uri-list":            `"https://shop.example/book/1\n"`,
	}
}

// groupExamples are of groups: their categories, and with whom they are shared.
func groupExamples() operation.Examples {
	return operation.Examples{
		"Category.filters":           `{"price": {"$lt": 10}}`,
		"CategoryInput.filters":      `{"price": {"$lt": 10}}`,
		"GroupInput.name":            `"shops"`,
		"Group.changeAlerts":         `["ADDED", "CHANGED"]`,
		"Group.changeAlertsKey":      `["sku"]`,
		"GroupInput.changeAlerts":    `["ADDED", "CHANGED"]`,
		"GroupInput.changeAlertsKey": `["sku"]`,
		"svc_list_group_shares":      `"ada@example.com"`,
	}
}

// moneyExamples are of prices, wallets, plans and invoices.
func moneyExamples() operation.Examples {
	return operation.Examples{
		"Invoice.hostedInvoiceUrl":                                 `"https://pay.example/in_1a2b3c"`,
		"Invoice.id":                                               `"in_1a2b3c"`,
		"Invoice.status":                                           `"PAID"`,
		"LedgerDifference.customerRef":                             `"auth0|5f7c8ec7"`,
		"LedgerDifference.subject":                                 `"pi_3Qx0yz2eZvKYlo2C"`,
		"PlanFeatures.features":                                    `["DATA_EXPORT", "API"]`,
		"PlanFeatures.limits":                                      `{"MAX_SCRAPERS": 100, "MAX_GROUPS": 20}`,
		"PlanFeatures.plan":                                        `"PRO"`,
		"PlanInput.plan":                                           `"PRO"`,
		"PlanPrice.plan":                                           `"PRO"`,
		"Price.label":                                              `"Plain"`,
		"Subscription.payment":                                     `null`,
		"Subscription.plan":                                        `"PRO"`,
		"Subscription.scheduledPlan":                               `null`,
		"Subscription.status":                                      `"ACTIVE"`,
		"TransactionLine.label":                                    `"Plain"`,
		"WalletAdjustmentInput.amountMicros":                       `1000000`,
		"svc_download_kept_export application/x-ndjson":            `"{\"title\":\"A book\",\"price\":12.5}\n"`,
		"svc_download_kept_export text/csv; charset=utf-8":         `"title,price\r\nA book,12.5\r\n"`,
		"svc_download_kept_export.Range":                           `"bytes=1048576-"`,
		"svc_keep_export.jobId":                                    `"68e5b1c2d3f4a5b6c7d8e9f0"`,
		"svc_get_wallet_statement text/csv":                        `"at,type\r\n2026-01-02,CHARGE\r\n"`,
		"svc_get_wallet_statement text/html":                       `"<!doctype html><title>Statement</title>"`,
		"svc_get_wallet_statement.month":                           `"2026-01"`,
		"svc_list_all_wallet_transactions application/x-ndjson":    `"{\"type\":\"CHARGE\"}\n"`,
		"svc_list_all_wallet_transactions text/csv; charset=utf-8": `"id,type\r\n68e5,CHARGE\r\n"`,
		"svc_list_invoices.from":                                   `"2026-01-01"`,
		"svc_list_invoices.status":                                 `"PAID"`,
		"svc_list_invoices.to":                                     `"2026-01-31"`,
		"svc_payment_canceled text/html":                           `"<!doctype html><title>Canceled</title>"`,
		"svc_payment_notice application/json":                      `{"id": "evt_1", "type": "checkout.session.completed"}`,
		"svc_subscription_success text/html":                       `"<!doctype html><title>Paid</title>"`,
	}
}

// noticeExamples are of notifications: their contents and their channels.
func noticeExamples() operation.Examples {
	return operation.Examples{
		"StreamTicket.ticket":              `"svc_ticket_4GZ7Q2YB5M3KXJ6WAVTNRCEPLD4GZ7Q2YB5M3KXJ6WAVTNRCEPLD"`,
		"Webhook.events":                   `["SCRAPER_RUN_FAILED"]`,
		"WebhookDelivery.status":           `200`,
		"WebhookInput.events":              `["SCRAPER_RUN_FAILED"]`,
		"WebhookWithSecret.events":         `["SCRAPER_RUN_FAILED"]`,
		"WebhookWithSecret.secret":         `"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"`,
		"svc_get_notification_preferences": `{"SCRAPER_RUN_FAILED": "BOTH"}`,
		"svc_put_notification_preferences": `{"SCRAPER_RUN_FAILED": "BOTH"}`,
	}
}

// agentExamples are of the agent gateway.
func agentExamples() operation.Examples {
	return operation.Examples{
		"svc_agent_api_docs application/json": `{"openapi": "3.1.0"}`,
		"svc_mcp application/json": `{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
			"params": {"name": "svc_get_wallet", "arguments": {}}}`,
		"svc_mcp text/event-stream":             `"event: message\ndata: {\"jsonrpc\": \"2.0\", \"id\": 1}\n\n"`,
		"svc_end_mcp_session application/json":  `{}`,
		"svc_end_mcp_session text/event-stream": `""`,
	}
}

// operatorExamples are of the service itself: its cluster, settings and audit trail.
func operatorExamples() operation.Examples {
	return operation.Examples{
		"AuditActor.address":                           `"192.0.2.7"`,
		"AuditActor.correlationId":                     `"6a3f2c9b1e"`,
		"AuditActor.operation":                         `"svc_admin_block_customer"`,
		"AuditActor.subject":                           `"auth0|5f7c8ec7"`,
		"AuditTrailChange.after":                       `{"blockedAt":1767323045000,"blockedBy":"root"}`,
		"AuditTrailChange.before":                      `{}`,
		"AuditTrailChange.record":                      `"customers auth0|5f7c8ec7"`,
		"AuditTrailEntry.action":                       `"svc_admin_block_customer"`,
		"AuditTrailEntry.hash":                         `"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`,
		"AuditTrailEntry.previousHash":                 `"60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"`,
		"AuditTrailMark.hash":                          `"60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"`,
		"CatalogueFile.by":                             `"auth0|5f7c8ec7"`,
		"CatalogueFile.format":                         `"csv"`,
		"CatalogueFile.message":                        `""`,
		"CatalogueFile.state":                          `"READY"`,
		"CatalogueInput.content":                       `"id,gtin,title\n0042,4006381333931,Pen\n"`,
		"CatalogueInput.format":                        `"csv"`,
		"svc_admin_put_catalogue text/csv":             `"id,gtin,title\n0042,4006381333931,Pen\n"`,
		"svc_admin_put_catalogue application/x-ndjson": `"{\"id\":\"0042\",\"title\":\"Pen\"}\n"`,
		"svc_admin_put_catalogue application/jsonl":    `"{\"id\":\"0042\",\"title\":\"Pen\"}\n"`,
		"ClusterNode.goneMillis":                       `null`,
		"ClusterNode.name":                             `"node-1"`,
		"ClusterNode.version":                          `"0.1.0"`,
		"ClusterStatus.lag":                            `{}`,
		"SalesWeek.week":                               `"2026-W01"`,
		"SalesWeek.startsOn":                           `"2025-12-29"`,
		"FeedbackEntry.text":                           `"Please read PDF files, too."`,
		"KeptBackup.name":                              `"2026-01-02T03-04-05Z-42.backup"`,
		"PriceTableRow.label":                          `"Plain"`,
		"PriceTableRowInput.label":                     `"Plain"`,
		"PriceTable.changedBy":                         `"auth0|5f7c8ec7"`,
		"ServiceSettings.changedBy":                    `"auth0|5f7c8ec7"`,
		"ServiceSettings.customerRates":                `{"run": "200/1m"}`,
		"ServiceSettings.rates":                        `{"run": "20/1m"}`,
		"PlanOffer.features":                           `["DATA_EXPORT", "API"]`,
		"PlanOffer.limits":                             `{"MAX_SCRAPERS": 100, "MAX_GROUPS": 20}`,
		"PlanOffer.plan":                               `"PRO"`,
		"ServiceSettingsInput.plans":                   `[{"plan": "STARTER", "level": 0, "monthlyPrice": 0, "features": [], "limits": {}}]`,
		"ServiceSettingsInput.customerRates":           `{"run": "200/1m"}`,
		"ServiceSettingsInput.rates":                   `{"run": "20/1m"}`,
		"svc_admin_audit application/x-ndjson":         `"{\"number\":1}\n"`,
		"svc_admin_audit text/csv; charset=utf-8":      `"number,action\r\n1,svc_admin_block_customer\r\n"`,
		"svc_api_docs application/json":                `{"openapi": "3.1.0"}`,
		"svc_metrics text/plain":                       `"shoal_up 1\n"`,
	}
}
