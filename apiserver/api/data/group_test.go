package data_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/rowstore"
)

func TestGroup(t *testing.T) { onStores(t, readGroups) }

func readGroups(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	path := "GET /api/scraper/data/group/" + r.group.String()
	rows := func(query, want string, total int) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.Reader, Do: path + query, Status: 200,
			Has: map[string]any{"totalElements": total},
			Check: func(t *testing.T, a apitest.Answer) {
				if got := numbers(a, "content"); got != want {
					t.Errorf("rows %s, want %s", got, want)
				}
			}}
	}
	refused := func(query, code, field string) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.User, Do: path + query, Status: 400,
			Code: code, Has: map[string]any{"errors.0.field": field}}
	}
	shop := "scraperId=" + r.shop.String()
	r.Run(t,
		rows("", "87654321", 8), rows("?size=3", "876", 8), rows("?size=3&page=2", "21", 8),
		rows("?page=7", "", 8),
		rows("?sort=scrapedAt", "12345678", 8), rows("?sort=scrapedAt,desc", "87654321", 8),
		rows("?sort=name:desc&sort=n,desc", "86542173", 8),
		rows("?"+shop, "876321", 6), rows("?isLastRun=true", "87654", 5),
		rows("?isLastRun=true&"+shop, "876", 3),
		rows("?"+filters(`{"n":{"$gt":2,"lt":7}}`)+"&sort=n", "3456", 4),
		rows("?"+filters(`{"$or":[{"n":1},{"name":"h"}]}`)+"&isLastRun=true", "8", 1),
		rows("?"+filters(`{}`)+"&categories=", "87654321", 8),
		apitest.Scenario{Name: "envelope", As: apitest.User, Do: path + "?size=5000&page=1",
			Status: 200,
			Has: map[string]any{"content": []any{}, "totalElements": 8, "totalPages": 1,
				"size": 1000, "number": 1}},
		refused("?"+filters(`{"n":{"$near":1}}`), "invalid_filter", "filters.n.$near"),
		refused("?filters=x", "invalid_filter", "filters"),
		refused("?sort=name,up", "invalid_sort", "sort"), refused("?sort=", "invalid_sort", "sort"),
		refused("?sort=a%00b", "invalid_sort", "sort"),
		refused("?sort=a%22b,desc", "invalid_sort", "sort"),
		refused("?sort=a&sort=a&sort=a&sort=a&sort=a&sort=a", "invalid_sort", "sort"),
		refused("?page=-1", "invalid_page", "page"), refused("?size=0", "invalid_page", "size"),
		refused("?page=101&size=1000", "invalid_page", "page"),
		refused("?categories=c", "not_found", "categories"),
		refused("?scraperId=x", "invalid_id", "scraperId"),
		refused("?isLatsRun=true", "unknown_parameter", "isLatsRun"),
		apitest.Scenario{Name: "unknown scraper", As: apitest.User,
			Do: path + "?scraperId=" + unknown, Status: 404, Code: "scraper_not_found"},
		apitest.Scenario{Name: "unknown group", As: apitest.User,
			Do: "GET /api/scraper/data/group/" + unknown, Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "foreign group", As: apitest.Other, Do: path, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "malformed group", As: apitest.User,
			Do: "GET /api/scraper/data/group/x", Status: 400, Code: "invalid_id"},
	)
}

// watched is a store that records the size of each read, and fails a chosen one.
type watched struct {
	rowstore.Store
	reads []int
	fail  int // number of the read that fails, from 1
}

func (w *watched) Rows(ctx context.Context, q rowstore.RowsQuery) ([]json.RawMessage, error) {
	if len(w.reads)+1 == w.fail {
		return nil, errors.New("the disk is gone")
	}
	rows, err := w.Store.Rows(ctx, q)
	bytes := 0
	for _, row := range rows {
		bytes += len(row)
	}
	w.reads = append(w.reads, bytes)
	return rows, err
}

// A page of long rows is complete and in order, and never in memory as a whole.
func TestGroupLongPage(t *testing.T) {
	store := &watched{Store: apitest.NewStore(t)}
	r := startOn(t, store)
	rows := make([]string, 12)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"n":"%d.","text":"%s"}`, i, strings.Repeat("x", 900_000))
	}
	r.run(t, r.other, rows...)
	path := "GET /api/scraper/data/group/" + r.group.String() + "?size=1000&scraperId=" +
		r.other.String()
	newest, oldest := "", "45"
	for i := range rows {
		newest, oldest = fmt.Sprintf("%d.%s", i, newest), fmt.Sprintf("%s%d.", oldest, i)
	}
	for query, want := range map[string]string{"": newest + "54", "&sort=_scrapedAt": oldest} {
		store.reads = nil
		a := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: path + query, Status: 200,
			Has: map[string]any{"totalElements": 14, "totalPages": 1, "size": 1000, "number": 0}})
		if got := numbers(a, "content"); got != want {
			t.Errorf("%s: rows %s, want %s", query, got, want)
		}
		if most := slices.Max(store.reads); most > 4<<20+1_000_000 || len(store.reads) < 4 {
			t.Errorf("%s: parts of %v bytes", query, store.reads)
		}
	}
	for fail := 1; fail <= 3; fail++ { // if nothing has been sent, the client gets an error
		store.reads, store.fail = nil, fail
		if fail < 3 {
			r.Run(t, apitest.Scenario{Name: fmt.Sprint("read ", fail), As: apitest.Reader, Do: path,
				Status: 500, Code: "internal_error"})
			continue
		}
		if body, err := r.get(t, strings.TrimPrefix(path, "GET ")); err == nil {
			t.Errorf("a part of %d bytes looks whole", len(body))
		}
	}
}

// get reads an answer, or what arrives of a broken-off one.
func (r *rig) get(t *testing.T, path string) ([]byte, error) {
	t.Helper()
	return r.getAs(t, apitest.Reader, path)
}

func (r *rig) getAs(t *testing.T, who, path string) ([]byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.Secrets[who])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}
