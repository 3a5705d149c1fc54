package scrapers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/ids"
)

// body is a scraper of a group with changed members. A nil value removes a member.
func body(group ids.ID, changes ...any) string {
	members := map[string]any{"name": "shop", "groupRef": group, "type": "SINGLE_PRODUCT",
		"sourceConfig": map[string]any{"url": "https://shop.test/p/1"},
		"itemsConfig": []any{map[string]any{"name": "title", "selector": "h1", "kind": "TEXT"},
			map[string]any{"name": "image", "selector": "img", "kind": "ATTR", "attr": "src"}}}
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

func source(members string) json.RawMessage { return json.RawMessage(members) }

func key(text string) map[string]string { return map[string]string{"Idempotency-Key": text} }

const put = "PUT /api/scraper"

func TestPutCreates(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	made := s.Call(t, apitest.Scenario{As: apitest.User, Do: put, Header: key("1"),
		Body: body(group)})
	if made.Status != 200 || len(made.Text("id")) != 24 {
		t.Fatalf("made: %d %s", made.Status, made.Body)
	}
	want := map[string]any{"id": made.Text("id"), "name": "shop", "groupRef": group,
		"type":             "SINGLE_PRODUCT",
		"sourceConfig.url": "https://shop.test/p/1", "itemsConfig.1.attr": "src",
		"postProcessRules": []any{}, "schedule": "",
		"schema": nil, "lastRunState": nil, "createdAt": "2026-01-02T03:04:05.000Z",
		"updatedAt": "2026-01-02T03:04:05.000Z"}
	s.Run(t,
		apitest.Scenario{Name: "replay", As: apitest.User, Do: put, Header: key("1"),
			Body: body(group), Status: 200, Has: want,
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "same key, other body", As: apitest.User, Do: put, Header: key("1"),
			Body: body(group, "name", "x"), Status: 422, Code: "idempotency_key_reused"},
		apitest.Scenario{Name: "no key", As: apitest.User, Do: put, Body: body(group), Status: 400,
			Code: "idempotency_key_required"},
		apitest.Scenario{Name: "name taken", As: apitest.User, Do: put, Header: key("2"),
			Body: body(group), Status: 409,
			Code: "NAME_TAKEN", Has: map[string]any{"errors.0.field": "name"}},
		apitest.Scenario{Name: "a fault is replayed", As: apitest.User, Do: put, Header: key("2"),
			Body: body(group), Status: 409, Code: "NAME_TAKEN",
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "read key", As: apitest.Reader, Do: put, Header: key("3"),
			Body: body(group), Status: 403,
			Code: "scope_rejected"},
		apitest.Scenario{Name: "update", As: apitest.User, Do: put, Header: key("4"), Status: 200,
			Body: body(group, "id", made.Text("id"), "name", "shop 2", "createdAt",
				"2000-01-01T00:00:00.000Z", "lastRunState", "FAILED"),
			Has: map[string]any{"id": made.Text("id"), "name": "shop 2",
				"createdAt":    "2026-01-02T03:04:05.000Z",
				"lastRunState": nil}},
		apitest.Scenario{Name: "update of what does not exist", As: apitest.User, Do: put,
			Header: key("5"), Status: 400,
			Body: body(group, "id", "0123456789abcdef01234567"), Code: "not_found",
			Has: map[string]any{"errors.0.field": "id"}},
		apitest.Scenario{Name: "update of a foreign one", As: apitest.Other, Do: put,
			Header: key("6"), Status: 400,
			Body: body(group, "id", made.Text("id")), Code: "not_found",
			Has: map[string]any{"errors.0.field": "id"}},
		apitest.Scenario{Name: "a foreign group", As: apitest.Other, Do: put, Header: key("7"),
			Status: 400, Body: body(group),
			Code: "schema_validation_failed", Has: map[string]any{"errors.0.field": "groupRef"}},
		apitest.Scenario{Name: "enriched", As: apitest.User, Do: "PUT /api/scraper/v2",
			Header: key("8"), Status: 200,
			Body: body(group, "name", "v2"),
			Has: map[string]any{"name": "v2", "configValid": true, "schema": nil,
				"group": map[string]any{"id": group, "name": "g", "dataTable": "t"},
				"runStats": map[string]any{"lastNRuns": 0, "successes": 0, "failures": 0,
					"avgRows": 0}}},
	)
	for i, path := range []string{"/api/scraper", "/api/scraper/v2"} {
		read := s.Call(t, apitest.Scenario{As: apitest.User,
			Do: "GET " + path + "/" + made.Text("id"), Status: 200})
		s.Run(t, apitest.Scenario{Name: "what was read, sent back to " + path, As: apitest.User,
			Do:     "PUT " + path,
			Header: key(fmt.Sprint("back", i)), Body: string(read.Body), Status: 200,
			Has: map[string]any{"id": made.Text("id")}})
	}
}

// A refusal names all faults of a scraper.
func TestPutRefuses(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	const invalid = "schema_validation_failed"
	page := func(members string) json.RawMessage {
		return source(`{"url":"https://shop.test/","pagination":` + members + `}`)
	}
	const at = "sourceConfig.pagination."
	for i, c := range []struct {
		name    string
		changes []any
		code    string
		fields  string
	}{
		{"nothing", []any{"name", nil, "groupRef", nil, "type", nil, "sourceConfig", nil}, invalid,
			"name groupRef type sourceConfig"},
		{"blank name", []any{"name", "  "}, invalid, "name"},
		{"long name", []any{"name", strings.Repeat("x", 201)}, invalid, "name"},
		{"unknown member", []any{"nam", "x"}, "unknown_field", "nam"},
		{"malformed group", []any{"groupRef", "x"}, "invalid_id", "groupRef"},
		{"unknown type", []any{"type", "X"}, invalid, "type"},
		{"plugin of another type",
			[]any{"config", source(`{"endpointTag":"/plugin/marketplace/pdp"}`)}, invalid,
			"config.endpointTag"},
		{"unknown plugin", []any{"type", "MARKETPLACE", "itemsConfig", nil, "config",
			source(`{"endpointTag":"/x"}`)}, invalid, "config.endpointTag"},
		{"website contacts are no plugin",
			[]any{"type", "MARKETPLACE", "itemsConfig", nil, "config",
				source(`{"endpointTag":"websitecontacts"}`)}, invalid, "config.endpointTag"},
		{"fields of a plugin", []any{"type", "MARKETPLACE"}, invalid, "itemsConfig"},
		{"queries of another type",
			[]any{"sourceConfig",
				source(`{"url":"https://shop.test/","queries":["x"],"engine":"e"}`)}, invalid,
			"sourceConfig.queries sourceConfig.engine"},
		{"no queries", []any{"type", "SEARCH_ENGINE_SEARCH", "itemsConfig", nil, "sourceConfig",
			source(`{}`)}, invalid, "sourceConfig.queries"},
		{"bad queries", []any{"type", "SEARCH_ENGINE_SEARCH", "itemsConfig", nil, "sourceConfig",
			source(`{"queries":[" ","a","a","` + strings.Repeat("ü", 513) +
				`"]}`)}, invalid,
			"sourceConfig.queries[0] sourceConfig.queries[2] sourceConfig.queries[3]"},
		{"an address of a search", []any{"type", "SEARCH_ENGINE_SEARCH", "itemsConfig", nil,
			"sourceConfig", source(`{"queries":["a"],"url":"https://shop.test/",
			"pagination":{"type":"URL_PAGE_PARAM","param":"p"}}`)}, invalid,
			"sourceConfig.url sourceConfig.pagination"},
		{"pages of a search that has none",
			[]any{"type", "SEARCH_ENGINE_SEARCH", "itemsConfig", nil, "sourceConfig",
				source(`{"queries":["a"],"pagination":{"type":"NONE","max":2}}`)}, invalid,
			"sourceConfig.pagination"},
		{"a search that follows links",
			[]any{"type", "SEARCH_ENGINE_SEARCH", "itemsConfig", nil, "sourceConfig",
				source(`{"queries":["a"],"pagination":{"type":"URL_PAGE_PARAM","max":2,"selector":"a"}}`)}, invalid, "sourceConfig.pagination"},
		{"hidden data of fields",
			[]any{"sourceConfig", source(`{"url":"https://shop.test/","tryWithHiddenData":true}`)},
			invalid,
			"sourceConfig.tryWithHiddenData"},
		{"upload type", []any{"type", "FILE"}, "type_not_runnable", "type"},
		{"no address", []any{"sourceConfig", source(`{}`)}, invalid, "sourceConfig.url"},
		{"ftp", []any{"sourceConfig", source(`{"url":"ftp://shop.test/"}`)}, invalid,
			"sourceConfig.url"},
		{"private address", []any{"sourceConfig", source(`{"url":"http://127.0.0.1/"}`)}, invalid,
			"sourceConfig.url"},
		{"placeholder in the address",
			[]any{"sourceConfig", source(`{"url":"https://shop.test/{{A}}"}`)}, invalid,
			"sourceConfig.url"},
		{"no curl command", []any{"sourceConfig", source(`{"curl":"wget https://shop.test"}`)},
			invalid, "sourceConfig.curl"},
		{"curl with a file", []any{"sourceConfig",
			source(`{"curl":"curl https://shop.test -o f"}`)}, invalid, "sourceConfig.curl"},
		{"curl and an address",
			[]any{"sourceConfig",
				source(`{"url":"https://shop.test/","curl":"curl https://shop.test"}`)}, invalid,
			"sourceConfig.curl"},
		{"curl to a private address",
			[]any{"sourceConfig", source(`{"curl":"curl http://127.0.0.1/"}`)}, invalid,
			"sourceConfig.curl"},
		{"curl with a password in the address",
			[]any{"sourceConfig", source(`{"curl":"curl https://a:b@shop.test/"}`)}, invalid,
			"sourceConfig.curl"},
		{"curl with a placeholder",
			[]any{"sourceConfig", source(`{"curl":"curl 'https://shop.test/{{A}}'"}`)}, invalid,
			"sourceConfig.curl"},
		{"tokens without a curl command", []any{"sourceConfig", source(`{"url":"https://shop.test/","prelaunch":{"discoveryUrl":"https://shop.test",
			"tokens":[{"name":"A","source":"META","expression":"a"}]}}`)}, invalid, "sourceConfig.prelaunch"},
		{"bad tokens", []any{"sourceConfig", source(`{"curl":"curl 'https://shop.test/{{A}}'","prelaunch":{"discoveryUrl":"https://shop.test",
			"ttlMinutes":0,"tokens":[{"name":"A-","source":"META","expression":"a"}]}}`)}, invalid,
			"sourceConfig.prelaunch.ttlMinutes sourceConfig.prelaunch.tokens[0].name"},
		{"tokens of a private page", []any{"sourceConfig", source(`{"curl":"curl 'https://shop.test/{{A}}'",
			"prelaunch":{"discoveryUrl":"http://127.0.0.1/","tokens":[{"name":"A","source":"META","expression":"a"}]}}`)}, invalid,
			"sourceConfig.prelaunch.discoveryUrl"},
		{"placeholders without a token", []any{"sourceConfig", source(`{"curl":"curl 'https://shop.test/{{A}}' -H 'X: {{a}} {{B}}'",
			"prelaunch":{"discoveryUrl":"https://shop.test/","tokens":[{"name":"A","source":"META","expression":"a"}]}}`)}, invalid,
			"sourceConfig.curl sourceConfig.curl"},
		{"placeholder with the tokens turned off", []any{"sourceConfig", source(`{"curl":"curl 'https://shop.test/{{A}}'",
			"prelaunch":{"discoveryUrl":"https://shop.test/","tokens":[]}}`)}, invalid, "sourceConfig.curl"},
		{"stray schema", []any{"schema", map[string]any{"id": "x"}}, invalid, "schema"},
		{"schedule", []any{"schedule", "0 0 31 2 *"}, invalid, "schedule"},
		{"no zone", []any{"schedule", "0 0 * * *", "scheduleTimezone", "Mars/Base"}, invalid,
			"scheduleTimezone"},
		{"rules", []any{"postProcessRules", source(`[{"kind":"REGEX_CLEAN","sourceField":"a","outputField":"b"},
			{"kind":"CURRENCY_CONVERT","sourceField":"a","outputField":"c","params":{"from":"EUR","to":"XAU"}}]`)},
			invalid, "postProcessRules[0].params.pattern " +
				"postProcessRules[1].params.to"},
		{"reserved column", []any{"postProcessRules",
			source(`[{"kind":"REGEX_CLEAN","sourceField":"a","outputField":"scraperId"}]`)}, invalid,
			"postProcessRules[0].outputField"},
		{"retention below 1", []any{"config", source(`{"retentionCount":0}`)}, invalid,
			"config.retentionCount"},
		{"no day", []any{"config", source(`{"keepBodyDays":0}`)}, invalid,
			"config.keepBodyDays"},
		{"too many days", []any{"config", source(`{"keepBodyDays":31}`)}, invalid,
			"config.keepBodyDays"},
		{"no place for bodies", []any{"config", source(`{"keepBodyDays":30}`)}, invalid,
			"config.keepBodyDays"},
		{"too fast", []any{"config",
			source(`{"politeness":{"requestsPerSecond":11,"connections":9}}`)}, invalid,
			"config.politeness.requestsPerSecond config.politeness.connections"},
		{"negative pace", []any{"config",
			source(`{"politeness":{"requestsPerSecond":-1,"connections":-1}}`)}, invalid,
			"config.politeness.requestsPerSecond config.politeness.connections"},
		{"too slow", []any{"config", source(`{"politeness":{"requestsPerSecond":0.0333}}`)},
			invalid, "config.politeness.requestsPerSecond"},
		{"tiers", []any{"config", source(`{"tiers":["plain","fast","plain"]}`)}, invalid,
			"config.tiers[1] config.tiers[2]"},
		{"no fields", []any{"itemsConfig", []any{}}, invalid, "itemsConfig"},
		{"bad fields", []any{"itemsConfig", source(`[{"name":"a","selector":"h1","kind":"TEXT"},{"name":"a","selector":"//h1[","kind":"TEXT"},
			{"name":"b","selector":"a","kind":"ATTR"}]`)}, invalid, "itemsConfig[1].name itemsConfig[1].selector " +
			"itemsConfig[2].attr"},
		{"shapeless fields", []any{"itemsConfig", source(`[{"name":"a","selector":"h1","kind":"HTML"},
			{"name":"","selector":"","kind":"ATTR","attr":"a b"},{"selector":"h1"}]`)}, invalid,
			"itemsConfig[0].kind itemsConfig[1].name itemsConfig[1].selector itemsConfig[1].attr " +
				"itemsConfig[2].name itemsConfig[2].kind"},
		{"offset", []any{"sourceConfig",
			page(`{"type":"OFFSET_PARAM","start":1,"template":"x"}`)},
			invalid,
			at + "start " + at + "template " + at + "param " + at + "pageSize"},
		{"counts out of bounds", []any{"sourceConfig",
			page(`{"type":"OFFSET_PARAM","param":"o","pageSize":0,"start":-1,"step":0,"max":10001}`)},
			invalid,
			at + "start " + at + "step " + at + "max " + at + "pageSize"},
		{"offset without a page size",
			[]any{"sourceConfig", page(`{"type":"OFFSET_PARAM","param":"o"}`)}, invalid,
			at + "pageSize"},
		{"template", []any{"sourceConfig",
			page(`{"type":"URL_TEMPLATE","template":"/p","param":"p"}`)}, invalid,
			at + "param " + at + "template"},
		{"template to a private address",
			[]any{"sourceConfig",
				page(`{"type":"URL_TEMPLATE","template":"http://127.0.0.1/{page}"}`)},
			invalid, at + "template"},
		{"template to no address",
			[]any{"sourceConfig", page(`{"type":"URL_TEMPLATE","template":"mailto:{page}"}`)},
			invalid, at + "template"},
		{"template of a curl command to another host", []any{"sourceConfig", source(`{"curl":"curl https://shop.test",
			"pagination":{"type":"URL_TEMPLATE","template":"https://other.test/{page}"}}`)}, invalid, at + "template"},
		{"template with a placeholder",
			[]any{"sourceConfig", page(`{"type":"URL_TEMPLATE","template":"/{{A}}/{page}"}`)},
			invalid,
			at + "template"},
		{"cursor", []any{"sourceConfig", page(`{"type":"JSON_CURSOR","pageSize":3}`)}, invalid,
			at + "pageSize " + at + "param " + at + "cursorPath"},
		{"load more", []any{"sourceConfig", page(`{"type":"LOAD_MORE","param":"p"}`)}, invalid,
			at + "param " + at + "selector"},
		{"load more by XPath",
			[]any{"sourceConfig", page(`{"type":"LOAD_MORE","selector":"//button"}`)}, invalid,
			at + "selector"},
		{"load more by a prefix",
			[]any{"sourceConfig", page(`{"type":"LOAD_MORE","selector":"css:button"}`)}, invalid,
			at + "selector"},
		{"load more by what browsers do not know",
			[]any{"sourceConfig", page(`{"type":"LOAD_MORE","selector":"a:contains('More')"}`)},
			invalid, at + "selector"},
		{"load more by nothing",
			[]any{"sourceConfig", page(`{"type":"LOAD_MORE","selector":"a["}`)}, invalid,
			at + "selector"},
		{"scrolling of a curl command",
			[]any{"sourceConfig",
				source(`{"curl":"curl https://shop.test","pagination":{"type":"INFINITE_SCROLL"}}`)},
			invalid, at + "type"},
		{"scrolling", []any{"sourceConfig",
			page(`{"type":"INFINITE_SCROLL","selector":"a"}`)}, invalid,
			at + "selector"},
		{"unknown pagination", []any{"sourceConfig", page(`{"type":"X"}`)}, invalid, at + "type"},
		{"page parameter", []any{"sourceConfig",
			page(`{"type":"URL_PAGE_PARAM","selector":"a"}`)},
			invalid,
			at + "selector " + at + "param"},
		{"next link", []any{"sourceConfig", page(`{"type":"NEXT_LINK","param":"p"}`)},
			invalid,
			at + "param " + at + "selector"},
		{"no pagination", []any{"sourceConfig", page(`{"type":"NONE","max":3}`)}, invalid,
			at + "max"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := s.Call(t,
				apitest.Scenario{As: apitest.User, Do: put, Header: key(fmt.Sprint(i)),
					Body: body(group, c.changes...)})
			var fields []string
			for n := 0; ; n++ {
				field := answer.Text(fmt.Sprintf("errors.%d.field", n))
				if field == "" {
					break
				}
				fields = append(fields, field)
			}
			if answer.Status != 400 || answer.Text("code") != c.code ||
				strings.Join(fields, " ") != c.fields {
				t.Errorf("answer %d %s %q, want %s %q: %s", answer.Status, answer.Text("code"),
					fields, c.code, c.fields, answer.Body)
			}
		})
	}
	s.Run(t, apitest.Scenario{Name: "nothing was saved", As: apitest.User,
		Do: "GET /api/scraper/list", Status: 200,
		Has: map[string]any{"items": []any{}, "hasMore": false, "nextCursor": nil}})
}

