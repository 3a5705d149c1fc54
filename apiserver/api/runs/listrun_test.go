package runs_test

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

const listPath = "POST /api/scraper/url-list-run"

// body is a list run of the rig's group with changed members. A nil value removes a member.
func (r *rig) body(changes ...any) string {
	members := map[string]any{"groupId": r.group, "name": "list",
		"urls":        []string{"https://shop.test/1", "https://shop.test/2"},
		"itemsConfig": fields}
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == nil {
			delete(members, changes[i].(string))
			continue
		}
		members[changes[i].(string)] = changes[i+1]
	}
	text, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// list launches a list run, which must succeed.
func (r *rig) list(t *testing.T, body string) apitest.Answer {
	t.Helper()
	a := r.Call(t, apitest.Scenario{As: apitest.User, Do: listPath, Body: body})
	if a.Status != 200 {
		t.Fatalf("list run: %s", a.Body)
	}
	return a
}

func TestListRun(t *testing.T) {
	r := start(t)
	body := r.body("urls", []string{"https://shop.test/1#a", "HTTPS://Shop.test:443/1",
		"https://shop.test/2", "https://shop.test/2"},
		"maxChargeMicros", 900)
	first := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath, Header: key("a"),
		Body: body})
	if first.Status != 200 {
		t.Fatalf("list run: %s", first.Body)
	}
	want := map[string]any{"jobId": first.Text("jobId"), "scraperId": first.Text("scraperId"),
		"tag": nil, "linksQueued": 2,
		"duplicatesDropped": 2, "status": "PENDING"}
	r.Run(t,
		apitest.Scenario{Name: "replay", As: apitest.LLM, Do: listPath, Header: key("a"),
			Body: body, Status: 200,
			Has:     map[string]any{"": want},
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "name taken", As: apitest.LLM, Do: listPath, Header: key("b"),
			Body: body, Status: 409, Code: "NAME_TAKEN"},
		apitest.Scenario{Name: "its scraper", As: apitest.LLM,
			Do: "GET /api/scraper/" + first.Text("scraperId"), Status: 200,
			Has: map[string]any{"name": "list", "type": "SINGLE_PRODUCT",
				"lastRunState": "PENDING"}},
	)
	if urls := r.urls(t, first.Text("jobId")); !slices.Equal(urls,
		[]string{"https://shop.test/1#a", "https://shop.test/2"}) {
		t.Errorf("its list is %q", urls)
	}
	r.nothingLeft(t)
}

// A list that a plugin reads has the plugin's tag, and runs again with it.
func TestListRunOfAPlugin(t *testing.T) {
	r := start(t)
	const tag = "/plugin/marketplace/search"
	run := r.Call(t, apitest.Scenario{As: apitest.LLM, Do: listPath,
		Body: r.body("endpointTag", tag, "itemsConfig", nil)})
	if run.Status != 200 || run.Text("tag") != tag {
		t.Fatalf("%s", run.Body)
	}
	id := run.Text("scraperId")
	r.finish(t, run.Text("jobId"), int(r.Client.View().OpenJobs()[0].Links), 0)
	r.Run(t,
		apitest.Scenario{Name: "its scraper", As: apitest.LLM, Do: "GET /api/scraper/" + id,
			Status: 200,
			Has:    map[string]any{"type": "MARKETPLACE", "config.endpointTag": tag}},
		apitest.Scenario{Name: "another tag", As: apitest.LLM, Do: listPath, Status: 400,
			Code: "invalid_request",
			Body: fmt.Sprintf(`{"scraperId":%q,"force":true,"endpointTag":"/plugin/marketplace/pdp"}`, id)},
		apitest.Scenario{Name: "again", As: apitest.LLM, Do: listPath, Status: 200,
			Has:  map[string]any{"tag": tag},
			Body: fmt.Sprintf(`{"scraperId":%q,"force":true,"endpointTag":%q}`, id, tag)},
	)
}

