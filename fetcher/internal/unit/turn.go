package unit

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/turns"
)

// Bounds of the tries at one page (decision 17).
const (
	maxTries = 3 // by one tier
	maxHops  = 10
	// MostBusy is the longest wait for a full tier, without jitter.
	MostBusy = web.ComeAgain / 2
)

var (
	// tryAgain is the wait before another try. A tier is never tried so often that it reaches Most.
	tryAgain = retry.Backoff{First: 500 * time.Millisecond, Most: time.Minute}
	// askBusy is the wait before a full tier is asked again. Many thousands of pages may wait for
	// one browser.
	askBusy = retry.Backoff{First: time.Second, Most: MostBusy}
)

// jitter returns a wait of half of d to one and a half.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// maxPageRecord leaves room for what a log adds to a record.
const maxPageRecord = stream.MaxRecordBytes - 1024

// errStale ends a request whose shard's lease has lapsed.
var errStale = errors.New("fetcher: the shard's lease has lapsed")

// Step is the result of a turn: a page, or a wait for another request, or both. The zero Step is
// neither: the lease has lapsed, or the process ends.
type Step struct {
	Page   *model.Page
	Again  bool          // the same page needs another request
	Wait   time.Duration // at least, before that request
	Answer frontier.Answer
	Pace   frontier.Pace // of the chain's scraper, if it goes on
}

// GoesOn says whether the chain has another request to make.
func (s *Step) GoesOn() bool { return s.Again || s.Page != nil && !s.IsLast() }

// IsLast says whether the page ends the chain or its dispatch.
func (s *Step) IsLast() bool { return s.Page.Last || s.Page.Spent }

// Turn is one request of a chain, with its context. A worker reuses it for one turn after another.
type Turn struct {
	*Chain
	lease  Lease
	view   View
	recipe *recipe
	tiers  []model.Tier // usable, cheapest first
	place  turns.Place  // for reading a page
}

// IsTrial says whether a caller waits for the chain's one page, and may go away.
func (c *Chain) IsTrial() bool {
	job := c.units.config.View().Job(c.task.Job)
	return job != nil && job.Trial()
}

// TakeStep makes a chain's next request and acts on the response. If ctx ends, the Step is zero.
func (t *Turn) TakeStep(ctx context.Context, c *Chain, lease Lease) Step {
	u := c.units
	u.counts.turns.Add(1)
	defer u.counts.turns.Add(-1)
	*t = Turn{Chain: c, lease: lease, view: u.config.View()}
	defer func() { *t = Turn{} }()
	next := t.request(ctx)
	if next.GoesOn() {
		next.Pace = t.recipe.pace
	}
	return next
}

// Abandon returns the Step of an abandoned trial's turn. A page without an error stays.
func (c *Chain) Abandon(next Step) Step {
	if next.Page != nil && next.Page.Outcome != model.Errored {
		return next
	}
	return Step{Page: c.cancelledPage(), Answer: next.Answer}
}

// Encode encodes a page's record, and traces it. A record too large for the log becomes an error.
func (c *Chain) Encode(p *model.Page) []byte {
	c.made = p
	if c.task.Trace != nil && p.Outcome != model.Cancelled {
		c.trace(p)
	}
	record := stream.EncodePage(*p)
	if len(record) <= maxPageRecord {
		return record
	}
	p.Refuse(string(fault.PageRowTooLarge))
	return stream.EncodePage(*p)
}

