package fetcher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const (
	// as listed; braces are escaped as in canonical addresses
	api  = "http://a.test/api?t=%7B%7BT%7D%7D"
	shop = "http://b.test/shop"
)

// withTokens returns a scraper whose request needs a token of shop.
func withTokens(rules ...model.TokenRule) model.Recipe {
	if len(rules) == 0 {
		rules = []model.TokenRule{{Name: "T", Source: "META", Expression: "token"}}
	}
	recipe := curlRecipe("curl 'http://a.test/api?t={{T}}'", nil)
	recipe.Prelaunch = &model.Prelaunch{DiscoveryURL: shop, Tokens: rules}
	return recipe
}

// shopPage returns a page with a token.
func shopPage(token string) string { return "<meta name=token content='" + token + "'>" }

// count returns how often an address was requested. It also checks that no request had a
// placeholder.
func (r *rig) count(url string) int {
	r.t.Helper()
	r.web.mu.Lock()
	defer r.web.mu.Unlock()
	n := 0
	for _, asked := range r.web.asked {
		if asked == url {
			n++
		}
		if strings.Contains(asked, "{{") || strings.Contains(strings.ToUpper(asked), "%7B%7B") {
			r.t.Errorf("a placeholder left: %s", asked)
		}
	}
	return n
}

// serve answers with the pages in turn, the last one for ever. A page that is a number is a status.
func (w *fakeWeb) serve(url string, pages ...string) {
	next := 0
	w.at(url, func(context.Context, web.Request) (*web.Page, error) {
		w.mu.Lock()
		page := pages[min(next, len(pages)-1)]
		next++
		w.mu.Unlock()
		status := 0
		if _, err := fmt.Sscanf(page, "%d", &status); err == nil {
			return nil, &web.Failure{Code: fault.PageStatus, Final: url, Status: status,
				Retry: status >= 500}
		}
		return w.html(url, page), nil
	})
}

func TestTokens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		recipe := curlRecipe(`curl 'http://a.test/{{BUILD}}/api' -H 'X: {{T}}-{{T}}' --json '{"n":{{N}}}'`, nil)
		recipe.Prelaunch = &model.Prelaunch{DiscoveryURL: shop, Tokens: []model.TokenRule{
			{Name: "BUILD", Source: "FRAMEWORK_DATA", Expression: "/buildId"},
			{Name: "T", Source: "META", Expression: "token"},
			{Name: "N", Source: "REGEX", Expression: `data-n=(\d+)`, ValidatePattern: `^\d+$`},
		}}
		r, stop := start(t, 1, recipe, nil)
		defer stop()
		r.web.page(shop,
			`<script id="__NEXT_DATA__" type="application/json">{"buildId":"b~1"}</script>`+
				shopPage("x/y+z=")+"<p data-n=42>")
		var got []string
		r.web.at("http://a.test/b~1/api", r.web.note(&got))
		listed := "http://a.test/{{BUILD}}/api"
		r.send(r.task(0, listed), r.task(1, listed))
		for _, p := range r.pages(2) {
			if shorthand(p) != "0 delivered last" || p.URL != listed || len(p.Tries) != 1 {
				t.Errorf("page %q of %s after %d tries", shorthand(p), p.URL, len(p.Tries))
			}
		}
		one := `POST "{\"n\":42}" X=x/y+z=-x/y+z= Content-Type=application/json Accept=application/json http://a.test/b~1/api`
		if !slices.Equal(got, []string{one, one}) || r.count(shop) != 1 {
			t.Errorf("requests are %q after %d discoveries", got, r.count(shop))
		}
	})
}

// Concurrent callers share one discovery, whether it succeeds or fails.
func TestDiscoveriesCoalesce(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"found":     {shopPage("x"), "0 delivered last"},
		"not found": {"<p>nothing", "0 errored prelaunch_refresh_failed last"},
		"no page":   {"503", "0 errored prelaunch_refresh_failed last"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, withTokens(),
					func(r *rig, _ *Config) { r.web.latency = 10 * time.Second })
				defer stop()
				r.web.serve(shop, c.page)
				for seq := range 20 {
					r.send(r.task(seq, api))
				}
				for _, p := range r.pages(20) {
					if got := shorthand(p); got != c.want {
						t.Errorf("page is %q, want %q", got, c.want)
					}
				}
				if n := r.count(shop); n != 1 {
					t.Errorf("%d discoveries", n)
				}
			})
		})
	}
}

