package data_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

func TestGroup(t *testing.T) {
	r := start(t)
	path := "GET /api/scraper/data/group/" + r.group.String()
	rows := func(query, want string, total int) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.Reader, Do: path + query, Status: 200, Has: map[string]any{"totalElements": total},
			Check: func(t *testing.T, a apitest.Answer) {
				if got := numbers(a, "content"); got != want {
					t.Errorf("rows %s, want %s", got, want)
				}
			}}
	}
	refused := func(query, code, field string) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.User, Do: path + query, Status: 400, Code: code, Has: map[string]any{"errors.0.field": field}}
	}
	shop := "scraperId=" + r.shop.String()
	r.Run(t,
		rows("", "87654321", 8), rows("?size=3", "876", 8), rows("?size=3&page=2", "21", 8), rows("?page=7", "", 8),
		rows("?sort=scrapedAt", "12345678", 8), rows("?sort=scrapedAt,desc", "87654321", 8), rows("?sort=name:desc&sort=n,desc", "86542173", 8),
		rows("?"+shop, "876321", 6), rows("?isLastRun=true", "87654", 5), rows("?isLastRun=true&"+shop, "876", 3),
		rows("?"+filters(`{"n":{"$gt":2,"lt":7}}`)+"&sort=n", "3456", 4),
		rows("?"+filters(`{"$or":[{"n":1},{"name":"h"}]}`)+"&isLastRun=true", "8", 1),
		rows("?"+filters(`{}`)+"&categories=", "87654321", 8),
		apitest.Scenario{Name: "envelope", As: apitest.User, Do: path + "?size=5000&page=1", Status: 200,
			Has: map[string]any{"content": []any{}, "totalElements": 8, "totalPages": 1, "size": 1000, "number": 1}},
		refused("?"+filters(`{"n":{"$near":1}}`), "invalid_filter", "filters.n.$near"), refused("?filters=x", "invalid_filter", "filters"),
		refused("?sort=name,up", "invalid_sort", "sort"), refused("?sort=", "invalid_sort", "sort"),
		refused("?sort=a%00b", "invalid_sort", "sort"), refused("?sort=a%22b,desc", "invalid_sort", "sort"),
		refused("?sort=a&sort=a&sort=a&sort=a&sort=a&sort=a", "invalid_sort", "sort"),
		refused("?page=-1", "invalid_page", "page"), refused("?size=0", "invalid_page", "size"),
		refused("?page=101&size=1000", "invalid_page", "page"), refused("?categories=c", "invalid_request", "categories"),
		refused("?scraperId=x", "invalid_id", "scraperId"), refused("?isLatsRun=true", "unknown_parameter", "isLatsRun"),
		apitest.Scenario{Name: "unknown scraper", As: apitest.User, Do: path + "?scraperId=" + unknown, Status: 404, Code: "scraper_not_found"},
		apitest.Scenario{Name: "unknown group", As: apitest.User, Do: "GET /api/scraper/data/group/" + unknown, Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "foreign group", As: apitest.Other, Do: path, Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "malformed group", As: apitest.User, Do: "GET /api/scraper/data/group/x", Status: 400, Code: "invalid_id"},
	)
}
