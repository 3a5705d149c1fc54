package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/browser"
)

// hostilePages are pages that would run code, load resources, navigate away or break out, if they
// could. EVIL is an address that must never get a request.
var hostilePages = []string{
	`<script>parent.document.title='taken'</script><img src=EVIL/i onerror="parent.document.title='taken'">`,
	`<svg onload="parent.document.title='taken'"><style><img src=EVIL/s onerror=1></style>` +
		`<a xlink:href="javascript:1">in a drawing</a><script>1</script></svg><p>behind`,
	`<p>before<math><mtext><table><mglyph><style><!--</style><img title="--&gt;<img src=EVIL/m onerror=1>">`,
	`<base href=EVIL/b><meta http-equiv=refresh content="0;url=EVIL/r"><link rel=stylesheet href=EVIL/l>` +
		`<link rel=prefetch href=EVIL/p><p>based`,
	`<style>@import 'EVIL/c'; *{background:url(EVIL/d)} input[value^=a]{background:url(EVIL/a)}` +
		`</style><p style="position:fixed;inset:0;background:url(EVIL/e)">styled<input value=abc>`,
	`<iframe src=EVIL/f srcdoc="<script>1</script>"></iframe><object data=EVIL/o></object>` +
		`<embed src=EVIL/g><video src=EVIL/v poster=EVIL/w autoplay></video><p>framed`,
	`<form action=EVIL/h><input name=a><button formaction=EVIL/j>Send</button></form>` +
		`<a href="javascript:parent.document.title='taken'" ping=EVIL/k target=_top>Away</a>`,
	"<p>\u202eturned\u2066\u0007\u0001\u200b</p><p>" + strings.Repeat("\u0301", 5_000) + "</p>",
	strings.Repeat("<div>", 400) + "deep", strings.Repeat("<p>many</p>", 30_000),
	"<p>" + strings.Repeat("<i>long "+strings.Repeat("x", 1_000)+"</i>", 5_000),
	`<plaintext><p>plain`, `<noscript><p title="</noscript><img src=EVIL/n>">quiet</noscript><p>x`,
	`<template shadowrootmode=open><slot></slot><script>1</script></template><p>shadowed`,
	`<p id=content class="skip" role=alert aria-label=x tabindex=9 autofocus contenteditable>marked`,
}

// newHostile serves hostile pages, /0 to /14. evil returns the requests to the EVIL address.
func newHostile(t *testing.T) (address string, evil func() []string) {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Path)
	}))
	t.Cleanup(other.Close)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var number int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &number); err != nil ||
			number >= len(hostilePages) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>x</title>"+
			strings.ReplaceAll(hostilePages[number], "EVIL", other.URL)+"<h2>The end</h2>")
	}))
	t.Cleanup(site.Close)
	return site.Listener.Addr().String(), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
}

// frame is the document of the shown page.
const frame = `document.querySelector("iframe.page").contentDocument`

