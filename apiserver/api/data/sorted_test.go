package data_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// pages reads rows by cursor to their end, and calls between before the second page.
func (r *rig) pages(t *testing.T, as, query string, limit int, between func()) (rows string,
	pages int) {
	t.Helper()
	cursor := ""
	for more := "true"; more == "true"; pages++ {
		if pages == 1 && between != nil {
			between()
		}
		a := r.Call(t, apitest.Scenario{As: as, Do: fmt.Sprintf("%s?%s&limit=%d&cursor=%s",
			readPath, query, limit, cursor)})
		if a.Status != 200 {
			t.Fatalf("%s: %s", query, a.Body)
		}
		rows, more, cursor = rows+numbers(a, "items"), a.Text("hasMore"), a.Text("nextCursor")
	}
	return rows, pages
}

// A sorted read by cursor returns each row once, as of its beginning, with pages of any size.
func TestReadSorted(t *testing.T) {
	for query, want := range map[string]string{
		"sort=name":                                 "12456837",
		"sort=name,desc":                            "86542137",
		"sort=n:desc":                               "87654321",
		"sort=scrapedAt,desc":                       "87654321",
		"sort=nowhere":                              "12345678",
		"sort=name,desc&isLastRun=true":             "86547",
		"sort=name,desc&categories=low":             "213",
		"sort=n,desc&fields=n":                      "87654321",
		"sort=n,desc&" + filters(`{"n":{"gte":3}}`): "876543",
	} {
		for _, limit := range []int{1, 3, 8} {
			r := start(t)
			r.save(t, "low", `{"n":{"lt":4}}`)
			r.share(t)
			got, pages := r.pages(t, apitest.Other, "groupId="+r.group.String()+"&"+query, limit,
				func() { r.run(t, r.shop, `{"n":3.5,"name":"c"}`, `{"n":0,"name":"g"}`) })
			if got != want || pages != (len(want)+limit-1)/limit {
				t.Errorf("%s by %d: rows %s on %d pages, want %s", query, limit, got, pages, want)
			}
		}
	}
	r := start(t)
	for query, want := range map[string]string{"scraperId=" + r.shop.String(): "862137",
		"jobId=" + r.jobs[2].String(): "867"} {
		for limit := 1; limit < 8; limit++ {
			if got, _ := r.pages(t, apitest.User, query+"&sort=name,desc", limit,
				nil); got != want {
				t.Errorf("%s by %d: rows %s, want %s", query, limit, got, want)
			}
		}
	}
}

// Rows that are removed during a sorted read are missing from its next pages, which are full
// nevertheless.
func TestReadSortedWhileRowsGo(t *testing.T) {
	r := start(t)
	path := readPath + "?sort=name,desc&limit=1&groupId=" + r.group.String() + "&cursor="
	rows, cursor := "", ""
	for more := "true"; more == "true"; {
		a := r.Call(t, apitest.Scenario{As: apitest.User, Do: path + cursor, Status: 200})
		row := numbers(a, "items")
		if row == "" {
			t.Errorf("an empty page behind the rows %s", rows)
		}
		if rows, more, cursor = rows+row, a.Text("hasMore"), a.Text("nextCursor"); row == "5" {
			if err := r.store.EraseJob(t.Context(), r.jobs[0]); err != nil { // rows 1, 2 and 3
				t.Fatal(err)
			}
		}
	}
	if rows != "86547" {
		t.Errorf("rows %s", rows)
	}
}

// A sorted read skips rows, and its cursor continues after those that it returned.
func TestReadSortedSkips(t *testing.T) {
	r := start(t)
	for _, c := range []struct {
		skip, limit int
		rows, next  string
	}{{0, 3, "876", "43"}, {2, 3, "654", "21"}, {5, 2, "32", ""}, {5, 3, "321", ""},
		{7, 5, "1", ""}, {8, 5, "", ""}, {40_000, 1_000, "", ""}} {
		query := fmt.Sprintf("%s?groupId=%s&sort=n,desc&limit=%d&skip=%%d&cursor=", readPath,
			r.group, c.limit)
		a := r.Call(t, apitest.Scenario{As: apitest.User, Do: fmt.Sprintf(query, c.skip)})
		if got := numbers(a, "items"); a.Status != 200 || got != c.rows {
			t.Errorf("%+v: %d, rows %s", c, a.Status, got)
		}
		next := ""
		if a.Text("hasMore") == "true" {
			next = numbers(r.Call(t, apitest.Scenario{As: apitest.User, Do: fmt.Sprintf(query, 1) +
				a.Text("nextCursor")}), "items")
		}
		if next = next[:min(2, len(next))]; next != c.next {
			t.Errorf("%+v: behind it %s", c, next)
		}
	}
}

