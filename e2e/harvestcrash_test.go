package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/synthweb"
)

// harvestedPages are those of a site whose index names three sitemaps.
const harvestedPages = 25

// TestCrashesOfHarvests kills the process at each point at which a sitemap is read. In the end each
// address of the site is there once, and no sitemap was read again that had been.
func TestCrashesOfHarvests(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"work.harvest.before_step", "work.harvest.before_batch:1",
		"work.harvest.after_batch:1", "work.harvest.before_batch:3", "work.harvest.after_batch:3",
		"work.harvest.before_batch:6", "work.harvest.before_end", "work.harvest.after_end",
		"work.harvest.after_step"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			web := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: harvestedPages, Sitemaps: true,
				SitemapURLs: 10, Mix: synthweb.Products(), PageBytes: []int{2500}})
			args := append(suite.Fast(), "--no-rate-limits")
			c := &crashCase{service: &service{single: newSingle(t, args, web)}}
			c.Service = &suite.Service{T: t, Product: c.single, Web: web, Args: args}
			c.bring(crash.At + "=" + point)
			var first string
			for first = range web.URLs(1) {
				break
			}
			group := suite.Must(c.PutGroup(t.Context(), "site"))(t)
			scraper := suite.Must(c.PutScraper(t.Context(), suite.Scraper{GroupRef: group,
				Scraper: model.Scraper{Name: "site", Type: model.SingleProduct,
					ItemsConfig:  synthweb.ProductFields(),
					SourceConfig: model.SourceConfig{URL: first}}}))(t)
			path := "/api/scraper/" + scraper + "/sitemaps"
			var count int
			c.survive("harvest", func(ctx context.Context) error {
				return c.Again("harvest").Call(ctx, "POST", path+"/harvest", nil, nil, &count)
			})
			if len(c.Deaths) == 0 {
				c.awaitDeath()
			}
			var page struct {
				Content []struct{ URL string }
				Total   int `json:"totalElements"`
			}
			c.survive("read", func(ctx context.Context) error {
				return c.Call(ctx, "GET", path, url.Values{"size": {"200"}}, nil, &page)
			})
			found := map[string]bool{}
			for _, entry := range page.Content {
				found[entry.URL] = true
			}
			if count != harvestedPages || page.Total != harvestedPages ||
				len(found) != harvestedPages {
				t.Errorf("%d are counted, %d told, %d are there", count, page.Total, len(found))
			}
			times := map[string]int{}
			for request := range web.Requests() {
				if strings.Contains(request.Path, "sitemap") && request.Status == http.StatusOK {
					if times[request.Path]++; times[request.Path] > 2 {
						t.Errorf("%s is asked for %d times", request.Path, times[request.Path])
					}
				}
			}
		})
	}
}
