package uploads_test

import (
	"encoding/json"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// saves is a PUT of a scraper as GET answers it, with some members changed.
func (r *rig) saves(t *testing.T, name, version, scraper string, changes map[string]any,
) apitest.Scenario {
	t.Helper()
	var body map[string]any
	read := r.Call(t, apitest.Scenario{Name: name, As: apitest.User, Status: 200,
		Do: "GET /api/scraper" + version + "/" + scraper})
	if err := json.Unmarshal(read.Body, &body); err != nil {
		t.Fatal(err)
	}
	for member, value := range changes {
		body[member] = value
	}
	changed, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return apitest.Scenario{Name: name, As: apitest.User, Do: "PUT /api/scraper" + version,
		Status: 200, Body: string(changed),
		Header: map[string]string{"Idempotency-Key": r.IDs.New().String()}}
}

// An upload's scraper can be saved with another name, group and retention. If the group already has
// the name, the refusal names the scraper that has it.
func TestUploadsAreSaved(t *testing.T) {
	r := start(t)
	prices, _ := r.file(t, "prices", `{"id":"1","a":"x"}`)
	from := r.group
	for _, version := range []string{"", "/v2"} {
		r.Run(t, r.saves(t, "as it was "+version, version, prices, nil))
		renamed := r.saves(t, "renamed "+version, version, prices,
			map[string]any{"name": "costs" + version,
				"config": map[string]any{"retentionCount": 3}})
		renamed.Has = map[string]any{"id": prices, "name": "costs" + version, "type": "FILE",
			"effectiveRetentionCount": 3}
		r.Run(t, renamed)
	}

	other, _ := r.file(t, "stock", `{"id":"1","a":"s"}`)
	r.Run(t, taken(r.saves(t, "to a name of its group", "", prices,
		map[string]any{"name": "stock"}), other, "FILE"))
	r.group = r.NewGroup(t, "alice", "more")
	there, _ := r.file(t, "stock", `{"id":"1","a":"t"}`)
	page := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200, Do: "PUT /api/scraper",
		Header: map[string]string{"Idempotency-Key": "page"},
		Body: `{"name":"page","groupRef":"` + r.group.String() + `","type":"SINGLE_PRODUCT",` +
			`"sourceConfig":{"url":"https://shop.test/"},` +
			`"itemsConfig":[{"name":"t","selector":"h1","kind":"TEXT"}]}`}).Text("id")
	to := map[string]any{"groupRef": r.group}
	r.Run(t, taken(r.saves(t, "to a group that has the name", "", other, to), there, "FILE"),
		r.saves(t, "to a name of another group's", "", other, map[string]any{"name": "page"}))
	r.Run(t, taken(r.saves(t, "to a group whose page has the name", "", other, to), page,
		"SINGLE_PRODUCT"))
	r.Run(t, taken(r.saves(t, "a page to an upload's name", "", page,
		map[string]any{"name": "stock"}), there, "FILE"))
	none := r.saves(t, "to no group", "", prices, map[string]any{"groupRef": ids.ID{9}})
	none.Has = map[string]any{"errors.0.field": "groupRef"}
	r.Run(t, refused("to no group", none, 400, "schema_validation_failed"))

	moved := r.saves(t, "moved", "", prices, to)
	moved.Has = map[string]any{"groupRef": r.group.String()}
	r.Run(t, moved)
	r.imports(t, r.Call(t, next(prices, "format=jsonl", jsonl, `{"id":"2","a":"y"}`)).Text("jobId"))
	r.rows(t, "scraperId="+prices, "y")
	r.group = from
	r.rows(t, "scraperId="+prices, "x") // rows stay where they were stored
}

// taken requires a refusal of a name, with the scraper that has it.
func taken(sc apitest.Scenario, scraper, kind string) apitest.Scenario {
	sc.Has = map[string]any{"scraperId": scraper, "type": kind, "errors.0.field": "name"}
	return refused(sc.Name, sc, 409, "NAME_TAKEN")
}

