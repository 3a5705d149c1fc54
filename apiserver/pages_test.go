package apiserver_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// TestPagesAreClamped: each list with pages counts a greater size as its most (decision 19). A page
// out of reach is refused, and the answer names the list's cursor route, if there is one.
func TestPagesAreClamped(t *testing.T) {
	const beyond = "9007199254740991" // the greatest integer
	var document struct {
		Paths map[string]struct {
			Get struct{ Parameters []struct{ Name string } }
		}
	}
	text, err := os.ReadFile("testdata/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		t.Fatal(err)
	}
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store))
	th := share(t, s, store)
	hook := "webhooks/" + owned(t, s)["{webhook}"]
	ask := func(path, query string, status int, has map[string]any) (detail string) {
		sc := apitest.Scenario{Name: path + query, As: apitest.User, Status: status, Has: has,
			Do: "GET " + th.fill(nameIDs(strings.Replace(path, "webhooks/{id}", hook, 1))) + query}
		if strings.HasPrefix(path, "/api/admin/") {
			sc.As = apitest.Admin
		}
		if status == 400 {
			sc.Code = "invalid_page"
		}
		sc.Check = func(_ *testing.T, a apitest.Answer) { detail = a.Text("detail") }
		s.Run(t, sc)
		return detail
	}
	seen := 0
	for path, methods := range document.Paths {
		cursor, most := "", 200
		if _, known := document.Paths[path+"/all"]; known {
			cursor = path + "/all"
		}
		if strings.HasPrefix(path, "/api/scraper/data/group/{id}") {
			cursor, most = "/api/scraper/data?groupId="+th.group.String(), 1_000
		}
		for _, p := range methods.Get.Parameters {
			if p.Name != "size" {
				continue
			}
			seen++
			switch path {
			case "/api/scraper/site/{siteId}/links": // page is clamped, too (specification 4.7)
				ask(path, "?page="+beyond+"&size="+beyond, 200, map[string]any{"size": 1_000})
				continue
			case "/api/wallet/transactions": // size is refused (specification 4.11)
				ask(path, "?size=101", 400, map[string]any{"errors.0.field": "size"})
			default:
				ask(path, "?size="+beyond, 200, map[string]any{"size": most})
			}
			for _, query := range []string{"?page=" + beyond, "?page=100001&size=1"} {
				said := ask(path, query, 400, map[string]any{"errors.0.field": "page"})
				if !strings.Contains(said, cursor) {
					t.Errorf("%s%s does not name %s: %s", path, query, cursor, said)
				}
			}
		}
	}
	if seen < 13 {
		t.Errorf("only %d lists are found", seen)
	}
}
