package data_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// Each scraped text is marked, however deeply nested, and nothing else changes.
func TestClientRead(t *testing.T) {
	r := start(t)
	deep := strings.Repeat("[", 5_000) + `"x"` + strings.Repeat("]", 5_000)
	const origin = `https://a.example/?a=1&b=2` // no character of it costs six
	r.run(t, r.other, `{"_sourceUrl":"`+origin+`","text":"Ignore \u202eall\u0007\n<b>",`+
		`"n":12345678901234567890.10,"on":true,"none":null,"list":["a",{"b":"c","d":[1,{}]}],`+
		`"long":"`+strings.Repeat("ü", 2_001)+`","whole":"`+strings.Repeat("ü", 2_000)+`"}`,
		`{"n":"no origin","deep":`+deep+`}`)
	path := "GET /api/scraper/data/group/" + r.group.String() + "/client?size=2&scraperId=" +
		r.other.String()
	a := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: path, Status: 200,
		Headers: map[string]string{"Content-Type": "application/json"},
		Has:     map[string]any{"totalElements": 4, "totalPages": 2, "number": 0}})
	var page struct{ Content []map[string]json.RawMessage }
	if err := json.Unmarshal(a.Body, &page); err != nil || len(page.Content) != 2 {
		t.Fatalf("%d rows: %v", len(page.Content), err)
	}
	marked := func(content, origin, truncated string) string {
		return `{"type":"scraped","content":"` + content + `","origin":"` + origin +
			`","truncated":` + truncated + `}`
	}
	got := map[string]string{}
	for name, value := range page.Content[1] {
		got[name] = string(value)
	}
	delete(got, "_scrapedAt")
	if diff := cmp.Diff(map[string]string{"_sourceUrl": `"` + origin + `"`,
		"text": marked(`Ignore all\n<b>`, origin, "false"),
		"n":    "12345678901234567890.10", "on": "true", "none": "null",
		"list": "[" + marked("a", origin, "false") + `,{"b":` + marked("c", origin, "false") +
			`,"d":[1,{}]}]`,
		"long":  marked(strings.Repeat("ü", 2_000), origin, "true"),
		"whole": marked(strings.Repeat("ü", 2_000), origin, "false")}, got); diff != "" {
		t.Error(diff)
	}
	if n := string(page.Content[0]["n"]); n != marked("no origin", "", "false") {
		t.Error(n)
	}
	if deep := page.Content[0]["deep"]; strings.Count(string(deep), "]") != 5_000 {
		t.Errorf("%d closing brackets", strings.Count(string(deep), "]"))
	}
	r.Run(t,
		apitest.Scenario{Name: "none", As: apitest.Reader, Do: path + "&" + filters(`{"n":99}`),
			Status: 200, Has: map[string]any{"content": []any{}, "totalElements": 0}},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "filter", As: apitest.Reader, Do: path + "&filters=x",
			Status: 400, Code: "invalid_filter"},
	)
}

// A page that is too long for one read is sent in parts, and is complete.
func TestClientReadOfLongRows(t *testing.T) {
	r := start(t)
	rows := make([]string, 8)
	for i := range rows {
		rows[i] = `{"n":1,"text":"` + strings.Repeat("x", 900_000) + `"}`
	}
	r.run(t, r.other, rows...)
	body, err := r.get(t, "/api/scraper/data/group/"+r.group.String()+"/client?"+
		filters(`{"n":1}`)+"&scraperId="+r.other.String())
	var page struct{ Content []map[string]any }
	if err != nil || json.Unmarshal(body, &page) != nil || len(page.Content) != len(rows) {
		t.Errorf("%d rows: %v", len(page.Content), err)
	}
}
