package extract

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// Lists under headings form one list. Neither one item of each list nor the list under a single
// heading is a list of its own. A list with one item has items of the same shape as the others.
func TestDetectListsUnderHeadings(t *testing.T) {
	for name, sizes := range map[string][]int{"of many": {4, 9, 5, 12, 6, 7, 4, 8, 5, 11},
		"of one now and then": {1, 5, 2, 1, 4, 1, 3, 2, 1, 6, 1, 2}} {
		var page strings.Builder
		page.WriteString(`<title>Opinions</title><h1>Opinions</h1><div class="main">`)
		all := 0
		for day, size := range sizes {
			fmt.Fprintf(&page, `<p><b>Published on day %d:</b></p><ul>`, day)
			for range size {
				all++
				fmt.Fprintf(&page, `<li><a href="/o/%d.pdf">S%d. PERSON NUMBER %d v. THE STATE</a> - `+
					`on appeal</li>`, all, 100+all, all)
			}
			page.WriteString(`</ul>`)
		}
		got := proposalsOf(t, model.Recipe{}, "text/html", page.String()+`</div>`)
		if len(got) == 0 {
			t.Fatalf("%s: nothing is proposed", name)
		}
		recipe := got[0].Scraper.Recipe()
		made, err := mustCompile(t, recipe).Extract(Page{URL: "https://a.test/",
			Asked: "https://a.test/", ContentType: "text/html", Body: []byte(page.String())})
		if err != nil || len(made.Rows) != all {
			t.Errorf("%s: %d rows, %v, want %d", name, len(made.Rows), err, all)
		}
		if !strings.Contains(string(made.Rows[0]), "/o/1.pdf") {
			t.Errorf("%s: the first row is %s", name, made.Rows[0])
		}
	}
}

// The links of a card do not form a list when every card has the same number of them.
func TestDetectLinksOfCards(t *testing.T) {
	var page strings.Builder
	page.WriteString(`<title>Stories</title><h1>Stories</h1><ul>`)
	for i := range 12 {
		fmt.Fprintf(&page, `<li><span><a href="/story/%d">A story of %d things that happened</a></span>`+
			`<span><a href="/by/%d">Writer %d</a></span><span><a href="/on/%d">%d comments</a></span>`+
			`</li>`, i, i, i%5, i%5, i, 3*i)
	}
	got := proposalsOf(t, model.Recipe{}, "text/html", page.String())
	if len(got) == 0 || len(got[0].SampleData) != 12 {
		t.Errorf("%d proposals, the first has not 12 rows", len(got))
	}
}

// A long table of links to detail pages is the list, even below a text about it. A short one
// belongs to the text.
func TestDetectRowsBelowText(t *testing.T) {
	for rows, want := range map[int]model.ScraperType{20: model.MultipleProducts,
		5: model.SingleProduct} {
		var page strings.Builder
		page.WriteString(`<title>Published Opinions</title><h1>Published Opinions</h1>`)
		for i := range 5 {
			fmt.Fprintf(&page, `<p>These opinions are subject to motions and to revision before they `+
				`are published for good. Readers are asked to notify us of any error that they find, `+
				`so that it can be corrected in time, by the form of section %d.</p>`, i)
		}
		page.WriteString(`<table>`)
		for i := range rows {
			fmt.Fprintf(&page, `<tr><td>2026 ME %d</td><td><a href="/o/%d.pdf">State of Maine against `+
				`number %d and others</a></td><td>March %d, 2026</td></tr>`, i, i, i, 1+i)
		}
		got := proposalsOf(t, model.Recipe{}, "text/html", page.String()+`</table>`)
		if len(got) == 0 || got[0].Scraper.Type != want {
			t.Errorf("%d rows: %d proposals, the first is not %s", rows, len(got), want)
		}
	}
}

// The price of one stated thing does not make a page about it if the page states several.
func TestDetectSeveralStated(t *testing.T) {
	var page strings.Builder
	page.WriteString(`<title>Boat shoes</title><h1>Boat shoes</h1>`)
	for i := range 6 {
		fmt.Fprintf(&page, `<p>Boat shoes are worn on boats and on land, and they last for years if `+
			`they are kept dry. Most are of leather, by hand, and all of them have a sole that does `+
			`not slip, as number %d of our tests has shown.</p>`, i)
	}
	for i := range 80 {
		fmt.Fprintf(&page, `<div class="card" itemscope itemtype="https://schema.org/Product">`+
			`<b itemprop="name">Boat shoe number %d of leather, by hand</b><span itemprop="offers" itemscope `+
			`itemtype="https://schema.org/Offer"><i itemprop="price">%d.00</i></span></div>`, i, 80+i)
	}
	got := proposalsOf(t, model.Recipe{}, "text/html", page.String())
	if len(got) == 0 || got[0].Scraper.Type == model.SingleProduct {
		t.Errorf("%d proposals, the first is one thing", len(got))
	}
}
