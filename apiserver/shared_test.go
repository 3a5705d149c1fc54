package apiserver_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// things are what routes name. They are alice's, in a group that bob may read.
type things struct{ group, scraper, job, category, site, export, later, upload ids.ID }

// newThings makes new ids for things.
func newThings(source ids.Source) things {
	var all [8]ids.ID
	for i := range all {
		all[i] = source.New()
	}
	return things{all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7]}
}

// row is the id of the run's first row.
func (th things) row() string { return model.RowID{Job: th.job}.String() }

// fill puts the ids into a route.
func (th things) fill(route string) string {
	return strings.NewReplacer("{group}", th.group.String(), "{scraper}", th.scraper.String(),
		"{job}", th.job.String(), "{category}", th.category.String(), "{site}", th.site.String(),
		"{export}", th.export.String(), "{row}", th.row(), "{later}", th.later.String(),
		"{upload}", th.upload.String()).Replace(route)
}

// named lists the description's routes that name groups, scrapers, runs, categories, sites, kept
// exports or rows, with the kind of each id. Calls that name them in other ways follow.
func named(t *testing.T) []string {
	t.Helper()
	var calls []string
	for path, methods := range describedPaths(t) {
		if !strings.HasPrefix(path, "/api/scraper") || !strings.Contains(path, "{") {
			continue
		}
		for method := range methods {
			calls = append(calls, strings.ToUpper(method)+" "+nameIDs(path))
		}
	}
	filter := func(name, id string) string {
		return url.QueryEscape(`{"`+name+`":"`) + id + url.QueryEscape(`"}`)
	}
	for _, of := range []string{"groupId={group}", "scraperId={scraper}", "jobId={job}"} {
		calls = append(calls, "GET /api/scraper/data?"+of, "GET /api/scraper/data/export?"+of,
			keepExport+"?"+of)
	}
	return append(calls,
		"GET /api/scraper/load-history?filters="+filter("groupId", "{group}"),
		"GET /api/scraper/load-history?filters="+filter("scraperId", "{scraper}"),
		"GET /api/scraper/list?groupId={group}",
		"GET /api/scraper/data/group/{group}?scraperId={scraper}",
		"GET /api/scraper/load-history/all?groupId={group}",
		"GET /api/scraper/data?sort=n&groupId={group}",
		"GET /api/scraper/data/export?format=jsonl&sort=n&jobId={job}",
		"GET /api/scraper/data/profile?jobId={job}",
		"GET /api/scraper/data/oddities?jobId={job}",
		"PUT /api/scraper/data/group/{group}/merge?scraperJobStatusIds={job}&scraperJobStatusIds={scraper}",
		"PUT /api/scraper/group/{group}/start-type/DAILY",
		`PUT /api/scraper/site {"name":"s","scraperRef":"{scraper}",`+
			`"links":[{"url":"https://shop.test/"}]}`,
		"DELETE /api/scraper/data?scraperJobStatusId={job}",
		"POST /api/scraper/data/preview-delete?scraperJobStatusId={job}",
		`PUT /api/scraper/group {"id":"{group}","name":"mine"}`,
		`PUT /api/scraper/site {"id":"{site}","name":"s","scraperRef":"{scraper}",`+
			`"links":[{"url":"https://shop.test/"}]}`,
		`PUT /api/scraper {"name":"x",`+spec, `PUT /api/scraper/v2 {"name":"y",`+spec,
		`PUT /api/scraper {"id":"{scraper}","name":"s",`+spec,
		`PUT /api/scraper/v2 {"id":"{scraper}","name":"s",`+spec,
		`POST /api/scraper-simple/url-based {"name":"z","groupId":"{group}",`+
			`"url":"https://shop.test/"}`,
		`POST /api/scraper-simple/curl-based {"name":"z","groupId":"{group}",`+
			`"curl":"curl https://shop.test/"}`,
		`PUT /api/scraper/shared/group/{group} [{"email":"d@x.test"}]`,
		"DELETE /api/scraper/shared/group/{group}?email=nobody@x.test",
		`PUT /api/scraper/data/group/{group}/category {"name":"c","filters":{}}`,
		`PUT /api/scraper/{scraper}/retention {"retentionCount":1000}`,
		"GET /api/scraper/data/diff?from={job}&to={later}",
		"GET /api/scraper/data/diff?format=jsonl&from={job}&to={later}",
		reExtract+` {"jobId":"{job}"}`,
		listRun+`"name":"new","groupId":"{group}","itemsConfig":[`+field+`]}`,
		listRun+`"name":"like","groupId":"{group}","templateScraperId":"{scraper}"}`,
		listRun+`"scraperId":"{scraper}","force":true}`,
		"POST /api/scraper/group/{group}/file-scraper"+file+`,"name":"file"}`,
		"POST /api/scraper/{scraper}/file"+file+"}", "POST /api/scraper/{upload}/file"+file+"}")
}

