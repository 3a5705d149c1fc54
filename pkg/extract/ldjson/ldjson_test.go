package ldjson

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

var update = flag.Bool("update", false, "write the golden files anew")

func read(t testing.TB, r model.Recipe, p page.Page) ([][]byte, error) {
	t.Helper()
	maker, faults := Compile(r)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var out rows.Writer
	out.Reset()
	_, err := maker.Read([]page.Page{p}, &out)
	return out.Rows(), err
}

// TestGoldenPages compares a page's rows with its golden file, by the recipe beside it if any.
func TestGoldenPages(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.html")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	for _, path := range pages {
		base := strings.TrimSuffix(path, ".html")
		t.Run(filepath.Base(base), func(t *testing.T) {
			r := model.Recipe{Type: model.ApplicationLDJSON}
			if text, err := os.ReadFile(base + ".json"); err == nil {
				if err := json.Unmarshal(text, &r); err != nil {
					t.Fatal(err)
				}
			}
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(t, r,
				page.Page{URL: "https://x.example/p/", ContentType: "text/html", Body: body})
			if err != nil {
				t.Fatal(err)
			}
			text := append(bytes.Join(got, []byte("\n")), '\n')
			golden := base + ".golden"
			if *update {
				if err := os.WriteFile(golden, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(text, want) {
				t.Errorf("got\n%s\nwant\n%s", text, want)
			}
			for _, row := range got {
				if !json.Valid(row) {
					t.Errorf("not JSON: %s", row)
				}
			}
		})
	}
}

func TestDocuments(t *testing.T) {
	r := model.Recipe{Type: model.ApplicationLDJSON}
	for _, c := range []struct {
		media, body, want string
		code              fault.Code
	}{
		{"application/ld+json", `{"@type":"Product","name":"A"}`, `{"type":"Product","name":"A"}`,
			""},
		{"application/ld+json", `{"@type":"Product","price":"9","pri\u202ece":"1","a\u2066b":2}`,
			`{"type":"Product","price":"9","ab":2}`, ""},
		{"application/ld+json", `{"@type":"Product","offers":[{"price":"9","pri\u202ece":"1",` +
			`"_price":"2","@type":"Offer"},{"\u2066id":3,"@id":"https://x.example/i"}]}`,
			`{"type":"Product","offers":[{"type":"Offer","price":"9"},` +
				`{"id":"https://x.example/i"}],"offers_price":"9"}`, ""},
		{"application/ld+json", `{"@type":"Product","name":"A","` + strings.Repeat("obey me ", 30) +
			`":1}`, `{"type":"Product","name":"A","` + strings.Repeat("obey me ", 12) + `obey":1}`, ""},
		{"application/json; charset=utf-8", `[{"@type":"Product","name":"A"}]`,
			`{"type":"Product","name":"A"}`, ""},
		{"", `<script type="application/ld+json">{"@type":"Product","name":"A"}</script>`,
			`{"type":"Product","name":"A"}`, ""},
		{"text/html", `<p>nothing</p>`, ``, ""},
		{"text/html", `<script type="application/ld+json">{"@type":"Product"}</script>`, ``, ""},
		{"image/png", `x`, ``, fault.PageNotHTML},
		{"", `plain`, ``, fault.PageNotHTML},
		{"text/html", strings.Repeat("<div>", 600), ``, fault.PageUnparsable},
		{"application/json", `{"@type":"Product","name":"` + strings.Repeat("x", rows.MaxRowBytes) +
			`"}`, ``, fault.PageRowTooLarge},
		{"application/json", `{"@type":"Product","offers":[{"a":1},{"name":"` + strings.Repeat("x",
			rows.MaxRowBytes) + `"}]}`, ``, fault.PageRowTooLarge},
	} {
		got, err := read(t, r,
			page.Page{URL: "https://x.example/", ContentType: c.media, Body: []byte(c.body)})
		if text := string(bytes.Join(got, []byte("\n"))); text != c.want ||
			fault.CodeOf(err) != c.code {
			t.Errorf("%s %.60q: %.200s, %v; want %s %s", c.media, c.body, text, err, c.want, c.code)
		}
	}
}

func TestFieldsRefused(t *testing.T) {
	_, faults := Compile(model.Recipe{Fields: []model.Field{
		{Name: "", Selector: "a", Kind: model.Text},
		{Name: "a", Selector: "a", Kind: model.Attr, Attr: "href"},
		{Name: "b", Selector: "a..b", Kind: model.Text},
		{Name: "b", Selector: "$", Kind: model.Exists},
		{Name: "c", Selector: "a[?(@.b)]", Kind: model.Text},
		{Name: "d", Selector: "a[0][1]", Kind: model.Text},
		{Name: "e", Selector: "[0]", Kind: model.Text},
		{Name: "f", Selector: "a[", Kind: model.Text},
		{Name: "g", Selector: "a[-1]", Kind: model.Text},
	}})
	var got []string
	for _, f := range faults {
		got = append(got, f.Field)
	}
	want := "itemsConfig[0].name itemsConfig[1].kind itemsConfig[1].attr " +
		"itemsConfig[2].selector itemsConfig[3].name " +
		"itemsConfig[3].selector itemsConfig[4].selector itemsConfig[5].selector " +
		"itemsConfig[6].selector " +
		"itemsConfig[7].selector itemsConfig[8].selector"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, " "), want)
	}
}