// request makes the chain's next request, if it needs one.
func (t *Turn) request(ctx context.Context) Step {
	job := t.findJob(ctx)
	if job == nil || job.Ended() {
		return Step{Page: t.cancelledPage()}
	}
	t.charge, t.scraper = job.Charge.At(t.task.Domain), scraperOf(t.view, job, t.task)
	if !t.findRecipe(ctx) {
		return Step{}
	}
	if t.recipe == nil || t.recipe.extractor == nil {
		return t.fail(fault.PageRecipeMissing)
	}
	t.setKeep(job)
	t.tiers = t.tiersFor()
	if len(t.tiers) == 0 {
		return t.fail(fault.PageTierMissing) // no tier that the run may use is here
	}
	if answered := t.unfetched(); answered != nil {
		return *answered
	}
	if t.fetch.prompt != nil {
		return t.askModelAgain(ctx)
	}
	now := t.units.config.Clock.Now()
	if t.isOverdue(now) {
		return t.unread(ctx, t.lastCode(), frontier.Answer{Unasked: true})
	}
	if !t.lease.IsFresh() {
		return Step{}
	}
	if t.fetch.began.IsZero() {
		t.beginUnit(now, job)
	}
	return t.tryPage(ctx, now)
}

// findRecipe sets the turn's recipe, nil if there is none. Compiling needs a place, as reading a
// page does. It returns false if the process ends meanwhile.
func (t *Turn) findRecipe(ctx context.Context) bool {
	kept := t.units.recipes.Find(t.view, t.task.Scraper, t.task.Revision)
	if kept == nil {
		return true
	}
	if t.recipe = kept.Compiled(); t.recipe != nil {
		return true
	}
	if !t.units.extracting.Enter(ctx, t.task.Customer, &t.place) {
		return false
	}
	t.recipe = kept.Compile()
	t.place.Leave()
	return true
}

// findJob returns the chain's run. It retries with a fresh view, because this node's copy may lag.
func (t *Turn) findJob(ctx context.Context) *client.Job {
	if job := t.view.Job(t.task.Job); job != nil {
		return job
	}
	fresh, err := t.units.config.Fresh(ctx)
	if err != nil {
		return nil
	}
	t.view = fresh
	return fresh.Job(t.task.Job)
}

// beginUnit starts the unit's time, at the tier that last got through to its host.
func (t *Turn) beginUnit(now time.Time, job *client.Job) {
	t.fetch.began = now
	_, within := t.recipe.extractor.Limits()
	if job.Trial() && within == 0 {
		within = model.TrialTime
	}
	if within > 0 {
		t.fetch.until = now.Add(within)
	}
	t.fetch.tier = t.units.hosts.First(address.AuthorityOf(t.fetch.at), t.tiers, now)
}

// tryPage makes one try at a page, or at what must be read before it, and decides what follows.
func (t *Turn) tryPage(ctx context.Context, started time.Time) Step {
	try, cancel := context.WithTimeout(ctx, t.timeout(started))
	defer cancel()
	next, response, err := t.ask(try)
	t.fetch.spent += t.units.config.Clock.Now().Sub(started)
	switch {
	case ctx.Err() != nil:
		if response != nil {
			response.Release() // it arrived just before the end
		}
		return Step{}
	case err != nil:
		return t.followError(ctx, next, err)
	case response == nil:
		return next
	}
	t.units.config.Point("fetcher.after_fetch")
	return t.readPage(ctx, response)
}

// followError decides what follows a try that ended with an error; tried is the try's Step.
func (t *Turn) followError(ctx context.Context, tried Step, err error) Step {
	var led *ledAway
	var failure *web.Failure
	var refused *original
	switch {
	case errors.Is(err, errStale):
		return Step{}
	case errors.As(err, &led):
		t.fetch.at, t.fetch.as, t.fetch.permit = led.to, led.as, false
		t.fetch.hops++
		return Step{Again: true}
	case errors.As(err, &refused):
		next := t.refuse(refused.code)
		next.Answer = tried.Answer
		return next
	case errors.Is(err, web.ErrBusy):
		t.fetch.busy++
		return Step{Again: true, Wait: jitter(askBusy.After(t.fetch.busy)),
			Answer: frontier.Answer{Unasked: true}}
	case !errors.As(err, &failure):
		return t.followFailure(ctx, &web.Failure{Code: fault.PageTimeout, Retry: true, Cause: err},
			frontier.Answer{})
	case t.renew(failure):
		t.noteTry(t.tiers[t.fetch.tier], failure.Code, failure.Status, failure.Wire)
		t.restart()
		return Step{Again: true, Answer: frontier.Answer{Host: address.AuthorityOf(failure.Final)}}
	}
	return t.followFailure(ctx, failure, tried.Answer)
}