// The price of a list depends on what reads it. That includes a template's plugin, and the current
// plugin of its scraper.
func TestListRunIsChargedAsItIsRead(t *testing.T) {
	r := start(t)
	const pdp, list = "/plugin/marketplace/pdp", "/plugin/marketplace/search"
	charged := func(name string, run apitest.Answer, tag string) {
		t.Helper()
		id, err := ids.Parse(run.Text("jobId"))
		if err != nil {
			t.Fatalf("%s: %s", name, run.Body)
		}
		job := r.Client.View().Job(id)
		row, _ := job.Charge.Of(model.Plain)
		recipe := r.Client.View().Recipe(job.Scraper, job.Revision)
		if got, _ := run.At("tag"); got != nil && got != tag || got == nil && tag != "" ||
			recipe == nil || recipe.Recipe.Endpoint != tag || tag != "" && row != "plugin:"+tag {
			t.Errorf("%s: charged as %+v, read by %+v: %s", name, job.Charge, recipe, run.Body)
		}
		r.finish(t, run.Text("jobId"), int(job.Links), 0)
	}
	put := func(header, id, body string) string {
		t.Helper()
		made := r.Call(t, apitest.Scenario{As: apitest.User, Do: "PUT /api/scraper",
			Header: key(header),
			Body:   fmt.Sprintf(`{"id":%q,"groupRef":%q,%s}`, id, r.group, body)})
		if made.Status != 200 {
			t.Fatalf("%s", made.Body)
		}
		return made.Text("id")
	}
	template := put("a", "",
		`"name":"template","type":"MARKETPLACE","sourceConfig":{"url":"https://shop.test/"},"config":{"endpointTag":"`+list+`"}`)
	first := r.list(t, r.body("templateScraperId", template, "itemsConfig", nil))
	charged("a template's plugin", first, list)
	id := first.Text("scraperId")
	force := fmt.Sprintf(`{"scraperId":%q,"force":true}`, id)
	charged("again", r.list(t, force), list)
	put("b", id, `"name":"list","type":"MARKETPLACE","sourceConfig":{},"config":{"endpointTag":"`+
		pdp+`"}`)
	charged("with another plugin", r.list(t, force), pdp)
	put("c", id,
		`"name":"list","type":"SINGLE_PRODUCT","sourceConfig":{},"itemsConfig":[{"name":"a","selector":"h1","kind":"TEXT"}]`)
	charged("with fields", r.list(t, force), "")
	r.Run(t, apitest.Scenario{Name: "as a search", As: apitest.User, Do: "PUT /api/scraper",
		Header: key("d"), Status: 400,
		Code: "schema_validation_failed", Has: map[string]any{"errors.0.field": "type"},
		Body: fmt.Sprintf(`{"id":%q,"groupRef":%q,"name":"list","type":"SEARCH_ENGINE_SEARCH","sourceConfig":{"queries":["a"]}}`, id, r.group)})
	put("e", "", `"name":"other","type":"MARKETPLACE","sourceConfig":{"url":"https://shop.test/"}`)
	r.Client.Must(t, client.PutPrices{Rows: price.List{{RowKey: "tier:plain", Micros: 150},
		{RowKey: "tier:render", Micros: 750}}})
	r.Run(t, apitest.Scenario{Name: "a plugin without a price", As: apitest.User, Do: listPath,
		Status: 400, Code: "type_not_runnable",
		Body: r.body("itemsConfig", nil, "endpointTag", pdp, "name", "unpriced")})
}

