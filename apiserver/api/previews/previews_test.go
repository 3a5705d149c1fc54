package previews_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// rig is an API with a row store, and one group of alice's with money.
type rig struct {
	*apitest.Server
	store rowstore.Store
	group ids.ID
}

func start(t *testing.T) *rig {
	t.Helper()
	r := &rig{store: apitest.NewStore(t)}
	r.Server = apitest.Start(t, apitest.WithStore(r.store))
	r.group = r.NewGroup(t, "alice", "g")
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	return r
}

// page fakes the fetch of the next preview with this answer.
func (r *rig) page(t *testing.T, media, body string) func() *client.Job {
	t.Helper()
	return r.PlayTrial(t, r.store, func(recipe model.Recipe) *model.Page {
		e, err := extract.Compile(recipe)
		if err != nil {
			t.Error(err)
			return &model.Page{Outcome: model.Errored, Code: "recipe_missing"}
		}
		got, err := e.Extract(extract.Page{URL: "https://shop.test/list", ContentType: media,
			Body: []byte(body)})
		if err == nil && got.Ask != nil {
			got, err = e.Extract(extract.Page{URL: "https://shop.test/list", ContentType: media,
				Body: []byte(body)}, extract.Page{Code: "timeout"})
		}
		if err != nil || len(got.Rows) == 0 {
			return &model.Page{Outcome: model.Errored, Code: "no_rows", Status: 200,
				Detail: e.Explain(t.Context(), extract.Page{ContentType: media,
					Body: []byte(body)}, false)}
		}
		return &model.Page{Outcome: model.Delivered, Status: 200, PriceRow: "tier:plain",
			Quantity: 1, Rows: got.Rows}
	})
}

const list = `<!doctype html><title>x</title><ul class="goods"><li class="good"><a href="/1"><h3>Blue one</h3></a><b class="price">€1.50</b></li>
<li class="good"><a href="/2"><h3>Red one</h3></a><b class="price">€2.50</b></li><li class="good"><a href="/3"><h3>Green one</h3></a><b class="price">€3.50</b></li></ul>`

func (r *rig) body(changes string) string {
	return fmt.Sprintf(`{"name":"goods","groupId":%q,"url":"https://shop.test/list"%s}`, r.group,
		changes)
}

const fromURL = "POST /api/scraper-simple/url-based"

