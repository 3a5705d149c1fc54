package extract

import (
	"encoding/json"
	"testing"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestSchemaOfTheSyntheticWeb: some product pages name their data only in the names of elements.
// AI_CONF reads everything that they show and nothing else, in the types of the schema. It reads
// listings in the same way when the schema asks for many.
func TestSchemaOfTheSyntheticWeb(t *testing.T) {
	const one = `{"type":"object","properties":{"title":{"type":"string"},"price":{"type":"string"},"oldPrice":{"type":"string"},
		"currency":{"type":"string"},"sku":{"type":"string"},"availability":{"type":"string"},"brand":{"type":"string"},
		"gtin":{"type":"string"},"color":{"type":"string"},"rating":{"type":"number"}},"required":["title","price"]}`
	columns := map[string]string{"title": "title", "price": "price", "oldPrice": "was",
		"sku": "sku", "availability": "stock"}
	for name, kind := range map[string]struct {
		mix    synthweb.Mix
		schema string
	}{
		"product": {synthweb.Products(), one},
		"listing": {synthweb.Listings(), `{"type":"array","items":` + one + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			demo := synthweb.Demo()
			web, err := synthweb.Start(synthweb.Config{Names: demo.Names, PagesPerHost: 5,
				Mix: kind.mix, PageBytes: demo.PageBytes})
			if err != nil {
				t.Fatal(err)
			}
			defer web.Close()
			fetch, e := fetcher(t, web),
				mustCompile(t, model.Recipe{Type: model.AIConf, Schema: []byte(kind.schema)})
			wanted, found, right := 0, 0, 0
			for url := range web.URLs(5 * len(demo.Names)) {
				truth, err := web.Truth(url)
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range truth.Pages {
					if len(want.Rows) < 3 && name == "listing" {
						continue // too few items to be a list
					}
					got := withoutModel(t, e, fetch(want.URL))
					for i, row := range want.Rows {
						have := map[string]any{}
						if i < len(got) {
							have = got[i]
						}
						for field, truly := range columns {
							if row[truly] != nil {
								wanted++
							}
							if have[field] != nil && have[field] == row[truly] {
								right++
							} else if have[field] != row[truly] && found+right < 20 {
								t.Logf("%s row %d: %s is %v, want %v", want.URL, i, field,
									have[field], row[truly])
							}
						}
						found += len(have)
						if have["currency"] == "EUR" {
							found--
						}
					}
					found += len(got) - min(len(got), len(want.Rows))
				}
			}
			t.Logf("%d fields shown; recall %.2f %%, precision %.2f %%", wanted,
				100*float64(right)/float64(wanted), 100*float64(right)/float64(max(found, 1)))
			if right != wanted || found != right || wanted == 0 {
				t.Errorf("of %d fields %d were found, %d of them right", wanted, found, right)
			}
		})
	}
}

// withoutModel returns the rows of a page when no language model answers.
func withoutModel(t *testing.T, e *Extractor, p Page) []map[string]any {
	t.Helper()
	result, err := e.Extract(p)
	if err == nil && result.Ask != nil {
		result, err = e.Extract(p, Page{Code: fault.PageNoRows})
	}
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]map[string]any, len(result.Rows))
	for i, row := range result.Rows {
		if err := json.Unmarshal(row, &rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}
