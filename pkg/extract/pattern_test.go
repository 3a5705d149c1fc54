package extract

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/turns"
)

func recipeOf(selectors ...string) model.Recipe {
	r := model.Recipe{Type: model.SingleProduct}
	for i, selector := range selectors {
		r.Fields = append(r.Fields,
			model.Field{Name: "f" + string(rune('a'+i)), Selector: selector, Kind: model.Text})
	}
	return r
}

// TestPatternsInSelectorsAreBounded: patterns that would compile to too much, each or in total, are
// refused with their field.
func TestPatternsInSelectorsAreBounded(t *testing.T) {
	large, taken := strings.Repeat("a{0,999}", 20)+"z", strings.Repeat("a{0,999}", 3)+"z"
	for _, form := range []string{"p:matches(%)", "p:matchesOwn(%)", "p[class#=%]",
		"p:not(:matches(%))", "$..[?match(@, '%')]", "$..[?search(@.a, '%')]"} {
		refused := func(field string, selectors ...string) {
			t.Helper()
			_, err := Compile(recipeOf(selectors...))
			var faults fault.List
			if !errors.As(err, &faults) || faults[0].Field != field ||
				faults[0].Code != fault.SchemaValidation {
				t.Errorf("%s: %v, want a fault of %s", form, err, field)
			}
		}
		refused("itemsConfig[0].selector", strings.ReplaceAll(form, "%", large))
		selector := strings.ReplaceAll(form, "%", taken)
		if _, err := Compile(recipeOf(selector)); err != nil {
			t.Errorf("%s: %v", form, err)
		}
		var all []string
		for range 20 {
			all = append(all, selector)
		}
		refused("itemsConfig[8].selector", all...)
	}
	for _, expression := range []string{"//p[matches(., 'a+')]", "replace(//p, 'a+', 'b')",
		"//p[fn:matches(., 'a')]"} {
		if _, err := Compile(recipeOf(expression)); err == nil {
			t.Errorf("%s: XPath has patterns", expression)
		}
	}
}

// TestPatternsArePaidFromTheStepsOfAPage: patterns cost as much as on their worst text, even though
// this text is not that bad.
func TestPatternsArePaidFromTheStepsOfAPage(t *testing.T) {
	text, slow := strings.Repeat("b", 6_000), strings.Repeat("a{0,999}", 3)+"z"
	html := Page{URL: "http://a.example/", ContentType: "text/html",
		Body: []byte(strings.Repeat(`<p class="`+text+`">`+text, 10))}
	json := Page{URL: "http://a.example/", ContentType: "application/json",
		Body: []byte(`["a"` + strings.Repeat(`,"`+text+`"`, 10) + `]`)}
	for selector, page := range map[string]Page{"p:matches(" + slow + ")": html,
		"p:matchesOwn(" + slow + ")": html,
		"p[class#=" + slow + "]":     html, "$[?match(@, '" + slow + "')]": json,
		"$[?search(@, '" + slow + "')]": json} {
		extractor, err := Compile(recipeOf(selector))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := extractor.Extract(page); fault.CodeOf(err) != fault.PageTooCostly {
			t.Errorf("%.20s: %v", selector, err)
		}
	}
}

// leaving is a context that ends once Err has been called end times.
type leaving struct {
	context.Context
	asked, end int
}

func (l *leaving) Err() error {
	if l.asked++; l.asked > l.end {
		return context.Canceled
	}
	return nil
}

// costlyPages maps selectors, with and without patterns, to pages on which they take long.
func costlyPages() map[string]Page {
	long, slow := strings.Repeat("a", 100_000), strings.Repeat("a{0,999}", 3)+"z"
	page := func(kind, body string) Page {
		return Page{URL: "http://a.example/", ContentType: kind, Body: []byte(body)}
	}
	return map[string]Page{
		"p:matches(" + slow + ")":       page("text/html", "<p>"+long),
		"p[class#=" + slow + "]":        page("text/html", `<p class="`+long+`">`),
		"$[?search(@, '" + slow + "')]": page("application/json", `["`+long+`"]`),
		"div:has(i)": page("text/html",
			strings.Repeat("<div>", 400)+strings.Repeat("<p>a</p>", 20_000)),
		":has(:has(:has(:has(.y))))": page("text/html", strings.Repeat("<div>", 400)),
		"//*[sum(preceding::*) > 99]": page("text/html",
			strings.Repeat("<p>a</p>", 20_000)),
		"$..[?count(@..*) > 99999]": page("application/json",
			strings.Repeat(`{"a":[1,`, 200)+strings.Repeat("1,", 50_000)+"1"+strings.Repeat(`]}`,
				200)),
	}
}

// TestWhoHasGoneIsNotReadFor ends the context in the middle of a page; reading must stop.
func TestWhoHasGoneIsNotReadFor(t *testing.T) {
	for selector, page := range costlyPages() {
		extractor, err := Compile(recipeOf(selector))
		if err != nil {
			t.Fatal(err)
		}
		ctx := &leaving{Context: t.Context(), end: 2}
		if _, err := extractor.ExtractContext(ctx, page); !errors.Is(err, context.Canceled) ||
			ctx.asked > 10 {
			t.Errorf("%.40s: %v after the context was asked %d times", selector, err, ctx.asked)
		}
		if _, err := extractor.Extract(Page{URL: page.URL, ContentType: page.ContentType,
			Body: []byte("<p>a")}); fault.CodeOf(err) == fault.Internal {
			t.Errorf("%.40s: the next page: %v", selector, err)
		}
	}
}

// TestOthersAreReadMeanwhile lets a caller who has used less arrive in the middle of a page.
func TestOthersAreReadMeanwhile(t *testing.T) {
	for selector, page := range costlyPages() {
		extractor, err := Compile(recipeOf(selector))
		if err != nil {
			t.Fatal(err)
		}
		places := turns.New(1, clock.System{})
		ctx, cancel := context.WithCancel(t.Context())
		var costly, other turns.Place
		places.Enter(ctx, "costly", &costly)
		var whole atomic.Bool
		var reading sync.WaitGroup
		reading.Go(func() {
			defer costly.Leave()
			for range 3 {
				_, err := extractor.ExtractContext(&costly, page)
				if errors.Is(err, context.Canceled) {
					return
				}
			}
			whole.Store(true)
		})
		places.Enter(t.Context(), "other", &other)
		if whole.Load() {
			t.Errorf("%.40s: others wait until the page was read", selector)
		}
		cancel()
		other.Leave()
		reading.Wait()
	}
}
