package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// few is a cap that is enough for a few pages, in micros.
const few = 20_000

// tasks are the worker's tasks, in order: later ones build on earlier ones.
func (w *worker) tasks() []task {
	return []task{
		{"find a price on a shop's page", w.findPrice},
		{"find what a page says of five things", w.findFive},
		{"make a scraper of a page", w.makeScraper},
		{"try a scraper", w.trySample},
		{"say what a run will cost", w.estimate},
		{"crawl a list and count its rows", w.crawl},
		{"say which addresses failed", w.failures},
		{"read the dearest row of a list", w.dearest},
		{"read three columns of all rows", w.columns},
		{"crawl the list again", w.crawlAgain},
		{"compare two runs", w.compare},
		{"say what the runs have cost", w.costs},
		{"set up a daily scraper", w.daily},
		{"pause a group", w.pause},
		{"keep a filter as a category", w.category},
		{"say where a row comes from", w.receipt},
		{"stop a run", w.stop},
		{"be told of failed runs", w.webhook},
		{"delete a run's rows", w.deleteRows},
		{"delete a scraper and all its rows", w.deleteScraper},
	}
}

func (w *worker) findPrice() {
	found := w.call("svc_preview_from_url", args{"url": w.urls[0], "fields": []string{"price"},
		"maxChargeMicros": few})
	w.want("price", found.text("result", "fields", "price", "content"),
		w.truth(w.urls[0], "price"))
	if found.at("cost", "chargedMicros") == nil {
		w.t.Error("it does not say what it has cost")
	}
}

func (w *worker) findFive() {
	found := w.call("svc_preview_from_url", args{"url": w.urls[1], "maxChargeMicros": few,
		"fields": []string{"title", "price", "sku", "stock", "nothing"}})
	for _, name := range []string{"title", "sku", "stock"} {
		w.want(name, found.text("result", "fields", name, "content"), w.truth(w.urls[1], name))
	}
}

func (w *worker) makeScraper() {
	made := w.call("svc_put_group", args{"name": "shops", "dataTable": "shops"})
	w.group = made.text("result", "id")
	found := w.call("svc_preview_scraper_from_url", args{"url": w.urls[2], "name": "shop",
		"groupId": w.group, "maxChargeMicros": few})
	proposal, _ := found.at("result", 0, "scraperDTO").(map[string]any)
	saved := w.call("svc_create_scraper_v2", proposal) // as it came
	w.want("valid", saved.at("result", "configValid"), true)
	w.scraper = saved.text("result", "id")
}

func (w *worker) trySample() {
	tried := w.call("svc_get_scraper_sample_data", args{"id": w.scraper, "maxChargeMicros": few})
	w.want("rows", tried.count("result") > 0, true)
}

func (w *worker) estimate() {
	e := w.call("svc_estimate_scraper", args{"id": w.scraper})
	w.want("affordable", e.at("result", "affordable"), true)
}

func (w *worker) crawl() {
	fields := []args{{"name": "title", "selector": "h1.title", "kind": "TEXT"},
		{"name": "price", "selector": "main .price", "kind": "TEXT"},
		{"name": "sku", "selector": "div.sku", "kind": "TEXT"}}
	launched := w.call("svc_run_scraper_url_list", args{"groupId": w.group, "name": "list",
		"urls": append(slices.Clone(w.urls), w.gone()), "itemsConfig": fields,
		"maxChargeMicros": few})
	w.list = launched.text("result", "scraperId")
	w.ends(launched.text("result", "jobId"))
}

// ends waits for a run of the list, whose rows are those of all pages that are there.
func (w *worker) ends(job string) {
	w.t.Helper()
	far := w.await(job)
	w.jobs, w.charged = append(w.jobs, job), append(w.charged, far.at("result", "chargedMicros"))
	w.want("state", far.text("result", "state"), "SUCCESS")
	w.want("rows", far.at("result", "itemsQuantity"), len(w.urls))
}

// gone is an address without a page.
func (w *worker) gone() string { return w.urls[0] + "/gone" }

func (w *worker) failures() {
	failed := w.call("svc_list_scraper_job_errors", args{"groupId": w.group, "jobId": w.jobs[0]})
	w.want("errors", failed.count("result"), 1)
	w.want("failed", failed.text("result", 0, "url"), w.gone())
}

func (w *worker) dearest() {
	read := w.call("svc_get_group_data_client", args{"id": w.group, "scraperId": w.list,
		"sort": []string{"price,desc"}, "size": 1})
	w.want("rows", read.count("result", "content"), 1)
	w.want("of", read.at("result", "totalElements"), len(w.urls))
	dearest := 0.0
	for _, address := range w.urls {
		dearest = max(dearest, w.number(w.truth(address, "price")))
	}
	w.want("price", w.number(read.at("result", "content", 0, "price", "content")), dearest)
}

// number reads a price.
func (w *worker) number(price any) float64 {
	w.t.Helper()
	value, err := strconv.ParseFloat(fmt.Sprint(price), 64)
	if err != nil {
		w.t.Error(err)
	}
	return value
}