// A protected upload's scraper stays protected wherever it moves, with its key column. The next
// file brings its rows to the new group. From then on, that group's shares decide who reads them.
func TestProtectedUploadsAreSaved(t *testing.T) {
	r := start(t)
	scraper, _ := r.file(t, "file", `{"id":"1","a":"x"}`)
	r.Client.Must(t, client.ProtectGroup{Group: r.group})
	r.Run(t, r.saves(t, "renamed", "", scraper, map[string]any{"name": "goods"}))
	sent := next(scraper, "format=jsonl", jsonl, `{"id":"2","a":"y"}`)
	sent.Has = map[string]any{"keyColumnUsed": "id"}
	before := r.Call(t, sent).Text("jobId")
	r.adds(t, before)
	r.rows(t, "isLastRun=true", "x", "y")
	row := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: "GET /api/scraper/data?jobId=" + before}).Text("items.1._rowId")
	cursor := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: "GET /api/scraper/data?limit=1&groupId=" + r.group.String()}).Text("nextCursor")
	of := func(as, row string, status int) apitest.Scenario {
		return apitest.Scenario{Name: "receipt", As: as, Status: status,
			Do: "GET /api/scraper/data/" + row + "/receipt"}
	}
	share := func(group ids.ID) {
		r.Client.Must(t, client.ShareGroup{Customer: "alice", Group: group,
			Emails: []string{"bob@x.test"}})
	}
	r.Client.Must(t, client.SignUp{Customer: "bob", Email: "bob@x.test"})
	share(r.group)
	r.Run(t, of(apitest.Other, row, 200))

	from := r.group
	r.group = r.NewGroup(t, "alice", "unmatched")
	r.Run(t, r.saves(t, "moved", "", scraper, map[string]any{"groupRef": r.group}))
	sent = next(scraper, "format=jsonl&keyColumn=a", jsonl,
		`{"id":"1","a":"no","b":"new"}`+"\n"+`{"id":"3","a":"z"}`)
	sent.Has = map[string]any{"keyColumnUsed": "id"}
	after := r.Call(t, sent).Text("jobId")
	r.adds(t, after)
	r.rows(t, "", "x", "y", "z")
	r.Run(t, apitest.Scenario{Name: "of the scraper", As: apitest.User, Status: 200,
		Do: "GET /api/scraper/data?scraperId=" + scraper,
		Has: map[string]any{"items.0.b": "new", "items.1._rowId": row, "items.2.a": "z",
			"hasMore": false}})
	for _, job := range []string{before, after} {
		r.Run(t, apitest.Scenario{Name: "of a run", As: apitest.User, Status: 200,
			Do: "GET /api/scraper/data?jobId=" + job, Has: map[string]any{"items.0.a": "x",
				"items.1.a": "y", "items.2.a": "z", "hasMore": false}})
	}
	r.Run(t, of(apitest.User, row, 200), of(apitest.Other, row, 400))
	there := r.group
	r.group = from
	r.rows(t, "")
	r.Run(t, apitest.Scenario{Name: "an open cursor of the old group", As: apitest.User,
		Do:     "GET /api/scraper/data?limit=1&groupId=" + from.String() + "&cursor=" + cursor,
		Status: 400, Code: "invalid_cursor"})
	share(there)
	r.Run(t, of(apitest.Other, row, 200))
}

// Members that an upload's scraper cannot have are refused and named. Its type is fixed, and only a
// file creates such a scraper.
func TestUploadsHaveNoRecipe(t *testing.T) {
	r := start(t)
	scraper, _ := r.file(t, "file", `{"id":"1"}`)
	source := func(member string, value any) map[string]any {
		return map[string]any{"sourceConfig": map[string]any{member: value}}
	}
	config := func(member string, value any) map[string]any {
		return map[string]any{"config": map[string]any{member: value}}
	}
	for field, changes := range map[string]map[string]any{
		"sourceConfig.url":        source("url", "https://shop.test/"),
		"sourceConfig.pagination": source("pagination", map[string]any{"type": "NONE"}),
		"sourceConfig.curl":       source("curl", "curl https://shop.test/"),
		"sourceConfig.prelaunch": source("prelaunch", map[string]any{"tokens": []any{},
			"discoveryUrl": ""}),
		"sourceConfig.tryWithHiddenData": source("tryWithHiddenData", true),
		"sourceConfig.queries":           source("queries", []string{"q"}),
		"sourceConfig.engine":            source("engine", "e"),
		"itemsConfig": {"itemsConfig": []any{map[string]any{"name": "t", "selector": "h1",
			"kind": "TEXT"}}},
		"schema": {"schema": map[string]any{"id": scraper}},
		"postProcessRules": {"postProcessRules": []any{map[string]any{"kind": "REGEX_CLEAN",
			"sourceField": "a", "outputField": "b", "params": map[string]any{"pattern": "x"}}}},
		"schedule":            {"schedule": "0 6 * * *"},
		"scheduleTimezone":    {"scheduleTimezone": "Europe/Paris"},
		"config.politeness":   config("politeness", map[string]any{"connections": 1}),
		"config.endpointTag":  config("endpointTag", "/plugin/marketplace/pdp"),
		"config.tiers":        config("tiers", []string{"plain"}),
		"config.keepBodyDays": config("keepBodyDays", 1),
	} {
		sc := r.saves(t, field, "", scraper, changes)
		sc.Has = map[string]any{"errors.0.field": field}
		r.Run(t, refused(field, sc, 400, "schema_validation_failed"))
	}
	for name, changes := range map[string]map[string]any{
		"another type": {"type": "SINGLE_PRODUCT",
			"sourceConfig": map[string]any{"url": "https://shop.test/"},
			"itemsConfig":  []any{map[string]any{"name": "t", "selector": "h1", "kind": "TEXT"}}},
		"a new one": {"id": "", "name": "new", "sourceConfig": map[string]any{
			"url": "https://shop.test/"}},
	} {
		sc := r.saves(t, name, "", scraper, changes)
		sc.Has = map[string]any{"errors.0.field": "type"}
		r.Run(t, refused(name, sc, 400, "type_not_runnable"))
	}
}