func TestPutTakesPagination(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	for i, text := range []string{`{"type":"NONE"}`,
		`{"type":"URL_PAGE_PARAM","param":"p","max":10000,"start":0,"step":10}`,
		`{"type":"NEXT_LINK","selector":"a.next","max":1}`,
		`{"type":"OFFSET_PARAM","param":"o","max":10000,"pageSize":24}`,
		`{"type":"URL_TEMPLATE","template":"/page/{page}/"}`,
		`{"type":"LOAD_MORE","selector":"button.more","max":10000}`,
		`{"type":"INFINITE_SCROLL","max":1}`} {
		s.Run(t, apitest.Scenario{Name: text, As: apitest.User, Do: put, Header: key(fmt.Sprint(i)),
			Status: 200,
			Body: body(group, "name", text, "sourceConfig",
				source(`{"url":"https://shop.test/","pagination":`+text+`}`),
				"config",
				source(`{"retentionCount":null,"tiers":["render"],"politeness":{"requestsPerSecond":10,"connections":8,"ignoreRobots":true}}`)),
			Has: map[string]any{"sourceConfig.pagination": json.RawMessage(text),
				"config.politeness.ignoreRobots": true,
				"config.tiers":                   []any{"render"}}})
	}
}

// A scraper may ask for one request in 30 seconds, and 0 means the server's default. Rates in
// between are refused (TestPutRefuses).
func TestPutTakesSlowPaces(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	for i, rate := range []string{"0", "0.03333333333333333", "0.0334"} {
		a := s.Call(t, apitest.Scenario{Name: rate, As: apitest.User, Do: put,
			Header: key(fmt.Sprint(i)), Body: body(group, "name", rate, "config",
				source(`{"politeness":{"requestsPerSecond":`+rate+`}}`))})
		if a.Status != 200 ||
			i > 0 && !strings.Contains(string(a.Body), `"requestsPerSecond":`+rate) {
			t.Errorf("%s: %s", rate, a.Body)
		}
	}
}

