package marketplace

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

var update = flag.Bool("update", false, "write the golden files anew")

var truths = regexp.MustCompile(`<!-- truth (.*) -->`)

// read makes the rows of a page by the plugin of a tag.
func read(t testing.TB, tag string, body []byte) [][]byte {
	t.Helper()
	m, faults := Compile(model.Recipe{Type: model.Marketplace, Endpoint: tag})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var out rows.Writer
	if _, err := m.Read([]page.Page{{URL: "https://shop.test/some/page?x=1", ContentType: "text/html", Body: body}}, &out); err != nil {
		t.Fatal(err)
	}
	return out.Rows()
}

// Pages as the systems' themes make them. What a page says of itself in a comment must be in its rows; all of the rows is
// in the golden file.
func TestPages(t *testing.T) {
	for folder, tag := range map[string]string{"pdp": "/plugin/marketplace/pdp", "search": "/plugin/marketplace/search"} {
		pages, err := filepath.Glob(filepath.Join("testdata", folder, "*.html"))
		if err != nil || len(pages) < 7 {
			t.Fatalf("%d pages of %s: %v", len(pages), folder, err)
		}
		for _, path := range pages {
			t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
				body, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				found := read(t, tag, body)
				var want []map[string]any
				if truth := truths.FindSubmatch(body); truth != nil {
					text := truth[1]
					if text[0] != '[' {
						text = []byte("[" + string(text) + "]")
					}
					if err := json.Unmarshal(text, &want); err != nil {
						t.Fatal(err)
					}
				}
				if len(found) != len(want) {
					t.Fatalf("%d rows, want %d: %s", len(found), len(want), bytes.Join(found, []byte("\n")))
				}
				for i, row := range found {
					var got map[string]any
					if err := json.Unmarshal(row, &got); err != nil {
						t.Fatalf("%s: %v", row, err)
					}
					for name, value := range want[i] {
						if !reflect.DeepEqual(got[name], value) {
							t.Errorf("row %d: %s is %v, want %v", i, name, got[name], value)
						}
					}
				}
				golden(t, strings.TrimSuffix(path, ".html")+".golden", append(bytes.Join(found, []byte("\n")), '\n'))
			})
		}
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCompile(t *testing.T) {
	for _, c := range []struct {
		recipe model.Recipe
		field  string
	}{
		{model.Recipe{}, ""}, {model.Recipe{Endpoint: "/plugin/marketplace/search"}, ""},
		{model.Recipe{Endpoint: "/plugin/other"}, "config.endpointTag"},
		{model.Recipe{Fields: []model.Field{{Name: "a"}}}, "itemsConfig"},
	} {
		_, faults := Compile(c.recipe)
		if c.field == "" && len(faults) > 0 || c.field != "" && (len(faults) != 1 || faults[0].Field != c.field) {
			t.Errorf("%+v: %v", c.recipe, faults)
		}
	}
}

func TestOtherMedia(t *testing.T) {
	m, _ := Compile(model.Recipe{})
	var out rows.Writer
	for _, p := range []page.Page{{URL: "https://shop.test/", ContentType: "application/pdf", Body: []byte("%PDF")},
		{URL: "https://shop.test/", Body: []byte(`{"a":1}`)}} {
		if _, err := m.Read([]page.Page{p}, &out); fault.CodeOf(err) != fault.PageNotHTML {
			t.Errorf("%q: %v", p.ContentType, err)
		}
	}
}

// Whatever a page holds, rows are JSON objects with a title.
func FuzzRead(f *testing.F) {
	for _, folder := range []string{"pdp", "search"} {
		pages, err := filepath.Glob(filepath.Join("testdata", folder, "*.html"))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range pages {
			body, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 1<<16 || strings.Count(string(body), "<") > 2_000 {
			return
		}
		for _, tag := range Tags() {
			m, _ := Compile(model.Recipe{Endpoint: tag})
			var out rows.Writer
			if _, err := m.Read([]page.Page{{URL: "https://shop.test/", ContentType: "text/html", Body: body}}, &out); err != nil {
				continue // too deep
			}
			for _, row := range out.Rows() {
				var got map[string]any
				if err := json.Unmarshal(row, &got); err != nil || got["title"] == nil {
					t.Errorf("%q gives %q: %v", body, row, err)
				}
			}
		}
	})
}
