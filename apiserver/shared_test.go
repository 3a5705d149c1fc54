package apiserver_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// things are what routes name: of alice, in a group that bob may read.
type things struct{ group, scraper, job, category ids.ID }

// fill puts ids into a route.
func (th things) fill(route string) string {
	return strings.NewReplacer("{group}", th.group.String(), "{scraper}", th.scraper.String(),
		"{job}", th.job.String(), "{category}", th.category.String()).Replace(route)
}

// named are the routes of the description that name groups, scrapers, runs and categories, with
// what each id is of. Behind them are calls that name them otherwise.
func named(t *testing.T) []string {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	text, err := os.ReadFile("testdata/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for path, methods := range document.Paths {
		if !strings.HasPrefix(path, "/api/scraper") || !strings.Contains(path, "{") {
			continue
		}
		for method := range methods {
			calls = append(calls, strings.ToUpper(method)+" "+nameIDs(path))
		}
	}
	filter := url.QueryEscape(`{"groupId":"`) + "{group}" + url.QueryEscape(`"}`)
	return append(calls, "GET /api/scraper/load-history?filters="+filter,
		"GET /api/scraper/load-history/all?groupId={group}",
		"GET /api/scraper/data?groupId={group}", "GET /api/scraper/data?scraperId={scraper}",
		"GET /api/scraper/data?jobId={job}", "GET /api/scraper/data/export?groupId={group}",
		"GET /api/scraper/data/export?scraperId={scraper}",
		"GET /api/scraper/data/export?jobId={job}",
		"DELETE /api/scraper/data?scraperJobStatusId={job}",
		"POST /api/scraper/data/preview-delete?scraperJobStatusId={job}",
		`PUT /api/scraper/group {"id":"{group}","name":"mine"}`,
		`PUT /api/scraper {"name":"x","groupRef":"{group}","type":"SINGLE_PRODUCT",`+
			`"sourceConfig":{"url":"https://shop.test/"},`+
			`"itemsConfig":[{"name":"a","selector":"b","kind":"TEXT"}]}`,
		`PUT /api/scraper/shared/group/{group} [{"email":"d@x.test"}]`,
		"DELETE /api/scraper/shared/group/{group}?email=nobody@x.test",
		`PUT /api/scraper/data/group/{group}/category {"name":"c","filters":{}}`,
		`PUT /api/scraper/{scraper}/retention {"retentionCount":1000}`)
}

// nameIDs says what each id of a path is of.
func nameIDs(path string) string {
	path = strings.NewReplacer("{groupId}", "{group}", "{jobId}", "{job}", "{categoryId}",
		"{category}", "{scraperId}", "{scraper}").Replace(path)
	kind := "{scraper}"
	switch {
	case strings.Contains(path, "/group/{id}"):
		kind = "{group}"
	case strings.HasPrefix(path, "/api/scraper-job-status/"):
		kind = "{job}"
	}
	return strings.ReplaceAll(path, "{id}", kind)
}

// money is an amount in an answer.
var money = regexp.MustCompile(`"[A-Za-z]*Micros":-?[0-9]+`)

// Every route that names something of a group is called by its owner, a reader, a stranger, and for
// what nobody has. What is foreign is, byte for byte, what is
// missing. Nothing that writes lets through who does not own it, and no amount of money is told.
func TestSharedRoutes(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store))
	real := share(t, s)
	missing := things{s.IDs.New(), s.IDs.New(), s.IDs.New(), s.IDs.New()}
	const waits = "get-sample-data" // until a page was fetched, which nothing here does
	calls := named(t)
	slices.SortFunc(calls, func(a, b string) int { // what previews let through comes first
		return strings.Compare(strings.Replace(a, "DELETE", "A", 1),
			strings.Replace(b, "DELETE", "A", 1))
	})
	var table bytes.Buffer
	table.WriteString("\town\tshared\tforeign\tmissing\n")
	for n, call := range slices.Compact(calls) {
		fmt.Fprint(&table, call)
		do := func(as string, of things) apitest.Answer {
			method, rest, _ := strings.Cut(of.fill(call), " ")
			path, body, _ := strings.Cut(rest, " ")
			return s.Call(t, apitest.Scenario{As: as, Do: method + " " + path, Body: body,
				Header: map[string]string{"Idempotency-Key": fmt.Sprint(n, as, of)}})
		}
		gone := do("carol", missing)
		foreign := do("carol", real)
		shared := do(apitest.Other, real)
		own := "-"
		if !strings.Contains(call, waits) {
			own = verdict(do(apitest.User, real))
		}
		fmt.Fprintf(&table, "\t%s\t%s\t%s\t%s\n", own, verdict(shared), verdict(foreign),
			verdict(gone))
		if diff := cmp.Diff(plain(gone, missing), plain(foreign, real)); diff != "" {
			t.Errorf("%s: foreign is not as missing: %s", call, diff)
		}
		if told := money.Find(shared.Body); told != nil {
			t.Errorf("%s: who reads a shared group is told %s", call, told)
		}
		if shared.Status < 300 && !strings.HasPrefix(call, "GET") {
			t.Errorf("%s: who does not own it got %d", call, shared.Status)
		}
	}
	path := filepath.Join("testdata", "shared.txt")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, table.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"),
		strings.Split(table.String(), "\n")); diff != "" {
		t.Errorf("%s differs; look at it, then run the test with -update:\n%s", path, diff)
	}
}

// share makes a group of alice with one of everything, which bob may read, and carol may not.
func share(t *testing.T, s *apitest.Server) things {
	t.Helper()
	th := things{s.NewGroup(t, "alice", "g"), s.IDs.New(), s.IDs.New(), s.IDs.New()}
	s.Client.Must(t, client.PutScraper{Create: true, ID: th.scraper, Customer: "alice",
		Group: th.group, Spec: model.Scraper{Name: "s", Type: model.SingleProduct}})
	most := int64(1_000)
	s.Client.Must(t, client.LaunchRun{Job: th.job, Entry: s.IDs.New(), Customer: "alice",
		Scraper: th.scraper, List: s.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain),
		MaxCharge: &most})
	s.Client.Must(t, client.StopRun{Customer: "alice", Job: th.job})
	s.Client.CloseRun(t, th.job)
	s.Client.Must(t, client.PutCategory{ID: th.category, Customer: "alice", Group: th.group,
		Name: "low", Filters: []byte(`{}`)})
	s.Client.Must(t, client.SignUp{Customer: "bob", Email: "bob@x.test"})
	s.Client.Must(t, client.ShareGroup{Customer: "alice", Group: th.group,
		Emails: []string{"bob@x.test"}})
	s.Client.Must(t, client.OpenCustomer{Customer: "carol", Entry: s.IDs.New()})
	secret := auth.NewSecret()
	s.Client.Must(t, client.MintKey{ID: s.IDs.New(), Customer: "carol", Prefix: secret.Prefix,
		Hash: secret.Hash, Name: "carol", Scope: model.ScopeUser})
	s.Secrets["carol"] = secret.Text
	return th
}

// verdict is what an answer is in the table.
func verdict(a apitest.Answer) string {
	return strings.TrimSpace(fmt.Sprint(a.Status, " ", a.Text("code")))
}

// plain is an answer without what differs from call to call, and without ids.
func plain(a apitest.Answer, of things) string {
	text := strings.ReplaceAll(string(a.Body), a.Header.Get("X-Request-Id"), "")
	for _, id := range []ids.ID{of.group, of.scraper, of.job, of.category} {
		text = strings.ReplaceAll(text, id.String(), "id")
	}
	return fmt.Sprint(a.Status, " ", text)
}
