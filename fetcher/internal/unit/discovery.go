package unit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/fetcher/internal/memo"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/prelaunch"
	"shoal.dev/shoal/pkg/reading"
)

// discovery reads a page for values that the chain's own page needs. It waits for its host's turn
// and obeys robots.txt like any page. It is done when the values are there, even if another chain
// found them.
type discovery struct {
	source tokenSource
	start  string // canonical
	at     string // canonical: the address to fetch next, after redirects
	hops   int
	permit bool          // the start that robots.txt needed was taken
	tier   int           // index in the usable tiers, -1 before the first request
	futile model.TierSet // tiers that did not get through
	// refused is the error for which the page must be repeated with values other than stale; ""
	// before its first request.
	refused fault.Code
	stale   map[string]string
}

// tokenSource is the source of the values for a page's request.
type tokenSource struct {
	key  memo.TokenKey
	url  string
	ttl  time.Duration
	find func(ctx context.Context, page []byte) (map[string]string, error)
	// optional: without values the request goes out anyway, or keeps its original error.
	optional bool
}

// tokenSource returns the source for a request to at: the recipe's rules, or the site's build id if
// the address has one.
func (t *Turn) tokenSource(at string) (tokenSource, bool) {
	key := memo.TokenKey{Scraper: t.scraper}
	if t.recipe.prelaunch != nil {
		key.Config = t.recipe.prelaunch.Hash
		return tokenSource{key: key, url: t.recipe.prelaunch.URL, ttl: t.recipe.prelaunch.TTL,
			find: t.recipe.prelaunch.Find}, true
	}
	_, root, ok := prelaunch.BuildOf(at)
	if t.recipe.curl == nil || !ok {
		return tokenSource{}, false
	}
	key.Root = root
	find := func(_ context.Context, page []byte) (map[string]string,
		error) {
		return prelaunch.FindBuild(page)
	}
	return tokenSource{key: key, url: root, ttl: prelaunch.DefaultTTL, find: find, optional: true},
		true
}

// compose returns the chain's next request with its placeholders filled. ready is false if the
// values must be discovered first. Its error is a *web.Failure.
func (t *Turn) compose() (at string, as *curl.Request, ready bool,
	err error) {
	at, as = t.target()
	if t.recipe.curl == nil || t.fetch.as != nil || t.fetch.asked != "" {
		return at, as, true, nil
	}
	t.fetch.values = nil
	source, has := t.tokenSource(at)
	if !has {
		return at, as, true, nil
	}
	values := t.units.tokens.Get(source.key)
	switch {
	case values == nil && source.optional:
		return at, as, true, nil
	case values == nil:
		return at, as, false, t.beginDiscovery(source, "", nil)
	}
	t.fetch.values = values
	if source.optional {
		as, at = prelaunch.WithBuild(as, at, values)
	} else {
		template := *as
		template.URL = at
		filled, ok := template.Fill(values)
		if !ok {
			return "", nil, false, &web.Failure{Code: fault.PagePrelaunch, Final: at}
		}
		as, at = filled, filled.URL
	}
	if at, err = address.Canonical(at); err != nil {
		return "", nil, false,
			&web.Failure{Code: fault.PagePrelaunch, Final: t.fetch.at, Cause: err}
	}
	return at, as, true, nil
}

func (c *Chain) beginDiscovery(source tokenSource, refused fault.Code,
	stale map[string]string) error {
	at, err := address.Canonical(source.url)
	if err != nil {
		return &web.Failure{Code: fault.PagePrelaunch, Final: c.fetch.at, Cause: err}
	}
	c.fetch.discovery = &discovery{source: source, start: at, at: at, tier: -1, refused: refused,
		stale: stale}
	return nil
}

// renew begins a discovery if a failure suggests that the values are outdated. It returns false if
// that is not possible or was already done for this page.
func (t *Turn) renew(failure *web.Failure) bool {
	gone := failure.Status == 404 || failure.Status == 410 || failure.Status == 451
	if t.recipe.curl == nil || t.fetch.renewed || t.fetch.asked != "" || !gone ||
		failure.Code != fault.PageStatus {
		return false
	}
	source, has := t.tokenSource(t.address())
	if !has || source.optional && failure.Status != 404 {
		return false
	}
	t.units.tokens.Invalidate(source.key, t.fetch.values)
	t.fetch.renewed = true
	return t.beginDiscovery(source, failure.Code, t.fetch.values) == nil
}

// discover makes one request of a discovery, or takes the values that another chain has found.
func (t *Turn) discover(ctx context.Context) (Step, error) {
	d := t.fetch.discovery
	values, under, own := t.units.tokens.Join(d.source.key)
	if under != nil && !own {
		brought, failed, err := under.Await(ctx)
		switch values = brought; {
		case err != nil:
			return Step{Answer: frontier.Answer{Unasked: true}}, d.failure(err)
		case failed:
			return Step{Answer: frontier.Answer{Unasked: true}}, d.failure(errDiscovery)
		case values == nil:
			// now it is our turn to discover
			return Step{Again: true, Answer: frontier.Answer{Unasked: true}}, nil
		}
	}
	next := Step{Again: true, Answer: frontier.Answer{Unasked: true}}
	if own {
		var err error
		values, next, err = t.readTokens(ctx)
		t.units.tokens.Land(d.source.key, under, values, err != nil && !errors.Is(err, errStale) &&
			ctx.Err() == nil, d.source.ttl)
		if err != nil {
			return next, d.failure(err)
		}
		if values == nil {
			return next, nil
		}
	}
	t.fetch.discovery = nil
	if len(t.fetch.tries) == 0 { // the page benefits from what the discovery learnt of the host
		t.fetch.tier = t.units.hosts.First(address.AuthorityOf(t.fetch.at), t.tiers,
			t.units.config.Clock.Now())
	}
	if d.refused != "" && t.wouldRepeat(d, values) {
		return next, &original{d.refused}
	}
	return next, nil
}

