package e2e

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
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
		v.hides(name)
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

// TestPortalExportsWhatItHasNotRead hides a column and exports. The file has all others, also a
// field that only rows have which the table has not read.
func TestPortalExportsWhatItHasNotRead(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	group := suite.Must(v.PutGroup(t.Context(), "Late fields"))(t)
	const rows = 1_000 // the table reads 200 at first
	var file strings.Builder
	for i := range rows {
		fmt.Fprintf(&file, `{"n":"%d","Price, EUR":"9","secret":"s"}`+"\n", i)
	}
	file.WriteString(`{"n":"last","late":"of the last row","secret":"s"}` + "\n")
	v.imports(group, "late", "jsonl", file.String())

	v.goes("/rows/"+group, `document.querySelector(".rows tbody td bdi")`)
	v.hides("Price, EUR")
	v.hides("secret")
	if fields := asks[string](v.person,
		`document.querySelector(".choice fieldset").textContent`); fields != "ColumnsnPrice, EURsecret" {
		t.Errorf("the table has read %q", fields)
	}
	for format, want := range map[string]string{"csv": "last,of the last row,",
		"jsonl": `"late":"of the last row"`} {
		address := suite.Must(url.Parse(asks[string](v.person, `[...document.querySelectorAll(
			".links a")].find(a => a.textContent === "`+format+`").href`)))(t)
		answer, err := v.Do(t.Context(), "GET", address.Path, address.Query(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if closed := answer.Body.Close(); err != nil || closed != nil {
			t.Fatal(err, closed)
		}
		if text := string(body); !strings.Contains(text, want) ||
			strings.Contains(text, "secret") || strings.Contains(text, "Price") {
			t.Errorf("%s: %.200s … %s", address, text, text[max(0, len(text)-200):])
		}
	}
	v.ends()
}

// TestPortalSaysWhyNothingMatches compares prices that are texts with a number. The page says why
// nothing is found, and what makes numbers of them; then that is done.
func TestPortalSaysWhyNothingMatches(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Prices"))(t)
	spec := suite.Scraper{GroupRef: group, Scraper: model.Scraper{Name: "Lamps",
		Type:         model.MultipleProducts,
		SourceConfig: model.SourceConfig{URL: "http://shop.example/list/1"},
		ItemsConfig: []model.Field{{Name: "name", Selector: ".thing .name", Kind: model.Text},
			{Name: "price", Selector: ".thing .price", Kind: model.Text}}}}
	v.runsTo(suite.Must(v.PutScraper(ctx, spec))(t))

	hint := `document.querySelector("main .note[role=status]")`
	v.goes("/rows/"+group, `document.querySelector(".rows tbody td bdi")`)
	v.chooses("field", "price")
	v.chooses("op", "gt")
	v.enters("value", "20")
	v.presses("Apply")
	v.sees(hint + `?.querySelector(".scraped").innerText === "10.50 €"`)
	v.says("No rows match.")
	v.says("“Convert money”")
	v.judge("a comparison of texts")
	v.shows("uncompared")
	for _, other := range []string{"&op=gt&value=none", "&op=contains&value=none",
		"&op=eq&value=10.5"} {
		v.goes("/rows/"+group+"?field=price"+other,
			`document.querySelector("main").innerText.includes("No rows match.")`)
		if asks[bool](v.person, "!!"+hint) {
			t.Errorf("%s has the hint of another comparison", other)
		}
	}
	// What the hint says works: the rule's field is compared.
	spec.Name, spec.PostProcessRules = "Lamps with numbers", []model.PostProcessRule{
		{Kind: "CURRENCY_CONVERT", SourceField: "price", OutputField: "amount",
			Params: map[string]any{"from": "EUR", "to": "EUR"}}}
	v.runsTo(suite.Must(v.PutScraper(ctx, spec))(t))
	v.goes("/rows/"+group+"?field=amount&op=gt&value=20",
		`document.querySelector(".rows table")?.ariaRowCount === "15"`)
	v.harmless()
	v.ends()
}

// runsTo runs a scraper to its end.
func (v *visit) runsTo(scraper string) {
	t := v.person.t
	t.Helper()
	var run struct{ JobID string }
	if err := v.Call(t.Context(), "POST", "/api/scraper/"+scraper+"/run", nil, nil,
		&run); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Follow(suite.Within(t, suite.Patience), run.JobID, nil); err != nil {
		t.Fatal(err)
	}
}

// hides hides a column.
func (v *visit) hides(column string) {
	v.person.t.Helper()
	asks[bool](v.person, fmt.Sprintf(`([...document.querySelectorAll(".choice fieldset label")].
		find(l => l.textContent === %q).querySelector("input").click(), true)`, column))
	v.sees(fmt.Sprintf(`![...document.querySelectorAll(".rows thead th")].some(th =>
		th.innerText === %q)`, column))
}
