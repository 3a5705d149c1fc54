package data_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/rowstore"
)

// save saves a category through the API, under a new key, and returns its id.
func (r *rig) save(t *testing.T, name, filters string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "filters": json.RawMessage(filters)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Call(t, apitest.Scenario{As: apitest.User, Status: 200, Body: string(body),
		Do:     "PUT /api/scraper/data/group/" + r.group.String() + "/category",
		Header: map[string]string{"Idempotency-Key": r.IDs.New().String()}}).Text("id")
}

// Categories that are refused, and the replacement of one with the same name.
func TestPutCategory(t *testing.T) { onStores(t, putCategories) }

func putCategories(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	path := "PUT /api/scraper/data/group/" + r.group.String() + "/category"
	key := func(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }
	refused := func(name, body, code, field string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.User, Do: path, Header: key(name),
			Body: body, Status: 400, Code: code, Has: map[string]any{"errors.0.field": field}}
	}
	const cheap = `{"name":"cheap","filters":{"n": {"$lt": 3}}}`
	long := func(bytes int) string { // its filter has the given size
		return `{"name":"x","filters":{"n": "` + strings.Repeat("x", bytes-len(`{"n":""}`)) + `"}}`
	}
	r.Run(t,
		apitest.Scenario{Name: "no key", As: apitest.User, Do: path, Body: cheap, Status: 400,
			Code: "idempotency_key_required"},
		apitest.Scenario{Name: "reader", As: apitest.Reader, Do: path, Body: cheap,
			Header: key("r"), Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path, Body: cheap,
			Header: key("f"), Status: 400, Code: "not_found"},
		refused("unnamed", `{"filters":{}}`, "invalid_request", "name"),
		refused("spaced", `{"name":" a","filters":{}}`, "invalid_request", "name"),
		refused("named like an id", `{"name":"68e5b1c2d3f4a5b6c7d8e9f0","filters":{}}`,
			"invalid_request", "name"),
		refused("unfiltered", `{"name":"a"}`, "invalid_request", "filters"),
		refused("null", `{"name":"a","filters":null}`, "invalid_request", "filters"),
		refused("operator", `{"name":"a","filters":{"n":{"$near":1}}}`, "invalid_filter",
			"filters.n.$near"),
		refused("unknown", `{"name":"a","filters":{},"filter":{}}`, "unknown_field", "filter"),
		refused("too long", long(16<<10+1), "invalid_filter", "filters"),
		apitest.Scenario{Name: "long", As: apitest.User, Do: path, Header: key("l"),
			Body: long(16 << 10), Status: 200},
		apitest.Scenario{Name: "saved", As: apitest.User, Do: path, Header: key("1"),
			Body: cheap, Status: 200, Has: map[string]any{"name": "cheap",
				"filters": map[string]any{"n": map[string]any{"$lt": 3}}}},
		apitest.Scenario{Name: "again under its key", As: apitest.User, Do: path,
			Header: key("1"), Body: cheap, Status: 200,
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
	)
	id := r.Client.View().CategoryByName(r.group, "cheap").ID.String()
	if again := r.save(t, "cheap", `{"n":1}`); again != id {
		t.Errorf("saved again it has the id %s, not %s", again, id)
	}
	list := "GET /api/scraper/data/group/" + r.group.String() + "/categories"
	r.Run(t,
		apitest.Scenario{Name: "list", As: apitest.Reader, Do: list, Status: 200,
			Has: map[string]any{"0.id": id, "0.name": "cheap",
				"0.filters": map[string]any{"n": 1}, "1.name": "x"}},
		apitest.Scenario{Name: "foreign list", As: apitest.Other, Do: list, Status: 400,
			Code: "not_found"},
	)
}

// Reads on all routes accept categories by id and by name, alone or with a filter.
func TestReadByCategory(t *testing.T) { onStores(t, readByCategory) }

