package fetcher

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rules"
)

// A unit may need more pages than its own (extract.Ask). They are asked for one after the other,
// each as a request of its own with its turn, robots.txt, guard and lease check; what was read
// before waits in memory. It stays one unit: one page record, one receipt, and whoever has to begin
// it anew begins with its first page.

// maxPagesOfUnit bounds the pages that an extraction may ask for, its own included.
const maxPagesOfUnit = 10

// keepBytes counts bytes that a chain keeps while it waits for another page of its unit.
func (f *Fetcher) keepBytes(c *chain, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold(int64(size))
	c.kept += int64(size)
}

// forget gives back what a chain keeps. It needs mu.
func (f *Fetcher) forget(c *chain) {
	delete(f.timed, c)
	f.hold(-c.kept)
	c.kept = 0
}

// extraction runs the extraction of a unit's pages, p the newest. The zero step: the process ends
// meanwhile.
func (f *Fetcher) extraction(ctx context.Context, c *chain, r *recipe, view View,
	p extract.Page) step {
	day := f.day(ctx, r)
	for {
		select {
		case <-ctx.Done():
			return step{}
		case f.extract <- struct{}{}:
		}
		result, err := f.extracted(ctx, c, r, p, day)
		<-f.extract
		if ctx.Err() != nil {
			return step{}
		}
		if err == nil && len(c.fetch.pages)+1 >= maxPagesOfUnit {
			result.Ask = nil
		}
		if err != nil {
			return f.fail(c, codeOf(err))
		}
		if result.Ask == nil || result.Ask.URL == "" && result.Ask.Prompt == nil {
			return f.delivered(c, r, view, p, result)
		}
		f.keepPage(c, p, result.Ask.Keep)
		if c.fetch.prompt = result.Ask.Prompt; c.fetch.prompt != nil {
			var next *step
			if p, next = f.question(ctx, c); next != nil {
				return *next
			}
			continue
		}
		code := f.askFor(c, r, result.Ask.URL)
		if code == "" {
			return step{again: true}
		}
		p = extract.Page{URL: result.Ask.URL, Asked: result.Ask.URL, At: f.config.Clock.Now(),
			Code: code}
	}
}

// extracted are the rows of a unit's pages, p the newest.
func (f *Fetcher) extracted(ctx context.Context, c *chain, r *recipe, p extract.Page,
	day rules.Day) (result extract.Result, err error) {
	panicked := f.reader.Run(reading.Page{URL: p.URL, ContentType: p.ContentType, Body: p.Body},
		func() {
			f.config.Reading(p)
			result, err = r.extractor.ExtractContext(ctx, append(c.fetch.pages, p)...)
			if err == nil && result.Ask == nil {
				result.Rows, err = processed(ctx, r, result.Rows, day)
			}
		})
	if panicked != nil {
		return extract.Result{}, panicked
	}
	return result, err
}

// keepPage keeps a page, or what its type chose to keep of it, until the unit's next page is there.
func (f *Fetcher) keepPage(c *chain, p extract.Page, kept []byte) {
	if p.Kept = kept; len(kept) > 0 {
		p.Body = nil
	}
	p.Body = bytes.Clone(p.Body) // the response's is used again
	c.fetch.pages = append(c.fetch.pages, p)
	f.keepBytes(c, len(p.Body)+len(p.Kept))
}

// askFor lets the chain's next request be for another page of its unit, or says why not.
func (f *Fetcher) askFor(c *chain, r *recipe, url string) fault.Code {
	canonical, err := address.Canonical(url)
	if err != nil {
		return fault.PageInvalidURL
	}
	if !f.mayTry(c, r, 0) {
		return fault.PageTimeout
	}
	s := &c.fetch
	s.at, s.as, s.asked, s.hops, s.permit, s.spent, s.failures = canonical, nil, canonical, 0,
		false, 0, 0
	return "" // by the tier that brought the unit's own page
}

// mayTry says whether the unit's limits allow another try after a wait.
func (f *Fetcher) mayTry(c *chain, r *recipe, wait time.Duration) bool {
	fetches, _ := r.extractor.Limits()
	return (fetches == 0 || len(c.fetch.tries) < fetches) &&
		!c.overdue(f.config.Clock.Now().Add(wait))
}

// timeout is how long what is asked now may take.
func (f *Fetcher) timeout(c *chain, now time.Time) time.Duration {
	if c.fetch.until.IsZero() {
		return f.config.Timeout
	}
	return min(f.config.Timeout, c.fetch.until.Sub(now))
}

// overdue says that the unit's time is over.
func (c *chain) overdue(now time.Time) bool {
	return !c.fetch.until.IsZero() && !now.Before(c.fetch.until)
}

// lastCode is why the page at hand is not there when its time is over.
func (c *chain) lastCode() fault.Code {
	if n := len(c.fetch.tries); n > 0 && c.fetch.asked == "" {
		return fault.Code(c.fetch.tries[n-1].Code)
	}
	return fault.PageTimeout
}

