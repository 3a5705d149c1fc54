package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const (
	// the limit of any list: a page ends after the object that fills it
	mostAnswer = api.PageBytes + mostBody
	mostBody   = 1 << 20 // of a request that makes one object
)

// shownElsewhere lists operations whose answers hold arrays, and where their bound is tested.
var shownElsewhere = map[string]string{
	"svc_get_data":                  "TestReadLargeRows",
	"svc_get_group_data":            "TestGroupLongPage",
	"svc_get_group_data_client":     "TestClientReadOfLongRows",
	"svc_list_scraper_job_errors":   "TestManyErrors",
	"svc_get_scraper_sample_data":   "a trial answers 768 KiB at most",
	"svc_preview_scraper_from_curl": "a trial answers 768 KiB at most",
	"svc_preview_scraper_from_url":  "a trial answers 768 KiB at most",
	"svc_preview_page":              "480 KiB of markup, and of candidates what a trial answers",
	"svc_pick_on_page":              "4 MiB of rows, and 1,000 numbers of each of 500 fields",
	"svc_list_group_shares":         "100 addresses of 254 bytes at most",
	"svc_list_notifications":        "200 of 2 KiB at most",
	"svc_list_sitemaps":             "200 of 18 KiB at most",
	"svc_list_kept_exports":         "20 of 1,200 bytes at most",
	"svc_list_webhooks":             "10 of 2 KiB at most",
	"svc_list_grants":               "2,000 of 300 bytes at most",
	"svc_list_passkeys":             "20 of 300 bytes at most",
	"svc_new_passkey_challenge":     "20 ids of 1,364 bytes at most",
	"svc_create_webhook":            "one object, of one body",
	"svc_get_webhook":               "one object, of one body",
	"svc_put_webhook":               "one object, of one body",
	"svc_rotate_webhook":            "one object, of one body",
	"svc_list_webhook_deliveries":   "200 of 500 bytes at most",
	"svc_list_schema_items":         "the same for everybody",
	"svc_list_prices":               "the rows of one price table",
	"svc_admin_get_prices":          "100 rows of 800 bytes at most",
	"svc_admin_put_prices":          "100 rows of 800 bytes at most",
	"svc_admin_get_settings":        "16 plans, each of 32 features and 32 limits of 80 bytes",
	"svc_admin_put_settings":        "16 plans, each of 32 features and 32 limits of 80 bytes",
	"svc_list_invoices":             "200 of 2,500 bytes at most",
	"svc_list_plans":                "16 plans, as the settings have them",
	"svc_list_plan_prices":          "16 plans, as the settings have them",
	"svc_admin_nodes":               "one for each process of the cluster",
	"svc_admin_backups":             "1,000 names of 80 bytes at most",
	"svc_admin_restore":             "2 warnings of 150 bytes at most",
	"svc_admin_restore_kept":        "2 warnings of 150 bytes at most",
	"svc_admin_reconcile":           "1,000 differences of 600 bytes at most",
	"svc_admin_work":                "200 items of 500 bytes of text at most",
	"svc_admin_audit":               "4 MiB, and then one entry of 14 KiB at most",
	"svc_admin_accounts":            "200 accounts of 700 bytes at most",
	"svc_admin_customers":           "200 customers of 1,400 bytes at most",
	"svc_admin_sales_funnel":        "104 weeks of 150 bytes at most",
	"svc_admin_status":              "one node's roles",
	"svc_adjust_wallet":             "one posting",
	"svc_run_group":                 "TestRunOfAHugeGroup",
	"svc_run_group_by_post":         "TestRunOfAHugeGroup",
	"svc_put_group":                 "one object, of one body",
	"svc_put_group_start_type":      "streamed, 1,000 of 300 bytes at a time",
	"svc_get_row_receipt":           "the tries of one page",
	"svc_diff_runs":                 "4 MiB, and then two rows of 1 MB at most",
	"svc_profile_run":               "512 fields of 2 KiB at most",
	"svc_find_run_oddities":         "1,500 of 600 bytes at most",
	"svc_list_scraper_starts":       "5 of 200 bytes at most",
	"svc_list_group_starts":         "5 of 200 bytes at most",
	"svc_stop_group":                "1,000 runs of 150 bytes at most",
	"svc_stop_group_by_post":        "1,000 runs of 150 bytes at most",
	"svc_put_global_schema":         "one object, of one body",
	"svc_create_customer_schema":    "one object, of one body",
	"svc_get_schema":                "one object, of one body",
	"svc_get_global_schema":         "one object, of one body",
	"svc_create_scraper":            "one object, of one body",
	"svc_create_scraper_v2":         "one object, of one body",
	"svc_update_scraper_retention":  "one object, of one body",
	"svc_get_scraper":               "one object, of one body, and a schema",
	"svc_get_scraper_v2":            "one object, of one body, and a schema",

	"svc_admin_preview_remove_customer":  "ten warnings of one sentence at most",
	"svc_preview_delete_category":        "ten warnings of one sentence at most",
	"svc_preview_delete_customer_schema": "ten warnings of one sentence at most",
	"svc_preview_delete_group":           "ten warnings of one sentence at most",
	"svc_preview_delete_run_data":        "ten warnings of one sentence at most",
	"svc_preview_delete_scraper":         "ten warnings of one sentence at most",
}

