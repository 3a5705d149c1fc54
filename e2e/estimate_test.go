package e2e

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// estimated counts launches with an estimate.
type estimated struct {
	sync.Mutex
	launches, inside int // after 20 runs
	known, narrow    int // with history, and with a maximum of at most twice the minimum
}

const (
	historyRuns   = 20
	measuredRuns  = 8
	insideOf100   = 95
	narrowOf100   = 80
	widestOfRange = 2
)

// TestEstimatesHold launches lists with changing addresses and lengths. Their pages fail, redirect
// and continue like the synthetic web's. Each launch's cost is estimated before.
func TestEstimatesHold(t *testing.T) {
	t.Parallel()
	rough := newWeb(t, suite.Rough(60, 20))
	chains := newWeb(t, synthweb.Config{Seed: 11, Hosts: 40, PagesPerHost: 10, ChainPages: 12,
		ItemsPerPage: 4, Mix: synthweb.Listings()})
	var sum estimated
	t.Run("kinds", func(t *testing.T) {
		for name, kind := range map[string]struct {
			web         *synthweb.Web
			order       func(who suite.Client, urls []string) suite.Order
			least, most int
		}{
			"products": {rough, suite.ProductOrder, 40, 80},
			"listings": {chains, func(who suite.Client, urls []string) suite.Order {
				return suite.ListingOrder(who, urls, suite.NextLink())
			}, 30, 60},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newService(t, kind.web, suite.Fast()...)
				s.Fill(s.Client, suite.Plenty)
				all := slices.Collect(kind.web.URLs(1_000))
				random := rand.New(rand.NewPCG(1, uint64(len(name))))
				sample := func() []string {
					random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
					return all[:kind.least+random.IntN(kind.most-kind.least)]
				}
				run := kind.order(s.Client, sample()).Launch(t)
				for i := range historyRuns + measuredRuns {
					suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
					urls := sample()
					guess := estimate(t, s.Client, run.ScraperID, len(urls))
					err := s.Call(t.Context(), "POST", "/api/scraper/url-list-run", nil,
						map[string]any{"scraperId": run.ScraperID, "force": true, "urls": urls},
						&run)
					if err != nil {
						t.Fatal(err)
					}
					over := suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
					sum.add(t, guess, -over.Entry.AmountMicros, i+1)
				}
			})
		}
		t.Run("scraper", func(t *testing.T) {
			t.Parallel()
			s := newService(t, chains, suite.Fast()...)
			s.Fill(s.Client, suite.Plenty)
			pagination := suite.NextLink()
			group := suite.Must(s.PutGroup(t.Context(), "one"))(t)
			id := suite.Must(s.PutScraper(t.Context(), suite.Scraper{GroupRef: group,
				Scraper: model.Scraper{Name: "one", Type: model.MultipleProducts,
					ItemsConfig: synthweb.ItemFields(),
					SourceConfig: model.SourceConfig{URL: slices.Collect(chains.URLs(1))[0],
						Pagination: &pagination}}}))(t)
			for i := range 4 {
				guess := estimate(t, s.Client, id, 0)
				run := suite.Must(s.RunScraper(t.Context(), id))(t)
				over := suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
				sum.add(t, guess, -over.Entry.AmountMicros, i)
			}
		})
	})
	if t.Failed() {
		return
	}
	t.Logf("%d of %d launches after %d runs cost what was estimated; %d of %d ranges with history "+
		"are at most one to two", sum.inside, sum.launches, historyRuns, sum.narrow, sum.known)
	if sum.launches == 0 || sum.inside*100 < sum.launches*insideOf100 ||
		sum.narrow*100 < sum.known*narrowOf100 {
		t.Error("estimates do not hold")
	}
}

// guess is the answer of an estimate.
type guess struct {
	Links, Pages, MinMicros, MaxMicros, BalanceMicros, RunsConsidered int64
	Affordable                                                        bool
}

// estimate asks what a run of that many links will cost; 0: of all the scraper's links.
func estimate(t *testing.T, who suite.Client, scraper string, links int) guess {
	t.Helper()
	query := url.Values{}
	if links > 0 {
		query.Set("links", strconv.Itoa(links))
	}
	var g guess
	if err := who.Call(t.Context(), "POST", "/api/scraper/"+scraper+"/estimate", query, nil,
		&g); err != nil {
		t.Fatal(err)
	}
	if links > 0 && g.Links != int64(links) || !g.Affordable {
		t.Errorf("%+v for %d links", g, links)
	}
	return g
}

func (e *estimated) add(t *testing.T, g guess, cost int64, runs int) {
	t.Helper()
	e.Lock()
	defer e.Unlock()
	if want := int64(min(runs, historyRuns)); g.RunsConsidered != want {
		t.Errorf("%+v goes by other than the %d runs before", g, want)
	}
	inside := g.MinMicros <= cost && cost <= g.MaxMicros
	t.Logf("after %d runs: %d to %d, it cost %d", runs, g.MinMicros, g.MaxMicros, cost)
	if runs > 0 {
		if e.known++; g.MaxMicros <= widestOfRange*g.MinMicros {
			e.narrow++
		}
	}
	if runs >= historyRuns {
		if e.launches++; inside {
			e.inside++
		}
	}
}
