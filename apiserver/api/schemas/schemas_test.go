package schemas_test

import (
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func key(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }

const (
	product = `{"type":"object","title":"A product","properties":{"name":{"type":"string"},"price":{"type":"number"}},"required":["name"]}`
	body    = `{"version":1,"type":"PRODUCT","content":` + product +
		`,"domainPatterns":["*.shop.example"],"templateId":"t","customerRef":"bob"}`
	missing = "0123456789abcdef01234567"
)

func TestPut(t *testing.T) {
	s := apitest.Start(t)
	const path = "PUT /api/schema/customer"
	refused := func(name, body, code, field string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.User, Do: path, Header: key(name),
			Body: body, Status: 400, Code: code,
			Has: map[string]any{"errors.0.field": field}}
	}
	const invalid = "schema_validation_failed"
	s.Run(t,
		apitest.Scenario{Name: "no idempotency key", As: apitest.User, Do: path, Body: body,
			Status: 400, Code: "idempotency_key_required"},
		apitest.Scenario{Name: "read key", As: apitest.Reader, Do: path, Header: key("1"),
			Body: body, Status: 403, Code: "scope_rejected"},
		refused("no version", `{"type":"PRODUCT","content":`+product+`}`, invalid, "version"),
		refused("unknown type", `{"version":1,"type":"THING","content":`+product+`}`, invalid,
			"type"),
		refused("no content", `{"version":1,"type":"PRODUCT"}`, invalid, "content"),
		refused("content is null", `{"version":1,"type":"PRODUCT","content":null}`, invalid,
			"content"),
		refused("content is no object", `{"version":1,"type":"PRODUCT","content":[]}`, invalid,
			"content"),
		refused("no schema",
			`{"version":1,"type":"PRODUCT","content":{"properties":{"a":{"type":"text"}}}}`,
			invalid, "content"),
		refused("leaves the document",
			`{"version":1,"type":"PRODUCT","content":{"properties":{"a":{"$ref":"http://169.254.169.254/x"}}}}`,
			invalid, "content.properties.a.$ref"),
		refused("too large",
			`{"version":1,"type":"PRODUCT","content":{"properties":{"a":{"description":"`+
				strings.Repeat("x", 70_000)+`"}}}}`,
			invalid, "content"),
		refused("domain pattern",
			`{"version":1,"type":"PRODUCT","content":`+product+`,"domainPatterns":[""]}`, invalid,
			"domainPatterns[0]"),
		refused("unknown member",
			`{"version":1,"type":"PRODUCT","contents":1,"content":`+product+`}`, "unknown_field",
			"contents"),
		refused("malformed id", `{"id":"x","version":1,"type":"PRODUCT","content":`+product+`}`,
			"invalid_id", "id"),
	)
	create := apitest.Scenario{Name: "create", As: apitest.User, Do: path, Header: key("c"),
		Body: body, Status: 200,
		Has: map[string]any{"name": "A product", "version": 1, "type": "PRODUCT",
			"customerRef": "alice", "templateId": "t",
			"content.required.0": "name", "domainPatterns.0": "*.shop.example"}}
	id := s.Call(t, create).Text("id")
	again := create
	again.Name, again.Has, again.Headers = "replay", map[string]any{"id": id},
		map[string]string{"Idempotency-Replayed": "true"}
	update := strings.Replace(body, `{"version":1,`, `{"id":"`+id+`","name":"Mine","version":2,`, 1)
	s.Run(t, again,
		apitest.Scenario{Name: "update", As: apitest.LLM, Do: path, Header: key("u"), Body: update,
			Status: 200,
			Has:    map[string]any{"id": id, "name": "Mine", "version": 2}},
		apitest.Scenario{Name: "another customer's id makes a new one", As: apitest.Other, Do: path,
			Header: key("o"), Body: update,
			Status: 200, Has: map[string]any{"customerRef": "bob"},
			Check: func(t *testing.T, a apitest.Answer) {
				if a.Text("id") == id {
					t.Error("the schema of another customer was replaced")
				}
			}},
		apitest.Scenario{Name: "list", As: apitest.Reader, Do: "GET /api/schema/customer",
			Status: 200, Lacks: []string{"1"},
			Has: map[string]any{"0": map[string]any{"id": id, "name": "Mine", "type": "PRODUCT",
				"version": 2}}},
		apitest.Scenario{Name: "get", As: apitest.Reader, Do: "GET /api/schema/get/" + id,
			Status: 200,
			Has:    map[string]any{"id": id, "content.title": "A product"}},
		apitest.Scenario{Name: "what was read can be sent back", As: apitest.User, Do: path,
			Header: key("b"),
			Body: string(s.Call(t,
				apitest.Scenario{As: apitest.User, Do: "GET /api/schema/get/" + id}).Body),
			Status: 200,
			Has:    map[string]any{"id": id}},
	)
	foreign := s.Call(t, apitest.Scenario{As: apitest.Other, Do: "GET /api/schema/get/" + id,
		Header: map[string]string{"X-Request-Id": "r"}})
	absent := s.Call(t, apitest.Scenario{As: apitest.Other, Do: "GET /api/schema/get/" + missing,
		Header: map[string]string{"X-Request-Id": "r"}})
	if foreign.Status != 404 || foreign.Text("code") != "schema_not_found" ||
		string(foreign.Body) != string(absent.Body) {
		t.Errorf("foreign %d %s, missing %d %s", foreign.Status, foreign.Body, absent.Status,
			absent.Body)
	}
}