// TestEveryListIsBounded fills every list with as many of the largest objects as are allowed, or as
// one page may hold. It reads each list to its end: no answer is too long, and nothing is missing.
// An operation that answers an array and is in neither table fails the test.
func TestEveryListIsBounded(t *testing.T) {
	const recounted = 100_000
	s := apitest.Start(t, apitest.WithStore(apitest.NewStore(t)),
		func(config *apiserver.Config) { config.Recount = manyRuns(recounted) })
	l := &lists{Server: s, t: t, group: s.NewGroup(t, "alice", "g")}
	filled := map[string]func(){
		"svc_list_scrapers": func() {
			l.byCursor("/api/scraper/list?limit=1000", l.fillScrapers(40))
		},
		"svc_list_groups": func() {
			l.streamed(apitest.Reader, "GET /api/scraper/group/list", "",
				l.fillGroups(1_500))
		},
		"svc_list_keys": func() {
			l.whole(apitest.Reader, "GET /api/key/list", "keys",
				l.fillKeys())
		},
		"svc_list_customer_schemas": func() {
			l.whole(apitest.Reader, "GET /api/schema/customer", "", l.fillSchemas("alice", 200))
		},
		"svc_list_global_schemas": func() {
			l.whole(apitest.Admin, "GET /api/schema", "",
				l.fillSchemas("", 1_000))
		},
		"svc_list_categories": func() {
			l.whole(apitest.Reader, "GET /api/scraper/data/group/"+l.group.String()+
				"/categories", "", l.fillCategories(100))
		},
		"svc_list_shared_groups": func() {
			l.whole(apitest.Reader, "GET /api/scraper/shared/group/list", "",
				l.fillShared(1_000))
		},
		"svc_list_scraper_jobs": func() {
			l.fillRuns(200)
			l.whole(apitest.Reader, "GET /api/scraper/load-history?size=200", "content", 200)
		},
		"svc_list_all_scraper_jobs": func() {
			l.fillRuns(1_000)
			l.whole(apitest.Reader, "GET /api/scraper/load-history/all?limit=1000", "items", 1_000)
		},
		"svc_list_all_wallet_transactions": func() {
			l.whole(apitest.Reader, "GET /api/wallet/transactions/all?limit=1000", "items",
				l.fillWallet(1_000))
		},
		"svc_admin_feedback": func() {
			l.whole(apitest.Admin, "GET /api/admin/feedback?size=200", "content",
				l.fillFeedback(200))
		},
		"svc_list_wallet_transactions": func() {
			l.whole(apitest.Reader, "GET /api/wallet/transactions?size=100", "content",
				l.fillWallet(100))
		},
		"svc_list_scraper_site_links": func() {
			l.streamed(apitest.Reader, "GET /api/scraper/site/"+l.fillSite().Text("id")+
				"/links?size=1000", "content", sitePage)
		},
		"svc_create_scraper_site": func() {
			a := l.fillSite()
			if len(a.Body) > mostAnswer || a.Text("linksTruncated") != "true" {
				l.t.Errorf("%d bytes: %.200s", len(a.Body), a.Body)
			}
		},
		"svc_get_scraper_site": func() {
			l.whole(apitest.Reader, "GET /api/scraper/"+l.fillSite().Text("scraperRef")+"/site",
				"links", 0)
		},
		// This many runs take years to make; only one is held in memory.
		"svc_admin_recount": func() {
			l.streamed(apitest.Admin, "POST /api/admin/billing/recount", "", recounted)
		},
	}
	for _, id := range operationsThatList(t) {
		fill, here := filled[id]
		switch _, elsewhere := shownElsewhere[id]; {
		case here == elsewhere:
			t.Errorf("%s answers an array: say in exactly one of the two tables what bounds it", id)
		case here:
			t.Run(id, func(t *testing.T) {
				l.t = t
				fill()
			})
		}
		delete(filled, id)
	}
	for id := range filled {
		t.Errorf("%s answers no array", id)
	}
}

func manyRuns(n int) func(context.Context, *client.View) iter.Seq2[apiserver.RecountedRun, error] {
	return func(context.Context, *client.View) iter.Seq2[apiserver.RecountedRun, error] {
		return func(yield func(apiserver.RecountedRun, error) bool) {
			for range n {
				if !yield(apiserver.RecountedRun{CustomerRef: "alice", Equal: true}, nil) {
					return
				}
			}
		}
	}
}

