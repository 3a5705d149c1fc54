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
	"shoal.dev/shoal/testkit/synthweb"
)

// sitePages are the links of a site.
const sitePages = 6

// TestCrashesOfSites kills the process at each point at which a site is taken in. So it does where
// its run is launched, and where its links are told what became of them. In the end the site has
// each link once, the run has read each, and all are visited.
func TestCrashesOfSites(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"rowstore.list_before_finish:1", "rowstore.list_after_finish:1",
		"rowstore.list_before_finish:2", "rowstore.list_after_finish:2",
		"work.linkstates.before_step:1", "work.linkstates.before_put",
		"work.linkstates.after_put", "work.linkstates.after_step:2"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, scraper, links := newSited(t)
			c.bring(crash.At + "=" + point)
			c.survive("site", func(ctx context.Context) error {
				return c.Again("site").Call(ctx, "PUT", "/api/scraper/site", nil,
					map[string]any{"name": "all", "scraperRef": scraper, "links": links}, nil)
			})
			var run suite.Launched
			c.survive("launch", func(ctx context.Context) error {
				return c.Again("launch").Call(ctx, "POST", "/api/scraper/"+scraper+"/run", nil, nil,
					&run)
			})
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
			c.bring() // who starts removes at once what nobody has
			c.awaitWorkOf("orphans")
			c.Down(t)
			err = withStore(c.data, func(store rowstore.Store) error {
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

// newSited is a product that is down, with a scraper, and the links that its site is to have.
func newSited(t *testing.T) (c *crashCase, scraper string, links []any) {
	t.Helper()
	web := newWeb(t, synthweb.Config{Hosts: sitePages, PagesPerHost: 2, PageBytes: []int{2500}})
	args := append(suite.Fast(), "--no-rate-limits")
	c = &crashCase{service: &service{single: newSingle(t, args, web)}}
	c.Service = &suite.Service{T: t, Product: c.single, Web: web, Args: args}
	c.bring()
	c.Fill(c.Client, suite.Plenty)
	urls := slices.Collect(web.URLs(sitePages))
	for _, address := range urls {
		links = append(links, map[string]any{"url": address, "title": "a page"})
	}
	var group, made struct{ ID string }
	ctx := suite.Within(t, suite.Patience)
	err := c.Call(ctx, "PUT", "/api/scraper/group", nil, map[string]any{"name": "g"}, &group)
	if err == nil {
		err = c.Call(ctx, "PUT", "/api/scraper", nil, map[string]any{"name": "s",
			"groupRef": group.ID, "type": "SINGLE_PRODUCT",
			"sourceConfig": map[string]any{"url": urls[0]},
			"itemsConfig": []any{map[string]any{"name": "title", "selector": "h1",
				"kind": "TEXT"}}}, &made)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Down(t)
	return c, made.ID, links
}

// awaitWorkOf waits until a recurring kind of work has been done since the process started.
func (c *crashCase) awaitWorkOf(kind string) {
	c.T.Helper()
	began := time.Now()
	for ctx := suite.Within(c.T, suite.Patience); ; {
		var list struct {
			Content []struct {
				Kind, State string
				DueAt       time.Time
			}
		}
		err := c.Admin().Call(ctx, "GET", "/api/admin/work", url.Values{"size": {"200"}}, nil,
			&list)
		if err != nil {
			c.T.Fatal(err)
		}
		for _, item := range list.Content {
			if strings.EqualFold(item.Kind, kind) && item.State == "WAITING" &&
				item.DueAt.After(began) {
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
