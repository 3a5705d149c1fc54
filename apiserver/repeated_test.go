package apiserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

// repeatedCall is a call of an operation that needs a key.
type repeatedCall struct {
	operation, do string
	// stored is what is kept of the answer's body: "": all of it. The rest is of the present state.
	stored string
}

const (
	scheduled = `"schedule":"0 6 * * *",` + spec
	adminOf   = "/api/admin/customers/carol"
	noBody    = "-"
)

// repeatedCalls are in an order in which each succeeds. Deletions come last: they take away what
// the others name.
var repeatedCalls = []repeatedCall{
	{"svc_create_scraper", `PUT /api/scraper {"name":"n",` + spec, ""},
	{"svc_create_scraper", `PUT /api/scraper {"name":"d",` + scheduled, "id"},
	{"svc_create_scraper", `PUT /api/scraper {"id":"{scraper}","name":"s",` + spec, "updatedAt"},
	{"svc_create_scraper_v2", `PUT /api/scraper/v2 {"name":"v2",` + spec, "id"},
	{"svc_put_group", `PUT /api/scraper/group {"name":"other"}`, ""},
	{"svc_put_group", `PUT /api/scraper/group {"name":"w","startType":"WEEKLY"}`, "id"},
	{"svc_put_group", `PUT /api/scraper/group {"id":"{group}","name":"mine"}`, ""},
	{"svc_put_group", `PUT /api/scraper/group {"id":"{group}","name":"whole","dataTable":"w",` +
		`"startType":"MANUAL","scheduleTimezone":"Europe/Paris","shouldMatchProducts":true,` +
		`"retentionCount":3,"quarantine":false,"changeAlerts":["ADDED"],` +
		`"changeAlertsKey":["n"]}`, ""},
	{"svc_put_group_start_type", "PUT /api/scraper/group/{group}/start-type/DAILY", noBody},
	{"svc_share_group", `PUT /api/scraper/shared/group/{group} [{"email":"d@x.test"}]`, ""},
	{"svc_put_category", `PUT /api/scraper/data/group/{group}/category ` +
		`{"name":"c","filters":{}}`, ""},
	{"svc_create_scraper_site", `PUT /api/scraper/site {"name":"s","scraperRef":"{scraper}",` +
		`"links":[{"url":"https://shop.test/"}]}`, ""},
	{"svc_create_customer_schema", `PUT /api/schema/customer {"type":"PRODUCT","version":1,` +
		`"content":{"type":"object","properties":{"a":{}}}}`, ""},
	{"svc_keep_export", "POST /api/scraper/data/exports?scraperId={scraper}&format=jsonl" +
		"&limit=5", ""},
	{"svc_stop_scraper", "GET /api/scraper/{scraper}/stop", ""},
	{"svc_stop_scraper_by_post", "POST /api/scraper/{scraper}/stop", ""},
	{"svc_adjust_wallet", "POST " + adminOf + `/wallet/adjustments ` +
		`{"amountMicros":5,"note":"n"}`, ""},
	{"svc_revoke_group_share", "DELETE /api/scraper/shared/group/{group}?email=bob@x.test", ""},
	{"svc_delete_category", "DELETE /api/scraper/data/group/{group}/category/{category}", ""},
	{"svc_delete_scraper_site", siteDelete, ""},
	{"svc_delete_customer_schema", "DELETE /api/schema/customer/{schema}", ""},
	{"svc_delete_run_data", "DELETE /api/scraper/data?scraperJobStatusId={job}", ""},
	{"svc_delete_scraper", "DELETE /api/scraper/{scraper}", ""},
	{"svc_delete_group", "DELETE /api/scraper/group/{group}", ""},
	{"svc_admin_remove_customer", "DELETE " + adminOf, ""},
}

// repeatedElsewhere are operations whose repeats other tests call.
var repeatedElsewhere = map[string]string{"svc_harvest_sitemaps": "TestHarvest",
	"svc_match_group": "TestMatchOfGroup", "svc_merge_runs": "TestMergeOfRuns",
	"svc_start_top_up": "TestTopUpIsStartedOnce"}

// needKeys lists the operations of the description that need a key.
func needKeys(t *testing.T) (operations []string) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name     string
				Required bool
			}
		}
	}
	text, err := os.ReadFile("testdata/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, methods := range document.Paths {
		for _, operation := range methods {
			for _, p := range operation.Parameters {
				if p.Name == "Idempotency-Key" && p.Required {
					operations = append(operations, operation.OperationID)
				}
			}
		}
	}
	return operations
}

// TestRepeatedCalls repeats every call that needs a key. Meanwhile all that the call named is gone,
// and so is the plan. Still it gets the first answer (specification 4).
func TestRepeatedCalls(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store), apitest.WithBlobs(t))
	real := share(t, s, store)
	schema := client.PutSchema{ID: s.IDs.New(), Customer: "alice", Name: "s", Version: 9,
		Type: "PRODUCT", Content: []byte(`{"type":"object","properties":{"a":{}}}`)}
	s.Client.Must(t, schema)
	called := map[string]bool{}
	call := func(n int, do string) apitest.Answer {
		do = strings.ReplaceAll(real.fill(do), "{schema}", schema.ID.String())
		as := apitest.User
		if strings.Contains(do, adminOf) {
			as = apitest.Admin
		}
		method, rest, _ := strings.Cut(do, " ")
		path, body, _ := strings.Cut(rest, " ")
		return s.Call(t, apitest.Scenario{As: as, Do: method + " " + path, Body: body,
			Header: map[string]string{"Idempotency-Key": fmt.Sprint("repeated", n)}})
	}
	first := make([]apitest.Answer, len(repeatedCalls))
	for n, c := range repeatedCalls {
		called[c.operation] = true
		if path, deletes := strings.CutPrefix(c.do, "DELETE "); deletes {
			path, query, _ := strings.Cut(path, "?")
			call(n, "POST "+path+"/preview-delete?"+query) // some deletions have none
		}
		if first[n] = call(n, c.do); first[n].Status >= 300 {
			t.Fatalf("%s: %d %s", c.do, first[n].Status, first[n].Body)
		}
	}
	s.Client.Must(t, client.ChooseFree{Customer: "alice"})
	for n, c := range repeatedCalls {
		again := call(n, c.do)
		if again.Status != first[n].Status || again.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: %d, then %d %s", c.do, first[n].Status, again.Status, again.Body)
			continue
		}
		was, is := string(first[n].Body), string(again.Body)
		if c.stored != "" {
			was, is = first[n].Text(c.stored), again.Text(c.stored)
		}
		if was != is {
			t.Errorf("%s: %s, then %s", c.do, was, is)
		}
	}
	for _, operation := range needKeys(t) {
		if !called[operation] && repeatedElsewhere[operation] == "" {
			t.Errorf("nothing repeats %s", operation)
		}
	}
}