// operationsThatList are the operations that answer an array, or have one among their members or
// among the members of these.
func operationsThatList(t *testing.T) []string {
	t.Helper()
	type schema struct {
		Ref        string `json:"$ref"`
		Type       any    `json:"type"`
		AnyOf      []json.RawMessage
		Properties map[string]json.RawMessage
	}
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string
			Responses   map[string]struct {
				Content map[string]struct{ Schema json.RawMessage }
			}
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	text, err := os.ReadFile("testdata/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		t.Fatal(err)
	}
	var read func(text json.RawMessage) (s schema, isArray bool)
	read = func(text json.RawMessage) (s schema, isArray bool) {
		for {
			s = schema{}
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			for _, one := range s.AnyOf {
				if of, isArray := read(one); isArray || len(of.Properties) > 0 {
					return of, isArray // the other one is null
				}
			}
			if s.Ref == "" {
				types, _ := json.Marshal(s.Type) // it was decoded from JSON
				return s, strings.Contains(string(types), `"array"`)
			}
			text = document.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
		}
	}
	var hasArray func(text json.RawMessage, levels int) bool
	hasArray = func(text json.RawMessage, levels int) bool {
		of, isArray := read(text)
		for _, property := range of.Properties {
			isArray = isArray || levels > 0 && hasArray(property, levels-1)
		}
		return isArray
	}
	var found []string
	for _, methods := range document.Paths {
		for _, op := range methods {
			content, ok := op.Responses["200"].Content["application/json"]
			if !ok {
				continue
			}
			if hasArray(content.Schema, 2) && !slices.Contains(found, op.OperationID) {
				found = append(found, op.OperationID)
			}
		}
	}
	slices.Sort(found)
	return found
}

// lists fills a server and reads its lists.
type lists struct {
	*apitest.Server
	t     *testing.T
	group ids.ID
	site  apitest.Answer
}

// name makes a unique name of the greatest length.
func (l *lists) name(n, most int) string {
	number := fmt.Sprintf("%06d", n)
	return number + strings.Repeat("🐟", most-len(number))
}

func (l *lists) scraper(n, bytes int) ids.ID {
	put := client.PutScraper{Create: true, ID: l.IDs.New(), Customer: "alice", Group: l.group,
		Spec: model.Scraper{Name: l.name(n, 200), Type: model.SingleProduct}}
	for left := bytes; left > 0; left -= 2_000 {
		put.Spec.ItemsConfig = append(put.Spec.ItemsConfig,
			model.Field{Name: fmt.Sprint("f", left), Selector: strings.Repeat("a", 1_900)})
	}
	l.Client.Must(l.t, put)
	return put.ID
}

func (l *lists) fillScrapers(n int) int {
	for i := range n {
		l.scraper(i, mostBody)
	}
	all := 0
	l.Client.View().Scrapers("alice", func(*client.Scraper) bool { all++; return true })
	return all
}

func (l *lists) fillGroups(most int) int {
	for i := len(l.Client.View().Groups("alice")); i < most; i++ {
		l.Client.Must(l.t, client.PutGroup{Create: true, ID: l.IDs.New(), Customer: "alice",
			Name: l.name(i, 200)})
	}
	return most
}

func (l *lists) fillKeys() int {
	const most = 1_000
	for i := len(l.Client.View().Keys("alice")); i < most; i++ {
		l.Client.Must(l.t, client.MintKey{ID: l.IDs.New(), Customer: "alice",
			Prefix: fmt.Sprintf("sk%06x", i), Hash: [32]byte{byte(i), byte(i >> 8), 1},
			Name: l.name(i, 64), Scope: model.ScopeUser})
	}
	return most
}

func (l *lists) fillSchemas(customer string, n int) int {
	for i := range n {
		l.Client.Must(l.t, client.PutSchema{ID: l.IDs.New(), Customer: customer,
			Name: l.name(i, 200), Version: int64(i + 1),
			Type: l.name(i, 100), Content: []byte(`{}`)})
	}
	return n
}

// fillCategories saves categories of the greatest size, all of whose bytes JSON escapes.
func (l *lists) fillCategories(n int) int {
	filters := []byte(`{"n":"` + strings.Repeat("<", 16<<10-len(`{"n":""}`)) + `"}`)
	for i := range n {
		l.Client.Must(l.t, client.PutCategory{ID: l.IDs.New(), Customer: "alice",
			Group: l.group, Name: l.name(i, 200), Filters: filters})
	}
	return n
}

