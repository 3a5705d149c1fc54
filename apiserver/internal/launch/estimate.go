package launch

import (
	"context"
	"fmt"
	"math"
	"slices"

	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

const (
	// maxEstimated is how many of the newest runs an estimate uses. It looks through maxLookedAt
	// runs to find them.
	maxEstimated = 20
	maxLookedAt  = 200
	// Future runs may differ from past ones, by a tenth and more if there were few past runs. For
	// equal past runs, the upper end of the range is less than twice the lower.
	spreadAlways = 0.1
	spreadOfOne  = 0.2
	// mostExact is the greatest number that every client reads exactly (RFC 8259, section 6).
	// Greater numbers are reported as this one.
	mostExact = 1<<53 - 1
)

// Estimate is what a run launched now will probably come to. Money is in micros.
type Estimate struct {
	Links    uint32
	Pages    int64 // delivered
	Min, Max int64 // charged, less free requests
	Runs     int   // past runs that it is based on
}

// Estimate says what a run of the scraper over this many links will probably cost. With 0 links it
// takes as many as the scraper or its list has. It uses the newest runs with the current recipe.
// Without any, it spans all that is possible: from one page a link by the cheapest tier to the
// longest chains by the dearest. A sample narrows the tiers to those it needed. Domains with own
// prices are those of the scraper's addresses, whatever links is. Faults: scraper_not_found,
// type_not_runnable, tier_unavailable, search_engine_not_configured, schema_missing.
func (l *Launcher) Estimate(ctx context.Context, from *Caller, id ids.ID,
	links uint32) (Estimate, error) {
	scraper, err := ownership.Scraper(from.View, from.Customer, id, "id")
	if err != nil {
		return Estimate{Links: links}, err
	}
	e, charge, err := l.estimate(ctx, from, scraper, links)
	if err == nil {
		e.takeFree(from.View, from.Customer, charge)
	}
	return e, err
}

// estimate is a scraper's estimate before free requests are taken off.
func (l *Launcher) estimate(ctx context.Context, from *Caller, scraper *client.Scraper,
	links uint32) (Estimate, charging, error) {
	e := Estimate{Links: links}
	recipe, charge, err := l.priced(from, scraper)
	if err != nil {
		return e, charge, err
	}
	if e.Links == 0 {
		if e.Links, err = l.linksOf(ctx, from, scraper); err != nil {
			return e, charge, err
		}
	}
	if err := l.place(ctx, from, scraper, &charge); err != nil {
		return e, charge, err
	}
	past, err := l.costs(ctx, from.View, scraper, &charge)
	if err != nil {
		return e, charge, err
	}
	if e.Runs = len(past); e.Runs == 0 {
		if err := l.sampled(ctx, from, scraper.ID, &charge); err != nil {
			return e, charge, err
		}
		e.ofAll(charge, recipe.Pagination.MaxPages())
	} else {
		e.ofPast(past)
		charge.least, charge.dearest = pageRange(past)
	}
	return e, charge, nil
}

// charging is how the pages of a run would be charged.
type charging struct {
	model.Charge
	prices price.List
	tiers  model.TierSet // on sale
	// domains are the price rows of the domains that pages may be of; "" stands for the domains
	// without a row.
	domains        []string
	least, dearest int64 // of a page, by its tiers and domains
}

// priced is the recipe that a run of the scraper would have, and how its pages would be charged.
func (l *Launcher) priced(from *Caller, scraper *client.Scraper) (model.Recipe, charging, error) {
	spec, c := scraper.Spec, charging{}
	if spec.Type == model.SearchEngineSearch {
		engine, err := l.Engine(&spec.SourceConfig)
		if err != nil {
			return model.Recipe{}, c, err
		}
		spec.Search = engine
	}
	recipe, ok := from.View.RecipeOf(from.Customer, &spec, scraper.Tag)
	if !ok {
		return recipe, c, fault.Invalid(fault.SchemaGone, "schema.id",
			"the scraper's schema is not there any more")
	}
	endpoint, _ := model.EndpointOf(recipe.Endpoint)
	c.Charge, c.tiers = endpoint.Charge, endpoint.Tiers
	if c.tiers == 0 {
		var err error
		if c.tiers, err = Tiers(from.View, &spec); err != nil {
			return recipe, c, err
		}
	}
	if table := from.View.CurrentPrices(); table != nil {
		c.prices = table.Rows
		if !sold(c.prices, c.tiers, c.Charge) {
			return recipe, c, fault.New(fault.TypeNotRunnable,
				"what reads the scraper's pages has no price now")
		}
	}
	c.tiers = c.prices.Covered(c.tiers, c.At(""))
	return recipe, c, nil
}

// sold says whether the prices cover what a run would be charged by. If not, it is not launched.
func sold(prices price.List, tiers model.TierSet, charge model.Charge) bool {
	_, found := prices.Row(charge.Row)
	return (charge.Row == "" || found) && prices.Covered(tiers, charge.At("")) != 0
}

// linksOf is how many links a run of the scraper would have. A list's are those last given.
func (l *Launcher) linksOf(ctx context.Context, from *Caller,
	scraper *client.Scraper) (uint32, error) {
	if site := SiteOf(from.View, scraper); site != nil {
		return site.Links, nil
	}
	if !scraper.ListRun {
		begin, _, err := l.beginning(scraper)
		if err != nil {
			return 0, err
		}
		return uint32(len(begin.urls)), nil
	}
	given, err := givenRun(ctx, l.History, from.View, scraper.ID)
	if err != nil {
		return 0, fmt.Errorf("runs of scraper %s: %w", scraper.ID, err)
	}
	if given == nil {
		return 0, nil
	}
	return max(given.Links, given.Given), nil
}

// costs are the costs of the newest runs that read all their links. Reruns and stopped runs are
// left out, since they say nothing about a whole run.
func (l *Launcher) costs(ctx context.Context, v *client.View, scraper *client.Scraper,
	charge *charging) ([]cost, error) {
	var runs []*client.Job
	looked := 0
	err := l.History.ScraperRuns(ctx, v, scraper.ID, func(j *client.Job) bool {
		looked++
		if j.Closed && j.State == model.Completed && !j.Rest && j.Revision == scraper.Revision {
			runs = append(runs, j)
		}
		return len(runs) < maxEstimated && looked < maxLookedAt
	})
	if err != nil {
		return nil, fmt.Errorf("runs of scraper %s: %w", scraper.ID, err)
	}
	entries, err := l.History.EntriesOf(ctx, v, runs)
	if err != nil {
		return nil, fmt.Errorf("ledger entries of scraper %s: %w", scraper.ID, err)
	}
	past := make([]cost, 0, len(runs))
	for _, run := range runs {
		entry := entries[run.Entry]
		if entry == nil || run.Links == 0 {
			continue
		}
		var before price.List
		if table := v.Prices(run.Prices); table != nil {
			before = table.Rows
		}
		links, c := float64(run.Links), charge.costOf(entry, before)
		c.pages, c.fewest, c.most = float64(run.Delivered)/links, c.fewest/links, c.most/links
		past = append(past, c)
	}
	return past, nil
}

// ofPast is the range of past runs, widened: by 30% each way for one run, by 11% for 20 runs.
func (e *Estimate) ofPast(past []cost) {
	pages, fewest, most := make([]float64, len(past)), past[0].fewest, past[0].most
	for i, c := range past {
		pages[i], fewest, most = c.pages, min(fewest, c.fewest), max(most, c.most)
	}
	slices.Sort(pages)
	spread := spreadAlways + spreadOfOne/float64(len(past))
	links := float64(e.Links)
	e.Pages = whole(links * pages[len(pages)/2])
	e.Min = whole(math.Floor(links * fewest * (1 - spread)))
	e.Max = whole(math.Ceil(links * most * (1 + spread)))
}

// ofAll is the range of all that a run may possibly cost.
func (e *Estimate) ofAll(charge charging, maxPages int) {
	links := float64(e.Links)
	e.Pages = int64(e.Links)
	e.Min = whole(links * float64(charge.least))
	e.Max = whole(links * float64(max(maxPages, 1)) * float64(charge.dearest))
}

// takeFree takes off what free requests pay: at most that many of the dearest pages, and at least
// that many of the cheapest. While billing is off, all is free. Results are capped at mostExact.
func (e *Estimate) takeFree(v *client.View, customer string, charge charging) {
	if v.Settings().BillingOff {
		e.Min, e.Max = 0, 0
		return
	}
	if w := v.Wallet(customer); w != nil && !charge.PaidOnly {
		e.Min = max(e.Min-w.Free*charge.dearest, 0)
		e.Max = max(e.Max-w.Free*charge.least, 0)
	}
	e.Min, e.Max = min(e.Min, mostExact), min(e.Max, mostExact)
}

// whole rounds a number, at most to the greatest int64.
func whole(n float64) int64 {
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(math.Round(n))
}
