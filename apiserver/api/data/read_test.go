package data_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

const readPath = "GET /api/scraper/data"

func TestRead(t *testing.T) {
	r := start(t)
	rows := func(query, want string) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.Reader, Do: readPath + query, Status: 200,
			Has: map[string]any{"hasMore": false, "nextCursor": nil},
			Check: func(t *testing.T, a apitest.Answer) {
				if got := numbers(a, "items"); got != want {
					t.Errorf("rows %s, want %s", got, want)
				}
			}}
	}
	group, shop := "?groupId="+r.group.String(), "?scraperId="+r.shop.String()
	job := func(n int) string { return "?jobId=" + r.jobs[n].String() }
	refused := func(name, who, query string, status int, code, field string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: who, Do: readPath + query, Status: status,
			Code: code, Has: map[string]any{"errors.0.field": field}}
	}
	elsewhere := r.NewGroup(t, "alice", "empty")
	r.Run(t,
		rows(group, "12345678"), rows(shop, "123678"), rows(job(1), "45"),
		rows(shop+"&isLastRun=true", "678"), rows(group+"&isLastRun=true", "45678"),
		rows(job(0)+"&isLastRun=true", ""), rows(job(0)+"&scraperId="+r.other.String(), ""),
		rows("?groupId="+elsewhere.String(), ""),
		rows(job(0)+"&groupId="+elsewhere.String(), ""),
		rows(group+"&"+filters(`{"name":{"in":["a","h",null]}}`), "1378"),
		rows(group+"&limit=9000", "12345678"),
		apitest.Scenario{Name: "fields", As: apitest.User,
			Do: readPath + job(2) + "&fields=name,x&fields=n,n", Status: 200,
			Check: func(t *testing.T, a apitest.Answer) {
				const want = `{"items":[{"name":"f","n":6},{"name":null,"n":7},{"name":"h","n":8}],"nextCursor":null,"hasMore":false}`
				if string(a.Body) != want {
					t.Errorf("answer %s\nwant %s", a.Body, want)
				}
			}},
		refused("nothing named", apitest.User, "", 400, "invalid_request", "scraperId"),
		refused("unknown group", apitest.User, "?groupId="+unknown, 400, "not_found", "groupId"),
		refused("foreign group", apitest.Other, group, 400, "not_found", "groupId"),
		refused("unknown scraper", apitest.User, "?scraperId="+unknown, 404, "scraper_not_found",
			"scraperId"),
		refused("foreign scraper", apitest.Other, shop, 404, "scraper_not_found", "scraperId"),
		refused("unknown job", apitest.User, "?jobId="+unknown, 400, "job_not_found", "jobId"),
		refused("foreign job", apitest.Other, job(0), 400, "job_not_found", "jobId"),
		refused("bad filter", apitest.User, group+"&filters=%7B", 400, "invalid_filter", "filters"),
		refused("limit", apitest.User, group+"&limit=0", 400, "invalid_request", "limit"),
		refused("not a cursor", apitest.User, group+"&cursor=abc", 400, "invalid_cursor", "cursor"),
		refused("unknown parameter", apitest.User, group+"&page=1", 400, "unknown_parameter",
			"page"),
	)
}

// A read by cursor sees what existed when it began, each row once.
func TestReadByCursor(t *testing.T) { onStores(t, readByCursor) }

func readByCursor(t *testing.T, store rowstore.Store) {
	for name, want := range map[string]string{"group": "12345678", "latest": "45678",
		"filtered": "12368"} {
		t.Run(name, func(t *testing.T) {
			r := startOn(t, store)
			query := readPath + map[string]string{"group": "?groupId=" + r.group.String(),
				"latest":   "?isLastRun=true&groupId=" + r.group.String(),
				"filtered": "?scraperId=" + r.shop.String() + "&" + filters(`{"n":{"ne":7}}`)}[name]
			got, cursor := "", ""
			for more := "true"; more == "true"; {
				a := r.Call(t,
					apitest.Scenario{As: apitest.Reader, Do: query + "&limit=2&cursor=" + cursor})
				if a.Status != 200 {
					t.Fatalf("%s", a.Body)
				}
				if cursor == "" { // rows that arrive during the read
					r.run(t, r.shop, `{"n":9}`)
					r.run(t, r.other, `{"n":9}`)
				}
				got, more = got+numbers(a, "items"), a.Text("hasMore")
				if more == "true" {
					cursor = a.Text("nextCursor")
				}
			}
			if got != want {
				t.Errorf("rows %s, want %s", got, want)
			}
			r.Run(t, apitest.Scenario{Name: "another read", As: apitest.Reader,
				Do:     readPath + "?jobId=" + r.jobs[0].String() + "&cursor=" + cursor,
				Status: 400, Code: "invalid_cursor"})
		})
	}
}