// The rows of a moved scraper are sorted together across groups.
func TestReadSortedOfMovedScraper(t *testing.T) {
	r := start(t)
	r.group = r.NewGroup(t, "alice", "new")
	r.Client.Must(t, client.PutScraper{ID: r.shop, Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "shop", Type: model.SingleProduct}})
	r.run(t, r.shop, `{"n":9,"name":"aa"}`, `{"n":0,"name":"h"}`)
	for limit := 1; limit < 10; limit++ {
		if got, _ := r.pages(t, apitest.User, "scraperId="+r.shop.String()+"&sort=name", limit,
			nil); got != "19268037" {
			t.Errorf("rows %s by %d", got, limit)
		}
	}
}

// Texts with the same beginning come in stored order, and a cursor stays short. Large rows are
// spread over several pages.
func TestReadSortedLongTexts(t *testing.T) {
	r := start(t)
	begin := strings.Repeat("\\u0000", rowstore.KeyBytes)
	r.run(t, r.other, `{"n":1,"name":"`+begin+`z"}`, `{"n":2,"name":"`+begin+`a"}`,
		`{"n":3,"name":"`+begin+`"}`, `{"n":4,"name":"b"}`)
	query := "sort=name&jobId=" + r.jobs[len(r.jobs)-1].String()
	if got, _ := r.pages(t, apitest.User, query, 1, nil); got != "1234" {
		t.Errorf("rows %s", got)
	}
	large := make([]string, 8)
	for i := range large {
		large[i] = fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", 900_000))
	}
	r.run(t, r.shop, large...)
	query = "sort=n,desc&jobId=" + r.jobs[len(r.jobs)-1].String()
	if got, pages := r.pages(t, apitest.User, query, 1000, nil); got != "76543210" || pages != 2 {
		t.Errorf("rows %s on %d pages", got, pages)
	}
}

