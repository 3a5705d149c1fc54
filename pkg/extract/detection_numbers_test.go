package extract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// Numbered page links lead to the next page, however links tell the current number. Otherwise pages
// are counted. Unrelated numbers are ignored, and pagination ends on the last page.
func TestDetectNextByNumbers(t *testing.T) {
	const text = `/text()[number(translate(., ' [](){}|,.-–·•/` + "\u00a0%s" +
		`', '')) > 0]/following-sibling::a[1]`
	selector := func(css string) string { return `{"type":"NEXT_LINK","selector":` + css + `}` }
	byText := func(scope, words string) string {
		path, _ := json.Marshal("//" + scope + fmt.Sprintf(text, words))
		return selector(strings.ReplaceAll(string(path), `\u003e`, ">"))
	}
	for name, c := range map[string]struct{ query, links, want string }{
		"an item that is active": {"", `<ul class="pages"><li class="active"><a href="#">1</a></li>` +
			`<li><a href="/list?page=2">2</a></li></ul>`, selector(`".pages li.active + li > a"`)},
		"an item that says so in a link": {"", `<ol class="pages"><li><a href="/list" ` +
			`aria-current="page">1</a></li><li><a href="/list?page=2">2</a></li></ol>`,
			selector(`".pages li:has(a[aria-current]) + li > a"`)},
		"an item without a link": {"", `<ol class="pages"><li><i>1</i></li><li>` +
			`<a href="/list?page=2"><i>2</i></a></li></ol>`,
			selector(`".pages li:not(:has(a)) + li > a"`)},
		"signs between": {"", `<p class="pages"><em>1</em><i>, </i><a href="/list?page=2">2</a></p>`,
			selector(`".pages em ~ a"`)},
		"a text": {"?page=2", `<p class="pages"><a href="/list?page=1">1</a> 2 ` +
			`<a href="/list?page=3">3</a></p>`, byText(`p[@class='pages']`, "")},
		"a text with a word": {"", `<p id="pages">Page 1 <a href="/list?page=2">Page 2</a></p>`,
			byText(`p[@id='pages']`, "Page")},
		"items from one to another": {"", `<p>1-10 <a href="/list?start=11">11-20</a> ` +
			`<a href="/list?start=21">21-30</a></p>`, byText("p", "")},
		"a file of its own": {"", `<p class="pages"><b>1</b> <a href="/list-2.html">2</a></p>`,
			selector(`".pages b + a"`)},
		"a better link that cannot be told": {"", `<p class="n"><a href="/list?page=2">2</a> ` +
			`<a href="/list?page=3">3</a></p><p><a class="next" href="/list?page=2">go</a></p>`,
			selector(`".next"`)},
		"nothing, counted": {"", `<p class="pages"><a href="/list?page=1">1</a> ` +
			`<a href="/list?page=2">2</a> <a href="/list?page=3">3</a></p>`,
			`{"type":"URL_PAGE_PARAM","param":"page"}`},
		"nothing, from 0": {"", `<p class="pages"><a href="/list?p=0">1</a> ` +
			`<a href="/list?p=1">2</a> <a href="/list?p=2">3</a></p>`,
			`{"type":"URL_PAGE_PARAM","param":"p","start":0}`},
		"nothing, by items": {"", `<p class="pages"><a href="/list?from=20">2</a> ` +
			`<a href="/list?from=40">3</a></p>`,
			`{"type":"OFFSET_PARAM","param":"from","pageSize":20}`},
		"nothing, by items from 1": {"", `<p class="pages"><a href="/list?first=1">1</a> ` +
			`<a href="/list?first=11">2</a> <a href="/list?first=21">3</a></p>`,
			`{"type":"URL_PAGE_PARAM","param":"first","step":10}`},
		"nothing, by items from 1, few shown": {"", `<p class="pages"><a href="/list?first=13">2</a> ` +
			`<a href="/list?first=25">3</a></p>`,
			`{"type":"URL_PAGE_PARAM","param":"first","step":12}`},
		"nothing, by items from 1, all shown": {"", `<p class="pages"><a href="/list">1</a> ` +
			`<a href="/list?first=11">2</a> <a href="/list?first=91">10</a></p>`,
			`{"type":"URL_PAGE_PARAM","param":"first","step":10}`},
		"nothing, by items, as many as shown and one": {"", `<p class="pages">` +
			`<a href="/list?from=11">2</a> <a href="/list?from=22">3</a></p>`,
			`{"type":"OFFSET_PARAM","param":"from","pageSize":11}`},
		"nothing, by items from 1, not the first": {"?first=21", `<p class="pages">` +
			`<a href="/list?first=31">4</a> <a href="/list?first=41">5</a></p>`, "null"},
		"the last page": {"?page=3", `<p class="pages"><a href="/list?page=1">1</a> ` +
			`<a href="/list?page=2">2</a> 3</p>`, "null"},
		"how many are shown": {"", `<p>Show: <b>10</b> <a href="/list?n=20">20</a> ` +
			`<a href="/list?n=50">50</a></p>`, "null"},
		"days": {"", `<table><tr>` + strings.Repeat("<tr>"+strings.Repeat(`<td><a href="/list?page=3">`+
			`3</a></td>`, 6)+`<td class="current">2</td></tr>`, 5) + `</table>`, "null"},
		"sizes by a parameter": {"", `<p class="sizes"><a href="/list?size=1">1</a> ` +
			`<a href="/list?size=2">2</a> <a href="/list?size=3">3</a></p>`, "null"},
		"years": {"", `<p><a href="/list?y=2026">2026</a> <a href="/list?y=2025">2025</a></p>`,
			"null"},
		"sizes": {"", `<ul><li><a href="/list/1/">1</a></li><li><a href="/list/2/">2</a></li>` +
			`<li><a href="/list/3/">3</a></li></ul>`, "null"},
	} {
		got := proposalsAt(t, "https://shop.test/list"+c.query, "text/html", listBefore(c.links))
		if len(got) == 0 {
			t.Fatalf("%s: nothing is proposed", name)
		}
		pagination, err := json.Marshal(got[0].Scraper.SourceConfig.Pagination)
		if err != nil || strings.ReplaceAll(string(pagination), `\u003e`, ">") != c.want {
			t.Errorf("%s: %s, want %s", name, pagination, c.want)
		}
	}
}

