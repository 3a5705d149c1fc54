package harvest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	guards "shoal.dev/shoal/pkg/reading"
)

// What there is to say of sites without a sitemap, and of such as cannot be read.
func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		status map[string]int
		url    string
		count  uint32
		code   fault.Code
	}{
		"no sitemap": {nil, nil, "http://a.test/", 0, ""},
		"empty": {map[string]string{"a.test/sitemap.xml": "<urlset/>"}, nil,
			"http://a.test/", 0, ""},
		"blank": {map[string]string{"a.test/sitemap.xml": "\n"}, nil, "http://a.test/", 0, ""},
		"a page": {map[string]string{"a.test/sitemap.xml": "<html></html>"}, nil,
			"http://a.test/", 0, ""},
		"a named page": {map[string]string{"a.test/robots.txt": "Sitemap: /s",
			"a.test/s": "<html></html>"}, nil, "http://a.test/", 0, fault.SitemapMalformed},
		"broken": {map[string]string{"a.test/sitemap.xml": "<urlset><url>"}, nil,
			"http://a.test/", 0, fault.SitemapMalformed},
		"broken behind some": {map[string]string{"a.test/sitemap.xml": "<urlset><url><loc>/1" +
			"</loc></url><url>"}, nil, "http://a.test/", 1, ""},
		"a dead host": {nil, nil, "http://dead.example/", 0, fault.SourceUnreachable},
		"a dead host's sitemap": {nil, nil, "http://dead.example/sitemap.xml", 0,
			fault.SourceUnreachable},
		"no rules": {nil, map[string]int{"a.test/robots.txt": 503}, "http://a.test/", 0,
			fault.SourceUnreachable},
		"forbidden": {map[string]string{"a.test/robots.txt": "User-agent: *\nDisallow: /",
			"a.test/sitemap.xml": urlset("/1")}, nil, "http://a.test/", 0, ""},
		"busy": {nil, map[string]int{"a.test/sitemap.xml": 503}, "http://a.test/", 0, ""},
		"a busy sitemap that is named": {map[string]string{"a.test/robots.txt": "Sitemap: /s.xml"},
			map[string]int{"a.test/s.xml": 503}, "http://a.test/", 0, fault.SourceUnreachable},
		"busy sitemaps of an index": {map[string]string{
			"a.test/sitemap.xml": index("/1.xml", "/2.xml")},
			map[string]int{"a.test/1.xml": 503, "a.test/2.xml": 429}, "http://a.test/", 0,
			fault.SourceUnreachable},
		"an index of a dead host": {map[string]string{"a.test/robots.txt": "Sitemap: /s.xml",
			"a.test/s.xml": index("/1.xml"), "a.test/1.xml": "http://dead.example/1.xml"},
			map[string]int{"a.test/1.xml": 302}, "http://a.test/", 0, fault.SourceUnreachable},
		"one of two of an index": {map[string]string{
			"a.test/sitemap.xml": index("/1.xml", "/2.xml"), "a.test/2.xml": urlset("/1")},
			map[string]int{"a.test/1.xml": 503}, "http://a.test/", 1, ""},
		"an index of what is gone": {map[string]string{"a.test/sitemap.xml": index("/1.xml")}, nil,
			"http://a.test/", 0, ""},
		"an own sitemap": {map[string]string{"a.test/shop.xml": urlset("/1", "/2")}, nil,
			"http://a.test/shop.xml?x=1", 0, ""},
		"an own feed": {map[string]string{"a.test/shop.rss": "http://a.test/1\nhttp://a.test/2"},
			nil, "http://a.test/shop.rss", 2, ""},
		"private": {nil, nil, "http://10.0.0.1/", 0, fault.SourceUnreachable},
		"moved": {map[string]string{"a.test/sitemap.xml": "http://www.a.test/s.xml",
			"www.a.test/s.xml": urlset("/1")}, map[string]int{"a.test/sitemap.xml": 301},
			"http://a.test/", 1, ""},
		"moved to the forbidden": {map[string]string{
			"a.test/sitemap.xml": "http://169.254.169.254/"},
			map[string]int{"a.test/sitemap.xml": 302}, "http://a.test/", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.files)
			if c.status != nil {
				r.status = c.status
			}
			h := r.finish(r.ask(c.url, 500_000))
			want := client.HarvestDone
			if c.code != "" {
				want = client.HarvestFailed
			}
			if h.State != want || h.Code != string(c.code) || h.Count != c.count {
				t.Errorf("%+v; asked for %q", h, r.asked)
			}
		})
	}
}

// A bad day of a site's sitemaps takes nothing away of what the harvest before has found.
func TestNothingReadShowsTheHarvestBefore(t *testing.T) {
	r := newRig(t, map[string]string{"a.test/sitemap.xml": index("/1.xml"),
		"a.test/1.xml": urlset("/1", "/2")})
	first := r.ask("http://a.test/", 500_000)
	r.finish(first)
	r.clock.Advance(time.Minute)
	r.mu.Lock()
	r.status["a.test/1.xml"] = 503
	r.mu.Unlock()
	r.finish(r.ask("http://a.test/", 500_000))
	view := r.client.View()
	shown := view.NewestHarvest(r.scraper)
	if shown == nil || shown.ID != first || !shown.Shows(view, r.clock.Now()) ||
		len(r.found(first)) != 2 {
		t.Errorf("%+v is shown", shown)
	}
}

// poisoned is a sender whose bodies of /poison.xml make their reader panic.
type poisoned struct{ Sender }

// Do implements Sender.
func (p poisoned) Do(ctx context.Context, ask *egress.Request) (*egress.Response, error) {
	if take := ask.Take; take != nil && strings.HasSuffix(ask.URL, "/poison.xml") {
		ask.Take = func(contentType string, body io.Reader) {
			take(contentType, io.MultiReader(body, panicking{}))
		}
	}
	return p.Sender.Do(ctx, ask)
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("a reader's") }

// A sitemap whose reading panics is malformed, and kept for a look. The others are read.
func TestPoisonedSitemap(t *testing.T) {
	r := newRig(t, map[string]string{"a.test/sitemap.xml": index("/poison.xml", "/good.xml"),
		"a.test/poison.xml": "<urlset><url>", "a.test/good.xml": urlset("/1")})
	dir := t.TempDir()
	r.sender = poisoned{r.egress}
	r.reader = guards.New("apiserver", guards.Config{Dir: dir})
	h := r.finish(r.ask("http://a.test/", 500_000))
	if h.State != client.HarvestDone || h.Count != 1 {
		t.Errorf("%+v", h)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "*.page"))
	if len(kept) != 1 || err != nil {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	if body, err := os.ReadFile(kept[0]); string(body) != "<urlset><url>" {
		t.Errorf("kept: %q, %v", body, err)
	}
}