func TestReadSortedIsRefused(t *testing.T) {
	r := start(t)
	group := readPath + "?limit=2&groupId=" + r.group.String()
	cursorOf := func(query string) string {
		t.Helper()
		return r.Call(t, apitest.Scenario{As: apitest.Reader, Do: group + query,
			Status: 200}).Text("nextCursor")
	}
	refused := func(query, code, field string) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.Reader, Do: group + query, Status: 400,
			Code: code, Has: map[string]any{"errors.0.field": field}}
	}
	sorted, stored := cursorOf("&sort=name"), cursorOf("")
	r.Run(t, refused("&sort=name,up", "invalid_sort", "sort"),
		refused("&sort=a%22b", "invalid_sort", "sort"),
		refused("&sort="+strings.Repeat("a", 1025), "invalid_sort", "sort"),
		refused("&sort=n&skip=40001", "invalid_request", "skip"),
		refused("&sort=n&skip=-1", "invalid_request", "skip"),
		refused("&skip=1", "invalid_request", "skip"),
		refused("&cursor="+sorted, "invalid_cursor", "cursor"),
		refused("&sort=name&cursor="+stored, "invalid_cursor", "cursor"),
		refused("&sort=name,desc&cursor="+sorted, "invalid_cursor", "cursor"),
		refused("&sort=n&cursor="+sorted, "invalid_cursor", "cursor"),
		refused("&sort=name&cursor="+sorted+"&"+filters(`{"n":1}`), "invalid_cursor", "cursor"))
	// Made-up places read nothing that the caller may not read, and end.
	type newest struct {
		Queued int64  `json:"q"`
		ID     ids.ID `json:"i"`
	}
	type standing struct {
		Class  int     `json:"c"`
		Number float64 `json:"n,omitempty"`
		Text   []byte  `json:"t,omitempty"`
		Place  int64   `json:"p"`
	}
	for _, test := range []struct {
		sort   string
		group  ids.ID
		after  int64
		at     *standing
		status int
	}{
		{"n", ids.ID{}, 0, &standing{Place: 1}, 200},
		{"n", ids.ID{}, 0, &standing{Class: 1, Text: []byte("\xff'"), Place: 1}, 200},
		{"n", ids.ID{}, 0, &standing{Class: 4, Place: 1000}, 200},
		{"n", ids.ID{}, 0, nil, 400},
		{"n", r.group, 0, &standing{Place: 1}, 400},
		{"n", ids.ID{}, 5, &standing{Place: 1}, 400},
		{"n", ids.ID{}, 0, &standing{Place: 1001}, 400},
		{"n", ids.ID{}, 0, &standing{Place: 0}, 400},
		{"n", ids.ID{}, 0, &standing{Place: math.MinInt64}, 400},
		{"n", ids.ID{}, 0, &standing{Class: 5, Place: 1}, 400},
		{"n", ids.ID{}, 0, &standing{Class: 256, Place: 1}, 400},
		{"n", ids.ID{}, 0, &standing{Class: 2, Number: 2, Place: 1}, 400},
		{"n", ids.ID{}, 0, &standing{Class: 3, Number: 1, Place: 1}, 400},
		{"n", ids.ID{}, 0, &standing{Text: []byte("x"), Place: 1}, 400},
		{"n", ids.ID{}, 0, &standing{Class: 1, Text: make([]byte, 257), Place: 1}, 400},
		{"", ids.ID{}, 0, &standing{Place: 1}, 400},
	} {
		identity := []string{"data", "alice", ids.ID{}.String(), r.group.String(),
			ids.ID{}.String(), "false", ""}
		if test.sort != "" {
			identity = append(identity, "sort", test.sort)
		}
		cursor := api.NewCursor(struct { // as the server encodes it
			Group  ids.ID    `json:"g"`
			After  int64     `json:"a"`
			Upto   int64     `json:"u"`
			Newest newest    `json:"n"`
			Sorted *standing `json:"s,omitempty"`
		}{test.group, test.after, 1000, newest{}, test.at}, identity...)
		want := apitest.Scenario{Name: fmt.Sprintf("%+v", test), As: apitest.Reader,
			Do: readPath + "?groupId=" + r.group.String() + "&sort=" + test.sort + "&cursor=" +
				cursor, Status: test.status}
		if test.status == 400 {
			want.Code, want.Has = "invalid_cursor", map[string]any{"errors.0.field": "cursor"}
		}
		r.Run(t, want)
	}
}

// A file, kept or not, is sorted like a read.
func TestExportSorted(t *testing.T) {
	k := startKeeper(t)
	group := "groupId=" + k.group.String()
	for query, want := range map[string]string{
		"sort=name,desc":                    "n\n8\n6\n5\n4\n2\n1\n3\n7\n",
		"sort=name,desc&limit=3":            "n\n8\n6\n5\n",
		"sort=n,desc&limit=8":               "n\n8\n7\n6\n5\n4\n3\n2\n1\n",
		"sort=n,desc&isLastRun=true":        "n\n8\n7\n6\n5\n4\n",
		"sort=n,desc&" + filters(`{"n":1}`): "n\n1\n",
		"sort=n&" + filters(`{"n":0}`):      "n\n",
	} {
		query += "&fields=n&format=csv&" + group
		a := k.Call(t, apitest.Scenario{As: apitest.User, Do: exportPath + "?" + query})
		if a.Status != 200 || string(a.Body) != want {
			t.Errorf("%s: %d %q, want %q", query, a.Status, a.Body, want)
		}
		id := k.ask(t, apitest.User, query)
		k.step(t, id, 0)
		kept := k.Call(t, file(apitest.User, id, 200, nil))
		if string(kept.Body) != want {
			t.Errorf("%s: kept %d %q, want %q", query, kept.Status, kept.Body, want)
		}
	}
	for _, method := range []string{"GET /api/scraper/data/export?", "POST " + keptPath + "?"} {
		k.Run(t, apitest.Scenario{Name: method, As: apitest.User, Do: method + "sort=n,up&" + group,
			Status: 400, Code: "invalid_sort", Has: map[string]any{"errors.0.field": "sort"}})
	}
}
