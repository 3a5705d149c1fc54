package fetcher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/memo"
	"shoal.dev/shoal/fetcher/internal/unit"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/turns"
)

// asks records the tiers by which an address is requested. It answers by tier: with a page, or with
// a wall if it has none.
type asks struct {
	web   *fakeWeb
	pages map[model.Tier]string
	busy  map[model.Tier]int // times that the tier is full, -1 for ever

	mu    sync.Mutex
	tiers []model.Tier
}

func (w *fakeWeb) byTier(url string, pages map[model.Tier]string) *asks {
	a := &asks{web: w, pages: pages, busy: map[model.Tier]int{}}
	w.at(url, a.answer)
	return a
}

func (a *asks) answer(_ context.Context, req web.Request) (*web.Page, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy[req.Tier] != 0 {
		a.busy[req.Tier]--
		return nil, web.ErrBusy
	}
	a.tiers = append(a.tiers, req.Tier)
	if body, has := a.pages[req.Tier]; has {
		return a.web.html(req.URL, body), nil
	}
	return nil, &web.Failure{Code: fault.PageBlocked, Final: req.URL, Status: 403}
}

// by returns the tiers of the requests so far.
func (a *asks) by() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprint(a.tiers)
}

const (
	shell  = "<div id=app></div><script src=/app.js></script>"
	stated = `<script type="application/ld+json">{"@type":"Product","name":"Radio","offers":{"price":59}}</script><p>A radio.</p>`
)

// A page that states nothing, and of which the model knows nothing, is fetched again in a browser.
// It does not matter whether it had to wait for the model.
func TestNoRowsWithAPrompt(t *testing.T) {
	none := &fakeModel{answer: `{}`}
	for name, c := range map[string]struct {
		model  *fakeModel
		wait   bool // for the model
		render string
		want   string
	}{
		"at once":              {none, false, stated, "plain no_rows render tier:render"},
		"later":                {none, true, stated, "plain no_rows render tier:render"},
		"nothing there either": {none, true, shell, "plain no_rows render no_rows"},
		"no model":             {nil, false, stated, "plain no_rows render tier:render"},
		"a row that does not fit": {&fakeModel{answer: `{"price":"cheap"}`}, false, stated,
			"plain row_rejected render tier:render"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := startModel(t, c.model, func(r *rig, config *Config) {
					allTiers(r, config)
					config.Questions = 1
					r.control.recipes[1].Recipe.Schema = []byte(
						`{"properties":{"name":{"type":"string"},"price":{"type":"number"}}}`)
				})
				defer stop()
				asked := r.web.byTier("http://b.test/",
					map[model.Tier]string{model.Plain: shell + "<p>Wait.</p>",
						model.Render: c.render})
				if c.wait {
					c.model.delay = time.Second
					r.send(r.task(0, "http://a.test/")) // uses the model first
					pass(500 * time.Millisecond)
				}
				task := r.task(1, "http://b.test/")
				task.Tiers = model.AllTiers
				r.send(task)
				for {
					p := r.pages(1)[0]
					if p.Unit.Seq != 1 {
						continue
					}
					if got := climbed(p); got != c.want {
						t.Errorf("%q, want %q", got, c.want)
					}
					break
				}
				if got := asked.by(); got != "[plain render]" {
					t.Errorf("asked by %s", got)
				}
				pass(time.Minute)
				synctest.Wait()
				if c := r.f.Counts(); c.HeldBytes != 0 || c.Open != 0 || r.f.Counts().Timed != 0 {
					t.Errorf("kept: %+v, %d timed", c, r.f.Counts().Timed)
				}
			})
		})
	}
}

// Memory kept for the model is released before the unit waits for a browser, which may take long.
func TestMemoryIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := startModel(t, &fakeModel{answer: `{}`, delay: time.Second},
			func(r *rig, config *Config) {
				allTiers(r, config)
				config.MaxBytes = 100 // less than two pages
				r.control.recipes[1].Recipe.Schema = []byte(
					`{"properties":{"name":{"type":"string"}}}`)
			})
		defer stop()
		var waiting []*asks
		for n := range 5 {
			url := fmt.Sprintf("http://s%d.test/", n)
			asked := r.web.byTier(url,
				map[model.Tier]string{model.Plain: shell + "<p>Wait.</p>", model.Render: stated})
			asked.busy[model.Render] = 100
			waiting = append(waiting, asked)
			task := r.task(n, url)
			task.Tiers = model.AllTiers
			r.send(task)
		}
		pass(time.Minute)
		for n, asked := range waiting {
			if got := asked.by(); got != "[plain]" {
				t.Errorf("page %d was asked for by %s", n, got)
			}
		}
		if c := r.f.Counts(); c.HeldBytes != 0 || c.Open != 5 {
			t.Errorf("while the browser is busy: %+v", c)
		}
		for _, p := range r.pages(5) {
			if got := climbed(p); got != "plain no_rows render tier:render" {
				t.Errorf("got %q", got)
			}
		}
	})
}