// Every refused list names the fault and leaves nothing behind.
func TestListRunRefuses(t *testing.T) {
	r := start(t)
	foreign := r.NewGroup(t, "bob", "g")
	template := r.newScraper(t, "template", "https://shop.test/")
	unknown := "0123456789abcdef01234567"
	many := make([]string, 100_001)
	for i := range many {
		many[i] = fmt.Sprintf("https://shop.test/%d", i)
	}
	for _, c := range []struct {
		name    string
		changes []any
		status  int
		code    string
		field   string
	}{
		{"no group", []any{"groupId", nil}, 400, "invalid_request", "groupId"},
		{"unknown group", []any{"groupId", unknown}, 404, "GROUP_NOT_FOUND", "groupId"},
		{"foreign group", []any{"groupId", foreign}, 404, "GROUP_NOT_FOUND", "groupId"},
		{"no name", []any{"name", nil}, 400, "invalid_request", "name"},
		{"long name", []any{"name", strings.Repeat("n", 201)}, 400, "invalid_request", "name"},
		{"no addresses", []any{"urls", nil}, 400, "invalid_request", "urls"},
		{"empty list", []any{"urls", []string{}}, 400, "invalid_request", "urls"},
		{"too many", []any{"urls", many}, 400, "LIST_TOO_LARGE", "urls"},
		{"invalid address", []any{"urls",
			[]string{"https://shop.test/", "https://shop.test/1", "ftp://shop.test/"}}, 400,
			"INVALID_URL", "urls[2]"},
		{"private address", []any{"urls", []string{"http://[::1]/"}}, 400, "INVALID_URL",
			"urls[0]"},
		{"metadata address", []any{"urls", []string{"http://0xa9fea9fe/"}}, 400, "INVALID_URL",
			"urls[0]"},
		{"password", []any{"urls", []string{"https://u:p@shop.test/"}}, 400, "INVALID_URL",
			"urls[0]"},
		{"long address", []any{"urls", []string{"https://shop.test/" + strings.Repeat("x", 9000)}},
			400, "INVALID_URL", "urls[0]"},
		{"unknown tag", []any{"endpointTag", "x"}, 400, "TAG_NOT_RESOLVED", "endpointTag"},
		{"a search's tag", []any{"endpointTag", "/plugin/search", "itemsConfig", nil}, 400,
			"TAG_NOT_RESOLVED", "endpointTag"},
		{"plugin and fields", []any{"endpointTag", "/plugin/marketplace/pdp"}, 400,
			"invalid_request", "endpointTag"},
		{"no recipe", []any{"itemsConfig", nil}, 400, "invalid_request", "itemsConfig"},
		{"two recipes", []any{"templateScraperId", template}, 400, "invalid_request",
			"itemsConfig"},
		{"bad recipe", []any{"itemsConfig", []model.Field{{Name: "a", Selector: "[",
			Kind: model.Text}}}, 400, "schema_validation_failed", "itemsConfig[0].selector"},
		{"vain recipe", []any{"itemsConfig", []model.Field{{Name: "a", Selector: "//comment()",
			Kind: model.Text}}}, 400, "schema_validation_failed", "itemsConfig[0].selector"},
		{"type of later", []any{"type", "AI_CONF"}, 400, "invalid_request", "type"},
		{"unknown template", []any{"templateScraperId", unknown, "itemsConfig", nil}, 404,
			"scraper_not_found", "templateScraperId"},
		{"unknown scraper", []any{"scraperId", unknown, "itemsConfig", nil}, 404,
			"scraper_not_found", "scraperId"},
		{"no list scraper", []any{"scraperId", template, "itemsConfig", nil}, 400,
			"invalid_request", "scraperId"},
		{"rerun and force", []any{"rerun", true, "force", true}, 400, "invalid_request", "force"},
		{"negative cap", []any{"maxChargeMicros", -1}, 400, "invalid_request", "maxChargeMicros"},
		{"misspelt cap", []any{"maxChargeMicro", 1}, 400, "unknown_field", "maxChargeMicro"},
	} {
		r.Run(t, apitest.Scenario{Name: c.name, As: apitest.User, Do: listPath, Header: key("same"),
			Body:   r.body(c.changes...),
			Status: c.status, Code: c.code, Has: map[string]any{"errors.0.field": c.field}})
	}
	r.Run(t, apitest.Scenario{Name: "read key", As: apitest.Reader, Do: listPath, Body: r.body(),
		Status: 403, Code: "scope_rejected"})
	if lists, err := r.store.AllLists(t.Context()); err != nil || len(lists) > 0 {
		t.Errorf("%d lists are left: %v", len(lists), err)
	}
	r.nothingLeft(t)
	if r.Client.View().ScraperByName("alice", "list") != nil {
		t.Error("a scraper was saved")
	}
	r.Run(t, apitest.Scenario{Name: "the key is still good", As: apitest.User, Do: listPath,
		Header: key("same"), Body: r.body(), Status: 200})
}

func (r *rig) stream(name string) string {
	items, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return listPath + "?groupId=" + r.group.String() + "&name=" + name + "&itemsConfig=" +
		strings.NewReplacer(`"`, "%22", "{", "%7B", "}", "%7D", "[", "%5B", "]",
			"%5D").Replace(string(items))
}

func media(contentType string) map[string]string {
	return map[string]string{"Content-Type": contentType}
}

