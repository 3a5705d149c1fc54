package aiconf

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract/internal/page"
)

const articleSchema = `{"properties":{"title":{"type":"string"},"author":{"type":"string"},` +
	`"datePublished":{"type":"string","format":"date"},"articleBody":{"type":"string"}},` +
	`"required":["title"]}`

// TestArticleAsShown: an article without stated data is read as its reader sees it.
func TestArticleAsShown(t *testing.T) {
	prose := strings.Repeat("The bridge over the river has opened, and many came to see it. ", 6)
	body := `<html lang="de"><title>The new bridge opens - The Wire</title>
		<meta property="og:site_name" content="The Wire"><h1>The Wire</h1><nav><a href="/">Home</a></nav>
		<article><h1>The new bridge opens</h1><p>Von Ann Lee</p><p>3. März 2026</p><p>` + prose +
		`</p><figure><img src="a.png"><figcaption>Photo: Bo Ek</figcaption></figure><p>` + prose +
		`</p><h3>More</h3><p><a href="/b">The old bridge closes</a></p></article>`
	_, rows := read(t, compile(t, articleSchema), page.Page{URL: "https://wire.example/a",
		ContentType: "text/html", Body: []byte(body)}, unavailable)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	got := string(rows[0])
	for _, want := range []string{`"title":"The new bridge opens"`, `"author":"Ann Lee"`,
		`"datePublished":"2026-03-03"`, `"articleBody":"`, "The bridge over the river"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	for _, other := range []string{"Photo: Bo Ek", "The old bridge closes"} {
		if strings.Contains(got, other) {
			t.Errorf("%s in %s", other, got)
		}
	}
}

// TestListIsNoProduct: a list's title with the first item's price does not make a row.
func TestListIsNoProduct(t *testing.T) {
	body := `<title>Chairs</title><meta property="og:title" content="All our chairs"><h1>Chairs</h1><ul>`
	for i := range 12 {
		body += fmt.Sprintf(`<li class="card"><a href="/chair/%d"><h2>Chair number %d</h2></a>`+
			`<p class="price">€ %d.50</p></li>`, i, i, 10+i)
	}
	const schema = `{"properties":{"title":{"type":"string"},"price":{"type":"number"}}}`
	_, rows := read(t, compile(t, schema), page.Page{URL: "https://shop.example/chairs?page=2",
		ContentType: "text/html", Body: []byte(body)}, unavailable)
	if len(rows) != 0 {
		t.Errorf("%s", rows)
	}
}

func TestDayIn(t *testing.T) {
	for text, want := range map[string]string{
		"05. Mrz. 2026": "2026-03-05", "5. Jänner 2026": "2026-01-05",
		"5.Mar.2026": "2026-03-05", "2026. 03. 05.": "2026-03-05",
		"5 iulie 2026": "2026-07-05", "5. ožujka 2026.": "2026-03-05",
		"5. lipnja 2026.": "2026-06-05", "5 lipca 2026": "2026-07-05",
		"5. srpna 2026": "2026-08-05", "5 березня 2026": "2026-03-05",
		"5 жовтня 2026": "2026-10-05", "5 Agustus 2026": "2026-08-05",
		"Ngày 5 tháng 3 năm 2026": "2026-03-05", "5 مارس 2026": "2026-03-05",
		"5 मार्च 2026": "2026-03-05", "2026 m. kovo 5 d.": "2026-03-05",
		"27. Januar 2020": "2020-01-27", "Fr, 18. Oktober 2019": "2019-10-18",
		"3 de marzo de 2021": "2021-03-03", "21 juin 2018": "2018-06-21",
		"2 července 2021": "2021-07-02", "March 3rd, 2021": "2021-03-03",
		"2020. január 5.": "2020-01-05", "2021年3月4日": "2021-03-04", "4.5.21": "2021-05-04",
		"14 мая 2019 г.": "2019-05-14", "2019-10-16T10:00": "2019-10-16",
		"26 | 01 | 2022": "2022-01-26", "3/4/2020": "2020-04-03",
		"25/12/2020": "2020-12-25", "12/25/2020": "2020-12-25",
		"Mon Aug 03 12:45:00 EDT 2015":   "2015-08-03",
		"Wed Apr 08 23:10:00 +0530 2020": "2020-04-08",
		"31.02.2020":                     "", "Room 12 of 2020": "", "10 2020": "",
	} {
		if got := dayIn(text, false); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	if got := dayIn("3/4/2020", true); got != "2020-03-04" {
		t.Errorf("month first: %s", got)
	}
}

func TestBylined(t *testing.T) {
	for text, want := range map[string]string{
		"By Ann Lee": "Ann Lee", "von Birgit Posselt": "Birgit Posselt",
		"29. Juni 2017, 23:39 · von Tobi":      "Tobi",
		"Von Tomas Spahn Fr, 18. Oktober 2019": "Tomas Spahn",
		"Ludwig von Beethoven":                 "Ludwig von Beethoven",
		"https://www.facebook.com/somebody":    "", "@account": "",
		// a day before the name, or alone
		"Dec 15, 2016, 1:55pm EST": "", "4. November 2021 4. November 2021": "",
		"Wednesday January 18, 2017 2:13 PM PST by Ann Lee": "Ann Lee",
		"Updated: 3 May 2026 - By Ann Lee":                  "Ann Lee",
		// words for a day that is elsewhere
		"Ann Lee / TNN / Updated:":       "Ann Lee",
		"Ann Lee Published February":     "Ann Lee",
		"Ann Lee Donnerstag":             "Ann Lee",
		"Ann Lee, Published, Bo Ek":      "Ann Lee",
		"Published Works of Ann Lee":     "Published Works of Ann Lee",
		"03:07 Min.":                     "",
		"About the Author":               "",
		"Ann Lee Twitter | Facebook":     "Ann Lee",
		"Ann Lee (Bruxelles, bureau UE)": "Ann Lee",
		// offices and places
		"By Ann Lee, Political Editor, BBC News":   "Ann Lee",
		"Ann Lee, Bo Ek, senior reporters":         "Ann Lee, Bo Ek",
		"Ann Lee and Bo Ek, Washington bureau":     "Ann Lee and Bo Ek",
		"Ann Lee, Mykolo universiteto profesorius": "Ann Lee",
		"Ann Lee, Bo Ek":                           "Ann Lee, Bo Ek",
		"Business Reporter, The Wire":              "Business Reporter, The Wire",
		"ByAnn Lee":                                "Ann Lee",
		"Byron Lee":                                "Byron Lee",
	} {
		if got := bylined(text); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}
