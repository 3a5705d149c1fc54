package fetcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/stream"
)

// Bounds of the tries at one page (decision 17).
const (
	maxTries = 3 // of one tier
	maxHops  = 10
	// before the second try; doubles for each further one, with jitter
	firstRetry = 500 * time.Millisecond
	// Before a tier is asked again that can take no more: doubles, too. Many thousands of pages may
	// wait for one browser.
	firstBusy = time.Second
	mostBusy  = 8 * time.Second
)

// maxPageRecord leaves room for what a log puts around a record.
const maxPageRecord = stream.MaxRecordBytes - 1024

// step is what a request led to: a page, or that the chain has to wait for another request. The
// zero step is neither: the shard is not ours any more, or the process ends.
type step struct {
	page   *model.Page
	record []byte        // the page, encoded
	again  bool          // the next request of the same page
	wait   time.Duration // before it, at least
	answer frontier.Answer
}

func (s *step) goesOn() bool { return s.again || s.page != nil && !s.page.Last && !s.page.Spent }

// errAbandoned ends the request of a trial that nobody waits for any more.
var errAbandoned = errors.New("fetcher: the trial has ended")

// whileWanted ends with the shard, and a trial's with its run, too: who waited for it is gone.
// Other runs that are stopped get what they have asked for.
func (f *Fetcher) whileWanted(c *chain) (ctx context.Context, end func()) {
	if job := f.config.Control.View().Job(c.task.Job); job == nil || !job.Trial() {
		return c.shard.ctx, func() {}
	}
	ctx, abandon := context.WithCancelCause(c.shard.ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	c.abandon = abandon
	return ctx, func() { abandon(nil) }
}

// work makes one request of a chain, and does with it what follows. The request ends when the shard
// is dropped, at the lease's end at the latest.
func (f *Fetcher) work(c *chain) {
	ctx, end := f.whileWanted(c)
	defer end()
	f.counts.asking.Add(1)
	next := f.request(ctx, c)
	f.counts.asking.Add(-1)
	if errors.Is(context.Cause(ctx), errAbandoned) &&
		(next.page == nil || next.page.Outcome == model.Errored) {
		page := cancelledPage(c)
		next = step{page: &page, answer: next.answer}
	}
	if next.page != nil {
		if c.task.Trace != nil && next.page.Outcome != model.Cancelled {
			f.trace(c, next.page)
		}
		next.record = f.encode(c, next.page)
	}
	pace := c.item.Pace
	if next.goesOn() {
		if r := f.recipes.get(f.config.Control.View(), c.task.Scraper, c.task.Revision); r != nil {
			pace = f.config.paceFor(r.pace)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c.abandon = nil
	now := f.config.Clock.Now()
	f.frontier.Done(&c.item, next.answer, now)
	notify(f.wake)
	if next.page != nil || c.shard.gone {
		f.forget(c)
	}
	switch {
	case c.shard.gone:
		return
	// A process that was suspended wakes up here with an answer that is another holder's to give by
	// now.
	case !c.shard.fresh(now), next.page == nil && !next.again:
		f.lapse(c.shard)
		return
	}
	if next.page != nil {
		f.post(c, next.page, next.record)
	}
	if next.goesOn() {
		if c.item.Host, c.item.Pace = c.host(), (Pace{}); c.item.Host != "" {
			c.item.Pace = f.paceAt(c.item.Host, pace)
		}
		f.goOn(c, next)
	}
}

// encode makes a page's record. Rows that the log would refuse become an error.
func (f *Fetcher) encode(c *chain, p *model.Page) []byte {
	record := stream.EncodePage(*p)
	if len(record) <= maxPageRecord {
		return record
	}
	p.Outcome, p.Code, p.Rows, p.PriceRow, p.Quantity = model.Errored,
		string(fault.PageRowTooLarge), nil, "", 0
	p.Last, p.Spent, p.Next = true, false, nil
	return stream.EncodePage(*p)
}

// post puts a page into the outbox. It needs mu.
func (f *Fetcher) post(c *chain, p *model.Page, record []byte) {
	f.counts.pages.Add(1)
	f.metrics.page(p)
	switch p.Outcome {
	case model.Delivered:
		f.counts.delivered.Add(1)
	case model.Errored:
		f.counts.errored.Add(1)
	case model.Cancelled:
		f.counts.cancelled.Add(1)
	}
	out := outgoing{record: record}
	if p.Last || p.Spent {
		c.done = true
		out.final = c
	}
	f.send(c.shard, out)
}

// finish ends a chain without a request. It needs mu.
func (f *Fetcher) finish(c *chain, p model.Page) {
	f.forget(c)
	f.post(c, &p, stream.EncodePage(p))
}

// request makes the chain's next request.
func (f *Fetcher) request(ctx context.Context, c *chain) step {
	view := f.config.Control.View()
	job := view.Job(c.task.Job)
	if job == nil { // perhaps only here: a copy may lag behind
		if fresh, err := f.config.Control.Fresh(ctx); err == nil {
			view, job = fresh, fresh.Job(c.task.Job)
		}
	}
	if ended(job) {
		p := cancelledPage(c)
		return step{page: &p}
	}
	c.charge, c.scraper = job.Charge, scraperOf(view, job, c.task)
	r := f.recipes.get(view, c.task.Scraper, c.task.Revision)
	tiers := f.tiersFor(c, r)
	switch {
	case r == nil || r.extractor == nil:
		return f.fail(c, fault.PageRecipeMissing)
	case len(tiers) == 0:
		return f.fail(c, fault.PageTierMissing) // no way that the run may use and pay for is here
	}
	if answered := f.unfetched(c, r, view); answered != nil {
		return *answered
	}
	if c.fetch.prompt != nil {
		return f.questionAgain(ctx, c, r, view)
	}
	started := f.config.Clock.Now()
	if c.overdue(started) {
		next := f.unread(ctx, c, r, view, c.lastCode())
		next.answer.Unasked = true
		return next
	}
	if !f.isFresh(c.shard) {
		return step{}
	}
	if c.fetch.began.IsZero() {
		c.begin(started, r, job)
		c.fetch.tier = f.hosts.first(c.item.Host, tiers, started)
	}
	try, cancel := context.WithTimeout(ctx, f.timeout(c, started))
	defer cancel()
	next, response, err := f.ask(try, c, r, tiers)
	c.fetch.spent += f.config.Clock.Now().Sub(started)
	var led *ledAway
	var failure *web.Failure
	var refused *original
	switch {
	case ctx.Err() != nil || errors.Is(err, errStale):
		return step{}
	case errors.As(err, &led):
		c.fetch.at, c.fetch.as, c.fetch.permit = led.to, led.as, false
		c.fetch.hops++
		return step{again: true}
	case errors.As(err, &refused):
		failed := f.refused(c, r, refused.code)
		failed.answer = next.answer
		return failed
	case errors.As(err, &failure) && f.renew(c, r, failure):
		f.tried(c, tiers[c.fetch.tier], failure.Code, failure.Status, failure.Wire)
		c.restart()
		return step{again: true, answer: frontier.Answer{Host: address.AuthorityOf(failure.Final)}}
	case errors.Is(err, web.ErrBusy):
		wait := min(firstBusy<<c.fetch.busy, mostBusy)
		c.fetch.busy = min(c.fetch.busy+1, 10)
		return step{again: true, wait: wait/2 + rand.N(wait),
			answer: frontier.Answer{Unasked: true}}
	case errors.As(err, &failure):
		failed := f.failed(ctx, c, r, view, tiers, failure)
		failed.answer.Unasked = next.answer.Unasked
		return failed
	case err != nil:
		return f.failed(ctx, c, r, view, tiers,
			&web.Failure{Code: fault.PageTimeout, Retry: true, Cause: err})
	case response == nil:
		return next
	}
	f.config.Crash("fetcher.after_fetch")
	return f.read(ctx, c, r, view, tiers, response)
}

// tiersFor are the ways in which a page may be fetched, cheapest first.
func (f *Fetcher) tiersFor(c *chain, r *recipe) []model.Tier {
	tiers := c.task.Tiers & f.config.Web.Tiers()
	if r != nil && r.load.More || c.rendered {
		tiers &= model.Rendering
	}
	if r != nil && r.curl != nil {
		tiers &^= model.Rendering // a browser asks as browsers do
	}
	return tiers.Tiers()
}

// ask makes one try: robots.txt, then the page. Without a response and an error, the step says what
// comes instead; with an error, whether anything was asked.
func (f *Fetcher) ask(ctx context.Context, c *chain, r *recipe, tiers []model.Tier) (step,
	*web.Page, error) {
	if c.fetch.discovery != nil {
		next, err := f.discover(ctx, c, r, tiers)
		return next, nil, err
	}
	site := f.config.Web
	at, as, ready, err := f.compose(c, r)
	if err != nil || !ready {
		return step{again: true, answer: frontier.Answer{Unasked: true}}, nil, err
	}
	if !r.ignoreRobots {
		known := site.KnowsRules(at)
		if err := f.robots(ctx, c.shard, at); err != nil {
			return step{answer: frontier.Answer{Unasked: known}}, nil, err
		}
		if !known && !c.fetch.permit {
			c.fetch.permit = true // robots.txt took this start: the page has to wait for its own
			return step{again: true}, nil, nil
		}
	}
	beforeHop := func(ctx context.Context, to string, as *curl.Request) error {
		if c.fetch.hops >= maxHops {
			return &web.Failure{Code: fault.PageRedirects, Final: to}
		}
		switch err := f.mayHop(ctx, c, r, to); {
		case errors.Is(err, errNotReady):
			return &ledAway{to, as}
		case err != nil:
			return err
		}
		c.fetch.hops++
		return nil
	}
	response, err := f.fetch(ctx,
		web.Request{URL: at, Tier: tiers[c.fetch.tier], As: as, Load: r.load, BeforeHop: beforeHop})
	return step{}, response, err
}

// fetch asks for a page, whose answer is decoded on the way.
func (f *Fetcher) fetch(ctx context.Context, req web.Request) (response *web.Page, err error) {
	panicked := f.reader.Run(reading.Page{URL: req.URL},
		func() { response, err = f.config.Web.Fetch(ctx, req) })
	if panicked != nil {
		return nil, &web.Failure{Code: fault.PageUnparsable, Final: req.URL, Cause: panicked}
	}
	return response, err
}

// robots says whether robots.txt allows a page. Reading it may have taken longer than the shard's
// lease.
func (f *Fetcher) robots(ctx context.Context, s *shard, url string) error {
	delay, err := f.config.Web.CheckRules(ctx, url)
	if delay > 0 {
		f.mu.Lock()
		f.frontier.Delay(address.AuthorityOf(url), delay)
		f.mu.Unlock()
	}
	if err == nil && !f.isFresh(s) {
		return errStale
	}
	return err
}

// errNotReady says that a redirect leads where no request may start at the moment.
var errNotReady = errors.New("fetcher: led to a host that is not ready")

// ledAway ends a try whose redirect leads to such a place: it goes on from there when that host's
// turn comes.
type ledAway struct {
	to string
	as *curl.Request
}

func (*ledAway) Error() string { return errNotReady.Error() }

// mayHop says whether a redirect may be followed at once.
func (f *Fetcher) mayHop(ctx context.Context, c *chain, r *recipe, to string) error {
	if !f.isFresh(c.shard) {
		return errStale
	}
	if !r.ignoreRobots {
		if !f.config.Web.KnowsRules(to) {
			return errNotReady
		}
		if err := f.robots(ctx, c.shard, to); err != nil {
			return err
		}
	}
	host := address.AuthorityOf(to)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.frontier.Hop(&c.item, host, f.paceAt(host, f.config.paceFor(r.pace)),
		f.config.Clock.Now()) {
		return errNotReady
	}
	return nil
}

// fail ends a chain with an error.
func (f *Fetcher) fail(c *chain, code fault.Code) step {
	p := c.errored(f, code)
	return step{page: &p}
}

// refused ends a chain whose page the site does not give. Where addresses are made by counting, a
// page behind the first that does not exist is what stands behind the last one: the empty page that
// ends the chain.
func (f *Fetcher) refused(c *chain, r *recipe, code fault.Code) step {
	if c.unit.Page == 0 || !r.counts || code != fault.PageStatus || !c.isMissing() {
		return f.fail(c, code)
	}
	p := c.pageOf(f)
	p.Outcome, p.Last = model.Empty, true
	return step{page: &p}
}

// isMissing says that, by the last try at it, the page does not exist.
func (c *chain) isMissing() bool {
	n := len(c.fetch.tries)
	return n > 0 && (c.fetch.tries[n-1].Status == 404 || c.fetch.tries[n-1].Status == 410)
}

// failed decides what follows a try that brought no page: another one, the next tier, or the end.
func (f *Fetcher) failed(ctx context.Context, c *chain, r *recipe, view View, tiers []model.Tier,
	failure *web.Failure) step {
	s := &c.fetch
	f.tried(c, tiers[s.tier], failure.Code, failure.Status, failure.Wire)
	s.failures++
	next := step{again: true, answer: frontier.Answer{RetryAfter: failure.RetryAfter,
		Throttled: failure.Status == 429 || failure.Status == 503}}
	if failure.Status != 0 {
		next.answer.Host = address.AuthorityOf(failure.Final)
	}
	another := failure.Retry || failure.IsTurnedAway()
	wait := firstRetry << (s.failures - 1)
	next.wait = wait/2 + rand.N(wait)
	wait = max(next.wait, failure.RetryAfter)
	switch {
	case s.asked != "", !f.mayTry(c, r, wait): // another page of the unit gets one try
		next.again = false
	// The same again takes as long again.
	case failure.Retry && s.failures < maxTries && !c.settled() && f.mayTry(c, r, wait+s.spent):
	case another && s.climb(tiers, model.AllTiers):
		next.wait = 0
	default:
		if another {
			f.hosts.forget(address.AuthorityOf(c.address()))
		}
		next.again = false
	}
	if !next.again {
		ended := f.unread(ctx, c, r, view, failure.Code)
		ended.answer = next.answer
		return ended
	}
	f.again(c)
	return next
}

// settled says that a browser has met what another tier met before it. That is the page's fate, and
// too dear to be met again.
func (c *chain) settled() bool {
	tries := c.fetch.tries
	last := tries[len(tries)-1]
	for _, before := range slices.Backward(tries) {
		if before.Tier != last.Tier {
			return last.Tier.Renders() && before.Code == last.Code
		}
	}
	return false
}

// read extracts a response and makes the page of it.
func (f *Fetcher) read(ctx context.Context, c *chain, r *recipe, view View, tiers []model.Tier,
	response *web.Page) step {
	defer response.Release()
	size := int64(len(response.Body))
	f.holdBody(size)
	defer f.holdBody(-size)
	f.tried(c, tiers[c.fetch.tier], "", response.Status, response.Wire)
	asked := c.fetch.asked
	if asked == "" {
		asked, c.fetch.by = c.url, tiers[c.fetch.tier]
	}
	next := f.extraction(ctx, c, r, view,
		extract.Page{URL: response.Final, ContentType: response.ContentType,
			Body: response.Body, Asked: asked, At: f.config.Clock.Now()})
	next.answer.Host = address.AuthorityOf(response.Final)
	return next
}

func (f *Fetcher) holdBody(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold(bytes)
}