// XPath finds what CSS cannot: the link that follows a number in plain text.
func TestNextBehindText(t *testing.T) {
	page := func(number int) string {
		links := ""
		for n := range 3 {
			if n+1 == number {
				links += fmt.Sprintf(" %d ", n+1)
			} else {
				links += fmt.Sprintf(` <a href="/list?page=%d">%d</a> `, n+1, n+1)
			}
		}
		return listBefore(`<p class="pages">Page: ` + links + `</p>`)
	}
	recipe := proposalsAt(t, "https://shop.test/list", "text/html", page(1))[0].Scraper.Recipe()
	extractor := mustCompile(t, recipe)
	for number, want := range map[int]string{1: "https://shop.test/list?page=2",
		2: "https://shop.test/list?page=3", 3: ""} {
		got, err := extractor.Extract(Page{URL: "https://shop.test/list?page=0",
			Asked: "https://shop.test/list?page=0", ContentType: "text/html",
			Body: []byte(page(number))})
		if err != nil || got.Next != want {
			t.Errorf("page %d leads to %q, %v, want %q", number, got.Next, err, want)
		}
	}
}

// A rel=next link in a page's head is followed only if its address can be that of a next page.
func TestDetectNextInHead(t *testing.T) {
	for address, want := range map[string]bool{"/list?page=2": true, "/list/page/2/": true,
		"/other-thing": false} {
		got := proposalsOf(t, model.Recipe{}, "text/html",
			`<link rel="next" href="`+address+`">`+listBefore(""))
		if found := got[0].Scraper.SourceConfig.Pagination != nil; found != want {
			t.Errorf("%s: the next page is found: %v, want %v", address, found, want)
		}
	}
}