func TestFromURL(t *testing.T) {
	r := start(t)
	wait := r.page(t, "text/html", list)
	r.Run(t, apitest.Scenario{Name: "list", As: apitest.Reader, Do: fromURL + "?useCache=true",
		Body: r.body(""), Status: 200, Has: map[string]any{
			"0.scraperDTO.name": "goods", "0.scraperDTO.groupRef": r.group,
			"0.scraperDTO.type":               "MULTIPLE_PRODUCTS",
			"0.scraperDTO.sourceConfig.url":   "https://shop.test/list",
			"0.scraperDTO.itemsConfig.0.name": "title",
			"0.sampleData.1": map[string]any{"title": "Red one", "price": "€2.50",
				"url": "https://shop.test/2"}, "0.executionTimeSec": 0},
		Check: func(t *testing.T, a apitest.Answer) {
			saved := r.Call(t,
				apitest.Scenario{As: apitest.User, Do: "PUT /api/scraper",
					Header: map[string]string{"Idempotency-Key": "1"},
					Body: string(a.Body[len(`[{"scraperDTO":`):bytes.Index(a.Body,
						[]byte(`,"sampleData":`))])})
			if saved.Status != 200 {
				t.Errorf("the proposal cannot be saved: %s", saved.Body)
			}
		}})
	job := wait()
	r.Run(t,
		apitest.Scenario{Name: "cached", As: apitest.Reader, Do: fromURL + "?useCache=true",
			Body: r.body(""), Status: 200,
			Has: map[string]any{"0.sampleData.1.title": "Red one"}},
		apitest.Scenario{Name: "in the ledger", As: apitest.User,
			Do: "GET /api/wallet/transactions", Status: 200, Has: map[string]any{
				"content.0.source": "PREVIEW_URL", "content.0.scraperId": nil,
				"content.0.groupId": r.group, "content.0.jobId": job.ID}},
		apitest.Scenario{Name: "not in the history", As: apitest.User,
			Do: "GET /api/scraper/load-history", Status: 200,
			Has: map[string]any{"totalElements": 0}},
		apitest.Scenario{Name: "not in the data", As: apitest.User,
			Do: "GET /api/scraper/data/group/" + r.group.String(), Status: 200,
			Has: map[string]any{"totalElements": 0}},
	)
	r.Clock.Advance(time.Hour)
	wait = r.page(t, "text/html", "<p>"+strings.Repeat("Nothing to be seen. ", 20))
	nothing := apitest.Scenario{Name: "nothing", As: apitest.User, Do: fromURL + "?useCache=true",
		Body: r.body(""), Status: 200, Has: map[string]any{"": []any{}},
		Check: func(t *testing.T, a apitest.Answer) {
			const want = "Nothing on the page repeats, and it states nothing about one thing."
			if got := a.Header.Get("Shoal-Reason"); got != want {
				t.Errorf("Shoal-Reason: %q", got)
			}
		}}
	r.Run(t, nothing)
	wait()
	nothing.Name = "nothing, as it is remembered"
	r.Run(t, nothing)
	wait = r.page(t, "text/html", list)
	r.Run(t, apitest.Scenario{Name: "own fields", As: apitest.User, Do: fromURL, Status: 200,
		Body: r.body(`,"itemsConfig":[{"name":"colour","selector":".good h3","kind":"TEXT"}]`),
		Has: map[string]any{
			"0.scraperDTO.itemsConfig": []any{map[string]any{"name": "colour",
				"selector": ".good h3", "kind": "TEXT"}}, "0.sampleData.2.colour": "Green one"}})
	wait()
	refused := func(name, body, code, field string, status int) apitest.Scenario {
		sc := apitest.Scenario{Name: name, As: apitest.User, Do: fromURL, Body: body,
			Status: status, Code: code}
		if field != "" {
			sc.Has = map[string]any{"errors.0.field": field}
		}
		return sc
	}
	other := r.NewGroup(t, "bob", "g")
	r.Run(t,
		refused("no name", fmt.Sprintf(`{"groupId":%q,"url":"https://shop.test/"}`, r.group),
			"invalid_request", "name", 400),
		refused("no group", `{"name":"n","url":"https://shop.test/"}`, "invalid_request", "groupId",
			400),
		refused("foreign group",
			fmt.Sprintf(`{"name":"n","url":"https://shop.test/","groupId":%q}`, other), "not_found",
			"groupId", 400),
		refused("unknown scraper", r.body(`,"id":"0123456789abcdef01234567"`), "not_found", "id",
			400),
		refused("private", fmt.Sprintf(`{"name":"n","url":"http://169.254.169.254/","groupId":%q}`,
			r.group), "INVALID_URL", "url", 400),
		refused("ftp", fmt.Sprintf(`{"name":"n","url":"ftp://shop.test/","groupId":%q}`, r.group),
			"INVALID_URL", "url", 400),
		refused("bad field", r.body(`,"itemsConfig":[{"name":"a","selector":"[","kind":"TEXT"}]`),
			"schema_validation_failed", "itemsConfig[0].selector", 400),
		refused("no such host",
			fmt.Sprintf(`{"name":"n","url":"https://shop.invalid/","groupId":%q}`, r.group),
			"source_unreachable", "", 502),
	)
}

func TestFromCurl(t *testing.T) {
	r := start(t)
	const do = "POST /api/scraper-simple/curl-based"
	body := func(command string) string {
		return fmt.Sprintf(`{"name":"goods","groupId":%q,"curl":%q}`, r.group, command)
	}
	const command = "curl 'https://shop.test/api?page=1' -H 'X-Key: 1'"
	wait := r.page(t, "application/json",
		`{"total":2,"items":[{"id":1,"name":"Blue one","price":{"amount":1.50}},{"id":2,"name":"Red one","price":{"amount":2}}]}`)
	r.Run(t, apitest.Scenario{Name: "JSON", As: apitest.Reader, Do: do, Body: body(command),
		Status: 200, Has: map[string]any{
			"0.scraperDTO.type": "MULTIPLE_PRODUCTS", "0.scraperDTO.sourceConfig.curl": command,
			"0.scraperDTO.itemsConfig.0.selector": "$.items[*].name",
			"0.sampleData.0": map[string]any{"name": "Blue one", "id": 1,
				"price_amount": 1.5}}})
	job := wait()
	r.Run(t,
		apitest.Scenario{Name: "in the ledger", As: apitest.User,
			Do: "GET /api/wallet/transactions", Status: 200, Has: map[string]any{
				"content.0.source": "PREVIEW_CURL", "content.0.jobId": job.ID}},
		apitest.Scenario{Name: "file", As: apitest.User, Do: do,
			Body: body("curl https://shop.test/ -d @/etc/passwd"), Status: 400,
			Code: "schema_validation_failed", Has: map[string]any{"errors.0.field": "curl"}},
		apitest.Scenario{Name: "placeholder", As: apitest.User, Do: do,
			Body: body("curl https://shop.test/{{BUILD}}"), Status: 400,
			Code: "schema_validation_failed", Has: map[string]any{"errors.0.field": "curl"}},
		apitest.Scenario{Name: "private", As: apitest.User, Do: do,
			Body: body("curl http://127.0.0.1/"), Status: 400,
			Code: "INVALID_URL", Has: map[string]any{"errors.0.field": "curl"}},
	)
}