// Parts of calls that name things in their bodies.
const (
	reExtract = "POST /api/scraper/{scraper}/re-extract"

	field = `{"name":"a","selector":"b","kind":"TEXT"}`
	spec  = `"groupRef":"{group}","type":"SINGLE_PRODUCT","sourceConfig":` +
		`{"url":"https://shop.test/"},"itemsConfig":[` + field + `]}`
	listRun = `POST /api/scraper/url-list-run {"urls":["https://shop.test/"],`
	file    = ` {"format":"csv","content":"a,b\n1,2\n"`
)

// keepExport writes a file for anyone who may read the rows.
const keepExport = "POST /api/scraper/data/exports"

// siteDelete answers 204 to any caller (specification 4.7).
const siteDelete = "DELETE /api/scraper/site/{site}"

// nameIDs replaces each id of a path by the placeholder of its kind.
func nameIDs(path string) string {
	path = strings.NewReplacer("{groupId}", "{group}", "{jobId}", "{job}", "{categoryId}",
		"{category}", "{scraperId}", "{scraper}", "{siteId}", "{site}", "{rowId}",
		"{row}").Replace(path)
	kind := "{scraper}"
	switch {
	case strings.Contains(path, "/group/{id}"):
		kind = "{group}"
	case strings.Contains(path, "/exports/{id}"):
		kind = "{export}"
	case strings.HasPrefix(path, "/api/scraper-job-status/"):
		kind = "{job}"
	}
	return strings.ReplaceAll(path, "{id}", kind)
}

// money matches an amount in an answer.
var money = regexp.MustCompile(`"[A-Za-z]*Micros":-?[0-9]+`)

// An owner, a reader and a stranger call every route that names something in a group; so does a
// call for a missing id. The answer for a foreign thing equals that for a missing one, byte for
// byte. Nobody but the owner can write, and nobody else sees an amount of money.
func TestSharedRoutes(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store), apitest.WithBlobs(t))
	real := share(t, s, store)
	missing := newThings(s.IDs)
	// These wait for a page to be fetched, which never happens here.
	waits := regexp.MustCompile("get-sample-data|scraper-simple")
	calls := named(t)
	// Deletions that need a preview come first: they wait for runs, and no run ends here.
	// Re-extraction, which makes a run, and the other deletions come last.
	turns := strings.NewReplacer(reExtract, "X", siteDelete, "Y",
		"DELETE /api/scraper/data/exports", "Z", "DELETE", "A")
	slices.SortFunc(calls, func(a, b string) int {
		return strings.Compare(turns.Replace(a), turns.Replace(b))
	})
	var table bytes.Buffer
	table.WriteString("\town\tshared\tforeign\tmissing\n")
	for n, call := range slices.Compact(calls) {
		fmt.Fprint(&table, call)
		do := func(as string, of things) apitest.Answer {
			method, rest, _ := strings.Cut(of.fill(call), " ")
			path, body, _ := strings.Cut(rest, " ")
			return s.Call(t, apitest.Scenario{As: as, Do: method + " " + path, Body: body,
				Header: map[string]string{"Idempotency-Key": fmt.Sprint(n, as, of.group)}})
		}
		gone := do("carol", missing)
		foreign := do("carol", real)
		shared := do(apitest.Other, real)
		if site := s.Client.View().Site(real.site); call == siteDelete && site == nil {
			t.Error("who does not own a site deleted it")
		}
		own := "-"
		if !waits.MatchString(call) {
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
		if shared.Status < 300 && !strings.HasPrefix(call, "GET") && call != siteDelete &&
			!strings.HasPrefix(call, keepExport) {
			t.Errorf("%s: who does not own it got %d", call, shared.Status)
		}
	}
	holdTable(t, "shared.txt", table.Bytes())
}

