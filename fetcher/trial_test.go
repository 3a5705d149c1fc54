package fetcher

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/hold"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// tries makes the run a trial, of a scraper unless that is zero.
func (c *fakeControl) tries(scraper ids.ID) {
	entry := &client.Entry{ID: ids.ID{11: 30}, Scraper: scraper}
	c.entries[entry.ID] = entry
	c.jobs[jobID] = &client.Job{ID: jobID, State: model.Running, Source: model.SourceSample,
		Entry: entry.ID}
}

// The caller of a trial learns in time why there is no page, and as soon as that is clear.
func TestTrialsEndInTime(t *testing.T) {
	const url = "http://a.test/"
	silent := func(ctx context.Context, _ web.Request) (*web.Page, error) {
		<-ctx.Done()
		return nil,
			ctx.Err()
	}
	after := func(d time.Duration, failure web.Failure) func(context.Context,
		web.Request) (*web.Page,
		error) {
		return func(ctx context.Context, req web.Request) (*web.Page, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(d):
			}
			failed := failure
			failed.Final = req.URL
			return nil, &failed
		}
	}
	throttled := web.Failure{Code: fault.PageStatus, Status: 429, Retry: true,
		RetryAfter: time.Minute}
	for name, c := range map[string]struct {
		answer func(context.Context, web.Request) (*web.Page, error)
		tiers  model.TierSet
		want   string
		within time.Duration
	}{
		"silent": {silent, model.TiersOf(model.Plain), "plain timeout timeout", DefaultTimeout},
		"silent, and a browser": {silent, model.TiersOf(model.Plain, model.Render),
			"plain timeout render timeout timeout",
			model.TrialTime},
		"asks for a pause": {after(time.Second, throttled),
			model.TiersOf(model.Plain, model.Render), "plain http_status http_status",
			time.Second},
		"slow to fail": {after(20*time.Second, web.Failure{Code: fault.PageConnect, Retry: true}),
			model.TiersOf(model.Plain),
			"plain connect_failed plain connect_failed connect_failed", model.TrialTime},
		"the browser is busy": {func(_ context.Context, req web.Request) (*web.Page, error) {
			if req.Tier == model.Render {
				return nil, web.ErrBusy
			}
			return &web.Page{Final: url, Status: 200, ContentType: "text/html",
				Body: []byte("<p>")}, nil
		}, model.TiersOf(model.Plain, model.Render), "plain no_rows no_rows",
			model.TrialTime + hold.SweepEvery},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, title, func(r *rig, config *Config) {
					allTiers(r, config)
					r.control.tries(ids.ID{})
					r.web.at(url, c.answer)
				})
				defer stop()
				begun := time.Now()
				task := r.task(0, url)
				task.Tiers = c.tiers
				r.send(task)
				if got := climbed(r.pages(1)[0]); got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
				if took := time.Since(begun); took > c.within {
					t.Errorf("took %v, want %v", took, c.within)
				}
				r.nothingMore()
				if r.f.Counts().Timed != 0 {
					t.Errorf("%d timed", r.f.Counts().Timed)
				}
			})
		})
	}
}

// The request of a trial ends soon after its run, uncharged, because nobody waits for it. Other
// runs get their page.
func TestRequestsOfEndedTrialsEnd(t *testing.T) {
	for name, trial := range map[string]bool{"trial": true, "run": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var asked time.Duration
				r, stop := start(t, 1, title, func(r *rig, _ *Config) {
					if trial {
						r.control.tries(ids.ID{})
					}
					r.web.at("http://a.test/", func(ctx context.Context,
						req web.Request) (*web.Page, error) {
						begun := time.Now()
						defer func() { asked = time.Since(begun) }()
						select {
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-time.After(20 * time.Second):
						}
						return &web.Page{Final: req.URL, Status: 200, ContentType: "text/html",
							Body: []byte("<h1>x</h1>")}, nil
					})
				})
				defer stop()
				r.send(r.task(0, "http://a.test/"))
				<-time.After(time.Second)
				r.control.change(func() {
					job := *r.control.jobs[jobID]
					job.State = model.Stopped
					r.control.jobs[jobID] = &job
				})
				page := r.pages(1)[0]
				if abandoned := page.Outcome == model.Cancelled; abandoned != trial ||
					page.PriceRow != "" == trial {
					t.Errorf("%+v", page)
				}
				if early := asked <= time.Second+2*hold.SweepEvery; early != trial {
					t.Errorf("asked for %v", asked)
				}
				r.nothingMore()
			})
		})
	}
}

