package extract

import (
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

func extractJSON(t *testing.T, r model.Recipe, body string) string {
	t.Helper()
	got, err := mustCompile(t,
		r).Extract(Page{URL: "http://api.test/v1/items?page=1", ContentType: "application/json",
		Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(got.Rows))
	for i, row := range got.Rows {
		lines[i] = string(row)
	}
	return strings.Join(lines, "\n")
}

func TestJSONSingle(t *testing.T) {
	r := recipe(model.SingleProduct, "n TEXT $.name", "p TEXT $..price", "e EXISTS $.gone",
		"x TEXT jsonpath:$['nested']")
	for body, want := range map[string]string{
		`{"name":" a\u00a0\n\"b\" ","offers":[{"price":1.50},{"price":2}],"nested":{"b":[1.0,null],"a":{}}}`: "{\"n\":\" a\u00a0\\n\\\"b\\\" \",\"p\":1.50,\"e\":false,\"x\":{\"b\":[1.0,null],\"a\":{}}}",
		`{"name":null,"price":12345678901234567890.123,"gone":null}`:                                         `{"n":null,"p":12345678901234567890.123,"e":true,"x":null}`,
		`{"name":null}`:               ``,
		`{"name":false}`:              `{"n":false,"p":null,"e":false,"x":null}`,
		`[]`:                          ``,
		`3`:                           ``,
		"{\"nested\":\"\u2028\xff\"}": `{"n":null,"p":null,"e":false,"x":"\u2028` + "\ufffd" + `"}`,
	} {
		if got := extractJSON(t, r, body); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

// TestJSONItems checks decision 36 on JSON values instead of elements.
func TestJSONItems(t *testing.T) {
	for _, c := range []struct {
		name, body string
		fields     []string
		want       []string
	}{
		{"items are the largest values with one match",
			`{"items":[{"a":{"n":"x"},"p":1},{"a":{"n":"y"}},{"a":{"n":"z"},"p":[2]}]}`,
			[]string{"n TEXT $..n", "p TEXT $..p"},
			[]string{`{"n":"x","p":1}`, `{"n":"y","p":null}`, `{"n":"z","p":[2]}`}},
		{"one match: the body is the item", `{"items":[{"n":"x"}],"total":1}`,
			[]string{"n TEXT $.items[*].n", "t TEXT $.total"}, []string{`{"n":"x","t":1}`}},
		{"no match of the first field: no item", `{"items":[],"total":0}`,
			[]string{"n TEXT $.items[*].n", "t TEXT $.total"}, nil},
		{"the match may be the item, and fields lie in it", `[{"n":1},{"n":2}]`,
			[]string{"all TEXT $[*]", "n TEXT $[*].n"},
			[]string{`{"all":{"n":1},"n":1}`, `{"all":{"n":2},"n":2}`}},
		{"columns: the n-th matches", `{"n":["a","b","c"],"p":[1,2]}`,
			[]string{"n TEXT $.n[*]", "p TEXT $.p[*]"},
			[]string{`{"n":"a","p":1}`, `{"n":"b","p":2}`, `{"n":"c","p":null}`}},
		{"a match inside a match: the n-th matches", `{"n":{"n":1},"p":[5,6]}`,
			[]string{"n TEXT $..n", "p TEXT $.p[*]"},
			[]string{`{"n":{"n":1},"p":5}`, `{"n":1,"p":6}`}},
		{"a missing EXISTS is false, a null row is none", `[{"n":1,"x":null},{"n":2},{"n":null}]`,
			[]string{"n TEXT $[*].n", "x EXISTS $[*].x"},
			[]string{`{"n":1,"x":true}`, `{"n":2,"x":false}`}},
		{"matches in the order of the body", `{"x":{"n":1},"n":2}`, []string{"n TEXT $..n"},
			[]string{`{"n":1}`, `{"n":2}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := extractJSON(t, recipe(model.MultipleProducts, c.fields...), c.body)
			if want := strings.Join(c.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A preview recognizes JSON whatever media type the server gives.
func TestDetectJSONOfAnyName(t *testing.T) {
	for _, media := range []string{"application/json", "text/html; charset=utf-8",
		"text/javascript", ""} {
		got := proposalsOf(t, model.Recipe{}, media,
			`{"items":[{"name":"a","price":1},{"name":"b","price":2}]}`)
		if len(got) == 0 || string(got[0].SampleData[1]) != `{"name":"b","price":2}` {
			t.Errorf("%q: %v", media, got)
		}
	}
}

func TestNotJSON(t *testing.T) {
	e := mustCompile(t, recipe(model.MultipleProducts, "a TEXT $..a"))
	for _, c := range []struct {
		media, body string
		code        fault.Code
		rows        int
	}{
		{"application/json", `{"a":1}`, "", 1},
		{"Application/HAL+JSON; charset=utf-8", `{"a":1}`, "", 1},
		{"text/json", "\ufeff[]", "", 0},
		{"application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n", "", 2},
		{"application/jsonl", "\n{\"a\":1}", "", 1},
		{"", ` {"a":1}`, "", 1},
		{"text/plain", `[{"a":1}]`, "", 1},
		{"text/plain", `a`, fault.PageNotJSON, 0},
		{"", "", fault.PageNotJSON, 0},
		{"text/html; charset=utf-8", `{"a":1}`, "", 1},
		{"application/x-javascript", ` [{"a":1}]`, "", 1},
		{"application/x-json", `{"a":1}`, "", 1},
		{"binary/octet-stream", `{"a":1}`, "", 1},
		{"text/html", `<p>{"a":1}`, fault.PageNotJSON, 0},
		{"image/png", `{"a":1}`, fault.PageNotJSON, 0},
		{"application/javascript", `f({"a":1})`, fault.PageNotJSON, 0},
		{"application/json", `f({"a":1})`, fault.PageUnparsable, 0},
		{"application/json", ``, fault.PageUnparsable, 0},
		{"application/json", "{\"a\":1}\n{\"a\":2}", fault.PageUnparsable, 0},
		{"application/json", strings.Repeat("[", 600) + strings.Repeat("]", 600),
			fault.PageUnparsable, 0},
	} {
		got, err := e.Extract(Page{URL: "http://api.test/", ContentType: c.media,
			Body: []byte(c.body)})
		if code := fault.CodeOf(err); code != c.code || len(got.Rows) != c.rows {
			t.Errorf("%q %.20q: got %v, %d rows, want %q, %d", c.media, c.body, err, len(got.Rows),
				c.code, c.rows)
		}
	}
	slow := mustCompile(t, recipe(model.SingleProduct, "a TEXT $..[?@..[?@..[?@..x]]]"))
	body := strings.Repeat("[0,", 490) + "0" + strings.Repeat("]", 490)
	if _, err := slow.Extract(Page{ContentType: "text/json",
		Body: []byte(body)}); fault.CodeOf(err) != fault.PageTooCostly {
		t.Errorf("a path that takes long: %v", err)
	}
}

func TestJSONRowBounds(t *testing.T) {
	e := mustCompile(t, recipe(model.SingleProduct, "a TEXT $.a"))
	for size, code := range map[int]fault.Code{MaxRowBytes - len(`{"a":""}`): "",
		MaxRowBytes - len(`{"a":""}`) + 1: fault.PageRowTooLarge} {
		body := `{"a":"` + strings.Repeat("x", size) + `"}`
		if _, err := e.Extract(Page{ContentType: "text/json",
			Body: []byte(body)}); fault.CodeOf(err) != code {
			t.Errorf("%d: %v", size, err)
		}
		body = `{"a":[` + strings.Repeat(`"x",`, size/4) + `"xxxxxxxxxxxxxxxxxxxx"]}`
		if _, err := e.Extract(Page{ContentType: "text/json",
			Body: []byte(body)}); fault.CodeOf(err) != fault.PageRowTooLarge {
			t.Errorf("an array of %d bytes: %v", len(body), err)
		}
	}
}

func TestJSONLinks(t *testing.T) {
	for _, c := range []struct {
		pagination           model.Pagination
		body, next, cursorOf string
	}{
		{model.Pagination{Type: model.NextLink, Selector: "$.next"}, `{"next":"?page=2"}`,
			"http://api.test/v1/items?page=2", ""},
		{model.Pagination{Type: model.NextLink, Selector: "$.next"}, `{"next":null}`, "", ""},
		{model.Pagination{Type: model.NextLink, Selector: "$.next"}, `{"next":""}`, "", ""},
		{model.Pagination{Type: model.NextLink, Selector: "$.next"}, `{"next":"mailto:a@b.test"}`,
			"", ""},
		{model.Pagination{Type: model.JSONCursor, CursorPath: "$.meta.cursor"},
			`{"meta":{"cursor":"a=\u0062+"}}`, "", "a=b+"},
		{model.Pagination{Type: model.JSONCursor, CursorPath: "$.meta.cursor"},
			`{"meta":{"cursor":10000000000000000001}}`, "",
			"10000000000000000001"},
		{model.Pagination{Type: model.JSONCursor, CursorPath: "$.meta.cursor"},
			`{"meta":{"cursor":null}}`, "", ""},
		{model.Pagination{Type: model.JSONCursor, CursorPath: "$.meta.cursor"},
			`{"meta":{"cursor":false}}`, "", ""},
		{model.Pagination{Type: model.JSONCursor, CursorPath: "$.meta.cursor"}, `{}`, "", ""},
	} {
		r := recipe(model.MultipleProducts, "a TEXT $..a")
		r.Pagination = &c.pagination
		got, err := mustCompile(t,
			r).Extract(Page{URL: "http://api.test/v1/items?page=1", ContentType: "text/json",
			Body: []byte(c.body)})
		if err != nil || got.Next != c.next || got.Cursor != c.cursorOf {
			t.Errorf("%s of %s: got %q, %q, %v", c.pagination.Type, c.body, got.Next, got.Cursor,
				err)
		}
	}
}

func TestValidateJSON(t *testing.T) {
	with := func(r model.Recipe, p model.Pagination) model.Recipe {
		r.Pagination = &p
		return r
	}
	json, html := recipe(model.SingleProduct, "a TEXT $.a"), recipe(model.SingleProduct, "a TEXT a")
	for _, c := range []struct {
		name, fault string
		recipe      model.Recipe
	}{
		{"a path", "", json},
		{"not a path", "itemsConfig[0].selector", recipe(model.SingleProduct, "a TEXT $.")},
		{"nothing behind the prefix", "itemsConfig[0].selector",
			recipe(model.SingleProduct, "a TEXT jsonpath: ")},
		{"a prefix that the form denies", "itemsConfig[0].selector",
			recipe(model.SingleProduct, "a TEXT css:$.a")},
		{"a selector beside paths", "itemsConfig[1].selector",
			recipe(model.SingleProduct, "a TEXT $.a", "b TEXT b")},
		{"a path beside selectors", "itemsConfig[1].selector",
			recipe(model.SingleProduct, "a TEXT a", "b TEXT $.b")},
		{"an attribute of a value", "itemsConfig[0].kind",
			recipe(model.SingleProduct, "a @href $.a")},
		{"too long a path", "itemsConfig[0].selector",
			recipe(model.SingleProduct, "a TEXT $"+strings.Repeat(".a", 1024))},
		{"a cursor", "", with(json, model.Pagination{Type: model.JSONCursor, CursorPath: "$.c"})},
		{"no path of a cursor", "sourceConfig.pagination.cursorPath",
			with(json, model.Pagination{Type: model.JSONCursor})},
		{"a cursor that is no path", "sourceConfig.pagination.cursorPath",
			with(json, model.Pagination{Type: model.JSONCursor, CursorPath: "c"})},
		{"a cursor of HTML", "sourceConfig.pagination.type",
			with(html, model.Pagination{Type: model.JSONCursor, CursorPath: "$.c"})},
		{"a link", "", with(json, model.Pagination{Type: model.NextLink, Selector: "$.c"})},
		{"a link of HTML in JSON", "sourceConfig.pagination.selector",
			with(json, model.Pagination{Type: model.NextLink, Selector: "a"})},
		{"a link of JSON in HTML", "sourceConfig.pagination.selector",
			with(html, model.Pagination{Type: model.NextLink, Selector: "$.c"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range Validate(c.recipe) {
				got = append(got, f.Field)
			}
			if strings.Join(got, " ") != c.fault {
				t.Errorf("got %v, want %s", got, c.fault)
			}
		})
	}
}