// If a key is used again, a streamed list is compared by its bytes, not only by its length.
func TestStreamedListIsRepeated(t *testing.T) {
	r := start(t)
	sc := apitest.Scenario{Name: "first", As: apitest.User, Do: r.stream("one"), Status: 200,
		Header: map[string]string{"Content-Type": "text/uri-list", "Idempotency-Key": "k"},
		Body:   "https://shop.test/1\n", Has: map[string]any{"linksQueued": 1}}
	again := sc
	again.Name, again.Headers = "again", map[string]string{"Idempotency-Replayed": "true"}
	other := sc
	other.Name, other.Body, other.Has = "another list", "https://shop.test/2\n", nil
	other.Status, other.Code = 422, "idempotency_key_reused"
	other.Headers = map[string]string{"Idempotency-Replayed": ""}
	empty := other
	empty.Name, empty.Body = "no list", ""
	r.Run(t, sc, again, other, empty, again)
}

func TestListRunStreams(t *testing.T) {
	r := start(t)
	plain, lines := media("text/uri-list; charset=utf-8"), media("application/x-ndjson")
	for name, sc := range map[string]apitest.Scenario{
		"uri-list": {Header: plain, Body: "\xef\xbb\xbf# shops\r\nhttps://shop.test/1\r\n\r\n  " +
			"https://shop.test/2\t\r\n#\r\nhttps://shop.test/1"},
		"ndjson": {Header: lines,
			Body: "\xef\xbb\xbf" + `{"url":"https://shop.test/1"}` + "\n\n" +
				` { "url" : "https:\/\/shop.test/2" } ` + "\r\n" +
				`{"url":"https://shop.test/1"}`},
	} {
		sc.Name, sc.As, sc.Do, sc.Status = name, apitest.User,
			r.stream(name)+"&type=MULTIPLE_PRODUCTS&maxChargeMicros=7", 200
		sc.Has = map[string]any{"linksQueued": 2, "duplicatesDropped": 1}
		sc.Check = func(t *testing.T, a apitest.Answer) {
			if urls := r.urls(t, a.Text("jobId")); !slices.Equal(urls,
				[]string{"https://shop.test/1", "https://shop.test/2"}) {
				t.Errorf("its list is %q", urls)
			}
			id, _ := ids.Parse(a.Text("jobId"))
			if job := r.Client.View().Job(id); job.MaxCharge == nil || *job.MaxCharge != 7 {
				t.Errorf("its cap is %v", job.MaxCharge)
			}
			if made := r.Client.View().ScraperByName("alice",
				name); made.Spec.Type != model.MultipleProducts {
				t.Errorf("its type is %s", made.Spec.Type)
			}
		}
		r.Run(t, sc)
	}
	refused := func(name string, header map[string]string, body, code,
		field string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.User, Do: r.stream("x"), Header: header,
			Body: body, Status: 400, Code: code,
			Has: map[string]any{"errors.0.field": field}}
	}
	r.Run(t,
		refused("invalid address", plain, "https://shop.test/\n#\nhttps://\n", "INVALID_URL",
			"line 3"),
		refused("not text", plain, "https://shop.test/\nhttps://shop.test/\xff", "INVALID_URL",
			"line 2"),
		refused("no newline for long", plain, strings.Repeat("x", 70_000), "INVALID_URL", "line 1"),
		refused("nothing but comments", plain, "# a\n\n", "invalid_request", "urls"),
		refused("unknown member", lines, `{"url":"https://shop.test/","title":"x"}`,
			"unknown_field", "line 1"),
		refused("member twice", lines, `{"url":"https://shop.test/1","url":"https://shop.test/2"}`,
			"invalid_body", "line 1"),
		refused("no object", lines, `"https://shop.test/"`, "invalid_body", "line 1"),
		refused("two objects", lines, `{"url":"https://shop.test/"} {}`, "invalid_body", "line 1"),
		refused("no address", lines, `{}`, "invalid_body", "line 1"),
		refused("cut", lines, `{"url":"https://shop.test/"`, "invalid_body", "line 1"),
		apitest.Scenario{Name: "urls as a parameter", As: apitest.User,
			Do: r.stream("x") + "&urls=a", Header: plain, Body: "x", Status: 400,
			Code: "unknown_parameter", Has: map[string]any{"errors.0.field": "urls"}},
		apitest.Scenario{Name: "another media type", As: apitest.User, Do: r.stream("x"),
			Header: media("text/csv"), Body: "x", Status: 415,
			Code: "unsupported_media_type"},
	)
	r.nothingLeft(t)
}

