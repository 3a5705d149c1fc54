package extract

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recipe makes a recipe from fields written as `name kind selector` or `name @attr selector`.
func recipe(t model.ScraperType, fields ...string) model.Recipe {
	r := model.Recipe{Type: t}
	for _, f := range fields {
		parts := strings.SplitN(f, " ", 3)
		field := model.Field{Name: parts[0], Kind: model.FieldKind(parts[1]), Selector: parts[2]}
		if attr, ok := strings.CutPrefix(parts[1], "@"); ok {
			field.Kind, field.Attr = model.Attr, attr
		}
		r.Fields = append(r.Fields, field)
	}
	return r
}

func mustCompile(t testing.TB, r model.Recipe) *Extractor {
	t.Helper()
	e, err := Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// extract makes the rows of a page without an address, so that links stay as written.
func extract(t testing.TB, r model.Recipe, body string) []string {
	t.Helper()
	got, err := mustCompile(t, r).Extract(Page{ContentType: "text/html", Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{}
	for _, row := range got.Rows {
		if !json.Valid(row) {
			t.Fatalf("not JSON: %s", row)
		}
		rows = append(rows, string(row))
	}
	return rows
}

func TestGoldenPages(t *testing.T) {
	recipes, err := filepath.Glob("testdata/*.json")
	if err != nil || len(recipes) == 0 {
		t.Fatal("no recipes", err)
	}
	for _, path := range recipes {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var r model.Recipe
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			body, err := os.ReadFile(strings.TrimSuffix(path, ".json") + ".html")
			if err != nil {
				t.Fatal(err)
			}
			got, err := mustCompile(t,
				r).Extract(Page{URL: "https://shop.test/list/", ContentType: "text/html",
				Body: body})
			if err != nil {
				t.Fatal(err)
			}
			lines := append(bytes.Join(got.Rows, []byte("\n")), "\nnext: "+got.Next+"\n"...)
			golden := strings.TrimSuffix(path, ".json") + ".golden"
			if *update {
				if err := os.WriteFile(golden, lines, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(lines, want) {
				t.Errorf("got\n%s\nwant\n%s", lines, want)
			}
		})
	}
}

// TestItems checks the items that decision 36 defines.
func TestItems(t *testing.T) {
	for _, c := range []struct {
		name, body string
		fields     []string
		want       []string
	}{
		{"items are the largest elements with one match",
			`<div><p><b>1</b></p><i>a</i></div><div><p><b>2</b></p></div><div><b>3</b><i>c</i><i>d</i></div>`,
			[]string{"b TEXT b", "i TEXT i"},
			[]string{`{"b":"1","i":"a"}`, `{"b":"2","i":null}`, `{"b":"3","i":"c"}`}},
		{"one match: the page is the item",
			`<head><link rel=canonical href=/x></head><body><section><h2>1</h2></section><i>far</i>`,
			[]string{"h TEXT h2", "i TEXT i", "c @href link"},
			[]string{`{"h":"1","i":"far","c":"/x"}`}},
		{"no match of the first field: no item", `<i>a</i><i>b</i>`,
			[]string{"b TEXT b", "i TEXT i"}, nil},
		{"the first field EXISTS", `<ul><li><b></b><i>x</i></li><li><b></b></li></ul>`,
			[]string{"b EXISTS b", "i TEXT i"},
			[]string{`{"b":true,"i":"x"}`, `{"b":true,"i":null}`}},
		{"a missing EXISTS is false", `<ul><li><b>1</b><i></i></li><li><b>2</b></li></ul>`,
			[]string{"b TEXT b", "i EXISTS i"},
			[]string{`{"b":"1","i":true}`, `{"b":"2","i":false}`}},
		{"the item itself counts", `<a href=1>x</a><a href=2>y</a>`,
			[]string{"t TEXT a", "u @href a"}, []string{`{"t":"x","u":"1"}`, `{"t":"y","u":"2"}`}},
		{"the match may be the item, and fields lie in it",
			`<div><li>x<i>1</i></li><li>y<i>2</i></li></div>`,
			[]string{"t TEXT li", "i TEXT i"},
			[]string{`{"t":"x1","i":"1"}`, `{"t":"y2","i":"2"}`}},
		{"items without any other field: the n-th matches", `<dl><dt>a<dd>1<dt>b<dd>2<dt>c</dl>`,
			[]string{"k TEXT dt", "v TEXT dd"},
			[]string{`{"k":"a","v":"1"}`, `{"k":"b","v":"2"}`, `{"k":"c","v":null}`}},
		{"columns: the n-th matches",
			`<div><b>1</b><b>2</b></div><div><i>a</i><i>b</i><i>c</i></div>`,
			[]string{"b TEXT b", "i TEXT i", "e EXISTS i"},
			[]string{`{"b":"1","i":"a","e":true}`, `{"b":"2","i":"b","e":true}`}},
		{"a match inside a match: the n-th matches", `<div>x<div>y<i>1</i></div></div><i>2</i>`,
			[]string{"d TEXT div", "i TEXT i"},
			[]string{`{"d":"xy1","i":"1"}`, `{"d":"y1","i":"2"}`}},
		{"only the first field", `<p>a</p><p>b</p>`, []string{"p TEXT p"},
			[]string{`{"p":"a"}`, `{"p":"b"}`}},
		{"an ancestor outside of the item counts for a selector",
			`<main><p><b>1</b><i>x</i></p><p><b>2</b></p></main>`,
			[]string{"b TEXT b", "i TEXT main i"},
			[]string{`{"b":"1","i":"x"}`, `{"b":"2","i":null}`}},
		{"a row of nulls is none", `<p><a>x</a></p><p><a href=1>y</a></p>`, []string{"u @href a"},
			[]string{`{"u":"1"}`}},
		{"table rows", `<table><tr><th>h<th>p<tr><td>a<td>1<tr><td>b<td>2</table>`,
			[]string{"n TEXT td:first-child", "p TEXT td:nth-child(2)"},
			[]string{`{"n":"a","p":"1"}`, `{"n":"b","p":"2"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := extract(t, recipe(model.MultipleProducts, c.fields...), c.body)
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

func TestSingle(t *testing.T) {
	fields := []string{"t TEXT h1", "u @href a", "e EXISTS b"}
	for _, c := range []struct{ body, want string }{
		{"<h1> a\u00a0 \n<i>b</i>c </h1><a>x</a><a href=2>y</a>",
			`[{"t":"a bc","u":null,"e":false}]`},
		{`<h1></h1>`, `[{"t":"","u":null,"e":false}]`},
		{`<b>`, `[{"t":null,"u":null,"e":true}]`},
		{`<p>nothing`, `[]`},
		{"", `[]`},
		{"<h1>\"\\\x01\t\xff&#x2028;</h1>",
			`[{"t":"\"\\\u0001 ` + "\ufffd" + `","u":null,"e":false}]`},
		{"<h1>x</h1><a href='a\tb\r\nc'>", `[{"t":"x","u":"a\tb\nc","e":false}]`},
	} {
		if got := fmt.Sprint(extract(t, recipe(model.SingleProduct, fields...),
			c.body)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.body, got, c.want)
		}
	}
}

func TestNextLink(t *testing.T) {
	r := recipe(model.SingleProduct, "t TEXT p")
	r.Pagination = &model.Pagination{Type: model.NextLink, Selector: ".next"}
	e := mustCompile(t, r)
	for body, want := range map[string]string{
		`<a class=next href="?page=2">`:                            "http://shop.test/a/b?page=2",
		`<a class=next href=" /x y ">`:                             "http://shop.test/x%20y",
		`<a class=next href="//other.test/x">`:                     "http://other.test/x",
		`<base href="/base/"><a class=next href=x>`:                "http://shop.test/base/x",
		`<base target=_blank><base href=/c/><a class=next href=x>`: "http://shop.test/c/x",
		`<base href="javascript:x"><a class=next href="x">`:        "http://shop.test/a/x",
		`<base href="about:blank"><a class=next href="x">`:         "http://shop.test/a/x",
		`<base href="data:,"><a class=next href="x">`:              "http://shop.test/a/x",
		`<link class=next href="HTTPS://shop.test:443/z"><a>`:      "https://shop.test/z",
		`<a class=next>`: "",
		`<a href=x>`:     "",
		`<a class=next href="javascript:void(0)">`:                        "",
		`<a class=next href="mailto:a@shop.test">`:                        "",
		`<a class=next href="http://[">`:                                  "",
		`<span class=next></span><a class=next href=second></a>`:          "",
		`<a class=next href="x?a=1&amp;b=2&copy=3">`:                      "http://shop.test/a/x?a=1&b=2&copy=3",
		`<template><a class=next href=t></template><a class=next href=u>`: "http://shop.test/a/u",
	} {
		got, err := e.Extract(Page{URL: "http://shop.test/a/b", ContentType: "text/html",
			Body: []byte(body)})
		if err != nil || got.Next != want {
			t.Errorf("%s: got %q, %v, want %q", body, got.Next, err, want)
		}
	}
}

func TestNotHTML(t *testing.T) {
	e := mustCompile(t, recipe(model.SingleProduct, "t TEXT p"))
	for _, c := range []struct {
		media, body string
		code        fault.Code
	}{
		{"text/html", "", ""},
		{"Text/HTML ; charset=latin1", "x", ""},
		{"application/xhtml+xml", "<p>", ""},
		{"text/html charset=utf-8", "<p>", ""},
		{"text/html, text/html; charset=utf-8", "<p>", ""},
		{"", "\ufeff \n<!doctype html><p>x", ""},
		{"", "", fault.PageNotHTML},
		{"", "PNG", fault.PageNotHTML},
		{"", "<?xml version='1.0'?><rss/>", fault.PageNotHTML},
		{"application/json", `{"a":"<p>"}`, fault.PageNotHTML},
		{"image/png", "<p>", fault.PageNotHTML},
		{"text/html", strings.Repeat("<div>", 600), fault.PageUnparsable},
	} {
		_, err := e.Extract(Page{URL: "http://shop.test/", ContentType: c.media,
			Body: []byte(c.body)})
		if got := fault.CodeOf(err); got != c.code {
			t.Errorf("%q %.20q: got %v, want %q", c.media, c.body, err, c.code)
		}
	}
}

func TestRowBounds(t *testing.T) {
	word := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name, body string
		recipe     model.Recipe
		rows       int
	}{
		{"a row up to the bound", "<p>" + strings.Repeat("x", MaxRowBytes-len(`{"p":""}`)),
			recipe(model.SingleProduct, "p TEXT p"), 1},
		{"a row beyond it", "<p>" + strings.Repeat("x", MaxRowBytes-len(`{"p":""}`)+1),
			recipe(model.SingleProduct, "p TEXT p"), -1},
		{"rows up to the bound", strings.Repeat("<p>x", MaxRows),
			recipe(model.MultipleProducts, "p TEXT p"), MaxRows},
		{"rows beyond it", strings.Repeat("<p>x", MaxRows+1),
			recipe(model.MultipleProducts, "p TEXT p"), -1},
		{"a page beyond its bound", strings.Repeat("<p>"+word, MaxPageBytes/len(word)),
			recipe(model.MultipleProducts, "p TEXT p"), -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := mustCompile(t,
				c.recipe).Extract(Page{ContentType: "text/html", Body: []byte(c.body)})
			if c.rows >= 0 && (err != nil || len(got.Rows) != c.rows) || c.rows < 0 &&
				fault.CodeOf(err) != fault.PageRowTooLarge {
				t.Errorf("%d rows, %v", len(got.Rows), err)
			}
		})
	}
}

// TestHostilePages reads pages with selectors made to take long. A regression shows as a test that
// does not end.
func TestHostilePages(t *testing.T) {
	siblings := "<body>" + strings.Repeat("<p class=x>a</p>", 20_000)
	deep := strings.Repeat("<div class=x>a", 490)
	for _, c := range []struct {
		body, selector string
		code           fault.Code
	}{
		{siblings, "p:nth-child(19999)", ""},
		{siblings, "p:nth-last-of-type(2n+1) + p:last-child", ""},
		{siblings, ".y ~ .x", ""},
		{siblings, ".y ~ .x ~ .x ~ .x ~ .x", ""},
		{siblings, "p:not(:has(i)):contains(b)", ""},
		{siblings, "body:has(.y ~ .x), p ~ .x", ""},
		{deep, ".y" + strings.Repeat(" .x", 300), ""},
		{deep, ".y" + strings.Repeat(" > .x .x", 200), ""},
		{deep + strings.Repeat("<b>", 2), ":has(:has(:has(:has(.y))))", fault.PageTooCostly},
		{strings.Repeat("<div>", 490) + strings.Repeat(" ", 6<<20), "div", fault.PageTooCostly},
		{strings.Repeat("<p><b><i><u>x", 3_000), "u", ""},
		{strings.Repeat("<table><tr><td>", 2_000), "p", fault.PageUnparsable},
		{strings.Repeat("</p>", 50_000), ".y", ""},
		{"<p " + strings.Repeat("a=1 b=2 ", 20_000) + ">", "p[c]", ""},
		{strings.Repeat("<!--", 50_000) + strings.Repeat("<", 50_000), ".y", ""},
		{strings.Repeat("<script>", 20_000) + strings.Repeat("</scrip", 20_000), ".y", ""},
		{strings.Repeat("<template>", 50_000), ".y", fault.PageUnparsable},
		{strings.Repeat("<a>", 50_000) + strings.Repeat("<font>", 400), ".y", ""},
	} {
		e := mustCompile(t, recipe(model.MultipleProducts, "x TEXT "+c.selector))
		_, err := e.Extract(Page{ContentType: "text/html", Body: []byte(c.body)})
		if got := fault.CodeOf(err); got != c.code {
			t.Errorf("%.40q in %.20q…: %v, want %q", c.selector, c.body, err, c.code)
		}
	}
}

// TestConcurrentUse shares one extractor among goroutines: pages must not mix.
func TestConcurrentUse(t *testing.T) {
	e := mustCompile(t, recipe(model.SingleProduct, "t TEXT h1"))
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for n := range 200 {
				body := fmt.Sprintf("<h1>%d &amp; %d</h1>", worker, n)
				got, err := e.Extract(Page{ContentType: "text/html", Body: []byte(body)})
				want := fmt.Sprintf(`{"t":"%d & %d"}`, worker, n)
				if err != nil || len(got.Rows) != 1 || string(got.Rows[0]) != want {
					t.Errorf("got %s, %v, want %s", got.Rows, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("é", 257)
	many := make([]model.Field, 501)
	for _, c := range []struct {
		name   string
		recipe model.Recipe
		faults []string
	}{
		{"all well", recipe(model.SingleProduct, "a TEXT p", "_b EXISTS p", "c @data-x p",
			"date TEXT time"), nil},
		{"no fields", recipe(model.MultipleProducts), []string{"itemsConfig"}},
		{"too many fields", model.Recipe{Type: model.SingleProduct, Fields: many},
			[]string{"itemsConfig"}},
		{"no type", recipe("", "a TEXT p"), []string{"type"}},
		{"a type without folder", recipe(model.File, "a TEXT p"), []string{"type"}},
		{"names", recipe(model.SingleProduct, " TEXT p", "_ TEXT p", long+" TEXT p", "a TEXT p",
			"__a TEXT p", "$or TEXT p",
			long[:512]+" TEXT p", "a\x00 TEXT p", `a"b TEXT p`, `a\b TEXT p`),
			[]string{"itemsConfig[0].name", "itemsConfig[1].name", "itemsConfig[2].name",
				"itemsConfig[4].name",
				"itemsConfig[5].name", "itemsConfig[7].name", "itemsConfig[8].name",
				"itemsConfig[9].name"}},
		{"selectors", recipe(model.MultipleProducts, "a TEXT ", "b TEXT p[", "c TEXT //p[",
			"d TEXT p::before", "e TEXT p,",
			"f TEXT "+strings.Repeat("p ", 1025), "g TEXT p:foo",
			"h TEXT "+strings.Repeat(":not(", 50)),
			[]string{"itemsConfig[0].selector", "itemsConfig[1].selector",
				"itemsConfig[2].selector",
				"itemsConfig[3].selector", "itemsConfig[4].selector", "itemsConfig[5].selector",
				"itemsConfig[6].selector",
				"itemsConfig[7].selector"}},
		{"kinds and attributes", recipe(model.SingleProduct, "a HTML p", "b @ p", "c @x=y p"),
			[]string{"itemsConfig[0].kind", "itemsConfig[1].attr", "itemsConfig[2].attr"}},
		{"an attribute without ATTR", model.Recipe{Type: model.SingleProduct,
			Fields: []model.Field{{Name: "a", Selector: "p", Kind: model.Text, Attr: "href"}}},
			[]string{"itemsConfig[0].attr"}},
		{"several faults of one field, and the pagination's",
			model.Recipe{Type: model.SingleProduct, Fields: []model.Field{{}},
				Pagination: &model.Pagination{Type: model.NextLink, Selector: "a["}},
			[]string{"itemsConfig[0].name", "itemsConfig[0].selector", "itemsConfig[0].kind",
				"sourceConfig.pagination.selector"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range Validate(c.recipe) {
				got = append(got, f.Field)
				if want := fault.SchemaValidation; f.Code != want && f.Field != "type" ||
					f.Detail == "" {
					t.Errorf("%s: code %s, detail %q", f.Field, f.Code, f.Detail)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.faults) {
				t.Errorf("got %v, want %v", got, c.faults)
			}
			_, err := Compile(c.recipe)
			var list fault.List
			if (err != nil) != (len(c.faults) > 0) || err != nil && !errors.As(err, &list) {
				t.Errorf("Compile: %v", err)
			}
		})
	}
}
