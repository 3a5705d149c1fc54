package runs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// contacts is the body of a list run of website contacts.
func (r *rig) contacts(changes ...any) string {
	return r.body(append([]any{"itemsConfig", nil, "endpointTag", "websitecontacts"},
		changes...)...)
}

func (r *rig) topUp(t *testing.T, amount int64) {
	t.Helper()
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: amount})
}

func TestContacts(t *testing.T) {
	r := start(t)
	r.topUp(t, 10_000)
	body := r.contacts("urls",
		[]string{"https://shop.test", "https://Shop.test:443/", "https://other.test/a"})
	first := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath, Body: body})
	want := map[string]any{"jobId": first.Text("jobId"), "scraperId": first.Text("scraperId"),
		"tag": "websitecontacts", "linksQueued": 2,
		"duplicatesDropped": 1, "status": "PENDING"}
	id, err := ids.Parse(first.Text("jobId"))
	if err != nil {
		t.Fatalf("list run: %s", first.Body)
	}
	r.Run(t,
		apitest.Scenario{Name: "same name", As: apitest.LLM, Do: listPath, Body: body, Status: 409,
			Code: "NAME_TAKEN"},
		apitest.Scenario{Name: "is running", As: apitest.LLM, Do: listPath, Status: 409,
			Code: "list_already_run",
			Body: fmt.Sprintf(`{"scraperId":%q,"force":true}`, first.Text("scraperId"))},
	)
	job := r.Client.View().Job(id)
	endpoint, _ := model.EndpointOf(model.WebsiteContacts)
	if job.Charge != endpoint.Charge || job.Daily != endpoint.Daily ||
		job.Tiers != model.TiersOf(model.Plain) {
		t.Errorf("job %+v", job)
	}
	recipe := r.Client.View().Recipe(job.Scraper, job.Revision)
	if recipe == nil || recipe.Recipe.Endpoint != model.WebsiteContacts {
		t.Errorf("recipe %+v", recipe)
	}
	for name, value := range want {
		if got, _ := first.At(name); fmt.Sprint(got) != fmt.Sprint(value) {
			t.Errorf("%s is %v, want %v", name, got, value)
		}
	}
}

