package launch

import (
	"context"
	"errors"
	"time"

	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// reachTime bounds the check of a start address.
const reachTime = 10 * time.Second

// Start launches a run of a scraper over its site, at its own address, or at a search engine's
// address for its queries. A repeated call returns its original answer. maxCharge, in micros, caps
// the cost of the run; nil: no cap. Faults: Errors, scraper_not_found, type_not_runnable,
// START_URLS_UNREACHABLE, search_engine_not_configured.
func (l *Launcher) Start(ctx context.Context, from *Caller, id ids.ID,
	maxCharge *int64) (client.Launched, error) {
	none := client.Launched{}
	t, replay, err := l.claimCall(ctx, from)
	if err != nil {
		return none, err
	}
	if replay != nil {
		return *replay, nil
	}
	defer t.end(ctx)
	scraper, err := runnable(from, id)
	if err != nil {
		return none, err
	}
	tiers, err := Tiers(from.View, &scraper.Spec)
	if err != nil {
		return none, err
	}
	begin, engine, err := l.sourceOf(ctx, from.View, scraper)
	if err != nil {
		return none, err
	}
	taken, err := t.storeAddresses(ctx, begin, nil)
	if err != nil {
		return none, err
	}
	if taken.links == 0 {
		return none, errNoLinks
	}
	recipe := scraper.Spec.Recipe() // not a list run, so it has no tag
	endpoint, _ := model.EndpointOf(recipe.Endpoint)
	return t.commit(ctx, client.LaunchRun{Scraper: scraper.ID, Links: taken.links,
		MaxCharge: maxCharge, Charge: endpoint.Charge, Search: engine, Tiers: tiers,
		IgnoresRobots: recipe.Politeness.IgnoreRobots || engine != nil && engine.IgnoreRobots})
}

// sourceOf is what a run of a scraper reads. The links of a site are checked when they are fetched.
func (l *Launcher) sourceOf(ctx context.Context, v *client.View,
	scraper *client.Scraper) (addresses, *model.SearchEngine, error) {
	if site := SiteOf(v, scraper); site != nil {
		return l.siteRun(site), nil, nil
	}
	begin, engine, err := l.beginning(scraper)
	if err == nil {
		err = reachable(ctx, l.Guard, scraper.Customer, begin.urls[0])
	}
	return begin, engine, err
}

// runnable is the customer's scraper, if it can be launched on its own.
func runnable(from *Caller, id ids.ID) (*client.Scraper, error) {
	scraper, err := ownership.Scraper(from.View, from.Customer, id, "id")
	if err != nil {
		return nil, err
	}
	if scraper.Spec.Type == model.File {
		return nil, fault.Invalid(fault.TypeNotRunnable, "type", "the rows of this scraper are "+
			"those of a file; send the next one to POST /api/scraper/%s/file", scraper.ID)
	}
	if scraper.ListRun {
		return nil, fault.Invalid(fault.TypeNotRunnable, "sourceConfig.url",
			"the scraper of a list run has no start address; run its list through POST "+
				"/api/scraper/url-list-run")
	}
	if _, ok := from.View.RecipeOf(from.Customer, &scraper.Spec, scraper.Tag); !ok {
		return nil, fault.Invalid(fault.SchemaGone, "schema.id",
			"the scraper's schema is not there any more")
	}
	return scraper, errors.Join(idle(from.View, id), affordable(from.View, from.Customer))
}

// reachable checks a start address at launch, by the address guard and DNS, never by a fetch.
func reachable(ctx context.Context, guard Guard, customer, url string) error {
	canonical, err := address.Canonical(url)
	if err == nil {
		err = guard.CheckURL(url)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, reachTime)
		defer cancel()
		err = guard.CheckHost(ctx, customer, address.HostOf(canonical))
	}
	if err == nil {
		return nil
	}
	reason := "the host cannot be checked"
	if coded := (*fault.Error)(nil); errors.As(err, &coded) {
		reason = coded.Detail
		if reason == "" {
			reason = fault.Lookup(coded.Code).Title
		}
	}
	return &fault.Error{Code: fault.StartURLsUnreachable, Field: "sourceConfig.url", Detail: reason,
		Cause: err}
}