func TestFields(t *testing.T) {
	r := start(t)
	const do = "POST /api/scraper-simple/preview-from-url"
	wait := r.page(t, "text/html", `<!doctype html><title>x</title><h1>Oak chair</h1><script type="application/ld+json">{"@context":"https://schema.org","@type":"Product",
		"name":"Oak chair","sku":"OC-1","offers":{"@type":"Offer","price":129.5,"priceCurrency":"EUR"}}</script><table><tr><th>Weight</th><td>7 kg</td></tr></table>`)
	r.Run(t, apitest.Scenario{Name: "fields", As: apitest.Reader, Do: do, Status: 200,
		Body: `{"url":"https://shop.test/chair","fields":["title","price","sku","weight","colour"]}`,
		Has: map[string]any{"url": "https://shop.test/chair", "elapsedMs": 0,
			"fields.title": "Oak chair", "fields.sku": "OC-1", "fields.weight": "7 kg",
			"fields.colour": nil},
		Check: func(t *testing.T, a apitest.Answer) {
			if a.Text("fields.price") != "129.5" {
				t.Errorf("price is %v", a.Text("fields.price"))
			}
		}})
	wait()
	for _, c := range []struct {
		name, page, fields string
		want               map[string]any
	}{
		{"named elements", `<title>Oak chair - Shop</title><h1 class="title">Oak chair</h1><p><span class="price">12.50</span> <span class="currency">EUR</span></p>
			<div class="sku">OC-1</div><div class="stock">3 in stock</div>`, `"title","price","sku","currency","stock"`,
			map[string]any{"title": "Oak chair", "price": "12.50", "sku": "OC-1", "currency": "EUR",
				"stock": "3 in stock"}},
		{"what detection finds",
			`<title>Oak chair</title><h1>Oak chair</h1><p>€ 12.50</p><p>It is made of oak.</p>`,
			`"name","price"`,
			map[string]any{"name": "Oak chair", "price": "€ 12.50"}},
		{"a heading, when nothing else is asked", `<h1>Oak chair</h1>`, `"title"`,
			map[string]any{"title": "Oak chair"}},
		{"the first item of a list", list, `"title","price","url"`,
			map[string]any{"title": "Blue one", "price": "€1.50", "url": "https://shop.test/1"}},
	} {
		wait = r.page(t, "text/html", c.page)
		r.Run(t, apitest.Scenario{Name: c.name, As: apitest.User, Do: do,
			Body:   `{"url":"https://shop.test/list","fields":[` + c.fields + `]}`,
			Status: 200, Has: map[string]any{"fields": c.want}})
		wait()
	}
	wait = r.page(t, "text/html", "<p>"+strings.Repeat("Nothing to be seen. ", 20))
	r.Run(t, apitest.Scenario{Name: "nothing", As: apitest.User, Do: do,
		Body: `{"url":"https://shop.test/chair","fields":["price"]}`, Status: 200,
		Has: map[string]any{"fields": map[string]any{"price": nil}}})
	wait()
	r.Run(t,
		apitest.Scenario{Name: "no fields", As: apitest.User, Do: do,
			Body: `{"url":"https://shop.test/","fields":[]}`, Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "bad fields", As: apitest.User, Do: do,
			Body: `{"url":"https://shop.test/","fields":["a","a"," ","_b"]}`, Status: 400,
			Code: "invalid_request",
			Has:  map[string]any{"errors.0.field": "fields[1]", "errors.2.field": "fields[3]"}},
		apitest.Scenario{Name: "names that no row can have", As: apitest.User, Do: do,
			Body:   `{"url":"https://shop.test/","fields":["a","$ref","b\\c"]}`,
			Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "fields[1]", "errors.1.field": "fields[2]"}},
		apitest.Scenario{Name: "a placeholder", As: apitest.User, Do: do,
			Body: `{"url":"https://shop.test/?q={{X}}","fields":["a"]}`, Status: 400,
			Code: "INVALID_URL", Has: map[string]any{"errors.0.field": "url"}},
		apitest.Scenario{Name: "private", As: apitest.User, Do: do,
			Body: `{"url":"http://[::1]/","fields":["a"]}`, Status: 400, Code: "INVALID_URL"},
	)
}
