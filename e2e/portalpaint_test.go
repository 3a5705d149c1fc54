package e2e

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/testkit/browser"
)

// paintBound is the middle First that is allowed, 0 for any: only a test that runs alone judges
// time.
var paintBound = flag.Duration("paint-bound", 0,
	"judge the middle first paint of the portal by this")

const (
	slowedCPU = 4
	paints    = 9         // of each page, odd for a median
	firstPage = 300 << 10 // bytes as transferred
)

// paint is a page's load timing, in milliseconds since the request.
type paint struct {
	First   float64 // first drawing
	Content float64 // first readable content
	Done    float64 // main content
	Bytes   int     // transferred, compressed
	Kept    int     // from the browser's cache
}

// paintOf reads it. Answers of the API do not count.
const paintOf = `(() => { const at = name => performance.getEntriesByName(name)[0].startTime,
	parts = [performance.getEntriesByType("navigation")[0], ...performance
		.getEntriesByType("resource").filter(e => e.name.includes("/assets/"))];
	return { First: at("first-paint"), Content: at("first-contentful-paint"),
		Done: performance.now(), Bytes: parts.reduce((sum, e) => sum + e.encodedBodySize, 0),
		Kept: parts.filter(e => e.transferSize === 0).length }; })()`

// TestPortalPaintsSoon prints when a browser draws the first page, with an empty cache and a slowed
// processor. It bounds the transferred bytes, and in a night the middle first paint.
func TestPortalPaintsSoon(t *testing.T) {
	t.Parallel()
	path := browser.Path(t)
	v := newVisit(t, false)
	visitor := newPerson(t, path, v.Server) // not signed in
	for _, c := range []struct {
		by                *person
		name, place, done string
	}{
		{v.person, "the portal", "/portal", `document.querySelector("#addresses") &&
			document.querySelector(".balance strong")`},
		{visitor, "the sign-in", "/sign-in", `document.querySelector("#password")`},
	} {
		if _, err := chromedp.Call(c.by.ctx, emulation.SetCPUThrottlingRate,
			emulation.SetCPUThrottlingRateParams{Rate: slowedCPU}); err != nil {
			t.Fatal(err)
		}
		var seen []paint
		for range paints {
			c.by.do(chromedp.Navigate("about:blank"))
			if _, err := chromedp.Call(c.by.ctx, network.ClearBrowserCache,
				cdp.Empty{}); err != nil {
				t.Fatal(err)
			}
			c.by.do(chromedp.Navigate(v.Server + c.place))
			c.by.sees(c.done)
			c.by.sees(`performance.getEntriesByName("first-contentful-paint")[0]`)
			p := asks[paint](c.by, paintOf)
			if p.Bytes == 0 || p.Bytes > firstPage || p.Kept > 0 {
				t.Errorf("%s: %d bytes have come, %d parts were there", c.name, p.Bytes, p.Kept)
			}
			seen = append(seen, p)
		}
		middle := func(of func(paint) float64) (mid, most float64) {
			slices.SortFunc(seen, func(a, b paint) int { return int(of(a)*1000 - of(b)*1000) })
			return of(seen[paints/2]), of(seen[paints-1])
		}
		first, firstMost := middle(func(p paint) float64 { return p.First })
		content, contentMost := middle(func(p paint) float64 { return p.Content })
		done, doneMost := middle(func(p paint) float64 { return p.Done })
		t.Logf("%s, CPU slowed %d times, middle and most of %d: first paint %.0f and %.0f ms, with "+
			"content %.0f and %.0f ms, at most %.0f and %.0f ms until all is there; %d bytes", c.name,
			slowedCPU, paints, first, firstMost, content, contentMost, done, doneMost,
			seen[0].Bytes)
		if most := *paintBound; most > 0 && time.Duration(first*float64(time.Millisecond)) > most {
			t.Errorf("%s is drawn after %.0f ms, at most %v", c.name, first, most)
		}
	}
	v.ends()
}