// The name is refused before the body is read, while the client is still sending.
func TestListRunRefusesEarly(t *testing.T) {
	r := start(t)
	r.list(t, r.body())
	c, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, path, _ := strings.Cut(r.stream("list"), " ")
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"text/uri-list\r\nContent-Length: 100000000\r\n\r\n%s",
		path, r.Secrets[apitest.User], strings.Repeat("#\n", 8_000))
	answer := make([]byte, 12)
	if _, err := c.Read(answer); err != nil || string(answer) != "HTTP/1.1 409" {
		t.Errorf("answer %q, %v", answer, err)
	}
}

// A client that leaves in the middle leaves nothing behind.
func TestListRunBreaksOff(t *testing.T) {
	r := start(t)
	c, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(r.stream("list"), " ")
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"text/uri-list\r\nContent-Length: 100000\r\n\r\nhttps://shop.test/1\n%s",
		path, r.Secrets[apitest.User], strings.Repeat("#\n", 8_000))
	for len(r.Client.View().ClaimsUnderWay("test")) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the call does not begin")
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(); err != nil { // waits for calls
		t.Fatal(err)
	}
	r.nothingLeft(t)
	if r.Client.View().ScraperByName("alice", "list") != nil {
		t.Error("a run was made of half a list")
	}
}

func TestListRunTemplate(t *testing.T) {
	r := start(t)
	most := 3
	put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "t",
			Type: model.MultipleProducts, ItemsConfig: fields,
			Config: &model.ScraperConfig{Politeness: &model.Politeness{IgnoreRobots: true}},
			SourceConfig: model.SourceConfig{URL: "https://shop.test/",
				Pagination: &model.Pagination{Type: model.NextLink, Selector: "a", Max: &most}}}}
	r.Client.Must(t, put)
	a := r.list(t, r.body("templateScraperId", put.ID, "itemsConfig", nil))
	made := r.Client.View().ScraperByName("alice", "list")
	if made == nil || made.Spec.Type != model.MultipleProducts ||
		made.Spec.SourceConfig.URL != "" || !made.ListRun ||
		made.Spec.SourceConfig.Pagination.MaxPages() != 3 {
		t.Errorf("its scraper is %+v", made)
	}
	id, _ := ids.Parse(a.Text("jobId"))
	if job := r.Client.View().Job(id); !job.IgnoresRobots || job.MaxPages != 3 {
		t.Errorf("its job is %+v", job)
	}
	stated := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "stated",
			Type:         model.ApplicationLDJSON,
			SourceConfig: model.SourceConfig{URL: "https://shop.test/", TryWithHiddenData: true}}}
	r.Client.Must(t, stated)
	r.list(t, r.body("templateScraperId", stated.ID, "itemsConfig", nil, "name", "hidden"))
	if made := r.Client.View().ScraperByName("alice", "hidden"); !made.Spec.Recipe().HiddenData {
		t.Errorf("the scraper reads no hidden data: %+v", made.Spec)
	}
}

