package sites_test

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// rig is a server whose customers alice and bob each have a scraper with an address.
type rig struct {
	*apitest.Server
	store          rowstore.Store
	group, scraper ids.ID
	foreign        ids.ID
	calls          int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, apitest.NewStore(t))
}

func newRigOn(t *testing.T, store rowstore.Store) *rig {
	t.Helper()
	r := &rig{store: store,
		Server: apitest.Start(t, apitest.WithStore(store))}
	r.group = r.NewGroup(t, "alice", "g")
	r.scraper = r.newScraper(t, "alice", "shop", r.group)
	r.foreign = r.newScraper(t, "bob", "shop", r.NewGroup(t, "bob", "g"))
	return r
}

func (r *rig) newScraper(t *testing.T, customer, name string, group ids.ID) ids.ID {
	t.Helper()
	put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: customer, Group: group,
		Spec: model.Scraper{Name: name, Type: model.SingleProduct,
			SourceConfig: model.SourceConfig{URL: "https://shop.test/"},
			ItemsConfig:  []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}}}
	r.Client.Must(t, put)
	return put.ID
}

// put is a PUT under a new idempotency key.
func (r *rig) put(name, body string, status int, code string) apitest.Scenario {
	r.calls++
	return apitest.Scenario{Name: name, As: apitest.User, Do: "PUT /api/scraper/site", Body: body,
		Header: map[string]string{"Idempotency-Key": fmt.Sprint(r.calls)}, Status: status,
		Code: code}
}

// streamed is a put with the links as its body.
func (r *rig) streamed(name, media, query, body string, status int, code string) apitest.Scenario {
	sc := r.put(name, body, status, code)
	sc.Do += "?" + query
	sc.Header["Content-Type"] = media
	return sc
}

func (r *rig) body(links string) string {
	return fmt.Sprintf(`{"links":[%s],"name":"s","scraperRef":%q}`, links, r.scraper)
}