// tiersFor returns the usable tiers, cheapest first.
func (t *Turn) tiersFor() []model.Tier {
	tiers := t.task.Tiers & t.units.config.Web.Tiers()
	if t.recipe.load.More || t.rendered {
		tiers &= model.Rendering
	}
	if t.recipe.curl != nil {
		tiers &^= model.Rendering // a browser cannot send a curl request
	}
	return tiers.Tiers()
}

// ask makes one try: robots.txt, then the page. Without a response and an error, the Step says what
// comes next. With an error, it says whether a request was made.
func (t *Turn) ask(ctx context.Context) (Step,
	*web.Page, error) {
	if t.fetch.discovery != nil {
		next, err := t.discover(ctx)
		return next, nil, err
	}
	site := t.units.config.Web
	at, as, ready, err := t.compose()
	if err != nil || !ready {
		return Step{Again: true, Answer: frontier.Answer{Unasked: true}}, nil, err
	}
	if !t.recipe.ignoreRobots {
		known := site.KnowsRules(at)
		if _, err := t.checkRobots(ctx, at); err != nil {
			return Step{Answer: frontier.Answer{Unasked: known}}, nil, err
		}
		if !known && !t.fetch.permit {
			t.fetch.permit = true // robots.txt used this start: the page waits for its own
			return Step{Again: true}, nil, nil
		}
	}
	beforeHop := func(ctx context.Context, to string, as *curl.Request) error {
		if t.fetch.hops >= maxHops {
			return &web.Failure{Code: fault.PageRedirects, Final: to}
		}
		switch err := t.mayHop(ctx, to); {
		case errors.Is(err, errNotReady):
			return &ledAway{to, as}
		case err != nil:
			return err
		}
		t.fetch.hops++
		return nil
	}
	response, err := t.units.config.Web.Fetch(ctx,
		web.Request{URL: at, Caller: t.task.Customer, Tier: t.tiers[t.fetch.tier], As: as,
			Load: t.recipe.load, BeforeHop: beforeHop})
	return Step{}, response, err
}

// checkRobots says whether robots.txt allows a page, and returns its delay between two starts. It
// rechecks the lease, since reading the file may have taken long.
func (t *Turn) checkRobots(ctx context.Context, url string) (time.Duration, error) {
	delay, err := t.units.config.Web.CheckRules(ctx, t.task.Customer, url)
	if delay > 0 {
		t.lease.DelayHost(address.AuthorityOf(url), delay)
	}
	if err == nil && !t.lease.IsFresh() {
		return delay, errStale
	}
	return delay, err
}

// errNotReady says that a redirect leads to a host where no request may start now.
var errNotReady = errors.New("fetcher: led to a host that is not ready")

// ledAway ends a try whose redirect leads to such a host. The chain goes on from there when that
// host's turn comes.
type ledAway struct {
	to string
	as *curl.Request
}

func (*ledAway) Error() string { return errNotReady.Error() }

// mayHop returns nil if a redirect may be followed at once.
func (t *Turn) mayHop(ctx context.Context, to string) (err error) {
	var delay time.Duration
	if !t.lease.IsFresh() {
		return errStale
	}
	if !t.recipe.ignoreRobots {
		if !t.units.config.Web.KnowsRules(to) {
			return errNotReady
		}
		if delay, err = t.checkRobots(ctx, to); err != nil {
			return err
		}
	}
	if !t.lease.MayHop(address.AuthorityOf(to), t.recipe.pace, delay) {
		return errNotReady
	}
	return nil
}

// fail ends a chain with an error.
func (t *Turn) fail(code fault.Code) Step {
	return Step{Page: t.erroredPage(code)}
}

// refuse ends a chain whose page the site does not give. If addresses are made by counting, a
// missing page after the first is the empty page that ends the chain.
func (t *Turn) refuse(code fault.Code) Step {
	if t.unit.Page == 0 || !t.recipe.counts || !t.isMissing(code) {
		return t.fail(code)
	}
	p := t.page()
	p.Outcome, p.Last = model.Empty, true
	return Step{Page: p}
}

