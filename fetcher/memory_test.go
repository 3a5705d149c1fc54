package fetcher

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/fetcher/internal/memo"
	"shoal.dev/shoal/fetcher/internal/unit"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// tiered makes an address answer by tier: with the tier's failure, or with a page.
func (w *fakeWeb) tiered(url string, failures map[model.Tier]web.Failure) {
	w.at(url, func(_ context.Context, req web.Request) (*web.Page, error) {
		w.mu.Lock()
		failure, fails := failures[req.Tier]
		w.mu.Unlock()
		if fails && failure.Code == fault.PageNoRows {
			return w.html(url, "<p>to be made by scripts"), nil
		}
		if fails {
			failure.Final = url
			return nil, &failure
		}
		return w.html(url, "<h1>"+req.Tier.String()+"</h1>"), nil
	})
}

// climbed returns a page's tries and charge.
func climbed(p *model.Page) string {
	text := ""
	for _, try := range p.Tries {
		text += try.Tier.String() + " "
		if try.Code != "" {
			text += try.Code + " "
		}
	}
	return text + p.PriceRow + p.Code
}

func allTiers(r *rig, _ *Config) { r.web.tiers = model.AllTiers }

func TestTheCheapestTierThatWorks(t *testing.T) {
	const url = "http://a.test/"
	wall, refusal := web.Failure{Code: fault.PageBlocked, Status: 403},
		web.Failure{Code: fault.PageStatus, Status: 403}
	gone, down := web.Failure{Code: fault.PageStatus, Status: 404},
		web.Failure{Code: fault.PageConnect, Retry: true}
	empty, private := web.Failure{Code: fault.PageNoRows},
		web.Failure{Code: fault.PageAddressForbidden}
	slow := web.Failure{Code: fault.PageTimeout, Retry: true}
	for name, c := range map[string]struct {
		failures map[model.Tier]web.Failure
		allowed  model.TierSet
		want     string
	}{
		"plain": {nil, model.AllTiers, "plain tier:plain"},
		"the next one": {map[model.Tier]web.Failure{model.Plain: wall}, model.AllTiers,
			"plain blocked render tier:render"},
		"the dearest": {map[model.Tier]web.Failure{model.Plain: refusal, model.Render: wall,
			model.Super: wall}, model.AllTiers,
			"plain http_status render blocked super blocked render+super tier:render+super"},
		"none": {map[model.Tier]web.Failure{model.Plain: wall, model.Super: wall},
			model.TiersOf(model.Plain, model.Super),
			"plain blocked super blocked blocked"},
		"what is allowed alone": {map[model.Tier]web.Failure{model.Plain: wall},
			model.TiersOf(model.Plain, model.Super),
			"plain blocked super tier:super"},
		"three tries of each": {map[model.Tier]web.Failure{model.Plain: down},
			model.TiersOf(model.Plain, model.Super),
			"plain connect_failed plain connect_failed plain connect_failed super tier:super"},
		"a browser meets the same": {map[model.Tier]web.Failure{model.Plain: down,
			model.Render: down},
			model.AllTiers,
			"plain connect_failed plain connect_failed plain connect_failed render " +
				"connect_failed super tier:super"},
		"a browser meets something else": {map[model.Tier]web.Failure{model.Plain: down,
			model.Render: slow}, model.AllTiers,
			"plain connect_failed plain connect_failed plain connect_failed render timeout " +
				"render timeout render timeout super tier:super"},
		"another way out is tried again": {map[model.Tier]web.Failure{model.Plain: down,
			model.Super: down}, model.TiersOf(model.Plain, model.Super),
			"plain connect_failed plain connect_failed plain connect_failed super " +
				"connect_failed super connect_failed super connect_failed connect_failed"},
		"what is not there is in no tier": {map[model.Tier]web.Failure{model.Plain: gone},
			model.AllTiers, "plain http_status http_status"},
		"what is forbidden is in no tier": {map[model.Tier]web.Failure{model.Plain: private},
			model.AllTiers,
			"plain address_forbidden address_forbidden"},
		"rows that scripts make": {map[model.Tier]web.Failure{model.Plain: empty,
			model.Super: empty},
			model.AllTiers,
			"plain no_rows render tier:render"},
		"no rows, no browser": {map[model.Tier]web.Failure{model.Plain: empty},
			model.TiersOf(model.Plain, model.Super),
			"plain no_rows"},
		"no rows at all": {map[model.Tier]web.Failure{model.Plain: empty, model.Render: empty},
			model.AllTiers,
			"plain no_rows render no_rows"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, title, allTiers)
				defer stop()
				r.web.tiered(url, c.failures)
				task := r.task(0, url)
				task.Tiers = c.allowed
				r.send(task)
				if got := climbed(r.pages(1)[0]); got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
				r.nothingMore()
			})
		})
	}
}

func TestWhatWorkedIsRemembered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, allTiers)
		defer stop()
		failures := map[model.Tier]web.Failure{model.Plain: {Code: fault.PageBlocked, Status: 403}}
		seq := 0
		next := func(allowed model.TierSet) string {
			url := fmt.Sprintf("http://a.test/%d", seq)
			r.web.tiered(url, failures)
			task := r.task(seq, url)
			task.Tiers = allowed
			r.send(task)
			seq++
			return climbed(r.pages(1)[0])
		}
		got := []string{next(model.AllTiers), next(model.AllTiers),
			next(model.TiersOf(model.Plain))}
		r.web.mu.Lock()
		failures[model.Render] = failures[model.Plain]
		r.web.mu.Unlock()
		got = append(got, next(model.AllTiers), next(model.AllTiers))
		r.web.mu.Lock()
		clear(failures)
		r.web.mu.Unlock()
		got = append(got, next(model.AllTiers))
		pass(memo.RememberFor)
		got = append(got, next(model.AllTiers), next(model.AllTiers))
		want := []string{"plain blocked render tier:render", "render tier:render",
			"plain blocked blocked",
			"plain blocked render blocked super tier:super", "super tier:super", "super tier:super",
			"plain tier:plain", "plain tier:plain"}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%q, want\n%q", got, want)
		}
	})
}

// A page waits for a full tier, and the waiting does not count as a try.
func TestBusyTiers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title,
			func(_ *rig, config *Config) { config.Pace = Pace{Rate: 0.01, Connections: 1} })
		defer stop()
		const url = "http://a.test/"
		busy := 7
		r.web.at(url, func(context.Context, web.Request) (*web.Page, error) {
			if busy--; busy >= 0 {
				return nil, web.ErrBusy
			}
			return r.web.html(url, "<h1>x</h1>"), nil
		})
		began := time.Now()
		r.send(r.task(0, url))
		if got := climbed(r.pages(1)[0]); got != "plain tier:plain" {
			t.Errorf("got %q", got)
		}
		if took := time.Since(began); took < 100*time.Second ||
			took > 100*time.Second+7*2*unit.MostBusy {
			t.Errorf("took %v: robots.txt and one start are 100 s", took)
		}
	})
}
