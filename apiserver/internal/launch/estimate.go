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
	// maxEstimated are the newest runs that an estimate goes by. It looks through maxLookedAt for
	// them.
	maxEstimated = 20
	maxLookedAt  = 200
	// A run of the future may differ from those of the past: by a tenth, and by more of what fewer
	// runs have shown. The range of equal runs is never wider than one to two.
	spreadAlways = 0.1
	spreadOfOne  = 0.2
)

// Estimate is what a run launched now will probably be. Money is in micros, millionths of a euro.
type Estimate struct {
	Links    uint32
	Pages    int64 // delivered
	Min, Max int64 // charged, free requests taken off
	Runs     int   // of the past that it goes by
}

// Estimate says what a run of the scraper over so many links will probably cost. 0 links are as
// many as the scraper or its list has. It goes by the newest runs with the recipe as it is. Without
// one it is all that may be. That is from one page a link by the cheapest tier to the longest
// chains by the dearest. A sample narrows the tiers to those it needed. Faults: scraper_not_found,
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

// estimate is a scraper's estimate, with nothing taken off for free requests.
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
	prices         price.List
	tiers          model.TierSet
	least, dearest int64 // of a page, by its tiers
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
	if covered := c.prices.CheapestFirst(c.tiers, c.Charge); len(covered) > 0 {
		c.least, _ = c.prices.Page(covered[0], c.Charge)
		c.dearest, _ = c.prices.Page(covered[len(covered)-1], c.Charge)
	}
	return recipe, c, nil
}

// sold says whether the prices have what a run would be charged by. Else it is not launched.
func sold(prices price.List, tiers model.TierSet, charge model.Charge) bool {
	_, found := prices.Row(charge.Row)
	return (charge.Row == "" || found) && prices.Covered(tiers, charge) != 0
}

// linksOf is how many links a run of the scraper would have. A list's is the one last given.
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
	return given.Links, nil
}

// cost is what a link of a past run was: its pages delivered, and what they cost at today's prices.
type cost struct {
	pages, micros  float64
	least, dearest int64 // of a page
}

// costOf is the cost of a ledger entry, for all its links together.
func costOf(entry *client.Entry, charge *charging) cost {
	c := cost{least: math.MaxInt64}
	quantity := int64(max(charge.Quantity, 1))
	for _, line := range entry.Lines {
		unit := line.UnitPrice
		if row, found := charge.prices.Row(line.RowKey); found {
			unit = row.Micros
		}
		c.micros += float64(line.Pages+line.FreePages+line.Unbilled) * float64(unit)
		c.least, c.dearest = min(c.least, unit*quantity), max(c.dearest, unit*quantity)
	}
	return c
}

// pageRange is the least and the most that a page of past runs cost.
func pageRange(past []cost) (least, dearest int64) {
	least = math.MaxInt64
	for _, c := range past {
		least, dearest = min(least, c.least), max(dearest, c.dearest)
	}
	return min(least, dearest), dearest
}

// costs are the costs of the newest runs that read all of their links. What a rerun reads is
// what others left, and a run that was stopped says nothing about a whole one.
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
		links, c := float64(run.Links), costOf(entry, charge)
		c.pages, c.micros = float64(run.Delivered)/links, c.micros/links
		past = append(past, c)
	}
	return past, nil
}

// sampled narrows the prices of a page to those of the scraper's newest sample, if it is one of the
// customer's newest ledger entries.
func (l *Launcher) sampled(ctx context.Context, from *Caller, scraper ids.ID,
	charge *charging) error {
	newest, err := l.History.EntriesBefore(ctx, from.View, from.Customer, nil, maxLookedAt)
	if err != nil {
		return fmt.Errorf("newest ledger entries: %w", err)
	}
	for _, entry := range newest {
		if entry.Scraper == scraper && entry.Source == model.SourceSample && len(entry.Lines) > 0 {
			c := costOf(entry, charge)
			charge.least, charge.dearest = c.least, c.dearest
			return nil
		}
	}
	return nil
}

// ofPast is the range of past runs and a little more: of one run 30% each way, of 20 runs 11%.
func (e *Estimate) ofPast(past []cost) {
	pages, micros := make([]float64, len(past)), make([]float64, len(past))
	for i, c := range past {
		pages[i], micros[i] = c.pages, c.micros
	}
	slices.Sort(pages)
	spread := spreadAlways + spreadOfOne/float64(len(past))
	links := float64(e.Links)
	e.Pages = whole(links * pages[len(pages)/2])
	e.Min = whole(math.Floor(links * slices.Min(micros) * (1 - spread)))
	e.Max = whole(math.Ceil(links * slices.Max(micros) * (1 + spread)))
}

// ofAll is the range of all that a run may cost.
func (e *Estimate) ofAll(charge charging, maxPages int) {
	links := float64(e.Links)
	e.Pages = int64(e.Links)
	e.Min = whole(links * float64(charge.least))
	e.Max = whole(links * float64(max(maxPages, 1)) * float64(charge.dearest))
}

// takeFree takes off what free requests pay: at most as many of the dearest pages, and at least as
// many of the cheapest. While billing is off all is free.
func (e *Estimate) takeFree(v *client.View, customer string, charge charging) {
	if v.Settings().BillingOff {
		e.Min, e.Max = 0, 0
		return
	}
	w := v.Wallet(customer)
	if w == nil || charge.PaidOnly {
		return
	}
	e.Min = max(e.Min-w.Free*charge.dearest, 0)
	e.Max = max(e.Max-w.Free*charge.least, 0)
}

// whole is a number that is no more than an int64 holds.
func whole(n float64) int64 {
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(math.Round(n))
}