// readTokens fetches the page of a discovery, by the same tiers as any page. Without values and an
// error, another request follows.
func (t *Turn) readTokens(ctx context.Context) (map[string]string, Step, error) {
	d, site := t.fetch.discovery, t.units.config.Web
	next := Step{Again: true}
	if !t.recipe.ignoreRobots {
		known := site.KnowsRules(d.at)
		if _, err := t.checkRobots(ctx, d.at); err != nil {
			next.Answer.Unasked = known
			return nil, next, err
		}
		if !known && !d.permit {
			d.permit = true
			return nil, next, nil
		}
	}
	line, now := t.units.discovering, t.units.config.Clock.Now()
	if !line.Enter(t.task.Customer, now) {
		return nil, Step{Again: true, Wait: discoveryWait,
			Answer: frontier.Answer{Unasked: true}}, nil
	}
	defer func() { line.Leave(t.task.Customer, t.units.config.Clock.Now()) }()
	if d.tier < 0 {
		d.tier = t.units.hosts.First(address.AuthorityOf(d.at), t.tiers, now)
	}
	beforeHop := func(ctx context.Context, to string, _ *curl.Request) error {
		if d.hops++; d.hops > maxHops {
			return errDiscovery
		}
		if err := t.mayHop(ctx, to); !errors.Is(err, errNotReady) {
			return err
		}
		return &ledAway{to: to}
	}
	response, err := t.units.config.Web.Fetch(ctx,
		web.Request{URL: d.at, Caller: t.task.Customer, Tier: t.tiers[d.tier],
			BeforeHop: beforeHop})
	var led *ledAway
	var failure *web.Failure
	if errors.As(err, &failure) && failure.Status != 0 {
		next.Answer = answerOf(failure) // the page's failure says nothing about this answer
	}
	switch {
	case errors.As(err, &led):
		d.at, d.permit = led.to, false
		return nil, next, nil
	case failure != nil && failure.IsTurnedAway() && d.climb(t.tiers):
		return nil, next, nil
	case err != nil:
		return nil, next, err
	}
	defer response.Release()
	next.Answer.Host = address.AuthorityOf(response.Final)
	values, err := t.findTokens(ctx, response)
	return values, next, err
}

// findTokens finds the values on the page of a discovery.
func (t *Turn) findTokens(ctx context.Context, response *web.Page) (values map[string]string,
	err error) {
	d := t.fetch.discovery
	panicked := t.units.config.Reader.Run(reading.Page{URL: response.Final,
		ContentType: response.ContentType,
		Body:        response.Body},
		func() { values, err = d.source.find(ctx, response.Body) })
	if panicked != nil {
		return nil, panicked
	}
	if err == nil && d.futile != 0 {
		t.units.hosts.Note(address.AuthorityOf(d.start), d.futile, t.units.config.Clock.Now())
	}
	return values, err
}

// discoveryWait is how long a discovery waits while too many are under way.
const discoveryWait = 250 * time.Millisecond

// climb restarts the discovery with the next tier; false if there is none.
func (d *discovery) climb(tiers []model.Tier) bool {
	if d.tier+1 >= len(tiers) {
		return false
	}
	d.futile |= model.TiersOf(tiers[d.tier])
	d.at, d.hops, d.permit = d.start, 0, false
	d.tier++
	return true
}

// errDiscovery says that a discovery found nothing.
var errDiscovery = errors.New("fetcher: nothing was discovered")

// failure returns the error of a page whose discovery failed.
func (d *discovery) failure(cause error) error {
	switch {
	case errors.Is(cause, errStale), errors.Is(cause, context.Canceled):
		return cause
	case d.source.optional:
		return &original{d.refused}
	}
	return &web.Failure{Code: fault.PagePrelaunch, Final: d.at, Cause: cause}
}

// wouldRepeat says whether fresh values would repeat the failed request.
func (t *Turn) wouldRepeat(d *discovery, fresh map[string]string) bool {
	if !d.source.optional {
		return maps.Equal(fresh, d.stale)
	}
	at, as := t.target()
	before, wasAt := prelaunch.WithBuild(as, at, d.stale)
	after, isAt := prelaunch.WithBuild(as, at, fresh)
	return wasAt == isAt && slices.Equal(before.Header, after.Header)
}

// original ends a page with the error that caused its discovery.
type original struct{ code fault.Code }

func (e *original) Error() string { return string(e.code) }

// covered says whether every placeholder of a request has a rule. Unfilled ones must not be sent.
func covered(r *curl.Request, rules *prelaunch.Rules) bool {
	return !slices.ContainsFunc(r.Placeholders(),
		func(name string) bool { return !rules.Has(name) })
}