// isMissing says whether the code of the current page comes from an answer that it does not exist.
func (c *Chain) isMissing(code fault.Code) bool {
	n := len(c.fetch.tries)
	return code == fault.PageStatus && n > 0 &&
		(c.fetch.tries[n-1].Status == 404 || c.fetch.tries[n-1].Status == 410)
}

// followFailure decides what follows a try without a page: another try, the next tier, or the end.
// answered is the answer of a host to what had to be read before the page.
func (t *Turn) followFailure(ctx context.Context, failure *web.Failure,
	answered frontier.Answer) Step {
	s := &t.fetch
	t.noteTry(t.tiers[s.tier], failure.Code, failure.Status, failure.Wire)
	s.failures++
	next := Step{Again: true, Answer: answered}
	if failure.Status != 0 {
		next.Answer = answerOf(failure)
	}
	another := failure.Retry || failure.IsTurnedAway()
	next.Wait = max(jitter(tryAgain.After(s.failures)), failure.Wait)
	wait := max(next.Wait, failure.RetryAfter)
	switch {
	case s.asked != "", !t.mayTry(wait): // another page of the unit gets one try
		next.Again = false
	// Another try is assumed to take as long.
	case failure.Retry && s.failures < maxTries && !t.settled() && t.mayTry(wait+s.spent):
	case another && s.climb(t.tiers, model.AllTiers):
		next.Wait = failure.Wait // what is known of robots.txt holds for every tier
	default:
		if another {
			t.units.hosts.Forget(address.AuthorityOf(t.address()))
		}
		next.Again = false
	}
	if failure.Code == fault.PageBlocked {
		s.why = extract.ReasonOf(failure.Cause) // names the vendor that refused us
	}
	if !next.Again {
		return t.unread(ctx, failure.Code, next.Answer)
	}
	t.repeat()
	return next
}

// answerOf returns a host's answer in a try without a page.
func answerOf(failure *web.Failure) frontier.Answer {
	return frontier.Answer{Host: address.AuthorityOf(failure.Final), RetryAfter: failure.RetryAfter,
		Throttled: failure.Status == 429 || failure.Status == 503}
}

// settled says whether a browser failed with the same code as an earlier tier. Another expensive
// try would not help.
func (c *Chain) settled() bool {
	tries := c.fetch.tries
	last := tries[len(tries)-1]
	for _, before := range slices.Backward(tries) {
		if before.Tier != last.Tier {
			return last.Tier.Renders() && before.Code == last.Code
		}
	}
	return false
}

// readPage extracts a response and makes the page from it.
func (t *Turn) readPage(ctx context.Context, response *web.Page) Step {
	defer response.Release()
	size := int64(len(response.Body))
	answer := frontier.Answer{Host: address.AuthorityOf(response.Final)}
	t.lease.BeginReading(size, answer)
	defer t.lease.EndReading(size)
	t.noteTry(t.tiers[t.fetch.tier], "", response.Status, response.Wire)
	asked := t.fetch.asked
	if asked == "" {
		asked, t.fetch.by = t.url, t.tiers[t.fetch.tier]
		hash := sha256.Sum256(response.Body)
		t.fetch.hash = hash[:]
	}
	at := t.units.config.Clock.Now()
	if t.keep.Days > 0 {
		t.keepBody(response, at)
	}
	next := t.extractPages(ctx,
		extract.Page{URL: response.Final, ContentType: response.ContentType,
			Body: response.Body, Asked: asked, At: at})
	next.Answer = answer
	return next
}

// scraperOf returns the scraper whose discovered values a task uses. A sample's recipe is under the
// run's own id, but it shares its scraper's values.
func scraperOf(view View, job *client.Job, task *model.Task) ids.ID {
	if job.Trial() {
		if entry := view.Entry(job.Entry); entry != nil && !entry.Scraper.IsZero() {
			return entry.Scraper
		}
	}
	return task.Scraper
}