func (w *worker) columns() {
	rows := 0
	for with := (args{"jobId": w.jobs[0], "fields": []string{"title", "price", "_sourceUrl"}}); ; {
		read := w.call("svc_get_data", with)
		rows += read.count("result", "items")
		next := read.text("cursor")
		if next == "" {
			next = read.text("result", "nextCursor")
		}
		if next == "" {
			break
		}
		with["cursor"] = next
	}
	w.want("rows", rows, len(w.urls))
}

func (w *worker) crawlAgain() {
	launched := w.call("svc_run_scraper_url_list", args{"scraperId": w.list, "force": true,
		"maxChargeMicros": few})
	w.ends(launched.text("result", "jobId"))
}

func (w *worker) compare() {
	diff := w.call("svc_diff_runs", args{"from": w.jobs[0], "to": w.jobs[1], "key": "sku"})
	w.want("changes", diff.count("result", "items"), 0)
	w.want("equal rows", diff.at("result", "summary", "unchanged"), len(w.urls))
}

func (w *worker) costs() {
	history := w.call("svc_list_scraper_jobs", args{"filters": fmt.Sprintf(`{"scraperId":%q}`,
		w.list)})
	w.want("runs", history.count("result", "content"), len(w.jobs))
	for i, charged := range w.charged { // the newest is the first
		run := len(w.charged) - 1 - i
		w.want("run", history.at("result", "content", run, "id"), w.jobs[i])
		w.want("charged", history.at("result", "content", run, "chargedMicros"), charged)
	}
}

func (w *worker) daily() {
	now := w.call("svc_get_scraper", args{"id": w.scraper})
	changed, _ := now.at("result").(map[string]any)
	changed["schedule"] = "30 6 * * *"
	saved := w.call("svc_create_scraper_v2", changed)
	w.want("a next start", strings.Contains(saved.text("result", "nextStart"), "T06:30"), true)
}

func (w *worker) pause() {
	w.call("svc_put_group_start_type", args{"id": w.group, "startType": "NONE"})
	paused := w.look("svc_get_scraper", args{"id": w.scraper})
	w.want("schedule", paused.text("result", "schedule"), "30 6 * * *")
	w.want("next start", paused.at("result", "nextStart"), nil)
}

func (w *worker) category() {
	w.call("svc_put_category", args{"id": w.group, "name": "with a price",
		"filters": args{"price": args{"exists": true}}})
	read := w.call("svc_get_group_data_client", args{"id": w.group, "scraperId": w.list,
		"categories": []string{"with a price"}, "isLastRun": true, "size": 1})
	w.want("rows", read.at("result", "totalElements"), len(w.urls))
}

func (w *worker) receipt() {
	read := w.call("svc_get_data", args{"jobId": w.jobs[1], "limit": 1,
		"fields": []string{"_rowId"}})
	from := w.call("svc_get_row_receipt", args{"rowId": read.text("result", "items", 0, "_rowId")})
	w.want("run", from.text("result", "jobId"), w.jobs[1])
}

func (w *worker) stop() {
	w.want("state", w.await(w.stopHeld()).text("result", "state"), "CANCELLED")
}

// stopHeld stops a run whose sites answer nothing meanwhile: it cannot end by itself.
func (w *worker) stopHeld() (job string) {
	w.t.Helper()
	defer w.web.Hold()()
	launched := w.call("svc_run_scraper_url_list", args{"scraperId": w.list, "force": true,
		"maxChargeMicros": few})
	w.call("svc_stop_group", args{"id": w.group})
	return launched.text("result", "jobId")
}

func (w *worker) webhook() {
	made := w.call("svc_create_webhook", args{"url": "https://hooks.example/shoal",
		"events": []string{"SCRAPER_RUN_FAILED"}})
	w.want("a secret", strings.HasPrefix(made.text("result", "secret"), "whsec_"), true)
}

func (w *worker) deleteRows() {
	preview := w.call("svc_preview_delete_run_data", args{"scraperJobStatusId": w.jobs[0]})
	w.call("svc_delete_run_data", args{"scraperJobStatusId": w.jobs[0],
		"token": preview.text("result", "token")})
	for i, rows := range []int{0, len(w.urls)} { // those of the other run stay
		w.want("rows left", w.rowsOf(w.jobs[i]), rows)
	}
}

// rowsOf counts the rows of a run.
func (w *worker) rowsOf(job string) int {
	w.t.Helper()
	return w.look("svc_get_data", args{"jobId": job, "limit": 1000,
		"fields": []string{"sku"}}).count("result", "items")
}

func (w *worker) deleteScraper() {
	preview := w.call("svc_preview_delete_scraper", args{"id": w.list, "withData": true})
	w.call("svc_delete_scraper", args{"id": w.list, "withData": true,
		"token": preview.text("result", "token")})
	w.want("the scraper", w.look("svc_get_scraper", args{"id": w.list}).text("error", "code"),
		"scraper_not_found")
	w.want("rows left", w.rowsOf(w.jobs[1]), 0)
}