// One page that needs a browser does not make a host's other pages more expensive. Several in a row
// do, for a while.
func TestEmptyPagesAreDoubted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, allTiers)
		defer stop()
		seq := 0
		next := func(plain string) string {
			url := fmt.Sprintf("http://a.test/%d", seq)
			r.web.byTier(url, map[model.Tier]string{model.Plain: plain, model.Render: "<h1>x</h1>"})
			task := r.task(seq, url)
			task.Tiers = model.AllTiers
			r.send(task)
			seq++
			return climbed(r.pages(1)[0])
		}
		const climbs, cheap, dear = "plain no_rows render tier:render", "plain tier:plain",
			"render tier:render"
		var got []string
		for _, plain := range []string{shell, shell, "<h1>x</h1>", shell, shell, shell,
			"<h1>x</h1>"} {
			got = append(got, next(plain))
		}
		pass(memo.RememberFor)
		got = append(got, next("<h1>x</h1>"))
		if want := []string{climbs, climbs, cheap, climbs, climbs, climbs, dear,
			cheap}; !slices.Equal(got, want) {
			t.Errorf("got\n%q, want\n%q", got, want)
		}
	})
}

// A chain that needs a browser uses one to its end: without it, its pages would look like the end.
func TestAChainStaysInTheBrowser(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := model.Pagination{Type: model.URLPageParam, Param: "p"}
		r, stop := start(t, 1, paged(p), allTiers)
		defer stop()
		const url = "http://a.test/"
		var addresses []string
		for n := 1; n <= 5; n++ {
			address := fmt.Sprintf("%s?p=%d", url, n)
			if n == 1 {
				address = url
			}
			addresses = append(addresses, address)
			r.web.byTier(address,
				map[model.Tier]string{model.Plain: shell, model.Render: items(fmt.Sprint(n))})
		}
		r.web.byTier(url+"?p=6", map[model.Tier]string{model.Plain: shell, model.Render: "<p>"})
		var from *model.Continuation
		var got []string
		for last := false; !last && len(got) < 10; {
			task := r.task(0, url)
			task.Budget, task.From, task.Tiers = 2, from, model.AllTiers
			r.send(task)
			for spent := false; !spent && !last; {
				page := r.pages(1)[0]
				got = append(got, shorthand(page)+": "+climbed(page))
				from, spent, last = page.Next, page.Spent, page.Last
			}
			pass(2 * memo.RememberFor) // as if another fetcher continued
		}
		want := []string{"0 delivered: plain no_rows render tier:render",
			"1 delivered spent: render tier:render",
			"2 delivered: render tier:render", "3 delivered spent: render tier:render",
			"4 delivered: render tier:render",
			"5 empty last: render "}
		if !slices.Equal(got, want) {
			t.Errorf("pages are\n%q, want\n%q", got, want)
		}
		// Without money for a browser, the chain fails and does not look complete.
		task := r.task(0, url)
		task.From = &model.Continuation{Page: 1, URL: addresses[1], Rendered: true}
		r.send(task)
		if got := shorthand(r.pages(1)[0]); got != "1 errored tier_missing last" {
			t.Errorf("page is %q", got)
		}
	})
}