// A curl command can be the source instead of an address. A page parameter may be in its body.
func TestPutTakesCurl(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	config := source(`{"curl":"curl 'https://shop.test/api' -H 'a: b' --json '{\"page\":1}'",` +
		`"pagination":{"type":"URL_PAGE_PARAM","param":"page","max":3}}`)
	s.Run(t, apitest.Scenario{As: apitest.User, Do: "PUT /api/scraper/v2", Header: key("1"),
		Status: 200,
		Body:   body(group, "sourceConfig", config),
		Has:    map[string]any{"sourceConfig": config, "configValid": true}})
	tokens := source(`{"curl":"curl 'https://shop.test/{{A}}'","prelaunch":{"discoveryUrl":"https://shop.test/","ttlMinutes":43200,` +
		`"tokens":[{"name":"A","source":"FRAMEWORK_DATA","expression":"/buildId"}]}}`)
	s.Run(t, apitest.Scenario{As: apitest.User, Do: put, Header: key("3"), Status: 200,
		Body: body(group, "name", "tokens", "sourceConfig", tokens),
		Has:  map[string]any{"sourceConfig": tokens}})
	s.Run(t, apitest.Scenario{Name: "no tokens", As: apitest.User, Do: put, Header: key("4"),
		Status: 200,
		Body: body(group, "name", "off", "sourceConfig",
			source(`{"url":"https://shop.test/","prelaunch":{"tokens":null}}`)),
		Has: map[string]any{"sourceConfig.prelaunch.tokens": []any{}}})
	cursor := source(`{"curl":"curl https://shop.test/api","pagination":{"type":"JSON_CURSOR","param":"after","max":10000,"cursorPath":"$.next"}}`)
	s.Run(t, apitest.Scenario{As: apitest.User, Do: put, Header: key("2"), Status: 200,
		Body: body(group, "name", "api", "sourceConfig", cursor,
			"itemsConfig", source(`[{"name":"a","selector":"$.items[*].a","kind":"TEXT"}]`)),
		Has: map[string]any{"sourceConfig": cursor}})
}

