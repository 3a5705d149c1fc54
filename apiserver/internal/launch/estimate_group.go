package launch

import (
	"context"
	"fmt"
	"math"

	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// maxConsidered is how many scrapers of a group an estimate looks at. Each needs a look at the
// history.
const maxConsidered = 100

// GroupEstimate is what a run of a group launched now will probably come to. Money is in micros.
type GroupEstimate struct {
	Scrapers   int // that would be launched
	Considered int // the scrapers that the estimate is based on
	Links      int64
	Pages      int64 // delivered
	Min, Max   int64 // charged, less free requests
}

// EstimateGroup says what a run of a group will probably cost: the sum over the scrapers that it
// would launch. In a large group it looks at a sample, spread evenly. Scrapers that the balance
// does not cover count, too. Faults: not_found.
func (l *Launcher) EstimateGroup(ctx context.Context, from *Caller, id ids.ID) (GroupEstimate,
	error) {
	e := GroupEstimate{}
	group, err := ownership.Group(from.View, from.Customer, id, "id")
	if err != nil {
		return e, err
	}
	g := newGathering(l, from.View, from.Customer)
	g.broke = false
	from.View.GroupScrapers(group.ID, func(s *client.Scraper) bool {
		g.add(s)
		return ctx.Err() == nil
	})
	if e.Scrapers = len(g.runs); e.Scrapers == 0 {
		return e, ctx.Err()
	}
	e.Considered = min(e.Scrapers, maxConsidered)
	sum, dearest, least := Estimate{}, int64(0), int64(math.MaxInt64)
	links := int64(0)
	for i := range e.Considered {
		scraper := from.View.Scraper(g.runs[i*e.Scrapers/e.Considered].run.Scraper)
		one, charge, err := l.estimate(ctx, from, scraper, 0)
		if err != nil {
			return e, fmt.Errorf("estimate of scraper %s: %w", scraper.ID, err)
		}
		links += int64(one.Links)
		sum.Pages += one.Pages
		sum.Min, sum.Max = addCapped(sum.Min, one.Min), addCapped(sum.Max, one.Max)
		dearest, least = max(dearest, charge.dearest), min(least, charge.least)
	}
	scale := float64(e.Scrapers) / float64(e.Considered)
	e.Links, e.Pages = whole(float64(links)*scale), whole(float64(sum.Pages)*scale)
	sum.Min, sum.Max = whole(float64(sum.Min)*scale), whole(float64(sum.Max)*scale)
	sum.takeFree(from.View, from.Customer, charging{least: least, dearest: dearest})
	e.Min, e.Max = sum.Min, sum.Max
	return e, nil
}

// addCapped adds amounts of at least 0, at most to the greatest int64.
func addCapped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