// The page of a discovery is fetched by the tiers of the run, and by the learnt tier next time.
func TestDiscoveryByTiers(t *testing.T) {
	token, wall := shopPage("1"), map[model.Tier]string{}
	for name, c := range map[string]struct {
		allowed model.TierSet
		shop    map[model.Tier]string
		asked   string
		want    string
		again   string // tiers of the next scraper's discovery at the same site
	}{
		"plain": {model.AllTiers, map[model.Tier]string{model.Plain: token}, "[plain]",
			"plain tier:plain", "[plain]"},
		"turned away": {model.AllTiers, map[model.Tier]string{model.Super: token}, "[plain super]",
			"plain tier:plain",
			"[super]"},
		"super alone": {model.TiersOf(model.Super), map[model.Tier]string{model.Super: token},
			"[super]", "super tier:super",
			"[super]"},
		"no browser asks": {model.TiersOf(model.Plain, model.Render),
			map[model.Tier]string{model.Render: token}, "[plain]",
			"plain prelaunch_refresh_failed prelaunch_refresh_failed", "[plain]"},
		"turned away by all": {model.AllTiers, wall, "[plain super]",
			"plain prelaunch_refresh_failed prelaunch_refresh_failed",
			"[plain super]"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, withTokens(), allTiers)
				defer stop()
				for n, want := range []string{c.asked, c.again} {
					asked := r.web.byTier(shop, c.shop)
					task := r.task(n, api)
					task.Tiers = c.allowed
					task.Scraper[0] = byte(n)
					r.send(task)
					if got := climbed(r.pages(1)[0]); got != c.want {
						t.Errorf("page %d: %q, want %q", n, got, c.want)
					}
					if got := asked.by(); got != want {
						t.Errorf("discovery %d is asked for by %s, want %s", n, got, want)
					}
				}
			})
		})
	}
}

// Discoveries that wait for one of the three places hold no worker: pages go on.
func TestWaitingDiscoveriesHoldNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, withTokens(), func(r *rig, config *Config) {
			config.Workers = unit.MaxDiscoveries + 2 // the last is for other customers
			r.control.recipes[2] = &client.Recipe{Recipe: title}
		})
		defer stop()
		r.web.at(shop, func(ctx context.Context, _ web.Request) (*web.Page, error) {
			pass(20 * time.Second)
			return r.web.html(shop, shopPage("1")), nil
		})
		for n := range 20 {
			task := r.task(n, api)
			task.Scraper[0] = byte(n)
			r.send(task)
		}
		pass(time.Second)
		began := time.Now()
		for n := range 20 {
			task := r.task(100+n, fmt.Sprintf("http://c.test/%d", n))
			task.Revision = 2
			r.send(task)
		}
		for range 20 {
			if p := r.pages(1)[0]; p.Unit.Seq < 100 {
				t.Fatalf("page %d came first", p.Unit.Seq)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("other pages took %v", took)
		}
		for _, p := range r.pages(20) {
			if got := shorthand(p); got != "0 delivered last" {
				t.Errorf("page is %q", got)
			}
		}
	})
}

// A full tier costs nothing: no try, no retry, no money, no turn at the host. The chain goes on.
func TestBusyIsNoTry(t *testing.T) {
	for name, c := range map[string]struct {
		recipe model.Recipe
		url    string
		pages  map[model.Tier]string
		busy   map[model.Tier]int
		want   string
		asked  string
	}{
		"the first tier": {title, "http://a.test/",
			map[model.Tier]string{model.Plain: "<h1>x</h1>"},
			map[model.Tier]int{model.Plain: 20}, "plain tier:plain", "[plain]"},
		"after a wall": {title, "http://a.test/", map[model.Tier]string{model.Render: "<h1>x</h1>"},
			map[model.Tier]int{model.Render: 20}, "plain blocked render tier:render",
			"[plain render]"},
		"after no rows": {title, "http://a.test/",
			map[model.Tier]string{model.Plain: shell, model.Render: "<h1>x</h1>"},
			map[model.Tier]int{model.Render: 20}, "plain no_rows render tier:render",
			"[plain render]"},
		"then a wall": {title, "http://a.test/", map[model.Tier]string{model.Super: "<h1>x</h1>"},
			map[model.Tier]int{model.Render: 20, model.Super: 20},
			"plain blocked render blocked super tier:super", "[plain render super]"},
		"more is loaded": {paged(model.Pagination{Type: model.LoadMore, Selector: "b"}),
			"http://a.test/",
			map[model.Tier]string{model.Render: items("x")}, map[model.Tier]int{model.Render: 20},
			"render tier:render", "[render]"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, c.recipe, func(r *rig, config *Config) {
					allTiers(r, config)
					config.Pace = Pace{Rate: 0.01, Connections: 1}
				})
				defer stop()
				asked := r.web.byTier(c.url, c.pages)
				asked.busy = c.busy
				began := time.Now()
				task := r.task(0, c.url)
				task.Tiers = model.AllTiers
				r.send(task)
				p := r.pages(1)[0]
				if got := climbed(p); got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
				if got := asked.by(); got != c.asked {
					t.Errorf("asked by %s, want %s", got, c.asked)
				}
				if c := r.f.Counts(); c.Retries != uint64(len(p.Tries)-1) ||
					c.Bytes != uint64(p.Bytes) {
					t.Errorf("counts are %+v", c)
				}
				// robots.txt and each request need a start; nothing waits longer than for the next
				// pause.
				starts := time.Duration(len(p.Tries)) * 100 * time.Second
				if took := time.Since(began); took < starts ||
					took > starts+time.Duration(len(p.Tries))*20*2*unit.MostBusy {
					t.Errorf("took %v for %d requests", took, len(p.Tries))
				}
			})
		})
	}
}