// TestReferencesInCircles: items that refer to each other in every way end in rows of bounded size.
func TestReferencesInCircles(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `{"@type":"Product","@id":"#%d","name":"%d","isRelatedTo":[`, i, i)
		for j := range 40 {
			fmt.Fprintf(&b, `{"@id":"#%d"},`, j)
		}
		b.WriteString(`]},`)
	}
	_, err := read(t, model.Recipe{},
		page.Page{ContentType: "application/json", Body: []byte("[" + b.String() + "]")})
	if fault.CodeOf(err) != fault.PageRowTooLarge {
		t.Errorf("%v", err)
	}
}

// TestSharedThings: a thing shared by references costs for each thing that shares it, up to a
// bound. This holds for written columns, for omitted ones, and for a path that goes in circles.
func TestSharedThings(t *testing.T) {
	share := func(n int, shared string) string {
		var b strings.Builder
		b.WriteString(`[{"@type":"Thing","@id":"#s","x":` + shared + `}`)
		for i := range n {
			fmt.Fprintf(&b, `,{"@type":"Product","name":"%d","x":{"@id":"#s"}}`, i)
		}
		return b.String() + "]"
	}
	unnamed := "" // each of its values leads to 20 others, and none makes a column
	for i := range 15 {
		unnamed += fmt.Sprintf(`,{"@id":"#%d","_":[%s]}`, i,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"@id":"#%d"},`, i+1), 20), ","))
	}
	field := func(selector string) model.Recipe {
		return model.Recipe{Fields: []model.Field{
			{Name: "a", Selector: selector, Kind: model.Text}}}
	}
	circle := `[{"@id":"#a","@type":"Product","name":"n","x":[{"@id":"#a"},{"@id":"#a"}]}]`
	for _, c := range []struct {
		name, body string
		recipe     model.Recipe
		code       fault.Code
	}{
		{"many small", share(1_000, `"y"`), field("name"), ""},
		{"a large text", share(150, `"`+strings.Repeat("y", 900_000)+`"`), field("name"),
			fault.PageTooCostly},
		{"names that repeat", share(10_000, `[`+strings.Repeat(
			`{"@type":"PropertyValue","name":"y","value":1},`, 20_000)+`]`), field("name"),
			fault.PageTooCostly},
		{"the same row", share(2_000, `[`+strings.Repeat(`"yyyyyyyy",`, 20_000)+`]`),
			field("$.x.x[*]"), fault.PageTooCostly},
		{"members without a name", `[{"@type":"Product","name":"n","x":[{"@id":"#0"},1]}` + unnamed +
			`]`, model.Recipe{}, ""},
		{"a circle", circle, field("$" + strings.Repeat(".x[*]", 60)), fault.PageRowTooLarge},
		{"a circle that ends", circle, field("$" + strings.Repeat(".x[*]", 60) + ".y"),
			fault.PageRowTooLarge},
		{"one way in a circle", circle, field("$" + strings.Repeat(".x[0]", 60) + ".name"), ""},
	} {
		got, err := read(t, c.recipe,
			page.Page{ContentType: "application/json", Body: []byte(c.body)})
		if fault.CodeOf(err) != c.code || err == nil && len(got) == 0 {
			t.Errorf("%s: %d rows, %v; want %q", c.name, len(got), err, c.code)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"@graph":[{"@type":"Product","@id":"#p","offers":[{"@id":"#p"},{"price":1}]},{"@type":"ItemList","itemListElement":[{"item":{"@id":"#p"},"position":"01"}]}]}`), "offers[*].price")
	f.Add([]byte(`{"@type":"ProductGroup","hasVariant":[{"a":1}],"additionalProperty":[{"@type":"PropertyValue","name":"x","value":[1,2]}]}`), "$['a'][0]")
	f.Fuzz(func(t *testing.T, body []byte, selector string) {
		p := page.Page{URL: "https://x.example/", ContentType: "application/json", Body: body}
		recipes := []model.Recipe{{HiddenData: true},
			{Fields: []model.Field{{Name: "a", Selector: selector, Kind: model.Text}}}}
		for _, r := range recipes {
			if _, faults := Compile(r); len(faults) > 0 {
				continue
			}
			got, err := read(t, r, p)
			if err != nil && fault.CodeOf(err) != fault.PageRowTooLarge &&
				fault.CodeOf(err) != fault.PageTooCostly {
				t.Fatal(err)
			}
			for _, row := range got {
				var members map[string]json.RawMessage // keeps numbers as written, however large
				if err := json.Unmarshal(row, &members); err != nil {
					t.Fatalf("%s: %v", row, err)
				}
				for name := range members {
					if name == "" || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "$") {
						t.Fatalf("column %q in %s", name, row)
					}
				}
			}
		}
	})
}