// At most three discoveries run at once, over all scrapers and customers.
func TestDiscoveriesAreFew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, withTokens(), nil)
		defer stop()
		var mu sync.Mutex
		now, most := 0, 0
		r.web.at(shop, func(context.Context, web.Request) (*web.Page, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			pass(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return r.web.html(shop, shopPage("x")), nil
		})
		for seq := range 10 {
			task := r.task(seq, api)
			task.Scraper = ids.ID{11: byte(10 + seq)}
			// The last free place is for customers with none.
			task.Customer = []string{"c", "d", "e"}[seq%3]
			r.send(task)
		}
		for _, p := range r.pages(10) {
			if got := shorthand(p); got != "0 delivered last" {
				t.Errorf("page is %q", got)
			}
		}
		if n := r.count(shop); n != 10 || most != 3 {
			t.Errorf("%d discoveries, at most %d at once", n, most)
		}
	})
}

// Customers take turns at discoveries: one customer's slow ones leave a place for another's, and
// the next place goes to a third.
func TestDiscoveriesTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, withTokens(), func(_ *rig, config *Config) { config.Workers = 20 })
		defer stop()
		var mu sync.Mutex
		callers := ""
		r.web.at(shop, func(_ context.Context, req web.Request) (*web.Page, error) {
			mu.Lock()
			callers += req.Caller
			mu.Unlock()
			pass(20 * time.Second)
			return r.web.html(shop, shopPage("1")), nil
		})
		for n := range 10 {
			task := r.task(n, api)
			task.Scraper[0] = byte(n)
			r.send(task)
		}
		for n, customer := range []string{"d", "e"} {
			pass(time.Second)
			task := r.task(100+n, api)
			task.Scraper[0], task.Customer = byte(100+n), customer
			r.send(task)
		}
		r.pages(12)
		if !strings.HasPrefix(callers, "ccde") {
			t.Errorf("discoveries are those of %s", callers)
		}
	})
}

// A response that says that the page is gone renews the tokens. The page is retried once, unless
// the tokens stayed the same.
func TestTokensAreRenewed(t *testing.T) {
	const with1, with2 = "http://a.test/api?t=1", "http://a.test/api?t=2"
	for name, c := range map[string]struct {
		shop, api1, api2 []string
		want             string
		asked            [3]int // requests: of shop, with the first token, with the second
		tries            int
	}{
		"404": {[]string{shopPage("1"), shopPage("2")}, []string{"404"},
			[]string{items("x")}, "0 delivered last", [3]int{2, 1, 1}, 2},
		"410": {[]string{shopPage("1"), shopPage("2")}, []string{"410"},
			[]string{items("x")}, "0 delivered last", [3]int{2, 1, 1}, 2},
		"451": {[]string{shopPage("1"), shopPage("2")}, []string{"451"},
			[]string{items("x")}, "0 delivered last", [3]int{2, 1, 1}, 2},
		"403": {[]string{shopPage("1"), shopPage("2")}, []string{"403"},
			[]string{items("x")}, "0 errored http_status last", [3]int{1, 1, 0}, 1},
		"500": {[]string{shopPage("1"), shopPage("2")}, []string{"500"},
			[]string{items("x")}, "0 errored http_status last", [3]int{1, 3, 0}, 3},
		"the same token": {[]string{shopPage("1")}, []string{"404"}, nil,
			"0 errored http_status last", [3]int{2, 1, 0}, 1},
		"gone all the same": {[]string{shopPage("1"), shopPage("2"), shopPage("3")},
			[]string{"404"}, []string{"404"}, "0 errored http_status last", [3]int{2, 1, 1}, 2},
		"no token any more": {[]string{shopPage("1"), "<p>"}, []string{"404"}, nil,
			"0 errored prelaunch_refresh_failed last", [3]int{2, 1, 0}, 2},
		"a bad day first": {[]string{shopPage("1"), shopPage("2")}, []string{"500", "404"},
			[]string{"500", items("x")}, "0 delivered last", [3]int{2, 2, 2}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, withTokens(), nil)
				defer stop()
				r.web.serve(shop, c.shop...)
				r.web.serve(with1, c.api1...)
				if c.api2 != nil {
					r.web.serve(with2, c.api2...)
				}
				r.send(r.task(0, api))
				p := r.pages(1)[0]
				asked := [3]int{r.count(shop), r.count(with1), r.count(with2)}
				if got := shorthand(p); got != c.want || asked != c.asked ||
					len(p.Tries) != c.tries {
					t.Errorf("page is %q after %v requests and %d tries, want %q after %v and %d",
						got, asked, len(p.Tries),
						c.want, c.asked, c.tries)
				}
				r.nothingMore()
			})
		})
	}
}

