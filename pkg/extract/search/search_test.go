package search

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

var update = flag.Bool("update", false, "write the golden files anew")

const engines = `[
{"name":"searxng","url":"https://engine.test/search?format=json&q={query}","pageParam":"pageno"},
{"name":"html","url":"https://engine.test/html/?q={query}","pageParam":"s","pageStart":0,"pageStep":30,"ignoreRobots":true,"results":[
 {"name":"title","selector":".result__a","kind":"TEXT"},{"name":"url","selector":".result__a","kind":"ATTR","attr":"href"},
 {"name":"snippet","selector":".result__snippet","kind":"TEXT"},{"name":"kind","selector":".badge","kind":"TEXT"}]}]`

func parse(t testing.TB) []model.SearchEngine {
	t.Helper()
	list, err := ParseEngines([]byte(engines))
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	return list
}

func read(t testing.TB, r model.Recipe, p page.Page) ([][]byte, error) {
	t.Helper()
	m, faults := Compile(r)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var out rows.Writer
	_, err := m.Read([]page.Page{p}, &out)
	return out.Rows(), err
}

func TestPages(t *testing.T) {
	list := parse(t)
	for _, c := range []struct {
		file, url string
		engine    *model.SearchEngine
	}{
		{"searxng.json", "https://engine.test/search?format=json&q=oak+chair&pageno=3", &list[0]},
		{"page.html", "https://engine.test/html/?q=oak+chair&s=60", &list[1]},
	} {
		body, err := os.ReadFile("testdata/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(t, model.Recipe{Search: c.engine}, page.Page{URL: c.url, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		lines := append(bytes.Join(got, []byte("\n")), '\n')
		golden := "testdata/" + strings.Split(c.file, ".")[0] + ".golden"
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
			t.Errorf("%s: got\n%s\nwant\n%s", c.file, lines, want)
		}
	}
}

func TestNotSearXNG(t *testing.T) {
	for _, body := range []string{"<html>", `{"results":3}`, ""} {
		if _, err := read(t, model.Recipe{},
			page.Page{URL: "https://engine.test/",
				Body: []byte(body)}); fault.CodeOf(err) != fault.PageUnparsable {
			t.Errorf("%q: %v", body, err)
		}
	}
	if got, err := read(t, model.Recipe{},
		page.Page{URL: "https://engine.test/", Body: []byte(`{"results":[]}`)}); err != nil ||
		len(got) > 0 {
		t.Errorf("no results: %q, %v", got, err)
	}
	if _, faults := Compile(model.Recipe{Fields: []model.Field{{Name: "a"}}}); len(faults) != 1 ||
		faults[0].Field != "itemsConfig" {
		t.Errorf("fields: %v", faults)
	}
}

func TestAddress(t *testing.T) {
	list := parse(t)
	if got := Address(&list[0],
		"a&b=ü {query}"); got != "https://engine.test/search?format=json&q=a%26b%3D%C3%BC+%7Bquery%7D" {
		t.Error(got)
	}
}

func TestEnginesAreChecked(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":         `{}`,
		"unknown member":  `[{"name":"a","url":"https://e.test/?q={query}","x":1}]`,
		"no name":         `[{"url":"https://e.test/?q={query}"}]`,
		"bad name":        `[{"name":"A b","url":"https://e.test/?q={query}"}]`,
		"same name":       `[{"name":"a","url":"https://e.test/?q={query}"},{"name":"a","url":"https://e.test/?q={query}"}]`,
		"no query":        `[{"name":"a","url":"https://e.test/?q=x"}]`,
		"query in path":   `[{"name":"a","url":"https://e.test/{query}?q=1"}]`,
		"two queries":     `[{"name":"a","url":"https://e.test/{query}?q={query}"}]`,
		"no web":          `[{"name":"a","url":"file:///etc/passwd?q={query}"}]`,
		"pages alone":     `[{"name":"a","url":"https://e.test/?q={query}","pageStart":1}]`,
		"no step":         `[{"name":"a","url":"https://e.test/?q={query}","pageParam":"p","pageStep":0}]`,
		"title not first": `[{"name":"a","url":"https://e.test/?q={query}","results":[{"name":"url","selector":"a","kind":"ATTR","attr":"href"},{"name":"title","selector":"a","kind":"TEXT"}]}]`,
		"no url":          `[{"name":"a","url":"https://e.test/?q={query}","results":[{"name":"title","selector":"a","kind":"TEXT"}]}]`,
		"unknown field":   `[{"name":"a","url":"https://e.test/?q={query}","results":[{"name":"title","selector":"a","kind":"TEXT"},{"name":"x","selector":"a","kind":"TEXT"}]}]`,
		"bad selector":    `[{"name":"a","url":"https://e.test/?q={query}","results":[{"name":"title","selector":"[","kind":"TEXT"},{"name":"url","selector":"a","kind":"TEXT"}]}]`,
	} {
		if got, err := ParseEngines([]byte(text)); err == nil {
			t.Errorf("%s is taken: %+v", name, got)
		}
	}
}

// Whatever an engine answers, results have a title and a web address.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"searxng.json", "page.html"} {
		body, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	list := parse(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for i := range list {
			got, err := read(t, model.Recipe{Search: &list[i]},
				page.Page{URL: "https://engine.test/?q=x", Body: body})
			if err != nil {
				continue
			}
			for n, row := range got {
				var r Result
				if err := json.Unmarshal(row, &r); err != nil || r.Title == "" ||
					!strings.HasPrefix(r.URL, "http") || r.Position != n+1 {
					t.Errorf("%q gives %s: %v", body, row, err)
				}
			}
		}
	})
}