// clicksIn clicks the element of the shown page with a text.
func (p *person) clicksIn(text string) {
	p.t.Helper()
	at := fmt.Sprintf(`[...%s.querySelectorAll("body *")].find(e => e.textContent.trim() === %q &&
		!e.firstElementChild)`, frame, text)
	p.sees(at)
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(%s.scrollIntoView(), undefined)`, at)))
	spot := asks[[]float64](p, fmt.Sprintf(`(() => { const e = %s.getBoundingClientRect(),
		f = document.querySelector("iframe.page").getBoundingClientRect();
		return [f.x + e.x + e.width / 2, f.y + e.y + e.height / 2]; })()`, at))
	p.do(chromedp.MouseClickXY(spot[0], spot[1]))
}

// TestBuilderInABrowser follows a person who picks fields. Clicks on a page make fields and rows,
// rules change them, and a run is launched with them. Then hostile pages are shown.
func TestBuilderInABrowser(t *testing.T) {
	t.Parallel()
	path := browser.Path(t)
	hostile, evil := newHostile(t)
	product := &single{data: t.TempDir(), args: append(suite.Fast(), "--egress-allow",
		"127.0.0.0/8", "--egress-origin", "shop.example="+newShop(t), "--egress-origin",
		"hostile.example="+hostile, "--chromium", "none", "--rate", "preview=100/1m")}
	product.Up(t)
	s := &suite.Service{T: t, Product: product, Client: product.Self()}
	s.Fill(s.Client, suite.Plenty)
	p := newPerson(t, path, s.Server)
	p.signsIn(s)

	p.do(chromedp.SendKeys(chromedp.CSS("#addresses"), "http://shop.example/list/3"))
	p.clicks("#build")
	p.sees(`document.querySelector("iframe.page")`)
	p.clicksIn("Lamp 2 of list 3")
	p.sees(`document.querySelectorAll(".fields > li .hint code").length > 0 &&
		document.body.innerText.includes("of 24 rows")`)
	p.clicksIn("12.50 €")
	p.sees(`document.querySelector("#field-1-name")?.value === "price"`)
	p.sees(frame + `.querySelectorAll("[data-field]").length === 48`) // 24 of each field
	p.shows("builder")
	p.do(chromedp.Reload())
	p.sees(`document.querySelector("#field-1-name")?.value === "price"`)
	asks[bool](p, `(() => { const rule = document.querySelector("#field-1-rule");
		rule.value = "REGEX_CLEAN"; rule.dispatchEvent(new Event("change", {bubbles: true}));
		return true; })()`)
	p.sees(`document.querySelector("#field-1-pattern")`)
	for name, value := range map[string]string{"pattern": "[^0-9.]", "replacement": ""} {
		asks[bool](p, fmt.Sprintf(`(() => { const input = document.querySelector("#field-1-%s");
			input.value = %q; input.dispatchEvent(new Event("change", {bubbles: true}));
			return true; })()`, name, value))
		p.sees(`document.querySelector("[role=status]").innerText !== "The rows are being extracted."`)
		<-time.After(100 * time.Millisecond) // until the page has drawn the change
	}
	p.sees(`[...document.querySelectorAll("section td")].some(c => c.innerText === "12.50")`)
	p.picksByKeyboard()
	p.clicks(".actions button:not(.second)")
	p.sees(`document.querySelector("#cap")?.value`)
	p.clicks("form button")
	p.sees(`document.querySelector(".state.completed, .state.success")`)
	p.clicks(".actions a")
	p.sees(`[...document.querySelectorAll(".rows td")].some(c => c.innerText === "12.50")`)

	for i := range hostilePages {
		p.looksAt(fmt.Sprintf("http://hostile.example/%d", i))
	}
	if asked := evil(); len(asked) > 0 {
		t.Errorf("pages that are shown have asked for %v", asked)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = slices.DeleteFunc(p.said, func(line string) bool {
		return strings.Contains(line, "status of 400") // a pick outside of all rows is refused
	})
	if len(p.said) > 0 {
		t.Errorf("the browser complains:\n%s", strings.Join(p.said, "\n"))
	}
	product.Down(t)
}

// picksByKeyboard adds a field without a pointer, and removes it again.
func (p *person) picksByKeyboard() {
	p.t.Helper()
	n := asks[int](p, `document.querySelectorAll(".fields > li input[id$=name]").length`)
	asks[bool](p, `(`+frame+`.body.focus(), true)`)
	for _, key := range []string{"ArrowRight", "ArrowRight", "ArrowRight", "Enter"} {
		asks[bool](p, fmt.Sprintf(`(%s.activeElement.dispatchEvent(new KeyboardEvent("keydown",
			{key: %q, bubbles: true, cancelable: true})), true)`, frame, key))
	}
	p.sees(fmt.Sprintf(`document.querySelectorAll(".fields > li input[id$=name]").length === %d ||
		document.querySelector(".trouble")`, n+1))
	if asks[bool](p, `!document.querySelector(".trouble")`) {
		p.clicks(fmt.Sprintf(".fields > li:nth-child(%d) button", n+1))
	}
	p.sees(fmt.Sprintf(`document.querySelectorAll(".fields > li input[id$=name]").length === %d`, n))
}

// looksAt shows a hostile page, and checks that only elements and texts are left of it.
func (p *person) looksAt(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.server + "/portal/build?url=" + url))
	p.clicks("main button")
	p.sees(`document.querySelector("iframe.page")?.contentDocument.body.textContent.length > 0`)
	p.do(chromedp.Evaluate[chromedp.Void](`void document.querySelector("iframe.page").scrollIntoView()`))
	if wrong := asks[string](p, `(() => { const page = `+frame+`;
		const odd = [...page.querySelectorAll("*")].find(e => [...e.attributes].some(a =>
			!["data-field", "data-image", "data-over", "tabindex"].includes(a.name)) ||
			/^(script|style|img|svg|math|iframe|link|meta|base|form|input|object|embed)$/i.test(
				e.localName) || e.namespaceURI !== "http://www.w3.org/1999/xhtml" || e.shadowRoot);
		return odd ? odd.outerHTML.slice(0, 200) : /[\u202a-\u202e\u2066-\u2069\u0001\u0007\u200b]/
			.test(page.body.textContent) ? "hidden characters" : document.title === "taken"
			? "a title" : document.documentElement.scrollWidth > innerWidth ? "it is wide" : ""; })()`,
	); wrong != "" {
		p.t.Errorf("%s is more than text: %s", url, wrong)
	}
	if n := asks[int](p, frame+`.querySelectorAll("*").length`); n > 10_100 {
		p.t.Errorf("%s has %d elements", url, n)
	}
}
