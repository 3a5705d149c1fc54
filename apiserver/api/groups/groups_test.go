package groups_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

func key(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }

func TestPut(t *testing.T) {
	s := apitest.Start(t)
	const path = "PUT /api/scraper/group"
	s.Run(t,
		apitest.Scenario{Name: "no idempotency key", As: apitest.User, Do: path,
			Body: `{"name":"a"}`, Status: 400,
			Code: "idempotency_key_required"},
		apitest.Scenario{Name: "blank idempotency key", As: apitest.User, Do: path,
			Header: key(" "), Body: `{"name":"a"}`,
			Status: 400, Code: "idempotency_key_required"},
		apitest.Scenario{Name: "read key", As: apitest.Reader, Do: path, Header: key("1"),
			Body: `{"name":"a"}`, Status: 403,
			Code: "scope_rejected"},
		apitest.Scenario{Name: "invalid", As: apitest.User, Do: path, Header: key("1"),
			Body: `{"dataTable":"A-b","startType":"HOURLY","colour":"red"}`, Status: 400,
			Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "dataTable", "errors.1.field": "startType",
				"errors.2.field": "colour", "errors.2.code": "unknown_field"}},
		apitest.Scenario{Name: "no name", As: apitest.User, Do: path, Header: key("1"),
			Body: `{"startType":"NONE"}`, Status: 400,
			Code: "invalid_request", Has: map[string]any{"errors.0.field": "name"}},
		apitest.Scenario{Name: "malformed id", As: apitest.User, Do: path, Header: key("1"),
			Body:   `{"id":"x","name":"a"}`,
			Status: 400, Code: "invalid_id"},
		apitest.Scenario{Name: "blank name", As: apitest.User, Do: path, Header: key("1"),
			Body:   `{"name":" "}`,
			Status: 400, Code: "invalid_request"},
	)
	create := apitest.Scenario{Name: "create", As: apitest.User, Do: path, Header: key("2"),
		Body: `{"name":" Éxtra Shoes! 2 ","customerRef":"bob"}`, Status: 200,
		Has: map[string]any{"dataTable": "xtra_shoes_2", "startType": "MANUAL",
			"customerRef": "alice", "scraperCount": 0},
		Headers: map[string]string{"Idempotency-Replayed": ""}}
	id := s.Call(t, create).Text("id")
	again := create
	again.Name, again.Has = "replay", map[string]any{"id": id}
	again.Headers = map[string]string{"Idempotency-Replayed": "true"}
	other := create
	other.Name, other.Body, other.Status, other.Code = "another body", `{"name":"b"}`, 422,
		"idempotency_key_reused"
	other.Has = nil
	namesake := s.Call(t, apitest.Scenario{Name: "another group of the name", As: apitest.LLM,
		Do: path, Header: key("3"), Body: create.Body, Status: 200,
		Has: map[string]any{"name": " Éxtra Shoes! 2 ", "dataTable": "xtra_shoes_2"}}).Text("id")
	if namesake == id {
		t.Error("a group of a name that another one has is the other one")
	}
	s.Run(t, again, other,
		apitest.Scenario{Name: "update", As: apitest.User, Do: path, Header: key("4"),
			Body: `{"id":"` + id +
				`","name":"shoes","dataTable":"t","startType":"DAILY","shouldMatchProducts":true}`,
			Status: 200,
			Has: map[string]any{"id": id, "name": "shoes", "dataTable": "t", "startType": "DAILY",
				"shouldMatchProducts": true}},
	)
	s.Run(t,
		apitest.Scenario{Name: "what is not named stays", As: apitest.User, Do: path,
			Header: key("5"), Body: `{"id":"` + id + `","startType":"NONE"}`,
			Status: 200, Has: map[string]any{"id": id, "name": "shoes", "dataTable": "t",
				"startType": "NONE", "shouldMatchProducts": true}},
		apitest.Scenario{Name: "false is named", As: apitest.User, Do: path, Header: key("6"),
			Body:   `{"id":"` + id + `","shouldMatchProducts":false}`,
			Status: 200, Has: map[string]any{"name": "shoes", "startType": "NONE",
				"shouldMatchProducts": false}},
		apitest.Scenario{Name: "blank name of a known one", As: apitest.User, Do: path,
			Header: key("7"), Body: `{"id":"` + id + `","name":" "}`,
			Status: 400, Code: "invalid_request"},
	)
	update := func(as, id string) apitest.Answer {
		return s.Call(t, apitest.Scenario{As: as, Do: path,
			Header: map[string]string{"Idempotency-Key": as, "X-Request-Id": "r"},
			Body:   `{"id":"` + id + `","name":"x"}`})
	}
	foreign, missing := update(apitest.Other, id), update(apitest.User, "0123456789abcdef01234567")
	if foreign.Status != 400 || string(foreign.Body) != string(missing.Body) {
		t.Errorf("foreign %d %s, missing %d %s", foreign.Status, foreign.Body, missing.Status,
			missing.Body)
	}
}