// The deepest scraper that fits a body can be saved, read, used as a template and run again. One
// more level is refused.
func TestTheDeepestScraperRuns(t *testing.T) {
	r := start(t)
	const most, around = 32, 5 // body, rules, rule, params, mapping
	scraper := func(name string, levels int) string {
		value := strings.Repeat("[", levels-around) + strings.Repeat("]", levels-around)
		return fmt.Sprintf(`{"groupRef":%q,"name":%q,"type":"SINGLE_PRODUCT","sourceConfig":{"url":"https://shop.test/"},
			"itemsConfig":[{"name":"a","selector":"h1","kind":"TEXT"}],"postProcessRules":[{"kind":"ENUM_MAP","sourceField":"a",
			"outputField":"b","outputType":"TEXT","params":{"mapping":{"x":%s}}}]}`, r.group, name, value)
	}
	made := r.Call(t, apitest.Scenario{As: apitest.User, Do: "PUT /api/scraper", Header: key("a"),
		Body: scraper("deep", most)})
	if made.Status != 200 {
		t.Fatalf("%s", made.Body)
	}
	rules, _ := made.At("postProcessRules")
	first := r.list(t, r.body("templateScraperId", made.Text("id"), "itemsConfig", nil))
	for _, id := range []string{made.Text("id"), first.Text("scraperId")} {
		r.Run(t, apitest.Scenario{Name: "read", As: apitest.User, Do: "GET /api/scraper/" + id,
			Status: 200,
			Has:    map[string]any{"postProcessRules": rules}})
	}
	job, _ := ids.Parse(first.Text("jobId"))
	kept := r.Client.View().Job(job)
	if recipe := r.Client.View().Recipe(kept.Scraper, kept.Revision); recipe == nil ||
		len(recipe.Recipe.Rules) != 1 {
		t.Errorf("it is read by %+v", recipe)
	}
	r.finish(t, first.Text("jobId"), int(kept.Links), 0)
	r.list(t, fmt.Sprintf(`{"scraperId":%q,"force":true}`, first.Text("scraperId")))
	r.Run(t, apitest.Scenario{Name: "one level more", As: apitest.User, Do: "PUT /api/scraper",
		Header: key("b"),
		Body:   scraper("deeper", most+1), Status: 400, Code: "invalid_body",
		Has: map[string]any{"errors.0.field": "postProcessRules"}})
}

func TestListRunAgain(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 10_000})
	urls := []string{"https://shop.test/0", "https://shop.test/1", "https://shop.test/2",
		"https://shop.test/3"}
	first := r.list(t, r.body("urls", urls))
	scraper := first.Text("scraperId")
	again := func(changes ...any) string {
		return r.body(append([]any{"groupId", nil, "name", nil, "itemsConfig", nil, "urls", nil,
			"scraperId", scraper}, changes...)...)
	}
	refused := func(name, body string, status int, code string) {
		t.Helper()
		r.Run(t, apitest.Scenario{Name: name, As: apitest.User, Do: listPath, Body: body,
			Status: status, Code: code})
		r.nothingLeft(t)
	}
	takes := func(a apitest.Answer, want ...string) string {
		t.Helper()
		r.Clock.Advance(time.Second)
		if got := r.urls(t, a.Text("jobId")); !slices.Equal(got, want) {
			t.Errorf("the list is %q, want %q", got, want)
		}
		return a.Text("jobId")
	}
	refused("still running", again("force", true), 400, "scraper_already_running")
	r.finish(t, first.Text("jobId"), 4, 0, 2)
	refused("was run", again(), 409, "list_already_run")
	refused("another group", again("force", true, "groupId", r.NewGroup(t, "alice", "h")), 400,
		"invalid_request")
	refused("another name", again("force", true, "name", "x"), 400, "invalid_request")
	refused("foreign", again("scraperId", r.newScraper(t, "s", "https://shop.test/")), 400,
		"invalid_request")

	job := takes(r.list(t, again("rerun", true)), urls[1], urls[3])
	r.finish(t, job, 2, 1)
	job = takes(r.list(t, again("rerun", true, "urls",
		[]string{"https://shop.test/9", "https://SHOP.test/3#x", urls[1]})),
		"https://shop.test/9", urls[1])
	r.finish(t, job, 2, 0)
	// What was charged before is given as well: force takes it behind the rest.
	job = takes(r.list(t, again("force", true)), "https://shop.test/9", urls[1],
		"https://SHOP.test/3#x")
	r.finish(t, job, 3, 0, 1, 2)
	job = takes(r.list(t, again("rerun", true, "urls",
		[]string{"https://shop.test/8", "https://shop.test/7"})),
		"https://shop.test/8", "https://shop.test/7")
	r.finish(t, job, 2, 1)
	job = takes(r.list(t, again("rerun", true)), "https://shop.test/8")
	r.finish(t, job, 1)
	job = takes(r.list(t, again("force", true)), "https://shop.test/8", "https://shop.test/7")
	r.finish(t, job, 2, 0, 1)
	refused("all charged", again("rerun", true), 409, "list_already_run")
	job = takes(r.list(t, again("urls", urls[:1], "groupId", r.group, "name", "list")), urls[0])
	r.finish(t, job, 1)
}
