package data_test

import (
	"net/url"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// Reads, exports and comparisons name each member exactly, whatever its name has.
func TestMembersAreNamedExactly(t *testing.T) {
	r := start(t)
	r.run(t, r.shop, `{"Price, EUR":1,"a, \"b\"":"x","n":1,"Price":0}`)
	r.run(t, r.shop, `{"Price, EUR":2,"a, \"b\"":"x","n":2,"Price":0}`)
	from, to := r.jobs[len(r.jobs)-2], r.jobs[len(r.jobs)-1]
	const price, odd = `"Price, EUR"`, `"a, ""b"""`
	is := func(name, do, want string) apitest.Scenario {
		headers := map[string]string{}
		if strings.HasPrefix(do, exportPath) {
			headers = map[string]string{"Content-Disposition": "*", "Content-Type": "*"}
		}
		return apitest.Scenario{Name: name, As: apitest.User, Do: do, Status: 200,
			Headers: headers, Check: func(t *testing.T, a apitest.Answer) {
				if string(a.Body) != want {
					t.Errorf("%s: %s, want %s", do, a.Body, want)
				}
			}}
	}
	key, both := "key="+url.QueryEscape(odd), url.QueryEscape(price+","+odd)
	row := `{"Price, EUR":2,"a, \"b\"":"x"}`
	r.Run(t,
		is("read", readPath+"?jobId="+to.String()+"&fields="+both,
			`{"items":[`+row+`],"nextCursor":null,"hasMore":false}`),
		is("read what is repeated", readPath+"?jobId="+to.String()+"&fields="+
			url.QueryEscape(price)+"&fields="+url.QueryEscape(odd),
			`{"items":[`+row+`],"nextCursor":null,"hasMore":false}`),
		is("export lines", exportPath+"?format=jsonl&jobId="+to.String()+"&fields="+both,
			row+"\n"),
		is("export a table", exportPath+"?jobId="+to.String()+"&fields="+both,
			price+","+odd+"\n2,x\n"),
		is("read without", readPath+"?jobId="+to.String()+"&without=n&without="+
			url.QueryEscape(odd+",Price,none,_rowId,_sourceUrl"),
			`{"items":[{"Price, EUR":2,"_scrapedAt":"2026-01-02T03:04:10.000Z"}],`+
				`"nextCursor":null,"hasMore":false}`),
		is("read without nothing", readPath+"?jobId="+to.String()+"&without=,&fields="+
			url.QueryEscape(price), `{"items":[{"Price, EUR":2}],"nextCursor":null,"hasMore":false}`),
		is("export a table without", exportPath+"?jobId="+to.String()+"&without="+
			url.QueryEscape(odd+",_scrapedAt,n"), price+",Price\n2,0\n"),
		apitest.Scenario{Name: "compare", As: apitest.User,
			Do:     diffOf(from, to, key, "fields="+url.QueryEscape(price)),
			Status: 200, Has: map[string]any{"key": []any{`a, "b"`}, "summary.changed": 1,
				"items.0.changed": []any{"Price, EUR"}}},
		apitest.Scenario{Name: "compare others", As: apitest.User,
			Do:     diffOf(from, to, key, "fields="+url.QueryEscape(odd)),
			Status: 200, Has: map[string]any{"summary.unchanged": 1}},
	)
	for name, path := range map[string]string{"fields": readPath + "?jobId=" + to.String() + "&",
		"without": exportPath + "?jobId=" + to.String() + "&", "key": diffOf(from, to) + "&"} {
		r.Run(t, apitest.Scenario{Name: name, As: apitest.User, Do: path + name + "=" +
			url.QueryEscape(`"Price, EUR`), Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": name}})
	}
	for _, path := range []string{readPath, exportPath} {
		r.Run(t, apitest.Scenario{Name: path, As: apitest.User, Do: path + "?jobId=" +
			to.String() + "&fields=n&without=Price", Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "without"}})
	}
}