// unfetched answers a unit that nothing is to be fetched for: nil for all others.
func (f *Fetcher) unfetched(c *chain, r *recipe, view View) *step {
	if len(c.fetch.tries) > 0 || c.fetch.hops > 0 || len(c.fetch.pages) > 0 {
		return nil
	}
	p := extract.Page{URL: c.fetch.at, Asked: c.url, At: f.config.Clock.Now()}
	if c.task.Limited {
		p.Code = fault.PageDailyLimit
	}
	var result extract.Result
	var done bool
	var err error
	panicked := f.reader.Run(reading.Page{URL: p.URL},
		func() { result, done, err = r.extractor.Unfetched(p) })
	if panicked != nil {
		err = panicked
	}
	var next step
	switch {
	case err != nil:
		next = f.fail(c, codeOf(err))
	case done:
		next = f.delivered(c, r, view, p, result)
	case c.task.Limited:
		next = f.fail(c, fault.PageDailyLimit)
	default:
		return nil
	}
	next.answer = frontier.Answer{Unasked: true}
	return &next
}

// unread ends a page that cannot be fetched: with an error, unless the extraction makes something
// of that.
func (f *Fetcher) unread(ctx context.Context, c *chain, r *recipe, view View,
	code fault.Code) step {
	s := &c.fetch
	if s.asked == "" && !r.extractor.TakesFailures() {
		return f.refused(c, r, code)
	}
	asked := s.asked
	if asked == "" {
		asked = c.url
	}
	return f.extraction(ctx, c, r, view,
		extract.Page{URL: s.at, Asked: asked, At: f.config.Clock.Now(), Code: code})
}

// delivered makes the page of a unit whose pages are complete, last the newest of them.
func (f *Fetcher) delivered(c *chain, r *recipe, view View, last extract.Page,
	result extract.Result) step {
	f.metrics.parsed(result.Parser)
	first := last
	if len(c.fetch.pages) > 0 {
		first = c.fetch.pages[0]
	}
	code := fault.Code("")
	if len(result.Rows) == 0 {
		if code = without(last, result); f.scripted(c, r, first, code) {
			return step{again: true}
		}
	}
	f.metrics.rejected.Add(float64(result.Rejected))
	if code != "" && code != fault.PageNoRows {
		return f.fail(c, code)
	}
	if len(result.Rows) > 0 && len(c.fetch.tries) > 0 {
		f.learn(c)
	}
	got := content{final: first.URL, rows: result.Rows, link: result.Next, cursor: result.Cursor}
	var secret uint64
	if r.pager != nil {
		secret = view.Cluster().HashSecret
		got.body = xxh3.HashSeed(first.Body, secret)
	}
	if !result.Free {
		got.priceRow, got.quantity = c.charge.Of(c.fetch.by)
	}
	if r.pager == nil {
		p := c.follow(f, r, secret, got)
		return step{page: &p}
	}
	var p model.Page
	panicked := f.reader.Run(reading.Page{URL: first.URL, ContentType: first.ContentType,
		Body: first.Body}, func() {
		p = c.follow(f, r, secret, got)
	})
	if panicked != nil {
		return f.fail(c, fault.PageUnparsable)
	}
	return step{page: &p}
}

// without is why a unit has no row: its pages hold none, or none that fits the schema, or what they
// do not state was asked of a language model that gave no answer.
func without(last extract.Page, result extract.Result) fault.Code {
	switch {
	case last.Code == fault.PageModel || last.Code == fault.PageModelLimit:
		return last.Code
	case result.Rejected > 0:
		return fault.PageRowRejected
	}
	return fault.PageNoRows
}

// scripted goes on with a browser where a page without rows may be one whose scripts make them.
// code is why it has none: where a model should have answered, no browser is at fault.
func (f *Fetcher) scripted(c *chain, r *recipe, own extract.Page, code fault.Code) bool {
	if code == fault.PageModel || code == fault.PageModelLimit || c.unit.Page > 0 ||
		c.fetch.asked != "" ||
		len(c.fetch.tries) == 0 || !strings.Contains(own.ContentType, "html") ||
		!f.mayTry(c, r, 0) {
		return false
	}
	tiers := f.tiersFor(c, r)
	if tiers[c.fetch.tier].Renders() || !c.fetch.climb(tiers, model.Rendering) {
		return false
	}
	c.fetch.tries[len(c.fetch.tries)-1].Code = string(code)
	c.fetch.pages = nil
	f.mu.Lock()
	f.forget(c)
	f.mu.Unlock()
	f.again(c)
	return true
}

// endOverdue hands the waiting chains whose unit's time is over to the workers: nothing is asked
// any more. It needs mu.
func (f *Fetcher) endOverdue(now time.Time) {
	for c := range f.timed {
		if c.overdue(now) && f.frontier.Remove(&c.item, now) {
			c.item.Host, c.item.Pace = "", Pace{} // no host has to be waited for
			f.frontier.Resume(&c.item, now, now)
			notify(f.wake)
		}
	}
}

// nextKept is Next while too much is held: only chains that keep something may go on, since their
// end gives it back. It needs mu.
func (f *Fetcher) nextKept(now time.Time) (*frontier.Item, time.Duration) {
	wait := frontier.Forever
	for c := range f.timed {
		if c.kept == 0 {
			continue
		}
		if f.frontier.Take(&c.item, now) {
			return &c.item, 0
		}
		wait = lookAgain
	}
	return nil, wait
}

// lookAgain is how long nextKept waits for a host.
const lookAgain = 50 * time.Millisecond
