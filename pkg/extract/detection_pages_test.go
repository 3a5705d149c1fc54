package extract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// TestDetectNextInLanguages: the next link is recognized by its text in many languages.
func TestDetectNextInLanguages(t *testing.T) {
	for language, said := range map[string]string{"en": "Next page", "de": "Nächste Seite »",
		"fr": "Page suivante", "es": "Siguiente ›", "pt": "Próxima página", "it": "Successiva",
		"nl": "Volgende", "da": "Næste", "nb": "Neste side", "sv": "Nästa", "fi": "Seuraava",
		"pl": "Następna strona", "cs": "Další", "sk": "Ďalšia",
		"hu": "Következő", "ro": "Următoarea",
		"hr": "Sljedeća", "sl": "Naslednja stran", "sr": "Следећа", "bg": "Следваща",
		"ru": "Следующая",
		"uk": "Наступна", "el": "Επόμενη", "tr": "Sonraki", "lt": "Kitas", "lv": "Nākamā",
		"et": "Järgmine", "ca": "Següent", "eu": "Hurrengoa", "is": "Næsta síða", "ja": "次へ",
		"zh": "下一页", "ko": "다음", "ar": "التالي", "fa": "صفحه بعد", "he": "הבא", "hi": "अगला",
		"mr": "पुढील", "bn": "পরবর্তী", "th": "ถัดไป", "vi": "Trang sau", "id": "Selanjutnya",
		"ms": "Seterusnya", "fil": "Susunod", "sw": "Ukurasa unaofuata", "ka": "შემდეგი",
		"hy": "Հաջորդ", "az": "Növbəti səhifə"} {
		var page strings.Builder
		fmt.Fprintf(&page, `<html lang="%s"><title>Chairs</title><h1>Chairs</h1><div>`, language)
		for i := range 9 {
			fmt.Fprintf(&page, `<div class="card"><h3><a href="/chair/%d">Chair number %d</a></h3>`+
				`<p class="price">€ %d.50</p></div>`, i, i, 20+i)
		}
		fmt.Fprintf(&page, `</div><p><a href="/other">X</a> <a href="/list?page=2">%s</a></p>`, said)
		got := proposalsOf(t, model.Recipe{}, "text/html", page.String())
		if len(got) == 0 {
			t.Fatalf("%s: nothing is proposed", language)
		}
		p := got[0].Scraper.SourceConfig.Pagination
		if p == nil || p.Type != model.NextLink {
			t.Errorf("%s: %+v", language, p)
			continue
		}
		made, err := mustCompile(t, got[0].Scraper.Recipe()).Extract(Page{
			URL: "https://shop.test/list?page=1", ContentType: "text/html", Body: []byte(page.String())})
		if err != nil || made.Next != "https://shop.test/list?page=2" {
			t.Errorf("%s: %q leads to %q: %v", language, p.Selector, made.Next, err)
		}
	}
}

// TestDetectNextBySigns: a link to the next page may show a number, a picture or an icon. Links
// that lead back are not followed.
func TestDetectNextBySigns(t *testing.T) {
	for name, c := range map[string]struct{ links, want string }{
		"results counted": {`<a href="/list?page=2">Next 20 results</a>`,
			`a:matches(^\s*Next\s+[0-9]+\s+results\s*$)`},
		"a page named": {`<a href="/list?page=2">Nächste Seite (2)</a>`,
			`a:matches(^\s*Nächste\s+Seite\s+\([0-9]+\)\s*$)`},
		"a picture": {`<a href="/list?page=2"><img src="n.gif" alt="Page suivante"></a>`,
			`a:has(img[alt="Page suivante"])`},
		"an icon": {`<p class="pager"><a href="/list?page=2"><i class="fa fa-angle-right"></i></a></p>`,
			`.pager a:has(i.fa-angle-right)`},
		"a picture's file": {`<a href="/list?page=2"><img src="/i/arrow_right.png" alt=""></a>`,
			`a:has(img[src$="arrow_right.png"])`},
		"a label of a cursor": {`<a href="/list?after=abc" aria-label="Next page"><svg></svg></a>`,
			`a[aria-label="Next page"]`},
		"more of them": {`<a href="/list?page=2">More articles</a>`,
			`a:matches(^\s*More\s+articles\s*$)`},
		"an icon of the last page": {`<p class="pager"><a href="/list?page=9">` +
			`<i class="fa fa-angle-double-right"></i></a></p>`, ""},
		"an icon that leads back": {`<p dir="rtl"><a href="/list?page=1"><i class="arrow-right"></i></a></p>`, ""},
		"a page before":           {`<p><a rel="prev" href="/list?page=9"><i class="arrow-right"></i></a></p>`, ""},
	} {
		var page strings.Builder
		page.WriteString(`<title>Chairs</title><h1>Chairs</h1><div>`)
		for i := range 9 {
			fmt.Fprintf(&page, `<div class="card"><h3><a href="/chair/%d">Chair number %d</a></h3>`+
				`<p class="price">€ %d.50</p></div>`, i, i, 20+i)
		}
		got := proposalsOf(t, model.Recipe{}, "text/html", page.String()+"</div>"+c.links)
		if len(got) == 0 {
			t.Fatalf("%s: nothing is proposed", name)
		}
		followed := ""
		if p := got[0].Scraper.SourceConfig.Pagination; p != nil && p.Type == model.NextLink {
			followed = p.Selector
		}
		if followed != c.want {
			t.Errorf("%s: %q, want %q", name, followed, c.want)
		}
	}
}