// Further pages of a unit are fetched, and charged, by the tier of its own page.
func TestAskedPagesByTier(t *testing.T) {
	prose := strings.Repeat("<p>We have sold bread and cakes here since 1950.</p>", 10)
	home := prose + `<a href="/contact">Contact</a>`
	contact := prose + "<p>Mail: info@a.test</p>"
	all := func(page string) map[model.Tier]string {
		return map[model.Tier]string{model.Plain: page, model.Render: page, model.Super: page}
	}
	for name, c := range map[string]struct {
		home, contact map[model.Tier]string
		want          string
		asked         string
	}{
		"plain": {all(home), all(contact), "plain plain plugin:websitecontacts", "[plain]"},
		"in a browser": {map[model.Tier]string{model.Render: home}, all(contact),
			"plain blocked render render tier:render",
			"[render]"},
		"in a browser, and not there": {map[model.Tier]string{model.Render: home +
			"<p>Mail: us@a.test</p>"}, nil,
			"plain blocked render render blocked tier:render", "[render]"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, _, stop := startContacts(t, func(r *rig, config *Config) { allTiers(r, config) })
				defer stop()
				r.web.byTier("http://a.test/", c.home)
				asked := r.web.byTier("http://a.test/contact", c.contact)
				task := r.task(0, "http://a.test/")
				task.Tiers = model.AllTiers
				r.send(task)
				if got := climbed(r.pages(1)[0]); got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
				if got := asked.by(); got != c.asked {
					t.Errorf("the further page was asked for by %s", got)
				}
			})
		})
	}
}

// Many pages of one customer keep asking for the only place in the browser. Another customer's
// pages get every second turn.
func TestCustomersTakeTurnsAtTheBrowser(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			r.web.tiers = model.TiersOf(model.Render)
		})
		defer stop()
		var mu sync.Mutex
		var loaded []string
		places := turns.NewLine(1, web.ComeAgain)
		load := func(_ context.Context, req web.Request) (*web.Page, error) {
			if !places.Enter(req.Caller, time.Now()) {
				return nil, web.ErrBusy
			}
			pass(10 * time.Second)
			places.Leave(req.Caller, time.Now())
			mu.Lock()
			defer mu.Unlock()
			loaded = append(loaded, strings.Split(req.URL, ".")[1])
			return r.web.html(req.URL, "<h1>x</h1>"), nil
		}
		other := ids.ID{11: 9}
		r.control.change(func() {
			r.control.jobs[other] = &client.Job{ID: other, State: model.Running}
		})
		const often, seldom = 150, 10
		for seq := range often + seldom {
			url := fmt.Sprintf("http://host-%d.often/", seq)
			task := r.task(seq, url)
			if task.Customer = "often"; seq >= often {
				url = fmt.Sprintf("http://host-%d.seldom/", seq)
				task.Customer, task.Job, task.URL = "seldom", other, url
			}
			task.Tiers = model.TiersOf(model.Render)
			r.web.at(url, load)
			r.send(task)
			if seq == often-1 {
				pass(time.Minute)
			}
		}
		r.pages(often + seldom)
		last := -1
		for i, customer := range loaded {
			if customer == "seldom/" {
				last = i
			}
		}
		if last > 4*seldom {
			t.Errorf("the last of %d pages was number %d that was loaded: %v", seldom, last, loaded)
		}
	})
}
