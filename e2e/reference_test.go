package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/browser"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestReferenceInABrowser: the page shows every operation, can be searched, calls only its own
// server, and violates no rule of its policy.
func TestReferenceInABrowser(t *testing.T) {
	t.Parallel()
	path := browser.Path(t)
	web := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: 1})
	s := newSingle(t, suite.Fast(), web)
	s.Up(t)
	p := newPerson(t, path, s.p.Server())
	p.do(chromedp.Navigate(p.server + "/v3/api-docs/reference"))
	p.sees(`document.querySelectorAll('[id^="tag/"]').length > 20`)
	shown := asks[string](p, `document.body.innerText`)
	for _, text := range asks[[]string](p, `(async () => {
		const described = await (await fetch('/v3/api-docs')).json();
		return Object.entries(described.paths).flatMap(([path, methods]) =>
			[path, ...Object.values(methods).flatMap(m => m.summary ? [m.summary] : [])]);
	})()`) {
		if !strings.Contains(shown, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	styled := asks[bool](p, `getComputedStyle(document.querySelector('.menu-content')).position
		=== 'sticky'`)
	if !styled {
		t.Error("the page has no style")
	}
	p.do(chromedp.SendKeys(chromedp.CSS("input[type=text]"), "sitemaps"))
	p.sees(`document.querySelectorAll('[data-role="search:results"] li').length > 0`)
	loaded := asks[[]string](p, `performance.getEntriesByType('resource').map(e => e.name)`)
	if len(loaded) < 3 {
		t.Errorf("the page has loaded %v alone", loaded)
	}
	for _, address := range loaded {
		if !strings.HasPrefix(address, p.server+"/") && !strings.HasPrefix(address, "data:") &&
			!strings.HasPrefix(address, "blob:"+p.server+"/") {
			t.Errorf("it has asked %s", address)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, said := range p.said {
		if strings.Contains(said, "Content Security Policy") || strings.Contains(said, "Refused") {
			t.Errorf("the browser complains: %s", said)
		}
	}
}