func TestGlobal(t *testing.T) {
	s := apitest.Start(t)
	for _, do := range []string{"GET /api/schema", "GET /api/schema/PRODUCT/1", "PUT /api/schema"} {
		sc := apitest.Scenario{Name: do, As: apitest.User, Do: do, Status: 401,
			Code: "unauthorized"}
		if strings.HasPrefix(do, "PUT") {
			sc.Body = body
		}
		signed := sc
		signed.As = apitest.SignIn
		s.Run(t, sc, signed)
	}
	id := s.Call(t, apitest.Scenario{As: apitest.Admin, Do: "PUT /api/schema",
		Body: body}).Text("id")
	s.Run(t,
		apitest.Scenario{Name: "by type and version", As: apitest.Admin, Do: "PUT /api/schema",
			Body:   strings.Replace(body, `"version":1`, `"version":1,"name":"Newer"`, 1),
			Status: 200,
			Has:    map[string]any{"id": id, "name": "Newer", "customerRef": nil}},
		apitest.Scenario{Name: "read", As: apitest.Admin, Do: "GET /api/schema/PRODUCT/1",
			Status: 200, Has: map[string]any{"id": id}},
		apitest.Scenario{Name: "unknown version", As: apitest.Admin,
			Do: "GET /api/schema/PRODUCT/2", Status: 404, Code: "schema_not_found"},
		apitest.Scenario{Name: "unknown type", As: apitest.Admin, Do: "GET /api/schema/THING/2",
			Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "list", As: apitest.Admin, Do: "GET /api/schema", Status: 200,
			Has: map[string]any{"0.id": id}, Lacks: []string{"1"}},
		apitest.Scenario{Name: "customers read it", As: apitest.Other,
			Do: "GET /api/schema/get/" + id, Status: 200},
		apitest.Scenario{Name: "and do not have it", As: apitest.Other,
			Do: "GET /api/schema/customer", Status: 200, Has: map[string]any{"": []any{}}},
		apitest.Scenario{Name: "nor delete it", As: apitest.Other,
			Do: "POST /api/schema/customer/" + id + "/preview-delete", Status: 404,
			Code: "schema_not_found"},
		apitest.Scenario{Name: "items", As: apitest.Reader, Do: "GET /api/schema/items/existing",
			Status: 200,
			Has:    map[string]any{"0": map[string]any{"name": "name", "type": "string"}}},
	)
}

// newSchema makes a schema for alice.
func newSchema(t *testing.T, s *apitest.Server) string {
	t.Helper()
	return s.Call(t, apitest.Scenario{As: apitest.User, Do: "PUT /api/schema/customer",
		Header: key(s.IDs.New().String()), Body: body}).Text("id")
}

