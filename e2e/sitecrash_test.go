package e2e

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// sitePages is the number of links of a site.
const sitePages = 6

// TestCrashesOfSites kills the process at each point of taking in a site, of launching its run, and
// of updating its links' states. In the end the site has each link once, the run has read each, and
// all are visited.
func TestCrashesOfSites(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{
		"rowstore.list_before_finish:1", "rowstore.list_after_finish:1",
		"rowstore.list_before_finish:2", "rowstore.list_after_finish:2",
		"work.linkstates.before_step:1", "work.linkstates.before_put",
		"work.linkstates.after_put", "work.linkstates.after_step:2"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, scraper := newSited(t, sitePages, synthweb.Config{Hosts: sitePages, PagesPerHost: 2})
			var links []any
			for _, address := range c.order.URLs {
				links = append(links, map[string]any{"url": address, "title": "a page"})
			}
			c.bring(crash.At + "=" + point)
			c.survive("site", func(ctx context.Context) error {
				return c.Again("site").Call(ctx, "PUT", "/api/scraper/site", nil,
					map[string]any{"name": "all", "scraperRef": scraper, "links": links}, nil)
			})
			run := c.launchSited(scraper)
			var site struct {
				LinkCount int
				Links     []struct{ State string }
			}
			visited := func() (n int) {
				for _, link := range site.Links {
					if link.State == "VISITED" {
						n++
					}
				}
				return n
			}
			for ctx := suite.Within(t, suite.Patience); visited() < sitePages; {
				c.survive("look", func(ctx context.Context) error {
					return c.Call(ctx, "GET", "/api/scraper/"+scraper+"/site", nil, nil, &site)
				})
				select {
				case <-ctx.Done():
					t.Fatalf("%+v", site)
				case <-time.After(50 * time.Millisecond):
				}
			}
			if len(c.Deaths) == 0 {
				c.awaitDeath()
			}
			c.awaitRows(run.JobID, sitePages)
			suite.CheckWallet(t, c.Client)
			runs, differ, err := c.Admin().RecountOfProduct(t.Context())
			if err != nil || runs != 1 || differ > 0 {
				t.Errorf("the product's own recount: %d of %d runs differ, %v", differ, runs, err)
			}
			c.Down(t)
			c.bringAndTidy()
			c.Down(t)
			err = c.withRows(t.Context(), func(store rowstore.Store) error {
				versions, err := store.AllSites(t.Context())
				if err == nil && (len(versions) != 1 || versions[0].Count != sitePages) {
					t.Errorf("versions of sites that are left: %+v", versions)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCrashesOfALargeSite kills the process in the middle of taking in a site of 20,000 links, of
// running them, and of updating their states. The previous site stands until the new one is
// complete. The run is exact, and each link has its state.
func TestCrashesOfALargeSite(t *testing.T) {
	t.Parallel()
	const pages = 2 * rowstore.MaxSitePart // the states come in two parts
	c, scraper := newSited(t, pages, synthweb.Config{Hosts: 200, PagesPerHost: pages / 200,
		Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 95},
			{Class: synthweb.NotFound, Weight: 5}}})
	c.bring()
	ctx := suite.Within(t, 2*suite.Patience)
	put := func(key string, links int) error {
		return putSite(ctx, c.Again(key), scraper, lines(c.Web, links))
	}
	var site struct {
		ID        string
		LinkCount int
	}
	look := func(want int) {
		t.Helper()
		if err := c.Call(ctx, "GET", "/api/scraper/"+scraper+"/site", nil, nil,
			&site); err != nil || site.LinkCount != want {
			t.Fatalf("the site has %d links, want %d, %v", site.LinkCount, want, err)
		}
	}
	if err := put("few", sitePages); err != nil {
		t.Fatal(err)
	}
	look(sitePages)
	c.Down(t)
	c.bring(crash.At + "=rowstore.site_after_part")
	if err := put("all", pages); err == nil || !c.buried() {
		t.Fatalf("the process survives the intake: %v", err)
	}
	err := c.withRows(t.Context(), func(store rowstore.Store) error {
		versions, err := store.AllSites(ctx)
		if err == nil && (len(versions) != 2 || versions[1].Finished) {
			t.Errorf("the process died elsewhere than in the intake: %+v", versions)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c.bring()
	look(sitePages)
	if err := put("all", pages); err != nil {
		t.Fatal(err)
	}
	look(pages)

	run := c.launchSited(scraper)
	suite.Begun(t, c.Client, run, pages/2)
	c.kill()
	c.bring(crash.At + "=work.linkstates.after_put")
	var reported recount.Reported
	c.survive("run", func(ctx context.Context) (err error) {
		reported, err = c.Report(ctx, run)
		return err
	})
	if len(c.Deaths) < 3 {
		c.awaitDeath()
	}
	c.survive("states", func(ctx context.Context) error {
		return awaitStates(ctx, c.Client, site.ID, slices.Values(c.order.URLs))
	})
	c.verify(reported)
	c.bringAndTidy()
	c.Down(t)
	checkStates(t, c.single, site.ID, c.Web, pages)
}

// newSited is a stopped product, with a scraper and the addresses for its site.
func newSited(t *testing.T, pages int, config synthweb.Config) (c *crashCase, scraper string) {
	t.Helper()
	config.PageBytes = []int{2500}
	web := newWeb(t, config)
	args := append(suite.Fast(), "--no-rate-limits")
	c = &crashCase{service: &service{single: newSingle(t, args, web)}}
	c.Service = &suite.Service{T: t, Product: c.single, Web: web, Args: args}
	c.bring()
	c.Fill(c.Client, suite.Plenty)
	c.order = suite.ProductOrder(c.Client, slices.Collect(web.URLs(pages)))
	scraper, err := putSited(suite.Within(t, suite.Patience), c.Client, c.order.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	c.Down(t)
	return c, scraper
}

// launchSited launches a run of a site's links.
func (c *crashCase) launchSited(scraper string) (run suite.Launched) {
	c.T.Helper()
	c.survive("launch", func(ctx context.Context) (err error) {
		run, err = c.Again("launch").RunScraper(ctx, scraper)
		return err
	})
	return run
}

// bringAndTidy starts the process and waits until it has removed orphans, which it does at its
// start and then every five minutes. The previous process did what was due sooner.
func (c *crashCase) bringAndTidy() {
	c.T.Helper()
	began := time.Now()
	c.bring()
	c.awaitWorkSince("orphans", began.Add(5*time.Minute))
}

// awaitWorkSince waits until the work has been done without an error, since a time of the product's
// clock.
func (c *crashCase) awaitWorkSince(kind string, began time.Time) {
	c.T.Helper()
	root := c.root() // the customer itself may have been removed
	for ctx := suite.Within(c.T, suite.Patience); ; {
		var list struct {
			Content []struct {
				Kind, State, Error string
				DueAt              time.Time
			}
		}
		err := root.Call(ctx, "GET", "/api/admin/work", url.Values{"size": {"200"}}, nil, &list)
		if err != nil {
			c.T.Fatal(err)
		}
		for _, item := range list.Content {
			if strings.EqualFold(item.Kind, kind) && item.State == "WAITING" &&
				item.Error == "" && item.DueAt.After(began) {
				return
			}
		}
		select {
		case <-ctx.Done():
			c.T.Fatalf("work of the kind %s does not end: %+v", kind, list.Content)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
