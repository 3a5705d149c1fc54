package scrapers_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

func TestRetention(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	id := s.Call(t, apitest.Scenario{As: apitest.User, Do: put, Header: key("1"),
		Body: body(group)}).Text("id")
	path := "PUT /api/scraper/" + id + "/retention"
	count := func(as, name, body string, status int, code string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: as, Do: path, Body: body, Status: status,
			Code: code}
	}
	three := count(apitest.User, "three", `{"retentionCount":3}`, 200, "")
	three.Has = map[string]any{"id": id, "config.retentionCount": 3, "effectiveRetentionCount": 3}
	none := count(apitest.User, "none", `{"retentionCount":null}`, 200, "")
	none.Has = map[string]any{"effectiveRetentionCount": nil}
	s.Run(t,
		count(apitest.Reader, "reader", `{"retentionCount":1}`, 403, "scope_rejected"),
		count(apitest.Other, "foreign", `{"retentionCount":1}`, 404, "scraper_not_found"),
		count(apitest.User, "below 1", `{"retentionCount":0}`, 400, "invalid_request"),
		count(apitest.User, "no number", `{"retentionCount":1.5}`, 400, "invalid_request"),
		count(apitest.User, "nothing", `{}`, 400, "invalid_request"),
		count(apitest.User, "misspelt", `{"retentionCount":1,"x":1}`, 400, "unknown_field"),
		apitest.Scenario{Name: "unknown", As: apitest.User,
			Do:   "PUT /api/scraper/0123456789abcdef01234567/retention",
			Body: `{"retentionCount":1}`, Status: 404, Code: "scraper_not_found"},
		three,
		apitest.Scenario{Name: "it stays", As: apitest.Reader, Do: "GET /api/scraper/" + id,
			Status: 200, Has: map[string]any{"config.retentionCount": 3,
				"effectiveRetentionCount": 3}},
		apitest.Scenario{Name: "the group's count wins", As: apitest.User,
			Do: "PUT /api/scraper/group", Header: key("2"), Status: 200,
			Body: `{"id":"` + group.String() + `","retentionCount":5}`,
			Has:  map[string]any{"retentionCount": 5}},
		apitest.Scenario{Name: "it is the effective one", As: apitest.Reader,
			Do: "GET /api/scraper/v2/" + id, Status: 200,
			Has: map[string]any{"config.retentionCount": 3, "effectiveRetentionCount": 5}},
		apitest.Scenario{Name: "what a group's update does not name stays", As: apitest.User,
			Do: "PUT /api/scraper/group", Header: key("3"), Status: 200,
			Body: `{"id":"` + group.String() + `","name":"h"}`,
			Has:  map[string]any{"retentionCount": 5}},
		apitest.Scenario{Name: "below 1 of a group", As: apitest.User,
			Do: "PUT /api/scraper/group", Header: key("4"), Status: 400, Code: "invalid_request",
			Body: `{"id":"` + group.String() + `","retentionCount":0}`,
			Has: map[string]any{"errors.0.field": "retentionCount",
				"errors.0.message": "retentionCount: must be a whole number from 1 to 9007199254740991"}},
		apitest.Scenario{Name: "more than readers of JSON read exactly", As: apitest.User,
			Do: "PUT /api/scraper/group", Header: key("4a"), Status: 400, Code: "invalid_request",
			Body: `{"id":"` + group.String() + `","retentionCount":9007199254740992}`,
			Has:  map[string]any{"errors.0.field": "retentionCount"}},
		apitest.Scenario{Name: "null clears a group's", As: apitest.User,
			Do: "PUT /api/scraper/group", Header: key("5"), Status: 200,
			Body: `{"id":"` + group.String() + `","retentionCount":null}`,
			Has:  map[string]any{"retentionCount": nil}},
		none,
		apitest.Scenario{Name: "with the full body", As: apitest.User, Do: put, Header: key("6"),
			Status: 200, Body: body(group, "id", id, "config", source(`{"retentionCount":2}`)),
			Has: map[string]any{"config.retentionCount": 2, "effectiveRetentionCount": 2}},
	)
}