// A trial that waits for the model ends with what its page states, like any page without the
// model's answer.
func TestTrialsDoNotWaitForTheModel(t *testing.T) {
	for name, others := range map[string]int{"its answer": 0, "its turn": 9} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := startModel(t, &fakeModel{delay: time.Hour},
					func(r *rig, config *Config) {
						r.control.tries(ids.ID{})
						r.control.jobs[scraperID] = &client.Job{ID: scraperID, State: model.Running}
						config.Questions, config.Pace = 1, Pace{}
					})
				defer stop()
				for n := range others {
					url := fmt.Sprintf("http://s%d.test/", n)
					r.web.page(url, radio)
					task := r.task(n, url)
					task.Job = scraperID
					r.send(task)
				}
				synctest.Wait()
				begun := time.Now()
				r.send(r.task(others, "http://a.test/"))
				for {
					p := r.pages(1)[0]
					if p.Job != jobID {
						continue
					}
					if took := time.Since(begun); p.Code != string(fault.PageModel) ||
						took > model.TrialTime+hold.SweepEvery {
						t.Errorf("%q after %v", p.Code, took)
					}
					break
				}
				r.pages(others - int(r.f.Counts().Pages-1))
				synctest.Wait()
				if c := r.f.Counts(); c.HeldBytes != 0 || c.Open != 0 || r.f.Counts().Timed != 0 {
					t.Errorf("kept: %+v, %d timed", c, r.f.Counts().Timed)
				}
			})
		})
	}
}

// Samples use the tokens of their scraper's runs, and share those that they discover.
func TestSamplesShareTokens(t *testing.T) {
	const other = "http://c.test/shop"
	for name, c := range map[string]struct {
		scraper ids.ID
		shop    string
		want    int // the sample's own discoveries
	}{
		"its scraper":                        {scraperID, shop, 0},
		"its scraper, otherwise configured":  {scraperID, other, 1},
		"another scraper, alike":             {ids.ID{11: 9}, shop, 1},
		"a preview, which has no scraper":    {ids.ID{}, shop, 1},
		"a preview, and rules of its own":    {ids.ID{}, other, 1},
		"another scraper, and its own rules": {ids.ID{11: 9}, other, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, withTokens(), func(r *rig, _ *Config) {
					recipe := withTokens()
					recipe.Prelaunch.DiscoveryURL = c.shop
					r.control.recipes[2] = &client.Recipe{Recipe: recipe}
					r.web.latency = time.Second
				})
				defer stop()
				r.web.page(shop, shopPage("1"))
				r.web.page(other, shopPage("1"))
				run := r.task(0, api)
				r.send(run)
				r.pages(1)
				r.control.change(func() { r.control.tries(c.scraper) })
				for seq := 1; seq <= 2; seq++ {
					sample := r.task(seq, api)
					sample.Scraper, sample.Revision = jobID, 2
					r.send(sample)
				}
				for _, p := range r.pages(2) {
					if got := shorthand(p); got != "0 delivered last" {
						t.Errorf("the sample is %q", got)
					}
				}
				if n := r.count(shop) + r.count(other) - 1; n != c.want {
					t.Errorf("%d discoveries more: %s", n, strings.Join(r.web.asked, " "))
				}
			})
		})
	}
}