// TestDetectCountingJSON: if a body names no next page, its address's parameter is counted up.
func TestDetectCountingJSON(t *testing.T) {
	body := `{"items":[{"id":1,"title":"A"},{"id":2,"title":"B"}]}`
	for address, want := range map[string]string{
		"https://api.test/list?page=1":              `{"type":"URL_PAGE_PARAM","param":"page"}`,
		"https://api.test/list?offset=40&limit=20":  `{"type":"OFFSET_PARAM","param":"offset","pageSize":20}`,
		"https://api.test/list?page=first&offset=x": "null",
		"https://api.test/list":                     "null",
	} {
		for _, p := range proposalsAt(t, address, "application/json", body)[:1] {
			pagination, err := json.Marshal(p.Scraper.SourceConfig.Pagination)
			if err != nil || string(pagination) != want {
				t.Errorf("%s: %s, want %s", address, pagination, want)
			}
		}
	}
}

// TestDetectLeavesOutConstants: columns that are the same in all items, or empty, are left out.
func TestDetectLeavesOutConstants(t *testing.T) {
	var cards, rows, objects []string
	for i := range 6 {
		cards = append(cards, fmt.Sprintf(`<div class="card"><h3><a href="/c/%d">Chair number %d</a>`+
			`</h3><span class="brand">Acme</span><p class="price">€ 5.00</p>`+
			`<span class="stock">in stock</span></div>`, i, i))
		rows = append(rows, fmt.Sprintf(`<tr><td>Chair number %d</td><td>%d kg</td><td>wood</td>`+
			`<td></td></tr>`, i, 20+i))
		objects = append(objects, fmt.Sprintf(`{"title":"Chair number %d","kind":"chair",`+
			`"note":"","tags":[],"price":5,"currency":"EUR","weight":%d}`, i, 20+i))
	}
	for name, c := range map[string]struct{ media, body, want string }{
		"cards": {"text/html", `<title>Chairs</title><h1>Chairs</h1>` + strings.Join(cards, ""),
			"title price url availability"},
		"a table": {"text/html", `<title>Chairs</title><h1>Chairs</h1><table><tr><th>Name</th>` +
			`<th>Weight</th><th>Made of</th><th>Note</th></tr>` + strings.Join(rows, "") +
			`</table>`, "Name Weight"},
		"JSON": {"application/json", `[` + strings.Join(objects, ",") + `]`,
			"title price currency weight"},
	} {
		var names []string
		for _, f := range proposalsOf(t, model.Recipe{}, c.media, c.body)[0].Scraper.ItemsConfig {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestDetectTableInText: a table of long cells is a list, even with text beside it.
func TestDetectTableInText(t *testing.T) {
	var page strings.Builder
	page.WriteString(`<title>Opinions</title><div class="main">These are our opinions.<h1>Opinions</h1>
		<table>`)
	for i := range 60 {
		fmt.Fprintf(&page, `<tr><td><a href="/o/%d.pdf">People against Lee, number %d</a></td><td>%d`+
			` May 2026, of the judges of the first district, with one dissent</td></tr>`, i, i, 1+i%28)
	}
	page.WriteString(`</table></div>`)
	if got := proposalsOf(t, model.Recipe{}, "text/html", page.String()); len(got) == 0 ||
		got[0].Scraper.Type != model.MultipleProducts {
		t.Errorf("%+v", got)
	}
}

// TestManyShownItems: AI_CONF takes all repeated items of a page, however many there are.
func TestManyShownItems(t *testing.T) {
	const many = 450
	var page strings.Builder
	page.WriteString(`<title>Chairs</title><h1>Chairs</h1><div>`)
	for i := range many {
		fmt.Fprintf(&page, `<div class="card"><h3><a href="/c/%d">Chair number %d</a></h3>`+
			`<p class="price">€ %d.50</p></div>`, i, i, 20+i)
	}
	got, err := mustCompile(t, model.Recipe{Type: model.AIConf, HiddenData: true,
		Schema: []byte(`{"type":"array","items":{"properties":{"title":{"type":"string"},` +
			`"price":{"type":"number"}}}}`)}).Extract(Page{URL: "https://shop.test/chairs",
		ContentType: "text/html", Body: []byte(page.String())}, Page{Code: "PAGE_TIMEOUT"})
	if err != nil || len(got.Rows) != many {
		t.Fatalf("%d rows: %v", len(got.Rows), err)
	}
	if last := string(got.Rows[many-1]); last != `{"title":"Chair number 449","price":469.50}` {
		t.Error(last)
	}
}