// A cursor holds no secret: a made-up one reads only what its caller may read, and ends.
func TestReadFromMadeUpPlaces(t *testing.T) {
	r := start(t)
	for _, c := range []struct {
		after, upto int64
		status      int
	}{
		{-1, 5, 400}, {6, 5, 400}, {math.MinInt64, math.MaxInt64, 400},
		{math.MinInt64, math.MinInt64, 400},
		{0, math.MaxInt64, 200}, {math.MaxInt64 - 1, math.MaxInt64, 200},
		{math.MaxInt64, math.MaxInt64, 200},
	} {
		type newest struct {
			Queued int64  `json:"q"`
			ID     ids.ID `json:"i"`
		}
		cursor := api.NewCursor(struct { // as the server encodes it
			Group  ids.ID `json:"g"`
			After  int64  `json:"a"`
			Upto   int64  `json:"u"`
			Newest newest `json:"n"`
		}{r.group, c.after, c.upto, newest{}}, "data", "alice", ids.ID{}.String(),
			r.group.String(), ids.ID{}.String(), "false", "")
		want := apitest.Scenario{As: apitest.Reader,
			Do: readPath + "?groupId=" + r.group.String() + "&cursor=" + cursor, Status: c.status,
			Has: map[string]any{"hasMore": false, "nextCursor": nil}}
		if c.status == 400 {
			want.Code, want.Has = "invalid_cursor", map[string]any{"errors.0.field": "cursor"}
		}
		r.Run(t, want)
	}
}

// The rows of a moved scraper stay where its runs were, and reads of the scraper find them there.
func TestReadMovedScraper(t *testing.T) {
	r := start(t)
	all := func(query string, limit int) string {
		got, cursor := "", ""
		for more := "true"; more == "true"; {
			a := r.Call(t, apitest.Scenario{As: apitest.Reader, Status: 200,
				Do: fmt.Sprintf("%s?scraperId=%s&limit=%d&cursor=%s%s", readPath, r.shop, limit,
					cursor, query)})
			got, more, cursor = got+numbers(a, "items"), a.Text("hasMore"), a.Text("nextCursor")
		}
		return got
	}
	before := r.group
	r.group = r.NewGroup(t, "alice", "new")
	r.Client.Must(t, client.PutScraper{ID: r.shop, Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "shop", Type: model.SingleProduct}})
	if got := all("&isLastRun=true", 2); got != "678" {
		t.Errorf("before a run in the new group its newest run has the rows %s", got)
	}
	r.run(t, r.shop, `{"n":9}`, `{"n":0}`)
	for limit := range 9 {
		if got := all("", limit+1); got != "12367890" {
			t.Errorf("rows %s by %d", got, limit+1)
		}
	}
	for query, want := range map[string]string{"&isLastRun=true": "90",
		"&" + filters(`{"n":{"in":[2,8,9]}}`): "289",
		"&groupId=" + before.String():         "123678", "&groupId=" + r.group.String(): "90",
		"&jobId=" + r.jobs[0].String(): "123"} {
		if got := all(query, 2); got != want {
			t.Errorf("%s: rows %s, want %s", query, got, want)
		}
	}
}

// Large rows are spread over several pages, whatever the limit, each once.
func TestReadLargeRows(t *testing.T) {
	r := start(t)
	large := make([]string, 20)
	for i := range large {
		large[i] = fmt.Sprintf(`{"n":0,"text":"%s"}`, strings.Repeat("x", 900_000))
	}
	small := make([]string, 100)
	for i := range small {
		small[i] = `{"n":0}`
	}
	r.run(t, r.shop, append(large, small...)...)
	query := readPath + "?limit=1000&jobId=" + r.jobs[len(r.jobs)-1].String()
	var pages []int
	cursor := ""
	for more := "true"; more == "true"; {
		a := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: query + "&cursor=" + cursor,
			Status: 200})
		pages, cursor, more = append(pages, len(numbers(a, "items"))), a.Text("nextCursor"),
			a.Text("hasMore")
	}
	if diff := cmp.Diff([]int{5, 5, 5, 5, 100}, pages); diff != "" {
		t.Error(diff)
	}
}