// Rules are stored as written, whatever their values are.
func TestPutTakesRules(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	rules := source(`[{"kind":"ENUM_MAP","sourceField":"title","outputField":"b","outputType":"TEXT",
		"params":{"mapping":{"a":{"x":[1,null]},"":null},"default":false}}]`)
	made := s.Call(t, apitest.Scenario{As: apitest.User, Do: put, Header: key("1"), Status: 200,
		Body: body(group, "postProcessRules", rules)})
	s.Run(t, apitest.Scenario{As: apitest.User, Do: "GET /api/scraper/" + made.Text("id"),
		Status: 200,
		Has:    map[string]any{"postProcessRules": rules}})
}

// A refused XPath selector is named with its field and the reason: functions, axes, extensions,
// variables.
func TestRefusedXPathIsNamed(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	for i, c := range [][2]string{
		{"//a[$x]", "variables"}, {"//a/namespace::*", "axis namespace"},
		{"//a[foo::b]", "axis foo"}, {"//*[id('x')]", "id()"},
		{"//*[lang('en')]", "lang()"}, {"//a[matches(., 'b')]", "matches()"},
		{"//a[replace(., 'a', 'b')]", "replace()"},
		{"//a[re:test(., 'b')]", "re:test()"}, {"//a[document('x')]", "document()"}, {"//a[1", "]"},
		{"//a except //b", "except"}, {"//a/comment()", "comments"},
	} {
		items := source(fmt.Sprintf(`[{"name":"a","selector":%q,"kind":"TEXT"}]`, c[0]))
		got := s.Call(t, apitest.Scenario{As: apitest.User, Do: put, Header: key(fmt.Sprint(i)),
			Body: body(group, "itemsConfig", items)})
		if text := string(got.Body); got.Status != 400 ||
			!strings.Contains(text, "itemsConfig[0].selector") || !strings.Contains(text, c[1]) {
			t.Errorf("%s: %d %s does not name %q", c[0], got.Status, text, c[1])
		}
	}
}
