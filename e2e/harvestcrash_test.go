package e2e

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/synthweb"
)

const (
	// harvestedPages is the number of pages of a site whose index names three sitemaps.
	harvestedPages = 25
	// harvestedFiles are these four, and two that are requested but missing: nothing names them.
	harvestedFiles = 6
)

// TestCrashesOfHarvests kills the process at each point of reading a sitemap. In the end each
// address of the site is there once. A file is requested again only if the process died before the
// journal had it. The first batch reports no file, the last one the end, and each other one a file.
func TestCrashesOfHarvests(t *testing.T) {
	t.Parallel()
	type kill struct {
		point string
		again int
	}
	for _, k := range share(t, []kill{{"before_step", 0}, {"before_batch:1", 0},
		{"after_batch:1", 0}, {"before_batch:3", 1}, {"after_batch:3", 0}, {"before_batch:6", 1},
		{"before_batch:8", 0}, {"before_end", 0}, {"after_end", 0}, {"after_step", 0}}) {
		t.Run(k.point, func(t *testing.T) {
			t.Parallel()
			h := newHarvested(t)
			c := h.crashCase
			c.bring(crash.At + "=work.harvest." + k.point)
			path := h.sitemaps()
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
			times, asked := map[string]int{}, 0
			for request := range c.Web.Requests() {
				if strings.Contains(request.Path, "sitemap") {
					times[request.Path]++
					asked++
				}
			}
			if len(times) != harvestedFiles || asked != harvestedFiles+k.again {
				t.Errorf("files are asked for so often, want %d again: %v", k.again, times)
			}
		})
	}
}

// TestCrashesOfWipes kills the process at each point of the nightly wipe, once the clock is past
// 02:00. Harvested addresses are shown until then. In the end they are neither shown nor stored.
func TestCrashesOfWipes(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{"work.wipe.before_step", "work.wipe.before_drop",
		"work.wipe.before_forget", "work.wipe.after_step"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			h := newHarvested(t)
			h.bring()
			path := h.sitemaps()
			if err := h.Call(t.Context(), "POST", path+"/harvest", nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			now := time.Now().UTC()
			night := time.Date(now.Year(), now.Month(), now.Day(), 2, 0, 0, 0, time.UTC)
			if !night.After(now.Add(time.Hour)) {
				night = night.AddDate(0, 0, 1)
			}
			h.shows(path, harvestedPages)
			h.Down(t)
			h.late.pass(t, time.Until(night.Add(-10*time.Minute)).Round(time.Second))
			h.bring()
			h.awaitWorkSince("wipe", time.Now().Add(h.late.ahead))
			h.shows(path, harvestedPages)
			h.Down(t)
			h.late.pass(t, 11*time.Minute)
			h.dies(crash.At + "=" + point)
			h.bring()
			h.shows(path, 0)
			h.awaitWorkSince("wipe", time.Now().Add(h.late.ahead))
			h.Down(t)
			err := h.withRows(t.Context(), func(store rowstore.Store) error {
				left, err := store.AllHarvests(t.Context())
				if len(left) > 0 {
					t.Errorf("of %v something is stored", left)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// newHarvested is a stopped product, with a site that has sitemaps.
func newHarvested(t *testing.T) *oldProduct {
	t.Helper()
	return openOldProduct(t, newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: harvestedPages,
		Sitemaps: true, SitemapURLs: 10, Mix: synthweb.Products(), PageBytes: []int{2500}}))
}

// sitemaps makes a scraper of the site, and returns the path of its sitemaps' entries.
func (o *oldProduct) sitemaps() string {
	o.T.Helper()
	group := suite.Must(o.PutGroup(o.T.Context(), "site"))(o.T)
	var first string
	for first = range o.Web.URLs(1) {
		break
	}
	return "/api/scraper/" + suite.Must(o.PutScraper(o.T.Context(), suite.Scraper{GroupRef: group,
		Scraper: model.Scraper{Name: "site", Type: model.SingleProduct,
			ItemsConfig:  synthweb.ProductFields(),
			SourceConfig: model.SourceConfig{URL: first}}}))(o.T) + "/sitemaps"
}

// shows requires that many entries of sitemaps.
func (o *oldProduct) shows(path string, want int) {
	o.T.Helper()
	var page struct {
		Total int `json:"totalElements"`
	}
	err := o.Call(o.T.Context(), "GET", path, nil, nil, &page)
	if err != nil || page.Total != want {
		o.T.Errorf("%d entries are shown, want %d, %v", page.Total, want, err)
	}
}