// holdTable compares a table with the stored one.
func holdTable(t *testing.T, name string, table []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, table, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"),
		strings.Split(string(table), "\n")); diff != "" {
		t.Errorf("%s differs; look at it, then run the test with -update:\n%s", path, diff)
	}
}

// share makes a group for alice with one of everything. bob may read it, and carol may not.
func share(t *testing.T, s *apitest.Server, store rowstore.Store) things {
	t.Helper()
	th := newThings(s.IDs)
	th.group = s.NewGroup(t, "alice", "g")
	s.Client.Must(t, client.PutScraper{Create: true, ID: th.scraper, Customer: "alice",
		Group: th.group, Spec: model.Scraper{Name: "s", Type: model.SingleProduct,
			ItemsConfig: []model.Field{{Name: "a", Selector: "b", Kind: model.Text}}}})
	s.Client.Must(t, client.PutScraper{Create: true, ID: th.upload, Customer: "alice",
		Group: th.group, Spec: model.Scraper{Name: "u", Type: model.File}})
	const address = "https://shop.test/"
	most := int64(1_000)
	for _, job := range []ids.ID{th.job, th.later} {
		s.Client.Must(t, client.LaunchRun{Job: job, Entry: s.IDs.New(), Customer: "alice",
			Scraper: th.scraper, List: s.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain),
			MaxCharge: &most})
		s.Client.Must(t, client.StopRun{Customer: "alice", Job: job})
		s.Client.CloseRun(t, job)
		page := &model.Page{Job: job, Fetch: s.IDs.New(), Outcome: model.Delivered, Status: 200,
			URL: address, PriceRow: model.Plain.PriceRow(), Quantity: 1, Last: true,
			Rows: [][]byte{[]byte(`{"n":1}`)}}
		_, err := store.PutPages(t.Context(), []rowstore.PageWrite{{Page: page,
			Job: rowstore.Job{ID: job, Customer: "alice", Group: th.group, Scraper: th.scraper,
				Started: s.Clock.Now().UnixMicro()}}})
		if err != nil {
			t.Fatal(err)
		}
		s.Clock.Advance(time.Second)
	}
	version := s.IDs.New()
	err := store.PutSiteLinks(t.Context(), version,
		[]rowstore.SiteLink{{URL: address, Hash: rowstore.LinkHash(address)}})
	if err = errors.Join(err, store.FinishSite(t.Context(), version, 1)); err != nil {
		t.Fatal(err)
	}
	// With its own site the scraper could run, and stops wait for runs that nobody ends.
	visits := client.PutScraper{Create: true, ID: s.IDs.New(), Customer: "alice",
		Group: s.NewGroup(t, "alice", "h"), Spec: model.Scraper{Name: "v",
			Type: model.SingleProduct}}
	s.Client.Must(t, visits)
	s.Client.Must(t, client.PutSite{ID: th.site, Customer: "alice", Scraper: visits.ID,
		Version: version, Links: 1})
	s.Client.Must(t, client.AskExport{ID: th.export, Customer: "alice", Owner: "alice",
		Groups: []ids.ID{th.group}, Request: []byte(`{"format":"csv"}`), Kept: 1_000_000})
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

// verdict is how an answer appears in the table.
func verdict(a apitest.Answer) string {
	return strings.TrimSpace(fmt.Sprint(a.Status, " ", a.Text("code")))
}

// plain is an answer without ids and without what differs from call to call.
func plain(a apitest.Answer, of things) string {
	text := strings.ReplaceAll(string(a.Body), a.Header.Get("X-Request-Id"), "")
	for _, id := range []ids.ID{of.group, of.scraper, of.job, of.category, of.site, of.export,
		of.later, of.upload} {
		text = strings.ReplaceAll(text, id.String(), "id")
	}
	text = strings.ReplaceAll(text, of.row(), "id")
	return fmt.Sprint(a.Status, " ", text)
}