// Tokens that another page has already renewed are not discovered again.
func TestRenewedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, withTokens(),
			func(r *rig, _ *Config) { r.web.latency = time.Second })
		defer stop()
		r.web.serve(shop, shopPage("1"), shopPage("2"), shopPage("3"))
		r.web.serve("http://a.test/api?t=1", "404")
		for seq := range 10 {
			r.send(r.task(seq, api))
		}
		for _, p := range r.pages(10) {
			if got := shorthand(p); got != "0 delivered last" {
				t.Errorf("page is %q", got)
			}
		}
		if n := r.count(shop); n != 2 || r.count("http://a.test/api?t=2") != 10 {
			t.Errorf("%d discoveries", n)
		}
	})
}

func TestTokensExpire(t *testing.T) {
	bubble(t, func(t *testing.T) {
		recipe := withTokens()
		recipe.Prelaunch.TTLMinutes = intp(10)
		r, stop := start(t, 1, recipe, nil)
		defer stop()
		r.web.serve(shop, shopPage("1"), shopPage("2"))
		for n, wait := range []time.Duration{0, 9 * time.Minute, 2 * time.Minute} {
			pass(wait)
			r.send(r.task(n, api))
			r.pages(1)
		}
		if r.count(shop) != 2 || r.count("http://a.test/api?t=1") != 2 ||
			r.count("http://a.test/api?t=2") != 1 {
			t.Errorf("asked for %q", r.web.asked)
		}
	})
}

// Whenever a discovery fails, the page fails with the typed error and is not requested.
func TestDiscoveryFails(t *testing.T) {
	for name, c := range map[string]struct {
		rule    model.TokenRule
		page    string
		prepare func(*rig)
	}{
		"no network": {prepare: func(r *rig) {
			r.web.fails(shop, -1,
				web.Failure{Code: fault.PageConnect, Retry: true})
		}},
		"a wall": {prepare: func(r *rig) {
			r.web.fails(shop, -1,
				web.Failure{Code: fault.PageBlocked, Status: 200})
		}},
		"too slow": {prepare: func(r *rig) { r.web.latency = time.Minute }},
		"robots":   {prepare: func(r *rig) { r.web.forbid[shop] = true }},
		"a circle": {prepare: func(r *rig) {
			r.web.redirect(shop, "http://c.test/")
			r.web.redirect("http://c.test/", shop)
		}},
		"no meta":       {page: "<meta name=other content=x>"},
		"an empty meta": {page: "<meta name=token>"},
		"a bad value":   {page: shopPage("a b")},
		"a long value":  {page: shopPage(strings.Repeat("x", 4097))},
		"a placeholder": {page: shopPage("{{T}}"),
			rule: model.TokenRule{Source: "META", Expression: "token", ValidatePattern: "."}},
		"another host": {page: shopPage("x"),
			rule: model.TokenRule{Source: "META", Expression: "token", ValidatePattern: "^y$"}},
		"no script": {page: "<p>",
			rule: model.TokenRule{Source: "FRAMEWORK_DATA", Expression: "/a"}},
		"no JSON": {page: `<script id=__NEXT_DATA__>x</script>`,
			rule: model.TokenRule{Source: "FRAMEWORK_DATA", Expression: "/a"}},
		"no member": {page: `<script id=__NEXT_DATA__>{"a":{}}</script>`,
			rule: model.TokenRule{Source: "FRAMEWORK_DATA", Expression: "/a/b"}},
		"an object": {page: `<script id=__NEXT_DATA__>{"a":{}}</script>`,
			rule: model.TokenRule{Source: "FRAMEWORK_DATA", Expression: "/a"}},
		"no match": {page: "<p>",
			rule: model.TokenRule{Source: "REGEX", Expression: "v=(x)"}},
		"an empty group": {page: "v=",
			rule: model.TokenRule{Source: "REGEX", Expression: "v=(x)?"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				recipe := withTokens()
				if c.rule.Source != "" {
					c.rule.Name = "T"
					recipe = withTokens(c.rule)
				}
				r, stop := start(t, 1, recipe, nil)
				defer stop()
				if c.prepare != nil {
					c.prepare(r)
				} else {
					r.web.page(shop, c.page)
				}
				r.send(r.task(0, api))
				if got := shorthand(r.pages(
					1)[0]); got != "0 errored prelaunch_refresh_failed last" {
					t.Errorf("page is %q", got)
				}
				if asked := r.web.startsAt("a.test"); len(asked) > 0 || r.count(shop) > 7 {
					t.Errorf("asked for %q", r.web.asked)
				}
				r.nothingMore()
			})
		})
	}
}