func TestList(t *testing.T) {
	s := apitest.Start(t)
	for _, name := range []string{"first", "second"} {
		s.Call(t, apitest.Scenario{As: apitest.User, Do: "PUT /api/scraper/group",
			Header: key(name), Body: `{"name":"` + name + `"}`})
		s.Clock.Advance(time.Second)
	}
	s.Run(t,
		apitest.Scenario{Name: "own", As: apitest.Reader, Do: "GET /api/scraper/group/list",
			Status: 200,
			Lacks:  []string{"2"}, Has: map[string]any{"0.name": "first", "1.name": "second",
				"1.createdAt": "2026-01-02T03:04:06.000Z"}},
		apitest.Scenario{Name: "nobody else's", As: apitest.Other,
			Do: "GET /api/scraper/group/list", Status: 200,
			Has: map[string]any{"": []any{}}},
	)
}

// Alerts that a body leaves out stay, and impossible ones are refused.
func TestChangeAlerts(t *testing.T) {
	s := apitest.Start(t)
	put := func(name, body string, status int, has map[string]any) apitest.Answer {
		t.Helper()
		sc := apitest.Scenario{Name: name, As: apitest.User, Do: "PUT /api/scraper/group",
			Header: key(name), Body: body, Status: status, Has: has}
		if status == 400 {
			sc.Code = "invalid_request"
		}
		return s.Call(t, sc)
	}
	made := put("made", `{"name":"a"}`, 200,
		map[string]any{"changeAlerts": []any{}, "changeAlertsKey": []any{}})
	id := `{"id":"` + made.Text("id") + `",`
	wants := map[string]any{"changeAlerts": []any{"ADDED", "CHANGED"},
		"changeAlertsKey": []any{"a", "b", "c", "d", "e"}}
	put("on", id+`"changeAlerts":["ADDED","CHANGED"],"changeAlertsKey":["a","b","c","d","e"]}`, 200,
		wants)
	put("not named", id+`"name":"b"}`, 200, wants)
	for name, c := range map[string]struct{ body, field string }{
		"no kind":        {`"changeAlerts":["MOVED"]}`, "changeAlerts[0]"},
		"twice":          {`"changeAlerts":["ADDED","ADDED"]}`, "changeAlerts[1]"},
		"six members":    {`"changeAlertsKey":["a","b","c","d","e","f"]}`, "changeAlertsKey"},
		"no field":       {`"changeAlertsKey":["\""]}`, "changeAlertsKey"},
		"one run's rows": {`"retentionCount":1}`, "changeAlerts"},
		"a key for none": {`"changeAlerts":[],"changeAlertsKey":["a"]}`, "changeAlertsKey"},
		"a name too long": {`"changeAlertsKey":["` + strings.Repeat("k", 4097) + `"]}`,
			"changeAlertsKey[0]"},
	} {
		put(name, id+c.body, 400, map[string]any{"errors.0.field": c.field})
	}
	put("two runs' rows", id+`"retentionCount":2}`, 200, wants)
	put("off", id+`"changeAlerts":[]}`, 200,
		map[string]any{"changeAlerts": []any{}, "changeAlertsKey": []any{}})
}

// Concurrent requests with different members of a group do not undo each other.
func TestPutsAtTheSameTime(t *testing.T) {
	s := apitest.Start(t)
	id := s.NewGroup(t, "alice", "g").String()
	members := map[string]string{"name": `"new"`, "dataTable": `"t"`, "startType": `"NONE"`,
		"shouldMatchProducts": "true", "retentionCount": "3", "scheduleTimezone": `"Europe/Paris"`,
		"quarantine": "true", "changeAlerts": `["ADDED"]`}
	var all sync.WaitGroup
	for member, value := range members {
		all.Go(func() {
			s.Run(t, apitest.Scenario{Name: member, As: apitest.User, Do: "PUT /api/scraper/group",
				Header: key(member), Body: fmt.Sprintf(`{"id":%q,%q:%s}`, id, member, value),
				Status: 200})
		})
	}
	all.Wait()
	has := map[string]any{}
	for member, value := range members {
		var want any
		if err := json.Unmarshal([]byte(value), &want); err != nil {
			t.Fatal(err)
		}
		has["0."+member] = want
	}
	s.Run(t, apitest.Scenario{Name: "all stand", As: apitest.Reader,
		Do: "GET /api/scraper/group/list", Status: 200, Has: has})
}

func TestListByName(t *testing.T) {
	s := apitest.Start(t)
	for _, name := range apitest.Names() {
		s.Clock.Advance(time.Second)
		s.NewGroup(t, "alice", name)
	}
	s.NewGroup(t, "bob", "of bob")
	s.CheckNames(t, "/api/scraper/group/list")
}

// Alice lists the groups that carol shares with her. Their order is not that of their ids.
func TestListSharedByName(t *testing.T) {
	s := apitest.Start(t)
	s.Client.Must(t, client.OpenCustomer{Customer: "carol", Entry: s.IDs.New()})
	s.Client.Must(t, client.SignUp{Customer: "alice", Email: "alice@x.test"})
	for i, name := range apitest.Names() {
		s.Clock.Advance(time.Second)
		group := ids.ID{byte(9 - i)}
		s.Client.Must(t, client.PutGroup{Create: true, ID: group, Customer: "carol", Name: name,
			DataTable: "t", StartType: "MANUAL"})
		s.Client.Must(t, client.ShareGroup{Customer: "carol", Group: group,
			Emails: []string{"alice@x.test"}})
	}
	s.CheckNames(t, "/api/scraper/shared/group/list")
}