// versions counts the versions in the row store.
func (r *rig) versions(t *testing.T) int {
	t.Helper()
	all, err := r.store.AllSites(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

const two = `{"url":"https://a.test/1","title":"one"},{"url":"https://a.test/2"}`

// A site is created, read, replaced and deleted. A refused call changes nothing, and leaves nothing
// in the row store.
func TestSites(t *testing.T) {
	r := newRig(t)
	of := "GET /api/scraper/" + r.scraper.String() + "/site"
	refused := map[string]apitest.Scenario{
		"no key": {As: apitest.User, Do: "PUT /api/scraper/site", Body: r.body(two), Status: 400,
			Code: "idempotency_key_required"},
		"a reader": {As: apitest.Reader, Do: "PUT /api/scraper/site", Body: r.body(two),
			Status: 403, Code: "scope_rejected"},
		"no links": r.put("", fmt.Sprintf(`{"name":"s","scraperRef":%q}`, r.scraper), 400,
			"invalid_request"),
		"no name": r.put("", fmt.Sprintf(`{"links":[],"scraperRef":%q}`, r.scraper), 400,
			"invalid_request"),
		"links that are none": r.put("", fmt.Sprintf(
			`{"name":"s","scraperRef":%q,"links":{}}`, r.scraper), 400, "invalid_request"),
		"links of text": r.put("", fmt.Sprintf(
			`{"name":"s","scraperRef":%q,"links":"x"}`, r.scraper), 400, "invalid_request"),
		"a foreign scraper": r.put("", strings.ReplaceAll(r.body(two), r.scraper.String(),
			r.foreign.String()), 404, "scraper_not_found"),
		"an unknown member":  r.put("", r.body(`{"url":"https://a.test/","x":1}`), 400, "unknown_field"),
		"no address":         r.put("", r.body(two+`,{"title":"x"}`), 400, "INVALID_URL"),
		"what is no address": r.put("", r.body(two+`,{"url":"ftp://a.test/"}`), 400, "INVALID_URL"),
		"an address of ours": r.put("", r.body(`{"url":"http://127.0.0.1/"}`), 400, "INVALID_URL"),
		"a member twice":     r.put("", r.body(`{"url":"https://a.test/","url":"x"}`), 400, "invalid_body"),
		"links twice": r.put("", `{"links":[],"links":[],"name":"s","scraperRef":"`+
			r.scraper.String()+`"}`, 400, "invalid_body"),
		"half a body":       r.put("", r.body(two)[:60], 400, "invalid_body"),
		"more than a body":  r.put("", r.body(two)+"{}", 400, "invalid_body"),
		"an array":          r.put("", "["+two+"]", 400, "invalid_body"),
		"nothing":           r.put("", " ", 400, "invalid_body"),
		"a long item":       r.put("", r.body(`{"url":"`+strings.Repeat("x", 300<<10)+`"}`), 413, "payload_too_large"),
		"a long link":       r.put("", r.body(`{"url":"https://a.test/","title":"`+strings.Repeat("ä", 600)+`","curl":"`+strings.Repeat("x", 7500)+`"}`), 400, "invalid_request"),
		"an id of no site":  r.put("", `{"id":"`+r.IDs.New().String()+`",`+r.body(two)[1:], 400, "not_found"),
		"a line of no link": r.streamed("", "application/x-ndjson", "name=s&scraperRef="+r.scraper.String(), `{"url":"https://a.test/"}`+"\n7\n", 400, "invalid_body"),
		"a line of no address": r.streamed("", "text/uri-list", "name=s&scraperRef="+
			r.scraper.String(), "https://a.test/\n#\nnone\n", 400, "INVALID_URL"),
		"no line": r.streamed("", "application/x-ndjson", "name=s&scraperRef="+
			r.scraper.String(), "\n", 400, "invalid_request"),
		"lines ended by carriage returns": r.streamed("", "text/uri-list", "name=s&scraperRef="+
			r.scraper.String(), "https://a.test/1\rhttps://a.test/2\r", 400, "INVALID_URL"),
		"a comment alone": r.streamed("", "text/uri-list", "name=s&scraperRef="+
			r.scraper.String(), "# none\n", 400, "invalid_request"),
		"a long line": r.streamed("", "text/uri-list", "name=s&scraperRef="+r.scraper.String(),
			"https://a.test/\r\nhttps://a.test/"+strings.Repeat("x", 1<<20), 400, "invalid_request"),
		"too many lines": r.streamed("", "text/uri-list", "name=s&scraperRef="+r.scraper.String(),
			strings.Repeat("\n", 2*client.MaxSiteLinks+1), 400, "LIST_TOO_LARGE"),
	}
	for name, at := range map[string]string{"what is no address": "links[2]: ",
		"a line of no address": "links, line 3: ", "a long line": "links, line 2: "} {
		named := refused[name]
		named.Name = name + ", named"
		if said := r.Call(t, named).Text("detail"); !strings.HasPrefix(said, at) {
			t.Errorf("%s: %q does not begin with %q", name, said, at)
		}
	}
	r.Run(t, apitest.Scenario{Name: "none", As: apitest.Reader, Do: of, Status: 200,
		Has: map[string]any{"": nil}})
	for name, sc := range refused {
		sc.Name = name
		r.Run(t, sc)
	}
	if n := r.versions(t); n != 0 {
		t.Errorf("what was refused has left %d versions", n)
	}
	first := r.put("put", r.body(two+`,{"url":"https://A.test/1#x","title":"again","state":"ERRORED"}`),
		200, "")
	first.Has = map[string]any{"name": "s", "scraperRef": r.scraper, "linkCount": 2,
		"linksTruncated": false, "links": []any{
			map[string]any{"url": "https://a.test/1", "title": "one", "curl": "",
				"state": "PENDING"},
			map[string]any{"url": "https://a.test/2", "title": "", "curl": "",
				"state": "PENDING"}}}
	again := first
	again.Name = "under the same key"
	again.Headers = map[string]string{"Idempotency-Replayed": "true"}
	reused := first
	reused.Name, reused.Has = "another under the same key", nil
	reused.Body = strings.Replace(first.Body, "again", "other", 1)
	reused.Status, reused.Code = 422, "idempotency_key_reused"
	r.Run(t, first, again, reused)
	site := r.Client.View().SiteOf(r.scraper)
	path := "/api/scraper/site/" + site.ID.String()
	named := `{"id":"` + site.ID.String() + `",`
	r.Run(t,
		apitest.Scenario{Name: "get", As: apitest.Reader, Do: of, Status: 200,
			Has: map[string]any{"id": site.ID, "links.1.url": "https://a.test/2"}},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: of, Status: 404,
			Code: "scraper_not_found"},
		apitest.Scenario{Name: "foreign links", As: apitest.Other, Do: "GET " + path + "/links",
			Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "a malformed id", As: apitest.User,
			Do: "GET /api/scraper/site/x/links", Status: 400, Code: "invalid_id"},
		r.put("its id, foreign", named+strings.ReplaceAll(r.body(two), r.scraper.String(),
			r.newScraper(t, "alice", "other", r.group).String())[1:], 400, "not_found"),
		r.put("replace by id", named+r.body(`{"url":"https://a.test/3"}`)[1:], 200, ""),
		apitest.Scenario{Name: "replaced", As: apitest.Reader, Do: of, Status: 200,
			Has: map[string]any{"id": site.ID, "linkCount": 1, "links.0.url": "https://a.test/3"}},
		r.put("empty", r.body(""), 200, ""),
		apitest.Scenario{Name: "emptied", As: apitest.Reader, Do: of, Status: 200,
			Has: map[string]any{"id": site.ID, "linkCount": 0, "links": []any{}}},
		apitest.Scenario{Name: "runs without links", As: apitest.User,
			Do: "POST /api/scraper/" + r.scraper.String() + "/run", Status: 400,
			Code: "start_urls_unreachable"},
		apitest.Scenario{Name: "delete without a key", As: apitest.User, Do: "DELETE " + path,
			Status: 400, Code: "idempotency_key_required"},
		apitest.Scenario{Name: "delete as another", As: apitest.Other, Do: "DELETE " + path,
			Header: map[string]string{"Idempotency-Key": "d"}, Status: 204},
		apitest.Scenario{Name: "it is there", As: apitest.Reader, Do: of, Status: 200,
			Has: map[string]any{"id": site.ID}},
		apitest.Scenario{Name: "delete", As: apitest.User, Do: "DELETE " + path,
			Header: map[string]string{"Idempotency-Key": "d1"}, Status: 204},
		apitest.Scenario{Name: "delete again", As: apitest.User, Do: "DELETE " + path,
			Header: map[string]string{"Idempotency-Key": "d2"}, Status: 204},
		apitest.Scenario{Name: "it is gone", As: apitest.Reader, Do: of, Status: 200,
			Has: map[string]any{"": nil}},
		apitest.Scenario{Name: "its links are gone", As: apitest.User,
			Do: "GET " + path + "/links", Status: 400, Code: "not_found"})
}

// If a key is used again, links in the body are compared by their bytes.
func TestStreamedSiteIsRepeated(t *testing.T) {
	r := newRig(t)
	first := r.streamed("first", "text/uri-list", "name=s&scraperRef="+r.scraper.String(),
		"https://a.test/1\n", 200, "")
	again, other := first, first
	again.Name, again.Headers = "again", map[string]string{"Idempotency-Replayed": "true"}
	other.Name, other.Body = "other links", "https://a.test/2\n"
	other.Status, other.Code = 422, "idempotency_key_reused"
	r.Run(t, first, again, other, again)
}

// An answer leaves out the links of a large site. They can also be sent line by line.
func TestLargeSite(t *testing.T) {
	r := newRig(t)
	of := "GET /api/scraper/" + r.scraper.String() + "/site"
	var addresses, lines strings.Builder
	for n := range 1_001 {
		fmt.Fprintf(&addresses, "https://a.test/%d\n", n)
		fmt.Fprintf(&lines, `{"url":"https://a.test/%d","title":"t%d"}`+"\n", n, n)
	}
	query := "name=s&scraperRef=" + r.scraper.String()
	r.Run(t,
		r.streamed("addresses", "text/uri-list", query, addresses.String(), 200, ""),
		apitest.Scenario{Name: "left out", As: apitest.Reader, Do: of, Status: 200,
			Has:   map[string]any{"linkCount": 1_001, "linksTruncated": true},
			Lacks: []string{"links"}},
		r.streamed("lines", "application/x-ndjson", query,
			strings.TrimSuffix(lines.String(), "\n"), 200, ""),
		r.streamed("a name is missing", "text/uri-list", "scraperRef="+r.scraper.String(),
			"https://a.test/", 400, "invalid_request"))
	r.Run(t,
		apitest.Scenario{Name: "titles", As: apitest.Reader, Do: "GET /api/scraper/site/" +
			r.Client.View().SiteOf(r.scraper).ID.String() + "/links?filters=" +
			`%7B%22title%22:%22t1000%22%7D`, Status: 200,
			Has: map[string]any{"totalElements": 1, "content.0.url": "https://a.test/1000"}})
	if n := r.versions(t); n != 2 {
		t.Errorf("%d versions, want the replaced one, which goes as an orphan, and the new one", n)
	}
}

// Links are read by page in three orders, with filters and by text. Page and size are clamped.
func TestLinks(t *testing.T) {
	r := newRig(t)
	r.Run(t, r.put("put", r.body(`{"url":"https://a.test/c","title":"Three","curl":"z"},
		{"url":"https://a.test/a","title":"one"},{"url":"https://a.test/b","title":"two","curl":"y"}`),
		200, ""))
	site := r.Client.View().SiteOf(r.scraper)
	hash := rowstore.LinkHash("https://a.test/b")
	if err := r.store.PutLinkStates(t.Context(), site.ID, 1,
		[]rowstore.LinkOutcome{{Hash: hash, State: rowstore.LinkErrored}}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"":                                   "a b c; 0 100 3",
		"sortDirection=DESC":                 "c b a; 0 100 3",
		"sortField=title":                    "c a b; 0 100 3",
		"sortField=curl":                     "a b c; 0 100 3",
		"sortField=nothing":                  "a b c; 0 100 3",
		"sort=title":                         "c a b; 0 100 3",
		"sort=url,desc":                      "c b a; 0 100 3",
		"sort=curl:asc&sortField=title":      "a b c; 0 100 3",
		"size=1000000000000000000000":        "a b c; 0 1000 3",
		"size=2&page=1000000000000000000000": "c; 1 2 3",
		"size=-1000000000000000000000":       "a; 0 1 3",
		"size=2":                             "a b; 0 2 3",
		"size=2&page=1":                      "c; 1 2 3",
		"size=2&page=9":                      "c; 1 2 3",
		"size=2&page=-9":                     "a b; 0 2 3",
		"size=0":                             "a; 0 1 3",
		"size=100000":                        "a b c; 0 1000 3",
		"filters={\"state\":\"ERRORED\"}":    "b; 0 100 1",
		"filters={\"state\":{\"ne\":\"VISITED\"}}":                             "a b c; 0 100 3",
		"filters={\"title\":{\"regex\":\"o\"}}&size=1&page=7&sortField=title":  "b; 1 1 2",
		"filters={\"$or\":[{\"curl\":\"z\"},{\"url\":{\"endsWith\":\"/A\"}}]}": "a c; 0 100 2",
		"filters={\"$nor\":[{\"curl\":\"z\"}]}":                                "a b; 0 100 2",
		"q=THREE":                                                              "c; 0 100 1",
		"q=/B&filters={\"state\":\"VISITED\"}":                                 "; 0 100 0",
		"q=/B&filters={\"state\":\"ERRORED\"}":                                 "b; 0 100 1",
	} {
		t.Run(query, func(t *testing.T) {
			a := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: "GET /api/scraper/site/" +
				site.ID.String() + "/links?" + escaped(query)})
			var got []string
			for n := range 3 {
				if url := a.Text(fmt.Sprintf("content.%d.url", n)); url != "" {
					got = append(got, strings.TrimPrefix(url, "https://a.test/"))
				}
			}
			text := fmt.Sprintf("%s; %s %s %s", strings.Join(got, " "), a.Text("number"),
				a.Text("size"), a.Text("totalElements"))
			if text != want {
				t.Errorf("got %q, want %q: %s", text, want, a.Body)
			}
		})
	}
	links := "GET /api/scraper/site/" + site.ID.String() + "/links?"
	r.Run(t,
		apitest.Scenario{Name: "a filter that is none", As: apitest.Reader,
			Do: links + "filters=x", Status: 400, Code: "invalid_filter"},
		apitest.Scenario{Name: "another order", As: apitest.Reader,
			Do: links + "sort=state", Status: 400, Code: "invalid_sort"},
		apitest.Scenario{Name: "a time, which links have not", As: apitest.Reader,
			Do: links + "from=2026-01-02T00:00:00Z", Status: 400, Code: "unknown_parameter",
			Has: map[string]any{"errors.0.field": "from"}},
		apitest.Scenario{Name: "another direction", As: apitest.Reader,
			Do: links + "sort=url,up", Status: 400, Code: "invalid_sort"},
		apitest.Scenario{Name: "another field", As: apitest.Reader,
			Do: links + escaped(`filters={"$or":[{"x":1}]}`), Status: 400, Code: "invalid_filter"},
		apitest.Scenario{Name: "a state that no link has", As: apitest.Reader,
			Do: links + escaped(`filters={"state":{"$in":["ERRORED","COMPLETED"]}}`), Status: 400,
			Code: "invalid_filter", Has: map[string]any{"errors.0.field": "filters.state",
				"errors.0.message": "filters.state: must be one of PENDING, VISITED, ERRORED"}},
		apitest.Scenario{Name: "another direction", As: apitest.Reader,
			Do: links + "sortDirection=up", Status: 400, Code: "invalid_request"})
}

