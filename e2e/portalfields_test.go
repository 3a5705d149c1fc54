package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
)

// TestPortalExportsWhatIsShown: the columns that are shown are in the files, whatever their names
// have.
func TestPortalExportsWhatIsShown(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	group := suite.Must(v.PutGroup(t.Context(), "Names"))(t)
	v.imports(group, "names", "csv", "title,\"Price, EUR\",\"a, \"\"b\"\"\",note,\"of, all\"\n"+
		"a,1,x,n,m\n")
	v.goes("/rows/"+group, `document.querySelector(".rows tr[aria-rowindex='2'] td")`)
	for _, name := range []string{"note", "of, all"} {
		asks[bool](v.person, fmt.Sprintf(`([...document.querySelectorAll(".choice label")].find(l =>
			l.innerText.trim() === %q || l.textContent.trim() === %q).querySelector("input").click(),
			true)`, name, name))
		v.sees(fmt.Sprintf(`![...document.querySelectorAll(".rows th")].some(th =>
			th.innerText === %q)`, name))
	}
	v.do(chromedp.Reload())
	v.sees(`document.querySelector(".rows tr[aria-rowindex='2'] td")`)
	v.do(chromedp.Evaluate[chromedp.Void](`fetch(document.querySelector(".links a").href).then(
		a => a.text()).then(text => { window.file = text; })`, chromedp.EvalAwaitPromise))
	const want = "title,\"Price, EUR\",\"a, \"\"b\"\"\""
	got := asks[string](v.person, "file")
	if head, rest, _ := strings.Cut(got, "\n"); !strings.HasPrefix(head, want) ||
		strings.Contains(head, "note") || strings.Contains(head, "of, all") ||
		!strings.HasPrefix(rest, "a,1,x") {
		t.Errorf("the file %q", got)
	}
	v.ends()
}

// TestPortalReadsMoney: an amount is never taken as a thousandth of what was written.
func TestPortalReadsMoney(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	for _, c := range []struct{ locale, bad, text, is string }{
		{"en-US", "1,000", "1.500", "1.5"}, {"en-US", "25,000.00", "0,015", "0.015"},
		{"de-DE", "1.000", "2,500", "2,5"}, {"de-DE", "25.000", "0.015", "0,015"},
		{"fr-FR", "x", "3 000,5", "3000,5"}} {
		v.before(fmt.Sprintf(`Object.defineProperty(navigator, "languages", { configurable: true,
			get: () => [%q] })`, c.locale))
		v.goes("/preferences", `document.querySelector("#low")`)
		v.enters("low", c.bad)
		asks[bool](v.person, `(document.querySelector("#low").form.requestSubmit(), true)`)
		v.sees(`document.querySelector("#low[aria-invalid=true]")`)
		v.enters("low", c.text)
		asks[bool](v.person, `(document.querySelector("#low").form.requestSubmit(), true)`)
		v.says("Saved")
		v.do(chromedp.Reload())
		v.sees(fmt.Sprintf(`document.querySelector("#low")?.value === %q`, c.is))
	}
	v.ends()
}