func TestContactsRefuses(t *testing.T) {
	r := start(t)
	r.topUp(t, 10_000)
	many := make([]string, 5_001)
	for i := range many {
		many[i] = fmt.Sprintf("https://shop-%d.test/", i)
	}
	template := r.newScraper(t, "template", "https://shop.test/")
	for _, c := range []struct {
		name    string
		changes []any
		status  int
		code    string
		field   any
	}{
		{"too many", []any{"urls", many}, 400, "LIST_TOO_LARGE", "urls"},
		{"none", []any{"urls", []string{}}, 400, "invalid_request", "urls"},
		{"long name", []any{"name", strings.Repeat("n", 201)}, 400, "invalid_request", "name"},
		{"fields", []any{"itemsConfig", fields}, 400, "invalid_request", "endpointTag"},
		{"template", []any{"templateScraperId", template}, 400, "invalid_request", "endpointTag"},
		{"unknown group", []any{"groupId", "0123456789abcdef01234567"}, 404, "GROUP_NOT_FOUND",
			"groupId"},
		{"another tag", []any{"endpointTag", "contacts"}, 400, "TAG_NOT_RESOLVED", "endpointTag"},
		{"own port", []any{"urls", []string{"https://shop.test/", "https://shop.test:8443/"}}, 400,
			"INVALID_URL", "urls[1]"},
		{"another scheme's port", []any{"urls", []string{"http://shop.test:443/"}}, 400,
			"INVALID_URL", "urls[0]"},
		{"IP address", []any{"urls", []string{"http://93.184.216.34/"}}, 400, "INVALID_URL",
			"urls[0]"},
		{"IPv6 address", []any{"urls", []string{"http://[2606:2800:220:1::1]/"}}, 400,
			"INVALID_URL", "urls[0]"},
		{"single label", []any{"urls", []string{"http://intranet/"}}, 400, "INVALID_URL",
			"urls[0]"},
		{"internal name", []any{"urls", []string{"https://wiki.corp/"}}, 400, "INVALID_URL",
			"urls[0]"},
		{"no scheme", []any{"urls", []string{"shop.test"}}, 400, "INVALID_URL", "urls[0]"},
		{"no slashes", []any{"urls", []string{"https:shop.test/"}}, 400, "INVALID_URL", "urls[0]"},
		{"one slash", []any{"urls", []string{"https:/shop.test/"}}, 400, "INVALID_URL", "urls[0]"},
		{"backslashes", []any{"urls", []string{`https:\\shop.test/`}}, 400, "INVALID_URL",
			"urls[0]"},
		{"empty label", []any{"urls", []string{"https://shop../"}}, 400, "INVALID_URL", "urls[0]"},
		{"empty first label", []any{"urls", []string{"https://.shop.test/"}}, 400, "INVALID_URL",
			"urls[0]"},
		{"local name", []any{"urls", []string{"https://printer.local/"}}, 400, "INVALID_URL",
			"urls[0]"},
		{"another scheme", []any{"urls", []string{"ftp://shop.test/"}}, 400, "INVALID_URL",
			"urls[0]"},
		{"password", []any{"urls", []string{"https://u:p@shop.test/"}}, 400, "INVALID_URL",
			"urls[0]"},
	} {
		r.Run(t, apitest.Scenario{Name: c.name, As: apitest.LLM, Do: listPath,
			Body: r.contacts(c.changes...), Status: c.status, Code: c.code,
			Has: map[string]any{"errors.0.field": c.field}})
	}
	for _, as := range []string{apitest.User, apitest.Reader, apitest.SignIn} {
		r.Run(t, apitest.Scenario{Name: "as " + as, As: as, Do: listPath, Body: r.contacts(),
			Status: 403, Code: "scope_rejected"})
	}
	for _, stream := range []struct{ media, line string }{
		{"text/uri-list", "https://shop-%d.test/\n"},
		{"application/x-ndjson", `{"url":"https://shop-%d.test/"}` + "\n"}} {
		body := ""
		for i := range 5_001 {
			body += fmt.Sprintf(stream.line, i)
		}
		do := listPath + "?endpointTag=websitecontacts&name=list&groupId=" + r.group.String()
		r.Run(t, apitest.Scenario{Name: "too many as " + stream.media, As: apitest.LLM, Do: do,
			Header: media(stream.media), Body: body,
			Status: 400, Code: "LIST_TOO_LARGE"})
	}
	r.nothingLeft(t)
	if r.Client.View().ScraperByName("alice", "list") != nil {
		t.Error("a scraper was saved")
	}
	made := r.Call(t, apitest.Scenario{Name: "as many as may be", As: apitest.LLM, Do: listPath,
		Body:   r.contacts("urls", many[:5_000]),
		Status: 200, Has: map[string]any{"linksQueued": 5_000}})
	r.finish(t, made.Text("jobId"), 5_000)
	for name, force := range map[string]bool{"too many by the scraper's id": false,
		"too many, forced": true} {
		r.Run(t, apitest.Scenario{Name: name, As: apitest.LLM, Do: listPath, Status: 400,
			Code: "LIST_TOO_LARGE",
			Body: r.contacts("groupId", nil, "name", nil, "endpointTag", nil, "scraperId",
				made.Text("scraperId"), "urls", many, "force", force),
			Has: map[string]any{"errors.0.field": "urls"}})
	}
}