func TestDelete(t *testing.T) {
	s := apitest.Start(t)
	id := newSchema(t, s)
	at := "/api/schema/customer/" + id
	preview := func() string {
		return s.Call(t, apitest.Scenario{As: apitest.User,
			Do: "POST " + at + "/preview-delete"}).Text("token")
	}
	remove := func(name, as, k, token string, header map[string]string) apitest.Scenario {
		sc := apitest.Scenario{Name: name, As: as, Do: "DELETE " + at, Header: key(k)}
		if token != "" {
			sc.Do += "?token=" + token
		}
		for n, v := range header {
			sc.Header[n] = v
		}
		return sc
	}
	with := func(sc apitest.Scenario, status int, code string) apitest.Scenario {
		sc.Status, sc.Code = status, code
		return sc
	}
	s.Run(t,
		apitest.Scenario{Name: "preview", As: apitest.User, Do: "POST " + at + "/preview-delete",
			Status: 200, Has: map[string]any{
				"opName": "svc_delete_customer_schema", "targetEntityId": id,
				"previewSummary.entityName":    "A product",
				"previewSummary.entityType":    "SCHEMA",
				"previewSummary.cascadeCounts": map[string]any{"scrapers": 0},
				"previewSummary.warnings":      []any{"This cannot be undone."}}},
		apitest.Scenario{Name: "no idempotency key", As: apitest.User, Do: "DELETE " + at,
			Status: 400, Code: "idempotency_key_required"},
		with(remove("read key", apitest.Reader, "r", "", nil), 403, "scope_rejected"),
		with(remove("another customer", apitest.Other, "o", "", nil), 404, "schema_not_found"),
		with(remove("wrong token", apitest.User, "w", "made-up", nil), 409, "PREVIEW_REQUIRED"),
		apitest.Scenario{Name: "malformed id", As: apitest.User,
			Do: "DELETE /api/schema/customer/x", Header: key("m"), Status: 400, Code: "invalid_id"},
	)
	token := preview()
	s.Clock.Advance(5 * time.Minute)
	s.Run(t, with(remove("too late", apitest.User, "l", token, nil), 409, "PREVIEW_REQUIRED"))
	token = preview()
	group := s.NewGroup(t, "alice", "g")
	scraper := func(name string) ids.ID {
		put := client.PutScraper{Create: true, ID: s.IDs.New(), Customer: "alice", Group: group,
			Spec: model.Scraper{Name: name,
				Type: model.AIConf, Schema: &model.SchemaRef{ID: id},
				SourceConfig: model.SourceConfig{URL: "http://shop.test/"}}}
		s.Client.Must(t, put)
		return put.ID
	}
	user := scraper("user")
	s.Run(t, with(remove("drift", apitest.User, "d", token, nil), 409, "CASCADE_COUNT_DRIFT"),
		apitest.Scenario{Name: "warns", As: apitest.LLM, Do: "POST " + at + "/preview-delete",
			Status: 200, Has: map[string]any{
				"previewSummary.cascadeCounts.scrapers": 1,
				"previewSummary.warnings.1": "Runs of 1 scraper with this schema will " +
					"fail."}})
	token = preview()
	done := with(remove("by header", apitest.User, "k", "",
		map[string]string{"X-Preview-Token": token}), 204, "")
	replay := done
	replay.Name, replay.Headers = "replay", map[string]string{"Idempotency-Replayed": "true"}
	s.Run(t, done, replay,
		with(remove("gone", apitest.User, "g", token, nil), 404, "schema_not_found"),
		apitest.Scenario{Name: "its scraper cannot run", As: apitest.User,
			Do: "POST /api/scraper/" + user.String() + "/run", Status: 400,
			Code: "schema_missing"},
		apitest.Scenario{Name: "and says so", As: apitest.User,
			Do: "GET /api/scraper/v2/" + user.String(), Status: 200,
			Has: map[string]any{"configValid": false, "schema.id": id, "schema.content": nil}},
	)
}

// TestScrapersOfASchema: AI_CONF scrapers can be saved only with a schema that the customer may
// read.
func TestScrapersOfASchema(t *testing.T) {
	s := apitest.Start(t)
	own, group := newSchema(t, s), s.NewGroup(t, "alice", "g")
	foreign := s.Call(t, apitest.Scenario{As: apitest.Other, Do: "PUT /api/schema/customer",
		Header: key("f"), Body: body}).Text("id")
	global := s.Call(t, apitest.Scenario{As: apitest.Admin, Do: "PUT /api/schema",
		Body: body}).Text("id")
	put := func(name, kind, schema, more string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.User, Do: "PUT /api/scraper/v2",
			Header: key(name), Status: 200,
			Body: `{"name":"` + name + `","groupRef":"` + group.String() + `","type":"` + kind +
				`","sourceConfig":{"url":"http://shop.test/"}` +
				schema + more + `}`}
	}
	ref := func(id string) string { return `,"schema":{"id":"` + id + `"}` }
	refused := func(sc apitest.Scenario, field string) apitest.Scenario {
		sc.Status, sc.Code, sc.Has = 400, "schema_validation_failed",
			map[string]any{"errors.0.field": field}
		return sc
	}
	mine := put("own", "AI_CONF", ref(own), "")
	mine.Has = map[string]any{"configValid": true, "schema.id": own,
		"schema.content.title": "A product", "type": "AI_CONF"}
	s.Run(t, mine, put("global", "AI_CONF", ref(global), ""),
		put("json-ld", "APPLICATION_LD_JSON", "", ""),
		refused(put("none", "AI_CONF", "", ""), "schema"),
		refused(put("foreign", "AI_CONF", ref(foreign), ""), "schema.id"),
		refused(put("unknown", "AI_CONF", ref(missing), ""), "schema.id"),
		refused(put("malformed", "AI_CONF", ref("x"), ""), "schema.id"),
		refused(put("stray", "APPLICATION_LD_JSON", ref(own), ""), "schema"),
		refused(put("fields", "AI_CONF", ref(own),
			`,"itemsConfig":[{"name":"a","selector":"b","kind":"TEXT"}]`), "itemsConfig"),
	)
}

func TestListByName(t *testing.T) {
	s := apitest.Start(t)
	for i, name := range apitest.Names() {
		s.Clock.Advance(time.Second)
		s.Call(t, apitest.Scenario{As: apitest.User, Do: "PUT /api/schema/customer",
			Header: key(string(rune('a' + i))),
			Body:   `{"version":1,"type":"PRODUCT","name":"` + name + `","content":` + product + `}`})
	}
	s.CheckNames(t, "/api/schema/customer")
}