// A discovery is as polite as a page: it reads robots.txt first and keeps its host's pace, also
// after redirects.
func TestDiscoveryIsPolite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		recipe := withTokens()
		recipe.Prelaunch.DiscoveryURL = "http://a.test/shop"
		r, stop := start(t, 1, recipe,
			func(_ *rig, config *Config) { config.Pace = Pace{Rate: 1, Connections: 1} })
		defer stop()
		r.web.redirect("http://a.test/shop", "http://a.test/shop/")
		r.web.redirect("http://a.test/shop/", "http://c.test/shop")
		r.web.page("http://c.test/shop", shopPage("1"))
		r.web.serve("http://a.test/api?t=1", "404", items("x"))
		r.send(r.task(0, api), r.task(1, "http://c.test/x"))
		r.pages(2)
		r.checkSpacing(1)
		if !r.web.known["c.test"] || r.count("http://c.test/shop") != 2 {
			t.Errorf("asked for %q", r.web.asked)
		}
	})
}

// A command with a placeholder that no rule fills is never run.
func TestPlaceholderWithoutRule(t *testing.T) {
	bubble(t, func(t *testing.T) {
		recipe := withTokens()
		recipe.Curl = "curl 'http://a.test/api?t={{T}}' -H 'X: {{OTHER}}'"
		r, stop := start(t, 1, recipe, nil)
		defer stop()
		r.send(r.task(0, api))
		if got := shorthand(r.pages(1)[0]); got != "0 errored recipe_missing last" ||
			len(r.web.asked) > 0 {
			t.Errorf("page is %q after %q", got, r.web.asked)
		}
	})
}

// If the target of a delayed redirect is gone, the renewal compares with the values that led there.
func TestGoneBehindARedirect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, withTokens(),
			func(_ *rig, config *Config) { config.Pace = Pace{Rate: 1} })
		defer stop()
		r.web.page(shop, shopPage("1"))
		r.web.redirect("http://a.test/api?t=1", "http://c.test/")
		r.web.serve("http://c.test/", "404")
		r.send(r.task(0, api))
		if got := shorthand(r.pages(1)[0]); got != "0 errored http_status last" {
			t.Errorf("page is %q", got)
		}
		if r.count(shop) != 2 || r.count("http://a.test/api?t=1") != 1 ||
			r.count("http://c.test/") != 1 {
			t.Errorf("asked for %q", r.web.asked)
		}
		r.checkSpacing(1)
	})
}

// A throttling host gets its back-off, even if it answered a discovery.
func TestThrottledDiscovery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, unrobotic(withTokens()), nil)
		defer stop()
		r.web.fails(shop, -1, web.Failure{Code: fault.PageStatus, Status: 429, Retry: true,
			RetryAfter: 20 * time.Second})
		for seq := range 2 {
			r.send(r.task(seq, api))
			if got := shorthand(r.pages(1)[0]); got != "0 errored prelaunch_refresh_failed last" {
				t.Errorf("page is %q", got)
			}
		}
		if at := r.web.startsAt("b.test"); len(at) != 2 || at[1]-at[0] < int64(20*time.Second) {
			t.Errorf("starts at %v", at)
		}
	})
}