// The scraper of a list of websites can be renamed, but not changed otherwise. It cannot get
// another recipe or run on its own, because such a run would lack the scope, price and limits of
// website contacts.
func TestContactsStayContacts(t *testing.T) {
	r := start(t)
	r.topUp(t, 10_000)
	first := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath, Body: r.contacts()})
	r.finish(t, first.Text("jobId"), 2, 0, 1)
	id := first.Text("scraperId")
	read := apitest.Scenario{As: apitest.User, Do: "GET /api/scraper/" + id, Status: 200,
		Has: map[string]any{"type": "SINGLE_PRODUCT", "config.endpointTag": "websitecontacts"}}
	r.Run(t, read)
	put := func(name, members string, status int, field any) apitest.Scenario {
		sc := apitest.Scenario{Name: name, As: apitest.User, Do: "PUT /api/scraper",
			Header: key(name), Status: status,
			Body: fmt.Sprintf(`{"id":%q,"name":"renamed","groupRef":%q,%s}`, id, r.group, members)}
		if status != 200 {
			sc.Code, sc.Has = "schema_validation_failed", map[string]any{"errors.0.field": field}
		}
		return sc
	}
	const field = `[{"name":"a","selector":"h1","kind":"TEXT"}]`
	r.Run(t,
		put("renamed",
			`"type":"SINGLE_PRODUCT","sourceConfig":{},"config":{"endpointTag":"websitecontacts"}`,
			200, nil), read,
		put("an address beside the list",
			`"type":"SINGLE_PRODUCT","sourceConfig":{"url":"https://shop.test/"}`, 200, nil), read,
		put("fields", `"type":"SINGLE_PRODUCT","sourceConfig":{},"itemsConfig":`+field, 400,
			"itemsConfig"),
		put("pages",
			`"type":"SINGLE_PRODUCT","sourceConfig":{"pagination":{"type":"URL_PAGE_PARAM","param":"p"}}`, 400, "sourceConfig.pagination"),
		put("a plugin", `"type":"MARKETPLACE","sourceConfig":{}`, 400, "type"),
		put("a search", `"type":"SEARCH_ENGINE_SEARCH","sourceConfig":{"queries":["a"]}`, 400,
			"type"),
		apitest.Scenario{Name: "run by itself", As: apitest.LLM,
			Do: "GET /api/scraper/" + id + "/run", Status: 400, Code: "type_not_runnable"},
		apitest.Scenario{Name: "sample", As: apitest.LLM,
			Do: "GET /api/scraper/" + id + "/get-sample-data", Status: 400,
			Code: "type_not_runnable"},
		apitest.Scenario{Name: "as a template", As: apitest.LLM, Do: listPath,
			Body:   r.body("itemsConfig", nil, "templateScraperId", id, "name", "other"),
			Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "templateScraperId"}},
	)
	again := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath,
		Body: fmt.Sprintf(`{"scraperId":%q,"force":true}`, id)})
	jobID, _ := ids.Parse(again.Text("jobId"))
	endpoint, _ := model.EndpointOf(model.WebsiteContacts)
	if job := r.Client.View().Job(jobID); again.Text("tag") != model.WebsiteContacts ||
		job.Charge != endpoint.Charge || job.Daily != endpoint.Daily {
		t.Errorf("%s: job %+v", again.Body, job)
	}
}

// A customer who never topped up gets a failed run with a message. Nothing is fetched or charged,
// and free requests remain.
func TestContactsWithoutTopUp(t *testing.T) {
	r := start(t)
	a := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath, Body: r.contacts()})
	if a.Status != 200 || a.Text("status") != "FAILED" ||
		!strings.Contains(a.Text("message"), "not part of the free requests") {
		t.Fatalf("list run: %s", a.Body)
	}
	id, _ := ids.Parse(a.Text("jobId"))
	r.Client.Dispatch(t, id, 0, 1)
	r.Client.CloseRun(t, id)
	job, wallet := r.Client.View().Job(id), r.Client.View().Wallet("alice")
	if !job.Closed || job.State != model.Failed ||
		!strings.Contains(job.Message, "not part of the free requests") || job.Pages != 0 ||
		wallet.Free != 5 || wallet.Balance() != 0 {
		t.Errorf("job %+v, wallet %+v", job, wallet)
	}
	r.topUp(t, 299)
	again := fmt.Sprintf(`{"scraperId":%q,"rerun":true}`, a.Text("scraperId"))
	r.Run(t, apitest.Scenario{Name: "too little for one website", As: apitest.LLM, Do: listPath,
		Body: again, Status: 402,
		Code: "WALLET_INSUFFICIENT_BALANCE"})
	r.topUp(t, 1)
	r.Run(t,
		apitest.Scenario{Name: "its rerun by another scope", As: apitest.User, Do: listPath,
			Body: again, Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "topped up", As: apitest.LLM, Do: listPath, Body: again, Status: 200,
			Has: map[string]any{"status": "PENDING", "linksQueued": 2}},
	)
}

// A rerun takes the websites that were not charged, including those that have a row.
func TestContactsAgain(t *testing.T) {
	r := start(t)
	r.topUp(t, 10_000)
	urls := []string{"https://a.test/", "https://b.test/", "https://c.test/"}
	first := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath,
		Body: r.contacts("urls", urls)})
	r.finish(t, first.Text("jobId"), 3, 0, 2)
	again := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath,
		Body: fmt.Sprintf(`{"scraperId":%q,"rerun":true}`, first.Text("scraperId"))})
	if got := r.urls(t, again.Text("jobId")); !slices.Equal(got, urls[1:2]) {
		t.Errorf("the rerun takes %q", got)
	}
	wallet := r.Client.View().Wallet("alice")
	if wallet.Balance() != 10_000-600 || wallet.Free != 5 {
		t.Errorf("wallet %+v", wallet)
	}
}