// escaped escapes a query for a URL.
func escaped(query string) string {
	return strings.NewReplacer(`{`, "%7B", `}`, "%7D", `"`, "%22", `[`, "%5B", `]`, "%5D").
		Replace(query)
}

// A run reads the site's links, unvisited ones first, and estimates and groups use them, too.
// Without a site the run begins at the scraper's own address.
func TestRunsReadSites(t *testing.T) {
	r := newRig(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	r.Run(t, r.put("put", r.body(`{"url":"https://a.test/1"},{"url":"https://a.test/2"},
		{"url":"https://b.test/3"}`), 200, ""))
	site := r.Client.View().SiteOf(r.scraper)
	err := r.store.PutLinkStates(t.Context(), site.ID, 1, []rowstore.LinkOutcome{
		{Hash: rowstore.LinkHash("https://a.test/1"), State: rowstore.LinkVisited},
		{Hash: rowstore.LinkHash("https://a.test/2"), State: rowstore.LinkErrored}})
	if err != nil {
		t.Fatal(err)
	}
	of := "/api/scraper/" + r.scraper.String()
	runs := func(want ...string) apitest.Scenario {
		return apitest.Scenario{Name: fmt.Sprint(want), As: apitest.User,
			Do: "POST " + of + "/run", Status: 200, Check: func(t *testing.T, a apitest.Answer) {
				r.holdRun(t, a.Text("jobId"), want...)
			}}
	}
	r.Run(t,
		apitest.Scenario{Name: "estimate", As: apitest.Reader, Do: "POST " + of + "/estimate",
			Status: 200, Has: map[string]any{"links": 3}},
		runs("https://a.test/2", "https://b.test/3", "https://a.test/1"),
		apitest.Scenario{Name: "a group's", As: apitest.User, Status: 200,
			Do: "POST /api/scraper/group/" + r.group.String() + "/run",
			Check: func(t *testing.T, a apitest.Answer) {
				r.holdRun(t, a.Text("jobs.0.jobId"), "https://a.test/2", "https://b.test/3",
					"https://a.test/1")
			}},
		apitest.Scenario{Name: "delete", As: apitest.User, Status: 204,
			Header: map[string]string{"Idempotency-Key": "d"},
			Do:     "DELETE /api/scraper/site/" + site.ID.String()},
		runs("https://shop.test/"))
}

// holdRun compares the list of a run with addresses, and ends the run.
func (r *rig) holdRun(t *testing.T, text string, want ...string) {
	t.Helper()
	id, err := ids.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	job := r.Client.View().Job(id)
	links, err := r.store.Links(t.Context(), job.List, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, link := range links {
		got = append(got, link.URL)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || int(job.Links) != len(want) {
		t.Errorf("the run of %d links reads %v, want %v", job.Links, got, want)
	}
	r.Client.Must(t, client.StopRun{Customer: "alice", Job: id})
	r.Client.CloseRun(t, id)
}

// If a restore brings back a site whose version is gone, this is reported and its runs are refused.
func TestLostVersion(t *testing.T) {
	r := newRig(t)
	r.Run(t, r.put("put", r.body(two), 200, ""))
	site := r.Client.View().SiteOf(r.scraper)
	if err := r.store.DropSite(t.Context(), site.Version); err != nil {
		t.Fatal(err)
	}
	of := "/api/scraper/" + r.scraper.String()
	r.Run(t,
		apitest.Scenario{Name: "get", As: apitest.Reader, Do: "GET " + of + "/site", Status: 200,
			Has: map[string]any{"linkCount": 2, "linksTruncated": true}, Lacks: []string{"links"}},
		apitest.Scenario{Name: "links", As: apitest.Reader, Do: "GET /api/scraper/site/" +
			site.ID.String() + "/links", Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "run", As: apitest.User, Do: "POST " + of + "/run", Status: 400,
			Code: "start_urls_unreachable"},
		apitest.Scenario{Name: "a group's", As: apitest.User, Status: 200,
			Do:  "POST /api/scraper/group/" + r.group.String() + "/run",
			Has: map[string]any{"jobs": []any{}, "skipped.0.reason": "START_UNREACHABLE"}},
		r.put("again", r.body(two), 200, ""),
		apitest.Scenario{Name: "get again", As: apitest.Reader, Do: "GET " + of + "/site",
			Status: 200, Has: map[string]any{"links.0.title": "one"}})
}

// A plan without SITE_MAP cannot create sites, but can read existing ones.
func TestSitesNeedThePlan(t *testing.T) {
	r := newRig(t)
	r.Client.Must(t, client.ChooseFree{Customer: "alice"})
	refused := r.put("put", r.body(two), 402, "feature_not_in_plan")
	r.Run(t, refused, apitest.Scenario{Name: "get", As: apitest.Reader,
		Do: "GET /api/scraper/" + r.scraper.String() + "/site", Status: 200,
		Has: map[string]any{"": nil}})
}
