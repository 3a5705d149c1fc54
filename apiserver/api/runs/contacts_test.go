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
	return r.body(append([]any{"itemsConfig", nil, "endpointTag", "websitecontacts"}, changes...)...)
}

func (r *rig) topUp(t *testing.T, amount int64) {
	t.Helper()
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: amount})
}

// startPriced is an API whose price table has website contacts.
func startPriced(t *testing.T) *rig {
	t.Helper()
	r := start(t)
	r.Client.Must(t, client.PutPrices{Rows: []model.Price{{RowKey: "tier:plain", Kind: "TIER", Label: "Plain", Micros: 150},
		{RowKey: "plugin:websitecontacts", Kind: "PLUGIN", Label: "Website contacts", Micros: 150}}})
	return r
}

func TestContacts(t *testing.T) {
	r := startPriced(t)
	r.topUp(t, 10_000)
	body := r.contacts("urls", []string{"https://shop.test", "https://Shop.test:443/", "https://other.test/a"})
	first := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath, Body: body})
	want := map[string]any{"jobId": first.Text("jobId"), "scraperId": first.Text("scraperId"), "tag": "websitecontacts", "linksQueued": 2,
		"duplicatesDropped": 1, "status": "PENDING"}
	id, err := ids.Parse(first.Text("jobId"))
	if err != nil {
		t.Fatalf("list run: %s", first.Body)
	}
	r.Run(t,
		apitest.Scenario{Name: "same name", As: apitest.LLM, Do: listPath, Body: body, Status: 409, Code: "NAME_TAKEN"},
		apitest.Scenario{Name: "is running", As: apitest.LLM, Do: listPath, Status: 409, Code: "list_already_run",
			Body: fmt.Sprintf(`{"scraperId":%q,"force":true}`, first.Text("scraperId"))},
	)
	job := r.Client.View().Job(id)
	endpoint, _ := model.EndpointOf(model.WebsiteContacts)
	if job.Charge != endpoint.Charge || job.Daily != endpoint.Daily || job.Tiers != model.TiersOf(model.Plain) {
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
	r := startPriced(t)
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
		{"unknown group", []any{"groupId", "0123456789abcdef01234567"}, 404, "GROUP_NOT_FOUND", "groupId"},
		{"another tag", []any{"endpointTag", "contacts"}, 400, "TAG_NOT_RESOLVED", "endpointTag"},
		{"own port", []any{"urls", []string{"https://shop.test/", "https://shop.test:8443/"}}, 400, "INVALID_URL", "urls[1]"},
		{"another scheme's port", []any{"urls", []string{"http://shop.test:443/"}}, 400, "INVALID_URL", "urls[0]"},
		{"IP address", []any{"urls", []string{"http://93.184.216.34/"}}, 400, "INVALID_URL", "urls[0]"},
		{"IPv6 address", []any{"urls", []string{"http://[2606:2800:220:1::1]/"}}, 400, "INVALID_URL", "urls[0]"},
		{"single label", []any{"urls", []string{"http://intranet/"}}, 400, "INVALID_URL", "urls[0]"},
		{"internal name", []any{"urls", []string{"https://wiki.corp/"}}, 400, "INVALID_URL", "urls[0]"},
		{"no scheme", []any{"urls", []string{"shop.test"}}, 400, "INVALID_URL", "urls[0]"},
		{"another scheme", []any{"urls", []string{"ftp://shop.test/"}}, 400, "INVALID_URL", "urls[0]"},
		{"password", []any{"urls", []string{"https://u:p@shop.test/"}}, 400, "INVALID_URL", "urls[0]"},
	} {
		r.Run(t, apitest.Scenario{Name: c.name, As: apitest.LLM, Do: listPath, Body: r.contacts(c.changes...), Status: c.status, Code: c.code,
			Has: map[string]any{"errors.0.field": c.field}})
	}
	for _, as := range []string{apitest.User, apitest.Reader, apitest.SignIn} {
		r.Run(t, apitest.Scenario{Name: "as " + as, As: as, Do: listPath, Body: r.contacts(), Status: 403, Code: "scope_rejected"})
	}
	r.nothingLeft(t)
	if r.Client.View().ScraperByName("alice", "list") != nil {
		t.Error("a scraper was saved")
	}
}

// Who never topped up gets a run with a message: nothing is fetched or charged, and free requests stay.
func TestContactsWithoutTopUp(t *testing.T) {
	r := startPriced(t)
	a := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath, Body: r.contacts()})
	if a.Status != 200 || a.Text("status") != "FAILED" {
		t.Fatalf("list run: %s", a.Body)
	}
	id, _ := ids.Parse(a.Text("jobId"))
	r.Client.Dispatch(t, id, 0, 1)
	r.Client.CloseRun(t, id)
	job, wallet := r.Client.View().Job(id), r.Client.View().Wallet("alice")
	if !job.Closed || job.State != model.Failed || !strings.Contains(job.Message, "not part of the free requests") || job.Pages != 0 ||
		wallet.Free != 5 || wallet.Balance() != 0 {
		t.Errorf("job %+v, wallet %+v", job, wallet)
	}
	r.topUp(t, 299)
	again := fmt.Sprintf(`{"scraperId":%q,"rerun":true}`, a.Text("scraperId"))
	r.Run(t, apitest.Scenario{Name: "too little for one website", As: apitest.LLM, Do: listPath, Body: again, Status: 402,
		Code: "WALLET_INSUFFICIENT_BALANCE"})
	r.topUp(t, 1)
	r.Run(t,
		apitest.Scenario{Name: "its rerun by another scope", As: apitest.User, Do: listPath, Body: again, Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "topped up", As: apitest.LLM, Do: listPath, Body: again, Status: 200, Has: map[string]any{"status": "PENDING", "linksQueued": 2}},
	)
}

// A rerun takes the websites that were not charged, also those that have a row.
func TestContactsAgain(t *testing.T) {
	r := startPriced(t)
	r.topUp(t, 10_000)
	urls := []string{"https://a.test/", "https://b.test/", "https://c.test/"}
	first := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath, Body: r.contacts("urls", urls)})
	r.finish(t, first.Text("jobId"), 3, 0, 2)
	again := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath, Body: fmt.Sprintf(`{"scraperId":%q,"rerun":true}`, first.Text("scraperId"))})
	if got := r.urls(t, again.Text("jobId")); !slices.Equal(got, urls[1:2]) {
		t.Errorf("the rerun takes %q", got)
	}
	wallet := r.Client.View().Wallet("alice")
	if wallet.Balance() != 10_000-600 || wallet.Free != 5 {
		t.Errorf("wallet %+v", wallet)
	}
}