// fillShared shares groups of the greatest size with alice, a hundred of each owner.
func (l *lists) fillShared(n int) int {
	l.Client.Must(l.t, client.SignUp{Customer: "alice", Email: "alice@x.test"})
	for i := range n {
		owner := fmt.Sprint("owner ", i/100)
		l.Client.Must(l.t, client.OpenCustomer{Customer: owner, Entry: l.IDs.New()})
		group := client.PutGroup{Create: true, ID: l.IDs.New(), Customer: owner,
			Name: l.name(i, 200), DataTable: "t", StartType: "MANUAL"}
		l.Client.Must(l.t, group)
		l.Client.Must(l.t, client.ShareGroup{Customer: owner, Group: group.ID,
			Emails: []string{"alice@x.test"}})
	}
	return n
}

func (l *lists) fillRuns(n int) {
	for i := len(l.Client.View().OpenJobsOfCustomer("alice")); i < n; i++ {
		run := client.LaunchRun{Job: l.IDs.New(), Entry: l.IDs.New(), Customer: "alice",
			Scraper: l.scraper(1_000+i, 0), List: l.IDs.New(),
			Links: 1, Tiers: model.TiersOf(model.Plain)}
		l.Client.Must(l.t, run)
	}
}

// fillFeedback gives feedback of the greatest length, ten of each customer. JSON escapes each
// character.
func (l *lists) fillFeedback(n int) int {
	for i := range n {
		customer := fmt.Sprint("customer ", i/10)
		l.Client.Must(l.t, client.OpenCustomer{Customer: customer, Entry: l.IDs.New()})
		l.Client.Must(l.t, client.GiveFeedback{ID: l.IDs.New(), Customer: customer,
			Text: strings.Repeat("\x01", 4_000)})
	}
	return n
}

func (l *lists) fillWallet(n int) int {
	for i := range n {
		l.Client.Must(l.t, client.AdjustWallet{Customer: "alice", Entry: l.IDs.New(), Amount: 1,
			Note: l.name(i, 200)})
	}
	return n
}

// sitePage is the most links of one answer.
const sitePage = 1_000

// fillSite returns a site with links of the greatest length. JSON escapes each character.
func (l *lists) fillSite() apitest.Answer {
	if l.site.Status != 0 {
		return l.site
	}
	var lines strings.Builder
	for i := range sitePage {
		address := fmt.Sprint("https://shop.test/", i)
		fmt.Fprintf(&lines, `{"url":%q,"curl":"%s"}`+"\n", address,
			strings.Repeat(`\u0001`, 8<<10-len(address)))
	}
	l.site = l.Call(l.t, apitest.Scenario{As: apitest.User,
		Do: "PUT /api/scraper/site?name=s&scraperRef=" + l.scraper(5_000, 0).String(),
		Header: map[string]string{"Content-Type": "application/x-ndjson",
			"Idempotency-Key": "largest"}, Body: lines.String(), Status: 200})
	return l.site
}

// items is a list in an answer.
func items(a apitest.Answer, member string) []any {
	value, _ := a.At(member)
	list, _ := value.([]any)
	return list
}

// whole reads a list that is one answer. member is where the list is in it; "": it is the answer.
func (l *lists) whole(as, do, member string, want int) {
	l.t.Helper()
	a := l.Call(l.t, apitest.Scenario{As: as, Do: do})
	items := items(a, member)
	if a.Status != 200 || len(items) != want || len(a.Body) > mostAnswer {
		l.t.Errorf("%s: status %d, %d of %d in %d bytes", do, a.Status, len(items), want,
			len(a.Body))
	}
}

// streamed reads a list that is sent while it is made, so that its length is not known in advance.
// member is as for whole.
func (l *lists) streamed(as, do, member string, want int) {
	l.t.Helper()
	a := l.Call(l.t, apitest.Scenario{As: as, Do: do})
	if items := items(a, member); a.Status != 200 || len(items) != want ||
		a.Header.Get("Content-Length") != "" {
		l.t.Errorf("%s: status %d, %d of %d, length %q", do, a.Status, len(items), want,
			a.Header.Get("Content-Length"))
	}
}

// byCursor reads a list page by page.
func (l *lists) byCursor(path string, want int) {
	l.t.Helper()
	seen := map[any]bool{}
	for cursor := ""; ; {
		a := l.Call(l.t, apitest.Scenario{As: apitest.Reader,
			Do: "GET " + path + "&cursor=" + url.QueryEscape(cursor)})
		var page struct {
			Items      []struct{ ID string }
			NextCursor string
			HasMore    bool
		}
		if err := json.Unmarshal(a.Body, &page); err != nil || a.Status != 200 ||
			len(a.Body) > mostAnswer {
			l.t.Fatalf("status %d, %d bytes, %v", a.Status, len(a.Body), err)
		}
		for _, item := range page.Items {
			seen[item.ID] = true
		}
		if cursor = page.NextCursor; !page.HasMore {
			break
		}
	}
	if len(seen) != want {
		l.t.Errorf("%d of %d", len(seen), want)
	}
}
