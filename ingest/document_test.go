package ingest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
)

func TestCompleteRows(t *testing.T) {
	at := time.Date(2026, 3, 1, 23, 4, 5, 67_900_000, time.FixedZone("", 3600)).UnixMicro()
	job := rowstore.Job{ID: id(1), Scraper: id(2)}
	const ids = `"_scrapedAt":"2026-03-01T22:04:05.067Z","_jobId":"000000000000000000000001",` +
		`"_scraperJobStatusId":"000000000000000000000001","_scraperId":"000000000000000000000002",` +
		`"_rowId":"AAAAAAAAAAAAAAAB`
	const first, second = ids + `BQIA"}`, ids + `BQIB"}`
	for name, c := range map[string]struct {
		page model.Page
		want []string
	}{
		"members, then the server's keys": {
			model.Page{URL: "http://a.test/", At: at,
				Rows: [][]byte{[]byte(`{"t":1}`), []byte(`{"t":2}`)}},
			[]string{`{"t":1,"_sourceUrl":"http://a.test/",` + first,
				`{"t":2,"_sourceUrl":"http://a.test/",` + second},
		},
		"an empty object": {
			model.Page{URL: "http://a.test/", At: at, Rows: [][]byte{[]byte(`{}`)}},
			[]string{`{"_sourceUrl":"http://a.test/",` + first},
		},
		"redirected": {
			model.Page{URL: "http://a.test/", Final: "http://b.test/", At: at,
				Rows: [][]byte{[]byte(`{}`)}},
			[]string{`{"_sourceUrl":"http://a.test/","_finalUrl":"http://b.test/",` + first},
		},
		"redirected to itself": {
			model.Page{URL: "http://a.test/", Final: "http://a.test/", At: at,
				Rows: [][]byte{[]byte(`{}`)}},
			[]string{`{"_sourceUrl":"http://a.test/",` + first},
		},
		"no rows": {model.Page{URL: "http://a.test/"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.page.Unit = model.Unit{Seq: 5, Page: 2}
			completeRows(&c.page, job)
			if len(c.page.Rows) != len(c.want) {
				t.Fatalf("%d rows, want %d", len(c.page.Rows), len(c.want))
			}
			for i, row := range c.page.Rows {
				if string(row) != c.want[i] {
					t.Errorf("row %d is\n%s, want\n%s", i, row, c.want[i])
				}
			}
		})
	}
}

// manyRows returns the rows of a page, which differ in each field.
func manyRows(rows, fields int) (made [][]byte) {
	for n := range rows {
		row := fmt.Sprintf(`{"n":%d`, n)
		for field := range fields - 1 {
			row += fmt.Sprintf(`,"field %d":"%d of %d"`, field, n, field)
		}
		made = append(made, []byte(row+"}"))
	}
	return made
}

// A page's sums are made from its rows as they came, however many these are. A page without rows,
// or with hundreds of fields, has none.
func TestSumRows(t *testing.T) {
	p := model.Page{Rows: [][]byte{[]byte(`{"t":1}`), []byte(`{"t":null,"_x":1}`)}}
	sumRows(&p, &profile.Sums{})
	sums, err := profile.Decode(p.Sums)
	if err != nil || sums.Rows != 2 || len(sums.Fields) != 1 || sums.Fields[0].Filled() != 1 {
		t.Errorf("%+v, %v", sums, err)
	}
	many := model.Page{Rows: manyRows(100, 12)}
	sumRows(&many, &profile.Sums{})
	sums, err = profile.Decode(many.Sums)
	if err != nil || sums.Rows != 100 || len(sums.Fields) != 12 ||
		sums.Fields[11].Filled() != 100 {
		t.Errorf("of many rows: %d bytes, %v", len(many.Sums), err)
	}
	var wide strings.Builder
	for n := range 500 {
		fmt.Fprintf(&wide, `,"a field of a long name %d":"%d"`, n, n)
	}
	long := model.Page{Rows: [][]byte{[]byte("{" + wide.String()[1:] + "}")}}
	if sumRows(&long, &profile.Sums{}); long.Sums != nil {
		t.Errorf("%d bytes of sums in a record", len(long.Sums))
	}
	none := model.Page{}
	if sumRows(&none, &profile.Sums{}); none.Sums != nil {
		t.Errorf("sums of nothing: %x", none.Sums)
	}
}

// BenchmarkSumRows measures what a page's sums cost, next to its completion.
func BenchmarkSumRows(b *testing.B) {
	row := []byte(`{"title":"A thing","price":"12.00","sku":"A-1","inStock":true,"image":"/a.png"}`)
	var sums profile.Sums
	for b.Loop() {
		sumRows(&model.Page{Rows: [][]byte{row}}, &sums)
	}
}

func BenchmarkSumManyRows(b *testing.B) {
	rows := manyRows(100, 12)
	var sums profile.Sums
	for b.Loop() {
		sumRows(&model.Page{Rows: rows}, &sums)
	}
}

// BenchmarkSumListing is BenchmarkSumRows for pages of a shop's list. Their rows differ, and no
// processor can learn them.
func BenchmarkSumListing(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var pages []*model.Page
	for range 500 {
		var p model.Page
		for range 24 {
			n := random.IntN(1_000_000)
			p.Rows = append(p.Rows, fmt.Appendf(nil, `{"title":"Lamp of oak, model %d",`+
				`"price":"%d.95","url":"https://shop.example/products/lamp-%d",`+
				`"image":"https://img.example/%d/%d.jpg","rating":"4.%d","brand":"Lumen %d",`+
				`"stock":"In stock","sku":"L-%06d"}`, n%97, n%500, n, n%31, n*7, n%10, n%3, n))
		}
		pages = append(pages, &p)
	}
	var sums profile.Sums
	for n := 0; b.Loop(); n++ {
		sumRows(pages[n%len(pages)], &sums)
	}
}

func BenchmarkCompleteRows(b *testing.B) {
	row := []byte(`{"title":"A thing","price":"12.00","sku":"A-1","inStock":true,"image":"/a.png"}`)
	for b.Loop() {
		p := model.Page{URL: "http://site-1.test/product/17", At: 1, Rows: [][]byte{row}}
		completeRows(&p, rowstore.Job{ID: id(1), Scraper: id(2)})
	}
}
