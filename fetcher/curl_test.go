package fetcher

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// note records the requests of curl scrapers, and answers each with a page of one row.
func (w *fakeWeb) note(got *[]string) func(context.Context, web.Request) (*web.Page, error) {
	return func(_ context.Context, req web.Request) (*web.Page, error) {
		text := "GET"
		if as := req.As; as != nil {
			text = fmt.Sprintf("%s %q", as.Method, as.Body)
			for _, field := range as.Header {
				text += " " + field.Name + "=" + field.Value
			}
		}
		w.mu.Lock()
		*got = append(*got, text+" "+req.URL)
		w.mu.Unlock()
		return w.html(req.URL, items(req.URL)), nil
	}
}

func curlRecipe(command string, p *model.Pagination) model.Recipe {
	recipe := title
	recipe.Curl, recipe.Pagination = command, p
	return recipe
}

func TestCurlScraper(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, curlRecipe("curl http://a.test/api -d x=1", nil), nil)
		defer stop()
		var got []string
		r.web.at("http://a.test/api", r.web.note(&got))
		r.send(r.task(0, "http://a.test/api"))
		p := r.pages(1)[0]
		want := []string{`POST "x=1" Accept=*/* Content-Type=application/x-www-form-urlencoded http://a.test/api`}
		if shorthand(p) != "0 delivered last" || p.URL != "http://a.test/api" ||
			!slices.Equal(got, want) {
			t.Errorf("page %q of %s after %q", shorthand(p), p.URL, got)
		}
	})
}

// A failed try is repeated unchanged, and so is each page of a chain. Cookies stay on their own
// host.
func TestCurlIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := model.Pagination{Type: model.NextLink, Selector: "a[rel=next]"}
		r, stop := start(t, 1, curlRecipe("curl http://a.test/api -b a=b -X PUT", &p), nil)
		defer stop()
		var got []string
		note := r.web.note(&got)
		fails := 2
		r.web.at("http://a.test/api", func(ctx context.Context, req web.Request) (*web.Page,
			error) {
			_, _ = note(ctx, req)
			if fails--; fails >= 0 {
				return nil, &web.Failure{Code: fault.PageConnect, Final: req.URL, Retry: true}
			}
			return r.web.html(req.URL, items("x")+link("http://b.test/2")), nil
		})
		r.web.at("http://b.test/2", note)
		r.send(r.task(0, "http://a.test/api"))
		r.pages(2)
		first := `PUT "" Cookie=a=b Accept=*/* http://a.test/api`
		if want := []string{first, first, first,
			`PUT "" Accept=*/* http://b.test/2`}; !slices.Equal(got, want) {
			t.Errorf("requests are %q", got)
		}
	})
}

// After a redirect the request continues in the changed form, even if it has to wait for its host's
// turn.
func TestCurlRedirects(t *testing.T) {
	for _, rate := range []float64{0, 1} {
		t.Run(fmt.Sprint("rate ", rate), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, curlRecipe("curl http://a.test/api -b a=b -d x=1", nil),
					func(_ *rig, config *Config) {
						config.Pace = Pace{Rate: rate}
					})
				defer stop()
				var got []string
				r.web.redirect("http://a.test/api", "http://b.test/")
				r.web.at("http://b.test/", r.web.note(&got))
				r.send(r.task(0, "http://a.test/api"))
				if p := r.pages(1)[0]; shorthand(p) != "0 delivered last" ||
					p.Final != "http://b.test/" {
					t.Errorf("page %q at %s", shorthand(p), p.Final)
				}
				if want := []string{`GET "" Accept=*/* http://b.test/`}; !slices.Equal(got, want) {
					t.Errorf("requests are %q", got)
				}
				r.checkSpacing(rate)
			})
		})
	}
}

// Rules are applied before rows are compared: rows that become equal count as equal.
func TestRules(t *testing.T) {
	bubble(t, func(t *testing.T) {
		recipe := paged(model.Pagination{Type: model.URLPageParam, Param: "p", Max: intp(3)})
		recipe.Rules = []model.PostProcessRule{
			{Kind: "REGEX_CLEAN", SourceField: "title", OutputField: "clean",
				Params: map[string]any{"pattern": "[0-9]+"}},
			{Kind: "CURRENCY_CONVERT", SourceField: "title", OutputField: "usd",
				Params: map[string]any{"from": "USD", "to": "USD"}},
		}
		r, stop := start(t, 1, recipe, nil)
		defer stop()
		r.web.page("http://a.test/", items("a", "7"))
		r.web.page("http://a.test/?p=2", items("a"))
		r.send(r.task(0, "http://a.test/"))
		pages := r.pages(2)
		want := `{"title":"a","clean":"a"} {"title":"7","clean":"","usd":7,"usd_rate":1,"usd_rateDate":"2026-04-13"}`
		if got := string(bytes.Join(pages[0].Rows, []byte(" "))); got != want {
			t.Errorf("rows are %s, want %s", got, want)
		}
		if got := shorthand(pages[1]); got != "1 empty last" {
			t.Errorf("a page of known rows is %q", got)
		}
	})
}

func TestRowsTooLargeAfterRules(t *testing.T) {
	bubble(t, func(t *testing.T) {
		recipe := title
		recipe.Rules = []model.PostProcessRule{{Kind: "REGEX_CLEAN", SourceField: "title",
			OutputField: "long",
			Params:      map[string]any{"pattern": "x", "replacement": strings.Repeat("y", 1000)}}}
		r, stop := start(t, 1, recipe, nil)
		defer stop()
		r.web.page("http://a.test/", items(strings.Repeat("x", 2000)))
		r.send(r.task(0, "http://a.test/"))
		if got := shorthand(r.pages(1)[0]); got != "0 errored row_too_large last" {
			t.Errorf("page is %q", got)
		}
	})
}