func readByCategory(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	low, high := r.save(t, "low", `{"n":{"lt":3}}`), r.save(t, "high", `{"n":{"gte":7}}`)
	comma, all := r.save(t, "five, six", `{"n":{"in":[5,6]}}`), r.save(t, "all", `{}`)
	group := r.group.String()
	name := url.QueryEscape
	for query, want := range map[string]string{
		"categories=low":                                        "12",
		"categories=" + low + "&categories=high":                "1278",
		"categories=low," + high + ",":                          "1278",
		"categories=" + name("low, high, low"):                  "1278",
		"categories=" + name("five, six"):                       "56",
		"categories=low," + comma:                               "1256",
		"categories=low&categories=" + name("five, six"):        "1256",
		"categories=" + name(`low,"five, six"`):                 "1256",
		"categories=low,high&" + filters(`{"n":{"gt":1}}`):      "278",
		"categories=low,all&" + filters(`{"n":{"gt":5}}`):       "678",
		"categories=" + all + "&" + filters(`{"n":{"gt":6}}`):   "78",
		"categories=&categories=&" + filters(`{"n":{"lt":2}}`):  "1",
		"categories=high&isLastRun=true&" + filters(`{"n":7}`):  "7",
		"categories=low&scraperId=" + r.other.String():          "",
		"categories=low&limit=1&scraperId=" + r.shop.String():   "12",
		"categories=high&limit=1&jobId=" + r.jobs[2].String():   "78",
		"categories=high&fields=n&scraperId=" + r.shop.String(): "78",
	} {
		if !strings.Contains(query, "limit") && !strings.Contains(query, "fields") {
			for _, route := range []string{"", "/client"} {
				a := r.Call(t, apitest.Scenario{As: apitest.Reader, Status: 200,
					Do: "GET /api/scraper/data/group/" + group + route + "?sort=n&" + query})
				if got := numbers(a, "content"); got != want {
					t.Errorf("by page %s%s: %s, want %s", route, query, got, want)
				}
			}
		}
		got, more, cursor := "", "true", ""
		for more == "true" {
			a := r.Call(t, apitest.Scenario{As: apitest.Reader, Status: 200,
				Do: readPath + "?groupId=" + group + "&" + query + "&cursor=" + cursor})
			got, more, cursor = got+numbers(a, "items"), a.Text("hasMore"), a.Text("nextCursor")
		}
		if got != want {
			t.Errorf("by cursor %s: %s, want %s", query, got, want)
		}
	}
	download := "GET /api/scraper/data/group/" + group + "/download?format=csv&categories="
	for query, want := range map[string]string{"high,low": "78",
		name("five, six") + "&" + filters(`{"n":{"lt":6}}`): "5"} {
		a := r.Call(t, apitest.Scenario{As: apitest.Reader, Status: 200, Do: download + query})
		if got := column(t, "csv", a.Body); !strings.HasSuffix(got, ": "+want) {
			t.Errorf("download %s: %s, want %s", query, got, want)
		}
	}
}

// Reads with bad categories are refused. A changed category invalidates its cursors.
func TestReadByCategoryIsRefused(t *testing.T) {
	r := start(t)
	r.save(t, "shop's", `{"n":{"lt":9}}`)
	var many []string
	for n := range 21 {
		name := fmt.Sprint("c", n)
		r.save(t, name, `{"n":1}`)
		many = append(many, name)
	}
	elsewhere := r.NewGroup(t, "alice", "elsewhere")
	foreign := client.PutCategory{ID: r.IDs.New(), Customer: "alice", Group: elsewhere,
		Name: "elsewhere", Filters: []byte(`{}`)}
	r.Client.Must(t, foreign)
	group := r.group.String()
	for _, route := range []string{"/api/scraper/data/group/" + group + "?",
		"/api/scraper/data/group/" + group + "/client?",
		"/api/scraper/data/group/" + group + "/download?",
		"/api/scraper/data?groupId=" + group + "&", "/api/scraper/data/export?groupId=" + group +
			"&"} {
		for value, code := range map[string]string{"elsewhere": "not_found",
			foreign.ID.String(): "not_found", "c1,none": "not_found",
			strings.Join(many, ","): "invalid_request"} {
			r.Run(t, apitest.Scenario{Name: route + value, As: apitest.Reader,
				Do: "GET " + route + "categories=" + value, Status: 400, Code: code,
				Has: map[string]any{"errors.0.field": "categories"}})
		}
	}
	read := readPath + "?limit=2&groupId=" + group + "&categories=shop%27s"
	cursor := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: read, Status: 200}).
		Text("nextCursor")
	next := apitest.Scenario{Name: "next", As: apitest.Reader, Do: read + "&cursor=" + cursor,
		Status: 200}
	r.Run(t, next)
	r.save(t, "shop's", `{"n":{"lt":8}}`)
	next.Status, next.Code = 400, "invalid_cursor"
	r.Run(t, next)
}

// Two calls delete a category. Reads that name it are then refused.
func TestDeleteCategory(t *testing.T) {
	r := start(t)
	id := r.save(t, "low", `{"n":{"lt":3}}`)
	path := "/api/scraper/data/group/" + r.group.String() + "/category/" + id
	key := func(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }
	preview, remove := "POST "+path+"/preview-delete", "DELETE "+path
	r.Run(t,
		apitest.Scenario{Name: "reader", As: apitest.Reader, Do: preview, Status: 403,
			Code: "scope_rejected"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: preview, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "unknown", As: apitest.User, Status: 400, Code: "not_found",
			Do: "POST /api/scraper/data/group/" + r.group.String() + "/category/" + unknown +
				"/preview-delete"},
		apitest.Scenario{Name: "no preview", As: apitest.User, Do: remove, Header: key("1"),
			Status: 409, Code: "PREVIEW_REQUIRED"},
		apitest.Scenario{Name: "preview", As: apitest.User, Do: preview, Status: 200,
			Has: map[string]any{"opName": client.OpDeleteCategory, "targetEntityId": id,
				"previewSummary.entityName": "low", "previewSummary.entityType": "CATEGORY",
				"previewSummary.cascadeCounts": map[string]any{}}},
		apitest.Scenario{Name: "foreign delete", As: apitest.Other, Do: remove,
			Header: key("2"), Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "delete", As: apitest.User, Do: remove, Header: key("3"),
			Status: 204},
		apitest.Scenario{Name: "again under its key", As: apitest.User, Do: remove,
			Header: key("3"), Status: 204,
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "once more", As: apitest.User, Do: remove, Header: key("4"),
			Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "a read by it", As: apitest.User, Status: 400,
			Do:   "GET /api/scraper/data/group/" + r.group.String() + "?categories=low",
			Code: "not_found"},
	)
}
