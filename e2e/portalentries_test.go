package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// entries are the fields of a page's forms, in order.
const entries = `[...document.querySelectorAll("main form :is(input, textarea, select)")]
	.filter(e => e.type !== "file" && !e.disabled)`

// entersAll changes every field of the page.
const entersAll = `(() => {
	for (const e of ` + entries + `) {
		const other = e.options && [...e.options].find(o => o.value !== e.value);
		if (e.type === "checkbox") {
			e.click();
			continue;
		}
		e.value = e.options ? other?.value ?? e.value : e.type === "date" ? "2031-02-03"
			: e.type === "month" ? "2031-02" : e.value + "7";
		e.dispatchEvent(new Event(e.options ? "change" : "input", { bubbles: true }));
	}
	return true;
})()`

// entered are the values of all fields, one per line.
const entered = entries + `.map(e => (e.id || e.labels[0]?.innerText) + ": "
	+ (e.type === "checkbox" ? e.checked : e.value)).join("\n")`

// entersLast changes a field once more, and reloads the page before the next frame.
const entersLast = `(() => {
	const e = ` + entries + `.find(e => ["text", "search", "email", "url", "textarea"].includes(e.type));
	if (e) {
		e.value += "8";
		e.dispatchEvent(new Event("input", { bubbles: true }));
	}
	window.left = true;
	location.reload();
	return ` + entered + `;
})()`

// TestPortalKeepsEntries changes every field of every page, and reloads it. All entries are
// restored, the last one too. Leaving the page discards them.
func TestPortalKeepsEntries(t *testing.T) {
	t.Parallel()
	v := newVisit(t, true)
	w, fields := v.watches(), 0
	for _, place := range v.places() {
		if !strings.HasPrefix(place, "/portal") {
			continue // entries at the sign-in are secret
		}
		v.do(chromedp.Navigate(v.Server + place))
		v.sees(`document.readyState === "complete" && document.querySelector("h1")`)
		w.awaitIdle(v.person)
		asks[bool](v.person, entersAll)
		w.awaitIdle(v.person)
		want := asks[string](v.person, entersLast)
		fields += strings.Count(want, "\n")
		v.sees(`!window.left && document.readyState === "complete" && document.querySelector("h1")`)
		w.awaitIdle(v.person)
		if got := asks[string](v.person, entered); got != want {
			t.Errorf("%s has lost what was entered:\n%s\nin place of:\n%s", place, got, want)
		}
	}
	if fields < 30 {
		t.Errorf("only %d fields were found", fields)
	}
	v.goes("/keys", `document.querySelector("#key-name")`)
	v.enters("key-name", "A key")
	asks[bool](v.person, `(document.querySelector('nav a[href="/portal/runs"]').click(), true)`)
	v.sees(`location.pathname === "/portal/runs"`)
	v.goes("/keys", `document.querySelector("#key-name")`)
	if name := asks[string](v.person, `document.querySelector("#key-name").value`); name != "" {
		t.Errorf("%q was left, and is there again", name)
	}
	v.product.Down(t)
}
